"""The models that all pages and sessions share."""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from html import escape
from pathlib import Path

import plotly

# The engine's names are looked up when first used, so that a page is there before torch is.
import batchspec
from batchspec.errors import DecodeError

PAIRS = ("storyteller",)
MODELS = threading.Lock()
"""Held by whoever runs a model."""
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PLOTLY_ADDRESS = f"/gradio_api/file={PLOTLY}"
_loading = threading.Lock()


@lru_cache(maxsize=2)
def _load(name: str) -> batchspec.ModelPair:
    import torch
    from transformers.utils import logging

    # The server and the browser need a core too; small models are no faster on all of them.
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    logging.disable_progress_bar()
    return batchspec.load_pair(name)


def pair_named(name: str) -> batchspec.ModelPair:
    """The pair of that name, loaded once for all sessions.

    Raises:
        DecodeError: there is none.
    """
    if name not in PAIRS:
        raise DecodeError(f"There is no pair {name!r:.60} here: choose one of {', '.join(PAIRS)}.")
    with _loading:
        return _load(name)


def warning(words: str) -> str:
    """A sentence about bad input as markup; nothing for no words."""
    return f'<p role="alert">⚠ {escape(words)}</p>' if words else ""
