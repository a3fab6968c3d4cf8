"""Traces as text, and the page that is made of them."""

from __future__ import annotations

from batchspec import DecodeConfig, record
from batchspec.strategies import STRATEGIES
from sketches import PAGE, drawn
from tiny import ROWS, shared_pair
from visuals.sketch import SKETCH_LEGEND, sketch


def test_the_page_of_strategies_shows_what_a_run_shows() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert drawn(page) == page
    assert " ".join(SKETCH_LEGEND.split()) in " ".join(page.split())
    for name in STRATEGIES:
        assert f"```text {name}\n" in page


def test_a_sketch_has_a_cell_for_every_slot_of_every_row() -> None:
    config = DecodeConfig(max_new_tokens=9, eos_token_ids=())
    trace = record(shared_pair(), ROWS, config)
    frames = [f for f in trace.frames if f.phase == "synchronize" and f.round <= 2]
    lines = sketch(trace, 2).split("\n")
    assert len(lines) == len(frames) * (1 + len(ROWS))
    for number, frame in enumerate(frames):
        assert lines[number * 4] == f"round {number + 1}, {frame.slots_moved} slots moved"
        for row in range(len(ROWS)):
            line = lines[number * 4 + 1 + row]
            head, cells, won = line.split("|")
            assert head == f"row {row} " and len(cells) == 4 * frame.target.state.shape[1]
            positions = [word.rstrip("✓✎+") for word in cells.split() if word not in "·○!"]
            held = frame.target.visible[row]
            assert positions == [str(p) for p in frame.target.position[row, held]]
            assert won == f" accepted {max(0, frame.accepted[row])} of {frame.drafted[row]}"
