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

    def positions(self, cached: CachedModel, queries: int) -> Tensor:
        """Count slots from the row's first token on, middle pads included."""
        slot = torch.arange(cached.slots - queries, cached.slots, device=cached.device)
        pads = torch.tensor(cached.pads, device=cached.device)[:, None]
        # Past the context a learned position table has no entry left.
        return (slot - pads).clamp(0, self.context_length - 1)

    def pending(self, count: int) -> Pending:
        """The last `count` columns of the padded ids: before a correction stands a pad."""
        tokens = super().pending(count)
        if count > 1:
            padded = torch.tensor(self.short, device=tokens.ids.device)
            tokens.ids[padded, 0] = self.filler
            tokens.index[padded, 0] = PAD
        return tokens

    def synchronize(self, alive: list[int]) -> None:
        """Keep as many columns for every row as the longest acceptance needs."""
        assert self.verdict is not None and self.draft is not None
        won = [len(self.verdict.committed[place]) for place in alive]
        longest = max(won)
        self.short = [count < longest for count in won]
        columns = self.target.slots - (self.draft.width + 1) + longest
        first_rejected = [self.rows[place].length - 1 for place in alive]
        for cached, width in zip(self.caches, (columns, columns + 1 - self.lag), strict=True):
            cached.select(alive)
            cached.crop(width)
            cached.reject(first_rejected)
            slot = torch.arange(width, device=cached.device)
            cached.visible = slot >= torch.tensor(cached.pads, device=cached.device)[:, None]
