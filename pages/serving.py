"""Runs of the page: opened by a person, run in turns, handed to the player piece by piece."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import gradio as gr

import batchspec
from batchspec.config import ACCEPTANCE_RULES
from batchspec.errors import DecodeError
from batchspec.limits import Limits
from batchspec.presets import PRESETS
from batchspec.runs import Runs
from batchspec.storyteller.example import load_example
from pages.models import MODELS, OWN, is_here, is_name, news, warning
from pages.settings import DEFAULTS, LANE_NAMES, MOST_LANES, start_run
from visuals.link import Link
from visuals.opening import opened
from visuals.payload import pack, pack_piece
from visuals.standalone import standalone_page

MOST_RUNS = 24

_opening = threading.Lock()
_runs = Runs(MOST_RUNS)


def open_page(request: gr.Request) -> list[object]:
    """What the page opens with: the recorded example, and the settings its address asks for.

    Returns:
        The settings, the player's payload, and what of the address could not be used.
    """
    query = dict(request.query_params)
    payload = pack(load_example())
    if not query.keys() & set(Link.names()):
        return [*[gr.skip()] * len(Link.names()), payload, ""]
    choices: dict[str, Sequence[str]] = {"acceptance": ACCEPTANCE_RULES}
    limits = Limits.of_this_page()
    if limits or not is_name(query.get("pair", OWN)):
        choices["pair"] = limits.pairs if limits else tuple(PRESETS)
    if limits or not is_name(query.get("draft", OWN)):
        choices["draft"] = ("", "ngram")
    link, complaints = DEFAULTS.opened(query, choices, LANE_NAMES.__contains__, MOST_LANES)
    return [*link.values(), payload, warning(" ".join(complaints))]


Answer = Iterator[tuple[object, object]]
"""The player's payload and a message, again and again until the run is there."""


def open_run(by_hand: bool, *settings: Any, session: str | None) -> Answer:
    """Check the settings and make a run of them, in place of the session's earlier one.

    Yields:
        The picture as it is and how far loading is; in the end the player's payload and an empty
        message, or the picture as it was and what is wrong.
    """
    link = Link(*settings)
    starting = start_run(link, [line for line in link.prompts.splitlines() if line.strip()])
    try:
        while True:
            yield gr.skip(), news(next(starting))
    except StopIteration as end:
        run = end.value
    except DecodeError as error:
        yield gr.skip(), warning(str(error))
        return
    key = _runs.open(str(session), run)
    yield pack(run.traces(), live=True, link=link.query(), run=key, by_hand=by_hand), ""


def open_to_run(request: gr.Request, *settings: Any) -> Answer:
    """A run that the player asks to run on; arguments and result as for `open_run`."""
    yield from open_run(False, *settings, session=request.session_hash)


def open_by_hand(request: gr.Request, *settings: Any) -> Answer:
    """A run that the player asks for one phase at a time; as `open_run`."""
    yield from open_run(True, *settings, session=request.session_hash)


def open_link(request: gr.Request, *settings: Any) -> Answer:
    """As `open_to_run`, for the settings of an address; what was said of the address stays.

    An address alone makes nobody fetch models: that takes a press of the button.
    """
    link = Link(*settings)
    if not is_here(link.pair, link.draft):
        asked = f"The link's pair {link.pair!r:.80} is not loaded yet: press Run to load it."
        yield gr.skip(), warning(asked)
        return
    for payload, words in open_to_run(request, *settings):
        yield payload, words or gr.skip()


def leave(request: gr.Request) -> None:
    """Forget what a session that is gone had."""
    _runs.end(str(request.session_hash))


def run_on(event: gr.EventData) -> None:
    """Run the phases of the run that the player names until it ends or somebody stops it."""
    run = _runs.get(event.run)
    while run is not None and not (run.finished or run.stopped.is_set()):
        _advance(run)
        time.sleep(0.001)  # whoever waits for the models gets them


def _advance(run: batchspec.LiveRun) -> None:
    try:
        with MODELS:
            run.advance()
    except DecodeError as error:
        run.failure = str(error)
        run.stopped.set()
    except Exception as error:
        run.failure = f"The run broke off: {type(error).__name__}: {error}"
        run.stopped.set()
        raise


def frames(request: list[Any]) -> str | None:
    """What a run has gained; asked for by the player, which keeps what it has.

    Args:
        request: the run's key, and how many frames of each lane the player has.

    Returns:
        A piece as `pack_piece` makes it; None where the run is gone.
    """
    key, since = request
    run = _runs.get(key)
    if run is None:
        return None
    with run.lock:
        if run.finished or run.failure:  # the player has everything now
            _runs.close(key)
        more = {"ended": run.ended, "share": run.share, "failure": run.failure}
        return pack_piece(run.traces(), since, more)


def advance(request: list[Any]) -> str | None:
    """Run the next phase of a run on the models; arguments and result are those of `frames`."""
    run = _runs.get(request[0])
    if run is not None and not run.finished:
        _advance(run)
    return frames(request)


def stop(key: str) -> None:
    """Pause a run after the phase that is under way."""
    run = _runs.get(key)
    if run is not None:
        run.stopped.set()


def resume(key: str) -> None:
    """Let a paused run be run on."""
    run = _runs.get(key)
    if run is not None:
        run.stopped.clear()


def blank_page(_: object) -> list[str]:
    """What stands before and after the payload in a file that needs no server."""
    return standalone_page("\0").split("\0")


def open_traces(texts: list[Any]) -> dict[str, str]:
    """What the player shows of the trace files that somebody opened, or why it cannot."""
    try:
        with _opening:  # one at a time, so that memory is bounded
            return {"payload": opened(texts, MOST_LANES)}
    except DecodeError as error:
        return {"failure": str(error)}
