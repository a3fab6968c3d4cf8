"""The decode loop that all strategies share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from batchspec.acceptance import RULES, Verdict, accept
from batchspec.cached_model import PAD, CachedModel, positions_by_token
from batchspec.clock import Clock
from batchspec.config import DecodeConfig
from batchspec.drafting import (
    Draft,
    Drafter,
    ModelDrafter,
    NGramDrafter,
    Pending,
    places_after,
    row_keys,
)
from batchspec.lines import Lines
from batchspec.ngram import NGramDraft
from batchspec.pair import ModelPair
from batchspec.row import Row
from batchspec.step import Step


class Strategy(ABC):
    """Drafts, verifies and commits; a subclass brings the batch back in step.

    Attributes:
        name: what `DecodeConfig.strategy` calls it.
        title: what people read above its lane.
        summary: what its synchronize does, in a few words.
        correct: whether its tokens equal the reference's.
        speculative: whether it drafts at all.
        leaves_holes: whether hidden slots stay inside a row.
        needs_query_masks: whether the mask alone must decide what a query sees.
        cached_model: how its caches are written.
        rows: the rows in the caches, in batch order.
        started: those of them whose prompts were cached last.
        waiting: the rows of later batches.
        lag: committed tokens the draft cache lacks, the same for every row.
        lines: notes which lines of `synchronize` run; None while nobody observes.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    correct: ClassVar[bool]
    speculative: ClassVar[bool] = True
    leaves_holes: ClassVar[bool] = False
    needs_query_masks: ClassVar[bool] = False
    cached_model: ClassVar[type[CachedModel]] = CachedModel

    def __init__(
        self, pair: ModelPair, config: DecodeConfig, rows: list[Row], eos_token_ids: tuple[int, ...]
    ) -> None:
        """Prepare a run over `rows`; no model runs yet."""
        self.config = config
        self.eos_token_ids = eos_token_ids
        self.waiting = rows
        self.rows: list[Row] = []
        self.started: list[Row] = []
        self.round = 0
        self.lag = 1
        self.context_length = pair.context_length
        self.filler = pair.filler_token_id
        self.target = self.cached_model(
            "target", pair.target, self.positions, pair.target_attention
        )
        self.rule = RULES[config.rule](config)
        self.drafter = self._drafter(pair) if self.speculative else None
        self.draft: Draft | None = None
        self.verdict: Verdict | None = None
        self.slots_moved = self.bytes_moved = 0
        self.realigned = False
        self.lines: Lines | None = None

    @classmethod
    def refusal(cls, pair: ModelPair) -> str:
        """Why it cannot be right on this pair, in a sentence; empty where it can."""
        if cls.leaves_holes and not pair.skips_holes:
            return (
                f"{cls.name} leaves hidden slots inside a row, and a model of this pair measures "
                "distance or a window in slots, hidden ones included: choose another strategy."
            )
        if cls.needs_query_masks and not pair.takes_query_masks:
            return (
                f"{cls.name} lets every row write at slots of its own, but a model of this pair "
                "applies the causal rule by slot, whatever mask it is given: choose another "
                "strategy."
            )
        return ""

    def _drafter(self, pair: ModelPair) -> Drafter:
        if isinstance(pair.draft, NGramDraft):
            return NGramDrafter(pair.draft)
        cached = self.cached_model(
            "draft", pair.draft, self.positions, pair.draft_attention, pair.vocabulary_size
        )
        return ModelDrafter(cached, self.rule.propose)

    @property
    def caches(self) -> list[CachedModel]:
        """The caches of the run: the target's and, where one drafts, the draft's."""
        draft = self.drafter.cached if self.drafter else None
        return [self.target] if draft is None else [self.target, draft]

    @property
    def lacking(self) -> list[tuple[CachedModel, int]]:
        """Each cache with how many of the last committed tokens it lacks, all rows alike."""
        return list(zip(self.caches, (1, self.lag), strict=False))

    @property
    def unfinished(self) -> bool:
        """Whether any row still has tokens to take."""
        return bool(self.waiting or self.rows)

    def preparations(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """The phases before drafting, asked for one by one: a prefill, when the batch is empty."""
        if not self.rows:
            yield "prefill", self.prefill

    def steps(self) -> Iterator[Step]:
        """Run the phases one by one, yielding each when it is done."""
        while self.unfinished:
            self.round += 1
            self.draft = self.verdict = None
            for phase, work in self.preparations():
                yield self._step(phase, work)
            if self.speculative:
                yield self._step("draft", self.propose)
            yield self._step("verify", self.verify)
            yield self._step("synchronize", self.commit_and_synchronize)

    def _step(self, phase: str, work: Callable[[], None]) -> Step:
        self.slots_moved, self.bytes_moved, self.realigned = 0, 0, False
        before = self.rows
        clock = Clock(self.target.device)
        with torch.inference_mode():
            work()
        clock.stop(self.lines.seconds if self.lines else 0.0)
        feeds = tuple(feed for cached in self.caches for feed in cached.feeds)
        for cached in self.caches:
            cached.feeds = []
        return Step(
            phase=phase,
            round=self.round,
            rows=tuple({"synchronize": before, "prefill": self.started}.get(phase, self.rows)),
            cached_rows=tuple(self.rows),
            clock=clock,
            feeds=feeds,
            draft=self.draft,
            verdict=self.verdict,
            target_cache=self.target,
            draft_cache=self.drafter.cached if self.drafter else None,
            slots_moved=self.slots_moved,
            bytes_moved=self.bytes_moved,
            realigned=self.realigned,
            pool=self.pool_rows,
            waiting=tuple(row.number for row in self.waiting),
            lines=self.lines.take() if self.lines else (),
        )

    @property
    def pool_rows(self) -> tuple[int, ...]:
        """Per lane the number of its row, -1 where it is free; empty without lanes."""
        return ()

    def positions(self, cached: CachedModel, index: Tensor, slot: Tensor) -> Tensor:
        """Position IDs, `[rows, queries]`, of the tokens fed at these places and slots."""
        return positions_by_token(cached, index, slot)

    def positions_by_slot(self, cached: CachedModel, slot: Tensor) -> Tensor:
        """Count slots from each row's first token on, whatever the slots hold (wrong)."""
        pads = torch.tensor(cached.pads, device=cached.device)[:, None]
        # Past the context a learned position table has no entry left.
        return (slot - pads).clamp(0, self.context_length - 1)

    def prefill(self) -> None:
        """Take the next batch from the waiting rows."""
        self.start(self.config.batch_size)

    def start(self, count: int) -> None:
        """Make `count` waiting rows the batch; cache each prompt but its last token."""
        self.rows, self.waiting = self.waiting[:count], self.waiting[count:]
        self.lag = 1
        width = max(row.length for row in self.rows)
        for cached in self.caches:
            cached.reset([width - row.length for row in self.rows])
        self.cache_prompts(self.rows)

    def cache_prompts(self, rows: list[Row]) -> None:
        """Run both models over these rows' prompts, the last token left out."""
        self.started = rows
        width = max(row.length for row in rows) - 1
        pads = [width + 1 - row.length for row in rows]
        ids = [[self.filler] * pad + row.tokens[:-1] for pad, row in zip(pads, rows, strict=True)]
        index = torch.arange(width) - torch.tensor(pads)[:, None]
        for cached in self.caches:
            if width:
                cached.feed(
                    torch.tensor(ids, device=cached.device),
                    index.clamp(min=PAD).to(cached.device),
                    logits=1,
                )
                # Nobody chooses a token by them, and some models give those of the whole prompt.
                cached.feeds[-1] = replace(cached.feeds[-1], logits=None)

    def pending(self, count: int) -> Pending:
        """The last `count` committed tokens of every row, after filler where it has fewer."""
        missing = [max(0, count - row.length) for row in self.rows]
        tokens = [
            [self.filler] * gap + row.tokens[-count:]
            for gap, row in zip(missing, self.rows, strict=True)
        ]
        ids = torch.tensor(tokens, device=self.target.device)
        last = torch.tensor([row.length for row in self.rows], device=ids.device)[:, None]
        index = last + torch.arange(-count, 0, device=ids.device)
        return Pending(ids, index, index >= 0)

    def propose(self) -> None:
        """Draft up to K tokens a row, never more than the row could still take."""
        assert self.drafter is not None
        # One of the tokens a row may still take is the target's own.
        lengths = [min(self.config.draft_tokens, row.remaining - 1) for row in self.rows]
        self.draft = self.drafter.propose(self.rows, self.pending(self.lag), lengths)
        if self.drafter.cached:
            # A row shorter than the lag was fed filler before its first token.
            pads = self.drafter.cached.pads
            for place, row in enumerate(self.rows):
                pads[place] += max(0, self.lag - row.length)

    def verify(self) -> None:
        """Let the target judge every draft of every row in one forward."""
        last = self.pending(1)
        draft = (
            self.draft if self.draft is not None else Draft(last.ids[:, :0], [0] * len(self.rows))
        )
        logits = self.target.feed(
            torch.cat([last.ids, draft.ids], 1), torch.cat([last.index, draft.index(last.index)], 1)
        )
        place = places_after(last.index, draft.width + 1)
        key = row_keys(self.rows, place.device)
        drafts, choices, accepted = accept(self.rule, draft, logits, key, place)
        committed = [
            row.cut([*drafted[:count], chosen[count]], self.eos_token_ids)
            for row, drafted, chosen, count in zip(
                self.rows, drafts, choices, accepted, strict=True
            )
        ]
        kept = [min(count, len(tokens)) for count, tokens in zip(accepted, committed, strict=True)]
        self.verdict = self.settle(Verdict(drafts, choices, kept, committed))

    def settle(self, verdict: Verdict) -> Verdict:
        """What the rows take of what they won: everything, unless a strategy gives some back."""
        return verdict

    def commit_and_synchronize(self) -> None:
        """Append what each row won, then bring the batch back in step."""
        assert self.verdict is not None
        for row, tokens in zip(self.rows, self.verdict.committed, strict=True):
            row.commit(tokens, self.eos_token_ids)
        alive = [place for place, row in enumerate(self.rows) if not row.finished]
        # The last draft was never fed to the draft model, so where it was accepted the draft
        # cache lacks one token more than the target's.
        width = self.draft.width if self.draft else 0
        self.lag = 2 if any(self.verdict.accepted[place] == width for place in alive) else 1
        if alive and self.lines:
            self.lines.run(lambda: self.synchronize(alive))
        elif alive:
            self.synchronize(alive)
        else:
            for cached in self.caches:
                cached.reset([])
        self.rows = [row for row in self.rows if not row.finished]

    def hide_rejected(self, alive: list[int]) -> None:
        """Leave every slot in place, out of sight where it holds no token that a row keeps."""
        for cached, lag in self.lacking:
            cached.reject([row.length - lag for row in self.rows])
            cached.visible = cached.index >= 0
            cached.select(alive)

    def realign(self, cached: CachedModel, alive: list[int], kept: list[int]) -> None:
        """Left-pad the first `kept` tokens of each row to the longest of them."""
        width = max(kept)
        old_pads = [cached.pads[place] for place in alive]
        new_pads = [width - count for count in kept]
        if new_pads == old_pads:  # every offset is zero: nothing moves
            cached.select(alive)
            cached.crop(width)
            return
        pads = torch.tensor(new_pads, device=cached.device)[:, None]
        offset = pads - torch.tensor(old_pads, device=cached.device)[:, None]
        slot = torch.arange(width, device=cached.device)
        cached.gather(alive, torch.where(slot < pads, -1, slot - offset))  # [rows, slots]
        cached.pads = new_pads
        self.realigned = True
        edges = zip(kept, old_pads, new_pads, strict=True)
        self.note_moved(cached, sum(count for count, old, new in edges if old != new))

    def note_moved(self, cached: CachedModel, slots: int) -> None:
        """Count committed slots of a cache that change their place, and their bytes."""
        self.slots_moved += slots
        self.bytes_moved += slots * cached.slot_bytes

    @abstractmethod
    def synchronize(self, alive: list[int]) -> None:
        """Drop rejected slots and finished rows from the caches.

        Args:
            alive: the batch rows that go on, as places in `rows`; at least one.
        """
