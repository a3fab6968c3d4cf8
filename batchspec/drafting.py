"""Who proposes: a draft model or the row's own text, up to K tokens a row and round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

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
        probabilities: the distributions they were drawn from, where the acceptance rule needs
            them, `[rows, widest draft, vocabulary]`.
    """

    ids: Tensor
    lengths: list[int]
    probabilities: Tensor | None = None

    @property
    def width(self) -> int:
        """Columns of `ids`."""
        return self.ids.shape[1]

    @cached_property
    def drafted(self) -> Tensor:
        """Which of `ids` are no filler, `[rows, width]`."""
        lengths = torch.tensor(self.lengths, device=self.ids.device)[:, None]
        return torch.arange(self.width, device=self.ids.device) < lengths

    def index(self, start: Tensor) -> Tensor:
        """Places in the sequence, `[rows, width]`, after the places `start`, `[rows, 1]`."""
        return torch.where(self.drafted, places_after(start, self.width), PAD)


def places_after(start: Tensor, count: int) -> Tensor:
    """The next `count` places, `[rows, count]`, after the places `start`, `[rows, 1]`."""
    return start + 1 + torch.arange(count, device=start.device)


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
    """Proposals of a draft model that keeps its own KV cache.

    Attributes:
        cached: the draft model and its cache.
        choose: picks tokens from logits, as `acceptance.Exact.propose` does.
    """

    def __init__(
        self,
        cached: CachedModel,
        choose: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor | None]],
    ) -> None:
        self.cached = cached
        self.choose = choose

    def propose(self, rows: Sequence[Row], pending: Pending, lengths: list[int]) -> Draft:
        """Draft `max(lengths)` tokens a row, one forward a token.

        Args:
            rows: the batch.
            pending: what the draft cache lacks.
            lengths: how many drafts each row may use at most.
        """
        width = max(lengths)
        drafts = pending.ids.new_zeros(len(lengths), width)
        key, start = row_keys(rows, drafts.device), pending.index[:, -1:]
        index, place = Draft(drafts, lengths).index(start), places_after(start, width)
        distributions = []
        ids, fed_index, visible = pending.ids, pending.index, pending.visible
        for column in range(width):
            logits = self.cached.feed(ids, fed_index, visible, logits=1)
            new = slice(column, column + 1)
            drafts[:, new], distribution = self.choose(logits, key, place[:, new])
            if distribution is not None:
                distributions.append(distribution)
            ids, fed_index = drafts[:, new], index[:, new]
            visible = fed_index >= 0
        return Draft(drafts, lengths, torch.cat(distributions, 1) if distributions else None)


def row_keys(rows: Sequence[Row], device: torch.device) -> Tensor:
    """The key of each row's random numbers, `[rows]`."""
    return torch.tensor([row.key for row in rows], device=device)


Drafter = ModelDrafter | NGramDrafter
"""Whoever proposes tokens."""
