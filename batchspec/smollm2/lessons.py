"""What the draft learns from: the target's own questions and its own greedy answers to them.

A chat model that is shown the head of a user's turn goes on with a question of the kind it was
tuned on (Xu et al., "Magpie", arXiv 2406.08464), so no data set is needed. Left alone, this one
asks almost only for essays, so half of its questions are begun for it, in the way people begin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from batchspec.teaching.lessons import Lessons, write_rows

OPENINGS = Path(__file__).with_name("openings.txt")
BEGUN = 0.5
"""Share of the questions that are given one of `OPENINGS`."""
QUESTION_TOKENS, ANSWER_TOKENS = 64, 96
MASS = 0.95
"""Questions are drawn from the most likely tokens that hold this much probability."""


class Conversation:
    """Whose turn it is in each row, and what is said that is not the target's to choose.

    Attributes:
        asked: the place of the token that ends each row's question, -1 while it is asked, `[rows]`.
    """

    def __init__(
        self, rows: int, tokenizer: PreTrainedTokenizerBase, generator: torch.Generator
    ) -> None:
        """Begin some of the questions."""
        head, self.turn, self.end = _heads(tokenizer)
        self.head, self.generator = torch.tensor([head] * rows), generator
        self.width = len(head) + QUESTION_TOKENS + 1 + len(self.turn) + ANSWER_TOKENS
        self.asked = torch.full((rows,), -1)
        # Tokens that are given; -1 where the target is free.
        self.script = torch.full((rows, self.width), -1)
        openings = _openings(tokenizer, rows, generator)
        self.script[:, len(head) : len(head) + openings.shape[1]] = openings
        self.script[:, len(head) + QUESTION_TOKENS] = self.end

    @property
    def answers(self) -> Tensor:
        """The place of the first token of each row's answer, `[rows]`."""
        return self.asked + 1 + len(self.turn)

    def choose(
        self, place: int, alive: Tensor, logits: Tensor, best: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Draw what is asked, take the best of what is answered; a `Choice` of lessons."""
        question, turn = self.asked[alive], self.turn
        chosen = best[:, 0].clone()
        asking = question < 0
        if asking.any():
            chosen[asking] = _drawn(logits[asking], self.generator)
        told = self.script[alive, place]
        chosen = torch.where(told < 0, chosen, told)
        ended = alive[asking & (chosen == self.end)]
        self.asked[ended] = place
        if len(ended):
            self.script[ended, place + 1 :] = -1
            self.script[ended, place + 1 : place + 1 + len(turn)] = torch.tensor(turn)
        answered = place - question - len(turn)
        over = ~asking & (answered > 0) & ((chosen == self.end) | (answered >= ANSWER_TOKENS))
        return chosen, over


def write_lessons(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: int, seed: int
) -> Lessons:
    """Let the target ask and answer, until every answer is over.

    Every row begins with the same head; some are made to begin their question with an opening, and
    each to go on after its question with the head of the assistant's turn.
    """
    conversation = Conversation(rows, tokenizer, torch.Generator().manual_seed(seed))
    lessons = write_rows(model, conversation.head, conversation.width, conversation.choose)
    lessons.answers = conversation.answers.numpy()
    return lessons


def _heads(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int], int]:
    """What stands before a question, what between it and its answer, and the token that ends it."""
    mark = "\x00"
    text: Any = tokenizer.apply_chat_template(
        [{"role": "user", "content": mark}], tokenize=False, add_generation_prompt=True
    )
    parts = text.split(mark)
    head, turn = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in parts)
    return head, turn[1:], turn[0]


def _openings(tokenizer: PreTrainedTokenizerBase, rows: int, generator: torch.Generator) -> Tensor:
    """The first tokens of each row's question, -1 where it is free, `[rows, width]`."""
    openings = tokenizer(OPENINGS.read_text().splitlines())["input_ids"]
    given = torch.full((rows, max(map(len, openings))), -1)
    for row in range(rows):
        if torch.rand((), generator=generator) < BEGUN:
            chosen = openings[int(torch.randint(len(openings), (), generator=generator))]
            given[row, : len(chosen)] = torch.tensor(chosen)
    return given


def _drawn(logits: Tensor, generator: torch.Generator) -> Tensor:
    """A token a row, `[rows]`, from the likeliest ones of `[rows, vocabulary]`."""
    chances, ids = logits.softmax(-1).topk(1024)
    chances[chances.cumsum(-1) - chances > MASS] = 0
    return ids.gather(1, torch.multinomial(chances, 1, generator=generator))[:, 0]
