"""Results as tables and sentences for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from batchspec.ablation import Ablation, Measurement
from batchspec.bench.grid import conditions, grids, verdict
from batchspec.bench.result import Benchmark
from batchspec.comparison import Comparison, Result
from batchspec.generation import Generation, Stats
from batchspec.terminal import UNLIMITED, visible

NONE = "–"
PREVIEW = 40
"""Characters of a prompt that say which one it is."""

Cells = list[Text]
Number = int | float

COMPARED: dict[str, Callable[[Stats], str]] = {
    "mean\nacceptance\nlength": lambda stats: f"{stats.mean_acceptance_length:.2f}",
    "draft\nacceptance\nrate": lambda stats: (
        f"{stats.draft_acceptance_rate:.0%}" if stats.drafted else NONE
    ),
    "target\nforwards": lambda stats: str(stats.target_forwards),
    "rounds": lambda stats: str(stats.rounds),
    "moving\nshare": lambda stats: f"{stats.moving_share:.1%}",
    "tokens/s": lambda stats: f"{stats.tokens_per_second:.0f}",
    "realigned\nrounds": lambda stats: str(stats.realigned_rounds),
    "group\nrate": lambda stats: f"{stats.group_rate:.0%}",
    "slots\nmoved": lambda stats: str(stats.kv_slots_moved),
}

ABLATED: dict[str, tuple[str, Callable[[Measurement], Number]]] = {
    "target\nforwards": ("d", lambda row: row.result.generation.stats.target_forwards),
    "draft\nforwards": ("d", lambda row: row.result.generation.stats.draft_forwards),
    "rounds": ("d", lambda row: row.result.generation.stats.rounds),
    "busy\nrows": (".1%", lambda row: row.result.generation.stats.busy_row_share),
    "grouped\nrounds": ("d", lambda row: row.result.generation.stats.grouped_rounds),
    "realigned\nrounds": ("d", lambda row: row.result.generation.stats.realigned_rounds),
    "slots\nmoved": ("d", lambda row: row.result.generation.stats.kv_slots_moved),
    "seconds": (".2f", lambda row: row.seconds),
    "seconds\nmoving": (".3f", lambda row: row.moving_seconds),
}


def print_generation(console: Console, prompts: Sequence[Any], generation: Generation) -> None:
    """Print every prompt with what was written after it, then the cost."""
    for number, (prompt, tokens) in enumerate(zip(prompts, generation.tokens, strict=True)):
        text = generation.texts[number] if generation.texts else _words(tokens)
        console.print(Text(f"row {number}: {_words(prompt)}", "bold"))
        # Its line breaks belong to a text, so they are the one control character that is kept.
        _print_indented(console, "\n".join(map(visible, text.split("\n"))))
        console.print()
    stats = generation.stats
    facts = {"tokens": str(stats.committed), "seconds": f"{sum(stats.seconds.values()):.2f}"}
    facts |= {head.replace("\n", " "): shown(stats) for head, shown in COMPARED.items()}
    for name, value in facts.items():
        console.print(f"{name:<22}{value:>8}")


def print_comparison(console: Console, prompts: Sequence[Any], comparison: Comparison) -> None:
    """Print a row per strategy, why each row left the reference, and the verdict."""
    alone = _costs(comparison.reference.stats)
    rows = [[Text("target alone"), Text(NONE), Text(NONE), *alone]]
    for name, result in comparison.items():
        costs = _costs(result.generation.stats)
        rows.append([Text(name), _exact_match(result), _earliest(result), *costs])
    print_table(console, ["strategy", "exact\nmatch", "first\ndivergence", *COMPARED], rows)
    for name, result in comparison.items():
        _print_diagnoses(console, name, prompts, result)
        _print_verdict(console, name, result)


def print_ablation(console: Console, prompts: Sequence[Any], ablation: Ablation) -> None:
    """Print a row per configuration, each number with its ratio to the first row's."""
    first = ablation.measurements[0]
    rows = []
    for measurement in ablation.measurements:
        configuration, result = measurement.configuration, measurement.result
        cells = [
            _with_ratio(shown, number(measurement), number(first))
            for shown, number in ABLATED.values()
        ]
        rows.append([Text(configuration.name), _exact_match(result), *cells])
    print_table(console, ["", "exact\nmatch", *ABLATED], rows)
    for measurement in ablation.measurements:
        configuration = measurement.configuration
        console.print(Text(f"{configuration.name}: {configuration.effect}"))
    console.print(
        f"\nCounts are exact. Seconds are medians of {ablation.repeats} runs that took turns; "
        "moving is schedule and synchronize. × is the ratio to the first row."
    )
    for measurement in ablation.measurements:
        _print_diagnoses(console, measurement.configuration.name, prompts, measurement.result)


