"""Draw the traces in `docs/strategies.md` again: `python -m sketches` in `tests/`."""

from __future__ import annotations

import re
from pathlib import Path

from batchspec import DecodeConfig, load_pair, record
from visuals.sketch import sketch

PAGE = Path(__file__).resolve().parent.parent / "docs" / "strategies.md"
PROMPTS = ["My sister", "Count: one,", "One day,"]
ROUNDS = 3


def drawn(page: str) -> str:
    """The page with every trace in it drawn by a new run."""
    pair = load_pair("storyteller")

    def block(found: re.Match[str]) -> str:
        name = found[1]
        config = DecodeConfig(
            strategy=name,
            draft_tokens=3,
            max_new_tokens=12,
            batch_size=2 if name == "exspec" else 3,
        )
        return f"```text {name}\n{sketch(record(pair, PROMPTS, config), ROUNDS)}\n```"

    return re.sub(r"```text (\w+)\n.*?```", block, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
