"""Time the page in a browser: `python -m browser.benchmark` in `tests/`.

Three lanes of eight rows and 64 new tokens; prints medians, the size of what travels, and what
open sessions add to the server's memory.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import psutil
from playwright.sync_api import Page

from batchspec.storyteller import EXAMPLES
from browser.served import READY, chromium, served_page

ROWS, NEW_TOKENS, SESSIONS = 8, 64, 20
STEPS = """async () => {
    const player = document.querySelector("#player"), times = [];
    const step = (key) => new Promise((done) => {
        const before = player.dataset.frame, started = performance.now();
        new MutationObserver((_, watch) => {
            if (player.dataset.frame === before) return;
            watch.disconnect();
            times.push(performance.now() - started);
            done();
        }).observe(player, { attributes: true });
        document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    });
    const count = Number(player.dataset.frames) - 1;
    for (const key of ["ArrowRight", "ArrowLeft"])
        for (let place = 0; place < count; place += 1) await step(key);
    return times;
}"""
SCRUB = """async () => {
    const player = document.querySelector("#player"), range = player.querySelector("input[type=range]");
    const seen = new Set(), last = Number(range.max), started = performance.now();
    new MutationObserver(() => seen.add(player.dataset.frame)).observe(player, { attributes: true });
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
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        received: list[int] = []
        page.on(
            "response",
            lambda answer: (
                received.append(len(answer.body())) if "component_server" in answer.url else None
            ),
        )
        _open(page, address)
        page.click("#run")
        page.wait_for_selector('#player[data-live="live"]', timeout=120_000)
        print(f"trace payload: {sum(received) / 1e6:.2f} MB in {len(received)} pieces")
        _print_milliseconds("recorded step", page.evaluate(STEPS))
        print(f"scrubbing: {page.evaluate(SCRUB):.0f} pictures a second")
        _print_milliseconds("live step", _live_steps(page))
        page.close()
        _print_memory(browser, address)


def _open(page: Page, address: str, **settings: int) -> None:
    page.goto(f"{address}/?__theme=light")
    page.wait_for_selector(READY, timeout=60_000)
    page.fill("#prompts textarea", "\n".join(EXAMPLES * (ROWS // len(EXAMPLES))))
    page.fill("#k input", "4")
    page.fill("#batch-size input", str(ROWS))
    page.fill("#new-tokens input", str(NEW_TOKENS))


def _live_steps(page: Page) -> list[float]:
    """Milliseconds from key to painted picture, the models run in between."""
    page.click("#by-hand")
    page.wait_for_selector('#player[data-live="live"][data-frames="1"][data-frame="0"]')
    page.wait_for_selector("[data-run=on]")
    times = []
    while page.locator("[data-run=on]").is_visible():
        times.append(
            page.evaluate(
                """() => new Promise((done) => {
                    const player = document.querySelector("#player");
                    const before = player.dataset.frame, started = performance.now();
                    new MutationObserver((_, watch) => {
                        if (player.dataset.frame === before) return;
                        watch.disconnect();
                        done(performance.now() - started);
                    }).observe(player, { attributes: true });
                    const key = "ArrowRight";
                    document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                })"""
            )
        )
    return times


def _print_milliseconds(name: str, times: list[float]) -> None:
    print(
        f"{name}: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms, "
        f"{len(times)} steps"
    )


def _print_memory(browser: object, address: str) -> None:
    """What open sessions add, each with a finished run, then each with one stopped on its way."""
    port = int(address.rsplit(":", 1)[1])
    listening = (c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN)
    server = psutil.Process(next(c.pid for c in listening if c.laddr.port == port))
    before = server.memory_info().rss
    pages = [browser.new_page() for _ in range(SESSIONS)]
    for page in pages:
        _open(page, address)
        page.click("#run")
        page.wait_for_selector('#player[data-live="live"]', timeout=120_000)
    _print_added("finished", before, server)
    before = server.memory_info().rss
    for page in pages:
        page.click("#run")
        page.wait_for_selector('#player[data-live="running"]')
        page.wait_for_function("Number(document.querySelector('#player').dataset.frames) > 40")
        page.click("[data-run=stop]")
        page.wait_for_selector('#player[data-live="live"]', timeout=120_000)
    _print_added("stopped half way", before, server)


def _print_added(what: str, before: int, server: psutil.Process) -> None:
    added = (server.memory_info().rss - before) / SESSIONS
    print(
        f"memory added by each of {SESSIONS} sessions with a run that is {what}: {added / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
