"""A phase's time: of the host, or between two events on a device that nobody waits for."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from batchspec import DecodeConfig, decode
from batchspec import clock as clock_module
from batchspec.clock import Clock
from batchspec.generation import Stats
from tiny import ROWS, shared_pair


class Event:
    """A CUDA event on a device whose every record takes a tenth of a second."""

    now = 0.0
    waited = 0

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.at: float | None = None

    def record(self, stream: str) -> None:
        """Take a tenth of a second."""
        assert stream == "stream of cuda:0"
        Event.now += 100.0
        self.at = Event.now

    def synchronize(self) -> None:
        """Count who waits."""
        assert self.at is not None
        Event.waited += 1

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds, as torch gives them."""
        assert self.at is not None and end.at is not None
        return end.at - self.at


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    Event.now, Event.waited = 0.0, 0
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    return torch.device("cuda", 0)


def test_a_device_is_waited_for_when_its_time_is_asked_for(device: torch.device) -> None:
    clock = Clock(device)
    clock.stop()
    assert Event.waited == 0
    assert clock.seconds == clock.seconds == pytest.approx(0.1)
    assert Event.waited == 1


def test_a_bare_run_waits_for_the_device_at_its_end_only(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchspec.strategies.base.Clock", lambda _device: Clock(device))
    stats = Stats(batch_size=3)
    steps = 0
    for step in decode(shared_pair(), ROWS, DecodeConfig(max_new_tokens=8)):
        stats.add(step)
        steps += 1
        assert Event.waited == 0
    assert sum(stats.seconds.values()) == pytest.approx(0.1 * steps)
    assert Event.waited == steps and stats.clocks == []
    assert stats.summary()["seconds"] == stats.seconds
    assert stats.tokens_per_second == pytest.approx(stats.committed / (0.1 * steps))


def test_the_host_is_measured_where_there_are_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    now: Any = iter([10.0, 10.5])
    monkeypatch.setattr(clock_module.time, "perf_counter", lambda: next(now))
    clock = Clock(torch.device("cpu"))
    clock.stop(less=0.2)
    assert clock.seconds == clock.seconds == pytest.approx(0.3)


def test_a_phase_never_takes_less_than_nothing() -> None:
    clock = Clock(torch.device("cpu"))
    clock.stop(less=time.perf_counter())
    assert clock.seconds == 0
