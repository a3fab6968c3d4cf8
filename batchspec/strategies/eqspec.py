"""EQSPEC: unpad, append, repad (arXiv 2510.22876, algorithm 1)."""

from __future__ import annotations

from batchspec.strategies.base import Strategy


class EqSpec(Strategy):
    """After every round all rows end at the same slot again, each behind its own left pads."""

    name = "eqspec"
    title = "EQSPEC"
    summary = "unpad, append, repad"
    correct = True

    def synchronize(self, alive: list[int]) -> None:
        """Keep each row's committed K/V and shift it until the right edges meet."""
        for cached, lag in self.lacking:
            self.realign(cached, alive, [self.rows[place].length - lag for place in alive])
