"""What a run gives back, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from batchspec.clock import Clock
from batchspec.pair import ModelPair
from batchspec.row import Row
from batchspec.step import Step
from batchspec.text import running_text
from batchspec.trace import PHASES


@dataclass
class Stats:
    """Counts and seconds of a run, added up step by step.

    Attributes:
        batch_size: rows a round has room for.
        rounds: verified rounds.
        target_forwards, draft_forwards: forwards of each model, prefill included.
        drafted, accepted: draft tokens proposed, and those that were kept.
        committed: new tokens of all rows.
        row_rounds: rounds summed over the rows that took part.
        kv_slots_moved: committed cache slots that changed their place or were loaded from a pool.
        bytes_moved: bytes of their keys and values.
        realigned_rounds: rounds that moved rows against each other.
        grouped_rounds: rounds whose rows had equal lengths from the start.
        clocks: what measured each phase; `seconds` asks them when it is asked.
        target_slots, pad_slots: slots the target's cache held over all rounds, and those of them
            that held no committed token.
    """

    batch_size: int
    rounds: int = 0
    target_forwards: int = 0
    draft_forwards: int = 0
    drafted: int = 0
    accepted: int = 0
    committed: int = 0
    row_rounds: int = 0
    kv_slots_moved: int = 0
    bytes_moved: int = 0
    realigned_rounds: int = 0
    grouped_rounds: int = 0
    target_slots: int = 0
    pad_slots: int = 0
    clocks: list[tuple[str, Clock]] = field(default_factory=list, repr=False)
    _seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(PHASES, 0.0), init=False, repr=False
    )

    def add(self, step: Step) -> None:
        """Count one step."""
        self.clocks.append((step.phase, step.clock))
        for feed in step.feeds:
            if feed.model == "target":
                self.target_forwards += 1
            else:
                self.draft_forwards += 1
        if step.phase == "verify" and step.verdict is not None:
            self.rounds += 1
            self.row_rounds += len(step.rows)
            self.drafted += sum(map(len, step.verdict.drafts))
            self.accepted += sum(step.verdict.accepted)
            self.committed += sum(map(len, step.verdict.committed))
            lengths = {row.length for row in step.rows}
            self.grouped_rounds += len(lengths) == 1 and len(step.rows) > 1
        # Whichever phase moves them: EXSPEC does it in schedule. One phase a round realigns.
        self.kv_slots_moved += step.slots_moved
        self.bytes_moved += step.bytes_moved
        self.realigned_rounds += step.realigned
        if step.phase == "synchronize":
            slots = step.target_cache.slots * len(step.cached_rows)
            self.target_slots += slots
            self.pad_slots += slots - sum(row.length - 1 for row in step.cached_rows)

    def summary(self) -> dict[str, Any]:
        """All counts, rates and seconds by name."""
        rates = (
            "mean_acceptance_length",
            "draft_acceptance_rate",
            "tokens_per_second",
            "pad_slot_share",
            "busy_row_share",
            "group_rate",
            "moving_share",
        )
        names = [each.name for each in fields(self) if each.name not in ("clocks", "_seconds")]
        counts = {name: getattr(self, name) for name in names}
        rated = {name: getattr(self, name) for name in rates}
        return {**counts, "seconds": self.seconds, **rated}

    @property
    def seconds(self) -> dict[str, float]:
        """Time per phase, summed up; on a GPU this waits until the last phase is over."""
        for phase, clock in self.clocks:
            self._seconds[phase] += clock.seconds
        self.clocks.clear()
        return dict(self._seconds)

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens a row takes per round, the target's own included."""
        return self.committed / self.row_rounds if self.row_rounds else 0.0

    @property
    def draft_acceptance_rate(self) -> float:
        """Share of the drafted tokens that were kept."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def tokens_per_second(self) -> float:
        """New tokens over the time of all phases."""
        seconds = sum(self.seconds.values())
        return self.committed / seconds if seconds else 0.0

    @property
    def pad_slot_share(self) -> float:
        """Share of the target's cache slots that hold no committed token."""
        return self.pad_slots / self.target_slots if self.target_slots else 0.0

    @property
    def busy_row_share(self) -> float:
        """Share of the batch's places that held an unfinished row."""
        return self.row_rounds / (self.rounds * self.batch_size) if self.rounds else 0.0

    @property
    def group_rate(self) -> float:
        """Share of the rounds whose rows had equal lengths from the start."""
        return self.grouped_rounds / self.rounds if self.rounds else 0.0

    @property
    def moving_seconds(self) -> float:
        """Time spent on choosing rows and moving them."""
        return self.seconds["schedule"] + self.seconds["synchronize"]

    @property
    def moving_share(self) -> float:
        """Share of the rounds' time, prefill apart, spent on choosing rows and moving them."""
        rounds = sum(self.seconds.values()) - self.seconds["prefill"]
        return self.moving_seconds / rounds if rounds else 0.0


@dataclass(frozen=True)
class Generation:
    """The result of a run.

    Attributes:
        tokens: new token ids of each prompt, EOS kept, in the order of the prompts.
        texts: the same decoded without special tokens; None without a tokenizer.
        stats: what the run cost.
    """

    tokens: list[list[int]]
    texts: list[str] | None
    stats: Stats

    @classmethod
    def of(cls, pair: ModelPair, rows: list[Row], stats: Stats) -> Generation:
        """Collect the result of finished `rows`."""
        tokens = [row.generated for row in rows]
        texts = None
        if pair.tokenizer is not None:
            texts = [running_text(pair.tokenizer, ids) for ids in tokens]
        return cls(tokens, texts, stats)
