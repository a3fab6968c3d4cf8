"""The browser player: one page part that steps a payload without the server."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from visuals.palette import LOOKS, legend_markup, palette_css

_FOLDER = Path(__file__).parent / "player"
_SCRIPTS = (
    *("trace", "timeline", "rows", "tokens", "slots", "mask", "verdict", "history", "ledger"),
    *("pool", "source", "table", "card", "plotly", "large"),
    *("trace_file", "slot_table", "picture", "page_file", "import"),
    *("player", "highlight", "transport", "address", "live", "share"),
)


def player_markup() -> str:
    """The player's constant HTML; its script fills it from a payload."""
    return _read("template.html").replace("@legend", legend_markup())


def player_css() -> str:
    """The player's style sheet, palette included."""
    return palette_css() + _read("player.css") + _read("share.css")


def player_script() -> str:
    """The player's script; it expects `element`, `props` and `watch` in its scope."""
    return "\n".join(_read(f"{name}.js") for name in _SCRIPTS)


def charts_script() -> str:
    """The script of a page part that draws Plotly figures; it expects what the player's does."""
    return _read("plotly.js") + _read("charts.js")


def player_palette() -> dict[str, Any]:
    """Glyph and words of every state, as the script reads them."""
    return {name: asdict(look) for name, look in LOOKS.items()}


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
