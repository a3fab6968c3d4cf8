"""One token lit wherever it is, kept by a click, and what its card tells."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from batchspec.trace import ROLES, Frame
from browser.driving import (
    LANES,
    at,
    cache_of,
    example_traces,
    lane,
    painted,
    press,
    run,
    shown,
    to,
    view,
)

ROUND, ROW = 2, 0


def frame_of(name: str, phase: str = "verify") -> Frame:
    return shown(example_traces()[name], ROUND, phase)


def chip(page: Page, name: str, place: int, row: int = ROW) -> Locator:
    """The chip of a row's token; in lanes without filler chips are numbered as tokens are."""
    return view(page, name, "tokens").locator(f'[data-row="{row}"] [data-chip="{place}"]')


def lit(page: Page, name: str, which: str, row: int = ROW) -> list[int]:
    cells = view(page, name, which).locator(f'[data-row="{row}"] [data-slot][data-lit]')
    found: list[int] = cells.evaluate_all("all => all.map((one) => Number(one.dataset.slot))")
    return found


def slot_of(name: str, place: int, phase: str = "verify") -> list[int]:
    held = cache_of(frame_of(name, phase)).expected[ROW].tolist()
    return [held.index(place)] if place in held else []


def query_of(name: str, place: int) -> list[int]:
    """The number of the query of a place among those fed to the target."""
    feed = next(feed for feed in frame_of(name).feeds if feed.model == "target")
    fed = [known for known in feed.expected[ROW].tolist() if known >= 0]
    return [fed.index(place)] if place in fed else []


@pytest.fixture
def place(example: Page) -> int:
    """The newest committed token of the row before it is judged: fed as the first query."""
    to(example, ROUND, "verify")
    return int(frame_of("eqspec").length[ROW]) - 1


def test_pointing_at_a_chip_lights_it_in_every_view_of_every_lane(
    example: Page, place: int
) -> None:
    chip(example, "eqspec", place).hover()
    painted(example)
    for name in LANES:
        assert view(example, name, "tokens").locator("[data-lit]").count() == 1
        for which in ("cache", "positions"):
            assert lit(example, name, which) == slot_of(name, place), (name, which)
        queries = view(example, name, "mask").locator(".query")
        (slot,), (own,) = slot_of(name, place), query_of(name, place)
        for number, query in enumerate(queries.all()):
            assert query.locator(f'[data-slot="{slot}"][data-lit]').count() == 1
            assert query.locator("[data-slot][data-lit]").count() == 1
            assert (query.get_attribute("data-lit") is not None) == (number == own)
    example.mouse.move(2, 2)
    expect(example.locator("#player [data-lit]")).to_have_count(0)
    expect(example.locator("#player .card")).to_be_hidden()


def test_pointing_at_a_slot_lights_its_chip(example: Page, place: int) -> None:
    (slot,) = slot_of("exspec", place)
    cells = view(example, "exspec", "positions")
    cells.locator(f'[data-row="{ROW}"] [data-slot="{slot}"]').hover()
    painted(example)
    assert chip(example, "exspec", place).get_attribute("data-lit") is not None
    assert chip(example, "eqspec", place).get_attribute("data-lit") is not None


def test_a_click_locks_steps_keep_it_and_escape_unlocks(example: Page, place: int) -> None:
    chip(example, "eqspec", place).click()
    card = example.locator("#player .card")
    expect(card).to_contain_text("locked")
    example.mouse.move(2, 2)
    for phase in ("synchronize", "verify"):
        to(example, ROUND, phase)
        expect(card).to_be_visible()
        assert lit(example, "eqspec", "cache") == slot_of("eqspec", place, phase)
        assert chip(example, "eqspec", place).get_attribute("data-lit") is not None
    example.keyboard.press("Escape")
    expect(card).to_be_hidden()
    assert example.locator("#player [data-lit]").count() == 0


def test_a_second_click_unlocks_and_a_click_on_another_token_moves_the_lock(
    example: Page, place: int
) -> None:
    chip(example, "eqspec", place).click()
    chip(example, "eqspec", place - 1).click()
    expect(example.locator("#player .card")).to_contain_text(f"token {place - 1}")
    chip(example, "eqspec", place - 1).click()
    example.mouse.move(2, 2)
    expect(example.locator("#player .card")).to_be_hidden()


