"""Faults that can be switched on in a correct strategy, each a bug that public code has had.

A fault changes one decision of a strategy or of its caches by a mixin. Everything else, tables
included, stays as it is, so what is recorded is what was really fed and cached. Nothing here needs
torch before a run begins: a page may list the faults first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from batchspec.errors import DecodeError

if TYPE_CHECKING:
    from torch import Tensor

    from batchspec.acceptance import Verdict
    from batchspec.cached_model import CachedModel
    from batchspec.strategies.base import Strategy
    from batchspec.strategies.exspec import ExSpec
    from batchspec.strategies.mask import Holes
else:
    Strategy = ExSpec = Holes = CachedModel = object


@dataclass(frozen=True)
class Fault:
    """One decision made wrongly.

    Attributes:
        name: what `DecodeConfig.fault` calls it.
        title: what people read.
        words: what is done wrong, and where such a bug comes from, in a sentence.
        breaks: the invariant that breaks first.
        mixins: what breaks each strategy that can have the fault, by the strategy's name.
    """

    name: str
    title: str
    words: str
    breaks: str
    mixins: Mapping[str, type]

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies that it can be switched on for."""
        return tuple(self.mixins)

    def broken(self, strategy: type[Strategy]) -> type[Strategy]:
        """`strategy` with this fault.

        Raises:
            DecodeError: the strategy does not do what this fault does wrongly.
        """
        if strategy.name not in self.mixins:
            raise DecodeError(
                f"The fault {self.name} cannot occur in {strategy.name}: "
                f"switch it on for {' or '.join(self.strategies)}."
            )
        mixin = self.mixins[strategy.name]
        own: dict[str, Any] = {"correct": False}
        if hasattr(mixin, "cache"):
            bases = (mixin.cache, strategy.cached_model)
            own["cached_model"] = type(mixin.cache.__name__, bases, {})
        return type(mixin.__name__ + strategy.__name__, (mixin, strategy), own)


class PositionsBySlot(Strategy):
    """Counts columns, whatever they hold."""

    def positions(self, cached: CachedModel, index: Tensor, slot: Tensor) -> Tensor:
        """The number of the slot, as far as the context goes."""
        return slot.expand_as(index).clamp(max=self.context_length - 1)


class RejectedVisible(Strategy):
    """Forgets that rejected drafts must be out of sight, where they stay in the cache anyway."""

    leaves_holes = True

    def leave(self, cached: CachedModel) -> None:
        """Note what is rejected, but leave rejected drafts in sight."""
        lag = dict(self.lacking)[cached]
        length, last = (
            cached.index.new_tensor(values)[:, None]
            for values in (
                [row.length for row in self.rows],
                [row.tokens[-1] for row in self.rows],
            )
        )
        # At the place of a row's last token may lie that token itself, which is only fed again.
        draft = (cached.index >= length) | ((cached.index == length - 1) & (cached.ids != last))
        left = cached.visible & (draft | (cached.index < 0))
        cached.reject([row.length - lag for row in self.rows])
        cached.visible = (cached.index >= 0) | left

    def hide_rejected(self, alive: list[int]) -> None:
        """Hide nothing that was drafted."""
        for cached in self.caches:
            self.leave(cached)
            cached.select(alive)

    def held(self, cached: CachedModel, place: int) -> int:
        """Slots from a row's first token to the first draft rejected after its last one."""
        index, pads = cached.index[place].tolist(), cached.pads[place]
        edge = max((slot + 1 for slot, token in enumerate(index) if token >= 0), default=pads)
        rejected = edge < cached.slots and bool(cached.visible[place, edge])
        return edge + rejected - pads


class RejectedCarried(RejectedVisible):
    """Shifts the first rejected draft of every row along with its tokens."""

    def realign(self, cached: CachedModel, alive: list[int], kept: list[int]) -> None:
        """Take a slot too many for a committed one."""
        self.leave(cached)
        super().realign(cached, alive, [self.held(cached, place) for place in alive])


class RejectedUncut(RejectedVisible):
    """Cuts one column too few."""

    def synchronize(self, alive: list[int]) -> None:
        """Drop finished rows and the columns past the first rejected one."""
        for cached in self.caches:
            self.leave(cached)
            cached.crop(max(cached.pads[place] + self.held(cached, place) for place in alive))
            cached.select(alive)


class RejectedPooled(RejectedCarried, ExSpec):
    """As in EQSPEC while a batch goes on; a lane of the pool takes committed tokens alone."""

    def park(self) -> None:
        """Move each row's tokens together, for a pool expects nothing between them."""
        for cached, lag in self.lacking:
            if not self.rows:
                continue
            slots = [
                [slot for slot, token in enumerate(line) if 0 <= token < row.length - lag]
                for line, row in zip(cached.index.tolist(), self.rows, strict=True)
            ]
            width = max(map(len, slots))
            pads = [width - len(line) for line in slots]
            source = [[-1] * pad + line for pad, line in zip(pads, slots, strict=True)]
            cached.gather(list(range(len(slots))), cached.index.new_tensor(source))
            cached.pads = pads
        super().park()


