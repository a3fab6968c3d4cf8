"""Leave rejected tokens in the cache and mask them: once wrong, once right."""

from __future__ import annotations

from torch import Tensor

from batchspec.cached_model import CachedModel
from batchspec.strategies.base import Strategy


class Holes(Strategy):
    """Nothing is moved or cut: rejected slots turn into holes that no query sees.

    Right, because positions count tokens and so skip the holes. The price is the cache: every
    round adds K + 1 slots to every row, whatever was accepted.
    """

    name = "holes"
    title = "Holes"
    summary = "mask rejected slots, count tokens"
    correct = True
    leaves_holes = True

    def synchronize(self, alive: list[int]) -> None:
        """Hide every slot past the tokens a row keeps."""
        self.hide_rejected(alive)


class Mask(Holes):
    """`Holes` with one line changed: positions count slots, and so the holes too.

    The mask is right and the output is not: after a rejection a row's tokens lie further apart
    than they should, by one position a hole.
    """

    name = "mask"
    title = "Mask"
    summary = "mask rejected slots, count slots"
    correct = False

    def positions(self, cached: CachedModel, index: Tensor, slot: Tensor) -> Tensor:
        """Count slots from the row's first token on, holes included."""
        return self.positions_by_slot(cached, slot)
