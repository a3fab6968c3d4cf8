"""What a person does on the page, in a real browser."""

from __future__ import annotations

import statistics
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.driving import (
    LANES,
    TIME_KEYS,
    ask,
    at,
    cache_of,
    example_traces,
    finish,
    press,
    run,
    shown,
    to,
)
from browser.served import READY, server_of


def test_the_example_is_recorded_and_the_first_step_shows_something(page: Page) -> None:
    assert (at(page, "frame"), at(page, "round"), at(page, "phase")) == ("0", "1", "prefill")
    assert at(page, "live") == "recorded"
    before = page.inner_text('[data-lane="eqspec"] [data-view="tokens"]')
    for frame, phase in enumerate(("prefill", "schedule", "draft"), 1):
        press(page, "ArrowRight", frame)
        assert at(page, "phase") == phase
    assert page.inner_text('[data-lane="eqspec"] [data-view="tokens"]') != before


def test_keys_and_buttons_move_one_cursor_without_the_server(page: Page) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    last = int(at(page, "frames")) - 1
    press(page, "End", last)
    press(page, "ArrowRight", last)
    press(page, "ArrowLeft", last - 1)
    press(page, "Home", 0)
    press(page, "ArrowLeft", 0)
    page.click('[data-go="next"]')
    page.wait_for_selector('#player[data-frame="1"]')
    page.click('[data-go="last"]')
    page.wait_for_selector(f'#player[data-frame="{last}"]')
    page.fill('#player input[type="range"]', "4")
    page.wait_for_selector('#player[data-frame="4"]')
    assert not requests


def test_the_details_of_a_cell_follow_the_frames(page: Page) -> None:
    to(page, 1, "verify")
    page.hover('[data-lane="pad"] [data-view="cache"] .accepted >> nth=0')
    card = page.locator("#player .card")
    expect(card).to_contain_text("draft, visible")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector('#player[data-phase="synchronize"]')
    expect(card).to_be_visible()
    expect(card).to_contain_text("committed, visible")
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()


def test_a_step_keeps_the_cells_that_stay(page: Page) -> None:
    first = page.locator('[data-lane="eqspec"] [data-view="cache"] [data-slot] >> nth=0')
    node = first.element_handle()
    for frame in range(1, 4):
        press(page, "ArrowRight", frame)
    assert node and first.evaluate("(now, before) => now === before", node)


def test_keys_are_left_alone_in_a_text_box(page: Page) -> None:
    page.click("#prompts textarea")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    page.wait_for_timeout(100)
    assert at(page, "frame") == "0"


def test_every_lane_has_every_view_for_every_row(page: Page) -> None:
    press(page, "End", int(at(page, "frames")) - 1)
    press(page, "Home", 0)
    press(page, "ArrowRight", 1)  # where EXSPEC reads the prompts of other rows than the mask's
    for frame in range(2, 5):
        press(page, "ArrowRight", frame)
        for lane in LANES:
            for view in ("tokens", "cache", "positions"):
                rows = page.locator(f'[data-lane="{lane}"] [data-view="{view}"] .row')
                assert rows.count() == 4
            assert page.locator(f'[data-lane="{lane}"] [data-view="mask"] .query').count() >= 1


def test_the_page_says_why_the_naive_lane_is_wrong_and_that_eqspec_is_right(page: Page) -> None:
    page.click('[data-go="fault"]')
    page.wait_for_function("document.querySelector('#player').dataset.frame !== '0'")
    assert at(page, "phase") == "synchronize"
    naive = page.locator('[data-lane="pad"]')
    assert "a rejected draft" in naive.locator('[data-part="cause"]').inner_text()
    assert naive.locator('[data-view="cache"] .stale').count() > 0
    press(page, "End", int(at(page, "frames")) - 1)
    assert "diverged" in naive.locator('[data-part="verdict"]').inner_text()
    assert naive.locator('[data-view="outputs"] mark').count() > 0
    broken = naive.locator('[data-view="invariants"] .no')
    assert broken.count() == 4
    cut = "all => all.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length"
    assert not broken.evaluate_all(cut)
    right = page.locator('[data-lane="eqspec"]')
    assert right.locator('[data-part="verdict"]').inner_text() == "✓ equal to the reference"
    assert right.locator(".no, .wrong, .off-value, mark").count() == 0


