"""The pairs that go by a name of their own; known without importing torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from batchspec import smollm2, storyteller

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
"""Bytes of one parameter."""


@dataclass(frozen=True)
class Preset:
    """A target and a draft made for it.

    Attributes:
        name: what `load_pair` and the page call the pair.
        target, draft: Hub ids, or folders inside this package.
        target_parameters, draft_parameters: how many, shared ones counted once.
        licence: of both; the target's, then the draft's where they differ.
        good_for: what it shows well.
        examples: prompts that show it well.
    """

    name: str
    target: str
    draft: str
    target_parameters: int
    draft_parameters: int
    licence: str
    good_for: str
    examples: tuple[str, ...] = ()

    @property
    def ships(self) -> bool:
        """Whether it is part of this package."""
        return Path(self.target).is_dir()

    @property
    def parameters(self) -> int:
        """Of both models."""
        return self.target_parameters + self.draft_parameters

    def weight_bytes(self, dtype: str) -> int:
        """Memory that both models' weights take in this precision."""
        return self.parameters * BYTES[dtype]


QUESTIONS = (
    "Why is the sky blue?",
    "Write a haiku about a lighthouse.",
    "A train leaves at 9:40 and arrives at 12:15. How long is the journey? Show your steps.",
    "Translate to French: The cat sleeps on the warm stove.",
)
"""Prompts for models that answer, of clearly different lengths."""

PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "storyteller",
            str(storyteller.TARGET_FOLDER),
            str(storyteller.DRAFT_FOLDER),
            3_099_840,
            426_368,
            "MIT",
            "seeing every effect at once: ships with the code, answers in milliseconds",
            tuple(storyteller.EXAMPLES),
        ),
        Preset(
            smollm2.NAME,
            smollm2.TARGET_ID,
            str(smollm2.DRAFT_FOLDER),
            134_515_008,
            15_337_728,
            "Apache 2.0",
            "a real language model on a laptop's CPU, with a draft distilled for it",
            QUESTIONS,
        ),
        Preset(
            "smollm2-360m",
            "HuggingFaceTB/SmolLM2-360M-Instruct",
            "HuggingFaceTB/SmolLM2-135M-Instruct",
            361_821_120,
            134_515_008,
            "Apache 2.0",
            "real answers on any laptop; draft and target are close in size, so little is gained",
            QUESTIONS,
        ),
        Preset(
            "smollm2-1.7b",
            "HuggingFaceTB/SmolLM2-1.7B-Instruct",
            "HuggingFaceTB/SmolLM2-135M-Instruct",
            1_711_376_384,
            134_515_008,
            "Apache 2.0",
            "a gain that can be measured on a small GPU or a patient CPU",
            QUESTIONS,
        ),
        Preset(
            "qwen3",
            "Qwen/Qwen3-8B",
            "Qwen/Qwen3-0.6B",
            8_190_735_360,
            596_049_920,
            "Apache 2.0",
            "the paper's main pair: grouped-query attention, a draft of the same family",
            QUESTIONS,
        ),
        Preset(
            "vicuna",
            "lmsys/vicuna-7b-v1.3",
            "double7/vicuna-68m",
            6_738_415_616,
            68_030_208,
            "LLaMA (not commercial) / Apache 2.0",
            "the paper's pair with a tiny draft: cheap proposals, long rejections, heavy K/V",
            QUESTIONS,
        ),
        Preset(
            "glm-4",
            "zai-org/GLM-4-9B-0414",
            "jukofyork/GLM-4.5-DRAFT-0.6B-v3.0",
            9_400_279_040,
            595_656_704,
            "MIT / Apache 2.0",
            "the paper's pair from two families: one vocabulary, different architectures",
            QUESTIONS,
        ),
    )
}


def table(presets: Iterable[Preset]) -> str:
    """The presets as a table in Markdown."""
    rows = [
        ("pair", "target", "draft", "weights, bfloat16 / float32", "licence", "good for"),
        ("---",) * 6,
        *(_cells(preset) for preset in presets),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(preset: Preset) -> tuple[str, ...]:
    models = (
        (preset.target, preset.target_parameters),
        (preset.draft, preset.draft_parameters),
    )
    return (
        f"`{preset.name}`",
        *(f"{_origin(place)}, {short(count)}" for place, count in models),
        " / ".join(in_bytes(preset.weight_bytes(dtype)) for dtype in ("bfloat16", "float32")),
        preset.licence,
        preset.good_for,
    )


def _origin(place: str) -> str:
    return "ships" if Path(place).is_dir() else place


def short(count: int) -> str:
    """A number of parameters, such as 1.7B."""
    unit, letter = (1e9, "B") if count >= 1e9 else (1e6, "M")
    number = count / unit
    return f"{number:.1f}{letter}" if number < 10 else f"{number:.0f}{letter}"


def in_bytes(count: float) -> str:
    """A number of bytes, such as 16.4 GB."""
    unit, name = (1e9, "GB") if count >= 0.95e9 else (1e6, "MB")
    number = count / unit
    return f"{number:.1f} {name}" if number < 100 else f"{number:.0f} {name}"
