"""The numbers of a run as an object for JSON; the format is in docs/cli.md."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from batchspec.ablation import Ablation
from batchspec.comparison import Comparison, Result
from batchspec.config import DecodeConfig
from batchspec.errors import DecodeError
from batchspec.generation import Generation
from batchspec.ngram import NGramDraft
from batchspec.pair import ModelPair

VERSION = 1


def write_report(report: Mapping[str, Any], file: str) -> None:
    """Write a report as JSON, `-` being standard output.

    Raises:
        DecodeError: the file cannot be written.
    """
    write_text(json.dumps(report, indent=1, allow_nan=False) + "\n", file)


def write_text(text: str, file: str) -> None:
    """Write a text, `-` being standard output.

    Raises:
        DecodeError: the file cannot be written.
    """
    if file == "-":
        sys.stdout.write(text)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DecodeError(f"{file} cannot be written: {error.strerror}.") from error


def heading(
    command: str, pair: ModelPair, prompts: list[Any], config: DecodeConfig
) -> dict[str, Any]:
    """What every report begins with: who ran what, with which settings, and where."""
    settings = asdict(config)
    del settings["strategy"]
    return {
        "version": VERSION,
        "command": command,
        "pair": pair.name,
        "chat": pair.chat,
        "settings": settings,
        "environment": environment(pair),
        "prompts": prompts,
    }


def environment(pair: ModelPair) -> dict[str, Any]:
    """Versions, device and number formats that a run depends on."""
    draft = pair.draft
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": torch.get_num_threads(),
        "device": str(pair.target.device),
        "dtype": str(pair.target.dtype).removeprefix("torch."),
        "draft_dtype": (
            None if isinstance(draft, NGramDraft) else str(draft.dtype).removeprefix("torch.")
        ),
    }


def generation_report(generation: Generation) -> dict[str, Any]:
    """Tokens, texts and cost of one run."""
    return {
        "tokens": generation.tokens,
        "texts": generation.texts,
        "stats": generation.stats.summary(),
    }


def comparison_report(comparison: Comparison) -> dict[str, Any]:
    """The reference, and every strategy held against it."""
    return {
        "equivalent": _equivalent(comparison.values()),
        "reference": generation_report(comparison.reference),
        "strategies": {name: _result_report(result) for name, result in comparison.items()},
    }


def ablation_report(ablation: Ablation) -> dict[str, Any]:
    """The reference, and every configuration with its median seconds."""
    return {
        "equivalent": _equivalent(row.result for row in ablation.measurements),
        "repeats": ablation.repeats,
        "reference": generation_report(ablation.reference),
        "configurations": [
            {
                "name": row.configuration.name,
                "effect": row.configuration.effect,
                "settings": asdict(row.configuration.config),
                "seconds": row.seconds,
                "moving_seconds": row.moving_seconds,
                **_result_report(row.result),
            }
            for row in ablation.measurements
        ],
    }


def _equivalent(results: Iterable[Result]) -> bool:
    return all(result.exact_match_rate == 1 for result in results if result.promised)


def _result_report(result: Result) -> dict[str, Any]:
    return {
        "promised": result.promised,
        "exact_match_rate": result.exact_match_rate,
        "first_divergence": result.first_divergence,
        "diagnosis": result.diagnosis,
        **generation_report(result.generation),
    }
