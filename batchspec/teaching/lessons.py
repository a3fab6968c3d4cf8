"""What a draft learns from: tokens its target wrote, and what it thought of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    DynamicCache,
    PreTrainedModel,
)
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

from batchspec.cached_model import cache_argument
from batchspec.shared_keys import ask_together

BEST = 32
"""Of the target's distribution the draft sees this many most likely tokens."""


@dataclass
class Lessons:
    """Rows of tokens and what the target thought of each place.

    Attributes:
        tokens: of each row, `[rows, width]`; after a row's end anything.
        lengths: tokens of each row, `[rows]`.
        answers: the place from which on a row holds the target's greedy choices, `[rows]`.
        best: the most likely tokens at each place, `[rows, width, BEST]`, from `first` on.
        logprobs: their log-probabilities, alike.
        first: the first place that was written rather than given, the same for all rows.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    answers: np.ndarray
    best: np.ndarray
    logprobs: np.ndarray
    first: int

    @property
    def written(self) -> int:
        """Tokens the target wrote itself."""
        return int((self.lengths - self.first).sum())

    def save(self, path: Path) -> None:
        """Write all to one file."""
        np.savez(path, **vars(self))

    @classmethod
    def load(cls, path: Path) -> Lessons:
        """Read what `save` wrote."""
        with np.load(path) as file:
            return cls(**{**file, "first": int(file["first"])})


Choice = Callable[[int, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Picks the token of each row that goes on, and says which rows end with it. It is given the place,
the rows, `[alive]`, their logits, `[alive, vocabulary]`, and their best tokens, `[alive, BEST]`."""


@torch.inference_mode()
def write_rows(model: PreTrainedModel, given: Tensor, width: int, choose: Choice) -> Lessons:
    """Let the target go on after what all rows were given, until every row is over.

    All rows write at the same slot, so that none is ever padded, and those that are over leave.

    Args:
        model: the target.
        given: the first tokens of every row, `[rows, first]`.
        width: where the longest row ends.
        choose: what is written.

    Returns:
        The rows, each one's answer taken to begin where the target began.
    """
    rows, first = given.shape
    tokens = torch.zeros(rows, width, dtype=torch.long)
    tokens[:, :first] = given
    best = torch.zeros(rows, width, BEST, dtype=torch.int32)
    logprobs = torch.zeros(rows, width, BEST, dtype=torch.float16)
    lengths = torch.full((rows,), width)
    cache, alive, fed = DynamicCache(), torch.arange(rows), given
    settings: Any = {cache_argument(model): cache, "logits_to_keep": 1}
    for place in range(first, width):
        logits = model(fed, **settings).logits[:, -1].float()
        found = logits.log_softmax(-1).topk(BEST)
        best[alive, place] = found.indices.int()
        logprobs[alive, place] = found.values.half()
        chosen, over = choose(place, alive, logits, found.indices)
        tokens[alive, place] = chosen
        lengths[alive[over]] = place + 1
        if over.any():
            going = (~over).nonzero()[:, 0]
            if not len(going):
                break
            alive, chosen = alive[going], chosen[going]
            cache.batch_select_indices(going)
        fed = chosen[:, None]
    return Lessons(
        tokens.int().numpy(),
        lengths.numpy(),
        np.full(rows, first),
        best.numpy(),
        logprobs.numpy(),
        first,
    )


def _grouped(
    _layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **settings: Any
) -> tuple[Tensor, None]:
    """Attention as transformers asks for it, by plain products.

    For one query a row it takes a tenth of the time of PyTorch's own on a CPU in bfloat16.
    """

    def answer(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        scores = (query * settings["scaling"] @ key.transpose(2, 3)).float()
        if mask is not None:
            scores = scores + mask
        return scores.softmax(-1).to(value.dtype) @ value

    return ask_together(answer, query, key, value, mask), None


GROUPED = "batchspec_grouped"
"""What transformers calls it."""
AttentionInterface.register(GROUPED, _grouped)
AttentionMaskInterface.register(GROUPED, ALL_MASK_ATTENTION_FUNCTIONS["eager"])
