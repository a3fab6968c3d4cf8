"""Frames show what was really fed and cached, and name the first invariant that breaks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from batchspec import DecodeConfig, Frame, Recorder, Trace, decode, generate, record
from batchspec import recorder as recorder_module
from batchspec.cached_model import CachedModel
from batchspec.invariants import check_cache, check_mask, check_positions, check_visibility
from batchspec.step import Step
from batchspec.strategies import STRATEGIES
from batchspec.trace import ROLES, SLOT_STATES, CacheFrame, FeedFrame, Violation
from tiny import (
    CORRECT,
    DRAFTS,
    FAMILIES,
    KEEPING,
    ROWS,
    all_written,
    assert_ragged,
    assert_telling,
    clean_layers,
    shared_pair,
    watched,
    worst_error,
    written,
)

PROMPTS = [*ROWS, [3] * 9]
EVERY = tuple(STRATEGIES)

every_strategy = pytest.mark.parametrize("strategy", EVERY)


def config(strategy: str, **settings: Any) -> DecodeConfig:
    return DecodeConfig(
        **{
            "strategy": strategy,
            "max_new_tokens": 24,
            "batch_size": 3,
            "eos_token_ids": (),
            **settings,
        }
    )


@cache
def trace_of(strategy: str, family: str = "llama", draft: str = "noisy") -> Trace:
    return record(shared_pair(family, draft), PROMPTS, config(strategy))


def observed(strategy: str, family: str = "llama") -> Iterator[tuple[Step, Frame]]:
    """The same run twice: its live steps beside the recorder's frames."""
    pair, settings = shared_pair(family), config(strategy)
    return zip(
        decode(pair, PROMPTS, settings), Recorder(pair, PROMPTS, settings).run(), strict=True
    )


def caches(step: Step, frame: Frame) -> list[tuple[CachedModel, CacheFrame]]:
    found = [(step.target_cache, frame.target)]
    if step.draft_cache is not None:
        assert frame.draft is not None
        found.append((step.draft_cache, frame.draft))
    return found


def ids_with(frame: Frame, row: int, *roles: str) -> list[int]:
    wanted = [ROLES.index(role) for role in roles]
    return frame.token[row][np.isin(frame.role[row], wanted)].tolist()


def rows_fed(feed: FeedFrame, rows: list[int]) -> list[int]:
    return [row for row in rows if (feed.token[row] >= 0).any()]


