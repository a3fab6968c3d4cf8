"""The benchmark page measures, draws as it goes, and can be cancelled."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from batchspec.limits import PUBLIC
from browser.driving import PATIENCE
from pages.benchmark import run_benchmark


def opened(page: Page, tokens: str, repeats: str) -> None:
    page.click("#brand a")
    page.wait_for_selector("#run-benchmark")
    page.get_by_label("Prompts, one a line").fill("One, two,\nMy sister")
    page.get_by_label("New tokens").fill(tokens)
    page.get_by_label("Repeats").fill(repeats)


def test_it_draws_every_chart_and_says_whether_the_text_is_right(page: Page) -> None:
    opened(page, "4", "1")
    page.click("#run-benchmark")
    state = page.locator("#bench-state")
    expect(state).to_contain_text("Done: 15 runs", timeout=PATIENCE)
    expect(page.locator("#charts .js-plotly-plot")).to_have_count(4)
    tables = page.locator(".tables")
    expect(tables).to_contain_text("all rows equal the target alone")
    expect(tables.locator("table").first).to_contain_text("eqspec")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440


def test_it_can_be_cancelled_and_keeps_what_it_has(page: Page) -> None:
    opened(page, "16", "50")
    page.click("#run-benchmark")
    expect(page.locator("#charts .js-plotly-plot").first).to_be_visible(timeout=PATIENCE)
    page.click("#cancel-benchmark")
    expect(page.locator("#bench-state")).to_contain_text("Cancelled")
    expect(page.locator("#charts .js-plotly-plot").first).to_be_visible()


def test_bad_input_is_said_in_a_sentence(page: Page) -> None:
    opened(page, "0", "1")
    page.click("#run-benchmark")
    expect(page.locator("#message")).to_contain_text("0 new tokens leave nothing to measure")
    page.get_by_label("New tokens").fill("4")
    page.get_by_label("Repeats").fill("0")
    page.click("#run-benchmark")
    expect(page.locator("#message")).to_contain_text("repeats must be at least 1")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sizes": [1, 32]}, "at most 16 rows a batch, not 32"),
        ({"tokens": 1000}, "at most 128 new tokens"),
        ({"repeats": 50}, "at most 3 times"),
        ({"tokens": 2.5}, "New tokens must be a whole number, not 2.5"),
        ({"repeats": None}, "A number is missing: fill in Repeats"),
        ({"sizes": []}, "one method and one batch size"),
    ],
)
def test_a_public_page_measures_no_more_than_it_runs(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], words: str
) -> None:
    monkeypatch.setenv(PUBLIC, "1")
    asked = {"sizes": [1], "tokens": 4, "repeats": 1, **changes}
    (said,) = run_benchmark("storyteller", "", "One, two,", ["5a"], ["eqspec"], **asked)
    assert words in said[2]
