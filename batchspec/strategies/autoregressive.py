"""The yardstick: the target alone, one token a step."""

from __future__ import annotations

from batchspec.strategies.base import Strategy


class Autoregressive(Strategy):
    """Plain decoding by the target; with one row a batch it is the reference."""

    name = "autoregressive"
    title = "Autoregressive"
    summary = "one token a step"
    correct = True
    speculative = False

    def synchronize(self, alive: list[int]) -> None:
        """Nothing was rejected: only finished rows leave."""
        self.target.select(alive)