def test_an_invariant_leads_to_the_phase_in_which_it_broke(page: Page) -> None:
    press(page, "End", int(at(page, "frames")) - 1)
    page.click('[data-lane="pad"] [data-invariant="I1"]')
    page.wait_for_function("document.querySelector('#player').dataset.round === '2'")
    assert page.locator('[data-lane="pad"] [data-view="positions"] .wrong').count() > 0


def test_roles_differ_in_colour_and_glyph(page: Page) -> None:
    looks = {}
    for frame in range(1, 24):
        press(page, "ArrowRight", frame)
        for role in ("draft", "accepted", "correction", "bonus", "rejected"):
            chip = page.locator(f'[data-lane="eqspec"] .chip.{role}').first
            if chip.count():
                colour = chip.evaluate("node => getComputedStyle(node).backgroundColor")
                looks[role] = colour, chip.locator("i").inner_text()
    assert len(looks) == 5
    assert len({colour for colour, _ in looks.values()}) == 5
    assert len({glyph for _, glyph in looks.values()}) == 5


def test_own_prompts_run_live_and_markup_in_them_stays_text(page: Page) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    text = '<img src=x onerror=alert(1)> a<b & "q"'
    run(page, f"{text}\n</script> said 🦊\nOne, two,", new_tokens="12", batch_size="2")
    assert page.locator('[data-lane="pad"] [data-view="tokens"] .row').count() == 3
    for frame in range(1, 6):
        press(page, "ArrowRight", frame)
        page.hover('[data-lane="eqspec"] [data-view="tokens"] .chip >> nth=-1')
    assert not dialogs
    assert page.locator("#player img, #player script").count() == 0
    outputs = page.inner_text('[data-lane="eqspec"] [data-view="outputs"]')
    assert text in outputs and "said 🦊" in outputs and "\ufffd" not in outputs


@pytest.mark.parametrize(
    ("prompts", "numbers", "words"),
    [
        ("", {}, "There is no prompt"),
        ("  \n \n", {}, "There is no prompt"),
        ("word " * 700, {}, "context of this pair holds"),
        ("Hello", {"k": "0"}, "at least 1, not 0"),
        ("Hello", {"k": "2.5"}, "K must be a whole number, not 2.5"),
        ("Hello", {"batch_size": ""}, "A number is missing"),
    ],
)
def test_bad_input_gives_one_sentence_and_loses_nothing(
    page: Page, prompts: str, numbers: dict[str, str], words: str
) -> None:
    press(page, "ArrowRight", 1)
    ask(page, prompts, **numbers)
    message = page.locator("#message")
    expect(message).to_contain_text(words)
    assert "Traceback" not in page.inner_text("body")
    assert page.input_value("#prompts textarea") == prompts
    assert at(page, "frame") == "1"
    run(page, "Hello", k="4", batch_size="4", new_tokens="4")
    expect(message).to_have_text("")


def test_a_view_opens_large_and_follows_the_cursor(page: Page) -> None:
    to(page, 1, "draft")
    page.click('[data-lane="eqspec"] [data-large="positions"]')
    page.wait_for_selector("#player dialog .js-plotly-plot .heatmaplayer image", timeout=30_000)
    drawn = []
    for phase in ("draft", "verify"):
        page.wait_for_selector(f'#player[data-phase="{phase}"]')
        drawn.append(page.evaluate("document.querySelector('.js-plotly-plot').data[0].z[0].length"))
        page.keyboard.press("ArrowRight")
    frames = [shown(example_traces()["eqspec"], 1, phase) for phase in ("draft", "verify")]
    assert drawn == [cache_of(frame).state.shape[1] for frame in frames]
    assert drawn[0] < drawn[1]
    page.click("#player dialog [data-close]")
    assert page.locator("#player dialog[open]").count() == 0


def test_a_large_view_of_a_live_run_has_room_for_all_its_slots(page: Page) -> None:
    run(page, "One day, a fox", k="2", new_tokens="6", batch_size="1")
    press(page, "End", int(at(page, "frames")) - 1)
    page.keyboard.press("ArrowLeft")
    for view in ("cache", "positions"):
        page.click(f'[data-lane="eqspec"] [data-large="{view}"]')
        page.wait_for_selector("#player dialog .js-plotly-plot .heatmaplayer image")
        figure = page.evaluate(
            """() => {
                const { data, layout } = document.querySelector("#player dialog .js-plotly-plot");
                return [data[0].z[0].length, layout.xaxis.range[1], data[0].zmax];
            }"""
        )
        slots, edge, most = figure
        assert slots > 4 and edge >= slots - 0.5
        assert view == "cache" or most >= slots - 2
        page.click("#player dialog [data-close]")


