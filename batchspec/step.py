"""One phase of a run, as the decode loop yields it."""

from __future__ import annotations

from dataclasses import dataclass

from batchspec.acceptance import Verdict
from batchspec.cached_model import CachedModel, Feed
from batchspec.clock import Clock
from batchspec.drafting import Draft
from batchspec.row import Row


@dataclass(frozen=True)
class Step:
    """One phase, just run; the next one runs when the generator is asked for it.

    Rows and caches are the live ones, so read them before asking for the next step.

    Attributes:
        phase: one of `trace.PHASES`.
        round: counts from 1; a prefill carries the number of the round it precedes.
        rows: the rows that took part in the phase, in batch order.
        cached_rows: the rows in the caches now, in cache order; finished rows have left.
        clock: what measured the phase, see `seconds`.
        feeds: the forwards it ran.
        draft: the round's proposals, from the draft phase on.
        verdict: the target's decision, from the verify phase on.
        target_cache: the target and its cache.
        draft_cache: the draft model and its cache; None where no draft is used.
        slots_moved: committed cache slots that changed their place, both caches together.
        bytes_moved: bytes of their keys and values, over all layers.
        realigned: whether the phase had to move rows against each other.
        pool: per lane the number of the row that holds it, -1 where it is free; empty for
            strategies without lanes.
        waiting: numbers of the rows that have not started, in order.
        lines: line numbers of the strategy's own `synchronize` that ran, where they are observed.
    """

    phase: str
    round: int
    rows: tuple[Row, ...]
    cached_rows: tuple[Row, ...]
    clock: Clock
    feeds: tuple[Feed, ...]
    draft: Draft | None
    verdict: Verdict | None
    target_cache: CachedModel
    draft_cache: CachedModel | None
    slots_moved: int
    bytes_moved: int
    realigned: bool
    pool: tuple[int, ...]
    waiting: tuple[int, ...]
    lines: tuple[int, ...]

    @property
    def seconds(self) -> float:
        """Time the phase took; on a GPU the first look waits until it is over."""
        return self.clock.seconds
