"""Break it yourself: a fault beside its sound strategy, and the invariant that it breaks first."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from batchspec.faults import FAULTS
from batchspec.storyteller import EXAMPLES, MORE_EXAMPLES
from browser.driving import finish, lane, last, opened, painted, press, view

SOUND = "✓ equal to the reference"
HARMLESS = {("exspec", "rejected_zeroed")}
"""Faults that break an invariant here and yet change no token."""


def lanes(page: Page) -> list[str]:
    names: list[str] = page.locator("#player .lane").evaluate_all(
        "all => all.map((one) => one.dataset.lane)"
    )
    return names


def broken(page: Page, name: str) -> list[str]:
    """The invariants that a lane says are broken up to now."""
    found: list[str] = (
        view(page, name, "invariants")
        .locator("[data-invariant]")
        .evaluate_all("all => all.map((one) => one.dataset.invariant)")
    )
    return found


def first_broken(page: Page, name: str) -> list[str]:
    """What is broken at the first phase at which anything is, going from fault to fault."""
    page.locator("#player").focus()
    press(page, "Home", 0)
    for _ in range(12):
        if broken(page, name):
            return broken(page, name)
        page.keyboard.press("f")
        painted(page)
    raise AssertionError(f"nothing breaks in {name}")


def stands(page: Page, name: str) -> None:
    """A sound lane is sound to the end."""
    press(page, "End", last(page))
    assert lane(page, name).locator('[data-part="verdict"]').inner_text() == SOUND
    assert broken(page, name) == []
    assert view(page, name, "outputs").locator("mark").count() == 0


def test_a_fault_is_added_beside_its_sound_strategy_and_run(page: Page) -> None:
    page.fill("#new-tokens input", "12")
    page.click("#broken input")
    title = f"eqspec: {FAULTS['positions_by_slot'].title}"
    page.evaluate("document.querySelector('#player').dataset.live = 'asked'")
    page.get_by_role("option", name=title).click()
    finish(page)
    name = "eqspec+positions_by_slot"
    place = lanes(page).index("eqspec")
    assert lanes(page)[place : place + 2] == ["eqspec", name]
    expect(lane(page, name).locator("h2")).to_contain_text(
        f"broken: {FAULTS['positions_by_slot'].title}"
    )
    expect(lane(page, name)).to_contain_text(FAULTS["positions_by_slot"].words)
    assert first_broken(page, name)[0] == FAULTS["positions_by_slot"].breaks
    stands(page, "eqspec")


@pytest.mark.parametrize(
    "faults",
    [
        ("eqspec", "rejected_visible", "kv_not_shifted"),
        ("eqspec", "pads_visible", "draft_as_correction"),
        ("eqspec", "rejected_zeroed", "repad_without_unpad"),
        ("exspec", "rejected_zeroed", "repad_without_unpad"),
        ("exspec", "bonus_cached", "rows_swapped"),
    ],
    ids=" ".join,
)
def test_the_first_invariant_named_is_the_one_that_the_fault_breaks(
    page: Page, address: str, faults: tuple[str, ...]
) -> None:
    strategy, *names = faults
    broken_lanes = [f"{strategy}+{name}" for name in names]
    own = opened(
        page.context,
        address,
        '#player[data-live="live"]',
        prompts="\n".join({"eqspec": MORE_EXAMPLES[:3], "exspec": EXAMPLES}[strategy]),
        lanes=",".join([strategy, *broken_lanes]),
        batch={"eqspec": 3, "exspec": 2}[strategy],
        k=3,
        tokens={"eqspec": 24, "exspec": 32}[strategy],
    )
    finish(own)
    for name, lane_name in zip(names, broken_lanes, strict=True):
        found = first_broken(own, lane_name)
        assert FAULTS[name].breaks in found, (name, found)
        if len(found) > 1:
            causes = lane(own, lane_name).locator('[data-part="cause"] li').count()
            assert causes >= 1
        press(own, "End", last(own))
        assert FAULTS[name].breaks in broken(own, lane_name)
        verdict = lane(own, lane_name).locator('[data-part="verdict"]').inner_text()
        assert (SOUND if (strategy, name) in HARMLESS else "diverged") in verdict
    stands(own, strategy)
    own.close()
