"""Who proposes: a draft model or the row's own text, up to K tokens a row and round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from batchspec.cached_model import PAD, CachedModel
from batchspec.ngram import NGramDraft
from batchspec.row import Row


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


class NGramDrafter:
    """Proposals from each row's own tokens; a row may get none.

    Attributes:
        cached: None, because no model runs.
    """

    def __init__(self, draft: NGramDraft) -> None:
        self.draft = draft
        self.cached: CachedModel | None = None

    def propose(self, rows: Sequence[Row], pending: Pending, lengths: list[int]) -> Draft:
        """Look up what followed each row's last tokens; arguments as for a `ModelDrafter`."""
        found = [
            self.draft.continuation(row.tokens, length) if length else []
            for row, length in zip(rows, lengths, strict=True)
        ]
        width = max(map(len, found))
        table = [tokens + [0] * (width - len(tokens)) for tokens in found]
        ids = torch.tensor(table, dtype=torch.long, device=pending.ids.device)
        return Draft(ids.view(len(rows), width), [len(tokens) for tokens in found])


class ModelDrafter:
    """Greedy proposals of a draft model that keeps its own KV cache.

    Attributes:
        cached: the draft model and its cache.
    """

    def __init__(self, cached: CachedModel) -> None:
        self.cached = cached

    def propose(self, rows: Sequence[Row], pending: Pending, lengths: list[int]) -> Draft:
        """Draft `max(lengths)` tokens a row, one forward a token.

        Args:
            rows: the batch.
            pending: what the draft cache lacks.
            lengths: how many drafts each row may use at most.
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


Drafter = ModelDrafter | NGramDrafter
"""Whoever proposes tokens."""
