"""How far loading is, for whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tqdm.auto import tqdm

Observer = Callable[[str, float | None], None]
"""Told what is being done, and which share of it, 0 to 1, is; None where nobody knows."""


def nobody(words: str, share: float | None) -> None:
    """An observer that looks away."""


def told_bar(words: str, observe: Observer, unit: str) -> type[tqdm[Any]]:
    """A class of progress bars that are told instead of drawn.

    Args:
        words: what is being done.
        observe: is told.
        unit: what the bars that matter count; a library may draw others beside them.
    """
    furthest = 0.0

    class Bar(tqdm):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            self._matters = settings.get("unit", "it") == unit
            settings.pop("name", None)
            super().__init__(*arguments, **{**settings, "disable": True})

        def __iter__(self) -> Iterator[Any]:
            for item in self.iterable:
                yield item
                self.update()

        def update(self, n: float | None = 1) -> None:
            nonlocal furthest
            self.n += n or 0
            # Several bars may count the same bytes, on their way and on the disk.
            if self._matters and self.total:
                furthest = max(furthest, min(1.0, self.n / self.total))
                observe(words, furthest)

    return Bar
