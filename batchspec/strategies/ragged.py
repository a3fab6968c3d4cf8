"""Every row at its own length: nothing is moved, cut or padded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from batchspec.config import DecodeConfig
from batchspec.lanes import LaneModel
from batchspec.pair import ModelPair
from batchspec.row import Row
from batchspec.strategies.base import Strategy


class Ragged(Strategy):
    """A token's slot is its place in the row, so rows of any length lie side by side.

    A rejected token is overwritten by the one that takes its place, and a finished row's lane goes
    to the next prompt at once. Beyond the paper: no realignment is left to pay for.
    """

    name = "ragged"
    title = "Ragged"
    summary = "every row at its own length"
    correct = True
    needs_query_masks = True
    cached_model = LaneModel

    def __init__(
        self, pair: ModelPair, config: DecodeConfig, rows: list[Row], eos_token_ids: tuple[int, ...]
    ) -> None:
        """Prepare a run in which no row has taken over a lane yet."""
        super().__init__(pair, config, rows, eos_token_ids)
        self.entering: list[Row] = []

    @property
    def lanes(self) -> list[LaneModel]:
        """The caches, whose rows are lanes."""
        return cast(list[LaneModel], self.caches)

    @property
    def pool_rows(self) -> tuple[int, ...]:
        """The number of each lane's row; a lane that nobody takes over is given up."""
        return tuple(row.number for row in self.rows)

    def preparations(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Fill the lanes that new rows have taken over, or the whole batch."""
        if self.rows:
            self.open_lanes()
        if self.entering:
            yield "prefill", self.admit
        else:
            yield from super().preparations()

    def open_lanes(self) -> None:
        """Give lanes to rows that came after the others had begun, where the batch has room."""
        late = self.waiting[: self.config.batch_size - len(self.rows)]
        if late:
            for cached in self.lanes:
                cached.add(len(late))
            self.rows, self.waiting = self.rows + late, self.waiting[len(late) :]
            self.entering = self.entering + late

    def admit(self) -> None:
        """Cache the prompts of the new rows in their lanes; the other lanes rest."""
        for cached in self.caches:
            cached.fed_rows = [self.rows.index(row) for row in self.entering]
        self.cache_prompts(self.entering)
        for cached in self.caches:
            cached.fed_rows = slice(None)
        self.entering = []

    def synchronize(self, alive: list[int]) -> None:
        """Put rejected tokens out of sight, and waiting rows into the lanes of finished ones."""
        done = [lane for lane in range(len(self.rows)) if lane not in alive]
        freed = done[: len(self.waiting)]
        lanes = sorted(alive + freed)
        self.hide_rejected(lanes)
        if freed:
            for cached in self.lanes:
                cached.clear([lanes.index(lane) for lane in freed])
        self.entering, self.waiting = self.waiting[: len(freed)], self.waiting[len(freed) :]
        taken = dict(zip(freed, self.entering, strict=True))
        self.rows = [taken.get(lane, row) for lane, row in enumerate(self.rows)]
