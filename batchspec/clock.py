"""How long a phase took, on the device that ran it."""

from __future__ import annotations

import time

import torch


class Clock:
    """Measures one phase without making the host wait for the device.

    On CUDA two events go into the stream, and the host waits for the second only when the time is
    asked for; a bare run asks once, at its end. A phase is then the time between its events on the
    device, in which the device also waits where the host is the slower one. Everywhere else it is
    host time. That is exact on the CPU; on MPS it can be shifted between phases, because work still
    queued counts for the phase that waits for it: each verify does, as it reads its result back, so
    whole rounds are right. A synchronisation a phase would make the run slower than it is.
    """

    def __init__(self, device: torch.device) -> None:
        """Start now."""
        self._less = 0.0
        self._events = None
        if device.type == "cuda":
            self._stream = torch.cuda.current_stream(device)
            self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            self._events[0].record(self._stream)
        else:
            self._started = time.perf_counter()

    def stop(self, less: float = 0.0) -> None:
        """End the phase; `less` seconds of it belonged to an observer."""
        self._less = less
        if self._events is not None:
            self._events[1].record(self._stream)
        else:
            self._seconds = time.perf_counter() - self._started

    @property
    def seconds(self) -> float:
        """Time between start and stop; on CUDA the first look waits until the phase is over."""
        if self._events is not None:
            first, last = self._events
            last.synchronize()
            self._seconds = first.elapsed_time(last) / 1000  # from milliseconds
            self._events = None
        return max(0.0, self._seconds - self._less)
