"""The models that all pages and sessions share."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from html import escape
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import plotly
from huggingface_hub.utils import HFValidationError, validate_repo_id

# The engine's names are looked up when first used, so that a page is there before torch is.
import batchspec
from batchspec.errors import DecodeError
from batchspec.limits import Limits
from batchspec.presets import PRESETS, in_bytes
from pages.gpu import is_lent

OWN = "storyteller"
"""The pair that is always there."""
MODELS = threading.Lock()
"""Held by whoever runs a model."""
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PLOTLY_ADDRESS = f"/gradio_api/file={PLOTLY}"
NEWS = 0.2
"""Seconds between two words about how far loading is."""

State = tuple[str, float | None]
"""What is being done, and which share of it is, where anybody knows."""

Result = TypeVar("Result")

_kept: dict[tuple[str, str], batchspec.ModelPair] = {}
# One at a time, so that two never fetch the same or fill the memory together.
_loader = ThreadPoolExecutor(1, thread_name_prefix="loader")


def pair_choices() -> list[tuple[str, str]]:
    """What people read, and the name, of every preset that this page offers."""
    limits = Limits.of_this_page()
    offered = limits.pairs if limits else tuple(PRESETS)
    return [(_described(name), name) for name in offered]


def _described(name: str) -> str:
    preset = PRESETS[name]
    return name if preset.ships else f"{name}, {in_bytes(preset.weight_bytes('bfloat16'))}"


def check_pair(name: str, draft: str) -> None:
    """Refuse what this page does not offer.

    Args:
        name: a preset, a Hub id or a folder.
        draft: `ngram`, an id or a folder; empty for the preset's own.

    Raises:
        DecodeError: it is no name, or a public page does not have it.
    """
    if not isinstance(name, str) or not isinstance(draft, str) or not name.strip():
        raise DecodeError("There is no pair: choose one, or give a Hub id or a folder.")
    limits = Limits.of_this_page()
    if limits:
        limits.check_pair(name, draft)


def is_name(text: str) -> bool:
    """Whether a text can name models: a preset, a folder that is there, or a Hub id."""
    try:
        if text not in PRESETS and not (text and Path(text).is_dir()):
            validate_repo_id(text)
    except (HFValidationError, OSError, ValueError):
        return False
    return True


def is_here(name: str, draft: str) -> bool:
    """Whether a pair is loaded, or always loaded."""
    return (name, draft) in _kept or (name, draft) == (OWN, "")


def load(name: str, draft: str = "") -> Generator[State, None, batchspec.ModelPair]:
    """A pair, loaded once for all sessions; what is being done meanwhile.

    The storyteller stays; of the others the one that was loaded last.

    Raises:
        DecodeError: it cannot be loaded.
    """
    check_pair(name, draft)
    key = name.strip(), draft.strip()
    if key in _kept:
        return _kept[key]
    states: SimpleQueue[State] = SimpleQueue()
    found = _loader.submit(_load, key, states)
    while not found.done():
        try:
            state = states.get(timeout=NEWS)
            while not states.empty():
                state = states.get()
        except Empty:
            continue
        yield state
    return found.result()


def finished(work: Generator[Any, None, Result]) -> Result:
    """What a generator gives back in the end, for those who need no news."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result


def turn() -> AbstractContextManager[object]:
    """A turn at the models, inside a function of `on_gpu`; a process of its own needs none."""
    return nullcontext() if is_lent() else MODELS


def _load(key: tuple[str, str], states: SimpleQueue[State]) -> batchspec.ModelPair:
    if key not in _kept:
        _make_room()
        import torch
        from transformers.utils import logging

        # The server and the browser need a core too; small models are no faster on all of them.
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
        logging.disable_progress_bar()
        name, draft = key
        _kept[key] = batchspec.load_pair(
            name,
            draft or None,
            "cpu" if is_lent() else "auto",
            observe=lambda words, share: states.put((words, share)),
        )
    return _kept[key]


def _make_room() -> None:
    """Let go of all pairs but the storyteller; what still runs keeps its own until it ends."""
    guests = [key for key in _kept if key != (OWN, "")]
    for key in guests:
        del _kept[key]
    if guests:
        import torch

        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def warning(words: str) -> str:
    """A sentence about bad input as markup; nothing for no words."""
    return f'<p role="alert">⚠ {escape(words)}</p>' if words else ""


def news(state: State) -> str:
    """How far loading is, as markup."""
    words, share = state
    if share is None:
        return f'<p role="status">{escape(words)} …</p>'
    bar = f'<progress value="{share:.3f}"></progress>'
    return f'<p role="status">{bar} {escape(words)}, {share:.0%}</p>'
