"""Input that cannot be decoded is refused with one sentence; all other input is decoded exactly."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel, T5Config, T5ForConditionalGeneration

from batchspec import DecodeConfig, DecodeError, ModelPair, decode, generate, load_pair
from batchspec.config import STRATEGY_NAMES
from batchspec.strategies import STRATEGIES
from tiny import (
    LONGEST,
    ROWS,
    reference,
    shared_pair,
    tiny,
    watched,
)


def config(**settings: Any) -> DecodeConfig:
    return DecodeConfig(**{"max_new_tokens": LONGEST, "eos_token_ids": (), **settings})


def assert_sentence(error: pytest.ExceptionInfo[DecodeError]) -> None:
    text = str(error.value)
    assert isinstance(error.value, ValueError)
    assert text.endswith(".") and "\n" not in text


# Models


@pytest.mark.parametrize("role", ["target", "draft"])
def test_rotary_scaling_by_length_is_refused_at_construction(role: str) -> None:
    models = {"target": shared_pair().target, "draft": shared_pair().target}
    models[role] = tiny("phi3 longrope")
    with pytest.raises(DecodeError, match=rf"The {role} Phi3.*\(longrope\)") as error:
        ModelPair(**models)
    assert_sentence(error)


@pytest.mark.parametrize("role", ["target", "draft"])
@pytest.mark.parametrize("family", ["mamba", "jamba", "zamba"])
def test_a_recurrent_or_hybrid_model_is_refused_at_construction(family: str, role: str) -> None:
    models = {"target": shared_pair().target, "draft": shared_pair().target, role: tiny(family)}
    with pytest.raises(DecodeError, match="rollback is impossible for this layer type") as error:
        ModelPair(**models)
    assert f"The {role} {type(models[role]).__name__}" in str(error.value)
    assert_sentence(error)


@pytest.mark.parametrize("role", ["target", "draft"])
def test_an_encoder_decoder_is_refused_at_construction(role: str) -> None:
    shape = T5Config(
        vocab_size=97, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, pad_token_id=0
    )
    models = {
        "target": shared_pair().target,
        "draft": shared_pair().target,
        role: T5ForConditionalGeneration(shape).eval(),
    }
    with pytest.raises(DecodeError, match=f"{role} T5.*encoder-decoder") as error:
        ModelPair(**models)
    assert_sentence(error)


def test_a_model_that_is_set_to_use_no_cache_is_decoded_all_the_same() -> None:
    models: list[PreTrainedModel] = [
        copy.deepcopy(model) for model in (shared_pair().target, shared_pair().draft)
    ]
    expected = [reference(models[0], row, 8) for row in ROWS]
    for model in models:
        model.config.use_cache = False
    assert generate(ModelPair(*models), ROWS, config(max_new_tokens=8)).tokens == expected


def test_an_unknown_pair_is_refused_by_name() -> None:
    with pytest.raises(DecodeError, match="'no such pair'"):
        load_pair("no such pair")


# Prompts


@pytest.mark.parametrize("call", [decode, generate])
def test_an_empty_row_is_named_before_a_model_runs(call: Any) -> None:
    prompts: list[list[int]] = [[5, 9], [], [44]]
    with watched(shared_pair().target) as calls, pytest.raises(DecodeError) as error:
        call(shared_pair(), prompts, config())
    assert str(error.value).startswith("Row 1 ")
    assert not calls
    assert_sentence(error)


@pytest.mark.parametrize("token", [-1, 97, 10**9])
def test_an_id_outside_the_vocabulary_is_named(token: int) -> None:
    with pytest.raises(DecodeError, match=f"Row 2 holds token id {token}") as error:
        decode(shared_pair(), [[5], [9], [3, token]], config())
    assert_sentence(error)


def test_a_row_longer_than_the_context_is_named_with_the_numbers() -> None:
    decode(shared_pair(), [[5] * 104], config())
    with pytest.raises(DecodeError, match=r"Row 1 has 105 .* 24 .* 128") as error:
        decode(shared_pair(), [[5], [5] * 105], config())
    assert_sentence(error)


def test_the_shorter_context_of_the_two_models_counts() -> None:
    short = copy.deepcopy(shared_pair().draft)
    short.config.max_position_embeddings = 40
    with pytest.raises(DecodeError, match="holds 40"):
        decode(ModelPair(shared_pair().target, short), [[5] * 17], config())


def test_text_without_a_tokenizer_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"Row 1 .* no tokenizer"):
        decode(shared_pair(), [[5], "once"], config())


def test_one_text_instead_of_a_list_is_refused() -> None:
    with pytest.raises(DecodeError, match="must be a list"):
        decode(shared_pair(), "once", config())


@pytest.mark.parametrize(
    "prompts",
    [[5, 9], [None], [["a"]], [[5.7]], [[None]], None, 5],
    ids=["flat ids", "none", "text as id", "fraction as id", "none as id", "nothing", "number"],
)
def test_prompts_of_a_wrong_type_are_refused(prompts: Any) -> None:
    with pytest.raises(DecodeError) as error:
        decode(shared_pair(), prompts, config())
    assert_sentence(error)


def test_prompts_may_be_a_tensor_or_tuples() -> None:
    expected = generate(shared_pair(), [[5, 9, 13], [44, 3, 8]], config()).tokens
    for prompts in (torch.tensor([[5, 9, 13], [44, 3, 8]]), ((5, 9, 13), (44, 3, 8))):
        assert generate(shared_pair(), prompts, config()).tokens == expected


def test_the_default_config_is_used_without_one() -> None:
    pair = ModelPair(shared_pair().target, shared_pair(draft="copy").draft)
    assert generate(pair, [[5, 9]]).tokens == [reference(pair.target, [5, 9], 64, (2,))]


# Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("draft_tokens", 0),
        ("draft_tokens", -1),
        ("draft_tokens", 2.5),
        ("draft_tokens", True),
        ("draft_tokens", None),
        ("draft_tokens", "4"),
        ("max_new_tokens", -1),
        ("max_new_tokens", 1.0),
        ("batch_size", 0),
        ("window", 0),
        ("length_bucket", 0),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", "warm"),
        ("top_k", -1),
        ("top_k", 1.5),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_p", "most"),
        ("seed", None),
        ("seed", 0.5),
        ("threshold", 0),
        ("threshold", 1.5),
        ("threshold", float("nan")),
        ("acceptance", "lucky"),
    ],
)
def test_a_setting_outside_its_range_is_refused_with_its_value(name: str, value: Any) -> None:
    with pytest.raises(DecodeError) as error:
        DecodeConfig(**{name: value})
    assert str(value) in str(error.value)
    assert_sentence(error)


@pytest.mark.parametrize("ids", ["ab", 2.5, [2.5], [2, None], [[2]]])
def test_eos_ids_of_a_wrong_type_are_refused(ids: Any) -> None:
    with pytest.raises(DecodeError) as error:
        DecodeConfig(eos_token_ids=ids)
    assert_sentence(error)


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DecodeError, match="'guess'") as error:
        decode(shared_pair(), ROWS, config(strategy="guess"))
    assert all(name in str(error.value) for name in STRATEGIES)
    assert_sentence(error)


def test_the_names_a_config_knows_are_those_of_the_strategies() -> None:
    assert tuple(STRATEGIES) == STRATEGY_NAMES


def test_exact_acceptance_of_samples_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"0\.7") as error:
        DecodeConfig(acceptance="exact", temperature=0.7)
    assert_sentence(error)
