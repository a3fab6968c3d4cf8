"""Distil the draft of SmolLM2 from the target: ``python -m batchspec.smollm2.distil``.

Its embeddings are a learned projection of the target's, so that a token it never met lies beside
those it knows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

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
from batchspec.smollm2.lessons import write_lessons
from batchspec.smollm2.target import target_folder
from batchspec.teaching.distillation import SEED, Pupil, agreement, distil, whole
from batchspec.teaching.lessons import GROUPED, Lessons

SHAPE: dict[str, Any] = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "intermediate_size": 640,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
HELD_OUT_SEED = 9001
ROWS_PER_LESSON = 128
SPREAD = 0.03
"""Standard deviation of the first embeddings."""


class ProjectedPupil(Pupil):
    """The draft while it learns.

    Attributes:
        model: the layers; its own embeddings are not used.
        embeddings: the target's, `[vocabulary, target's]`.
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
        self.vocabulary = len(self.embeddings)
        self.embed_projection = nn.Parameter(main_directions(self.embeddings, SHAPE["hidden_size"]))

    def forward(self, ids: Tensor, places: Tensor, candidates: Tensor) -> Tensor:
        """Logits by the projected embeddings; see `Pupil`."""
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
    pupil = ProjectedPupil(target)
    examined = whole([held_out])
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