class Zeroed(Holes):
    """Overwrites rejected drafts with zeros: a zero key still takes its share of the softmax."""

    def synchronize(self, alive: list[int]) -> None:
        """Zero the K/V of every rejected slot, and mask none."""
        from batchspec.cached_model import attention_layers

        super().synchronize(alive)
        for cached in self.caches:
            rejected = (cached.visible & (cached.index < 0))[:, None, :, None]
            for layer in attention_layers(cached.cache):
                assert layer.keys is not None and layer.values is not None
                layer.keys = layer.keys.masked_fill(rejected, 0)
                layer.values = layer.values.masked_fill(rejected, 0)


class ZeroedVisible(Zeroed, RejectedVisible):
    """Zeroed where they lie."""


class ZeroedCarried(Zeroed, RejectedCarried):
    """Zeroed, and shifted along."""


class ZeroedUncut(Zeroed, RejectedUncut):
    """Zeroed, and not cut."""


class ZeroedPooled(Zeroed, RejectedPooled):
    """Zeroed, and shifted along while a batch goes on."""


class ShownPads(CachedModel):
    """A cache whose mask knows of no pads."""

    _shown_slots: Tensor

    @property  # type: ignore[override]
    def visible(self) -> Tensor:
        """Whether queries may attend to a slot: to every one before the row's first token too."""
        shown = self._shown_slots
        pads = self.ids.new_tensor(self.pads)[:, None]
        return shown | (self.ids.new_tensor(range(shown.shape[1])) < pads)

    @visible.setter
    def visible(self, visible: Tensor) -> None:
        self._shown_slots = visible


class PadsVisible(Strategy):
    """Masks no left pads."""

    cache = ShownPads


class RepadOnly(Strategy):
    """Puts new left pads before the old ones, which then count as text."""

    leaves_holes = True

    def realign(self, cached: CachedModel, alive: list[int], kept: list[int]) -> None:
        """Shift each row, its old pads included, until the right edges meet."""
        old_pads = [cached.pads[place] for place in alive]
        edges = [pads + count for pads, count in zip(old_pads, kept, strict=True)]
        width = max(edges)
        shift = [width - edge for edge in edges]
        if not any(shift):
            cached.select(alive)
            cached.crop(width)
            return
        slot = cached.index.new_tensor(range(width))
        new = cached.index.new_tensor(shift)[:, None]
        old = cached.index.new_tensor(old_pads)[:, None]
        cached.gather(alive, slot - new)  # [rows, slots]
        cached.visible = cached.visible | ((slot >= new) & (slot < new + old))
        cached.pads = [pads + offset for pads, offset in zip(old_pads, shift, strict=True)]
        self.realigned = True
        self.note_moved(
            cached, sum(count for count, offset in zip(kept, shift, strict=True) if offset)
        )


class UnshiftedStates(CachedModel):
    """A cache whose tables are shifted and whose K/V stay."""

    def move_states(self, rows: list[int], source: Tensor) -> None:
        """Cut K/V to the new width, each in its old slot."""
        super().move_states(rows, source.new_tensor(range(source.shape[1])).expand_as(source))

    def unshift(self) -> None:
        """Put the K/V of every row back to slot 0, where its lane of a pool has them."""
        slot = self.index.new_tensor(range(self.slots))
        pads = self.index.new_tensor(self.pads)[:, None]
        super().move_states(list(range(len(self.pads))), (slot + pads).clamp(max=self.slots - 1))


class StatesStay(Strategy):
    """Shifts tables, not K/V."""

    cache = UnshiftedStates


class StatesStayPooled(StatesStay, ExSpec):
    """Shifts tables, not K/V, in the batch and on loading from the pool."""

    def schedule(self) -> None:
        """Load K/V as if no row had pads."""
        before = self.rows
        super().schedule()
        if self.realigned and self.rows is not before:
            for cached in self.caches:
                assert isinstance(cached, UnshiftedStates)
                cached.unshift()


class SwappedStates(CachedModel):
    """A cache that takes the K/V of its first two rows for each other's."""

    def move_states(self, rows: list[int], source: Tensor) -> None:
        """Move K/V, the first row's to the second's place and back."""
        order = [1, 0, *range(2, len(rows))] if len(rows) > 1 else [0]
        super().move_states([rows[place] for place in order], source[order])


class RowsSwapped(Strategy):
    """Loses the order of the rows while it moves K/V."""

    cache = SwappedStates


