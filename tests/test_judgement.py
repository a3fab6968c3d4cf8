"""What a frame says beside its tables: probabilities, moved bytes, the pool, the lines that ran."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from batchspec import DecodeConfig, ModelPair, NGramDraft, Trace, decode, record
from batchspec.lines import Lines
from batchspec.strategies import STRATEGIES
from tiny import ROWS, SPECULATIVE, shared_pair

PROMPTS = [*ROWS, [3] * 9]
SLOT_BYTES = 2 * 2 * 8 * 2 * 4
"""Of a tiny model: layers, KV heads, their width, keys and values, bytes of a float32."""


@cache
def trace_of(strategy: str, draft: str = "model", **settings: Any) -> Trace:
    pair = shared_pair()
    pair = pair if draft == "model" else ModelPair(pair.target, NGramDraft())
    wanted = {"max_new_tokens": 16, "batch_size": 2, "window": 3, "eos_token_ids": (), **settings}
    return record(pair, PROMPTS, DecodeConfig(strategy, **wanted))


@torch.no_grad()
def shares(model: Any, tokens: list[int], temperature: float = 0) -> np.ndarray:
    """The distribution after each token, by one clean forward."""
    logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0].double()
    return (logits / (temperature or 1)).softmax(-1).numpy()


@pytest.mark.parametrize("temperature", [0, 0.7])
@pytest.mark.parametrize("strategy", SPECULATIVE)
def test_probabilities_are_those_of_clean_forwards(strategy: str, temperature: float) -> None:
    pair, checked = shared_pair(), 0
    for frame in trace_of(strategy, temperature=temperature).frames:
        judgement = frame.judgement
        assert (judgement is not None) == (frame.phase in ("draft", "verify"))
        if judgement is None:
            continue
        for row in np.flatnonzero(frame.active).tolist():
            count = int(frame.drafted[row])
            drafts = judgement.token[row, :count].tolist()
            assert (judgement.token[row, count:] == -1).all()
            before = int(frame.length[row])
            tokens = [*frame.token[row, :before].tolist(), *drafts]
            own = shares(pair.draft, tokens, temperature)
            right = [own[before - 1 + place, token] for place, token in enumerate(drafts)]
            found = judgement.draft_probability[row]
            np.testing.assert_allclose(found[:count], right, rtol=2e-3, atol=1e-6)
            assert np.isnan(found[count:]).all()
            if frame.phase == "draft":
                assert (judgement.choice == -1).all()
                assert np.isnan(judgement.target_probability).all()
                continue
            seen = shares(pair.target, tokens, temperature)[before - 1 :]
            right = [seen[place, token] for place, token in enumerate(drafts)]
            found = judgement.target_probability[row, :count]
            np.testing.assert_allclose(found, right, rtol=2e-3, atol=1e-6)
            choice = judgement.choice[row, : count + 1]
            right = [seen[place, token] for place, token in enumerate(choice)]
            found = judgement.choice_probability[row, : count + 1]
            np.testing.assert_allclose(found, right, rtol=2e-3, atol=1e-6)
            if not temperature:
                assert (choice == seen.argmax(-1)).all()
            accepted = int(frame.accepted[row])
            assert drafts[:accepted] == choice[:accepted].tolist()
            checked += 1
        others = ~frame.active
        assert (judgement.token[others] == -1).all() and (judgement.choice[others] == -1).all()
    assert checked > 10


def test_proposals_without_a_model_have_no_probability_of_their_own() -> None:
    judged = [f.judgement for f in trace_of("eqspec", "ngram").frames if f.judgement]
    assert all(np.isnan(judgement.draft_probability).all() for judgement in judged)
    assert any((judgement.target_probability > 0).any() for judgement in judged)


def test_the_target_alone_is_judged_at_one_place() -> None:
    verified = [f.judgement for f in trace_of("autoregressive").frames if f.phase == "verify"]
    assert verified
    for judgement in verified:
        assert judgement is not None
        assert judgement.token.shape[1] == 0 and judgement.choice.shape[1] == 1
        assert (judgement.choice >= 0).any() and np.nanmax(judgement.choice_probability) <= 1


def test_logits_of_prompts_are_not_kept() -> None:
    for step in decode(shared_pair(), PROMPTS, DecodeConfig(max_new_tokens=4)):
        assert all((feed.logits is None) == (step.phase == "prefill") for feed in step.feeds)


@pytest.mark.parametrize("strategy", SPECULATIVE)
def test_moved_bytes_are_those_of_the_moved_slots(strategy: str) -> None:
    trace = trace_of(strategy)
    for frame in trace.frames:
        assert frame.bytes_moved == frame.slots_moved * SLOT_BYTES
        assert frame.realigned <= (frame.slots_moved > 0)
    total = sum(frame.bytes_moved for frame in trace.frames)
    assert trace.stats["bytes_moved"] == total
    assert (total > 0) == (strategy in ("eqspec", "exspec"))


def test_a_pool_holds_the_rows_under_way_and_the_rest_waits() -> None:
    started: set[int] = set()
    for frame in trace_of("exspec").frames:
        held = [number for number in frame.pool if number >= 0]
        assert len(frame.pool) == 3 and len(set(held)) == len(held)
        assert not frame.finished[held].any()
        started |= set(held)
        assert frame.waiting == tuple(sorted(set(range(4)) - started))
    assert started == {0, 1, 2, 3} and frame.pool == (-1, -1, -1)


@pytest.mark.parametrize("strategy", SPECULATIVE)
def test_rows_wait_until_they_are_in_the_batch(strategy: str) -> None:
    frames = trace_of(strategy).frames
    assert frames[-1].waiting == ()
    if strategy not in ("exspec",):
        assert frames[0].waiting == (2, 3)
        assert (frames[0].pool == (0, 1)) == (strategy == "ragged")
    assert [len(frame.waiting) for frame in frames] == sorted(
        (len(frame.waiting) for frame in frames), reverse=True
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_lines_that_ran_are_lines_of_the_source(strategy: str) -> None:
    trace = trace_of(strategy)
    text = trace.source.splitlines()
    assert text[0].startswith("def synchronize(")
    ran = set()
    for frame in trace.frames:
        assert not frame.lines or frame.phase == "synchronize"
        ran |= set(frame.lines)
    words = [text[number - trace.source_line] for number in sorted(ran)]
    assert words and not any('"""' in line for line in words)


