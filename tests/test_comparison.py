"""A comparison says for every prompt whether, where and why a strategy left the reference."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from batchspec import Comparison, DecodeConfig, DecodeError, ModelPair, compare
from batchspec.comparison import describe
from batchspec.strategies import STRATEGIES
from batchspec.strategies.eqspec import EqSpec
from batchspec.trace import Violation
from tiny import (
    CORRECT,
    FAMILIES,
    ROWS,
    SPECULATIVE,
    all_written,
    assert_ragged,
    assert_telling,
    noisy,
    shared_pair,
    tiny,
    watched,
    written,
)


def config(strategy: str = "eqspec", **settings: Any) -> DecodeConfig:
    return DecodeConfig(
        **{"strategy": strategy, "max_new_tokens": 24, "eos_token_ids": (), **settings}
    )


@cache
def comparison_of(family: str) -> Comparison:
    return compare(shared_pair(family), ROWS, [config(name) for name in STRATEGIES])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fixtures_can_tell_a_wrong_comparison(family: str) -> None:
    assert_telling(all_written(family, ROWS))
    assert_ragged(shared_pair(family), ROWS, config())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reference_is_the_target_alone(family: str) -> None:
    assert comparison_of(family).reference.tokens == all_written(family, ROWS)


def test_the_reference_runs_one_row_at_a_time() -> None:
    pair = shared_pair()
    with watched(pair.target) as calls, watched(pair.draft) as draft_calls:
        compare(pair, ROWS, [config("autoregressive", batch_size=1)])
    assert {len(call["input_ids"]) for call in calls} == {1}
    assert not draft_calls


def test_results_are_found_by_strategy_in_the_order_asked() -> None:
    comparison = compare(shared_pair(), ROWS, [config("pad"), config("eqspec")])
    assert list(comparison) == ["pad", "eqspec"] and len(comparison) == 2
    assert comparison["pad"].generation.tokens != comparison["eqspec"].generation.tokens
    with pytest.raises(KeyError):
        comparison["mask"]


@pytest.mark.parametrize("strategy", CORRECT)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_correct_strategy_matches_every_prompt(family: str, strategy: str) -> None:
    result = comparison_of(family)[strategy]
    assert result.generation.tokens == all_written(family, ROWS)
    assert result.exact_match_rate == 1.0
    assert result.first_divergence == result.diagnosis == [None] * len(ROWS)


@pytest.mark.parametrize("family", FAMILIES)
def test_pad_is_a_state_error_and_the_place_is_the_first_token_that_differs(family: str) -> None:
    result = comparison_of(family)["pad"]
    expected = []
    for found, right in zip(result.generation.tokens, all_written(family, ROWS), strict=True):
        differing = [place for place, token in enumerate(found) if token != right[place]]
        expected.append(differing[0] if differing else None)
    assert result.first_divergence == expected
    assert result.exact_match_rate == expected.count(None) / len(ROWS) < 1
    for number, (place, diagnosis) in enumerate(zip(expected, result.diagnosis, strict=True)):
        if place is None:
            assert diagnosis is None
        else:
            assert diagnosis is not None
            assert diagnosis.startswith(f"state error: I2 mask: row {number}, target slot ")
            assert diagnosis.endswith(", synchronize)")


def test_nothing_to_decode_matches_everywhere() -> None:
    assert compare(shared_pair(), [], [config("pad")])["pad"].exact_match_rate == 1.0
    comparison = compare(shared_pair(), ROWS, [config("pad", max_new_tokens=0)])
    assert comparison["pad"].exact_match_rate == 1.0


@pytest.mark.parametrize("strategy", SPECULATIVE)
def test_settings_that_change_no_token_may_differ(strategy: str) -> None:
    comparison = compare(
        shared_pair(),
        ROWS,
        [
            config(strategy, draft_tokens=2, batch_size=2),
            config("autoregressive", draft_tokens=6, batch_size=1),
        ],
    )
    assert [result.exact_match_rate for result in comparison.values()] == [1.0, 1.0]


def test_eos_ends_the_reference_too() -> None:
    eos = (written("llama", ROWS[1])[5],)
    comparison = compare(shared_pair(), ROWS, [config(eos_token_ids=eos)])
    assert comparison.reference.tokens == all_written("llama", ROWS, eos=eos)
    assert comparison["eqspec"].exact_match_rate == 1.0


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ([], "Nothing to compare"),
        ([config("pad"), config("pad", draft_tokens=2)], "once"),
        ([config("pad"), config("eqspec", max_new_tokens=3)], "same max_new_tokens"),
        ([config("pad"), config("eqspec", eos_token_ids=(5,))], "EOS"),
        ([config("guess")], "'guess'"),
    ],
)
def test_configs_that_cannot_be_compared_are_refused(
    configs: list[DecodeConfig], words: str
) -> None:
    with pytest.raises(DecodeError, match=words):
        compare(shared_pair(), ROWS, configs)


def swapping(swaps: dict[int, int]) -> type[EqSpec]:
    """EQSPEC, but the first row's first token is swapped for another, with a sound cache."""

    class Swapping(EqSpec):
        name = "swapping"

        def verify(self) -> None:
            super().verify()
            if self.round == 1:
                verdict = self.verdict
                assert verdict is not None
                committed = list(verdict.committed)
                accepted = list(verdict.accepted)
                committed[0] = [swaps[verdict.choices[0][0]]]
                accepted[0] = 0
                self.verdict = replace(verdict, committed=committed, accepted=accepted)

    return Swapping


