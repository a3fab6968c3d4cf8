"""Runs while they are made: streamed, stopped, driven by hand, and two people's at once."""

from __future__ import annotations

import json
import re
import threading
import time
from types import SimpleNamespace
from typing import cast

import gradio
import pytest
from playwright.sync_api import Browser, Page, Route, expect

import batchspec
from batchspec.config import DecodeConfig
from browser.driving import (
    FINISHED,
    PATIENCE,
    PAUSED,
    RUNNING,
    ask,
    at,
    finish,
    lane,
    last,
    opened,
    press,
    reach,
    run,
    view,
)
from pages import serving

SERVER = re.compile("component_server")
MANY = "\n".join(["My cat sleeps."] * 12)
LONG = {"k": "2", "batch_size": "1", "new_tokens": "300"}
"""Prompts and numbers of a run that nobody waits for to end."""
WATCH = """() => {
    const player = document.querySelector("#player"), bar = player.querySelector(".share");
    window.seen = [];
    new MutationObserver(() => {
        if (player.dataset.live === "running")
            window.seen.push([Number(player.dataset.frames), bar.value, bar.hidden]);
    }).observe(player, { attributeFilter: ["data-frames", "data-live", "data-frame"] });
}"""


def state(page: Page) -> str:
    return page.inner_text("#player .state")


def outputs(page: Page, name: str = "eqspec") -> str:
    return view(page, name, "outputs").inner_text()


def test_a_run_streams_and_says_how_far_it_is(page: Page) -> None:
    assert state(page).startswith("recorded · ")
    page.evaluate(WATCH)
    run(page, "My sister\nOne day,", k="2", batch_size="2", new_tokens="40")
    frames, shares, hidden = zip(*page.evaluate("window.seen"), strict=True)
    assert list(frames) == sorted(frames) and len(set(frames)) >= 3
    assert list(shares) == sorted(shares) and max(shares) > 0
    assert not any(hidden[1:])
    assert int(at(page, "frames")) >= frames[-1]
    assert page.locator("#player .share").is_hidden()
    assert page.locator('#player [data-run="stop"]').is_hidden()
    words = state(page).split(" · ")
    assert words[0] == "live" and words[-2:] == ["cpu", "float32"]


def test_stop_pauses_a_run_that_stays_steppable_and_can_be_run_on(page: Page) -> None:
    ask(page, "My sister", k="2", batch_size="1", new_tokens="100")
    page.wait_for_selector(f"{RUNNING}[data-frames]:not([data-frames='0'])", timeout=PATIENCE)
    assert "live · running" in state(page)
    page.click('#player [data-run="stop"]')
    page.wait_for_selector(PAUSED, timeout=PATIENCE)
    assert "paused" in state(page) and "100 %" not in state(page)
    count = int(at(page, "frames"))
    page.locator("#player").focus()
    press(page, "Home", 0)
    press(page, "ArrowRight", 1)
    press(page, "End", count - 1)
    # Had the models gone on, the next phase asked for would bring all those in between.
    press(page, "ArrowRight", count)
    assert int(at(page, "frames")) == count + 1
    page.click('#player [data-run="on"]')
    finish(page)
    config = DecodeConfig(strategy="eqspec", draft_tokens=2, max_new_tokens=100, batch_size=1)
    pair = batchspec.load_pair("storyteller")
    text = batchspec.generate(pair, ["My sister"], config).texts[0]
    press(page, "End", last(page))
    assert outputs(page).rstrip().endswith(text.rstrip())


def test_a_stop_that_comes_when_all_is_over_finds_nothing_wrong(page: Page) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        if '"frames"' in (route.request.post_data or "") and not held:
            held.append(route)
        else:
            route.continue_()

    page.route(SERVER, hold)
    with page.expect_request(SERVER):
        ask(page, "My sister", k="2", batch_size="1", new_tokens="4")
    page.wait_for_selector('#player [data-run="stop"]', timeout=PATIENCE)
    page.wait_for_timeout(3000)  # the models write four tokens in a fraction of it
    assert held
    with page.expect_response(SERVER):
        page.click('#player [data-run="stop"]')
    held[0].continue_()
    finish(page)
    press(page, "End", last(page))
    assert "no longer" not in state(page) and state(page).startswith("live")


