"""The commands: models loaded, a run made, its result printed and written."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from transformers.utils import logging

from batchspec.ablation import ablate
from batchspec.bench.experiments import Plan
from batchspec.bench.grid import markdown
from batchspec.bench.measuring import Progress, measure
from batchspec.bench.names import METHODS, STANDARD
from batchspec.bench.result import Benchmark
from batchspec.cli import INTERRUPTED
from batchspec.comparison import compare
from batchspec.config import DecodeConfig
from batchspec.decoding import generate
from batchspec.errors import DecodeError
from batchspec.faults import FAULTS
from batchspec.loading import load_pair
from batchspec.memory import memory_told
from batchspec.pair import ModelPair
from batchspec.progress import Observer
from batchspec.report import (
    ablation_report,
    comparison_report,
    environment,
    generation_report,
    heading,
    write_report,
    write_text,
)
from batchspec.tables import (
    print_ablation,
    print_benchmark,
    print_comparison,
    print_generation,
)
from batchspec.terminal import Output, visible, waiting

COMPARED = ("pad", "eqspec", "exspec")
"""What `compare` runs unless told otherwise: the naive batch and the paper's two algorithms."""


@dataclass(frozen=True)
class Outcome:
    """What a command found.

    Attributes:
        report: its part of the JSON object.
        show: prints it for people.
        code: the exit code.
    """

    report: dict[str, Any]
    show: Callable[[Console], None]
    code: int = 0


def run(options: Namespace, prompts: list[Any], config: DecodeConfig) -> int:
    """Run the command that `options` name; the exit code.

    Args:
        options: as the parser gives them.
        prompts: texts and lists of ids; where there are none, the pair's own examples are used.
        config: the settings, except for the strategy.

    Raises:
        DecodeError: bad input.
    """
    with waiting("loading the models") as say:
        pair = load(options, lambda words, share: say(_with_share(words, share)))
    own_examples = not prompts
    prompts = prompts or list(pair.examples[: options.limit])
    if not prompts:
        raise DecodeError("There is no prompt: give one as an argument, or a file with --prompts.")
    with memory_told():
        outcome = COMMANDS[options.command](options, pair, prompts, config)
    # Written first: a reader of the printed result may stop reading.
    if options.json:
        head = heading(options.command, pair, prompts, config)
        write_report({**head, **outcome.report}, options.json)
    if options.json != "-":
        output = Output()
        output.print(_introduction(pair, prompts, config, own_examples) + "\n")
        outcome.show(output)
    return outcome.code


def load(options: Namespace, observe: Observer) -> ModelPair:
    """The pair that `options` ask for; `observe` is told how far loading is.

    Raises:
        DecodeError: it cannot be loaded.
    """
    logging.disable_progress_bar()
    return load_pair(
        options.target or options.pair,
        options.draft,
        options.device,
        options.dtype,
        chat=options.chat,
        observe=observe,
    )


def run_generate(
    options: Namespace, pair: ModelPair, prompts: list[Any], config: DecodeConfig
) -> Outcome:
    """Decode all prompts with one strategy."""
    with waiting(f"{options.strategy}: {len(prompts)} prompts"):
        generation = generate(pair, prompts, replace(config, strategy=options.strategy))
    return Outcome(
        {"strategy": options.strategy, **generation_report(generation)},
        lambda output: print_generation(output, prompts, generation),
    )


def run_compare(
    options: Namespace, pair: ModelPair, prompts: list[Any], config: DecodeConfig
) -> Outcome:
    """Hold strategies, or the steps from EQSPEC to EXSPEC, against the target alone.

    Raises:
        DecodeError: bad input.
    """
    if options.ablate:
        return _run_ablate(options, pair, prompts, config)
    configs = _compared(options.strategy, config)
    names = ", ".join(each.label for each in configs)
    with waiting(f"the target alone, then {names}: {len(prompts)} prompts"):
        comparison = compare(pair, prompts, configs)
    report = comparison_report(comparison)
    return Outcome(
        report,
        lambda output: print_comparison(output, prompts, comparison),
        0 if report["equivalent"] else 1,
    )


def _compared(strategies: list[str] | None, config: DecodeConfig) -> list[DecodeConfig]:
    """What `compare` runs: every strategy, and behind it the same with the fault asked for."""
    if config.fault is None:
        return [replace(config, strategy=name) for name in strategies or COMPARED]
    able = FAULTS[config.fault].strategies
    names = strategies or [name for name in COMPARED if name in able]
    return [
        replace(config, strategy=name, fault=fault)
        for name in names
        for fault in (None, config.fault)
    ]


def _run_ablate(
    options: Namespace, pair: ModelPair, prompts: list[Any], config: DecodeConfig
) -> Outcome:
    if options.strategy or options.fault:
        raise DecodeError(
            "--ablate runs strategies of its own choice and without faults: "
            "leave --strategy and --fault out."
        )
    with waiting("starting") as report_progress:
        ablation = ablate(pair, prompts, config, report=report_progress)
    report = ablation_report(ablation)

    def show(output: Console) -> None:
        print_ablation(output, prompts, ablation)
        if len(prompts) <= config.batch_size:
            output.print(
                f"\n{len(prompts)} prompts fill no more than one batch of {config.batch_size}, so "
                "no row ever waits for a place: give more prompts, or a smaller --batch-size."
            )

    return Outcome(report, show, 0 if report["equivalent"] else 1)


def run_bench(
    options: Namespace, pair: ModelPair, prompts: list[Any], config: DecodeConfig
) -> Outcome:
    """Measure experiments; what was measured before an interrupt is shown all the same.

    Raises:
        DecodeError: bad input.
        KeyboardInterrupt: before anything was measured.
    """
    plan = Plan(pair, config, options.strategy or METHODS, options.batch_sizes)
    names = options.figure or STANDARD
    benchmark: Benchmark | None = None
    try:
        with waiting("starting") as report_progress:
            for progress in measure(plan, prompts, names, options.repeats):
                report_progress(_progress_words(progress))
                benchmark = progress.benchmark
    except KeyboardInterrupt:
        if benchmark is None or not any(each.runs for each in benchmark.measurements):
            raise
    assert benchmark is not None
    if options.markdown:
        write_text(markdown(benchmark, options.command_line), options.markdown)
    code = 0 if benchmark.equivalent else 1
    return Outcome(
        {**benchmark.to_json(), "equivalent": benchmark.equivalent},
        lambda output: print_benchmark(output, benchmark),
        code if benchmark.finished else INTERRUPTED,
    )


def _with_share(words: str, share: float | None) -> str:
    return words if share is None else f"{words}: {share:.0%}"


def _progress_words(progress: Progress) -> str:
    words = f"{progress.done} of {progress.total} runs"
    if progress.remaining is not None:
        minutes, seconds = divmod(round(progress.remaining), 60)
        words += f", about {minutes}:{seconds:02} left"
    return f"{words}: {progress.doing}"


def _introduction(
    pair: ModelPair, prompts: list[Any], config: DecodeConfig, own_examples: bool
) -> str:
    where = environment(pair)
    words = (
        f"{visible(pair.name)}: {len(prompts)} prompts in batches of {config.batch_size}, "
        f"{config.draft_tokens} draft tokens, at most {config.max_new_tokens} new tokens, "
        f"{where['dtype']} on {where['device']}."
    )
    if own_examples:
        words += "\nNo prompts were given, so these are the pair's own examples."
    return words


COMMANDS: dict[str, Callable[[Namespace, ModelPair, list[Any], DecodeConfig], Outcome]] = {
    "generate": run_generate,
    "compare": run_compare,
    "bench": run_bench,
}
