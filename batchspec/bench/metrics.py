"""The numbers that tables and charts show, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from batchspec.bench.result import Benchmark, Measurement, Run, Spread

Values = Callable[[Benchmark, Measurement], list[float]]


@dataclass(frozen=True)
class Metric:
    """One number of a measurement.

    Attributes:
        title: what it is, unit included.
        form: how it is written, as for `format`.
        values: one for each repeat, none where the measurement has no such number.
    """

    title: str
    form: str
    values: Values

    def spread(self, benchmark: Benchmark, measurement: Measurement) -> Spread | None:
        """Over the repeats; None where the measurement has no such number."""
        values = self.values(benchmark, measurement)
        return Spread.of(values) if values else None

    def words(self, spread: Spread) -> str:
        """The median, and the range where it is more than one number."""
        numbers = (spread.median, spread.lowest, spread.highest)
        middle, low, high = (format(number, self.form) for number in numbers)
        return middle if low == high else f"{middle} ({low}–{high})"


def _every_run(number: Callable[[Run], float]) -> Values:
    return lambda _benchmark, measurement: [number(run) for run in measurement.runs]


def _in_phases(number: Callable[[Run], float]) -> Values:
    """Of runs that have phases: transformers' own `generate` has none."""
    return lambda _benchmark, measurement: [number(run) for run in measurement.runs if run.phases]


def _count(name: str) -> Values:
    return _in_phases(lambda run: run.counts[name])


def _share(*names: str) -> Values:
    """Of the time of all rounds, prefill apart."""

    def share(run: Run) -> float:
        rounds = sum(run.phases.values()) - run.phases["prefill"]
        return sum(run.phases[name] for name in names) / rounds if rounds else 0.0

    return _in_phases(share)


def _milliseconds(name: str) -> Values:
    return _in_phases(lambda run: 1000 * run.phases[name] / max(run.counts["rounds"], 1))


def _latency(share: float) -> Values:
    """Nearest rank: the least latency that this share of the rows does not exceed."""

    def rank(run: Run) -> float:
        return sorted(run.latencies)[ceil(share * len(run.latencies)) - 1]

    return lambda _benchmark, measurement: [rank(run) for run in measurement.runs if run.latencies]


def _speed(run: Run) -> float:
    return run.tokens / run.seconds


def _speedup(benchmark: Benchmark, measurement: Measurement) -> list[float]:
    """Runs of one repeat are compared, because they ran close in time."""
    rival = benchmark.rival(measurement)
    if rival is None:
        return []
    return [
        _speed(mine) / _speed(its) for mine, its in zip(measurement.runs, rival.runs, strict=False)
    ]


METRICS: dict[str, Metric] = {
    "tokens_per_second": Metric("tokens/s", ".0f", _every_run(_speed)),
    "speedup": Metric("times transformers' own generate", ".2f", _speedup),
    "exact_match": Metric(
        "rows equal to the target alone", ".1%", _every_run(lambda run: run.exact_match_rate)
    ),
    "moving_share": Metric("schedule and synchronize", ".1%", _share("schedule", "synchronize")),
    "draft_share": Metric("draft", ".1%", _share("draft")),
    "verify_share": Metric("verify", ".1%", _share("verify")),
    "rounds": Metric("rounds", ".0f", _count("rounds")),
    "busy_rows": Metric("busy rows", ".1%", _count("busy_row_share")),
    "group_rate": Metric("group rate", ".1%", _count("group_rate")),
    "schedule_milliseconds": Metric("schedule, ms", ".2f", _milliseconds("schedule")),
    "draft_milliseconds": Metric("draft, ms", ".2f", _milliseconds("draft")),
    "verify_milliseconds": Metric("verify, ms", ".2f", _milliseconds("verify")),
    "synchronize_milliseconds": Metric("synchronize, ms", ".2f", _milliseconds("synchronize")),
    "latency_50": Metric("latency P50, s", ".2f", _latency(0.5)),
    "latency_90": Metric("latency P90, s", ".2f", _latency(0.9)),
    "latency_99": Metric("latency P99, s", ".2f", _latency(0.99)),
}
"""By the names that `Experiment.metrics` holds. Shares are of the rounds, prefill apart, and
milliseconds of one round."""
