"""What a server keeps for its sessions between two requests."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from batchspec.live import LiveRun


class Runs:
    """One run a session, by keys that nobody can guess."""

    def __init__(self, most: int) -> None:
        """Keep at most this many; the one that was used longest ago makes room."""
        self._most = most
        self._runs: OrderedDict[str, LiveRun] = OrderedDict()
        self._keys: dict[str, str] = {}
        self._lock = threading.Lock()

    def open(self, session: str, run: LiveRun) -> str:
        """Keep a run in place of the session's earlier one; returns its key."""
        self.end(session)
        key = secrets.token_urlsafe(16)
        with self._lock:
            self._runs[key] = run
            self._keys[session] = key
            while len(self._runs) > self._most:
                self._runs.popitem(last=False)[1].stopped.set()
        return key

    def get(self, key: str) -> LiveRun | None:
        """The run of that key; None once it was closed or made room for others."""
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
            return self._runs.get(key)

    def close(self, key: str) -> None:
        """Stop and forget a run; an unknown key is nothing."""
        with self._lock:
            run = self._runs.pop(key, None)
        if run is not None:
            run.stopped.set()

    def end(self, session: str) -> None:
        """Stop and forget what a session has."""
        self.close(self._keys.pop(session, ""))
