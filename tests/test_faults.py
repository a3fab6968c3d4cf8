"""Each fault breaks what it says it breaks, first, and a run with it goes to its end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import torch

from batchspec import DecodeConfig, DecodeError, ModelPair, NGramDraft, Trace, compare, record
from batchspec.cached_model import attention_layers
from batchspec.config import FAULT_NAMES, STRATEGY_NAMES
from batchspec.decoding import decode
from batchspec.faults import FAULTS
from batchspec.invariants import INVARIANTS
from batchspec.strategies import STRATEGIES, strategy_of
from batchspec.trace import SLOT_STATES
from tiny import CORRECT, ROWS, all_written, shared_pair

PROMPTS = [*ROWS, [3] * 9]
CASES = [(fault, strategy) for fault in FAULTS for strategy in FAULTS[fault].strategies]
ROTARY_FORGIVES = {("positions_by_slot", "rollback")}
"""All positions of a row are too far by the same number, and rotary positions are relative."""
SETTINGS = (
    {"batch_size": 2, "window": 3, "draft_tokens": 1},
    {"temperature": 0.8, "top_k": 20, "draft_tokens": 3},
    {"draft_tokens": 7, "eos_token_ids": (7, 11, 51)},
)
every_case = pytest.mark.parametrize(("fault", "strategy"), CASES)


def in_turn(cases: Sequence[Any], others: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each case with one of the others: all pairs would take minutes."""
    return list(zip(cases, cycle(others), strict=False))


def config(strategy: str, fault: str | None, **settings: Any) -> DecodeConfig:
    return DecodeConfig(
        **{
            "strategy": strategy,
            "fault": fault,
            "max_new_tokens": 24,
            # EXSPEC realigns a batch only where the pool holds no other row.
            "batch_size": 4 if strategy == "exspec" else 3,
            "eos_token_ids": (),
            **settings,
        }
    )


@cache
def trace_of(strategy: str, fault: str | None, family: str = "llama") -> Trace:
    return record(shared_pair(family), PROMPTS, config(strategy, fault))


def state_after_rounds(strategy: str, fault: str, rounds: int = 1) -> Any:
    steps = decode(shared_pair(), PROMPTS, config(strategy, fault))
    return next(s for s in steps if s.phase == "synchronize" and s.round == rounds)


def test_the_names_are_those_of_the_config() -> None:
    assert tuple(FAULTS) == FAULT_NAMES
    for fault in FAULTS.values():
        assert fault.breaks in INVARIANTS
        assert set(fault.strategies) <= set(CORRECT) - {"autoregressive"}
        assert fault.words.endswith(".") and fault.title
    assert all(any(name in f.strategies for f in FAULTS.values()) for name in CORRECT[1:])


def test_the_page_about_faults_says_what_they_do() -> None:
    page = (Path(__file__).parent.parent / "docs" / "faults.md").read_text()
    for fault in FAULTS.values():
        names = ", ".join(f"`{name}`" for name in fault.strategies)
        assert f"| `{fault.name}` | {fault.words} | {fault.breaks} | {names} |" in page


def test_the_faults_can_be_listed_without_a_model_library() -> None:
    code = (
        "import sys; from batchspec.faults import FAULTS\n"
        "assert FAULTS['rows_swapped'].strategies\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("family", "fault", "strategy"),
    [
        *(("llama", *case) for case in CASES),
        *(("gpt2", name, fault.strategies[-1]) for name, fault in FAULTS.items()),
    ],
)
def test_the_first_broken_invariant_is_the_one_named(
    family: str, fault: str, strategy: str
) -> None:
    trace = trace_of(strategy, fault, family)
    assert all(len(tokens) == 24 for tokens in trace.generated)
    assert trace.first_violation is not None
    assert trace.first_violation[1].invariant == FAULTS[fault].breaks
    assert trace_of(strategy, None, family).first_violation is None
    assert trace.reference == all_written(family, PROMPTS)


@every_case
def test_the_output_leaves_the_reference(fault: str, strategy: str) -> None:
    differs = any(place is not None for place in trace_of(strategy, fault).first_divergence)
    assert differs == ((fault, strategy) not in ROTARY_FORGIVES)
    assert trace_of(strategy, None).first_divergence == [None] * len(PROMPTS)


def test_learned_positions_forgive_no_shift() -> None:
    assert any(trace_of("rollback", "positions_by_slot", "gpt2").first_divergence)


@pytest.mark.parametrize("strategy", FAULTS["draft_as_correction"].strategies)
def test_a_wrong_correction_leaves_every_cache_in_order(strategy: str) -> None:
    broken = {
        v.invariant for f in trace_of(strategy, "draft_as_correction").frames for v in f.violations
    }
    assert broken == {"I4"}


@pytest.mark.parametrize("strategy", FAULTS["rejected_zeroed"].strategies)
def test_a_zeroed_slot_is_visible_and_really_zero(strategy: str) -> None:
    step = state_after_rounds(strategy, "rejected_zeroed")
    zeroed = 0
    for cached in (step.target_cache, step.draft_cache):
        stale = cached.visible & (cached.index < 0)
        zeroed += int(stale.sum())
        for layer in attention_layers(cached.cache):
            for states in (layer.keys, layer.values):
                assert (states.transpose(1, 2)[stale] == 0).all()
                assert (states.transpose(1, 2)[cached.index >= 0] != 0).any(-1).all()
    assert zeroed


