"""Which lines of a function run."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from textwrap import dedent
from types import FrameType
from typing import Any


class Lines:
    """Watches one function, for an observer; nobody else pays for it.

    Attributes:
        source: the function's text without its indent; empty where it has no file.
        first: the number of its first line in that file, 0 where it has none.
        seconds: time spent on noting lines since the last `take`. What the interpreter spends on
            asking about other functions is not in it: measured at 0.04 ms a round, 5 % of EQSPEC's
            synchronize over 8 rows of the storyteller on a CPU.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Watch `function` from the next `run` on."""
        self._code = function.__code__
        try:
            lines, self.first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            lines, self.first = [], 0
        self.source = dedent("".join(lines))
        self._ran: set[int] = set()
        self.seconds = 0.0

    def run(self, work: Callable[[], None]) -> None:
        """Run `work`, noting every line of the function that it comes to."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            work()
        finally:
            sys.settrace(before)

    def take(self) -> tuple[int, ...]:
        """The lines that ran since the last time, in order."""
        ran, self._ran, self.seconds = self._ran, set(), 0.0
        return tuple(sorted(ran))

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._note if frame.f_code is self._code else None

    def _note(self, frame: FrameType, event: str, _argument: Any) -> Any:
        started = time.perf_counter()
        if event == "line":
            self._ran.add(frame.f_lineno)
        self.seconds += time.perf_counter() - started
        return self._note