def test_a_fault_shows_the_strategys_own_source() -> None:
    trace = trace_of("eqspec", fault="rows_swapped")
    assert trace.source == trace_of("eqspec").source
    assert any(frame.lines for frame in trace.frames)


def test_nothing_is_traced_unless_somebody_observes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = STRATEGIES["eqspec"].synchronize

    def watched(self: Any, alive: list[int]) -> None:
        seen.append(sys.gettrace())
        original(self, alive)

    before = sys.gettrace()
    monkeypatch.setattr(STRATEGIES["eqspec"], "synchronize", watched)
    list(decode(shared_pair(), ROWS, DecodeConfig(max_new_tokens=6)))
    assert seen and set(seen) == {before}
    seen.clear()
    record(shared_pair(), ROWS, DecodeConfig(max_new_tokens=6))
    assert seen and before not in seen
    assert sys.gettrace() is before


def test_lines_are_noted_until_they_are_taken_and_after_an_error() -> None:
    def work(fail: bool) -> None:
        if fail:
            raise ValueError

    lines = Lines(work)
    before = sys.gettrace()
    lines.run(lambda: work(False))
    assert lines.take() == (lines.first + 1,) and lines.take() == ()
    with pytest.raises(ValueError):
        lines.run(lambda: work(True))
    assert sys.gettrace() is before
    assert lines.seconds > 0 and lines.take() == (lines.first + 1, lines.first + 2)
    assert lines.source.startswith("def work") and lines.seconds == 0
