"""What just happened, said from a frame's numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape, unescape
from typing import TYPE_CHECKING

import numpy as np

from batchspec.trace import PHASES, ROLES, SLOT_STATES

if TYPE_CHECKING:
    from batchspec.trace import Frame, Trace, Violation

STORY = {
    "prefill": "Both models read the prompts, all but each last token, and keep keys and values "
    "in their caches.",
    "schedule": "The pool chooses which rows run together.",
    "draft": "The small draft model proposes up to {k} tokens for every row, one forward each.",
    "verify": "The large target judges all drafts of all rows in one forward: a row keeps drafts "
    "up to the first that the target would not have written, and takes the target's token there.",
    "synchronize": "Rows won different numbers of tokens, so the batch is ragged. Before the next "
    "round it must be rectangular again, with positions, mask and cache still in step.",
}
"""The phase in general, for the line above the lanes."""

_PAD, _STALE, _HOLE = map(SLOT_STATES.index, ("pad", "stale", "hole"))
_WON = tuple(map(ROLES.index, ("accepted", "correction", "bonus")))
_CAUSES = ("I2", "I1", "I3", "I4")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


_REASONS = {
    "bonus_cached": {"I1": "the cache was counted one token too long"},
    "kv_not_shifted": {"I3": "they stayed where they were while the row was shifted"},
    "rows_swapped": {"I3": "they are another row's"},
    "draft_as_correction": {"I4": "the rejected draft was taken over"},
}
"""Why an invariant broke under a fault, where its own sentence would not say so, or not truly."""


def story(phase: str, draft_tokens: int) -> str:
    """What the phase does in every lane, as HTML."""
    return STORY[phase].format(k=draft_tokens)


def sentence(trace: Trace, number: int) -> str:
    """What frame `number` did in its own lane, as HTML with user text escaped."""
    frame = trace.frames[number]
    before = trace.frames[number - 1] if number else None
    if frame.phase == "prefill":
        return _prefill(frame)
    if frame.phase == "schedule":
        return _schedule(trace, frame)
    if frame.phase == "draft":
        return _draft(trace, frame)
    if frame.phase == "verify":
        return _verify(trace, frame)
    return _synchronize(trace, frame, before)


def cause(trace: Trace, number: int) -> str:
    """Why the lane is wrong as of frame `number`, as HTML; empty while nothing is broken.

    It tells the chain in the order in which the invariants broke: what was left visible, which
    positions slipped, which K/V differ, and the first wrong token.
    """
    first: dict[str, tuple[Frame, Violation]] = {}
    for frame in trace.frames[: number + 1]:
        for violation in frame.violations:
            first.setdefault(violation.invariant, (frame, violation))
    links = [_link(trace, *first[name]) for name in sorted(first, key=lambda n: _order(first[n]))]
    return "".join(f"<li>{link}</li>" for link in links)


def _order(found: tuple[Frame, Violation]) -> tuple[int, int, int]:
    """By time; within a frame causes (mask, positions) before effects (cache, output)."""
    frame, violation = found
    return frame.round, PHASES.index(frame.phase), _CAUSES.index(violation.invariant)


def _link(trace: Trace, frame: Frame, violation: Violation) -> str:
    where = f"Round {frame.round}, {frame.phase}"
    row, slot = f"row {violation.row}", f"slot {violation.slot}"
    reason = _REASONS.get(_fault(trace), {}).get(violation.invariant, "")
    if violation.invariant == "I1":
        shift = violation.found - violation.expected
        text = (
            f"a token of {row} sits at position <b>{violation.found:.0f}</b> instead of "
            f"<b>{violation.expected:.0f}</b> ({shift:+.0f}), {violation.model} {slot}: "
            f"{reason or 'slots were counted, not tokens'}"
        )
    elif violation.invariant == "I2" and violation.found:
        text = (
            f"{row} may see {violation.model} {slot}, which holds {_holds(trace, frame, violation)}"
        )
    elif violation.invariant == "I2":
        text = f"{row} may not see {violation.model} {slot}, a token of its own text"
    elif violation.invariant == "I3":
        text = (
            f"the cached K/V of {row}, {violation.model} {slot}, differ from a clean run's by "
            f"<b>{_amount(violation.found)}</b>{reason and f': {reason}'}"
        )
    else:
        text = (
            f"{row} writes {quoted(trace, int(violation.found))} as new token "
            f"{violation.slot + 1}; the target alone writes "
            f"{quoted(trace, int(violation.expected))}{reason and f': {reason}'}"
        )
    return f"<b>{violation.invariant}</b> {where}: {text}."


def _fault(trace: Trace) -> str:
    return str(trace.settings.get("fault"))


def _holds(trace: Trace, frame: Frame, violation: Violation) -> str:
    cache = frame.target if violation.model == "target" else frame.draft
    slots = cache.state[violation.row] if cache is not None else ()
    stale = violation.slot < len(slots) and slots[violation.slot] == _STALE
    if not stale:
        return "<b>a pad</b>"
    zeroed = ", zeroed and not masked" if _fault(trace) == "rejected_zeroed" else ""
    return f"<b>a rejected draft</b>{zeroed}"


def _amount(relative: float) -> str:
    return f"{relative:.0%}" if relative >= 0.01 else f"{relative:.0e}"


def plain(markup: str) -> str:
    """The sentences of this file without markup, one link of a cause a line."""
    text = markup.replace("<q>", "“").replace("</q>", "”").replace("</li>", "\n")
    return unescape(re.sub("<[^>]*>", "", text)).strip()


def quoted(trace: Trace, token: int) -> str:
    """A token's text in quotation marks, escaped; its id where it has no text."""
    text = trace.vocabulary.get(token, f"<{token}>")
    return f"<q>{escape(text.strip() or text).replace(chr(10), '↵')}</q>"


