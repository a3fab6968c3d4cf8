"""What goes to the terminal: text made harmless, and signs of life."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

UNLIMITED = 100_000
"""Columns of an output that is no terminal: lines are for programs, which wrap nothing."""


class Output(Console):
    """Standard output, on which all text is data and never markup."""

    def __init__(self) -> None:
        super().__init__(file=sys.stdout, markup=False, highlight=False, emoji=False)
        if not self.is_terminal:
            self.width = UNLIMITED

    def on_broken_pipe(self) -> None:
        """Leave it to the caller, whose exit code 1 means something else than rich's."""
        raise BrokenPipeError


def visible(text: str) -> str:
    """`text` on one line, with all that would command a terminal shown instead of sent."""
    return "".join(map(_visible_character, text))


@contextmanager
def waiting(words: str) -> Iterator[Callable[[str], None]]:
    """Show on standard error, if that is a terminal, what is under way and for how long.

    Yields:
        A function that changes the words.
    """
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    # Few refreshes: they take time from what is measured.
    with Progress(
        *columns,
        console=console,
        transient=True,
        refresh_per_second=4,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(visible(words), total=None)
        yield lambda words: progress.update(task, description=visible(words))


def _visible_character(character: str) -> str:
    if character == "\n":
        return "↵"
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    # Directions and separators reorder or break a line; format characters that join are harmless.
    if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} or (
        unicodedata.bidirectional(character) in _DIRECTIONS
    ):
        return f"<U+{code:04X}>"
    return character


_DIRECTIONS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