@pytest.mark.parametrize("fault", ["rejected_visible", "rejected_zeroed"])
@pytest.mark.parametrize("strategy", FAULTS["rejected_visible"].strategies)
def test_what_is_left_visible_is_a_rejected_draft(strategy: str, fault: str) -> None:
    stale = SLOT_STATES.index("stale")
    for number, frame in enumerate(trace_of(strategy, fault).frames):
        if frame.phase != "synchronize" or frame.round > 1:
            continue
        before = trace_of(strategy, fault).frames[number - 1]
        for row in range(len(PROMPTS)):
            rejected = set(before.token[row][before.length[row] + before.accepted[row] + 1 :])
            found = frame.target.token[row][frame.target.state[row] == stale]
            assert set(found.tolist()) <= rejected


@pytest.mark.parametrize("strategy", FAULTS["pads_visible"].strategies)
def test_pads_are_fed_as_visible(strategy: str) -> None:
    frame = trace_of(strategy, "pads_visible").frames[0]
    pads = frame.target.state == SLOT_STATES.index("pad")
    assert pads.any() and frame.target.visible[pads].all()
    assert (frame.feeds[0].allowed & pads[:, None])[pads.any(1)].any()


def test_swapped_rows_have_each_others_keys() -> None:
    right = state_after_rounds("eqspec", None)
    wrong = state_after_rounds("eqspec", "rows_swapped")
    assert torch.equal(right.target_cache.ids, wrong.target_cache.ids)
    for mine, other in zip(
        attention_layers(right.target_cache.cache),
        attention_layers(wrong.target_cache.cache),
        strict=True,
    ):
        assert torch.equal(mine.keys[[1, 0, 2]], other.keys)
        assert torch.equal(mine.values[[1, 0, 2]], other.values)


@pytest.mark.parametrize(("case", "settings"), in_turn(CASES, SETTINGS))
def test_a_faulty_run_goes_to_its_end(case: tuple[str, str], settings: dict[str, Any]) -> None:
    fault, strategy = case
    draft = NGramDraft() if settings["draft_tokens"] == 7 else shared_pair().draft
    pair = ModelPair(shared_pair().target, draft)
    trace = record(pair, PROMPTS, config(strategy, fault, max_new_tokens=12, **settings))
    assert trace.frames[-1].finished.all()
    assert Trace.from_json(trace.to_json()).generated == trace.generated


@pytest.mark.parametrize("fault", ["bonus_cached", "positions_by_slot"])
def test_positions_stop_at_the_end_of_the_context(fault: str) -> None:
    prompts = [[3] * 100, [5, 9]]
    trace = record(shared_pair("gpt2"), prompts, config("holes", fault, max_new_tokens=28))
    assert max(frame.target.position.max(initial=0) for frame in trace.frames) == 127


# Three, because four strategies to most faults and two families would go in step.
@pytest.mark.parametrize(
    ("case", "family"), in_turn(CASES, ("mistral sliding", "falcon alibi", "falcon alibi"))
)
def test_other_kinds_of_attention_do_not_crash(case: tuple[str, str], family: str) -> None:
    fault, strategy = case
    settings = config(strategy, fault, max_new_tokens=6)
    try:
        trace = record(shared_pair(family), PROMPTS, settings)
    except DecodeError:  # a pair that tells slots apart is refused, as by the strategy itself
        assert strategy_of(settings).leaves_holes or strategy == "ragged"
    else:
        assert trace.frames[-1].finished.all()


def test_unknown_faults_are_refused() -> None:
    with pytest.raises(DecodeError, match=r"Unknown fault 'guess': choose one of positions_by"):
        DecodeConfig(fault="guess")


@pytest.mark.parametrize(
    ("fault", "strategy"),
    [(f, s) for f in FAULTS for s in STRATEGY_NAMES if s not in FAULTS[f].strategies],
)
def test_a_fault_that_cannot_occur_is_refused_with_those_that_can(
    fault: str, strategy: str
) -> None:
    with pytest.raises(DecodeError) as error:
        decode(shared_pair(), ROWS, config(strategy, fault))
    assert str(error.value) == (
        f"The fault {fault} cannot occur in {strategy}: "
        f"switch it on for {' or '.join(FAULTS[fault].strategies)}."
    )


def test_a_strategy_without_a_fault_is_the_class_itself() -> None:
    assert strategy_of(DecodeConfig("eqspec")) is STRATEGIES["eqspec"]
    broken = strategy_of(config("eqspec", "rows_swapped"))
    assert broken.name == "eqspec" and not broken.correct and STRATEGIES["eqspec"].correct


def test_a_strategy_is_compared_with_and_without_faults() -> None:
    right = config("eqspec", None)
    faulty = [replace(right, fault=name) for name in ("rows_swapped", "draft_as_correction")]
    comparison = compare(shared_pair(), PROMPTS, [right, *faulty])
    assert list(comparison) == ["eqspec", "eqspec+rows_swapped", "eqspec+draft_as_correction"]
    assert comparison["eqspec"].promised and comparison["eqspec"].exact_match_rate == 1
    for name in list(comparison)[1:]:
        assert not comparison[name].promised and comparison[name].exact_match_rate < 1
    words = [d for d in comparison["eqspec+rows_swapped"].diagnosis if d]
    assert words and all(w.startswith("state error: I3") for w in words)
    words = [d for d in comparison["eqspec+draft_as_correction"].diagnosis if d]
    assert words and all(w.startswith("the fault draft_as_correction: ") for w in words)
    with pytest.raises(DecodeError, match="once with each fault"):
        compare(shared_pair(), PROMPTS, [right, right])
