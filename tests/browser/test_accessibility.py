"""The page for people who see badly, use no mouse, prefer the dark or hold a telephone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from browser.driving import at, last, opened, painted, press, to, watched

GRADIO: dict[str, str] = {
    # The field of a dropdown with several choices is pale while nothing is typed into it.
    "color-contrast": ".subdued",
}
"""Violations of Gradio's own markup by rule: a selector that covers it, outside of the player."""
PLACES = {"light": (1440, 900), "dark": (1440, 900), "narrow": (390, 844)}


def broken_round(page: Page) -> None:
    to(page, 3, "verify")


def end_of_the_run(page: Page) -> None:
    page.focus("#player")
    press(page, "End", last(page))


def menu_open(page: Page) -> None:
    page.click("#player details.menu summary")


def help_open(page: Page) -> None:
    page.click('#player [data-go="help"]')


def errors_shown(page: Page) -> None:
    to(page, 3, "verify")
    page.click('#player [data-shows="error"]')
    painted(page)


def violations(page: Page) -> list[str]:
    """What axe calls serious or critical, except in `GRADIO`."""
    found: list[dict[str, Any]] = (
        Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    )
    told = []
    for one in found:
        if one["impact"] not in ("serious", "critical"):
            continue
        for node in one["nodes"]:
            target = node["target"][-1]
            excused = GRADIO.get(one["id"])
            if (
                excused
                and page.locator(f":is({excused}):not(#player *)")
                .and_(page.locator(str(target)))
                .count()
            ):
                continue
            why = node["any"][0]["message"] if node["any"] else ""
            told.append(f"{one['id']}: {target} {node['html'][:160]} {why}")
    return told


@pytest.mark.parametrize("place", list(PLACES))
def test_axe_finds_nothing_serious(browser: Browser, address: str, place: str) -> None:
    width, height = PLACES[place]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = opened(context, address, __theme="dark" if place == "dark" else "light")
    errors = watched(page)
    moments: list[Callable[[Page], None]] = [broken_round, errors_shown, menu_open]
    moments += [end_of_the_run, help_open]
    told = {}
    for moment in moments:
        moment(page)
        for words in violations(page):
            told.setdefault(words, f"{moment.__name__}: {words}")
    context.close()
    assert not told, "\n".join(told.values())
    assert not errors


FOCUS = """() => {
    const node = document.activeElement, style = (one) => getComputedStyle(one);
    const ring = (one) => {
        const { outlineStyle, outlineWidth, boxShadow, borderColor } = style(one);
        return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
    };
    const data = Object.entries(node.dataset).map(([name, value]) => `${name}=${value}`);
    const around = [node, node.parentNode, node.closest("label, .scrubber, .wrap, .block")];
    return {
        name: node.id || data.join(" ") || node.className || node.tagName,
        place: node.closest("#run, #by-hand, #prompts, #lanes, #player .lane, #player")?.id
            ?? node.closest(".lane")?.dataset.lane ?? "",
        visible: around.some((one) => one && one !== document && ring(one)),
        body: node === document.body,
    };
}"""


def tab_stops(page: Page, most: int = 140) -> list[dict[str, Any]]:
    """What the tab key comes to, from the top of the page round to its beginning."""
    stops: list[dict[str, Any]] = []
    for _ in range(most):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stops and stop["name"] == stops[0]["name"]:
            break
        if not stop["body"]:
            stops.append(stop)
    return stops


def test_everything_is_reached_by_the_tab_key_and_shows_that_it_has_the_focus(page: Page) -> None:
    press(page, "End", last(page))
    stops = tab_stops(page)
    names = [stop["name"] for stop in stops]
    wanted = ["run", "by-hand"]
    wanted += [f"go={one}" for one in ("first", "previous", "play", "next", "last")]
    wanted += ["pace", "speed", "go=fault", "row-picker", "model=draft", "shows=error", "go=help"]
    wanted += ["invariant=I1", "invariant=I4", "large=cache"]
    assert not [name for name in wanted if name not in names], names
    order = [names.index(name) for name in wanted[:7]]
    assert order == sorted(order)
    assert (at(page, "live"), at(page, "frame")) == ("recorded", str(last(page)))
    hidden = [stop["name"] for stop in stops if not stop["visible"]]
    assert not hidden, hidden


def test_the_page_is_used_with_the_keyboard_alone(page: Page) -> None:
    page.focus("#prompts textarea")
    page.keyboard.press("Control+a")
    page.keyboard.type("One day,")
    page.focus("#new-tokens input")
    page.keyboard.press("Control+a")
    page.keyboard.type("4")
    page.evaluate("document.querySelector('#player').dataset.live = 'asked'")
    page.focus("#run")
    page.keyboard.press("Enter")
    page.wait_for_selector('#player[data-live="live"]', timeout=120_000)
    page.focus('#player [data-go="last"]')
    page.keyboard.press("Enter")
    page.wait_for_selector(f'#player[data-frame="{last(page)}"]')
    page.keyboard.press("t")
    expect(page.locator("#player .card")).to_contain_text("locked")
    page.keyboard.press("Escape")
    page.focus('#player [data-large="cache"] >> nth=0')
    page.keyboard.press("Enter")
    expect(page.locator("#player dialog.large")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#player dialog.large")).to_be_hidden()


def test_what_changes_is_said_to_those_who_do_not_see_it(example: Page) -> None:
    to(example, 1, "verify")
    phases = example.locator("#player .phases")
    assert phases.get_attribute("aria-live") == "polite"
    slider = example.locator("#player input[type=range]")
    assert slider.get_attribute("aria-valuetext") == "round 1, verify"
    assert example.locator("#player .state").get_attribute("role") == "status"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_fits_its_window(browser: Browser, address: str, theme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844})
    page = opened(context, address, __theme=theme)
    errors = watched(page)
    to(page, 2, "verify")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [lane.bounding_box() for lane in page.locator("#player .lane").all()]
    lefts, tops = ({round(box[side]) for box in boxes if box} for side in ("x", "y"))
    assert (len(lefts), len(tops)) == ((3, 1) if width == 1440 else (1, 3))
    for menu in page.locator("#player details.menu").all():
        menu.locator("summary").click()
        box = menu.locator("> div").bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width, box
        menu.locator("summary").click()
    page.click('#player [data-go="help"]')
    box = page.locator("#player dialog.help").bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= width
    page.keyboard.press("Escape")
    page.hover('#player [data-lane="eqspec"] [data-view="tokens"] .chip >> nth=-1')
    box = page.locator("#player .card").bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= width + 1
    background = page.locator("#player .lane").first.evaluate(
        "lane => getComputedStyle(lane).backgroundColor"
    )
    brightness = sum(map(int, re.findall(r"\d+", background)[:3]))
    assert (brightness < 384) == (theme == "dark")
    assert at(page, "phase") == "verify"
    context.close()
    assert not errors