def violations(trace: Trace) -> list[tuple[int, Frame, Violation]]:
    return [
        (number, frame, violation)
        for number, frame in enumerate(trace.frames)
        for violation in frame.violations
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fixtures_can_tell_a_wrong_recorder(family: str) -> None:
    assert_telling(all_written(family, PROMPTS))
    assert_ragged(shared_pair(family), PROMPTS, config("eqspec"))


# What was fed


@every_strategy
def test_feeds_are_what_reached_the_models(strategy: str) -> None:
    pair, settings = shared_pair(), config(strategy)
    with watched(pair.target) as target_calls, watched(pair.draft) as draft_calls:
        numbers = [[row.number for row in step.rows] for step in decode(pair, PROMPTS, settings)]
    calls = {"target": iter(target_calls), "draft": iter(draft_calls)}
    for frame, rows in zip(trace_of(strategy).frames, numbers, strict=True):
        assert np.flatnonzero(frame.active).tolist() == sorted(rows)
        for feed in frame.feeds:
            call = next(calls[feed.model])
            fed = rows_fed(feed, rows)
            assert feed.token[fed].tolist() == call["input_ids"].tolist()
            assert feed.position[fed].tolist() == call["position_ids"].tolist()
            mask = call["attention_mask"]
            assert mask.is_floating_point() and mask.isfinite().all()
            assert set(mask.unique().tolist()) <= {0.0, torch.finfo(torch.float32).min}
            assert feed.allowed[fed].tolist() == (mask[:, 0] == 0).tolist()
            others = [number for number in range(len(PROMPTS)) if number not in fed]
            assert (feed.token[others] == -1).all() and not feed.allowed[others].any()
    assert all(next(rest, None) is None for rest in calls.values())


@every_strategy
def test_attention_uses_the_recorded_positions_and_mask(strategy: str) -> None:
    pair, settings = shared_pair(), config(strategy)
    attention = pair.target.model.layers[-1].self_attn
    with watched(attention) as calls:
        numbers = [[row.number for row in step.rows] for step in decode(pair, PROMPTS, settings)]
    remaining = iter(calls)
    for frame, rows in zip(trace_of(strategy).frames, numbers, strict=True):
        for feed in frame.feeds:
            if feed.model == "target":
                call = next(remaining)
                fed = rows_fed(feed, rows)
                positions = torch.tensor(feed.position[fed])
                angles = pair.target.model.rotary_emb(call["hidden_states"], positions)
                for used, expected in zip(call["position_embeddings"], angles, strict=True):
                    assert torch.equal(used, expected)
                allowed = torch.tensor(feed.allowed[fed])
                assert torch.equal(call["attention_mask"][:, 0] == 0, allowed)
    assert next(remaining, None) is None


@every_strategy
def test_caches_are_the_live_ones(strategy: str) -> None:
    for step, frame in observed(strategy):
        rows = [row.number for row in step.cached_rows]
        for cached, shown in caches(step, frame):
            assert shown.token[rows].tolist() == cached.ids.tolist()
            assert shown.position[rows].tolist() == cached.positions.tolist()
            assert shown.visible[rows].tolist() == cached.visible.tolist()
            for layer in cached.cache.layers:
                lanes, slots = layer.keys.shape[0:3:2]
                assert lanes == len(rows)
                # Only lanes are allocated ahead of their use.
                width = shown.token.shape[1]
                assert slots >= width if strategy == "ragged" else slots == width
            others = [number for number in range(len(PROMPTS)) if number not in rows]
            assert (shown.state[others] == SLOT_STATES.index("free")).all()
            assert (shown.token[others] == -1).all() and not shown.visible[others].any()


@every_strategy
def test_the_last_slots_after_a_forward_hold_what_was_fed(strategy: str) -> None:
    for frame in trace_of(strategy).frames:
        for model, shown in (("target", frame.target), ("draft", frame.draft)):
            fed = [feed for feed in frame.feeds if feed.model == model]
            if fed:
                assert shown is not None
                for name in ("token", "position"):
                    joined = np.concatenate([getattr(feed, name) for feed in fed], axis=1)
                    place = np.concatenate([feed.expected for feed in fed], axis=1)
                    held = getattr(shown, name)
                    last = np.arange(held.shape[1] - joined.shape[1], held.shape[1])
                    slots = place if strategy == "ragged" else np.broadcast_to(last, joined.shape)
                    rows = (place >= 0).all(1)
                    assert rows.any()
                    found = np.take_along_axis(held[rows], slots[rows], 1)
                    assert (found == joined[rows]).all()


@every_strategy
def test_a_query_should_see_its_rows_tokens_up_to_itself_and_nothing_else(strategy: str) -> None:
    differing = 0
    for frame in trace_of(strategy).frames:
        if frame.phase != "verify":
            continue
        (feed,) = (feed for feed in frame.feeds if feed.model == "target")
        tokens = np.isin(
            frame.target.state, [SLOT_STATES.index("committed"), SLOT_STATES.index("draft")]
        )
        slots = np.arange(tokens.shape[1])
        first = tokens.shape[1] - feed.token.shape[1]
        for row, query in np.argwhere(feed.expected >= 0).tolist():
            own = feed.expected[row, query] if strategy == "ragged" else first + query
            should = tokens[row] & (slots <= own)
            assert feed.should[row, query].tolist() == should.tolist()
            assert should.sum() == feed.expected[row, query] + 1
        differing += int((feed.should != feed.allowed).sum())
    assert (differing > 0) == (strategy == "pad")


@every_strategy
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_cache_errors_are_measured_against_a_clean_forward(family: str, strategy: str) -> None:
    worst = 0.0
    for step, frame in observed(strategy, family):
        if step.phase != "synchronize":
            continue
        for cached, shown in caches(step, frame):
            for place, row in enumerate(step.cached_rows):
                held = cached.visible[place] & (cached.index[place] >= 0)
                slots = held.nonzero()[:, 0]
                tokens = row.tokens[: len(slots)]
                assert cached.ids[place, slots].tolist() == tokens
                found = shown.error[row.number]
                assert np.isnan(np.delete(found, slots.tolist())).all()
                if not tokens:
                    continue
                errors = torch.zeros(len(slots))
                for layer, clean in zip(
                    cached.cache.layers, clean_layers(cached.model, tokens), strict=True
                ):
                    states = [layer.keys[place][:, slots], layer.values[place][:, slots]]
                    errors = torch.maximum(errors, worst_error(states, clean))
                worst = max(worst, errors.max().item())
                np.testing.assert_allclose(found[slots.numpy()], errors, rtol=1e-2, atol=1e-5)
    assert worst < 1e-4 if strategy in CORRECT else worst > 0.1


def test_a_slot_says_what_it_holds() -> None:
    names = {
        strategy: {
            SLOT_STATES[state]
            for frame in trace_of(strategy).frames
            for shown in (frame.target, frame.draft)
            if shown is not None
            for state in np.unique(shown.state)
        }
        for strategy in EVERY
    }
    assert names["eqspec"] == {"free", "pad", "committed", "draft"}
    assert names["autoregressive"] == {"free", "pad", "committed"}
    assert "stale" in names["pad"]


@pytest.mark.parametrize("strategy", CORRECT)
def test_slots_are_drafts_only_until_they_are_judged(strategy: str) -> None:
    for frame in trace_of(strategy).frames:
        drafts = frame.target.state == SLOT_STATES.index("draft")
        if frame.phase == "verify":
            assert (drafts.sum(1) == np.maximum(frame.drafted, 0)).all()
        else:
            assert not drafts.any()
        committed = frame.target.state == SLOT_STATES.index("committed")
        cached = committed.any(1)
        missing = 0 if frame.phase == "verify" else 1
        assert (committed.sum(1)[cached] == frame.length[cached] - missing).all()


# What was decided


@every_strategy
@pytest.mark.parametrize("family", FAMILIES)
def test_observing_changes_no_token_and_no_count(family: str, strategy: str) -> None:
    trace = trace_of(strategy, family)
    generation = generate(shared_pair(family), PROMPTS, config(strategy))
    assert trace.generated == generation.tokens
    timed = {"seconds", "tokens_per_second", "moving_share"}
    recorded, bare = trace.stats, generation.stats.summary()
    assert recorded.keys() == bare.keys()
    assert {name: recorded[name] for name in recorded.keys() - timed} == {
        name: bare[name] for name in bare.keys() - timed
    }
    assert trace.prompts == PROMPTS
    assert trace.reference == all_written(family, PROMPTS)
    assert trace.dtype == "float32"


@pytest.mark.parametrize("strategy", CORRECT)
@pytest.mark.parametrize("family", FAMILIES)
def test_roles_joined_over_the_rounds_give_the_row(family: str, strategy: str) -> None:
    trace = trace_of(strategy, family)
    own = ("correction", "bonus")
    for frame in trace.frames:
        for row, prompt in enumerate(PROMPTS):
            assert ids_with(frame, row, "prompt") == prompt
            committed = ids_with(frame, row, "accepted", *own)
            assert committed == trace.generated[row][: len(committed)]
            if frame.phase != "verify":
                assert len(prompt) + len(committed) == frame.length[row]
    last = trace.frames[-1]
    for row in range(len(PROMPTS)):
        assert ids_with(last, row, "accepted", *own) == trace.generated[row]
        assert not ids_with(last, row, "draft", "rejected", "pad")
    assert last.finished.all()


@pytest.mark.parametrize("strategy", ["pad", *KEEPING])
def test_a_verified_round_splits_its_drafts(strategy: str) -> None:
    proposed: dict[int, list[int]] = {}
    rejections = bonuses = 0
    for frame in trace_of(strategy).frames:
        for row in np.flatnonzero(frame.active).tolist():
            if frame.phase == "draft":
                proposed[row] = ids_with(frame, row, "draft")
                assert len(proposed[row]) == frame.drafted[row]
            if frame.phase == "verify":
                now = frame.token_round[row] == frame.round
                roles = [ROLES[role] for role in frame.role[row][now]]
                tokens = frame.token[row][now].tolist()
                accepted = int(frame.accepted[row])
                rejected = len(proposed[row]) - accepted
                own = "correction" if rejected else "bonus"
                expected = ["accepted"] * accepted + [own] + ["rejected"] * rejected
                assert roles == expected
                assert tokens[:accepted] + tokens[accepted + 1 :] == proposed[row]
                assert frame.length[row] + accepted + 1 == len(ids_with(frame, row, *ROLES[1:5]))
                rejections += rejected
                bonuses += not rejected
            if frame.phase == "synchronize":
                now = frame.token_round[row] == frame.round
                kept = [role for role in frame.role[row][now] if role != ROLES.index("pad")]
                own = "bonus" if frame.accepted[row] == frame.drafted[row] else "correction"
                assert [ROLES[role] for role in kept] == ["accepted"] * int(frame.accepted[row]) + [
                    own
                ]
                assert not ids_with(frame, row, "draft", "rejected")
    assert rejections and bonuses


@pytest.mark.parametrize("strategy", EVERY)
def test_frames_repeat_the_counts_of_their_step(strategy: str) -> None:
    for step, frame in observed(strategy):
        assert (frame.phase, frame.round, frame.slots_moved) == (
            step.phase,
            step.round,
            step.slots_moved,
        )
        assert np.flatnonzero(frame.active).tolist() == sorted(row.number for row in step.rows)
        for place, row in enumerate(step.rows):
            assert frame.length[row.number] == row.length
            assert frame.finished[row.number] == row.finished
            known = step.verdict.accepted[place] if step.verdict else -1
            assert frame.accepted[row.number] == known
            assert frame.drafted[row.number] == (step.draft.lengths[place] if step.draft else -1)


def test_eos_inside_a_block_is_the_last_committed_token_of_a_trace() -> None:
    eos = (written("llama", ROWS[0])[3],)
    trace = record(
        shared_pair(draft="copy"), ROWS[:1], config("eqspec", draft_tokens=8, eos_token_ids=eos)
    )
    assert trace.generated == all_written("llama", ROWS[:1], eos=eos)
    assert ids_with(trace.frames[-1], 0, "accepted") == trace.generated[0]
    assert trace.frames[-1].finished.all()


def arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from arrays(item)


@every_strategy
def test_arrays_of_a_frame_cannot_be_written(strategy: str) -> None:
    found = [array for frame in trace_of(strategy).frames for array in arrays(frame)]
    assert len(found) > 10 * len(trace_of(strategy).frames)
    for array in found:
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_time_spent_observing_is_in_no_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    read_cache = recorder_module.read_cache

    def slow(*arguments: Any) -> CacheFrame:
        clock[0] += 1000.0
        return read_cache(*arguments)

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(recorder_module, "read_cache", slow)
    recorder = Recorder(shared_pair(), ROWS, config("autoregressive", max_new_tokens=2))
    frames = list(recorder.run())
    assert recorder.seconds == 1000.0 * len(frames) > 0
    assert recorder.trace().recorder_seconds == recorder.seconds
    assert all(frame.seconds == 0 for frame in frames)
    assert set(recorder.stats.seconds.values()) == {0.0}


def test_recorders_that_share_a_memo_run_a_row_alone_once() -> None:
    pair, memo = shared_pair(), {}
    calls = []
    for name in ("eqspec", "ragged", "pad"):
        with watched(pair.target) as counted:
            recorder = Recorder(pair, PROMPTS, config(name), memo)
            found = list(recorder.run())
        expected = trace_of(name).frames
        calls.append(len(counted) - recorder.stats.target_forwards)
        for mine, right in zip(found, expected, strict=True):
            assert [(v.invariant, v.row, v.model, v.slot) for v in mine.violations] == [
                (v.invariant, v.row, v.model, v.slot) for v in right.violations
            ]
            np.testing.assert_allclose(mine.target.error, right.target.error, rtol=1e-2, atol=1e-5)
    assert calls[0] > 20 and calls[1] == 0 and calls[2] > 0


def test_a_trace_can_be_taken_before_the_run_is_over() -> None:
    recorder = Recorder(shared_pair(), PROMPTS, config("pad"))
    run = recorder.run()
    for _ in range(8):
        next(run)
    trace = recorder.trace()
    assert len(trace.frames) == 8
    assert any(trace.generated) and Trace.from_json(trace.to_json()).generated == trace.generated


def test_a_trace_of_no_prompts_or_no_tokens_has_no_frames() -> None:
    for prompts, budget in (([], 24), (ROWS, 0)):
        trace = record(shared_pair(), prompts, config("eqspec", max_new_tokens=budget))
        assert trace.frames == ()
        assert trace.generated == trace.reference == [[] for _ in prompts]


# Invariants


@pytest.mark.parametrize("strategy", CORRECT)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_correct_strategy_breaks_nothing(family: str, strategy: str) -> None:
    for draft in DRAFTS if family == "llama" else ("noisy",):
        trace = trace_of(strategy, family, draft)
        assert trace.first_violation is None and not violations(trace)
        assert trace.first_divergence == [None] * len(PROMPTS)
        assert trace.generated == trace.reference


@pytest.mark.parametrize("family", FAMILIES)
def test_pad_is_right_while_no_round_is_ragged(family: str) -> None:
    trace = trace_of("pad", family, "copy")
    assert trace.first_violation is None and not violations(trace)
    assert trace.generated == all_written(family, PROMPTS)


@pytest.mark.parametrize("family", FAMILIES)
def test_pad_breaks_the_mask_first_where_a_round_first_goes_ragged(family: str) -> None:
    trace = trace_of("pad", family)
    ragged = next(
        frame
        for frame in trace.frames
        if frame.phase == "synchronize"
        and len(set(frame.accepted[frame.active & ~frame.finished].tolist())) > 1
    )
    assert trace.first_violation is not None
    number, first = trace.first_violation
    frame = trace.frames[number]
    assert frame is ragged
    assert (first.invariant, first.model) == ("I2", "target")
    alive = np.flatnonzero(frame.active & ~frame.finished)
    longest = frame.accepted[alive].max()
    short = [int(row) for row in alive if frame.accepted[row] < longest]
    assert first.row == short[0]
    assert (first.expected, first.found) == (0, 1)
    stale = frame.target.state[first.row] == SLOT_STATES.index("stale")
    assert first.slot == stale.argmax()
    assert stale.sum() == longest - frame.accepted[first.row]
    named = {violation.row for violation in frame.violations if violation.model == "target"}
    assert named == set(short)


@pytest.mark.parametrize("family", FAMILIES)
def test_pad_breaks_every_invariant_in_the_end(family: str) -> None:
    trace = trace_of("pad", family)
    broken = [{violation.invariant for violation in frame.violations} for frame in trace.frames]
    assert {"I1", "I2", "I3", "I4"} in broken
    assert any(place is not None for place in trace.first_divergence)


@pytest.mark.parametrize("family", FAMILIES)
def test_mask_breaks_positions_first_and_the_mask_never(family: str) -> None:
    trace = trace_of("mask", family)
    assert trace.first_violation is not None
    number, first = trace.first_violation
    assert first.invariant == "I1" and first.found > first.expected
    holes = trace.frames[number - 1].target.state[first.row] == SLOT_STATES.index("hole")
    assert first.found - first.expected == holes.sum()
    broken = {violation.invariant for frame in trace.frames for violation in frame.violations}
    assert broken == {"I1", "I3", "I4"}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_output_violation_names_the_first_token_that_differs(family: str) -> None:
    trace = trace_of("pad", family)
    expected = all_written(family, PROMPTS)
    assert trace.reference == expected
    named = {
        violation.row: violation
        for violation in trace.frames[-1].violations
        if violation.invariant == "I4"
    }
    for row, (found, right) in enumerate(zip(trace.generated, expected, strict=True)):
        differing = [place for place in range(24) if found[place] != right[place]]
        assert trace.first_divergence[row] == (differing[0] if differing else None)
        assert (row in named) == bool(differing)
        if differing:
            place = differing[0]
            assert named[row] == Violation("I4", row, None, place, right[place], found[place])


@pytest.mark.parametrize("family", FAMILIES)
def test_pad_gives_wrong_positions_and_the_frames_show_both(family: str) -> None:
    wrong = 0
    for frame in trace_of("pad", family).frames:
        for feed in frame.feeds:
            wrong += int((feed.position != feed.expected)[feed.expected >= 0].sum())
    assert wrong > 0
    for frame in trace_of("eqspec", family).frames:
        for feed in frame.feeds:
            assert (feed.position == feed.expected)[feed.expected >= 0].all()


def a_clean_frame() -> Frame:
    return next(
        frame
        for frame in trace_of("eqspec").frames
        if frame.phase == "synchronize" and frame.slots_moved and frame.target.visible[1].sum() > 9
    )


def changed(array: np.ndarray, place: tuple[int, ...], value: Any) -> np.ndarray:
    copied = array.copy()
    assert copied[place] != value
    copied[place] = value
    return copied


def last_visible(shown: CacheFrame, row: int) -> int:
    return int(np.flatnonzero(shown.visible[row])[-1])


def test_a_wrong_position_is_found_where_it_is() -> None:
    shown = a_clean_frame().target
    assert check_positions("target", shown) == []
    slot = last_visible(shown, 1)
    right = int(shown.position[1, slot])
    tampered = replace(shown, position=changed(shown.position, (1, slot), right + 1))
    assert check_positions("target", tampered) == [
        Violation("I1", 1, "target", slot, right, right + 1)
    ]


def test_a_gap_in_the_positions_is_found_after_a_hidden_token() -> None:
    shown = a_clean_frame().target
    slot = last_visible(shown, 1)
    place = int(shown.position[1, slot])
    gap = replace(shown, visible=changed(shown.visible, (1, slot - 1), False))
    assert check_positions("target", gap) == [Violation("I1", 1, "target", slot, place - 1, place)]


def test_two_tokens_at_swapped_positions_are_found() -> None:
    shown = a_clean_frame().target
    first = int(np.flatnonzero(shown.visible[1])[0])
    position = shown.position.copy()
    position[1, [first, first + 1]] = position[1, [first + 1, first]]
    assert check_positions("draft", replace(shown, position=position)) == [
        Violation("I1", 1, "draft", first, 0, 1)
    ]


def test_a_hidden_token_and_a_visible_pad_are_found() -> None:
    shown = a_clean_frame().target
    assert check_visibility("target", shown) == []
    slot = last_visible(shown, 1)
    hidden = replace(shown, visible=changed(shown.visible, (1, slot), False))
    assert check_visibility("target", hidden) == [Violation("I2", 1, "target", slot, 1, 0)]
    row, pad = np.argwhere(shown.state == SLOT_STATES.index("pad"))[0].tolist()
    seen = replace(shown, visible=changed(shown.visible, (row, pad), True))
    assert check_visibility("target", seen) == [Violation("I2", row, "target", pad, 0, 1)]


def test_a_query_that_sees_the_future_or_a_pad_is_found() -> None:
    frame = next(frame for frame in trace_of("eqspec").frames if frame.phase == "verify")
    feed: FeedFrame = frame.feeds[0]
    assert check_mask(feed) == []
    slots = feed.allowed.shape[2]
    for row, query, slot in [(1, 0, slots - 1), (2, 1, 0)]:
        tampered = replace(feed, allowed=changed(feed.allowed, (row, query, slot), True))
        assert check_mask(tampered) == [Violation("I2", row, "target", slot, 0, 1)]


def test_a_fault_in_a_rebuilt_cache_is_found() -> None:
    shown = a_clean_frame().target
    assert check_cache("target", shown, "float32") == []
    slot = last_visible(shown, 1)
    for error, dtype, found in [
        (0.01, "float32", True),
        (0.01, "bfloat16", False),
        (np.inf, "bfloat16", True),
        (np.nan, "bfloat16", True),
    ]:
        tampered = replace(shown, error=changed(shown.error, (1, slot), error))
        named = [(v.row, v.slot) for v in check_cache("target", tampered, dtype)]
        assert named == ([(1, slot)] if found else [])
