"""Time the page in a browser: `PYTHONPATH=tests python -m browser.benchmark`.

Three lanes of eight rows and 64 new tokens; prints medians, the size of what travels, and what
open sessions add to the server's memory.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page

from batchspec.storyteller import EXAMPLES
from browser.driving import PATIENCE, PAUSED, RUNNING, TIME_KEYS, ask, finish, last, opened
from browser.served import chromium, served_page, server_of

ROWS, NEW_TOKENS, SESSIONS = 8, 64, 20
SCRUB = """async () => {
    const player = document.querySelector("#player");
    const range = player.querySelector("input[type=range]");
    const seen = new Set(), last = Number(range.max), started = performance.now();
    const watch = new MutationObserver(() => seen.add(player.dataset.frame));
    watch.observe(player, { attributes: true });
    for (let place = 0; place <= last; place += 1) {
        range.value = place;
        range.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((next) => requestAnimationFrame(next));
    }
    while (player.dataset.frame !== String(last)) await new Promise((next) => setTimeout(next, 5));
    return seen.size / (performance.now() - started) * 1000;
}"""


def main() -> None:
    """Print every figure of the page."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served_page(Path(folder)) as address,
        chromium() as browser,
    ):
        page = opened(browser, address)
        page.set_viewport_size({"width": 1440, "height": 900})
        received: list[int] = []
        page.on(
            "response",
            lambda answer: (
                received.append(len(answer.body())) if "component_server" in answer.url else None
            ),
        )
        _ask(page)
        finish(page)
        print(f"trace payload: {sum(received) / 1e6:.2f} MB in {len(received)} pieces")
        keys = ["ArrowRight"] * last(page) + ["ArrowLeft"] * last(page)
        _print_milliseconds("recorded step", page.evaluate(TIME_KEYS, keys))
        print(f"scrubbing: {page.evaluate(SCRUB):.0f} pictures a second")
        _print_milliseconds("live step", _live_steps(page))
        page.close()
        _print_memory(browser, address)


def _ask(page: Page, button: str = "#run") -> None:
    prompts = "\n".join(EXAMPLES * (ROWS // len(EXAMPLES)))
    ask(page, prompts, button, k="4", batch_size=str(ROWS), new_tokens=str(NEW_TOKENS))


def _live_steps(page: Page) -> list[float]:
    """Milliseconds from key to painted picture, the models run in between."""
    _ask(page, "#by-hand")
    page.wait_for_selector(PAUSED, timeout=PATIENCE)
    times: list[float] = []
    while page.locator(PAUSED).count():
        times += page.evaluate(TIME_KEYS, ["ArrowRight"])
    return times


def _print_milliseconds(name: str, times: list[float]) -> None:
    print(
        f"{name}: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms, "
        f"{len(times)} steps"
    )


def _print_memory(browser: Browser, address: str) -> None:
    """What open sessions add, each with a finished run, then each with one stopped on its way."""
    server = server_of(address)
    before = server.memory_info().rss
    pages = [opened(browser, address) for _ in range(SESSIONS)]
    for page in pages:
        _ask(page)
        finish(page)
    _print_added("finished", before, server)
    before = server.memory_info().rss
    for page in pages:
        _ask(page)
        page.wait_for_selector(RUNNING, timeout=PATIENCE)
        page.wait_for_function("Number(document.querySelector('#player').dataset.frames) > 40")
        page.click("[data-run=stop]")
        page.wait_for_selector(PAUSED, timeout=PATIENCE)
    _print_added("stopped half way", before, server)


def _print_added(what: str, before: int, server: psutil.Process) -> None:
    added = (server.memory_info().rss - before) / SESSIONS
    print(f"memory of each of {SESSIONS} sessions, its run {what}: {added / 1e6:.1f} MB more")


if __name__ == "__main__":
    main()
