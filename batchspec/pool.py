"""K/V of more rows than one batch holds."""

from __future__ import annotations

import torch
from torch import Tensor

from batchspec.cached_model import PAD, CachedModel, attention_layers, cache_states


class Pool:
    """One model's lanes: each holds one row's committed tokens, from slot 0 on, without pads.

    A token's K/V of all layers lie side by side, so that one gather loads them all.

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
        self._states: Tensor | None = None
        self._shapes: list[tuple[int, int]] = []

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
        row = torch.arange(len(lanes))[:, None].expand_as(token)[fresh].to(cached.device)
        slot = (torch.tensor(cached.pads)[:, None] + token)[fresh].to(cached.device)
        place = (torch.tensor(lanes)[:, None] * self.capacity + token)[fresh].to(cached.device)
        self._ids[place] = cached.ids[row, slot]
        self._positions[place] = cached.positions[row, slot]
        # [tokens, kv_heads, head_dim] each, heads and dimensions then joined over all layers
        states = [part[row, :, slot] for part in cache_states(cached.cache)]
        if self._states is None:
            self._shapes = [(part.shape[1], part.shape[2]) for part in states]
            width = sum(heads * size for heads, size in self._shapes)
            self._states = states[0].new_zeros(len(self.stored) * self.capacity, width)
        self._states[place] = torch.cat([part.flatten(1) for part in states], 1)

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
        if not width or self._states is None:
            return
        sizes = [heads * size for heads, size in self._shapes]
        parts = [
            # [rows, slots, kv_heads * head_dim] to the cache's [rows, kv_heads, slots, head_dim]
            part.unflatten(2, shape).transpose(1, 2)
            for part, shape in zip(self._states[place].split(sizes, 2), self._shapes, strict=True)
        ]
        states = list(zip(parts[::2], parts[1::2], strict=True))
        for number, (keys, values) in enumerate(states):
            cached.cache.update(keys[:, :, :0], values[:, :, :0], number)
        for layer, (keys, values) in zip(attention_layers(cached.cache), states, strict=True):
            layer.keys, layer.values = keys, values  # no copy: the next forward makes one anyway

    def clear(self, lane: int) -> None:
        """Give a lane to another row."""
        self.stored[lane] = 0