def test_stop_takes_effect_before_the_next_phase() -> None:
    pair = batchspec.load_pair("storyteller")
    made = batchspec.LiveRun(pair, ["My sister"], [DecodeConfig(max_new_tokens=200)])
    key = serving._runs.open("a session", made)
    event = cast(gradio.EventData, SimpleNamespace(run=key))
    worker = threading.Thread(target=serving.run_on, args=(event,))
    worker.start()
    deadline = time.monotonic() + 60
    while len(made.traces()[0].frames) < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    with made.lock:  # no phase is under way
        serving.stop(key)
        count = len(made.traces()[0].frames)
    worker.join(60)
    assert not worker.is_alive()
    assert 3 <= count <= len(made.traces()[0].frames) <= count + 1
    assert not made.finished
    serving._runs.end("a session")


def test_by_hand_the_models_run_one_phase_a_step_to_the_same_end(page: Page) -> None:
    numbers = {"k": "2", "batch_size": "2", "new_tokens": "5"}
    ask(page, "My sister\nOne day,", "#by-hand", **numbers)
    page.wait_for_selector('#player[data-live="live"][data-frames="1"]', timeout=PATIENCE)
    assert "paused: → runs the next phase" in state(page)
    page.locator("#player").focus()
    seen = []
    while page.locator(FINISHED).count() == 0:
        count = int(at(page, "frames"))
        seen.append((at(page, "round"), at(page, "phase")))
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(
            f'{FINISHED}, #player[data-frames="{count + 1}"][data-frame="{count}"]',
            timeout=PATIENCE,
        )
        assert len(seen) < 60
    assert len(set(seen)) == len(seen)
    press(page, "End", last(page))
    by_hand = outputs(page), at(page, "frames"), outputs(page, "pad")
    run(page, "My sister\nOne day,", **numbers)
    press(page, "End", last(page))
    assert (outputs(page), at(page, "frames"), outputs(page, "pad")) == by_hand


def test_a_hand_step_works_while_another_person_runs_and_neither_sees_the_other(
    page: Page, browser: Browser, address: str
) -> None:
    other = opened(browser, address)
    ask(page, MANY, **LONG)
    page.wait_for_selector(f"{RUNNING}:not([data-frames='0'])", timeout=PATIENCE)
    ask(other, "Tom has a drum.", "#by-hand", new_tokens="8", batch_size="1")
    other.wait_for_selector('#player[data-live="live"][data-frames="1"]', timeout=PATIENCE)
    other.locator("#player").focus()
    for frame in (1, 2, 3):
        other.keyboard.press("ArrowRight")
        other.wait_for_selector(f'#player[data-frame="{frame}"]', timeout=PATIENCE)
    assert page.locator(RUNNING).count() == 1
    assert "Tom has a drum." in outputs(other) and "cat" not in outputs(other)
    assert "My cat sleeps." in outputs(page) and "drum" not in outputs(page)
    page.click('#player [data-run="stop"]')
    page.wait_for_selector(PAUSED, timeout=PATIENCE)
    other.close()


def test_a_run_that_the_server_has_forgotten_says_so(page: Page) -> None:
    ask(page, "My sister", "#by-hand", new_tokens="8", batch_size="1")
    page.wait_for_selector('#player[data-live="live"][data-frames="1"]', timeout=PATIENCE)

    def forget(route: Route) -> None:
        asked = json.loads(route.request.post_data or "{}")
        asked["data"] = json.loads(re.sub(r'"[\w-]{22}"', '"long-ago"', json.dumps(asked["data"])))
        route.continue_(post_data=json.dumps(asked))

    page.route(SERVER, forget)
    page.locator("#player").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#player .state")).to_contain_text("no longer on the server")
    assert page.locator('#player [data-run="on"]').is_hidden()
    page.unroute(SERVER)
    reach(page, 0)
    run(page, "My sister", new_tokens="4", batch_size="1")
    assert "no longer" not in state(page)


@pytest.mark.parametrize("button", ["#run", "#by-hand"])
def test_a_new_run_takes_the_place_of_one_under_way(page: Page, button: str) -> None:
    ask(page, MANY, **LONG)
    page.wait_for_selector(f"{RUNNING}:not([data-frames='0'])", timeout=PATIENCE)
    ask(page, "Tom has a drum.", button, new_tokens="4")
    expect(view(page, "eqspec", "outputs")).to_contain_text("Tom has a drum.", timeout=PATIENCE)
    if button == "#run":
        finish(page)
    assert "cat" not in outputs(page)
    assert lane(page, "eqspec").count() == 1