def test_two_tokens_that_tie_are_no_state_error(monkeypatch: pytest.MonkeyPatch) -> None:
    target = tiny()
    first = written("llama", ROWS[0])[0]
    twin = 96
    with torch.no_grad():
        target.lm_head.weight[twin] = target.lm_head.weight[first]
    swaps = {first: twin, twin: first}
    monkeypatch.setitem(STRATEGIES, "swapping", swapping(swaps))
    result = compare(ModelPair(target, shared_pair().draft), ROWS, [config("swapping")])["swapping"]
    assert result.first_divergence[0] == 0
    assert result.diagnosis[0] is not None
    assert result.diagnosis[0].startswith("numeric tie: ")
    assert "float32" in result.diagnosis[0]
    assert result.diagnosis[1:] == [None, None]


def test_a_clear_lead_that_was_ignored_is_no_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    first = written("llama", ROWS[0])[0]
    monkeypatch.setitem(STRATEGIES, "swapping", swapping({first: first + 1}))
    diagnosis = compare(shared_pair(), ROWS, [config("swapping")])["swapping"].diagnosis
    assert diagnosis[0] is not None and diagnosis[0].startswith("unexplained: ")


def test_a_diagnosis_does_not_depend_on_training_mode() -> None:
    swap = {token: (token + 1) % 97 for token in range(97)}
    models = [copy.deepcopy(model) for model in (shared_pair("gpt2").target,) * 2]
    texts = set()
    for training in (False, True, True):
        for model in models:
            model.train(training)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(STRATEGIES, "swapping", swapping(swap))
            result = compare(ModelPair(*models), ROWS, [config("swapping")])["swapping"]
        texts.add(result.diagnosis[0])
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("violation", "words"),
    [
        (Violation("I1", 2, "target", 7, 5, 6), "row 2, target slot 7 has position 6, expected 5"),
        (Violation("I2", 0, "draft", 3, 0, 1), "row 0, draft slot 3 is visible"),
        (Violation("I2", 0, "draft", 3, 1, 0), "row 0, draft slot 3 is hidden"),
        (Violation("I3", 1, "target", 4, 1e-4, 0.5), "row 1, target slot 4 is off by 5.0e-01"),
        (Violation("I4", 1, None, 4, 33, 44), "row 1, new token 4 is id 44"),
    ],
)
def test_a_violation_is_told_in_words(violation: Violation, words: str) -> None:
    assert describe(violation).startswith(violation.invariant)
    assert words in describe(violation)


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("strategy", ["holes", "eqspec", "ragged"])
def test_rounding_of_half_precision_is_never_called_a_state_error(
    precision: torch.dtype, strategy: str
) -> None:
    target = tiny("llama").to(precision)
    pair = ModelPair(target, noisy(tiny("llama")).to(precision))
    prompts = [
        [(7 * row + 3 * place) % 89 + 5 for place in range(row % 9 + 1)] for row in range(12)
    ]
    settings = config(strategy, max_new_tokens=24, batch_size=3)
    reasons = [
        reason for reason in compare(pair, prompts, [settings])[strategy].diagnosis if reason
    ]
    assert all(reason.startswith("numeric tie") for reason in reasons)
    assert reasons or precision is torch.float16
