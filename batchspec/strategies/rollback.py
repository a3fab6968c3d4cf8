"""Cut every row back to the shortest acceptance."""

from __future__ import annotations

from batchspec.acceptance import Verdict
from batchspec.strategies.base import Strategy


class Rollback(Strategy):
    """The batch never gets ragged, because longer rows give back what they won.

    Right and simple: one crop keeps all rows in step. But every row runs at the pace of the
    slowest, and verified tokens are thrown away and drafted again.
    """

    name = "rollback"
    title = "Rollback"
    summary = "cut to the shortest acceptance"
    correct = True

    def settle(self, verdict: Verdict) -> Verdict:
        """Shorten what the rows that go on have won to the least of them."""
        goes_on = [
            not row.finishes(tokens, self.eos_token_ids)
            for row, tokens in zip(self.rows, verdict.committed, strict=True)
        ]
        won = [len(tokens) for tokens, on in zip(verdict.committed, goes_on, strict=True) if on]
        shortest = min(won, default=0)
        committed = [
            tokens[:shortest] if on else tokens
            for tokens, on in zip(verdict.committed, goes_on, strict=True)
        ]
        accepted = [
            min(count, len(tokens))
            for count, tokens in zip(verdict.accepted, committed, strict=True)
        ]
        return Verdict(verdict.drafts, verdict.choices, accepted, committed)

    def synchronize(self, alive: list[int]) -> None:
        """Drop finished rows and the columns past the shortest acceptance."""
        first = alive[0]
        row = self.rows[first]
        for cached, lag in self.lacking:
            cached.crop(cached.pads[first] + row.length - lag)
            cached.select(alive)
