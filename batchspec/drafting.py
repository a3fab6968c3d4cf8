"""Who proposes: the draft model, K tokens a row and round."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from batchspec.cached_model import PAD, CachedModel


@dataclass(frozen=True)
class Pending:
    """Tokens a cache still lacks, the row's last committed token included.

    Attributes:
        ids, index: token ids and their places in the row's sequence, `[rows, count]`.
        visible: which of them later queries may see, `[rows, count]`.
    """

    ids: Tensor
    index: Tensor
    visible: Tensor


@dataclass(frozen=True)
class Draft:
    """The proposals of one round.

    Attributes:
        ids: proposed tokens, `[rows, widest draft]`.
        lengths: how many of them each row may use; columns beyond are filler.
    """

    ids: Tensor
    lengths: list[int]

    @property
    def width(self) -> int:
        """Columns of `ids`."""
        return self.ids.shape[1]

    def index(self, start: Tensor) -> Tensor:
        """Places in the sequence, `[rows, width]`, after the places `start`, `[rows, 1]`."""
        column = torch.arange(self.width, device=start.device)
        lengths = torch.tensor(self.lengths, device=start.device)[:, None]
        return torch.where(column < lengths, start + 1 + column, PAD)


class ModelDrafter:
    """Greedy proposals of a draft model that keeps its own KV cache.

    Attributes:
        cached: the draft model and its cache.
    """

    def __init__(self, cached: CachedModel) -> None:
        self.cached = cached

    def propose(self, pending: Pending, lengths: list[int]) -> Draft:
        """Draft `max(lengths)` tokens a row, one forward a token.

        Args:
            pending: what the draft cache lacks.
            lengths: how many drafts each row may use.
        """
        width = max(lengths)
        drafts = pending.ids.new_zeros(len(lengths), width)
        index = Draft(drafts, lengths).index(pending.index[:, -1:])
        for column in range(width):
            if column == 0:
                logits = self.cached.feed(pending.ids, pending.index, pending.visible, logits=1)
            else:
                last = slice(column - 1, column)
                logits = self.cached.feed(drafts[:, last], index[:, last], logits=1)
            drafts[:, column] = logits[:, -1].argmax(-1)
        return Draft(drafts, lengths)
