"""Rows that arrive one by one, as at a server."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from random import Random

from batchspec.config import DecodeConfig
from batchspec.decoding import start_strategy
from batchspec.generation import Stats
from batchspec.pair import ModelPair, evaluation_mode
from batchspec.row import Row


@dataclass(frozen=True)
class Served:
    """How rows fared.

    Attributes:
        stats: counts, and seconds of each phase.
        seconds: from the first arrival to the last token.
        latencies: from each row's arrival to its last token, in the order of the rows.
    """

    stats: Stats
    seconds: float
    latencies: tuple[float, ...]


def poisson_arrivals(count: int, rate: float, seed: int) -> list[float]:
    """Seconds at which rows arrive, `rate` of them a second on average, the first at 0."""
    random = Random(seed)
    times = [0.0]
    while len(times) < count:
        times.append(times[-1] + random.expovariate(rate))
    return times[:count]


def serve(pair: ModelPair, rows: list[Row], arrivals: list[float], config: DecodeConfig) -> Served:
    """Decode rows that a strategy gets to see only when they have arrived.

    The clock counts the time in which the strategy works, and skips the time in which no row is
    there, so that nothing has to be waited for.

    Args:
        pair: the models.
        rows: as `start_rows` gives them; at least one.
        arrivals: seconds at which each arrives, ascending.
        config: the settings.
    """
    strategy = start_strategy(pair, list(rows), config)
    coming, strategy.waiting = deque(zip(arrivals, rows, strict=True)), []
    stats = Stats(batch_size=config.batch_size)
    ends: dict[int, float] = {}
    clock, steps = arrivals[0], strategy.steps()
    with evaluation_mode(*pair.models):
        while coming or strategy.unfinished:
            if not strategy.unfinished:
                clock, steps = max(clock, coming[0][0]), strategy.steps()
            while coming and coming[0][0] <= clock:
                strategy.waiting = [*strategy.waiting, coming.popleft()[1]]
            started = time.perf_counter()
            step = next(steps)
            clock += time.perf_counter() - started
            stats.add(step)
            for row in step.rows:
                if row.finished:
                    ends.setdefault(row.number, clock)
    latencies = (ends[row.number] - arrived for row, arrived in zip(rows, arrivals, strict=True))
    return Served(stats, clock - arrivals[0], tuple(latencies))
