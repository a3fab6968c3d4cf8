"""The experiments, the paper's figures and tables among them, as settings to be run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from batchspec.ablation import configurations
from batchspec.bench.names import EXPERIMENTS
from batchspec.bench.result import TRANSFORMERS, Experiment, Point, Setting
from batchspec.config import DecodeConfig
from batchspec.pair import ModelPair
from batchspec.strategies import STRATEGIES

DRAFT_LENGTHS = (1, 2, 3, 4, 5, 6, 8)
WINDOWS = (2, 4, 8, 16, 32)
GROUPED = (2, 4, 8)
"""Batch sizes whose group rate is followed over the window."""
SERVED = (1, 2, 4, 8)
LOAD = 0.7
"""How busy arriving rows would keep EQSPEC: busy enough for queues, not for endless ones."""
COSTS = tuple(f"{phase}_milliseconds" for phase in ("schedule", "draft", "verify", "synchronize"))


@dataclass(frozen=True)
class Plan:
    """What all experiments share.

    Attributes:
        pair: the pair to be measured.
        config: settings that an experiment does not vary.
        methods: strategies, and `TRANSFORMERS`, to be compared.
        batch_sizes: those of a sweep.
    """

    pair: ModelPair
    config: DecodeConfig
    methods: Sequence[str]
    batch_sizes: Sequence[int]

    def setting(self, method: str, **changes: Any) -> Setting:
        """One method, with these settings changed."""
        # The strategy says nothing about transformers' own generate, and is the same everywhere.
        strategy = "autoregressive" if method == TRANSFORMERS else method
        return Setting(method, replace(self.config, strategy=strategy, **changes))

    def runs(self, method: str) -> bool:
        """Whether the pair can run it at all."""
        return method == TRANSFORMERS or not STRATEGIES[method].refusal(self.pair)

    @property
    def drafting(self) -> list[str]:
        """The methods that draft, and so have rounds."""
        return [
            name for name in self.methods if name != TRANSFORMERS and STRATEGIES[name].speculative
        ]

    def over_batch_sizes(self, methods: Iterable[str]) -> tuple[Point, ...]:
        """Each method at each batch size."""
        return tuple(
            Point(method, size, self.setting(method, batch_size=size))
            for method in methods
            for size in self.batch_sizes
        )


def experiments(plan: Plan, names: Iterable[str]) -> tuple[Experiment, ...]:
    """The experiments of these names; methods that the pair cannot run are left out."""
    plan = replace(plan, methods=[name for name in plan.methods if plan.runs(name)])
    found = []
    for name in dict.fromkeys(names):
        heading = EXPERIMENTS[name]
        metrics, points = _BUILDERS[name](plan)
        found.append(Experiment(name, heading.title, heading.axis, heading.note, metrics, points))
    return tuple(found)


Built = tuple[tuple[str, ...], tuple[Point, ...]]
"""Metrics and points of an experiment."""


def _fast_but_wrong(plan: Plan) -> Built:
    names = [TRANSFORMERS, *filter(plan.runs, STRATEGIES)]
    points = tuple(Point(name, None, plan.setting(name)) for name in names)
    return ("tokens_per_second", "speedup", "exact_match"), points


def _throughput(plan: Plan) -> Built:
    return ("tokens_per_second", "speedup", "exact_match"), plan.over_batch_sizes(plan.methods)


def _overhead(plan: Plan) -> Built:
    return ("moving_share", *COSTS), plan.over_batch_sizes(plan.drafting)


def _lengths(plan: Plan) -> Built:
    points = tuple(
        Point(
            f"{lengths} lengths",
            size,
            replace(plan.setting("exspec", batch_size=size), lengths=lengths),
        )
        for lengths in ("equal", "given")
        for size in plan.batch_sizes
        if size > 1
    )
    return ("group_rate", "moving_share", "tokens_per_second"), points


def _window(plan: Plan) -> Built:
    points = tuple(
        Point(f"batch of {size}", window, plan.setting("exspec", batch_size=size, window=window))
        for size in GROUPED
        for window in WINDOWS
        if window >= size
    )
    return ("group_rate", "moving_share", "tokens_per_second"), points


def _draft_length(plan: Plan) -> Built:
    points = tuple(
        Point(method, width, plan.setting(method, draft_tokens=width))
        for method in plan.drafting
        for width in DRAFT_LENGTHS
    )
    return ("tokens_per_second", "verify_milliseconds", "draft_milliseconds"), points


def _anatomy(plan: Plan) -> Built:
    points = tuple(
        Point(each.name, None, Setting(each.config.strategy, each.config))
        for each in configurations(plan.pair, plan.config)
    )
    shares = ("verify_share", "draft_share", "moving_share")
    return ("tokens_per_second", "rounds", "busy_rows", "group_rate", *COSTS, *shares), points


def _serving(plan: Plan) -> Built:
    points = tuple(
        Point(method, size, replace(plan.setting(method, batch_size=size), load=LOAD))
        for method in plan.drafting
        for size in SERVED
    )
    return ("latency_50", "latency_90", "latency_99", "tokens_per_second"), points


_BUILDERS: dict[str, Callable[[Plan], Built]] = {
    "1": _fast_but_wrong,
    "5a": _throughput,
    "5b": _overhead,
    "5c": _lengths,
    "table2": _anatomy,
    "table4": _serving,
    "window": _window,
    "k": _draft_length,
}
