"""The real page: `python app.py` in a process of its own, and Chromium."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
READY = "#player[data-frame]"


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page that was started as a Space would: offline, with an empty cache."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    environment = {
        **os.environ,
        "GRADIO_SERVER_PORT": str(port),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(log.parent / "empty"),
        "OMP_NUM_THREADS": "1",
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
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(place, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the page did not start:\n{log.read_text()}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium from the machine, or the one Playwright brought."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """The page with the example painted; fails the test on any console error."""
    errors: list[str] = []
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else 0
    )
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}/?__theme=light")
    page.wait_for_selector(READY, timeout=60_000)
    yield page
    page.close()
    assert not errors
