"""A cache whose rows write at their own lengths, so that nothing ever has to be moved."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from batchspec.cached_model import FREE, CachedModel, attention_layers

BLOCK = 64
"""Slots by which a lane's memory grows at least."""


class LaneModel(CachedModel):
    """A cached model whose every row is a lane: the token at place i of a row lives in slot i.

    Rejected tokens are overwritten by the tokens that take their places, and a lane is given to
    another row by forgetting what it holds. Filler goes past everything its row holds.

    Attributes:
        held: slots of each lane that may have been written, an upper bound known to the host.
        lane: the lanes that the forward runs over, `[fed lanes, 1]`; None where it is all of them.
        slot: where it writes, `[fed lanes, queries]`.
    """

    def reset(self, pads: list[int]) -> None:
        """Start an empty cache of as many lanes; rows begin at slot 0, so none has pads."""
        self.held = [0] * len(pads)
        super().reset([0] * len(pads))

    def empty_cache(self) -> DynamicCache:
        """A cache whose layers write where `next_slots` says."""
        cache = DynamicCache()
        cache.layer_class_to_replicate = partial(LaneLayer, self)  # type: ignore[assignment]
        return cache

    def next_slots(self, index: Tensor) -> Tensor:
        """Each token's own place; filler takes the last slot that this forward could fill."""
        rows = self.fed_rows
        lanes = range(len(self.held))[rows] if isinstance(rows, slice) else rows
        for lane in lanes:
            self.held[lane] += index.shape[1]
        past = torch.tensor([self.held[lane] - 1 for lane in lanes], device=self.device)
        everyone = isinstance(rows, slice)
        self.lane = None if everyone else torch.tensor(lanes, device=self.device)[:, None]
        self.slot = torch.where(index >= 0, index, past[:, None])
        return self.slot

    def write(
        self, slot: Tensor, ids: Tensor, positions: Tensor, index: Tensor, visible: Tensor
    ) -> None:
        """Note what the next forward puts into `slot`."""
        self._resize()
        self.ids = self._noted(self.ids, slot, ids)
        self.positions = self._noted(self.positions, slot, positions)
        self.index = self._noted(self.index, slot, index)
        self.visible = self._noted(self.visible, slot, visible)

    def reject(self, first: list[int]) -> None:
        """Note that rejected tokens lie from place `first` of each row on; no slot is touched."""
        super().reject(first)
        self.held = list(first)

    def select(self, rows: list[int]) -> None:
        """Keep only these lanes, and no column past the longest of them."""
        super().select(rows)
        self.held = [self.held[lane] for lane in rows]
        self._resize()

    def add(self, count: int) -> None:
        """Open so many empty lanes after the others."""
        self.held += [0] * count
        self.pads = self.pads + [0] * count
        pad = torch.nn.functional.pad
        self.ids = pad(self.ids, (0, 0, 0, count))
        self.positions = pad(self.positions, (0, 0, 0, count))
        self.index = pad(self.index, (0, 0, 0, count), value=FREE)
        self.visible = pad(self.visible, (0, 0, 0, count))
        for layer in attention_layers(self.cache):
            assert layer.keys is not None and layer.values is not None
            layer.keys = pad(layer.keys, (0, 0, 0, 0, 0, 0, 0, count))
            layer.values = pad(layer.values, (0, 0, 0, 0, 0, 0, 0, count))

    def clear(self, lanes: list[int]) -> None:
        """Forget what these lanes hold."""
        for lane in lanes:
            self.held[lane] = 0
        emptied = torch.zeros(len(self.held), 1, dtype=torch.bool, device=self.device)
        emptied[lanes] = True
        self.index = self.index.masked_fill(emptied, FREE)
        self.visible = self.visible & ~emptied
        self._resize()

    def _noted(self, table: Tensor, slot: Tensor, fresh: Tensor) -> Tensor:
        """A table with `fresh` in it, out of place: feeds keep the tables as they were."""
        if self.lane is None:
            return table.scatter(1, slot, fresh)
        return table.index_put((self.lane, slot), fresh)

    def _resize(self) -> None:
        """Give the tables as many columns as the longest lane may have written."""
        missing = max(self.held) - self.slots
        if not missing:
            return
        pad = torch.nn.functional.pad
        self.ids, self.positions = pad(self.ids, (0, missing)), pad(self.positions, (0, missing))
        self.index = pad(self.index, (0, missing), value=FREE)
        self.visible = pad(self.visible, (0, missing))


class LaneLayer(DynamicLayer):
    """One layer's K/V, `[lanes, kv_heads, capacity, head_dim]`, allocated ahead of its use."""

    def __init__(self, model: LaneModel) -> None:
        """Leave K/V unallocated until the first `update` tells their shape."""
        super().__init__()
        self.model = model

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: object, **_kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write `[fed lanes, kv_heads, queries, head_dim]` at each lane's own slots.

        Returns:
            K/V of the fed lanes up to the longest of them.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None and self.values is not None
        model = self.model
        self.keys = self._written(self.keys, key_states)
        self.values = self._written(self.values, value_states)
        rows, used = model.fed_rows, slice(model.slots)
        return self.keys[rows, :, used], self.values[rows, :, used]

    def get_seq_length(self) -> int:
        """Slots in use before the forward that runs, not those allocated."""
        return self.model.slots if self.is_initialized else 0

    def _written(self, states: Tensor, fresh: Tensor) -> Tensor:
        model = self.model
        heads, width = fresh.shape[1], fresh.shape[3]
        capacity = states.shape[2] if states.numel() else 0
        if capacity < model.slots:
            # At least twice the room, so that growth is rare however long a row gets.
            blocks = -(-max(model.slots, 2 * capacity) // BLOCK)
            grown = fresh.new_zeros(len(model.held), heads, blocks * BLOCK, width)
            if capacity:
                grown[:, :, :capacity] = states
            states = grown
        if model.lane is None:
            states.scatter_(2, model.slot[:, None, :, None].expand_as(fresh), fresh)
        else:
            # Advanced indices around a slice put heads last but one.
            states[model.lane, :, model.slot] = fresh.transpose(1, 2)
        return states
