"""The address of the page: it brings back what it holds, and garbage in it does no harm."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.driving import at, finish, lane, last, painted, press, run, to, view, visit, watched

MARKUP = "<img src=x onerror=alert(1)>"


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def noted(page: Page, **wanted: str) -> None:
    """Wait until the address has these parameters."""
    for name, value in wanted.items():
        page.wait_for_function(
            "([name, value]) => new URLSearchParams(location.search).get(name) === value",
            arg=[name, value],
        )


def look_around(page: Page) -> None:
    """Choose something else than what a new visitor sees."""
    page.click("#player details.menu summary")
    page.click('#player [data-toggle="history"]')
    page.click('#player [data-toggle="table"]')
    page.click("#player details.menu summary")
    page.click('#player [data-model="draft"]')
    page.click('#player [data-shows="error"]')
    page.select_option("#player .row-picker", "1")
    painted(page)


def looked_at(page: Page) -> tuple[object, ...]:
    """What `look_around` chose, as the page shows it."""
    pressed = page.locator('#player .options [aria-pressed="true"]')
    return (
        at(page, "frame"),
        page.input_value("#player .row-picker"),
        pressed.evaluate_all("all => all.map((one) => one.textContent)"),
        view(page, "eqspec", "history").is_visible(),
        view(page, "eqspec", "table").is_visible(),
        view(page, "eqspec", "cache").inner_text(),
        view(page, "eqspec", "mask").inner_text(),
    )


def test_what_is_looked_at_comes_back_in_a_fresh_browser(
    page: Page, browser: Browser, address: str
) -> None:
    to(page, 2, "verify")
    look_around(page)
    noted(page, frame=at(page, "frame"), row="1", cache="draft", shows="error")
    names = parameters(page)["views"].split(",")
    assert "table" in names and "history" not in names
    fresh = browser.new_context(viewport=page.viewport_size).new_page()
    errors = watched(fresh)
    fresh.goto(page.url)
    fresh.wait_for_selector(f'#player[data-frame="{at(page, "frame")}"]', timeout=60_000)
    painted(fresh)
    assert looked_at(fresh) == looked_at(page)
    assert at(fresh, "live") == "recorded"
    fresh.context.close()
    assert not errors


def test_settings_and_what_is_looked_at_of_a_run_come_back(page: Page, browser: Browser) -> None:
    page.click("#more button")
    page.fill("#temperature input", "0.5")
    page.fill("#seed input", "7")
    run(page, "My sister\nSaid 🦊 & <b>", k="2", new_tokens="8", batch_size="2", window="4")
    to_frame = 5
    page.fill('#player input[type="range"]', str(to_frame))
    look_around(page)
    noted(page, frame=str(to_frame), row="1", cache="draft", shows="error", seed="7")
    wanted = {"k": "2", "tokens": "8", "batch": "2", "window": "4", "temperature": "0.5"}
    assert wanted.items() <= parameters(page).items()
    fresh = browser.new_context(viewport=page.viewport_size).new_page()
    fresh.goto(page.url)
    fresh.wait_for_selector(f'#player[data-frame="{to_frame}"]', timeout=120_000)
    finish(fresh)
    painted(fresh)
    assert looked_at(fresh) == looked_at(page)
    fresh.click("#more button")
    for field in ("#prompts textarea", "#k input", "#temperature input", "#seed input"):
        assert fresh.input_value(field) == page.input_value(field)
    fresh.focus("#player")
    page.focus("#player")
    press(fresh, "End", last(fresh))
    press(page, "End", last(page))
    assert view(fresh, "pad", "outputs").inner_text() == view(page, "pad", "outputs").inner_text()
    fresh.context.close()


@pytest.mark.parametrize("value", [MARKUP, "-1", "1e9"])
def test_garbage_in_what_to_look_at_is_told_and_does_no_harm(
    page: Page, address: str, value: str
) -> None:
    names = ("frame", "row", "cache", "shows", "views")
    with visit(page.context, address, **dict.fromkeys(names, value)) as own:
        state = own.locator("#player .state")
        if value == "1e9":
            expect(state).to_contain_text("The link asks for phase 1000000000")
            assert own.input_value("#player .row-picker") == "3"
        else:
            for name in ("frame", "row"):
                expect(state).to_contain_text(f'{name} as "{value}", no whole number')
        for name in ("cache", "shows"):
            expect(state).to_contain_text(f'{name} as "{value}", which is not here')
        expect(state).to_contain_text("The link names views that are not here.")
        assert own.locator("#player img").count() == 0
        assert lane(own, "eqspec").is_visible()
        own.focus("#player")
        press(own, "Home", 0)
        press(own, "ArrowRight", 1)


def test_garbage_in_the_settings_is_told_as_text_and_the_rest_is_run(
    page: Page, address: str
) -> None:
    numbers = ("k", "tokens", "batch", "window", "temperature", "seed")
    garbage = dict.fromkeys((*numbers, "pair", "acceptance", "lanes"), MARKUP)
    with visit(page.context, address, prompts=MARKUP, **garbage) as own:
        message = own.locator("#message")
        for name in (*numbers, "pair", "acceptance", "lanes"):
            expect(message).to_contain_text(name)
        assert own.locator("#message img, #player img").count() == 0
        assert own.input_value("#k input") == "3"
        finish(own)
        expect(view(own, "eqspec", "outputs")).to_contain_text(MARKUP)
        assert own.locator("#player img").count() == 0


@pytest.mark.parametrize("value", ["nan", "1e400", "-1"])
def test_numbers_that_are_none_are_refused_in_a_sentence(
    page: Page, address: str, value: str
) -> None:
    with visit(page.context, address, prompts="Hi", k=value, lanes="eqspec") as own:
        expect(own.locator("#message")).to_contain_text(".", timeout=30_000)
        words = own.inner_text("#message")
        assert "Traceback" not in words and words.strip().endswith(".")
