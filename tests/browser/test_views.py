"""What each view shows, held against the trace that it is drawn from."""

from __future__ import annotations

import math

import pytest
from playwright.sync_api import Page, expect

import batchspec
from batchspec.storyteller import EXAMPLES
from batchspec.trace import ROLES, Frame, Trace
from browser.driving import (
    LANES,
    at,
    cache_of,
    example_traces,
    finish,
    lane,
    last,
    opened,
    painted,
    press,
    reach,
    shown,
    slots,
    steps,
    to,
    view,
)

VIEWS = {
    "pool": ("exspec",),
    **dict.fromkeys(
        ("tokens", "cache", "positions", "mask", "invariants", "history", "work", "outputs"), LANES
    ),
    "source": LANES,
    "table": LANES,
}
"""Every view, and the lanes that have it."""
HIDDEN_AT_FIRST = {"table"}


def toggle(page: Page, name: str) -> None:
    page.click("#player details.menu summary")
    page.click(f'#player [data-toggle="{name}"]')
    page.click("#player details.menu summary")
    painted(page)


def seen(page: Page, name: str) -> tuple[str, ...]:
    """The lanes in which a view is on the screen."""
    return tuple(one for one in LANES if view(page, one, name).is_visible())


def end(page: Page) -> dict[str, Frame]:
    """Go to the last phase; returns what each lane shows there."""
    press(page, "End", last(page))
    return {name: trace.frames[-1] for name, trace in example_traces().items()}


def test_a_new_visitor_sees_every_view_but_the_table(example: Page) -> None:
    toggles = example.locator("#player [data-toggle]")
    names = toggles.evaluate_all("all => all.map((one) => one.dataset.toggle)")
    assert set(names) == set(VIEWS)
    for name in names:
        assert seen(example, name) == (() if name in HIDDEN_AT_FIRST else VIEWS[name]), name


def test_a_view_goes_and_comes_back_in_all_lanes_by_mouse(example: Page) -> None:
    example.click("#player details.menu summary")
    for name, lanes in VIEWS.items():
        button = example.locator(f'#player [data-toggle="{name}"]')
        before = name not in HIDDEN_AT_FIRST
        for on in (not before, before):
            button.click()
            painted(example)
            assert button.get_attribute("aria-pressed") == str(on).lower()
            assert seen(example, name) == (lanes if on else ()), name
            if on:
                assert all(view(example, one, name).inner_html() for one in lanes), name


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_view_goes_and_comes_back_by_keyboard(example: Page, key: str) -> None:
    example.focus("#player details.menu summary")
    example.keyboard.press(key)
    for name in ("pool", "table", "mask"):
        before = seen(example, name)
        example.focus(f'#player [data-toggle="{name}"]')
        example.keyboard.press(key)
        painted(example)
        assert seen(example, name) == (VIEWS[name] if not before else ())
        example.keyboard.press(key)
        painted(example)
        assert seen(example, name) == before
    assert at(example, "frame") == "0"


@pytest.mark.parametrize("moment", [(1, "verify"), (3, "synchronize"), (6, "schedule")])
def test_a_row_stands_at_one_height_in_all_lanes(example: Page, moment: tuple[int, str]) -> None:
    to(example, *moment)
    for name in ("tokens", "cache", "positions", "history"):
        heights = []
        for one in LANES:
            rows = view(example, one, name).locator(".row")
            order = rows.evaluate_all("all => all.map((row) => row.dataset.row)")
            assert order == ["0", "1", "2", "3"], (one, name)
            heights.append(rows.evaluate_all("all => all.map((row) => row.offsetTop)"))
        assert heights[0] == heights[1] == heights[2], name
    for name in ("mask", "invariants", "work", "outputs", "source"):
        tops = {view(example, one, name).bounding_box()["y"] for one in LANES}  # type: ignore[index]
        assert len(tops) == 1, name


def exponent(error: float) -> str:
    return str(max(-16, min(9, math.floor(math.log10(error))))) if error > 0 else "0"


