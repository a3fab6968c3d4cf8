"""Distil the storyteller's draft from the target, which goes on with openings of unseen pieces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

import torch
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from batchspec.storyteller import TARGET_FOLDER
from batchspec.storyteller.grammar import write_pieces
from batchspec.storyteller.measure import HELD_OUT_SEED
from batchspec.teaching.distillation import Pupil, agreement, distil, whole
from batchspec.teaching.lessons import GROUPED, Lessons, write_rows

LESSON_SEED = 13
OPENING_TOKENS = (3, 40)
"""Length of the shortest and of the longest opening, the start token included."""
WRITTEN_TOKENS = 96
SAMPLED = 1 / 3
"""Share of the rows that are sampled, so that the draft also knows its way where a run is."""
ROWS_PER_LESSON, HELD_OUT_LESSONS = 256, 4


class PlainPupil(Pupil):
    """A draft with embeddings of its own.

    Attributes:
        model: the draft.
    """

    def __init__(self, model: LlamaForCausalLM) -> None:
        """Let this model learn."""
        super().__init__()
        self.model = model
        self.vocabulary = model.config.vocab_size

    def forward(self, ids: Tensor, places: Tensor, candidates: Tensor) -> Tensor:
        """Logits by the model's embeddings; see `Pupil`."""
        hidden = self.model.model(ids, use_cache=False).last_hidden_state.flatten(0, 1)
        return hidden[places] @ self.model.lm_head.weight[candidates].T

    def finished(self) -> LlamaForCausalLM:
        """The model itself."""
        return self.model


def write_lessons(
    target: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, seed: int
) -> Iterator[Lessons]:
    """Let the target go on with openings, all of one length in each lesson; there is no end.

    Most rows are written greedily; to what the others hold no draft's choice is compared.
    """
    pieces, random = write_pieces(seed), Random(seed)
    generator = torch.Generator().manual_seed(seed)
    sampled = torch.arange(ROWS_PER_LESSON) < SAMPLED * ROWS_PER_LESSON
    end = tokenizer.eos_token_id

    def choose(_place: int, alive: Tensor, logits: Tensor, best: Tensor) -> tuple[Tensor, Tensor]:
        drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
        chosen = torch.where(sampled[alive], drawn, best[:, 0])
        return chosen, chosen == end

    while True:
        length = random.randint(*OPENING_TOKENS)
        openings: list[list[int]] = []
        while len(openings) < ROWS_PER_LESSON:
            ids = tokenizer(next(pieces))["input_ids"]
            if len(ids) > length:
                openings.append(ids[:length])
        lesson = write_rows(target, torch.tensor(openings), length + WRITTEN_TOKENS, choose)
        lesson.answers[sampled.numpy()] = lesson.lengths[sampled.numpy()]
        yield lesson


def distil_draft(
    draft: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, minutes: float, lessons: int
) -> dict[str, float]:
    """Teach a draft what the target of the folder writes.

    Args:
        draft: changed in place.
        tokenizer: of both.
        minutes: time to learn, once the lessons are written.
        lessons: how many; one is of about 16,000 tokens.

    Returns:
        How long it learned from how many tokens, and its `agreement` with the target.
    """
    target = LlamaForCausalLM.from_pretrained(
        TARGET_FOLDER, dtype=torch.float32, attn_implementation=GROUPED
    ).eval()
    examined = whole(
        list(islice(write_lessons(target, tokenizer, HELD_OUT_SEED), HELD_OUT_LESSONS))
    )
    written = []
    for lesson in islice(write_lessons(target, tokenizer, LESSON_SEED), lessons):
        written.append(lesson)
        print(f"lesson {len(written)} of {lessons}", flush=True)
    steps = distil(PlainPupil(draft), written, examined, minutes)
    return {
        "steps": steps,
        "tokens": sum(lesson.written for lesson in written),
        "minutes": minutes,
        "agreement": agreement(draft, examined),
    }
