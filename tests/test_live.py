"""A run of several lanes goes on together, ends as its lanes alone do, and is kept a session."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from batchspec import DecodeConfig, DecodeError, LiveRun, record
from batchspec import live as live_module
from batchspec.limits import PUBLIC, Limits
from batchspec.recorder import Recorder
from batchspec.runs import Runs
from batchspec.step import Step
from batchspec.trace import PHASES, Frame
from tiny import ROWS, shared_pair, watched

CONFIG = DecodeConfig(draft_tokens=3, max_new_tokens=12, batch_size=2, eos_token_ids=())
LANES = ("pad", "eqspec", "exspec")


def made(*lanes: str) -> LiveRun:
    return LiveRun(shared_pair(), ROWS, [replace(CONFIG, strategy=lane) for lane in lanes])


def place(frames: Sequence[Frame]) -> tuple[int, int, int]:
    """Round, phase, and how many frames of both there are before the last."""
    last = frames[-1]
    alike = sum((frame.round, frame.phase) == (last.round, last.phase) for frame in frames)
    return last.round, PHASES.index(last.phase), alike - 1


def test_lanes_come_past_one_phase_after_the_other() -> None:
    run = made(*LANES)
    earliest = (0, -1, 0)
    shares = [run.share]
    while not run.finished:
        run.advance()
        under_way = [
            place(recorder.frames)
            for recorder, ended in zip(run.recorders, run.ended, strict=True)
            if not ended
        ]
        assert min(under_way, default=(99, 0, 0)) > earliest
        earliest = min(under_way, default=earliest)
        shares.append(run.share)
    assert shares == sorted(shares) and (shares[0], shares[-1]) == (0, 1)
    assert all(run.ended)


def test_a_pool_that_takes_two_prefills_to_fill_takes_two_steps() -> None:
    run = made(*LANES)
    seen = []
    while len(seen) < 4:
        run.advance()
        seen.append([[frame.phase for frame in one.frames] for one in run.recorders])
    alone = ["prefill", "draft"]
    pooled = ["prefill", "prefill", "schedule", "draft"]
    assert seen[0] == [["prefill"]] * 3
    assert seen[1] == [alone, alone, pooled[:2]]
    assert seen[2] == [alone, alone, pooled[:3]]
    assert seen[3] == [alone, alone, pooled]


def test_lanes_that_share_a_run_end_as_each_would_alone() -> None:
    run = made(*LANES)
    while not run.finished:
        run.advance()
    for lane, trace in zip(LANES, run.traces(), strict=True):
        alone = record(shared_pair(), ROWS, replace(CONFIG, strategy=lane))
        assert trace.generated == alone.generated and trace.reference == alone.reference
        assert len(trace.frames) == len(alone.frames)
        for one, other in zip(trace.frames, alone.frames, strict=True):
            assert (one.token == other.token).all() and one.violations == other.violations


def test_until_the_end_the_reference_is_what_is_known_of_it() -> None:
    config = replace(CONFIG, strategy="pad", draft_tokens=4, max_new_tokens=24, batch_size=3)
    run, whole = LiveRun(shared_pair(), ROWS, [config]), record(shared_pair(), ROWS, config)
    diverged = False
    while not run.finished:
        run.advance()
        (trace,) = run.traces()
        for known, reference in zip(trace.reference, whole.reference, strict=True):
            assert known == reference[: len(known)]
        diverged = diverged or any(d is not None for d in trace.first_divergence)
    assert diverged and trace.reference == whole.reference
    assert max(map(len, trace.reference)) > 1 + max(filter(None, trace.first_divergence))


def advanced(monkeypatch: pytest.MonkeyPatch, forgets: bool) -> tuple[list[dict], int, list[int]]:
    """A whole run's traces without times, its forwards, and what the memo held on the way."""
    with monkeypatch.context() as patch, watched(shared_pair().target) as counted:
        if not forgets:
            patch.setattr(live_module, "forget_passed", lambda *_: None)
        run, held = made(*LANES), []
        while not run.finished:
            run.advance()
            held.append(len(run._memo))
    contents = [trace.content() for trace in run.traces()]
    for content in contents:
        content["frames"] = [{**frame, "seconds": 0} for frame in content["frames"]]
        del content["stats"], content["recorder_seconds"]
    return contents, len(counted), held