def test_a_token_can_be_locked_and_walked_by_keyboard(example: Page, place: int) -> None:
    card = example.locator("#player .card")
    chips = int((frame_of("pad").token[ROW] >= 0).sum())
    example.keyboard.press("t")
    expect(card).to_contain_text(f"row {ROW}, token")
    expect(card).to_contain_text("locked")
    assert example.locator("#player [data-view=tokens] [data-lit]").count() >= 1
    newest = card.inner_text()
    example.keyboard.press("t")
    assert card.inner_text() != newest
    example.keyboard.press("T")
    expect(card).to_have_text(newest, use_inner_text=True)
    for _ in range(chips + 2):
        example.keyboard.press("t")
    expect(card).to_contain_text("token 0")
    example.keyboard.press("m")
    expect(card).to_contain_text(f"row {ROW}, token 0")
    example.keyboard.press("Escape")
    example.keyboard.press("t")
    expect(card).to_contain_text("row 1, token")
    example.keyboard.press("Escape")
    expect(card).to_be_hidden()


def told(words: str, who: str) -> float:
    """The percentage that the card gives behind `who`."""
    found = re.search(rf"{who} .* \(([\d.]+) %\)", words)
    assert found, words
    return float(found[1])


@pytest.mark.parametrize("turn", [1, 2])
def test_the_card_tells_who_proposed_and_who_judged_with_both_probabilities(
    example: Page, turn: int
) -> None:
    to(example, 1, "verify")
    trace = example_traces()["eqspec"]
    frame = shown(trace, 1, "verify")
    judgement = frame.judgement
    assert judgement is not None
    first = int(frame.length[ROW])
    kept = int(frame.accepted[ROW])
    assert kept == 2  # the second draft is accepted, the third rejected
    chips = frame.token[ROW].tolist()
    proposed, wanted = int(judgement.token[ROW, turn]), int(judgement.choice[ROW, turn])
    role = "accepted" if turn < kept else "rejected"
    number = next(
        place
        for place in range(first, len(chips))
        if chips[place] == proposed and ROLES[frame.role[ROW][place]] == role
    )
    chip(example, "eqspec", number).hover()
    card = example.locator("#player .card")
    expect(card).to_be_visible()
    words = card.inner_text()
    text = trace.vocabulary[proposed].strip()
    assert f"row {ROW}, token" in words and f"id {proposed}" in words
    assert f"{role}, round 1" in words
    assert text in words
    assert trace.vocabulary[wanted].strip() in words.split("target writes")[1]
    for who, shares in (
        ("draft proposes", judgement.draft_probability),
        ("target writes", judgement.choice_probability),
        *([("target gives", judgement.target_probability)] if turn >= kept else []),
    ):
        assert told(words, who) == pytest.approx(100 * float(shares[ROW, turn]), abs=0.51), who


def test_the_card_tells_what_the_cache_holds(example: Page, place: int) -> None:
    (slot,) = slot_of("pad", place)
    cells = view(example, "pad", "cache").locator(f'[data-row="{ROW}"] [data-slot="{slot}"]')
    cells.hover()
    words = example.locator("#player .card").inner_text()
    cache = cache_of(frame_of("pad"))
    fed = cache.position[ROW, slot]
    assert f"target slot {slot}" in words and f"position {fed}" in words
    assert fed != place and f"should be {place}" in words
    assert "K/V off by" in words and "bound" in words


def test_text_of_a_person_is_never_markup_and_fragments_show_their_bytes(page: Page) -> None:
    markup = "<b>x</b><img src=x onerror=alert(1)>&lt;i&gt;"
    run(page, f"{markup}\nsaid 🦊", k="2", new_tokens="3", batch_size="2")
    press(page, "ArrowRight", 1)
    card = page.locator("#player .card")
    seen = ""
    for row in (0, 1):
        for one in view(page, "eqspec", "tokens").locator(f'[data-row="{row}"] .chip').all():
            one.dispatch_event("mouseover")
            seen += card.inner_text() + "\n"
            assert card.locator(":not(br, q, b, small)").count() == 0
            assert card.locator("b:not(.bad)").count() == 0
    assert "<F0" in seen or "F0>" in seen
    assert "\ufffd" not in seen
    assert page.locator("#player :is(img, script, i b)").count() == 0
    assert markup in view(page, "eqspec", "outputs").inner_text()
    assert at(page, "frame") == "1"
    assert lane(page, "eqspec").locator("[data-part=sentence] img").count() == 0
