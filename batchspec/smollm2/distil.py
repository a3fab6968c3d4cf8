"""Distil the draft of SmolLM2 from the target: ``python -m batchspec.smollm2.distil``.

The draft sees the target's own tokens and learns its distribution at each of them (Hinton et al.,
arXiv 1503.02531). Its embeddings are a learned projection of the target's, so that a token it
never met lies beside those it knows.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

from batchspec.smollm2 import DRAFT_FOLDER
from batchspec.smollm2.draft import SHIPPED
from batchspec.smollm2.lessons import GROUPED, Lessons, write_lessons
from batchspec.smollm2.target import target_folder
from batchspec.storyteller.train import build_optimizers, descend, learning_rate_factor

SHAPE: dict[str, Any] = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "intermediate_size": 640,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
SEED, HELD_OUT_SEED = 1, 9001
ROWS_PER_LESSON, ROWS_PER_STEP = 128, 16
STEPS_SORTED = 16
"""Steps whose rows are sorted by length together, so that little of a step is filler."""
OTHERS = 2048
"""Tokens drawn at random that stand in for all that no teacher of a step thought of."""
SPREAD = 0.03
"""Standard deviation of the first embeddings."""
PLACES_AT_ONCE = 1024
COMPARED = 8
"""Of the teacher's best tokens, those that every place of a step is compared with."""


class Pupil(nn.Module):
    """The draft while it learns.

    Attributes:
        model: the layers; its own embeddings are not used.
        embed_projection: from the target's embeddings to the draft's, `[target's, draft's]`.
    """

    embeddings: Tensor

    def __init__(self, target: PreTrainedModel) -> None:
        """Begin with the main directions of the target's embeddings."""
        super().__init__()
        self.model = LlamaForCausalLM(draft_config(target)).model
        del self.model.embed_tokens
        embeddings: Any = target.get_input_embeddings()
        self.register_buffer("embeddings", embeddings.weight.detach().clone(), persistent=False)
        self.embed_projection = nn.Parameter(main_directions(self.embeddings, SHAPE["hidden_size"]))

    def forward(self, ids: Tensor, places: Tensor, candidates: Tensor) -> Tensor:
        """Logits `[places, candidates]` of the tokens after some places of `ids`, `[rows, width]`.

        Args:
            ids: what is read.
            places: which of all `rows * width` places are asked.
            candidates: token ids.
        """
        fed = self.embeddings[ids] @ self.embed_projection
        hidden = self.model(inputs_embeds=fed, use_cache=False).last_hidden_state
        return (
            hidden.flatten(0, 1)[places] @ (self.embeddings[candidates] @ self.embed_projection).T
        )

    def save(self, path: Path) -> None:
        """Write the layers and the projection, in half precision."""
        tensors = {name: each.half().contiguous() for name, each in self.state_dict().items()}
        save_file(tensors, path)

    def finished(self) -> LlamaForCausalLM:
        """An ordinary model with the projected embeddings."""
        draft = LlamaForCausalLM(self.model.config)
        draft.model.load_state_dict(self.model.state_dict(), strict=False)
        with torch.no_grad():
            draft.model.embed_tokens.weight.copy_(self.embeddings @ self.embed_projection)
        return draft


def main_directions(embeddings: Tensor, count: int) -> Tensor:
    """The directions in which embeddings differ most, `[width, count]`."""
    _, directions = torch.linalg.eigh(embeddings.T @ embeddings)
    projection = directions[:, -count:]
    return projection * (SPREAD / (embeddings @ projection).std())


def draft_config(target: PreTrainedModel) -> LlamaConfig:
    """The target's vocabulary and context, and a shape of its own."""
    theirs = target.config
    return LlamaConfig(
        **{
            name: getattr(theirs, name)
            for name in ("vocab_size", "max_position_embeddings", "rope_parameters",
                         "bos_token_id", "eos_token_id", "pad_token_id")
        },
        tie_word_embeddings=True,
        **SHAPE,
    )  # fmt: skip


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


