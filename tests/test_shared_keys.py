"""Heads that share keys and ask together get the answers that they get one by one."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import batchspec.shared_keys
from architectures import strategies_of
from batchspec import DecodeConfig, ModelPair, generate, load_pair
from batchspec.bench import baseline
from batchspec.bench.baseline import generate_plainly
from batchspec.decoding import start_rows
from batchspec.shared_keys import MOST, PLAIN, SHARED, plain_attention, share_keys
from batchspec.shared_keys import shared_keys_attention as attend
from tiny import ROWS, noisy, reference, tiny

LONGEST = 24
SHARING = ("llama", "llama4", "mistral", "mistral sliding", "mixtral", "phi3", "qwen3")
"""Families whose tiny models have fewer heads of keys than of queries."""


def right(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float) -> Tensor:
    """Each head by itself, `[rows, queries, heads, head_dim]`."""
    shared = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    scores = query @ key.transpose(2, 3) * scaling
    hidden = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return (hidden.softmax(-1) @ value).transpose(1, 2)


def asked(
    rows: int = 2, kv_heads: int = 2, shared: int = 3, queries: int = 4, slots: int = 9
) -> dict[str, Any]:
    """Arguments of one call, in float64."""
    torch.manual_seed(rows + 10 * shared + 100 * queries)
    heads, places = kv_heads * shared, torch.arange(slots)
    layer = nn.Module()
    layer.num_key_value_groups = shared
    return {
        "layer": layer,
        # As the projections of a layer give them: heads lie side by side in memory.
        "query": torch.randn(rows, queries, heads, 6).double().transpose(1, 2),
        "key": torch.randn(rows, kv_heads, slots + 3, 6).double()[:, :, :slots],
        "value": torch.randn(rows, kv_heads, slots + 3, 6).double()[:, :, :slots],
        "mask": torch.rand(rows, 1, queries, slots).double().where(places != 2, -1e9),
        "scaling": 0.3,
    }


@pytest.fixture
def handed_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes the number of queries of each call that transformers' own attention answers."""
    calls: list[int] = []
    real = batchspec.shared_keys._plain

    def noted(layer: Any, query: Tensor, *others: Any, **settings: Any) -> Any:
        calls.append(query.shape[2])
        return real(layer, query, *others, **settings)

    monkeypatch.setattr(batchspec.shared_keys, "_plain", noted)
    return calls


@given(st.integers(1, 3), st.integers(1, 3), st.integers(2, 4), st.integers(2, MOST), st.booleans())
def test_each_head_gets_its_own_answer(
    rows: int, kv_heads: int, shared: int, queries: int, boolean: bool
) -> None:
    call = asked(rows, kv_heads, shared, queries)
    if boolean:
        call["mask"] = call["mask"] > 0.5
        call["mask"][..., 0] = True
    found, none = attend(**call)
    del call["layer"]
    assert none is None and found.is_contiguous()
    assert torch.allclose(found, right(**call), atol=1e-9)


@pytest.mark.parametrize(
    ("shape", "change"),
    [
        ({"queries": 1}, {}),
        ({"queries": MOST + 1}, {}),
        ({"shared": 1}, {}),
        ({}, {"mask": None}),
        ({}, {"mask": torch.zeros(2, 6, 4, 9).double()}),
        ({}, {"position_bias": torch.zeros(1, 6, 4, 9).double()}),
    ],
)
def test_what_gains_nothing_is_handed_on(
    shape: dict[str, int], change: dict[str, Any], handed_on: list[int]
) -> None:
    call = asked(**shape)
    attend(**call)
    assert len(handed_on) == bool(shape)
    attend(**call | change)
    assert handed_on == [call["query"].shape[2]] * (1 + bool(shape))


def test_a_cap_on_scores_is_left_to_transformers(handed_on: list[int]) -> None:
    with suppress(ValueError):  # which refuses it in newer versions
        attend(**asked(), softcap=30.0)
    assert handed_on == [4]


@cache
def sharing_pair(family: str) -> tuple[ModelPair, list[list[int]]]:
    """A pair that shares keys in both models, and what its target wrote before it did."""
    target = tiny(family, attention=PLAIN)
    if family != "mixtral":  # its kernel has no float64
        target = target.double()
    expected = [reference(target, row, LONGEST) for row in ROWS]
    draft = noisy(target)
    share_keys(target)
    share_keys(draft)
    return ModelPair(target, draft), expected


@pytest.mark.parametrize(
    ("family", "strategy"), [(family, name) for family in SHARING for name in strategies_of(family)]
)
def test_every_row_equals_what_the_plain_target_writes(family: str, strategy: str) -> None:
    pair, expected = sharing_pair(family)
    assert {model.config._attn_implementation for model in pair.models} == {SHARED}
    config = DecodeConfig(strategy=strategy, max_new_tokens=LONGEST, batch_size=3, eos_token_ids=())
    assert generate(pair, ROWS, config).tokens == expected


@pytest.mark.parametrize("family", SHARING)
def test_a_verification_asks_together(family: str, handed_on: list[int]) -> None:
    pair, _ = sharing_pair(family)
    handed_on.clear()  # of the probes
    generate(pair, ROWS, DecodeConfig(max_new_tokens=LONGEST, batch_size=3, draft_tokens=4))
    # Prefills and verifications have more than one query a row, drafts after the first have one.
    assert handed_on and set(handed_on) == {1}


@pytest.mark.parametrize(
    ("family", "attention"), [("falcon", PLAIN), ("jamba", PLAIN), ("gpt_neo", "eager")]
)
def test_models_that_cannot_be_told_are_left(family: str, attention: str) -> None:
    model = tiny(family, attention=attention)
    share_keys(model)
    assert model.config._attn_implementation == attention


def test_a_chosen_attention_stays() -> None:
    model = tiny("llama", attention="eager")
    share_keys(model)
    with plain_attention(model):
        assert model.config._attn_implementation == "eager"
    assert model.config._attn_implementation == "eager"


def test_loaded_models_share_keys_and_the_baseline_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = load_pair("storyteller")
    assert {model.config._attn_implementation for model in pair.models} == {SHARED}
    ran: list[str] = []
    real = baseline._left_padded

    def noted(given: ModelPair, batch: Any) -> Any:
        ran.append(given.target.model.layers[0].self_attn.config._attn_implementation)
        return real(given, batch)

    monkeypatch.setattr(baseline, "_left_padded", noted)
    config = DecodeConfig(max_new_tokens=4)
    written = generate_plainly(pair, start_rows(pair, [[5, 6]], config), config)
    assert ran == [PLAIN] and pair.target.config._attn_implementation == SHARED
    assert written == generate(pair, [[5, 6]], config).tokens