def test_kv_errors_are_powers_of_ten_and_marked_beyond_the_bound_only_where_broken(
    example: Page,
) -> None:
    to(example, 3, "verify")
    example.click('#player [data-shows="error"]')
    painted(example)
    marked = {}
    for name, trace in example_traces().items():
        cache = cache_of(shown(trace, 3, "verify"))
        broken = 0
        for row in range(len(trace.prompts)):
            for slot, (look, text) in slots(example, name, "cache", row).items():
                if look.startswith("unmeasured"):
                    assert math.isnan(cache.error[row, slot]) or not cache.visible[row, slot]
                    continue
                assert text == exponent(cache.error[row, slot]), (name, row, slot)
                assert ("wrong" in look) == bool(cache.error[row, slot] > 1e-3), (name, row, slot)
                broken += "wrong" in look
        marked[name] = broken
    assert marked["pad"] > 0
    assert marked["eqspec"] == marked["exspec"] == 0


@pytest.mark.parametrize("model", ["draft", "target"])
def test_the_cache_of_either_model_is_shown(example: Page, model: str) -> None:
    to(example, 2, "verify")
    example.click(f'#player [data-model="{model}"]')
    painted(example)
    for name, trace in example_traces().items():
        cache = cache_of(shown(trace, 2, "verify"), model)
        assert model in lane(example, name).locator('[data-caption="cache"]').inner_text()
        numbers = 0
        for row in range(len(trace.prompts)):
            for slot, (_, text) in slots(example, name, "positions", row).items():
                assert text in ("", str(cache.position[row, slot])), (name, row, slot)
                numbers += text != ""
        assert numbers == (cache.visible | (cache.expected >= 0)).sum()


def test_the_mask_is_that_of_the_row_picked(example: Page) -> None:
    to(example, 1, "verify")
    for row in (1, 0):
        example.select_option("#player .row-picker", str(row))
        painted(example)
        for name, trace in example_traces().items():
            feed = next(f for f in shown(trace, 1, "verify").feeds if f.model == "target")
            lines = view(example, name, "mask").locator(".query")
            fed = [query for query in range(feed.token.shape[1]) if feed.expected[row, query] >= 0]
            assert lines.count() == len(fed)
            for line, query in zip(lines.all(), fed, strict=True):
                cells = line.locator("[data-slot]:not(.free)")
                looks = cells.evaluate_all("all => all.map((one) => one.className.split(' ')[0])")
                allowed = feed.allowed[row, query].tolist()
                assert looks == ["seen" if may else "unseen" for may in allowed], (name, row, query)
            caption = lane(example, name).locator('[data-caption="mask"]')
            assert caption.inner_text().startswith(f"row {row}:")
    example.select_option("#player .row-picker", "3")
    painted(example)
    assert "not in the batch" in view(example, "pad", "mask").inner_text()


def kept_by_round(trace: Trace, row: int) -> list[str]:
    verdicts = [frame for frame in trace.frames if frame.phase == "verify"]
    return [str(frame.accepted[row]) if frame.active[row] else "" for frame in verdicts]


def test_the_acceptance_history_holds_the_counts_of_every_round(example: Page) -> None:
    end(example)
    for name, trace in example_traces().items():
        for row in range(len(trace.prompts)):
            kept = kept_by_round(trace, row)
            cells = view(example, name, "history").locator(f'[data-row="{row}"] [data-slot]')
            found = cells.all_inner_texts()
            assert found == kept[-len(found) :]
            assert len(found) >= min(len(kept), 12)


def test_the_history_holds_no_round_that_is_not_judged(example: Page) -> None:
    for phase, rounds in (("draft", 1), ("verify", 2)):
        to(example, 2, phase)
        cells = view(example, "eqspec", "history").locator('[data-row="0"] [data-slot]')
        assert cells.count() == rounds


