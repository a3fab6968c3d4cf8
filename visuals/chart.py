"""Charts of a benchmark: pure functions from what was measured to Plotly figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from batchspec.bench.metrics import METRICS
from visuals.palette import INK, LINE, PHASES, SERIES

if TYPE_CHECKING:
    from batchspec.bench.result import Benchmark, Experiment, Measurement, Point

HEIGHT = 340
BAR = 34
"""Pixels of a chart's height, and of each bar of a chart that lies on its side."""

_OTHERS = (SERIES["eqspec"], SERIES["exspec"], SERIES["ragged"], SERIES["holes"])
"""Looks of series that are no methods, in turn."""


def charts(benchmark: Benchmark) -> list[go.Figure]:
    """All charts of a benchmark, in the order of its experiments."""
    return [figure for each in benchmark.experiments for figure in charts_of(benchmark, each)]


def charts_of(benchmark: Benchmark, experiment: Experiment) -> list[go.Figure]:
    """The charts of one experiment; none where nothing of it was run."""
    if not benchmark.measured(experiment):
        return []
    return [draw(benchmark, experiment) for draw in _DRAWN[experiment.name]]


def line_chart(benchmark: Benchmark, experiment: Experiment, name: str) -> go.Figure:
    """A metric along an experiment's axis, a line a series, its bars from least to greatest.

    Args:
        benchmark: what was measured.
        experiment: one that has an axis.
        name: of a metric, see `METRICS`.
    """
    figure = _figure(experiment.title, HEIGHT)
    lines: dict[str, list[tuple[Point, Measurement]]] = {}
    for point, found in benchmark.measured(experiment):
        lines.setdefault(point.series, []).append((point, found))
    for number, (series, points) in enumerate(lines.items()):
        colour, symbol = SERIES.get(series, _OTHERS[number % len(_OTHERS)])
        known = [
            (str(point.x), spread)
            for point, found in points
            if (spread := METRICS[name].spread(benchmark, found))
        ]
        if known:
            places, spreads = zip(*known, strict=True)
            figure.add_scatter(
                x=places,
                y=[spread.median for spread in spreads],
                error_y=_range(spreads, colour),
                name=series,
                mode="lines+markers",
                line={"color": colour, "width": 2},
                marker={"symbol": symbol, "size": 8},
            )
    xs = sorted({point.x for point in experiment.points if point.x is not None})
    figure.update_xaxes(
        title_text=experiment.axis,
        type="category",
        categoryorder="array",
        categoryarray=list(map(str, xs)),
    )
    figure.update_yaxes(title_text=METRICS[name].title, rangemode="tozero")
    _format(figure.update_yaxes, name)
    return figure


def bar_chart(benchmark: Benchmark, experiment: Experiment, name: str) -> go.Figure:
    """A metric of each setting, and which of them wrote other tokens than the target alone."""
    measured = benchmark.measured(experiment)
    figure = _figure(experiment.title, 110 + BAR * len(measured))
    metric = METRICS[name]
    spreads = [metric.spread(benchmark, found) for _, found in measured]
    rates = [found.exact_match_rate for _, found in measured]
    figure.add_bar(
        orientation="h",
        y=[point.series for point, _ in measured],
        x=[spread.median if spread else None for spread in spreads],
        error_x=_range([spread for spread in spreads if spread], INK),
        marker={
            "color": [SERIES["eqspec" if rate == 1 else "pad"][0] for rate in rates],
            "pattern": {
                "shape": ["" if rate == 1 else "/" for rate in rates],
                "fillmode": "overlay",
                "fgcolor": "rgba(255,255,255,0.25)",
            },
        },
        text=["✓ all rows equal" if rate == 1 else f"✗ {rate:.0%} of rows equal" for rate in rates],
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": "#ffffff"},
        showlegend=False,
    )
    figure.update_xaxes(title_text=metric.title, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    _format(figure.update_xaxes, name)
    return figure


def phase_chart(benchmark: Benchmark, experiment: Experiment) -> go.Figure:
    """Milliseconds of a round by phase, a bar a setting; medians."""
    measured = [
        (point, found) for point, found in benchmark.measured(experiment) if found.runs[0].phases
    ]
    figure = _figure("Where a round's time goes", 110 + BAR * len(measured))
    for phase, colour in PHASES.items():
        metric = METRICS[f"{phase}_milliseconds"]
        spreads = [metric.spread(benchmark, found) for _, found in measured]
        figure.add_bar(
            orientation="h",
            y=[
                point.series if point.x is None else f"{point.series}, {point.x}"
                for point, _ in measured
            ],
            x=[spread.median if spread else None for spread in spreads],
            name=phase,
            marker={"color": colour},
            hovertemplate=f"%{{y}}: {phase} %{{x:.2f}} ms<extra></extra>",
        )
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title_text="ms a round", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def _lines(name: str) -> Callable[[Benchmark, Experiment], go.Figure]:
    return lambda benchmark, experiment: line_chart(benchmark, experiment, name)


def _bars(name: str) -> Callable[[Benchmark, Experiment], go.Figure]:
    return lambda benchmark, experiment: bar_chart(benchmark, experiment, name)


_DRAWN: dict[str, tuple[Callable[[Benchmark, Experiment], go.Figure], ...]] = {
    "1": (_bars("tokens_per_second"),),
    "5a": (_lines("tokens_per_second"), _lines("speedup")),
    "5b": (_lines("moving_share"), phase_chart),
    "5c": (_lines("group_rate"),),
    "table2": (phase_chart,),
    "table4": (_lines("latency_50"), _lines("latency_99")),
    "window": (_lines("group_rate"),),
    "k": (_lines("tokens_per_second"),),
}
"""The charts of each experiment."""


def _figure(title: str, height: int) -> go.Figure:
    axis = {"showgrid": True, "gridcolor": LINE, "zeroline": False, "linecolor": LINE, "ticks": ""}
    return go.Figure(
        layout={
            "template": "none",
            "title": {"text": title, "font": {"size": 14}, "x": 0, "xref": "paper"},
            "height": height,
            "margin": {"l": 16, "r": 16, "t": 72, "b": 16},
            "font": {"family": "Inter, system-ui, sans-serif", "size": 12, "color": INK},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "bargap": 0.3,
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.02,
                "yanchor": "bottom",
                "traceorder": "normal",
            },
            "xaxis": {**axis, "automargin": True},
            "yaxis": {**axis, "automargin": True},
        }
    )


def _range(spreads: Any, colour: str) -> dict[str, Any]:
    """Error bars from the least to the greatest repeat."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [spread.highest - spread.median for spread in spreads],
        "arrayminus": [spread.median - spread.lowest for spread in spreads],
        "color": colour,
        "thickness": 1.2,
        "width": 3,
    }


def _format(update: Callable[..., Any], name: str) -> None:
    if METRICS[name].form.endswith("%"):
        update(tickformat=".0%")
