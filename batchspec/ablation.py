"""Where EXSPEC's gain comes from: its effects added one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

from batchspec.comparison import Result, check, reference_config
from batchspec.config import DecodeConfig
from batchspec.decoding import Prompts, generate, start_rows
from batchspec.errors import DecodeError
from batchspec.generation import Generation, Stats
from batchspec.pair import ModelPair
from batchspec.strategies import STRATEGIES

REPEATS = 3


@dataclass(frozen=True)
class Configuration:
    """One row of the ablation.

    Attributes:
        name: what it adds to the row above it, in a word or two.
        effect: the same in a sentence.
        config: the settings that do it.
    """

    name: str
    effect: str
    config: DecodeConfig


@dataclass(frozen=True)
class Measurement:
    """A configuration, run several times.

    Attributes:
        configuration: what was run.
        result: tokens and exact counts, held against the reference.
        seconds: median over the runs of all phases together.
        moving_seconds: median over the runs of schedule and synchronize.
    """

    configuration: Configuration
    result: Result
    seconds: float
    moving_seconds: float


@dataclass(frozen=True)
class Ablation:
    """All configurations on one workload.

    Attributes:
        reference: the target alone, one row at a time, without padding.
        measurements: one per configuration; each but `ragged` adds one effect to the one before.
        repeats: runs of each configuration, interleaved, whose medians the seconds are.
    """

    reference: Generation
    measurements: list[Measurement]
    repeats: int


def configurations(pair: ModelPair, config: DecodeConfig) -> list[Configuration]:
    """EQSPEC, then refilling, a pool and equal-length grouping added one by one; then `ragged`.

    A pair that cannot run `ragged` is spared it.
    """
    pooled = replace(config, strategy="exspec", grouping=False)
    found = [
        Configuration(
            "eqspec",
            "consecutive batches: the next begins when every row of the last is done",
            replace(config, strategy="eqspec"),
        ),
        Configuration(
            "+ refill",
            "a finished row's place goes to the next prompt at once",
            replace(pooled, window=config.batch_size),
        ),
        Configuration(
            f"+ pool of {config.window}",
            "the rows of a round are those nearest in length to the one that waited longest",
            pooled,
        ),
        Configuration(
            "+ grouping",
            "rows of equal length run together where they fill a batch, without realignment",
            replace(pooled, grouping=True),
        ),
    ]
    if not STRATEGIES["ragged"].refusal(pair):
        found.append(
            Configuration(
                "ragged",
                "instead of all that, rows of any length run together and nothing is realigned",
                replace(config, strategy="ragged"),
            )
        )
    return found


def ablate(
    pair: ModelPair,
    prompts: Prompts,
    config: DecodeConfig,
    repeats: int = REPEATS,
    report: Callable[[str], None] = lambda words: None,
) -> Ablation:
    """Run every configuration `repeats` times, taking turns, so that a slow spell hits all alike.

    Args:
        pair: the models.
        prompts: as in `decode`; more than `batch_size`, or there is nothing to refill.
        config: the settings; strategy and grouping are varied, and the window once.
        repeats: at least 1.
        report: told in words what runs next.

    Raises:
        DecodeError: bad input.
    """
    if repeats < 1:
        raise DecodeError(f"repeats must be at least 1, not {repeats}.")
    wanted = configurations(pair, config)
    for configuration in wanted:
        start_rows(pair, prompts, configuration.config)
    report("the target alone")
    reference = generate(pair, prompts, reference_config(config))
    report("each configuration held against it")  # which also warms all of them up
    results = [check(pair, prompts, each.config, reference) for each in wanted]
    runs: list[list[Stats]] = [[] for _ in wanted]
    for number in range(repeats):
        for place, configuration in enumerate(wanted):
            report(f"{configuration.name}, run {number + 1} of {repeats}")
            runs[place].append(generate(pair, prompts, configuration.config).stats)
    measurements = [
        Measurement(configuration, result, *_medians(stats))
        for configuration, result, stats in zip(wanted, results, runs, strict=True)
    ]
    return Ablation(reference, measurements, repeats)


def _medians(runs: list[Stats]) -> tuple[float, float]:
    return (
        median(sum(stats.seconds.values()) for stats in runs),
        median(stats.moving_seconds for stats in runs),
    )
