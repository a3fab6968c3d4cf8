"""The real page in a process of its own, and a Chromium to look at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
READY = "#player[data-frame]"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def served_page(folder: Path, **more: str) -> Iterator[str]:
    """Serve `python app.py` offline, with an empty model cache and no home; yields its address.

    Args:
        folder: an empty folder for the log and the cache.
        more: environment variables.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log"
    environment = {
        **os.environ,
        "GRADIO_SERVER_PORT": str(port),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "empty"),
        "HOME": str(folder / "nowhere"),
        "OMP_NUM_THREADS": "1",
        **more,
    }
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    place = f"http://127.0.0.1:{port}"
    try:
        _wait_for(place, server, log)
        yield place
    finally:
        server.terminate()
        server.wait(20)


def _wait_for(place: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(place, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the page did not start:\n{log.read_text()}")


def server_of(address: str) -> psutil.Process:
    """The process that listens at the address."""
    port = int(address.rsplit(":", 1)[1])
    listening = (c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN)
    return psutil.Process(next(c.pid for c in listening if c.laddr.port == port))


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium from the machine, or the one Playwright brought."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