class RowsSwappedPooled(RowsSwapped, ExSpec):
    """Loses the order of the rows in the batch and on loading from the pool."""

    def schedule(self) -> None:
        """Load rows of different lengths, two of them into each other's places."""
        before = self.rows
        super().schedule()
        if self.realigned and self.rows is not before:
            for cached in self.caches:
                slot = cached.index.new_tensor(range(cached.slots))
                cached.move_states(list(range(len(self.rows))), slot.expand_as(cached.index))


class BonusCached(Strategy):
    """Takes each cache for one token longer than it is, once a row has written."""

    def positions(self, cached: CachedModel, index: Tensor, slot: Tensor) -> Tensor:
        """Go on one place too far, as far as the context goes."""
        fed = cached.fed_rows
        rows = self.rows[fed] if isinstance(fed, slice) else [self.rows[lane] for lane in fed]
        ahead = index.new_tensor([bool(row.generated) for row in rows])[:, None]
        counted = super().positions(cached, index, slot)
        return (counted + ahead).clamp(max=self.context_length - 1)


class DraftAsCorrection(Strategy):
    """Takes over the token that the target has just rejected."""

    def settle(self, verdict: Verdict) -> Verdict:
        """Put the first rejected draft where the target's own token belongs."""
        committed = []
        for place, row in enumerate(self.rows):
            drafts, kept = verdict.drafts[place], verdict.accepted[place]
            tokens = verdict.committed[place]
            if kept < min(len(drafts), len(tokens)):
                tokens = row.cut([*tokens[:kept], drafts[kept]], self.eos_token_ids)
            committed.append(tokens)
        return super().settle(
            type(verdict)(verdict.drafts, verdict.choices, verdict.accepted, committed)
        )


_CORRECT = ("holes", "rollback", "eqspec", "exspec", "ragged")
_PADDED = _CORRECT[:-1]

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            "positions_by_slot",
            "Positions counted by slot",
            "A token's position ID is the number of its cache slot, so pads and holes are counted "
            "as if they were text: what happens where position IDs are left to a default.",
            "I1",
            dict.fromkeys(_PADDED, PositionsBySlot),
        ),
        Fault(
            "rejected_visible",
            "A rejected slot left visible",
            "The K/V of a rejected draft stay in the cache and in sight, so later tokens read what "
            "was never written: the classic slip in rolling back a cache.",
            "I2",
            {
                "holes": RejectedVisible,
                "rollback": RejectedUncut,
                "eqspec": RejectedCarried,
                "exspec": RejectedPooled,
            },
        ),
        Fault(
            "rejected_zeroed",
            "A rejected slot zeroed, not masked",
            "The K/V of a rejected draft are overwritten with zeros and stay in sight: a zero key "
            "still takes its share of the softmax, so zeroing hides nothing.",
            "I2",
            {
                "holes": ZeroedVisible,
                "rollback": ZeroedUncut,
                "eqspec": ZeroedCarried,
                "exspec": ZeroedPooled,
            },
        ),
        Fault(
            "pads_visible",
            "Left pads not masked",
            "Queries may see the left pads of shorter rows: what happens where the attention mask "
            "is forgotten, or made from token ids while pad equals EOS.",
            "I2",
            dict.fromkeys(_PADDED, PadsVisible),
        ),
        Fault(
            "repad_without_unpad",
            "Repad without unpad",
            "New left pads are put before the old ones, and only the new ones are masked: the old "
            "pads become a part of the text.",
            "I2",
            dict.fromkeys(("eqspec", "exspec"), RepadOnly),
        ),
        Fault(
            "kv_not_shifted",
            "K/V not shifted",
            "Ids, positions and mask of a row are shifted and its keys and values are not, so each "
            "slot is read as another token than it holds: a realignment that forgot the cache.",
            "I3",
            {"eqspec": StatesStay, "exspec": StatesStayPooled},
        ),
        Fault(
            "bonus_cached",
            "Cache one off",
            "The cache is taken for one token longer than it is, as if the bonus token, which is "
            "only fed in the next round, were in it: all later positions are one too far.",
            "I1",
            dict.fromkeys(_CORRECT, BonusCached),
        ),
        Fault(
            "draft_as_correction",
            "The rejected draft taken as correction",
            "Where a draft is rejected the row takes that draft instead of the target's token: "
            "an index one off in the acceptance step, with every cache in order.",
            "I4",
            dict.fromkeys(_CORRECT, DraftAsCorrection),
        ),
        Fault(
            "rows_swapped",
            "Two rows swapped",
            "Two rows get each other's keys and values when the batch is realigned: a cache that "
            "was reordered while the ids were not.",
            "I3",
            {"eqspec": RowsSwapped, "exspec": RowsSwappedPooled},
        ),
    )
}
"""Every fault by name."""
