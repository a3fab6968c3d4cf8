"""What tests do on the page, and what they know of the traces that it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from urllib.parse import urlencode

from playwright.sync_api import Browser, BrowserContext, Locator, Page

from batchspec.storyteller.example import LANES, load_example
from batchspec.trace import PHASES, CacheFrame, Frame, Trace
from browser.served import READY

PATIENCE = 120_000
"""Milliseconds that a run of models may take on a busy machine."""
RUNNING = '#player[data-live="running"]'
PAUSED = '#player[data-live="live"]:has([data-run=on]:not([hidden]))'
FINISHED = '#player[data-live="live"]:has([data-run=on][hidden])'

TIME_KEYS = """async (keys) => {
    const player = document.querySelector("#player"), times = [];
    const press = (key) => new Promise((done) => {
        const before = player.dataset.frame, started = performance.now();
        new MutationObserver((_, watch) => {
            if (player.dataset.frame === before) return;
            watch.disconnect();
            times.push(performance.now() - started);
            done();
        }).observe(player, { attributeFilter: ["data-frame"] });
        document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    });
    for (const key of keys) await press(key);
    return times;
}"""
"""Milliseconds from each key to the painted picture; each must lead to another frame."""


@cache
def example_traces() -> dict[str, Trace]:
    """What the page opens with, by lane."""
    return dict(zip(LANES, load_example(), strict=True))


def steps(traces: Sequence[Trace]) -> list[tuple[int, str]]:
    """Round and phase of every column of the scrubber: a phase has as many as a lane needs."""
    most: Counter[tuple[int, str]] = Counter()
    for trace in traces:
        most |= Counter((frame.round, frame.phase) for frame in trace.frames)
    return sorted(most.elements(), key=lambda step: (step[0], PHASES.index(step[1])))


def column(round: int, phase: str) -> int:
    """Where the example has a round and phase first."""
    return steps(list(example_traces().values())).index((round, phase))


def shown(trace: Trace, round: int, phase: str) -> Frame:
    """The frame that a lane shows there: its last one up to then."""
    until = round, PHASES.index(phase)
    return [frame for frame in trace.frames if (frame.round, PHASES.index(frame.phase)) <= until][
        -1
    ]


def cache_of(frame: Frame, model: str = "target") -> CacheFrame:
    found: CacheFrame = getattr(frame, model)
    return found


def watched(page: Page) -> list[str]:
    """The console errors of a page, from now on.

    Gradio's client lets a request that it gives up itself, while a page is left, end as an error.
    """
    errors: list[str] = []

    def note(words: str) -> None:
        if "signal is aborted" not in words:
            errors.append(words)

    page.on("console", lambda message: note(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: note(str(error)))
    return errors


def opened(
    place: Browser | BrowserContext, address: str, ready: str = READY, **query: object
) -> Page:
    """A page with a query; closed by whoever asks for it."""
    page = place.new_page()
    page.goto(f"{address}/?{urlencode({'__theme': 'light', **query})}")
    page.wait_for_selector(ready, timeout=PATIENCE)
    return page


@contextmanager
def visit(context: BrowserContext, address: str, **query: object) -> Iterator[Page]:
    """A page of its own with a query; fails on any console error after it is there."""
    page = opened(context, address, **query)
    errors = watched(page)
    yield page
    page.close()
    assert not errors


def at(page: Page, name: str) -> str:
    return page.locator("#player").get_attribute(f"data-{name}") or ""


def reach(page: Page, frame: int) -> None:
    page.wait_for_selector(f'#player[data-frame="{frame}"]')


def press(page: Page, key: str, frame: int) -> None:
    page.keyboard.press(key)
    reach(page, frame)


def last(page: Page) -> int:
    return int(at(page, "frames")) - 1


def to(page: Page, round: int, phase: str) -> None:
    """Go to a round and phase of the example."""
    place = column(round, phase)
    page.fill('#player input[type="range"]', str(place))
    reach(page, place)
    assert (at(page, "round"), at(page, "phase")) == (str(round), phase)


def painted(page: Page) -> None:
    """Wait until what was asked for so far is on the screen."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def ask(page: Page, prompts: str, button: str = "#run", **numbers: str) -> None:
    """Fill in settings and press a button."""
    page.fill("#prompts textarea", prompts)
    for name, value in numbers.items():
        page.fill(f"#{name.replace('_', '-')} input", value)
    page.evaluate("document.querySelector('#player').dataset.live = 'asked'")
    page.click(button)


def finish(page: Page) -> None:
    """Wait until a run that was asked for is over."""
    page.wait_for_selector(FINISHED, timeout=PATIENCE)


def run(page: Page, prompts: str, **numbers: str) -> None:
    ask(page, prompts, **numbers)
    finish(page)


def lane(page: Page, name: str) -> Locator:
    return page.locator(f'#player [data-lane="{name}"]')


def view(page: Page, name: str, which: str) -> Locator:
    return lane(page, name).locator(f'[data-view="{which}"]')


def slots(page: Page, name: str, which: str, row: int) -> dict[int, tuple[str, str]]:
    """Class and text of every slot of a row that is not free, by its number."""
    cells = view(page, name, which).locator(f'[data-row="{row}"] [data-slot]:not(.free)')
    found = cells.evaluate_all(
        "cells => cells.map((cell) => [cell.dataset.slot, cell.className, cell.textContent])"
    )
    return {int(slot): (look, text) for slot, look, text in found}
