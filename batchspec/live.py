"""Runs that a person drives: several strategies side by side, one phase at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from batchspec.clean import CleanMemo, forget_passed
from batchspec.config import DecodeConfig
from batchspec.decoding import Prompts
from batchspec.memory import memory_told
from batchspec.pair import ModelPair
from batchspec.recorder import Recorder
from batchspec.trace import PHASES, Frame, Trace

_START, _END = (0, -1, 0), (1 << 62, 0, 0)


class LiveRun:
    """Strategies on the same prompts, advanced together and watched by recorders.

    Attributes:
        recorders: one per lane.
        lock: held while a phase runs and while the run is read.
        stopped: set by whoever wants the run to pause after the phase that is under way.
        failure: why a phase could not be run, in a sentence.
    """

    def __init__(self, pair: ModelPair, prompts: Prompts, configs: Sequence[DecodeConfig]) -> None:
        """Check the input; no model runs yet.

        Raises:
            DecodeError: as `decode` does.
        """
        self._memo: CleanMemo = {}
        self.recorders = [Recorder(pair, prompts, config, self._memo) for config in configs]
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.failure = ""
        self._runs: list[Iterator[Frame]] = [recorder.run() for recorder in self.recorders]
        self._places = [_START for _ in self.recorders]
        self._whole: list[Trace] | None = None

    @property
    def finished(self) -> bool:
        """Whether every row of every lane is done."""
        return min(self._places) == _END

    @property
    def share(self) -> float:
        """How much is done, 0 to 1, counted in the new tokens that the rows may take."""
        if self.finished:
            return 1.0
        return sum(recorder.share for recorder in self.recorders) / len(self.recorders)

    def advance(self) -> None:
        """Run the next phase: every lane comes past the earliest place that one is at.

        A place is a round, a phase, and how many such phases came just before it in the round.

        At the end the target is run alone on the rows that left it.

        Raises:
            DecodeError: memory ran out, be it in the recorders' own forwards.
        """
        with self.lock, memory_told():
            earliest = min(self._places)
            while min(self._places) == earliest and not self.finished:
                self._step(self._places.index(earliest))
            settled = [row for recorder in self.recorders for row in recorder.settled]
            forget_passed(self._memo, settled)
            if self.finished and self._whole is None:
                known = {
                    number: tokens
                    for recorder in self.recorders
                    for number, tokens in recorder.agreed.items()
                }
                self._whole = [recorder.trace(known) for recorder in self.recorders]

    def _step(self, lane: int) -> None:
        frame = next(self._runs[lane], None)
        if frame is None or self.recorders[lane].finished:
            self._places[lane] = _END
        else:
            *before, alike = self._places[lane]
            place = frame.round, PHASES.index(frame.phase)
            self._places[lane] = *place, alike + 1 if tuple(before) == place else 0

    def traces(self) -> list[Trace]:
        """The traces so far, one per lane; hold `lock` while the run goes on."""
        return self._whole or [recorder.trace_so_far() for recorder in self.recorders]

    @property
    def ended(self) -> list[bool]:
        """Which lanes have come to their end."""
        return [place == _END for place in self._places]
