"""Whether what was read is a trace: files come from anywhere, and a page shows what they hold.

The checks look at shapes, at the range of every number and at the order of the phases, so that
whatever passes can be told in sentences and drawn. They do not judge whether a run makes sense.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from batchspec.invariants import ERROR_BOUNDS, INVARIANTS
from batchspec.trace import (
    PHASES,
    ROLES,
    SLOT_STATES,
    CacheFrame,
    FeedFrame,
    Frame,
    Trace,
    Violation,
)

_MODELS = ("target", "draft")
_LARGEST = 2**53
"""Beyond it a browser cannot tell whole numbers apart."""


def checked(trace: Trace) -> Trace:
    """The trace itself.

    Raises:
        ValueError: it holds what no run could have left; the sentence says what and where.
    """
    _texts(trace)
    rows = len(trace.prompts)
    _expect(rows > 0, "it has no prompt")
    for name in ("prompts", "generated", "reference"):
        _token_lists(trace, name)
    for name in ("generated", "reference", "texts", "reference_texts"):
        _expect(len(getattr(trace, name)) == rows, f"{name} must have one entry per prompt")
    _whole("settings.draft_tokens", trace.settings.get("draft_tokens"), 1)
    fault = trace.settings.get("fault", "")
    _expect(fault is None or isinstance(fault, str), "settings.fault must be text")
    for name in ("settings", "stats", "recorder_seconds", "special_ids"):
        _plain(name, getattr(trace, name))
    before: Frame | None = None
    for number, frame in enumerate(trace.frames):
        where = f"frame {number}"
        _order(where, frame, before)
        _frame(where, frame, rows)
        _known_tokens(where, trace, frame)
        before = frame
    return trace


def _expect(holds: Any, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)


def _texts(trace: Trace) -> None:
    for field in fields(trace):
        if field.type == "str":
            _expect(isinstance(getattr(trace, field.name), str), f"{field.name} must be text")
        if field.type == "int":
            _whole(field.name, getattr(trace, field.name), 0)
    for name in ("texts", "reference_texts"):
        value = getattr(trace, name)
        right = isinstance(value, list) and all(isinstance(text, str) for text in value)
        _expect(right, f"{name} must be a list of texts")
    for name in ("dtype", "draft_dtype"):
        known = ", ".join(ERROR_BOUNDS)
        _expect(getattr(trace, name) in ERROR_BOUNDS, f"{name} must be one of {known}")
    _expect(isinstance(trace.settings, dict), "settings must be an object")
    _expect(isinstance(trace.stats, dict), "stats must be an object")


def _token_lists(trace: Trace, name: str) -> None:
    value = getattr(trace, name)
    right = isinstance(value, list) and all(isinstance(row, list) for row in value)
    _expect(right, f"{name} must be a list of lists of token ids")
    for row in value:
        for token in row:
            known = type(token) is int and token in trace.vocabulary
            _expect(known, f"{name} holds {token!r:.40}, which is no id of the vocabulary")


def _plain(where: str, value: Any, deep: int = 4) -> None:
    """Text, truth values, numbers that are numbers, and lists and objects of them."""
    _expect(deep, f"{where} is nested too deep")
    if isinstance(value, dict):
        for name, item in value.items():
            _plain(f"{where}.{name:.40}", item, deep - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _plain(where, item, deep - 1)
    elif not isinstance(value, str | bool | None):
        _number(where, value)


def _number(where: str, value: Any, least: float = -_LARGEST) -> None:
    right = type(value) in (int, float) and least <= value <= _LARGEST
    _expect(right, f"{where} must be a number{' of 0 or more' if least == 0 else ''}")


def _whole(where: str, value: Any, least: int) -> None:
    right = type(value) is int and least <= value < 2**31
    _expect(right, f"{where} must be a whole number of {least} or more")


def _order(where: str, frame: Frame, before: Frame | None) -> None:
    """Rounds and phases go forward, and a round is synchronized after it was verified."""
    _expect(frame.phase in PHASES, f"{where} has the phase {frame.phase!r:.40}, which is unknown")
    _whole(f"the round of {where}", frame.round, 0)
    if before is not None:
        places = [(one.round, PHASES.index(one.phase)) for one in (before, frame)]
        _expect(places[0] <= places[1], f"{where} belongs before the one ahead of it")
    if frame.phase == "synchronize":
        verified = before is not None and (before.round, before.phase) == (frame.round, "verify")
        _expect(verified, f"{where} synchronizes a round that was not verified")


def _frame(where: str, frame: Frame, rows: int) -> None:
    _number(f"seconds of {where}", frame.seconds, 0)
    for name in ("active", "finished", "length", "drafted", "accepted"):
        _shape(f"{name} of {where}", getattr(frame, name), (rows,))
    _expect(frame.token.ndim == 2, f"token of {where} must have rows")
    for name in ("token", "role", "token_round"):
        _shape(f"{name} of {where}", getattr(frame, name), (rows, frame.token.shape[1]))
    _rows(where, frame)
    for model, cache in (("target", frame.target), ("draft", frame.draft)):
        if cache is not None:
            _cache(f"the {model} cache of {where}", cache, rows)
    slots = frame.target.state.shape[1]
    _expect(frame.phase != "verify" or slots, f"the target cache of {where} has no slot")
    for feed in frame.feeds:
        _feed(f"a forward of {where}", feed, rows)
    for violation in frame.violations:
        _violation(f"a violation of {where}", violation, rows)
    _rest(where, frame, rows)


def _shape(where: str, array: Any, shape: tuple[int, ...]) -> None:
    size = " x ".join(map(str, shape))
    _expect(array.shape == shape, f"{where} must hold {size} values")


def _within(where: str, array: Any, least: float, most: float = _LARGEST) -> None:
    right = array.size == 0 or (array.min() >= least and array.max() <= most)
    _expect(right, f"{where} holds a number out of range")


def _rows(where: str, frame: Frame) -> None:
    _expect(frame.active.any(), f"{where} has no active row")
    _within(f"role of {where}", frame.role, 0, len(ROLES) - 1)
    held = frame.token >= 0
    _within(f"token of {where}", frame.token, -1)
    _expect((held == (frame.role > 0)).all(), f"a token of {where} has no role, or a role no token")
    _expect((held[:, 1:] <= held[:, :-1]).all(), f"tokens of {where} have a gap between them")
    _within(f"token_round of {where}", frame.token_round, -1)
    _within(f"length of {where}", frame.length, 0)
    _expect((frame.length <= held.sum(1)).all(), f"length of {where} exceeds its tokens")
    _within(f"drafted of {where}", frame.drafted, -1)
    _within(f"accepted of {where}", frame.accepted, -1)
    over = frame.accepted > frame.drafted.clip(0)
    _expect(not over.any(), f"{where} accepts more than was drafted")
    judged = frame.accepted[frame.active] if frame.phase == "verify" else frame.drafted[:0]
    _within(f"accepted of {where}", judged, 0)


def _cache(where: str, cache: CacheFrame, rows: int) -> None:
    for field in fields(cache):
        _shape(f"{field.name} of {where}", getattr(cache, field.name), cache.state.shape)
    _expect(cache.state.ndim == 2 and len(cache.state) == rows, f"{where} must have {rows} rows")
    _within(f"state of {where}", cache.state, 0, len(SLOT_STATES) - 1)
    for name in ("token", "position", "expected"):
        _within(f"{name} of {where}", getattr(cache, name), -1)
    measured = cache.error[~np.isnan(cache.error)]
    _within(f"error of {where}", measured, 0, float(np.finfo(np.float32).max))


def _feed(where: str, feed: FeedFrame, rows: int) -> None:
    _expect(feed.model in _MODELS, f"{where} has the model {feed.model!r:.40}, which is unknown")
    _expect(feed.allowed.ndim == 3, f"allowed of {where} must have rows, queries and slots")
    _shape(f"allowed of {where}", feed.allowed, (rows, *feed.allowed.shape[1:]))
    _shape(f"should of {where}", feed.should, feed.allowed.shape)
    for name in ("token", "position", "expected"):
        _shape(f"{name} of {where}", getattr(feed, name), feed.allowed.shape[:2])
        _within(f"{name} of {where}", getattr(feed, name), -1)


def _violation(where: str, violation: Violation, rows: int) -> None:
    _expect(violation.invariant in tuple(INVARIANTS), f"{where} names no invariant")
    _whole(f"the row of {where}", violation.row, 0)
    _expect(violation.row < rows, f"the row of {where} is none of the {rows}")
    models: Iterable[str | None] = (None,) if violation.invariant == "I4" else _MODELS
    _expect(violation.model in tuple(models), f"{where} has a model that does not fit it")
    _whole(f"the slot of {where}", violation.slot, 0)
    _number(f"what {where} expected", violation.expected)
    _number(f"what {where} found", violation.found)


def _known_tokens(where: str, trace: Trace, frame: Frame) -> None:
    caches = (frame.target, frame.draft)
    held = [frame.token, *(cache.token for cache in caches if cache is not None)]
    held += [feed.token for feed in frame.feeds]
    for token in set(np.unique(np.concatenate([array.ravel() for array in held])).tolist()) - {-1}:
        _expect(token in trace.vocabulary, f"{where} holds token {token}, not in the vocabulary")


def _rest(where: str, frame: Frame, rows: int) -> None:
    """What later versions of the format added, and may be left out."""
    own = {"phase", "round", "seconds", "target", "draft", "feeds", "violations"}
    for field in fields(frame):
        value = getattr(frame, field.name)
        name = f"{field.name} of {where}"
        if field.name in own or isinstance(value, np.ndarray):
            continue
        if field.type in ("int", "bool"):
            right = type(value) in ((bool,) if field.type == "bool" else (int,))
            _expect(right and 0 <= value <= _LARGEST, f"{name} must be a {field.type}")
        elif isinstance(value, tuple):
            least, most = -1, rows - 1 if field.name in ("pool", "waiting") else _LARGEST
            right = all(type(item) is int and least <= item <= most for item in value)
            _expect(right, f"{name} must be a list of whole numbers")
        elif is_dataclass(value):
            for part in fields(value):
                _judged(f"{part.name} of the {name}", getattr(value, part.name), rows)
        else:
            _expect(value is None, f"{name} is of an unknown kind")


def _judged(where: str, array: Any, rows: int) -> None:
    """Token ids, or probabilities as far as they are known."""
    _expect(array.ndim == 2 and len(array) == rows, f"{where} must have {rows} rows")
    if array.dtype == np.float32:
        _within(where, array[~np.isnan(array)], 0, 1 + 1e-3)
    else:
        _within(where, array, -1)
