"""Moving the one cursor: buttons, keys, the scrubber, jumps and a clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from batchspec.trace import PHASES, Trace
from browser.driving import (
    at,
    example_traces,
    lane,
    last,
    painted,
    press,
    reach,
    steps,
    to,
    view,
)

STEPS = steps(list(example_traces().values()))
ROUNDS = [place for place, step in enumerate(STEPS) if place == 0 or STEPS[place - 1][0] != step[0]]
"""The columns at which a round begins."""
CLOCKS = """() => {
    window.clocks = new Map();
    const set = window.setInterval, clear = window.clearInterval;
    window.setInterval = (act, wait) => {
        const id = set(act, wait);
        window.clocks.set(id, wait);
        return id;
    };
    window.clearInterval = (id) => { window.clocks.delete(id); clear(id); };
}"""


def flagged(test: Callable[[Trace, int], bool]) -> set[int]:
    """The columns at which a lane's new frame passes a test."""
    return {
        STEPS.index((frame.round, frame.phase))
        for trace in example_traces().values()
        for number, frame in enumerate(trace.frames)
        if test(trace, number)
    }


def breaks(trace: Trace, number: int) -> bool:
    """Whether an invariant breaks that held in all frames before."""
    before = {v.invariant for frame in trace.frames[:number] for v in frame.violations}
    return any(v.invariant not in before for v in trace.frames[number].violations)


def diverges(trace: Trace, number: int) -> bool:
    """Whether a row leaves the reference that had not left it before."""
    rows = [
        {v.row for v in frame.violations if v.invariant == "I4"}
        for frame in trace.frames[: number + 1]
    ]
    return bool(rows[-1] - set().union(*rows[:-1]))


def is_ragged(trace: Trace, number: int) -> bool:
    frame = trace.frames[number]
    return frame.phase == "verify" and len(set(frame.accepted[frame.active].tolist())) > 1


def moves(trace: Trace, number: int) -> bool:
    return trace.frames[number].slots_moved > 0


FLAGS = {"fault": breaks, "divergence": diverges, "ragged": is_ragged}


def click(page: Page, name: str, frame: int) -> None:
    page.click(f'#player [data-go="{name}"]')
    reach(page, frame)


def test_the_scrubber_has_every_round_and_phase_of_the_run(example: Page) -> None:
    assert int(at(example, "frames")) == len(STEPS)
    phases = example.locator("#player .segments i").evaluate_all(
        "all => all.map((one) => one.className.split(' ')[0])"
    )
    assert phases == [phase for _, phase in STEPS]
    assert {phase for _, phase in STEPS} == set(PHASES)


def test_both_prefills_of_a_pool_can_be_looked_at(example: Page) -> None:
    first, second, third = example_traces()["exspec"].frames[:3]
    assert (first.phase, second.phase, third.phase) == ("prefill", "prefill", "schedule")
    texts = []
    for place, (frame, words) in enumerate(
        ((first, "Prefill"), (second, "Prefill 2"), (third, "Schedule"))
    ):
        reach(example, place)
        assert example.inner_text("#player .phases .on") == words
        held = view(example, "exspec", "pool").locator("[data-row]")
        rows = held.evaluate_all("all => all.map((one) => Number(one.dataset.row))")
        assert rows == [row for row in frame.pool if row >= 0]
        texts.append([lane(example, name).inner_text() for name in ("pad", "eqspec", "exspec")])
        example.keyboard.press("ArrowRight")
    # The others wait for the pool.
    assert texts[0][:2] == texts[1][:2] and texts[0][2] != texts[1][2]
    example.keyboard.press("Home")
    reach(example, 0)
    press(example, "ArrowRight", 1)
    assert example.get_attribute('#player input[type="range"]', "aria-valuetext") == (
        "round 1, prefill 2"
    )


def test_buttons_step_by_phase(example: Page) -> None:
    click(example, "next", 1)
    assert at(example, "phase") == STEPS[1][1]
    click(example, "next", 2)
    click(example, "previous", 1)
    click(example, "last", len(STEPS) - 1)
    click(example, "next", len(STEPS) - 1)
    click(example, "first", 0)
    click(example, "previous", 0)


def test_buttons_step_by_round(example: Page) -> None:
    example.select_option("#player .pace", "round")
    for place in ROUNDS[1:4]:
        click(example, "next", place)
        assert (at(example, "round"), at(example, "phase")) == tuple(map(str, STEPS[place]))
    click(example, "previous", ROUNDS[2])
    to(example, 3, "verify")
    click(example, "previous", ROUNDS[2])
    click(example, "last", len(STEPS) - 1)
    click(example, "previous", ROUNDS[-1])
    click(example, "next", len(STEPS) - 1)


def test_keys_step_by_phase_and_by_round(example: Page) -> None:
    press(example, "ArrowDown", ROUNDS[1])
    press(example, "ArrowRight", ROUNDS[1] + 1)
    press(example, "ArrowUp", ROUNDS[1])
    press(example, "ArrowUp", ROUNDS[0])
    press(example, "End", len(STEPS) - 1)
    press(example, "ArrowLeft", len(STEPS) - 2)
    press(example, "Home", 0)
    assert (at(example, "round"), at(example, "phase")) == tuple(map(str, STEPS[0]))


@pytest.mark.parametrize("name", list(FLAGS))
def test_jumps_go_to_every_flagged_column_in_turn(example: Page, name: str) -> None:
    places = sorted(flagged(FLAGS[name]) - {0})
    assert places
    for number, place in enumerate(places[:6]):
        if number % 2:
            click(example, name, place)
        else:
            press(example, name[0], place)
    example.fill('#player input[type="range"]', str(places[-1]))
    reach(example, places[-1])
    example.keyboard.press(name[0])
    painted(example)
    assert at(example, "frame") == str(places[-1])


