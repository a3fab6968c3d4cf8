"""EQSPEC: unpad, append, repad (arXiv 2510.22876, algorithm 1)."""

from __future__ import annotations

import torch

from batchspec.cached_model import CachedModel
from batchspec.strategies.base import Strategy


class EqSpec(Strategy):
    """After every round all rows end at the same slot again, each behind its own left pads."""

    name = "eqspec"
    title = "EQSPEC"
    summary = "unpad, append, repad"
    correct = True

    def synchronize(self, alive: list[int]) -> None:
        """Keep each row's committed K/V and shift it until the right edges meet."""
        for cached, lag in self.lacking:
            self.realign(cached, alive, [self.rows[place].length - lag for place in alive])

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
        self.slots_moved += sum(
            count for count, old, new in zip(kept, old_pads, new_pads, strict=True) if old != new
        )