def test_the_work_of_a_run_is_what_the_engine_counted(page: Page, address: str) -> None:
    prompts, lanes = EXAMPLES[:3], ("rollback", "eqspec", "exspec")
    query = {"prompts": "\n".join(prompts), "lanes": ",".join(lanes), "k": 2, "tokens": 10}
    own = opened(page.context, address, '#player[data-live="live"]', **query, batch=2)
    finish(own)
    own.focus("#player")
    press(own, "End", last(own))
    pair = batchspec.load_pair("storyteller")
    for name in lanes:
        config = batchspec.DecodeConfig(
            strategy=name, draft_tokens=2, max_new_tokens=10, batch_size=2
        )
        stats = batchspec.record(pair, prompts, config).stats
        words = view(own, name, "work").inner_text()
        kept = stats["row_rounds"] + stats["accepted"]
        rejected = stats["drafted"] - stats["accepted"]
        assert f" {rejected} rejected" in words, (name, stats)
        moved, size = stats["kv_slots_moved"], stats["bytes_moved"]
        expected = f"Moved: {moved} slots, {in_units(size)}." if moved else "Nothing was moved."
        assert expected in words, (name, stats)
        said = lane(own, name).locator('[data-part="stats"]').inner_text()
        assert f"mean acceptance length {stats['mean_acceptance_length']:.2f}" in said
        assert f"target forwards {stats['target_forwards']}" in said
        assert kept <= int(words.split(" kept")[0].split()[-1])
        if name == "exspec":
            assert f"group rate {100 * stats['group_rate']:.0f} %" in said
    own.close()


def in_units(size: float) -> str:
    return f"{size / 1e3:.1f} KB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def test_outputs_stand_against_the_reference(example: Page) -> None:
    end(example)
    for name, trace in example_traces().items():
        for row, divergence in enumerate(trace.first_divergence):
            output = view(example, name, "outputs").locator(f'[data-row="{row}"]')
            mark = output.locator("mark")
            if divergence is None:
                assert mark.count() == 0 and output.locator(".reference").count() == 0
                assert output.inner_text().rstrip().endswith(trace.texts[row].rstrip())
                continue
            assert mark.get_attribute("title") == f"first divergence, new token {divergence + 1}"
            wrong = trace.vocabulary[trace.generated[row][divergence]]
            assert wrong in trace.special_ids or mark.inner_text().strip("✗ ") == wrong.strip()
            reference = output.locator(".reference ins").inner_text().strip()
            assert reference and reference in trace.reference_texts[row]
    wrong_rows = sum(one is not None for one in example_traces()["pad"].first_divergence)
    assert view(example, "pad", "outputs").locator("mark").count() == wrong_rows > 0


@pytest.mark.parametrize("invariant", ["I1", "I2", "I3", "I4"])
def test_an_invariant_leads_to_the_first_cell_that_breaks_it(example: Page, invariant: str) -> None:
    trace = example_traces()["pad"]
    frame, violation = next(
        (frame, violation)
        for frame in trace.frames
        for violation in frame.violations
        if violation.invariant == invariant
    )
    end(example)
    place = steps(list(example_traces().values())).index((frame.round, frame.phase))
    lane(example, "pad").locator(f'[data-invariant="{invariant}"]').click()
    reach(example, place)
    if violation.model is not None:
        example.click(f'#player [data-model="{violation.model}"]')
        painted(example)
    row = f'[data-row="{violation.row}"]'
    cell = f'{row} [data-slot="{violation.slot}"]'
    marks = {
        "I1": ("positions", f"{cell}.wrong"),
        "I2": ("cache", f"{cell}.stale.wrong"),
        "I3": ("cache", f"{cell}.off-value"),
        "I4": ("outputs", f"{row} mark"),
    }
    which, mark = marks[invariant]
    assert view(example, "pad", which).locator(mark).count() == 1


