"""A trace as plain text, for documents and terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchspec.trace import ROLES, SLOT_STATES
from visuals.palette import LOOKS

if TYPE_CHECKING:
    from batchspec.trace import CacheFrame, Frame, Trace

SKETCH_LEGEND = (
    "A number is a position ID, in the slot that holds it. "
    f"{LOOKS['accepted'].glyph} accepted this round, {LOOKS['correction'].glyph} correction of an "
    f"earlier round, {LOOKS['bonus'].glyph} bonus of an earlier round, {LOOKS['pad'].glyph} pad, "
    f"{LOOKS['hole'].glyph} hole, {LOOKS['stale'].glyph} stale, ≠ wrong position ID."
)


def sketch(trace: Trace, rounds: int) -> str:
    """The target's cache as each of the first `rounds` leaves it, one line a row."""
    lines = []
    for frame in trace.frames:
        if frame.phase == "synchronize" and frame.round <= rounds:
            lines.append(f"round {frame.round}, {frame.slots_moved} slots moved")
            lines += [_row(frame, row) for row in range(len(frame.length))]
    return "\n".join(lines)


def _row(frame: Frame, row: int) -> str:
    cells = "".join(_cell(frame, row, slot) for slot in range(frame.target.state.shape[1]))
    return f"row {row} |{cells}|{_won(frame, row)}"


def _won(frame: Frame, row: int) -> str:
    if not frame.active[row]:
        return " done" if frame.finished[row] else " waits"
    if frame.drafted[row] < 0:
        return ""
    return f" accepted {frame.accepted[row]} of {frame.drafted[row]}"


def _cell(frame: Frame, row: int, slot: int) -> str:
    """One slot, four characters wide."""
    cache: CacheFrame = frame.target
    state = SLOT_STATES[cache.state[row, slot]]
    position, expected = cache.position[row, slot], cache.expected[row, slot]
    if state == "committed":
        role = ROLES[frame.role[row][frame.role[row] != ROLES.index("pad")][expected]]
        new = role == "accepted" and frame.token_round[row, expected] == frame.round
        glyph = LOOKS[role].glyph if new or role in ("correction", "bonus") else ""
        return f"{position}{'≠' if position != expected else glyph}".rjust(4)
    return ("" if state == "free" else LOOKS[state].glyph).rjust(4)