def _rows(numbers: Sequence[int]) -> str:
    names = [str(number) for number in numbers]
    if len(names) == 1:
        return f"row {names[0]}"
    return f"rows {', '.join(names[:-1])} and {names[-1]}"


def _prefill(frame: Frame) -> str:
    rows = np.flatnonzero(frame.active)
    pads = (frame.target.state[rows] == _PAD).sum(1)
    padded = rows[pads > 0]
    enter = "enters" if len(rows) == 1 else "enter"
    text = f"{_rows(rows.tolist())} {enter} with {_span(frame.length[rows])} prompt tokens"
    text = text[0].upper() + text[1:]
    if not len(padded):
        return f"{text}: no pads needed."
    return f"{text}; {_rows(padded.tolist())} got {_span(pads[pads > 0])} left pads."


def _span(values: np.ndarray) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def _schedule(trace: Trace, frame: Frame) -> str:
    rows = np.flatnonzero(frame.active)
    lengths = frame.length[rows]
    names = _rows(rows.tolist())
    if len(rows) == 1:
        return f"Only {names} is left to run."
    if lengths.min() == lengths.max():
        text = f"{names} are all {lengths[0]} tokens long and run together, <b>without pads</b>"
    else:
        text = f"no full group of equal length: {names}, {_span(lengths)} tokens, are padded"
    moved = _moved(trace, frame) if frame.slots_moved else "nothing moves"
    return f"{text[0].upper()}{text[1:]}; <b>{moved}</b>."


def _draft(trace: Trace, frame: Frame) -> str:
    rows = np.flatnonzero(frame.active)
    row = int(rows[0])
    drafts = frame.token[row][frame.role[row] == ROLES.index("draft")]
    words = " ".join(quoted(trace, int(token)) for token in drafts)
    total = int(frame.drafted[rows].sum())
    return f"{total} drafts for {len(rows)} rows; row {row}: {words or 'none, one token is left'}."


def _verify(trace: Trace, frame: Frame) -> str:
    rows = np.flatnonzero(frame.active)
    accepted, drafted = frame.accepted[rows], frame.drafted[rows]
    parts = []
    full = rows[(accepted == drafted) & (drafted > 0)]
    if len(full):
        earns = "earns" if len(full) == 1 else "earn"
        keeps = "keeps" if len(full) == 1 else "keep"
        parts.append(f"<b>{_rows(full.tolist())}</b> {keeps} all drafts and {earns} a bonus token")
    worst = int(rows[np.argmin(accepted - drafted)])
    if frame.accepted[worst] < frame.drafted[worst]:
        parts.append(_rejection(trace, frame, worst))
    won = (frame.token_round[rows] == frame.round) & np.isin(frame.role[rows], _WON)
    counts = won.sum(1)
    spread = int(counts.max() - counts.min())
    ragged = f"ragged by {spread}" if spread else "no ragged edge"
    parts.append(f"<b>{ragged}</b>")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if not text.startswith("<") else f"{_capital(text)}."