def test_the_source_marks_the_lines_that_ran(example: Page) -> None:
    to(example, 1, "synchronize")
    for name, trace in example_traces().items():
        lines = view(example, name, "source").locator("li")
        ran = shown(trace, 1, "synchronize").lines
        found = lines.evaluate_all(
            "all => all.flatMap((line, place) => line.className === 'ran' ? [place] : [])"
        )
        assert [place + trace.source_line for place in found] == list(ran), name
        assert ran
        text = [line[1:] for line in lines.all_text_contents()]
        assert [line.strip() for line in text] == [
            line.strip() for line in trace.source.rstrip("\n").split("\n")
        ]


def test_the_table_has_the_numbers_of_every_row(example: Page) -> None:
    to(example, 3, "verify")
    toggle(example, "table")
    for name, trace in example_traces().items():
        frame = shown(trace, 3, "verify")
        rows = view(example, name, "table").locator("tbody tr")
        assert rows.count() == len(trace.prompts)
        for row in range(rows.count()):
            number, state, length, accepted, target, draft, positions, broken, newest = (
                rows.nth(row).locator("th, td").all_inner_texts()
            )
            assert (number, length) == (str(row), str(frame.length[row]))
            assert state == ("in the batch" if frame.active[row] else "waiting")
            counts = f"{frame.accepted[row]} of {frame.drafted[row]}"
            assert accepted == (counts if frame.active[row] else "")
            for model, held in (("target", target), ("draft", draft)):
                assert int(held or 0) == cache_of(frame, model).visible[row].sum()
            visible = frame.target.position[row][frame.target.visible[row]]
            assert positions == (f"{visible.min()}–{visible.max()}" if len(visible) else "")
            assert set(broken.split()) == {v.invariant for v in frame.violations if v.row == row}
            if frame.active[row]:
                new = [ROLES[role] for role in frame.role[row][frame.token_round[row] == 3]]
                assert all(role in newest for role in new)
    toggle(example, "table")


def test_the_pool_shows_the_group_and_other_rows_are_dim(example: Page) -> None:
    for moment in ((2, "draft"), (3, "draft")):
        to(example, *moment)
        frame = shown(example_traces()["exspec"], *moment)
        group = [row for row in range(4) if frame.active[row]]
        runs = view(example, "exspec", "pool").locator(".berth.runs")
        found = runs.evaluate_all("all => all.map((one) => Number(one.dataset.row))")
        assert sorted(found) == group
        names = " ".join(map(str, sorted(frame.pool)))
        berths = view(example, "exspec", "pool").locator(".berth[data-row]")
        order = berths.evaluate_all("all => all.map((one) => one.dataset.row).sort().join(' ')")
        assert order == names
        for which in ("tokens", "cache", "positions"):
            dim = view(example, "exspec", which).locator(".row.off")
            rows = dim.evaluate_all("all => all.map((one) => Number(one.dataset.row))")
            assert rows == [row for row in range(4) if row not in group]


def test_realignment_says_how_far_rows_move_and_how_much_that_is(example: Page) -> None:
    to(example, 1, "synchronize")
    trace = example_traces()["eqspec"]
    before, after = shown(trace, 1, "verify"), shown(trace, 1, "synchronize")
    assert after.slots_moved
    said = lane(example, "eqspec").locator('[data-part="sentence"]')
    expect(said).to_contain_text(f"{after.slots_moved} slots moved")
    work = view(example, "eqspec", "work")
    expect(work).to_contain_text(f"{after.slots_moved} slots, {in_units(after.bytes_moved)}")
    moved = 0
    for row in (0, 1):
        edges = [(frame.target.expected[row] >= 0).argmax() for frame in (before, after)]
        shift = int(edges[1] - edges[0])
        text = view(example, "eqspec", "cache").locator(f'[data-row="{row}"] .end').inner_text()
        arrow = f"{'→' if shift > 0 else '←'} {abs(shift)}"
        assert (arrow in text) == bool(shift), (row, shift, text)
        moved += bool(shift)
    assert moved
    assert "Nothing was moved." in view(example, "pad", "work").inner_text()
