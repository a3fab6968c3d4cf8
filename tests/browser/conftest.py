"""Fixtures: one server and one browser for all tests, a fresh page for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from browser.served import READY, chromium, served_page


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page."""
    with served_page(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser."""
    with chromium() as browser:
        yield browser


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
