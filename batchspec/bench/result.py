"""What a benchmark measured: plain numbers, readable without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from batchspec.config import DecodeConfig

TRANSFORMERS = "transformers"
"""The method that is no strategy: the target's own batched `generate`, without a draft."""


@dataclass(frozen=True)
class Spread:
    """One number over all repeats."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Of at least one value."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True)
class Setting:
    """One thing to be measured; equal settings of several experiments run once.

    Attributes:
        method: a strategy's name, or `TRANSFORMERS`.
        config: the settings, the method's own strategy among them.
        lengths: `given` takes the prompts as they are, `equal` cuts all to the shortest of them.
        load: rows arrive one by one, at this share of the rate at which EQSPEC finishes them when
            all are there; 0 has all rows there from the start.
    """

    method: str
    config: DecodeConfig
    lengths: str = "given"
    load: float = 0.0


@dataclass(frozen=True)
class Run:
    """One repeat of a setting.

    Attributes:
        seconds: by the clock, from the first forward to the last token; tokenizing apart.
        tokens: new tokens of all rows.
        phases: seconds of each phase; empty for `TRANSFORMERS`.
        exact_match_rate: share of the rows that equal the target alone, token for token.
        counts: counts and rates as in `Stats.summary`, times left out.
        latencies: seconds from a row's arrival to its last token, where rows arrive one by one.
    """

    seconds: float
    tokens: int
    phases: Mapping[str, float]
    exact_match_rate: float
    counts: Mapping[str, float]
    latencies: tuple[float, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """A setting and its repeats, in the order in which they ran.

    Attributes:
        setting: what was run.
        promised: whether its tokens should equal the target's alone.
        runs: the repeats; none yet where the benchmark was stopped early.
        arrivals_per_second: mean rate of arrival, 0 where all rows were there.
    """

    setting: Setting
    promised: bool
    runs: tuple[Run, ...] = ()
    arrivals_per_second: float = 0.0

    @property
    def exact_match_rate(self) -> float:
        """That of the worst repeat."""
        return min(run.exact_match_rate for run in self.runs)


@dataclass(frozen=True)
class Point:
    """One setting in an experiment: a bar, or a point of a line.

    Attributes:
        series: what the legend calls it.
        x: its place on the axis, None in an experiment without one.
        setting: what was run there.
    """

    series: str
    x: int | None
    setting: Setting


@dataclass(frozen=True)
class Experiment:
    """Settings that answer one question.

    Attributes:
        name: what `--figure` calls it.
        title: the question's subject, for headings.
        axis: what `x` counts, empty without an axis.
        note: how to read its numbers.
        metrics: names in `metrics.METRICS`, the main one first.
        points: what is compared.
    """

    name: str
    title: str
    axis: str
    note: str
    metrics: tuple[str, ...]
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Benchmark:
    """All that was measured, whether or not it was finished.

    Attributes:
        pair: the pair's name.
        environment: machine, versions, number formats and date.
        config: the settings that an experiment does not vary.
        prompt_tokens: tokens of each prompt.
        repeats: runs of each setting that were asked for.
        finished: whether all of them were made.
        experiments: the questions.
        measurements: one per setting.
    """

    pair: str
    environment: Mapping[str, Any]
    config: DecodeConfig
    prompt_tokens: tuple[int, ...]
    repeats: int
    finished: bool
    experiments: tuple[Experiment, ...]
    measurements: tuple[Measurement, ...]

    def measured(self, experiment: Experiment) -> list[tuple[Point, Measurement]]:
        """The points of an experiment that ran at least once, in their order."""
        found = {measurement.setting: measurement for measurement in self.measurements}
        pairs = [(point, found[point.setting]) for point in experiment.points]
        return [(point, measurement) for point, measurement in pairs if measurement.runs]

    def rival(self, measurement: Measurement) -> Measurement | None:
        """transformers' own `generate` on the same prompts in batches of the same size."""
        for other in self.measurements:
            mine, its = measurement.setting, other.setting
            if its.method == TRANSFORMERS and not mine.load and other.runs:
                same = its.lengths == mine.lengths and (
                    its.config.batch_size == mine.config.batch_size
                )
                if same:
                    return other
        return None

    @property
    def equivalent(self) -> bool:
        """Whether every run that promised the tokens of the target alone wrote them."""
        return all(
            run.exact_match_rate == 1
            for measurement in self.measurements
            if measurement.promised
            for run in measurement.runs
        )

    def to_json(self) -> dict[str, Any]:
        """An object for JSON; points name their measurement by its place in the list."""
        found = asdict(self)
        places = {each.setting: place for place, each in enumerate(self.measurements)}
        for experiment, entry in zip(self.experiments, found["experiments"], strict=True):
            entry["points"] = [
                {"series": point.series, "x": point.x, "measurement": places[point.setting]}
                for point in experiment.points
            ]
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Benchmark:
        """Read what `to_json` gave, further entries left aside."""
        measurements = tuple(_measurement(entry) for entry in found["measurements"])
        experiments = tuple(_experiment(entry, measurements) for entry in found["experiments"])
        return cls(
            pair=found["pair"],
            environment=found["environment"],
            config=DecodeConfig(**found["config"]),
            prompt_tokens=tuple(found["prompt_tokens"]),
            repeats=found["repeats"],
            finished=found["finished"],
            experiments=experiments,
            measurements=measurements,
        )


def _measurement(entry: Mapping[str, Any]) -> Measurement:
    setting = {**entry["setting"], "config": DecodeConfig(**entry["setting"]["config"])}
    runs = tuple(Run(**{**run, "latencies": tuple(run["latencies"])}) for run in entry["runs"])
    return Measurement(**{**entry, "setting": Setting(**setting), "runs": runs})


def _experiment(entry: Mapping[str, Any], measurements: tuple[Measurement, ...]) -> Experiment:
    points = tuple(
        Point(point["series"], point["x"], measurements[point["measurement"]].setting)
        for point in entry["points"]
    )
    return Experiment(**{**entry, "metrics": tuple(entry["metrics"]), "points": points})
