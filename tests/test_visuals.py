"""Frames to pictures and words: pure functions on recorded traces."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from batchspec import DecodeConfig, ModelPair, Trace, record
from batchspec.trace import PHASES, ROLES, SLOT_STATES
from tiny import ROWS, noisy, tiny
from visuals.heatmap import VIEWS, cache_heatmap, mask_heatmap, positions_heatmap
from visuals.palette import LEGEND, LOOKS, legend_markup, palette_css
from visuals.payload import pack
from visuals.player import player_css, player_markup, player_script
from visuals.sentence import cause, quoted, sentence


@cache
def trace_pair() -> ModelPair:
    target = tiny()
    return ModelPair(target, noisy(target))


@cache
def traced(strategy: str, rows: int = 3, new_tokens: int = 24) -> Trace:
    config = DecodeConfig(strategy, max_new_tokens=new_tokens, batch_size=16, eos_token_ids=())
    prompts = [ROWS[number % 3] for number in range(rows)]
    return record(trace_pair(), prompts, config)


def unpacked(payload: str) -> dict:
    return json.loads(gzip.decompress(base64.b64decode(payload)))


def test_visuals_import_no_model_library() -> None:
    code = (
        "import sys, visuals.payload, visuals.player, visuals.heatmap\n"
        "assert not {'torch', 'transformers', 'gradio'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_state_and_role_has_a_look_of_its_own() -> None:
    shown = (set(SLOT_STATES) | set(ROLES)) - {"free", "none", "prompt"}
    assert shown <= set(LOOKS)
    glyphs = [LOOKS[name].glyph for name in LEGEND]
    assert len(set(glyphs)) == len(glyphs)
    assert all(LOOKS[name].words in legend_markup() for name in LEGEND)
    assert all(f"--{name}-fill" in palette_css() for name in LOOKS)


def test_text_colours_reach_a_contrast_of_four_and_a_half() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for look in LOOKS.values():
        for theme, panel in enumerate(("#ffffff", "#1c1f25")):
            fill = panel if look.fill[theme] == "transparent" else look.fill[theme]
            pair = sorted((luminance(fill), luminance(look.edge[theme])))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, (look.words, theme)


def test_each_phase_is_told_with_the_numbers_of_its_frame() -> None:
    trace = traced("eqspec")
    for number, frame in enumerate(trace.frames):
        text = sentence(trace, number)
        if frame.phase == "prefill":
            assert "Rows 0, 1 and 2 enter with 1 to 20 prompt tokens" in text
            assert "; rows 0 and 2 got 17 to 19 left pads." in text
        if frame.phase == "draft":
            assert f"{frame.drafted.clip(0).sum()} drafts" in text
        if frame.phase == "synchronize" and frame.slots_moved:
            assert f"{frame.slots_moved} slots moved" in text


def test_a_schedule_says_whether_the_rows_are_equally_long() -> None:
    trace = record(
        trace_pair(), [[5, 9], [7, 8], [44, 3], [6] * 9], DecodeConfig("exspec", 4, 16, 2, window=4)
    )
    told = set()
    for number, frame in enumerate(trace.frames):
        if frame.phase == "schedule":
            equal = len(set(frame.length[frame.active].tolist())) == 1
            alone = frame.active.sum() == 1
            words = "is left" if alone else "without pads" if equal else "are padded"
            assert words in sentence(trace, number)
            told.add(words)
    assert {"without pads", "are padded"} <= told


def test_a_schedule_shows_no_counts_of_the_round_before() -> None:
    prompts = [[5, 9], [7, 8], [44, 3], [6] * 9]
    trace = record(trace_pair(), prompts, DecodeConfig("exspec", 4, 16, 2, window=4))
    schedules = [frame for frame in trace.frames if frame.phase == "schedule"]
    assert len(schedules) > 3
    for frame in schedules:
        assert (frame.drafted == -1).all() and (frame.accepted == -1).all()


def test_offsets_in_the_sentence_are_the_moves_of_the_left_edges() -> None:
    trace = traced("eqspec")
    told = 0
    for number, frame in enumerate(trace.frames):
        if frame.phase != "synchronize" or not frame.slots_moved:
            continue
        before = trace.frames[number - 1]
        for row in np.flatnonzero(frame.active & ~frame.finished):
            edges = [(f.target.expected[row] >= 0).argmax() for f in (before, frame)]
            move = int(edges[1]) - int(edges[0])
            assert (f"row {row} {move:+d}" if move else f"row {row} ±0") in sentence(trace, number)
            told += 1
    assert told > 3


@pytest.mark.parametrize("strategy", ["holes", "ragged"])
def test_what_stays_masked_is_counted(strategy: str) -> None:
    trace = traced(strategy)
    told = 0
    for number, frame in enumerate(trace.frames):
        going_on = frame.active & ~frame.finished
        holes = (frame.target.state[going_on] == SLOT_STATES.index("hole")).sum()
        if frame.phase == "synchronize" and going_on.any():
            words = f"{holes} rejected slot" if holes else "every offset is zero"
            assert words in sentence(trace, number).lower()
            told += holes > 0
    assert told > 2


def test_a_rejection_names_both_words() -> None:
    trace = traced("eqspec")
    rejection = next(
        number
        for number, frame in enumerate(trace.frames)
        if frame.phase == "verify" and (frame.accepted < frame.drafted).any()
    )
    frame = trace.frames[rejection]
    row = int(np.argmin(frame.accepted - frame.drafted))
    this_round = frame.token_round[row] == frame.round
    wanted = frame.token[row][this_round & (frame.role[row] == ROLES.index("correction"))][0]
    offered = frame.token[row][frame.role[row] == ROLES.index("rejected")][0]
    text = sentence(trace, rejection)
    assert f"wants <q>{wanted}</q>, not <q>{offered}</q>" in text


def test_the_cause_grows_in_the_order_in_which_invariants_break() -> None:
    trace = traced("pad")
    last = len(trace.frames) - 1
    text = cause(trace, last)
    assert [text.find(name) for name in ("I2", "I1", "I3", "I4")] == sorted(
        text.find(name) for name in ("I2", "I1", "I3", "I4")
    )
    assert "a rejected draft" in text
    first = trace.first_violation
    assert first is not None
    assert cause(trace, first[0] - 1) == ""
    assert cause(trace, first[0]).count("<li>") == 1
    assert cause(traced("eqspec"), len(traced("eqspec").frames) - 1) == ""


@cache
def faulty(strategy: str, fault: str) -> Trace:
    config = DecodeConfig(strategy, batch_size=3, max_new_tokens=24, eos_token_ids=(), fault=fault)
    return record(trace_pair(), ROWS, config)


@pytest.mark.parametrize(
    ("fault", "strategy", "words"),
    [
        ("positions_by_slot", "eqspec", "slots were counted, not tokens"),
        ("bonus_cached", "ragged", "the cache was counted one token too long"),
        ("rejected_visible", "holes", "holds <b>a rejected draft</b>."),
        ("rejected_zeroed", "rollback", "holds <b>a rejected draft</b>, zeroed and not masked"),
        ("pads_visible", "exspec", "holds <b>a pad</b>"),
        ("repad_without_unpad", "eqspec", "holds <b>a pad</b>"),
        ("kv_not_shifted", "eqspec", "they stayed where they were while the row was shifted"),
        ("rows_swapped", "exspec", "they are another row's"),
        ("draft_as_correction", "holes", "the rejected draft was taken over"),
    ],
)
def test_the_cause_of_a_fault_is_told_as_it_is(fault: str, strategy: str, words: str) -> None:
    trace = faulty(strategy, fault)
    assert trace.first_violation is not None
    first = cause(trace, trace.first_violation[0]).split("</li>")[0]
    assert words in first
    assert ("slots were counted" in first) == (fault == "positions_by_slot")


def synchronized(trace: Trace) -> list[str]:
    return [sentence(trace, n) for n, f in enumerate(trace.frames) if f.phase == "synchronize"]


@pytest.mark.parametrize("strategy", ["holes", "rollback", "eqspec"])
@pytest.mark.parametrize("fault", ["rejected_visible", "rejected_zeroed"])
def test_a_fault_that_leaves_rejected_slots_says_so(fault: str, strategy: str) -> None:
    told = synchronized(faulty(strategy, fault))
    assert any("visible</b>" in text for text in told)
    assert any("zeroed" in text for text in told) == (fault == "rejected_zeroed")
    assert not any("as far as the longest" in text for text in told)


def test_a_faulty_realignment_is_told_as_it_is() -> None:
    told = " ".join(synchronized(faulty("eqspec", "repad_without_unpad")))
    assert "Append and repad, the old pads left in: " in told and "unpad, " not in told.lower()
    told = " ".join(synchronized(faulty("eqspec", "kv_not_shifted")))
    assert "slots moved in the tables, while their K/V stay" in told
    told = " ".join(synchronized(faulty("eqspec", "rows_swapped")))
    assert "two rows' K/V into each other's place" in told


def test_a_rejected_draft_that_is_taken_over_is_not_called_the_targets_wish() -> None:
    trace = faulty("eqspec", "draft_as_correction")
    told = [sentence(trace, n) for n, f in enumerate(trace.frames) if f.phase == "verify"]
    assert any("which the target does not want, and takes it all the same" in t for t in told)
    assert not any("where the target wants" in text for text in told)


def test_user_text_is_escaped_in_sentences() -> None:
    trace = traced("eqspec")
    hostile = dict.fromkeys(trace.vocabulary, "</script><img src=x onerror=alert(1)>\"'&")
    trace = replace(trace, vocabulary=hostile)
    for number in range(len(trace.frames)):
        assert "<img" not in sentence(trace, number)
        assert "<script" not in sentence(trace, number)
    assert quoted(trace, 5).startswith("<q>&lt;/script&gt;")


@pytest.mark.parametrize(("rows", "new_tokens"), [(1, 1), (3, 24), (16, 48)])
def test_figures_keep_height_ranges_and_colours_over_a_whole_trace(
    rows: int, new_tokens: int
) -> None:
    trace = traced("pad", rows, new_tokens)
    for view in VIEWS.values():
        empty = view(trace)
        assert empty.layout.height > 0
        for number in (0, len(trace.frames) // 2, len(trace.frames) - 1):
            figure = view(trace, number)
            for name in ("height", "xaxis", "yaxis"):
                assert figure.layout[name] == empty.layout[name]
            for name in ("zmin", "zmax", "colorscale"):
                assert figure.data[0][name] == empty.data[0][name]


def test_figures_hold_the_numbers_of_the_frame() -> None:
    trace = traced("pad")
    number = trace.first_violation[0] + 2  # the verify phase after the first fault
    frame = trace.frames[number]
    assert frame.phase == "verify"
    assert (np.array(cache_heatmap(trace, number).data[0].z) == frame.target.state).all()
    position = np.array(positions_heatmap(trace, number).data[0].z, dtype=float)
    shown = ~np.isnan(position)
    assert (position[shown] == frame.target.position[shown]).all()
    assert (shown == ~np.isin(frame.target.state, (0, 1))).all()
    faults = np.array(positions_heatmap(trace, number).data[0].text)
    assert (
        (faults == "✗") == (frame.target.visible & (frame.target.position != frame.target.expected))
    ).all()
    leak = int((frame.target.state == SLOT_STATES.index("stale")).any(1).argmax())
    mask = np.array(mask_heatmap(trace, number, leak).data[0].z)
    assert (mask == 3).any() and not (
        np.array(mask_heatmap(traced("eqspec"), 2).data[0].z) > 1
    ).any()
    with pytest.raises(ValueError, match="no draft cache"):
        cache_heatmap(traced("autoregressive"), 0, "draft")


def test_the_payload_holds_every_lane_and_is_small() -> None:
    traces = [traced("pad"), traced("eqspec")]
    payload = pack(traces)
    content = unpacked(payload)
    assert [lane["strategy"] for lane in content["lanes"]] == ["pad", "eqspec"]
    assert content["live"] == "recorded" and unpacked(pack(traces, live=True))["live"] == "live"
    assert content["phases"] == list(PHASES)
    for lane, trace in zip(content["lanes"], traces, strict=True):
        assert len(lane["sentences"]) == len(lane["causes"]) == len(trace.frames)
        assert lane["frames"] == json.loads(trace.to_json())["frames"]
    assert len(payload) < 300_000
    assert "NaN" not in gzip.decompress(base64.b64decode(payload)).decode()


def test_the_player_is_whole() -> None:
    assert 'id="player"' in player_markup() and "@legend" not in player_markup()
    assert ".dark #player" in player_css()
    assert "watch(" in player_script()
