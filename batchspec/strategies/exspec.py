"""EXSPEC: a pool of rows, batched where lengths are equal (arXiv 2510.22876, algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from batchspec.config import DecodeConfig
from batchspec.pair import ModelPair
from batchspec.pool import Pool
from batchspec.row import Row
from batchspec.strategies.base import Strategy


class ExSpec(Strategy):
    """Scheduling instead of moving: rows of equal length need no pads and so no realignment.

    Up to `window` rows are under way, each in a lane of a pool. Every round runs the largest group
    of equal lengths that fills the batch; only where there is none are rows of different lengths
    padded together. A finished row's lane goes to the next prompt at once.
    """

    name = "exspec"
    title = "EXSPEC"
    summary = "equal-length groups from a pool"
    correct = True

    def __init__(
        self, pair: ModelPair, config: DecodeConfig, rows: list[Row], eos_token_ids: tuple[int, ...]
    ) -> None:
        """Make the pool's lanes, empty."""
        super().__init__(pair, config, rows, eos_token_ids)
        longest = max(len(row.prompt) + row.budget for row in rows)
        lanes = min(config.window, len(rows))
        self.pools = [Pool(cached, lanes, longest) for cached in self.caches]
        self.free = list(range(lanes))
        self.pool: list[Row] = []
        self.lane: dict[int, int] = {}
        self.lags: dict[int, int] = {}
        self.waited: dict[int, int] = {}

    @property
    def unfinished(self) -> bool:
        """Whether any row waits or is under way."""
        return bool(self.waiting or self.pool)

    @property
    def pool_rows(self) -> tuple[int, ...]:
        """Per lane of the pool the number of its row, -1 where it is free."""
        held = {lane: number for number, lane in self.lane.items()}
        return tuple(held.get(lane, -1) for lane in range(len(self.pools[0].stored)))

    def preparations(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Fill free lanes with waiting prompts, then choose the rows of this round."""
        while self.waiting and self.free:
            yield "prefill", self.admit
        yield "schedule", self.schedule

    def admit(self) -> None:
        """Prefill as many waiting prompts as lanes are free and a batch holds."""
        self.park()
        self.start(min(len(self.free), self.config.batch_size))
        for row in self.rows:
            self.lane[row.number] = self.free.pop(0)
            self.lags[row.number] = 1
            self.waited[row.number] = 0
        self.pool += self.rows

    def schedule(self) -> None:
        """Choose a group; move its K/V only if it is not the batch that just ran."""
        group = self.choose()
        chosen = {row.number for row in group}
        for row in self.pool:
            self.waited[row.number] = 0 if row.number in chosen else self.waited[row.number] + 1
        if chosen == {row.number for row in self.rows}:
            places = list(range(len(self.rows)))
            for cached, lag in self.lacking:
                self.realign(cached, places, [row.length - lag for row in self.rows])
            return
        self.park()
        self.rows = group
        self.lag = max(self.lags[row.number] for row in group)
        lanes = [self.lane[row.number] for row in group]
        for pool, (cached, lag) in zip(self.pools, self.lacking, strict=True):
            kept = [max(0, row.length - lag) for row in group]
            pool.load(lanes, kept)
            self.note_moved(cached, sum(kept))
        self.realigned = len({row.length for row in group}) > 1

    def choose(self) -> list[Row]:
        """A full group of one length bucket, else the rows nearest to the longest-waiting one."""
        size = min(self.config.batch_size, len(self.pool))
        oldest = max(self.pool, key=lambda row: self.waited[row.number])
        starving = self.waited[oldest.number] >= self.config.window
        if self.config.grouping and not starving:
            buckets: dict[int, list[Row]] = {}
            for row in self.pool:
                buckets.setdefault(row.length // self.config.length_bucket, []).append(row)
            # Where several are full, the one whose rows have waited longest.
            full = [rows for rows in buckets.values() if len(rows) >= size]
            if full:
                best = max(full, key=lambda rows: sum(self.waited[row.number] for row in rows))
                return sorted(best, key=self._waiting_first)[:size]
        nearest = sorted(
            self.pool, key=lambda row: (row is not oldest, abs(row.length - oldest.length))
        )
        return nearest[:size]

    def _waiting_first(self, row: Row) -> tuple[int, int]:
        return -self.waited[row.number], row.number

    def park(self) -> None:
        """Put the batch's rows back into their lanes."""
        if not self.rows:
            return
        lanes = [self.lane[row.number] for row in self.rows]
        for pool, (_, lag) in zip(self.pools, self.lacking, strict=True):
            pool.store(lanes, [row.length - lag for row in self.rows])
        for row in self.rows:
            self.lags[row.number] = self.lag
        self.rows = []

    def synchronize(self, alive: list[int]) -> None:
        """Hide rejected slots; what is to be moved is decided by the next schedule."""
        self.hide_rejected(alive)

    def commit_and_synchronize(self) -> None:
        """Finish the round as always, then free the lanes of rows that are done."""
        super().commit_and_synchronize()
        for row in [row for row in self.pool if row.finished]:
            self.pool.remove(row)
            lane = self.lane.pop(row.number)
            self.free.append(lane)
            for pool in self.pools:
                pool.clear(lane)
