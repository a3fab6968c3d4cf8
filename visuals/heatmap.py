"""Views opened large: Plotly heatmaps over all slots, with ranges fixed for a whole trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from batchspec.trace import SLOT_STATES

if TYPE_CHECKING:
    from batchspec.trace import CacheFrame, Trace

_SLOT_TEXT = (
    "row %{y}, slot %{x}<br>%{customdata[0]} (%{customdata[1]})<br>position %{customdata[2]}, "
    "should be %{customdata[3]}<br>K/V error %{customdata[4]}<extra></extra>"
)
_STATE_COLOURS = ("#00000000", "#c9ced8", "#8d97a8", "#7a6ad8", "#e2e5ea", "#b3001b")
_MASK_COLOURS = ("#d5d9e0", "#2f86bd", "#e69f00", "#b3001b")
_BARE_AXIS = {"showgrid": False, "zeroline": False}
_MASK_WORDS = ("unseen", "seen", "lost", "leaks")


def cache_heatmap(trace: Trace, number: int | None = None, model: str = "target") -> go.Figure:
    """State of every cache slot of a frame; without a number, the empty figure of the trace."""
    figure = _heatmap(trace, "KV cache", _STATE_COLOURS, SLOT_STATES)
    if number is not None:
        _fill(figure, trace, _cache(trace, number, model), "state")
    return figure


def positions_heatmap(trace: Trace, number: int | None = None, model: str = "target") -> go.Figure:
    """Position ID of every cache slot of a frame, as it was fed."""
    figure = _heatmap(trace, "Position IDs", None, ())
    figure.data[0].update(colorscale="Viridis", zmin=0, zmax=_largest_position(trace))
    if number is not None:
        _fill(figure, trace, _cache(trace, number, model), "position")
    return figure


def mask_heatmap(trace: Trace, number: int | None = None, row: int = 0) -> go.Figure:
    """Mask of one row in the last forward of a frame: seen, unseen, leaks and losses."""
    figure = _heatmap(trace, "Attention mask", _MASK_COLOURS, _MASK_WORDS)
    figure.update_layout(yaxis={"range": None, "autorange": "reversed", "dtick": None})
    figure.data[0].update(hovertemplate="query %{y}, slot %{x}<extra></extra>")
    if number is not None and trace.frames[number].feeds:
        feed = trace.frames[number].feeds[-1]
        allowed, should = feed.allowed[row], feed.should[row]
        figure.data[0].update(z=allowed + 2 * (allowed != should))
    return figure


VIEWS: dict[str, Callable[[Trace], go.Figure]] = {
    "cache": cache_heatmap,
    "positions": positions_heatmap,
    "mask": mask_heatmap,
}
"""The figure of each view, by the view's name on the page."""


def _heatmap(
    trace: Trace, title: str, colours: tuple[str, ...] | None, words: tuple[str, ...]
) -> go.Figure:
    rows = len(trace.prompts)
    slots = max((frame.target.state.shape[1] for frame in trace.frames), default=1)
    cells = go.Heatmap(z=[], xgap=1, ygap=1, hovertemplate=_SLOT_TEXT, texttemplate="%{text}")
    figure = go.Figure(cells)
    if colours:
        count = len(colours)
        scale = [
            (edge / count, colours[place]) for place in range(count) for edge in (place, place + 1)
        ]
        figure.data[0].update(
            colorscale=scale,
            zmin=-0.5,
            zmax=count - 0.5,
            colorbar={"tickvals": list(range(count)), "ticktext": list(words), "thickness": 12},
        )
    figure.update_layout(
        template="none",
        title={"text": title, "font": {"size": 14}},
        height=max(240, 120 + 26 * rows),
        margin={"l": 64, "r": 16, "t": 40, "b": 40},
        font={"family": "Inter, system-ui, sans-serif", "size": 12},
        xaxis={"title": {"text": "slot"}, "range": [-0.5, slots - 0.5], **_BARE_AXIS},
        yaxis={
            "title": {"text": "row"},
            "range": [rows - 0.5, -0.5],
            "dtick": 1,
            **_BARE_AXIS,
        },
    )
    return figure


def _cache(trace: Trace, number: int, model: str) -> CacheFrame:
    frame = trace.frames[number]
    cache = frame.target if model == "target" else frame.draft
    if cache is None:
        raise ValueError(f"{trace.title} uses no draft model, so it has no draft cache to draw.")
    return cache


def _largest_position(trace: Trace) -> int:
    return max((int(frame.target.position.max(initial=1)) for frame in trace.frames), default=1)


def _fill(figure: go.Figure, trace: Trace, cache: CacheFrame, values: str) -> None:
    """Put a cache into an empty figure, faults marked; pads and free slots have no position."""
    texts = np.array([[trace.vocabulary.get(int(t), "") for t in line] for line in cache.token])
    states = np.array([[SLOT_STATES[s] for s in line] for line in cache.state])
    z = getattr(cache, values).astype(float)
    if values == "position":
        z[np.isin(states, ("free", "pad"))] = np.nan
    faulty = cache.visible & (cache.position != cache.expected)
    parts = (texts, states, cache.position, cache.expected, cache.error)
    text = np.where(faulty, "✗", "")
    figure.data[0].update(
        z=z, text=text, customdata=np.stack([part.astype(object) for part in parts], -1)
    )