def batch_of(picked: list[tuple[Lessons, int]]) -> Batch:
    """Lay rows side by side; each ends with whatever its lesson has there."""
    width = max(lesson.lengths[row] for lesson, row in picked)
    ids = np.stack([lesson.tokens[row, : width - 1] for lesson, row in picked])
    best, logprobs, places, answers = [], [], [], []
    for number, (lesson, row) in enumerate(picked):
        written = slice(lesson.first, lesson.lengths[row])
        best.append(lesson.best[row, written])
        logprobs.append(lesson.logprobs[row, written])
        own = np.arange(lesson.first, lesson.lengths[row])
        places.append(number * (width - 1) + own - 1)
        answers.append(own >= lesson.answers[row])
    return Batch(
        torch.from_numpy(ids).long(),
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
    vocabulary = len(pupil.embeddings)
    known = batch.best[:, :COMPARED].unique()
    number = torch.full((vocabulary,), -1)
    number[known] = torch.arange(len(known))
    others = torch.randperm(vocabulary)
    others = others[number[others] < 0][:OTHERS]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = pupil(batch.ids, batch.places, torch.cat([known, others]))
    logits = logits.float()
    stand_for = (vocabulary - len(known)) / len(others)
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
    optimizers = build_optimizers(pupil)
    rates = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    start, progress = time.monotonic(), 0.0
    for step, batch in enumerate(batches(lessons, SEED)):
        for optimizer, rate in zip(optimizers, rates, strict=True):
            optimizer.param_groups[0]["lr"] = rate * learning_rate_factor(progress)
        loss = descend(loss_of(pupil, batch), optimizers)
        progress = (time.monotonic() - start) / (60 * minutes)
        if step % 100 == 0:
            found = agreement(pupil.finished(), held_out)
            print(f"{progress:.0%} step {step} loss {loss:.3f} agreement {found:.1%}",
                  flush=True)  # fmt: skip
        if progress >= 1:
            return step + 1
    raise AssertionError("batches never end")


def taught(folder: Path, wanted: int) -> list[Lessons]:
    """The lessons in a folder, of which missing ones are written first.

    Writing takes long, and what is written stays for the next time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{seed}.npz" for seed in [HELD_OUT_SEED, *range(wanted)]]
    absent = [path for path in paths if not path.exists()]
    if absent:
        place = target_folder()
        tokenizer = AutoTokenizer.from_pretrained(place)
        teacher = AutoModelForCausalLM.from_pretrained(
            place, dtype=torch.bfloat16, attn_implementation=GROUPED
        ).eval()
        for number, path in enumerate(absent, 1):
            write_lessons(teacher, tokenizer, ROWS_PER_LESSON, int(path.stem)).save(path)
            print(f"lesson {number} of {len(absent)}", flush=True)
    return [Lessons.load(path) for path in paths]


def main() -> None:
    """Write the lessons that are missing, learn, and keep the draft with how it was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lessons", type=Path, help="folder that keeps the lessons")
    parser.add_argument("--count", type=int, default=40, help="lessons of about 17,000 tokens")
    parser.add_argument("--minutes", type=float, default=45, help="time to learn")
    parser.add_argument("--threads", type=int, default=2, help="one, where others use the cores")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(SEED)
    held_out, *lessons = taught(arguments.lessons, arguments.count)
    target = AutoModelForCausalLM.from_pretrained(target_folder(), dtype=torch.float32)
    pupil = Pupil(target)
    examined = batch_of([(held_out, row) for row in range(len(held_out.lengths))])
    steps = distil(pupil, lessons, examined, arguments.minutes)
    draft = pupil.finished()
    pupil.save(SHIPPED)
    draft.config.architectures, draft.config.dtype = [type(draft).__name__], torch.float16
    draft.config.save_pretrained(DRAFT_FOLDER)
    record = {
        "parameters": draft.num_parameters(),
        "lesson_tokens": sum(lesson.written for lesson in lessons),
        "steps": steps,
        "minutes": arguments.minutes,
        "held_out_agreement": agreement(draft, examined),
    }
    (DRAFT_FOLDER / "training.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
