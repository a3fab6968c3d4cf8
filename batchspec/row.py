"""One sequence of the batch."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    """One prompt and what has been committed to it.

    Attributes:
        number: the prompt's place in the caller's list; results come back in this order.
        prompt: the prompt's token ids, at least one.
        budget: new tokens the row may take.
        key: tells its random numbers from other rows', see `noise.row_key`.
        generated: committed new tokens, EOS kept.
        finished: whether the row met EOS or spent its budget.
    """

    number: int
    prompt: list[int]
    budget: int
    key: int = 0
    generated: list[int] = field(default_factory=list)
    finished: bool = False

    @property
    def tokens(self) -> list[int]:
        """The committed tokens: the prompt and everything accepted so far."""
        return self.prompt + self.generated

    @property
    def length(self) -> int:
        """How many tokens are committed."""
        return len(self.prompt) + len(self.generated)

    @property
    def remaining(self) -> int:
        """New tokens the row may still take."""
        return self.budget - len(self.generated)

    def cut(self, tokens: list[int], eos_token_ids: tuple[int, ...]) -> list[int]:
        """The part of `tokens` the row can take: up to its budget and to the first EOS."""
        kept = tokens[: self.remaining]
        for place, token in enumerate(kept):
            if token in eos_token_ids:
                return kept[: place + 1]
        return kept

    def commit(self, tokens: list[int], eos_token_ids: tuple[int, ...]) -> None:
        """Append `tokens`, already cut, and finish the row on EOS or an empty budget."""
        self.finished = self.finishes(tokens, eos_token_ids)
        self.generated += tokens

    def finishes(self, tokens: list[int], eos_token_ids: tuple[int, ...]) -> bool:
        """Whether the row is done once it takes `tokens`, already cut."""
        return len(tokens) == self.remaining or tokens[-1] in eos_token_ids
