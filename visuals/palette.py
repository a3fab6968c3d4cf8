"""One look for every state: a colour pair (light, dark), a glyph and words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """How a state is shown; no state is told by colour alone.

    Attributes:
        fill, edge: background and accent as (light, dark) CSS colours, after Okabe and Ito.
        glyph: the sign beside the colour.
        words: the legend's explanation.
    """

    fill: tuple[str, str]
    edge: tuple[str, str]
    glyph: str
    words: str


_GREY = ("#e4e7ec", "#2f343d"), ("#596170", "#a7afbd")
_BLUE = ("#cfe5f6", "#123a57"), ("#005f96", "#6ab7ea")
_AMBER = ("#fdebc0", "#4a3608"), ("#805500", "#f0bf4c")
_GREEN = ("#cdeee1", "#0f3d31"), ("#006b4f", "#4fd0a7")
_ORANGE = ("#fbdccd", "#4f2413"), ("#a33500", "#ff9a6b")
_PLAIN = ("transparent", "transparent"), ("#596170", "#a7afbd")
_RED = ("#f8d3d0", "#5c1414"), ("#b3001b", "#ff8a80")
_VIOLET = ("#e6e0fa", "#2e2752"), ("#5b4bd6", "#b3a8ff")

LOOKS: dict[str, Look] = {
    "committed": Look(*_GREY, "", "prompt or committed earlier"),
    "draft": Look(*_VIOLET, "?", "drafted, not judged yet"),
    "accepted": Look(*_BLUE, "✓", "draft the target accepts"),
    "correction": Look(*_AMBER, "✎", "correction: the target's own token after a rejection"),
    "bonus": Look(*_GREEN, "+", "bonus: the target's own token after K accepted"),
    "rejected": Look(*_ORANGE, "✗", "draft the target rejects"),
    "pad": Look(*_PLAIN, "·", "pad: filler that nobody may see"),
    "hole": Look(*_PLAIN, "○", "hole: rejected and masked"),
    "stale": Look(*_RED, "!", "stale: rejected, but still visible (a fault)"),
}
"""By state of a token or cache slot."""

LEGEND = tuple(LOOKS)
"""The states explained below the lanes, in reading order."""

SERIES = {
    "transformers": ("#7b8494", "square"),
    "autoregressive": ("#a3703d", "diamond"),
    "eqspec": ("#2f86bd", "circle"),
    "exspec": ("#00946c", "triangle-up"),
    "ragged": ("#7a6ad8", "star"),
    "rollback": ("#c0669a", "pentagon"),
    "holes": ("#b08600", "hexagon"),
    "pad": ("#d55e00", "x"),
    "mask": ("#d55e00", "cross"),
}
"""Colour and marker of each method in charts, after Okabe and Ito; legible on light and dark."""

PHASES = {
    "schedule": "#00946c",
    "draft": "#7a6ad8",
    "verify": "#2f86bd",
    "synchronize": "#d55e00",
}
"""Colour of each phase in charts."""

INK, LINE = "#7b8494", "rgba(123,132,148,0.25)"
"""Text and lines of a chart, legible on light and dark."""


def palette_css() -> str:
    """CSS variables `--STATE-fill` and `--STATE-edge` for both themes."""
    blocks = []
    for place, scope in enumerate(("#player", ".dark #player")):
        lines = [
            f"--{name}-fill:{look.fill[place]};--{name}-edge:{look.edge[place]}"
            for name, look in LOOKS.items()
        ]
        blocks.append(f"{scope}{{{';'.join(lines)}}}")
    return "\n".join(blocks)


def legend_markup() -> str:
    """The legend as HTML: swatch, glyph and words of every state."""
    entries = [(name, LOOKS[name].glyph, LOOKS[name].words) for name in LEGEND]
    entries.append(("off-value", "≠", "K/V differ from a clean run's"))
    entries.append(("wrong", "7", "wrong position ID, leak or loss in a mask"))
    return "".join(
        f'<span class="entry"><i class="swatch {name}">{glyph}</i>{words}</span>'
        for name, glyph, words in entries
    )