def print_benchmark(console: Console, benchmark: Benchmark) -> None:
    """Print the tables of every experiment, then the conditions and the verdict."""
    for experiment in benchmark.experiments:
        found = grids(benchmark, experiment)
        if found:
            console.print(Text(f"{experiment.title}. {experiment.note}\n", "bold"))
        for grid in found:
            if grid.title:
                console.print(Text(grid.title))
            heads = [head.replace(" ", "\n") for head in grid.heads]
            print_table(console, heads, [list(map(Text, row)) for row in grid.rows])
    console.print(Text(visible(conditions(benchmark))))
    console.print(Text(verdict(benchmark), "green" if benchmark.equivalent else "red"))


def print_table(console: Console, heads: list[str], rows: list[Cells]) -> None:
    """Print a table; what is too wide becomes several, each with the first column."""
    columns = list(range(1, len(heads)))
    while columns:
        taken = len(columns)
        while taken > 1 and _width(console, _table(heads, rows, columns[:taken])) > console.width:
            taken -= 1
        console.print(_table(heads, rows, columns[:taken]))
        console.print()
        columns = columns[taken:]


def _table(heads: list[str], rows: list[Cells], columns: list[int]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    height = max(heads[place].count("\n") for place in columns)
    for place in (0, *columns):
        # Heads stand on the line; the cells below it hang from it.
        head = "\n" * (height - heads[place].count("\n")) + heads[place]
        table.add_column(head, justify="right" if place else "left")
    for cells in rows:
        table.add_row(*(cells[place] for place in (0, *columns)))
    return table


def _width(console: Console, table: Table) -> int:
    unlimited = console.options.update(width=UNLIMITED)
    return console.measure(table, options=unlimited).maximum


def _costs(stats: Stats) -> Cells:
    return [Text(shown(stats)) for shown in COMPARED.values()]


def _exact_match(result: Result) -> Text:
    fault = "red" if result.promised else "yellow"
    places = result.first_divergence
    percent = 100 * places.count(None) // len(places)  # rounded down: 199 of 200 is not 100 %
    return Text(f"{percent}%", "green" if result.exact_match_rate == 1 else fault)


def _earliest(result: Result) -> Text:
    places = [place for place in result.first_divergence if place is not None]
    return Text(str(min(places)) if places else NONE)


def _with_ratio(shown: str, value: Number, first: Number) -> Text:
    ratio = f"×{value / first:.2f}" if first else NONE
    return Text(f"{value:{shown}}\n").append(ratio, "dim")


def _print_diagnoses(console: Console, name: str, prompts: Sequence[Any], result: Result) -> None:
    for number, (place, words) in enumerate(
        zip(result.first_divergence, result.diagnosis, strict=True)
    ):
        if place is None:
            continue
        prompt = _words(prompts[number])
        if len(prompt) > PREVIEW:
            prompt = prompt[: PREVIEW - 1] + "…"
        console.print(Text(f"{name}, row {number} ({prompt}), from new token {place} on:", "bold"))
        _print_indented(console, visible(str(words)))


def _print_verdict(console: Console, name: str, result: Result) -> None:
    equal = result.first_divergence.count(None)
    rows = f"{equal} of {len(result.first_divergence)} rows equal the target alone"
    if equal == len(result.first_divergence):
        words = Text(f"✓ {name}: all rows equal the target alone", "green")
    elif result.promised:
        words = Text(f"✗ {name}: only {rows}", "red")
    else:
        words = Text(f"✗ {name}: {rows} and no more is promised", "yellow")
    console.print(words)


def _print_indented(console: Console, text: str) -> None:
    for line in Text(text).wrap(console, console.width - 2):
        console.print(Text("  ") + line)


def _words(prompt: str | list[int]) -> str:
    return visible(prompt) if isinstance(prompt, str) else "ids " + " ".join(map(str, prompt))