def test_two_people_step_their_own_traces(browser: Browser, address: str) -> None:
    pages = [browser.new_page() for _ in range(2)]
    texts = ("Tom has a drum.", "My cat sleeps.")
    for page, text in zip(pages, texts, strict=True):
        page.goto(address)
        page.wait_for_selector(READY, timeout=60_000)
        ask(page, text, new_tokens="6")
    for page, text in zip(pages, texts, strict=True):
        finish(page)
        press(page, "End", int(at(page, "frames")) - 1)
        assert text in page.inner_text('[data-lane="eqspec"] [data-view="outputs"]')
        page.close()


def test_the_server_stays_under_a_gigabyte(address: str) -> None:
    resident = server_of(address).memory_info().rss
    print(f"\nserver: {resident / 1e6:.0f} MB resident")
    assert resident < 1e9


def test_time_from_key_to_painted_picture(page: Page) -> None:
    """Prints the median: two lanes of eight rows, recorded frames, in both directions."""
    lines = page.input_value("#prompts textarea").splitlines()
    run(page, "\n".join(lines * 2), batch_size="8", new_tokens="64")
    # A key at the last frame paints nothing, so it would be waited for without end.
    assert int(at(page, "frames")) > 60
    keys = ["ArrowRight"] * 60 + ["ArrowLeft"] * 60
    milliseconds = page.evaluate(TIME_KEYS, keys)
    assert len(milliseconds) == 120
    median, worst = statistics.median(milliseconds), max(milliseconds)
    print(f"\nstep: median {median:.0f} ms, worst {worst:.0f} ms, {len(milliseconds)} steps")


def test_a_link_makes_the_same_run_in_a_fresh_session(page: Page, browser: Browser) -> None:
    run(page, 'My sister & "me" <b>\nOne, two,', k="3", new_tokens="12", batch_size="2")
    press(page, "End", int(at(page, "frames")) - 1)
    fresh = browser.new_context(viewport=page.viewport_size).new_page()
    fresh.goto(page.url)
    finish(fresh)
    press(fresh, "End", int(at(fresh, "frames")) - 1)
    for lane in ("pad", "eqspec"):
        for view in ("tokens", "cache", "positions", "mask", "outputs"):
            place = f'[data-lane="{lane}"] [data-view="{view}"]'
            assert fresh.inner_text(place) == page.inner_text(place)
    assert fresh.input_value("#prompts textarea") == page.input_value("#prompts textarea")
    assert fresh.input_value("#k input") == "3"
    fresh.close()


def test_a_damaged_link_is_told_as_text_and_opens_the_example(
    browser: Browser, address: str
) -> None:
    fresh = browser.new_context().new_page()
    fresh.goto(f"{address}/?k=abc&pair=%3Cimg%20src=x%20onerror=alert(1)%3E&lanes=nix")
    fresh.wait_for_selector("#message p")
    words = fresh.inner_text("#message")
    assert "abc" in words and "<img src=x" in words and "nix" in words
    assert fresh.locator("#message img").count() == 0
    fresh.wait_for_selector('#player[data-live="recorded"]')
    assert fresh.input_value("#k input") == "3"
    fresh.close()


def test_rows_of_unequal_length_show_their_own_last_slots(browser: Browser, address: str) -> None:
    query = urlencode({"prompts": f"Hi\n{'word ' * 60}", "lanes": "ragged", "tokens": 9, "k": 3})
    fresh = browser.new_context().new_page()
    fresh.goto(f"{address}/?{query}")
    finish(fresh)
    view = fresh.locator('[data-lane="ragged"] [data-view="positions"] .row:not(.off)')
    for frame in range(1, 4):
        press(fresh, "ArrowRight", frame)
        for row in view.all():
            held = int(row.locator(".end").inner_text().removesuffix(" kv"))
            assert str(held - 1) in row.locator(".slots i").all_inner_texts()
    assert "of each row" in fresh.inner_text('[data-caption="cache"]')
    fresh.close()
