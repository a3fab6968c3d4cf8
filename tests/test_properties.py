"""Equality with the reference holds for any prompts, budgets, drafts, batches and EOS ids."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from architectures import CASES, strategies_of
from batchspec import DecodeConfig, ModelPair, NGramDraft, generate, record
from tiny import (
    DRAFTS,
    FAMILIES,
    KEEPING,
    LONGEST,
    SPECULATIVE,
    VOCABULARY,
    accepted_by_round,
    all_written,
    assert_telling,
    noisy,
    reference,
    shared_pair,
    tiny,
    written,
)

CASES_DRAWN = int(os.environ.get("PROPERTY_CASES", "60"))
"""Cases of the widest property; thousands of them take an hour."""

thorough = settings(max_examples=36, deadline=None, derandomize=True)
brief = settings(max_examples=15, deadline=None, derandomize=True)


@cache
def line(number: int) -> tuple[int, ...]:
    """One of a few long random texts; prompts are cut from them, so that they come again."""
    random = Random(number)
    return tuple(random.randrange(VOCABULARY) for _ in range(40))


prompt = st.builds(
    lambda number, length: list(line(number)[:length]), st.integers(0, 2), st.integers(1, 40)
)
prompts = st.lists(prompt, min_size=1, max_size=6)


@st.composite
def runs(draw: st.DrawFn, family: str) -> tuple[list[list[int]], DecodeConfig, tuple[int, ...]]:
    """Prompts, a config for them and the EOS ids in it, drawn from what the rows emit."""
    rows = draw(prompts)
    emitted = sorted({token for row in rows for token in written(family, row)})
    eos = tuple(draw(st.lists(st.sampled_from(emitted), max_size=3, unique=True)))
    config = DecodeConfig(
        strategy=draw(st.sampled_from(SPECULATIVE)),
        draft_tokens=draw(st.integers(1, 6)),
        max_new_tokens=draw(st.integers(0, LONGEST)),
        batch_size=draw(st.integers(1, 6)),
        eos_token_ids=eos,
    )
    return rows, config, eos


@st.composite
def samplings(draw: st.DrawFn) -> dict[str, Any]:
    """Settings under which tokens are sampled."""
    return {
        "temperature": draw(st.sampled_from([0.3, 1.0, 4.0, 12.0])),
        "top_k": draw(st.sampled_from([None, 0, 1, 6, 200])),
        "top_p": draw(st.sampled_from([None, 0.2, 0.9, 1.0])),
        "seed": draw(st.integers(-(2**70), 2**70)),
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_most_drawn_prompts_can_tell_a_wrong_decoder(family: str) -> None:
    texts = [written(family, line(number)[:length]) for number in range(3) for length in (1, 9, 40)]
    assert_telling([tokens for tokens in texts if len(set(tokens)) > 2])
    assert sum(len(set(tokens)) > 2 for tokens in texts) >= 6


@pytest.mark.parametrize("family", FAMILIES)
@thorough
@given(data=st.data(), draft=st.sampled_from(DRAFTS))
def test_any_run_equals_the_reference_and_accepts_as_rows_alone_do(
    family: str, data: st.DataObject, draft: str
) -> None:
    rows, config, eos = data.draw(runs(family))
    budget, width = config.max_new_tokens, config.draft_tokens
    expected = all_written(family, rows, budget, eos)
    generation = generate(shared_pair(family, draft), rows, config)
    assert generation.tokens == expected
    accepted = drafted = rounds = 0
    for row, tokens in zip(rows, expected, strict=True):
        played = accepted_by_round(family, draft, row, tokens, budget, width)
        drafted += sum(proposed for proposed, _ in played)
        accepted += sum(kept for _, kept in played)
        rounds += len(played)
    stats = generation.stats
    if config.strategy in KEEPING:
        assert (stats.drafted, stats.accepted, stats.row_rounds) == (drafted, accepted, rounds)
    assert stats.committed == sum(map(len, expected))


@pytest.mark.parametrize("family", FAMILIES)
@brief
@given(data=st.data(), draft=st.sampled_from(DRAFTS))
def test_any_correct_run_breaks_no_invariant(family: str, data: st.DataObject, draft: str) -> None:
    rows, config, eos = data.draw(runs(family))
    trace = record(shared_pair(family, draft), rows, config)
    assert trace.first_violation is None
    assert trace.generated == all_written(family, rows, config.max_new_tokens, eos)


@pytest.mark.parametrize("family", FAMILIES)
@brief
@given(data=st.data(), draft=st.sampled_from(DRAFTS), sampling=samplings())
def test_any_sampled_run_equals_the_target_alone(
    family: str, data: st.DataObject, draft: str, sampling: dict[str, Any]
) -> None:
    rows, config, _ = data.draw(runs(family))
    config = replace(config, **sampling)
    alone = replace(config, strategy="autoregressive", batch_size=1)
    pair = shared_pair(family, draft)
    assert generate(pair, rows, config).tokens == generate(pair, rows, alone).tokens


@pytest.mark.parametrize("family", FAMILIES)
@brief
@given(data=st.data(), draft=st.sampled_from(DRAFTS))
def test_pad_is_wrong_but_never_crashes_nor_overruns(
    family: str, data: st.DataObject, draft: str
) -> None:
    rows, config, eos = data.draw(runs(family))
    pad = DecodeConfig(
        strategy="pad",
        draft_tokens=config.draft_tokens,
        max_new_tokens=config.max_new_tokens,
        batch_size=config.batch_size,
        eos_token_ids=eos,
    )
    trace = record(shared_pair(family, draft), rows, pad)
    assert trace.generated == generate(shared_pair(family, draft), rows, pad).tokens
    for tokens in trace.generated:
        full = len(tokens) == pad.max_new_tokens
        assert full or tokens[-1] in eos
        assert not set(tokens[:-1]) & set(eos)
    wrong = [place for place in trace.first_divergence if place is not None]
    assert not wrong or trace.first_violation is not None


@cache
def everything(family: str, attention: str, dtype: str, draft: str) -> ModelPair:
    """A pair of any architecture; its target is the same for every draft."""
    target = (
        everything(family, attention, dtype, "ngram").target
        if draft != "ngram"
        else tiny(family, attention=attention).to(getattr(torch, dtype))
    )
    drafts = {
        "copy": lambda: target,
        "noisy": lambda: noisy(target),
        "other": lambda: shared_pair("llama").target,
        "ngram": lambda: NGramDraft(max_ngram=2),
    }
    return ModelPair(target, drafts[draft]())


@cache
def alone(family: str, attention: str, dtype: str, row: tuple[int, ...]) -> list[int]:
    """What the target of `everything` writes by full forwards."""
    return reference(everything(family, attention, dtype, "ngram").target, list(row), LONGEST)


@settings(max_examples=CASES_DRAWN, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_architecture_precision_and_draft_is_exact(data: st.DataObject) -> None:
    draw = data.draw
    family, attention = draw(st.sampled_from(CASES))
    # Softmax of eager attention runs in float32, where a row of pads in float64 turns into NaN.
    wide = attention == "sdpa" and family != "mixtral"
    dtype = draw(st.sampled_from(["float32", "float64"] if wide else ["float32"]))
    pair = everything(family, attention, dtype, draw(st.sampled_from([*DRAFTS, "ngram"])))
    rows = draw(prompts)
    count = draw(st.integers(0, LONGEST))
    texts = [alone(family, attention, dtype, tuple(row)) for row in rows]
    emitted = sorted({token for text in texts for token in text})
    eos = tuple(draw(st.lists(st.sampled_from(emitted), max_size=2, unique=True)))
    config = DecodeConfig(
        strategy=draw(st.sampled_from(strategies_of(family))),
        draft_tokens=draw(st.integers(1, 7)),
        max_new_tokens=count,
        batch_size=draw(st.integers(1, 6)),
        window=draw(st.integers(1, 8)),
        length_bucket=draw(st.sampled_from([1, 1, 4, 64])),
        grouping=draw(st.booleans()),
        eos_token_ids=eos,
    )
    expected = [
        text[: next((place + 1 for place, token in enumerate(text[:count]) if token in eos), count)]
        for text in texts
    ]
    assert generate(pair, rows, config).tokens == expected
