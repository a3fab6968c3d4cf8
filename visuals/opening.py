"""Trace files that somebody opens, as lanes of one page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from batchspec.errors import DecodeError
from batchspec.trace import Trace
from visuals.payload import pack

LARGEST = 40_000_000
"""Characters of all files together."""
_LONGEST = 300


def opened(texts: list[Any], most: int) -> str:
    """The payload of the lanes that files hold.

    Args:
        texts: of the files; each a trace in its JSON form, or a JSON array of traces.
        most: how many lanes there may be.

    Raises:
        DecodeError: they cannot be shown; one sentence says why.
    """
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DecodeError("Trace files are text, so this cannot be one.")
    if sum(map(len, texts)) > LARGEST:
        raise DecodeError(f"The files hold more than {LARGEST // 10**6} MB of text.")
    traces = [_read(part) for text in texts for part in _parts(text, most)]
    _check(traces, most)
    return pack(traces, file=True)


def _parts(text: str, most: int) -> Iterator[str]:
    """The traces of a file, each as text."""
    if not text.lstrip().startswith("["):
        yield text
        return
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise DecodeError("This is not a trace: the file is damaged or of another kind.") from None
    _expect_room(len(content), most)
    for part in content:
        yield json.dumps(part)


def _read(text: str) -> Trace:
    try:
        return Trace.from_json(text)
    except DecodeError as error:
        words = str(error)  # it may quote what the file holds
        raise DecodeError(words if len(words) <= _LONGEST else words[:_LONGEST] + "…") from None


def _expect_room(lanes: int, most: int) -> None:
    if not 1 <= lanes <= most:
        raise DecodeError(f"There is room for 1 to {most} lanes, and the files hold {lanes}.")


def _check(traces: list[Trace], most: int) -> None:
    _expect_room(len(traces), most)
    names = [trace.label for trace in traces]
    if len(set(names)) < len(names):
        raise DecodeError(
            f"Each strategy can be opened once, and here are {', '.join(names)!r:.90}."
        )
    if any(trace.prompts != traces[0].prompts for trace in traces):
        raise DecodeError("The traces are of different prompts, so their rows do not compare.")
    if not all(trace.frames for trace in traces):
        raise DecodeError("A trace holds no phase, so there is nothing to show.")
