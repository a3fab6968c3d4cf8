"""A draft learns its target's distribution at each token the target wrote.

After Hinton et al., arXiv 1503.02531.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from batchspec.teaching.lessons import Lessons
from batchspec.teaching.optimizer import Optimizer

SEED = 1
ROWS_PER_STEP = 16
STEPS_SORTED = 16
"""Steps whose rows are sorted by length together, so that little of a step is filler."""
OTHERS = 2048
"""Tokens drawn at random that stand in for all that no teacher of a step thought of."""
PLACES_AT_ONCE = 1024
COMPARED = 8
"""Of the teacher's best tokens, those that every place of a step is compared with."""


class Pupil(nn.Module, ABC):
    """A draft while it learns.

    Attributes:
        vocabulary: entries of its embeddings.
    """

    vocabulary: int

    @abstractmethod
    def forward(self, ids: Tensor, places: Tensor, candidates: Tensor) -> Tensor:
        """Logits `[places, candidates]` of the tokens after some places of `ids`, `[rows, width]`.

        Args:
            ids: what is read.
            places: which of all `rows * width` places are asked.
            candidates: token ids.
        """

    @abstractmethod
    def finished(self) -> LlamaForCausalLM:
        """What has been learned so far, as an ordinary model."""


@dataclass
class Batch:
    """What a step learns from.

    Attributes:
        ids: `[rows, width]`.
        places: places of `ids`, counted over all rows, whose next token was written.
        best, logprobs: the teacher's thoughts on those next tokens, `[places, BEST]`.
        answers: which of them belong to an answer, `[places]`.
    """

    ids: Tensor
    places: Tensor
    best: Tensor
    logprobs: Tensor
    answers: Tensor


def batches(lessons: list[Lessons], seed: int) -> Iterator[Batch]:
    """Rows in a new order every time through, without end, of like lengths in a step."""
    chance = np.random.default_rng(seed)
    every = [(lesson, row) for lesson in lessons for row in range(len(lesson.lengths))]
    while True:
        order = chance.permutation(len(every))
        for start in range(0, len(every) - ROWS_PER_STEP + 1, STEPS_SORTED * ROWS_PER_STEP):
            some = [every[place] for place in order[start : start + STEPS_SORTED * ROWS_PER_STEP]]
            some.sort(key=lambda each: each[0].lengths[each[1]])
            firsts = range(0, len(some) - ROWS_PER_STEP + 1, ROWS_PER_STEP)
            for first in chance.permutation(firsts):
                yield batch_of(some[first : first + ROWS_PER_STEP])


def whole(lessons: list[Lessons]) -> Batch:
    """All rows of some lessons in one batch."""
    return batch_of([(lesson, row) for lesson in lessons for row in range(len(lesson.lengths))])


def batch_of(picked: list[tuple[Lessons, int]]) -> Batch:
    """Lay rows side by side; each ends with filler."""
    width = max(lesson.lengths[row] for lesson, row in picked) - 1
    ids = np.zeros((len(picked), width), dtype=np.int64)
    best, logprobs, places, answers = [], [], [], []
    for number, (lesson, row) in enumerate(picked):
        length = lesson.lengths[row]
        ids[number, : length - 1] = lesson.tokens[row, : length - 1]
        written = slice(lesson.first, length)
        best.append(lesson.best[row, written])
        logprobs.append(lesson.logprobs[row, written])
        own = np.arange(lesson.first, length)
        places.append(number * width + own - 1)
        answers.append(own >= lesson.answers[row])
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(np.concatenate(places)),
        torch.from_numpy(np.concatenate(best)).long(),
        torch.from_numpy(np.concatenate(logprobs)).float(),
        torch.from_numpy(np.concatenate(answers)),
    )


def loss_of(pupil: Pupil, batch: Batch) -> Tensor:
    """Cross entropy with the teacher, over the tokens the step's teachers thought of.

    All other tokens are stood in for by some drawn at random, each with the weight of the many it
    stands for.
    """
    known = batch.best[:, :COMPARED].unique()
    number = torch.full((pupil.vocabulary,), -1)
    number[known] = torch.arange(len(known))
    others = torch.randperm(pupil.vocabulary)
    others = others[number[others] < 0][:OTHERS]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = pupil(batch.ids, batch.places, torch.cat([known, others]))
    logits = logits.float()
    stand_for = (pupil.vocabulary - len(known)) / len(others)
    logits = torch.cat([logits[:, : len(known)], logits[:, len(known) :] + math.log(stand_for)], 1)
    column = number[batch.best]
    chances = batch.logprobs.exp().masked_fill(column < 0, 0)
    chances = chances / chances.sum(1, keepdim=True)
    found = logits.log_softmax(1).gather(1, column.clamp(min=0))
    return -(chances * found).sum(1).mean()


@torch.no_grad()
def agreement(draft: LlamaForCausalLM, batch: Batch) -> float:
    """Share of the answers' tokens that the draft would have chosen as the target did."""
    asked = batch.places[batch.answers]
    hidden = draft.model(batch.ids, use_cache=False).last_hidden_state.flatten(0, 1)[asked]
    # In parts: logits of thousands of places would take gigabytes.
    chosen = torch.cat([draft.lm_head(part).argmax(1) for part in hidden.split(PLACES_AT_ONCE)])
    return (chosen == batch.best[batch.answers, 0]).float().mean().item()


def distil(pupil: Pupil, lessons: list[Lessons], held_out: Batch, minutes: float) -> int:
    """Learn for a number of minutes, and return the number of steps it took."""
    optimizer = Optimizer(pupil)
    start, progress = time.monotonic(), 0.0
    for step, batch in enumerate(batches(lessons, SEED)):
        loss = optimizer.descend(loss_of(pupil, batch), progress)
        progress = (time.monotonic() - start) / (60 * minutes)
        if step % 100 == 0:
            found = agreement(pupil.finished(), held_out)
            print(f"{progress:.0%} step {step} loss {loss:.3f} agreement {found:.1%}",
                  flush=True)  # fmt: skip
        if progress >= 1:
            return step + 1
    raise AssertionError("batches never end")