def test_flags_stand_on_the_scrubber_at_the_right_columns(example: Page) -> None:
    def columns(selector: str) -> set[int]:
        found = example.locator("#player .segments").evaluate(
            "(all, selector) => [...all.children].flatMap("
            "(one, place) => one.matches(selector) ? [place] : [])",
            selector,
        )
        return set(found)

    assert columns('[data-flag="✗"]') == flagged(breaks) | flagged(diverges)
    assert columns(".ragged") == flagged(is_ragged)
    assert columns(".moved") == flagged(moves)
    to(example, 2, "draft")
    assert columns(".current") == {STEPS.index((2, "draft"))}


def test_a_round_is_gone_to_by_number(example: Page) -> None:
    example.keyboard.press("g")
    expect(example.locator("#player .round-number")).to_be_focused()
    example.keyboard.type("7")
    example.keyboard.press("Enter")
    reach(example, ROUNDS[6])
    example.fill("#player .round-number", "999")
    example.keyboard.press("Enter")
    reach(example, len(STEPS) - 1)


def test_the_scrubber_is_dragged_by_mouse_and_moved_by_keys(example: Page) -> None:
    bar = example.locator('#player input[type="range"]')
    box = bar.bounding_box()
    assert box
    example.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    example.wait_for_function("Number(document.querySelector('#player').dataset.frame) > 1")
    middle = int(at(example, "frame"))
    assert abs(middle - len(STEPS) / 2) < len(STEPS) / 20
    expect(bar).to_be_focused()
    press(example, "ArrowRight", middle + 1)
    press(example, "ArrowLeft", middle)
    press(example, "Home", 0)
    assert bar.get_attribute("aria-valuetext") == "round 1, prefill"


def test_play_steps_at_the_speed_chosen_until_paused(page: Page) -> None:
    page.evaluate(CLOCKS)
    running = "() => [...window.clocks.values()]"
    button = page.locator('#player [data-go="play"]')
    page.select_option("#player .speed", "10")
    button.click()
    expect(button).to_have_attribute("aria-label", "Pause (space)")
    assert page.evaluate(running) == [100]
    page.wait_for_function("Number(document.querySelector('#player').dataset.frame) >= 3")
    for speed, wait in (("1", 1000), ("2", 500), ("4", 250)):
        page.select_option("#player .speed", speed)
        assert page.evaluate(running) == [wait]
    page.locator("#player").focus()
    page.keyboard.press(" ")
    expect(button).to_have_attribute("aria-label", "Play (space)")
    assert page.evaluate(running) == []
    page.select_option("#player .speed", "10")
    page.locator("#player").focus()
    press(page, "End", last(page))
    press(page, "ArrowLeft", last(page) - 1)
    page.keyboard.press(" ")
    reach(page, last(page))
    expect(button).to_have_attribute("aria-label", "Play (space)")
    page.keyboard.press(" ")
    page.wait_for_function("Number(document.querySelector('#player').dataset.frame) < 5")
    page.keyboard.press("ArrowLeft")
    expect(button).to_have_attribute("aria-label", "Play (space)")
    assert page.evaluate(running) == []


def test_a_question_mark_lists_every_key(example: Page) -> None:
    example.keyboard.press("?")
    help_ = example.locator("#player dialog.help")
    expect(help_).to_be_visible()
    keys = set(help_.locator("kbd").all_inner_texts())
    named = {"←", "→", "↑", "↓", "Home", "End", "space", "Esc", "?"}
    assert keys >= named | {"f", "d", "r", "g", "m", "c", "t", "T"}
    example.keyboard.press("ArrowRight")
    painted(example)
    assert at(example, "frame") == "0"
    example.keyboard.press("?")
    expect(help_).to_be_hidden()
    example.click('#player [data-go="help"]')
    expect(help_).to_be_visible()
    example.keyboard.press("Escape")
    expect(help_).to_be_hidden()
    press(example, "ArrowRight", 1)


FIELDS = ("#prompts textarea", "#k input", "#lanes input", "#player .round-number", "#player .pace")


def test_keys_do_nothing_while_a_field_has_them(page: Page) -> None:
    for field in FIELDS:
        page.focus(field)
        for key in ("ArrowRight", "End", "f", " ", "r", "m", "c", "t"):
            page.keyboard.press(key)
        painted(page)
        assert at(page, "frame") == "0", field
        assert page.get_attribute('#player [data-go="play"]', "aria-label") == "Play (space)"
        assert page.get_attribute('#player [data-model="target"]', "aria-pressed") == "true"
        assert page.input_value("#player .row-picker") == "0"


def test_the_space_bar_on_a_focused_button_presses_only_that(example: Page) -> None:
    example.focus('#player [data-model="draft"]')
    example.keyboard.press(" ")
    painted(example)
    assert example.get_attribute('#player [data-model="draft"]', "aria-pressed") == "true"
    assert example.get_attribute('#player [data-go="play"]', "aria-label") == "Play (space)"
    assert at(example, "frame") == "0"
    example.focus('#player [data-go="next"]')
    press(example, " ", 1)
    assert example.get_attribute('#player [data-go="play"]', "aria-label") == "Play (space)"


def test_c_changes_the_model_and_m_the_row(example: Page) -> None:
    for name in ("draft", "target"):
        example.keyboard.press("c")
        painted(example)
        assert example.get_attribute(f'#player [data-model="{name}"]', "aria-pressed") == "true"
    for row in (1, 2, 3, 0):
        example.keyboard.press("m")
        assert example.input_value("#player .row-picker") == str(row)
