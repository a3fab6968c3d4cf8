"""The four invariants, checked on what was really fed and cached."""

from __future__ import annotations

import numpy as np

from batchspec.trace import Booleans, CacheFrame, FeedFrame, Violation

INVARIANTS = {"I1": "positions", "I2": "mask", "I3": "cache", "I4": "output"}

ERROR_BOUNDS = {"float64": 1e-8, "float32": 1e-4, "float16": 5e-2, "bfloat16": 2e-1}
"""Largest relative K/V error, per dtype, that rounding explains."""


def check_positions(model: str, cache: CacheFrame) -> list[Violation]:
    """I1: read in slot order, a row's visible tokens carry position IDs 0, 1, 2, ..."""
    found = []
    for row in range(len(cache.state)):
        slots = np.flatnonzero(cache.visible[row] & (cache.expected[row] >= 0))
        wrong = slots[cache.position[row, slots] != np.arange(len(slots))]
        if len(wrong):
            slot = int(wrong[0])
            expected = int(np.searchsorted(slots, slot))
            position = int(cache.position[row, slot])
            found.append(Violation("I1", row, model, slot, expected, position))
    return found


def check_visibility(model: str, cache: CacheFrame) -> list[Violation]:
    """I2, in the cache: what is visible is a token of the row, and every such token is."""
    return _mask_violations(model, cache.visible[:, None], (cache.expected >= 0)[:, None])


def check_mask(feed: FeedFrame) -> list[Violation]:
    """I2, in a forward: each query saw its row's committed tokens and earlier drafts alone."""
    return _mask_violations(feed.model, feed.allowed, feed.should)


def check_cache(model: str, cache: CacheFrame, dtype: str) -> list[Violation]:
    """I3: the K/V of visible tokens equal those of a clean forward, up to rounding."""
    bound = ERROR_BOUNDS[dtype]
    found = []
    with np.errstate(invalid="ignore"):
        wrong = ~(cache.error <= bound) & cache.visible & (cache.expected >= 0)
    for row in np.flatnonzero(wrong.any(1)).tolist():
        slot = int(wrong[row].argmax())
        error = float(cache.error[row, slot])
        found.append(Violation("I3", row, model, slot, bound, error))
    return found


def _mask_violations(model: str, allowed: Booleans, should: Booleans) -> list[Violation]:
    """The first wrong slot of each row; both masks are `[rows, queries, slots]`."""
    found = []
    wrong = allowed != should
    for row in np.flatnonzero(wrong.any((1, 2))).tolist():
        slot = int(wrong[row].any(0).argmax())
        query = int(wrong[row, :, slot].argmax())
        expected = int(should[row, query, slot])
        found.append(Violation("I2", row, model, slot, expected, 1 - expected))
    return found
