"""Charts show the benchmark's numbers, in a look of their own, without torch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from batchspec import DecodeConfig
from batchspec.bench.experiments import Plan
from batchspec.bench.measuring import measure
from batchspec.bench.metrics import METRICS
from batchspec.bench.names import EXPERIMENTS
from batchspec.bench.result import Benchmark
from tiny import ROWS, shared_pair
from visuals.chart import bar_chart, charts, line_chart, phase_chart
from visuals.palette import PHASES

CONFIG = DecodeConfig(max_new_tokens=8, batch_size=2, eos_token_ids=())


@cache
def benchmark() -> Benchmark:
    plan = Plan(shared_pair(), CONFIG, ("transformers", "eqspec", "exspec", "ragged"), (1, 3))
    names = ("1", "5a", "5b", "5c", "table2", "table4")
    return list(measure(plan, ROWS, names, 2))[-1].benchmark


def experiment(name: str) -> Any:
    return next(each for each in benchmark().experiments if each.name == name)


@pytest.mark.parametrize("name", ["tokens_per_second", "speedup", "moving_share"])
def test_a_line_has_the_medians_and_ranges(name: str) -> None:
    figure = line_chart(benchmark(), experiment("5a"), name)
    measured = benchmark().measured(experiment("5a"))
    lines = {trace.name: trace for trace in figure.data}
    assert ("transformers" in lines) is (name != "moving_share")
    for series, trace in lines.items():
        spreads = [
            METRICS[name].spread(benchmark(), found)
            for point, found in measured
            if point.series == series
        ]
        assert list(trace.x) == ["1", "3"]
        for place, spread in enumerate(spreads):
            assert spread is not None
            assert trace.y[place] == spread.median
            assert trace.error_y.array[place] == spread.highest - spread.median
            assert trace.error_y.arrayminus[place] == spread.median - spread.lowest


def test_bars_say_which_method_is_wrong() -> None:
    (bars,) = bar_chart(benchmark(), experiment("1"), "tokens_per_second").data
    measured = benchmark().measured(experiment("1"))
    assert list(bars.y) == [point.series for point, _ in measured]
    for (_, found), words, shape in zip(
        measured, bars.text, bars.marker.pattern.shape, strict=True
    ):
        assert ("✓" in words) is (found.exact_match_rate == 1) is (shape == "")
    assert any("✗" in words for words in bars.text)


def test_phases_are_stacked() -> None:
    figure = phase_chart(benchmark(), experiment("table2"))
    assert [trace.name for trace in figure.data] == list(PHASES)
    assert figure.layout.barmode == "stack"
    for place, (_, found) in enumerate(benchmark().measured(experiment("table2"))):
        shown = sum(trace.x[place] for trace in figure.data)
        run = found.runs[0]
        spent = [
            1000 * (sum(each.phases.values()) - each.phases["prefill"]) / run.counts["rounds"]
            for each in found.runs
        ]
        assert min(spent) * 0.5 < shown < max(spent) * 1.5


def test_every_experiment_has_charts_of_one_design() -> None:
    whole = benchmark()
    drawn = charts(whole)
    assert len(drawn) == 9
    for figure in drawn:
        assert figure.layout.height >= 200 and figure.layout.title.text
        assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert figure.layout.template.layout.colorway is None
    others = tuple(replace(whole.experiments[1], name=name) for name in EXPERIMENTS)
    assert len(charts(replace(whole, experiments=others))) >= len(EXPERIMENTS)


def test_what_never_ran_is_not_drawn() -> None:
    plan = Plan(shared_pair(), CONFIG, ("eqspec",), (1,))
    first = next(measure(plan, ROWS, ("5a",), 1))
    assert charts(first.benchmark) == []


def test_charts_need_no_torch() -> None:
    code = (
        "import sys, visuals.chart, batchspec.bench.grid\n"
        "assert not {'torch', 'transformers', 'gradio'} & set(sys.modules)"
    )
    root = Path(__file__).resolve().parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=120).returncode == 0