def _capital(markup: str) -> str:
    place = markup.index(">") + 1
    return markup[:place] + markup[place].upper() + markup[place + 1 :]


def _rejection(trace: Trace, frame: Frame, row: int) -> str:
    place = int(frame.accepted[row])
    role = frame.role[row]
    correction = frame.token[row][
        (role == ROLES.index("correction")) & (frame.token_round[row] == frame.round)
    ]
    rejected = frame.token[row][role == ROLES.index("rejected")]
    ordinal = _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"
    text = f"<b>row {row}</b> stops at its {ordinal} draft"
    if len(correction) and len(rejected):
        wanted, offered = quoted(trace, int(correction[0])), quoted(trace, int(rejected[0]))
        if _fault(trace) == "draft_as_correction":
            text += f", {offered}, which the target does not want, and takes it all the same"
        else:
            text += f", where the target wants {wanted}, not {offered}"
    return text


def _synchronize(trace: Trace, frame: Frame, before: Frame | None) -> str:
    parts = []
    done = np.flatnonzero(frame.active & frame.finished)
    if len(done):
        parts.append(
            f"{_rows(done.tolist())} {'is' if len(done) == 1 else 'are'} done and left the batch"
        )
    rows = np.flatnonzero(frame.active & ~frame.finished)
    stale = (frame.target.state == _STALE).sum(1)
    earlier = (before.target.state == _STALE).sum(1) if before is not None else stale * 0
    grown = [int(row) for row in rows if stale[row] > earlier[row]]
    if grown:
        count = int(sum(stale[row] - earlier[row] for row in grown))
        parts.append(_left(trace, count, grown))
    if len(rows) and before is not None and (not grown or frame.slots_moved):
        parts.append(_offsets(trace, frame, before, rows))
    text = "; ".join(parts) or "all rows are done"
    return f"{text[0].upper()}{text[1:]}."


def _left(trace: Trace, count: int, grown: list[int]) -> str:
    """How many rejected slots stay visible in rows `grown`, and why."""
    slots = f"{count} rejected slot{'s' * (count > 1)}"
    if _fault(trace) == "rejected_zeroed":
        return f"in {_rows(grown)} <b>{slots} {_be(count)} zeroed and stay{_s(count)} visible</b>"
    if _fault(trace) == "rejected_visible":
        return f"in {_rows(grown)} <b>{slots} stay{_s(count)} visible</b>"
    return (
        f"every row grows as far as the longest; {_rows(grown)} had fewer tokens, so "
        f"<b>{slots} stay{_s(count)} visible</b>"
    )


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _s(count: int) -> str:
    return "s" * (count == 1)


def _moved(trace: Trace, frame: Frame) -> str:
    """What was moved, where anything was."""
    if _fault(trace) == "kv_not_shifted":
        return f"{frame.slots_moved} slots moved in the tables, while their K/V stay"
    text = f"{frame.slots_moved} slots moved"
    several = (frame.active & ~frame.finished).sum() > 1
    if _fault(trace) == "rows_swapped" and frame.realigned and several:
        text += ", two rows' K/V into each other's place"
    return text


def _offsets(trace: Trace, frame: Frame, before: Frame, rows: np.ndarray) -> str:
    """The paper's offsets: how many slots each row's left edge moved."""
    offset = _left_pads(frame, rows) - _left_pads(before, rows)
    masked = int((frame.target.state[rows] == _HOLE).sum())
    if masked:
        stay = "slot stays, masked" if masked == 1 else "slots stay, masked"
        return f"{masked} rejected {stay}; <b>nothing moves</b>"
    if not offset.any():
        return "every offset is zero: only rejected slots are cut, <b>nothing moves</b>"
    moves = ", ".join(
        f"row {row} {value:+d}" if value else f"row {row} ±0"
        for row, value in zip(rows, offset, strict=True)
    )
    unpadded = _fault(trace) != "repad_without_unpad"
    steps = "unpad, append, repad" if unpadded else "append and repad, the old pads left in"
    return f"{steps}: {moves}; <b>{_moved(trace, frame)}</b>"


def _left_pads(frame: Frame, rows: np.ndarray) -> np.ndarray:
    return (frame.target.expected[rows] >= 0).argmax(1)
