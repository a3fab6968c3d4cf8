"""K/V of more rows than one batch holds."""

from __future__ import annotations

import torch
from torch import Tensor

from batchspec.cached_model import PAD, CachedModel, attention_layers


class Pool:
    """One model's lanes: each holds one row's committed tokens, from slot 0 on, without pads.

    Attributes:
        cached: the batch that rows are stored from and loaded into.
        stored: tokens each lane holds.
    """

    def __init__(self, cached: CachedModel, lanes: int, capacity: int) -> None:
        """Make room for `lanes` rows of at most `capacity` tokens; K/V memory comes with use."""
        self.cached = cached
        self.capacity = capacity
        self.stored = [0] * lanes
        shape = (lanes * capacity,)
        self._ids = torch.zeros(shape, dtype=torch.long, device=cached.device)
        self._positions = torch.zeros_like(self._ids)
        self._layers: list[tuple[Tensor, Tensor]] = []

    def store(self, lanes: list[int], kept: list[int]) -> None:
        """Copy what each batch row has that its lane has not, up to `kept` tokens a row."""
        cached = self.cached
        have = torch.tensor(
            [min(self.stored[lane], k) for lane, k in zip(lanes, kept, strict=True)]
        )
        count = torch.tensor(kept) - have
        for lane, tokens in zip(lanes, kept, strict=True):
            self.stored[lane] = tokens
        if not count.any():
            return
        column = torch.arange(int(count.max()))
        fresh = column < count[:, None]
        token = have[:, None] + column
        row = torch.arange(len(lanes))[:, None].expand_as(token)[fresh]
        slot = (torch.tensor(cached.pads)[:, None] + token)[fresh]
        place = (torch.tensor(lanes)[:, None] * self.capacity + token)[fresh].to(cached.device)
        self._ids[place] = cached.ids[row, slot]
        self._positions[place] = cached.positions[row, slot]
        for number, layer in enumerate(attention_layers(cached.cache)):
            assert layer.keys is not None and layer.values is not None
            if number == len(self._layers):
                self._layers.append((self._room(layer.keys), self._room(layer.values)))
            keys, values = self._layers[number]
            keys[place] = layer.keys[row, :, slot]
            values[place] = layer.values[row, :, slot]

    def load(self, lanes: list[int], kept: list[int]) -> None:
        """Make a batch of these lanes' first `kept` tokens, left-padded to the longest."""
        cached, width = self.cached, max(kept)
        cached.reset([width - tokens for tokens in kept])
        pads = torch.tensor(cached.pads)[:, None]
        token = torch.arange(width) - pads
        place = torch.tensor(lanes)[:, None] * self.capacity + token.clamp(min=0)
        place, token = place.to(cached.device), token.to(cached.device)
        cached.ids, cached.positions = self._ids[place], self._positions[place]
        cached.index = token.clamp(min=PAD)
        cached.visible = token >= 0
        if width:
            for number, (keys, values) in enumerate(self._layers):
                # [rows, slots, kv_heads, head_dim] to the cache's [rows, kv_heads, slots, head_dim]
                cached.cache.update(
                    keys[place].transpose(1, 2), values[place].transpose(1, 2), number
                )

    def clear(self, lane: int) -> None:
        """Give a lane to another row."""
        self.stored[lane] = 0

    def _room(self, states: Tensor) -> Tensor:
        """Memory for one layer's keys or values, `[lanes * capacity, kv_heads, head_dim]`."""
        heads, width = states.shape[1], states.shape[3]
        return states.new_zeros(len(self.stored) * self.capacity, heads, width)
