"""A benchmark as grids of words, for the terminal and for Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from batchspec.bench.metrics import METRICS
from batchspec.bench.result import TRANSFORMERS, Benchmark, Experiment, Measurement

NONE = "–"


@dataclass(frozen=True)
class Grid:
    """One table.

    Attributes:
        title: what its cells are; empty where the heads say it.
        heads: of the columns, the first included.
        rows: as many words as heads each.
    """

    title: str
    heads: list[str]
    rows: list[list[str]]


def grids(benchmark: Benchmark, experiment: Experiment) -> list[Grid]:
    """One grid, or along an axis one a metric; what was not measured is left out."""
    measured = benchmark.measured(experiment)
    series = list(dict.fromkeys(point.series for point, _ in measured))
    if not experiment.axis:
        heads = ["", *(METRICS[name].title for name in experiment.metrics)]
        lines = [
            [point.series, *(_words(benchmark, found, name) for name in experiment.metrics)]
            for point, found in measured
        ]
        return [Grid("", heads, lines)] if lines else []
    columns = sorted({point.x for point, _ in measured if point.x is not None})
    cells = {(point.series, point.x): found for point, found in measured}
    built = []
    for name in experiment.metrics:
        lines = [
            [line, *(_words(benchmark, cells.get((line, x)), name) for x in columns)]
            for line in series
        ]
        shown = [line for line in lines if set(line[1:]) != {NONE}]
        if shown:
            heads = [experiment.axis, *map(str, columns)]
            built.append(Grid(METRICS[name].title, heads, shown))
    return built


def _words(benchmark: Benchmark, measurement: Measurement | None, name: str) -> str:
    if measurement is None:
        return NONE
    spread = METRICS[name].spread(benchmark, measurement)
    return NONE if spread is None else METRICS[name].words(spread)


def conditions(benchmark: Benchmark) -> str:
    """Under which conditions the numbers were measured, in sentences."""
    where, tokens = benchmark.environment, benchmark.prompt_tokens
    config = benchmark.config
    machine = f"{where['processor']}, {where['cores']} cores, {where['threads']} threads"
    if where["accelerator"]:
        machine = f"{where['accelerator']} ({machine})"
    return (
        f"{benchmark.pair}, {len(tokens)} prompts of {min(tokens)} to {max(tokens)} tokens, at "
        f"most {config.max_new_tokens} new tokens, K {config.draft_tokens} and batches of "
        f"{config.batch_size} where not said otherwise. {machine}, {where['system']}, Python "
        f"{where['python']}, torch {where['torch']}, transformers {where['transformers']}, "
        f"{where['dtype']} on {where['device']}, {where['date']}. Medians of up to "
        f"{benchmark.repeats} runs that took turns, with the least and the greatest of them."
    )


def verdict(benchmark: Benchmark) -> str:
    """Which methods wrote the tokens of the target alone, in sentences."""
    worst: dict[str, float] = {}
    for each in benchmark.measurements:
        if each.runs:
            method = each.setting.method
            worst[method] = min(worst.get(method, 1.0), each.exact_match_rate)
    right = [method for method, rate in worst.items() if rate == 1]
    words = []
    if right:
        words.append(f"In every run all rows equal the target alone: {', '.join(right)}.")
    for method, rate in worst.items():
        if rate < 1:
            promise = "promises no more" if _promises_nothing(benchmark, method) else "is a fault"
            words.append(f"{method} {promise}: {rate:.1%} of the rows are equal in its worst run.")
    if not benchmark.finished:
        words.append("The benchmark was stopped before all runs were made.")
    return " ".join(words)


def _promises_nothing(benchmark: Benchmark, method: str) -> bool:
    return method == TRANSFORMERS or not any(
        each.promised for each in benchmark.measurements if each.setting.method == method
    )


def markdown(benchmark: Benchmark, command_line: Sequence[str]) -> str:
    """The whole benchmark as a Markdown page that says how to make it again."""
    command = shlex.join(["python", "-m", "batchspec", *command_line])
    parts = ["# Benchmarks", f"Written by `{command}`.", conditions(benchmark), verdict(benchmark)]
    for experiment in benchmark.experiments:
        found = grids(benchmark, experiment)
        if found:
            parts += [f"## {experiment.title} (`--figure {experiment.name}`)", experiment.note]
        for grid in found:
            if grid.title:
                parts.append(f"**{grid.title}**")
            lines = [grid.heads, ["---", *["---:"] * (len(grid.heads) - 1)], *grid.rows]
            parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts) + "\n"
