"""How likely each draft was, to the model that proposed it and to the one that judged it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchspec.frames import freeze, spread
from batchspec.sampler import Sampler
from batchspec.step import Step
from batchspec.trace import Judgement


@torch.inference_mode()
def read_judgement(
    step: Step, sampler: Sampler, rows: int, before: Judgement | None
) -> Judgement | None:
    """What a draft or verify phase says of each proposal; None for other phases.

    Args:
        step: the phase, with the logits of its forwards.
        sampler: temperature and filters; at temperature 0 probabilities are those of the softmax.
        rows: how many prompts there are.
        before: of this round's draft phase, when the step verifies.
    """
    if step.phase not in ("draft", "verify"):
        return None
    numbers = [row.number for row in step.rows]
    width = step.draft.width if step.draft else 0
    unknown = np.full((rows, width), np.nan, dtype=np.float32)
    token = np.full((rows, width), -1, dtype=np.int32)
    if step.draft and width:
        token = spread(step.draft.ids.masked_fill(~step.draft.drafted, -1), numbers, rows, -1)
    drafts = torch.from_numpy(np.maximum(token[numbers], 0)).long()
    logits = [feed.logits for feed in step.feeds if feed.logits is not None]
    drafted, judged = unknown, unknown
    choice = np.full((rows, width + 1), -1, dtype=np.int32)
    chosen = np.full((rows, width + 1), np.nan, dtype=np.float32)
    if step.phase == "draft" and logits:
        drafted = _known(probability(sampler, torch.cat(logits, 1), drafts), token, numbers, rows)
    if step.phase == "verify" and step.verdict is not None:
        drafted = before.draft_probability if before is not None else unknown
        for number, tokens in zip(numbers, step.verdict.choices, strict=True):
            choice[number, : len(tokens)] = tokens
        own = torch.from_numpy(np.maximum(choice[numbers], 0)).long()
        found = probability(sampler, logits[0], torch.cat([own, drafts], 1), width + 1)
        chosen = _known(found[:, : width + 1], choice, numbers, rows)
        judged = _known(found[:, width + 1 :], token, numbers, rows)
    arrays = (token, drafted, choice, chosen, judged)
    return Judgement(*(freeze(array) for array in arrays))


def probability(sampler: Sampler, logits: Tensor, token: Tensor, again: int = 0) -> Tensor:
    """How likely each token is.

    Args:
        sampler: as in `read_judgement`.
        logits: `[rows, queries, vocabulary]`.
        token: ids, `[rows, queries]`; where `again` is given, further ids for the first queries
            follow from that column on.
        again: columns after which queries are counted from the first again.
    """
    wide = logits.float() if logits.device.type == "mps" else logits.double()
    scores = sampler.scores(logits) if sampler.temperature else wide
    shares = scores.softmax(-1).float()
    place = torch.arange(token.shape[1], device=logits.device)
    place = torch.where(place < again, place, place - again) if again else place
    row = torch.arange(len(token), device=logits.device)[:, None]
    return shares[row, place, token.to(logits.device)]


def _known(
    values: Tensor, token: NDArray[Any], numbers: Sequence[int], rows: int
) -> NDArray[np.float32]:
    """Values of the batch's rows among all prompts, NaN where there is no token."""
    return np.where(token < 0, np.float32(np.nan), spread(values, numbers, rows, np.nan))
