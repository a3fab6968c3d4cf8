"""One phase of a run, as the decode loop yields it."""

from __future__ import annotations

from dataclasses import dataclass

from batchspec.acceptance import Verdict
from batchspec.cached_model import CachedModel, Feed
from batchspec.drafting import Draft
from batchspec.row import Row

PHASES = ("prefill", "schedule", "draft", "verify", "synchronize")


@dataclass(frozen=True)
class Step:
    """One phase, just run; the next one runs when the generator is asked for it.

    Rows and caches are the live ones, so read them before asking for the next step.

    Attributes:
        phase: one of `PHASES`.
        round: counts from 1; a prefill carries the number of the round it precedes.
        rows: the rows that took part in the phase, in batch order.
        cached_rows: the rows in the caches now, in cache order; finished rows have left.
        seconds: time the phase took.
        feeds: the forwards it ran.
        draft: the round's proposals, from the draft phase on.
        verdict: the target's decision, from the verify phase on.
        target_cache: the target and its cache.
        draft_cache: the draft model and its cache; None where no draft is used.
        slots_moved: committed cache slots that changed their place, both caches together.
        bytes_moved: bytes of their keys and values, over all layers.
        realigned: whether the phase had to move rows against each other.
    """

    phase: str
    round: int
    rows: tuple[Row, ...]
    cached_rows: tuple[Row, ...]
    seconds: float
    feeds: tuple[Feed, ...]
    draft: Draft | None
    verdict: Verdict | None
    target_cache: CachedModel
    draft_cache: CachedModel | None
    slots_moved: int
    bytes_moved: int
    realigned: bool
