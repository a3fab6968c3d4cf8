"""Drafting without a model: what followed the last time these words were written."""

from __future__ import annotations

from dataclasses import dataclass

from batchspec.errors import DecodeError


@dataclass(frozen=True)
class NGramDraft:
    """Prompt lookup: propose what followed the row's longest suffix that occurred before.

    Attributes:
        max_ngram: longest suffix to look for, in tokens.

    Raises:
        DecodeError: `max_ngram` is no whole number of at least 1.
    """

    max_ngram: int = 3

    def __post_init__(self) -> None:
        if type(self.max_ngram) is not int or self.max_ngram < 1:
            raise DecodeError(
                f"max_ngram must be a whole number of at least 1, not {self.max_ngram!r}."
            )

    def continuation(self, tokens: list[int], count: int) -> list[int]:
        """At most `count` tokens that followed the latest occurrence of the longest suffix."""
        for size in range(min(self.max_ngram, len(tokens) - 1), 0, -1):
            suffix = tokens[-size:]
            for start in range(len(tokens) - size - 1, -1, -1):
                if tokens[start : start + size] == suffix:
                    return tokens[start + size : start + size + count]
        return []
