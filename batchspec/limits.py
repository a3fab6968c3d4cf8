"""What a public page lets strangers ask for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from batchspec.config import DecodeConfig
from batchspec.errors import DecodeError
from batchspec.presets import PRESETS

PUBLIC = "BATCHSPEC_PUBLIC"
"""The environment variable that makes a page public, unless it is empty or 0."""


@dataclass(frozen=True)
class Limits:
    """The most of everything that one run may ask for.

    Attributes:
        rows: prompts.
        characters: of all prompts together.
        new_tokens, draft_tokens, batch_size, window: as in `DecodeConfig`.
        parameters: of a pair.
    """

    rows: int = 16
    characters: int = 8000
    new_tokens: int = 128
    draft_tokens: int = 8
    batch_size: int = 16
    window: int = 64
    parameters: int = 1_000_000_000

    @property
    def pairs(self) -> tuple[str, ...]:
        """The presets that are small enough."""
        return tuple(name for name, row in PRESETS.items() if row.parameters <= self.parameters)

    def check_pair(self, name: str, draft: str) -> None:
        """Refuse pairs that are no small preset, and drafts that would have to be fetched.

        Raises:
            DecodeError: says what there is.
        """
        if name not in self.pairs:
            raise DecodeError(
                f"There is no pair {name!r:.60} here: choose one of {', '.join(self.pairs)}, or "
                "run the app yourself."
            )
        if draft not in ("", "ngram"):
            raise DecodeError(
                f"There is no draft {draft!r:.60} here: choose the pair's own or ngram, or run "
                "the app yourself."
            )

    @classmethod
    def of_this_page(cls) -> Limits | None:
        """The limits where the environment says that the page is public, else None."""
        return cls() if os.environ.get(PUBLIC, "0") not in ("", "0") else None

    def check(self, prompts: Sequence[str], config: DecodeConfig) -> None:
        """Refuse what goes beyond the limits.

        Raises:
            DecodeError: names the limit.
        """
        for words, found, most in (
            ("prompts", len(prompts), self.rows),
            ("characters of prompts", sum(map(len, prompts)), self.characters),
            ("new tokens", config.max_new_tokens, self.new_tokens),
            ("draft tokens K", config.draft_tokens, self.draft_tokens),
            ("rows a batch", config.batch_size, self.batch_size),
            ("rows in the window", config.window, self.window),
        ):
            if found > most:
                raise DecodeError(
                    f"This public page allows at most {most} {words}, not {found}: "
                    "ask for less, or run the app yourself."
                )
