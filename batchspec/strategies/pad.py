"""The naive batch: pad short rows in the middle and carry on."""

from __future__ import annotations

import torch
from torch import Tensor

from batchspec.cached_model import PAD, CachedModel
from batchspec.drafting import Pending
from batchspec.strategies.base import Strategy


class Pad(Strategy):
    """Wrong in one decision: every row grows by the longest row's acceptance.

    A row that accepted less gets pad tokens between its accepted drafts and its correction. Three
    things follow. The slots under those pads keep the K/V of rejected drafts and stay visible
    (the mask breaks), positions count slots and so jump over the pads (they break too), and all
    K/V computed after that point differ from a clean forward's (the cache breaks).
    """

    name = "pad"
    title = "Naive"
    summary = "pad to the longest acceptance"
    correct = False

    def prefill(self) -> None:
        """Prefill as usual: the left pads of the prompts are masked correctly."""
        self.short = [False] * min(self.config.batch_size, len(self.waiting))
        super().prefill()

    def positions(self, cached: CachedModel, index: Tensor, slot: Tensor) -> Tensor:
        """Count slots from the row's first token on, middle pads included."""
        return self.positions_by_slot(cached, slot)

    def pending(self, count: int) -> Pending:
        """The last `count` columns of the padded ids: before a correction stands a pad."""
        tokens = super().pending(count)
        if count > 1:
            padded = torch.tensor(self.short, device=tokens.ids.device)
            tokens.ids[padded, 0] = self.filler
            tokens.index[padded, 0] = PAD  # and still visible
        return tokens

    def synchronize(self, alive: list[int]) -> None:
        """Keep as many columns for every row as the longest acceptance needs."""
        assert self.verdict is not None and self.draft is not None
        won = [len(self.verdict.committed[place]) for place in alive]
        longest = max(won)
        self.short = [count < longest for count in won]
        columns = self.target.slots - self.draft.width + longest  # one more than the target keeps
        for cached, lag in self.lacking:
            cached.reject([row.length - 1 for row in self.rows])
            cached.select(alive)
            cached.crop(columns - lag)
            slot = torch.arange(cached.slots, device=cached.device)
            cached.visible = slot >= torch.tensor(cached.pads, device=cached.device)[:, None]
