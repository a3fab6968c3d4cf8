"""Running settings in turns, so that a slow spell of the machine hits all of them alike."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from batchspec.bench.baseline import generate_plainly
from batchspec.bench.experiments import Plan, experiments
from batchspec.bench.names import EXPERIMENTS, STANDARD
from batchspec.bench.result import TRANSFORMERS, Benchmark, Experiment, Measurement, Run, Setting
from batchspec.bench.serving import poisson_arrivals, serve
from batchspec.comparison import OTHER_TOKENS, reference_config
from batchspec.config import DecodeConfig
from batchspec.decoding import Prompts, finish, generate, start_rows
from batchspec.errors import DecodeError
from batchspec.generation import Stats
from batchspec.packing import unpacked
from batchspec.pair import ModelPair
from batchspec.report import environment
from batchspec.row import Row
from batchspec.strategies import STRATEGIES

WARM_TOKENS = 8
"""New tokens of a run that only warms caches, threads and lazy imports up."""


@dataclass(frozen=True)
class Progress:
    """How far a benchmark is.

    Attributes:
        done, total: timed runs.
        remaining: estimated seconds, None until there is something to judge by.
        doing: what runs next, in words; empty at the end.
        benchmark: what was measured so far.
    """

    done: int
    total: int
    remaining: float | None
    doing: str
    benchmark: Benchmark


def measure(
    plan: Plan, prompts: Prompts, names: Sequence[str] = STANDARD, repeats: int = 3
) -> Iterator[Progress]:
    """Run every setting of some experiments once, then once more, `repeats` times.

    Args:
        plan: the pair, the settings that are not varied, and what is compared.
        prompts: as in `decode`.
        names: of experiments, see `names.EXPERIMENTS`.
        repeats: at least 1.

    Returns:
        A generator that yields before the target alone, each warm-up and each timed run, and at
        the end. Whoever stops asking keeps the benchmark of the last progress.

    Raises:
        DecodeError: bad input, found before anything runs.
    """
    if repeats < 1:
        raise DecodeError(f"repeats must be at least 1, not {repeats}.")
    if not prompts:
        raise DecodeError("There is nothing to measure: give at least one prompt.")
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown or not names:
        raise DecodeError(
            f"Unknown experiment {', '.join(unknown) or 'list, an empty one'}: "
            f"choose among {', '.join(EXPERIMENTS)}."
        )
    bench = _Bench(plan, prompts, experiments(plan, names), repeats)
    return bench.run()


def _check(setting: Setting) -> None:
    config, method = setting.config, setting.method
    if not config.max_new_tokens:
        raise DecodeError("0 new tokens leave nothing to measure: ask for at least 1.")
    if method == TRANSFORMERS and config.temperature:
        raise DecodeError(
            f"{TRANSFORMERS} is measured greedily, but the temperature is {config.temperature}: "
            "use temperature 0, or leave it out of the methods."
        )


class _Bench:
    """One benchmark under way."""

    def __init__(
        self, plan: Plan, prompts: Prompts, wanted: tuple[Experiment, ...], repeats: int
    ) -> None:
        """Check all settings and cut the prompts."""
        self.pair = plan.pair
        self.repeats = repeats
        # Methods are compared at one batch size, so those runs follow each other.
        settings = sorted(
            dict.fromkeys(point.setting for each in wanted for point in each.points),
            key=lambda setting: setting.config.batch_size,
        )
        if not settings:
            raise DecodeError("Nothing is left to measure: choose other methods or experiments.")
        for setting in settings:
            _check(setting)
            start_rows(plan.pair, prompts, setting.config)
        given = [row.prompt for row in start_rows(plan.pair, prompts, plan.config)]
        shortest = min(map(len, given))
        self.prompts = {"given": given, "equal": [ids[:shortest] for ids in given]}
        self.found = {setting: Measurement(setting, _promised(setting)) for setting in settings}
        self.references: dict[str, list[list[int]]] = {}
        self.rates: dict[Setting, float] = {}
        self.benchmark = Benchmark(
            pair=plan.pair.name,
            environment={**environment(plan.pair), **machine(plan.pair.target.device)},
            config=plan.config,
            prompt_tokens=tuple(map(len, given)),
            repeats=repeats,
            finished=False,
            experiments=wanted,
            measurements=(),
        )

    def run(self) -> Iterator[Progress]:
        """Yield before everything that takes time, then at the end."""
        for lengths in dict.fromkeys(setting.lengths for setting in self.found):
            yield self._progress("the target alone")
            config = reference_config(next(iter(self.found)).config)
            reference = generate(self.pair, self.prompts[lengths], config)
            self.references[lengths] = reference.tokens
        for setting in self.found:
            yield self._progress(f"warm-up: {_words(setting)}")
            self._warm_up(setting)
        for number in range(self.repeats):
            for setting in self.found:
                yield self._progress(f"{_words(setting)}, run {number + 1} of {self.repeats}")
                self._measure(setting)
        self.benchmark = replace(self.benchmark, finished=True)
        yield self._progress("")

    def _progress(self, doing: str) -> Progress:
        measurements = tuple(self.found.values())
        self.benchmark = replace(self.benchmark, measurements=measurements)
        done = sum(len(each.runs) for each in measurements)
        known = [run.seconds for each in measurements for run in each.runs]
        mean = sum(known) / len(known) if known else 0.0
        remaining = sum(
            (self.repeats - len(each.runs)) * (each.runs[0].seconds if each.runs else mean)
            for each in measurements
        )
        total = self.repeats * len(measurements)
        return Progress(done, total, remaining if known else None, doing, self.benchmark)

    def _rows(self, setting: Setting) -> list[Row]:
        return start_rows(self.pair, self.prompts[setting.lengths], setting.config)

    def _warm_up(self, setting: Setting) -> None:
        config = setting.config
        brief = replace(config, max_new_tokens=min(WARM_TOKENS, config.max_new_tokens))
        prompts = self.prompts[setting.lengths][: config.batch_size]
        self._finish(setting.method, start_rows(self.pair, prompts, brief), brief)
        if setting.load:
            rate = setting.load * self._rows_per_second(replace(setting, method="eqspec", load=0))
            self.found[setting] = replace(self.found[setting], arrivals_per_second=rate)

    def _rows_per_second(self, setting: Setting) -> float:
        """How many rows a second are finished when all are there, measured once a setting."""
        setting = replace(setting, config=replace(setting.config, strategy=setting.method))
        if setting not in self.rates:
            rows = self._rows(setting)
            started = time.perf_counter()
            finish(self.pair, rows, setting.config)
            self.rates[setting] = len(rows) / (time.perf_counter() - started)
        return self.rates[setting]

    def _measure(self, setting: Setting) -> None:
        measurement = self.found[setting]
        rows = self._rows(setting)
        if setting.load:
            arrivals = poisson_arrivals(
                len(rows), measurement.arrivals_per_second, setting.config.seed
            )
            served = serve(self.pair, rows, arrivals, setting.config)
            tokens = [row.generated for row in rows]
            run = self._run(setting, tokens, served.seconds, served.stats, served.latencies)
        else:
            started = time.perf_counter()
            tokens, stats = self._finish(setting.method, rows, setting.config)
            run = self._run(setting, tokens, time.perf_counter() - started, stats)
        self.found[setting] = replace(measurement, runs=(*measurement.runs, run))

    def _finish(
        self, method: str, rows: list[Row], config: DecodeConfig
    ) -> tuple[list[list[int]], Stats | None]:
        """New tokens of each row, and what they cost where the method is a strategy."""
        if method == TRANSFORMERS:
            return generate_plainly(self._as_transformers_loads_it, rows, config), None
        stats = finish(self.pair, rows, config)
        return [row.generated for row in rows], stats

    @cached_property
    def _as_transformers_loads_it(self) -> ModelPair:
        """The pair with a target whose weights are not packed."""
        plain = copy(self.pair)
        plain.target = unpacked(self.pair.target)
        return plain

    def _run(
        self,
        setting: Setting,
        tokens: list[list[int]],
        seconds: float,
        stats: Stats | None,
        latencies: tuple[float, ...] = (),
    ) -> Run:
        expected = self.references[setting.lengths]
        equal = [mine == right for mine, right in zip(tokens, expected, strict=True)]
        return Run(
            seconds=seconds,
            tokens=sum(map(len, tokens)),
            phases=dict(stats.seconds) if stats else {},
            exact_match_rate=sum(equal) / len(equal),
            counts=_counts(stats) if stats else {},
            latencies=latencies,
        )


def _promised(setting: Setting) -> bool:
    if setting.method == TRANSFORMERS:
        return False
    return STRATEGIES[setting.method].correct and setting.config.rule not in OTHER_TOKENS


def _counts(stats: Stats) -> dict[str, float]:
    timed = ("seconds", "tokens_per_second", "moving_share")
    return {name: value for name, value in stats.summary().items() if name not in timed}


def _words(setting: Setting) -> str:
    return f"{setting.method}, batch of {setting.config.batch_size}"


def machine(device: torch.device) -> dict[str, Any]:
    """Where and when something was measured."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "accelerator": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")
