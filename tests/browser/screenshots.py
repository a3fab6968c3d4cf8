"""Take the README's screenshots: `PYTHONPATH=tests python -m browser.screenshots`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from browser.served import READY, ROOT, chromium, served_page

VIEWS = {"light": (1440, 920), "dark": (1440, 920), "narrow": (390, 844)}
ROUND, PHASE = "3", "verify"


def main() -> None:
    """Write `docs/light.png`, `docs/dark.png` and `docs/narrow.png`."""
    wanted = f'#player[data-round="{ROUND}"][data-phase="{PHASE}"]'
    with (
        tempfile.TemporaryDirectory() as folder,
        served_page(Path(folder)) as address,
        chromium() as browser,
    ):
        for name, (width, height) in VIEWS.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(f"{address}/?__theme={'dark' if name == 'dark' else 'light'}")
            page.wait_for_selector(READY, timeout=60_000)
            while not page.locator(wanted).count():
                page.keyboard.press("ArrowRight")
                page.wait_for_timeout(100)
            path = ROOT / "docs" / f"{name}.png"
            page.screenshot(path=path)
            # Few colours are on the page: a palette of them takes a third of the bytes.
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
            page.close()


if __name__ == "__main__":
    main()