def test_rows_alone_that_no_lane_can_ask_for_again_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = advanced(monkeypatch, forgets=False)
    dropped = advanced(monkeypatch, forgets=True)
    # Nothing is run a second time for it, and every number is the same.
    assert dropped[:2] == kept[:2]
    assert dropped[2][-1] == 0 and 2 * max(dropped[2]) < max(kept[2])


def test_a_run_that_rests_keeps_no_logits_and_no_row_alone_that_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[weakref.ref[Step]] = []
    observe = Recorder._observe

    def watching(recorder: Recorder, step: Step) -> Frame:
        steps.append(weakref.ref(step))
        return observe(recorder, step)

    monkeypatch.setattr(Recorder, "_observe", watching)
    run = made(*LANES)
    while not run.finished:
        run.advance()
        assert all(step() is None for step in steps)
        for row in (row for recorder in run.recorders for row in recorder._rows):
            assert row.finished == (not row.clean)


def test_bad_input_is_found_before_a_run_is_made() -> None:
    with pytest.raises(DecodeError, match="Row 1"):
        LiveRun(shared_pair(), [[5], []], [CONFIG])


def test_a_session_has_one_run_and_its_key_is_no_other_sessions() -> None:
    runs = Runs(most=8)
    first, second, other = made("eqspec"), made("eqspec"), made("eqspec")
    key, others = runs.open("one", first), runs.open("other", other)
    assert runs.get(key) is first and runs.get(others) is other and key != others
    again = runs.open("one", second)
    assert runs.get(key) is None and first.stopped.is_set()
    assert runs.get(again) is second and not second.stopped.is_set()
    runs.end("one")
    assert runs.get(again) is None and runs.get(others) is other
    runs.end("nobody")
    runs.close("nothing")


def test_the_run_that_was_used_longest_ago_makes_room() -> None:
    runs = Runs(most=2)
    kept = [made("eqspec") for _ in range(3)]
    keys = [runs.open(f"session {number}", run) for number, run in enumerate(kept[:2])]
    assert runs.get(keys[0]) is kept[0]
    runs.open("session 2", kept[2])
    assert runs.get(keys[1]) is None and kept[1].stopped.is_set()
    assert runs.get(keys[0]) is kept[0]


@pytest.mark.parametrize(("value", "public"), [("1", True), ("yes", True), ("0", False), ("", 0)])
def test_limits_are_those_of_a_public_page(
    monkeypatch: pytest.MonkeyPatch, value: str, public: bool
) -> None:
    monkeypatch.setenv(PUBLIC, value)
    assert (Limits.of_this_page() is not None) == public


def test_what_is_at_a_limit_is_allowed_and_what_is_above_is_named() -> None:
    limits = Limits(rows=2, characters=10, new_tokens=5, draft_tokens=3, batch_size=2, window=4)
    config = DecodeConfig(draft_tokens=3, max_new_tokens=5, batch_size=2, window=4)
    limits.check(["12345"] * 2, config)
    for prompts, changes, words in (
        (["1"] * 3, {}, "2 prompts, not 3"),
        (["123456"] * 2, {}, "10 characters of prompts, not 12"),
        (["1"], {"max_new_tokens": 6}, "5 new tokens, not 6"),
        (["1"], {"draft_tokens": 4}, "3 draft tokens K, not 4"),
        (["1"], {"batch_size": 3}, "2 rows a batch, not 3"),
        (["1"], {"window": 5}, "4 rows in the window, not 5"),
    ):
        with pytest.raises(DecodeError, match=words):
            limits.check(prompts, replace(config, **changes))


def test_a_run_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    run = made("eqspec")
    while not run.finished:
        run.advance()
    assert torch.equal(before, torch.get_rng_state())
