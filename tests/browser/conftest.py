"""Fixtures: one server and one browser for all tests, a fresh page or the example for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from browser.driving import opened, reach, visit, watched
from browser.served import chromium, served_page

RESET = """() => {
    const player = document.querySelector("#player");
    for (const dialog of player.querySelectorAll("dialog[open]")) dialog.close();
    for (const button of player.querySelectorAll("[data-toggle]"))
        if (button.ariaPressed !== String(button.dataset.toggle !== "table")) button.click();
    player.querySelector("details.menu").open = false;
    player.querySelector("[data-model=target]").click();
    player.querySelector("[data-shows=state]").click();
    for (const [name, value] of [["row-picker", 0], ["pace", "phase"], ["speed", 2]]) {
        const select = player.querySelector(`.${name}`);
        select.value = value;
        select.dispatchEvent(new Event("change", { bubbles: true }));
    }
    document.activeElement.blur();
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    player.querySelector("[data-go=first]").click();
}"""


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


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A person's browser: what it has loaded once it does not load again."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, address: str) -> Iterator[Page]:
    """A fresh page with the example painted; fails the test on any console error."""
    with visit(context, address) as page:
        yield page


@pytest.fixture(scope="session")
def shown_example(context: BrowserContext, address: str) -> Iterator[tuple[Page, list[str]]]:
    """The page that all tests share which only look at the example."""
    page = opened(context, address)
    yield page, watched(page)
    page.close()


@pytest.fixture
def example(shown_example: tuple[Page, list[str]]) -> Iterator[Page]:
    """The example as a new visitor sees it; fails the test on any console error."""
    page, errors = shown_example
    page.bring_to_front()
    page.mouse.move(2, 2)
    page.evaluate(RESET)
    reach(page, 0)
    yield page
    assert not errors
    errors.clear()
