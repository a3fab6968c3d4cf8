"""What a run is asked to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral

from batchspec.errors import DecodeError

STRATEGY_NAMES = (
    "autoregressive",
    "pad",
    "mask",
    "holes",
    "rollback",
    "eqspec",
    "exspec",
    "ragged",
)
"""The strategies that come along, known without importing them."""
ACCEPTANCE_RULES = ("auto", "exact")


@dataclass(frozen=True)
class DecodeConfig:
    """Settings of one run; checked at construction.

    Attributes:
        strategy: how the batch is kept in step after a ragged round; see `batchspec.strategies`.
        draft_tokens: K, the tokens the draft proposes per row and round.
        max_new_tokens: tokens written per row at most; 0 runs no model.
        batch_size: rows decoded together; further prompts follow in consecutive batches.
        window: prompts an equal-length pool may choose from.
        temperature: 0 takes the most likely token; sampling above 0 is not available yet.
        top_k: keep this many of the likeliest tokens when sampling.
        top_p: keep the likeliest tokens up to this probability when sampling.
        seed: starts the random numbers of sampling.
        acceptance: the rule that accepts drafts; `auto` means `exact` at temperature 0.
        threshold: least target probability of a draft under lossy acceptance.
        length_bucket: lengths that an equal-length pool counts as equal.
        grouping: whether an equal-length pool looks for equal lengths at all.
        eos_token_ids: ids that end a row; None asks the target's generation config, () is never.

    Raises:
        DecodeError: a value is outside its range; the sentence holds the value.
    """

    strategy: str = "eqspec"
    draft_tokens: int = 4
    max_new_tokens: int = 64
    batch_size: int = 8
    window: int = 32
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    acceptance: str = "auto"
    threshold: float = 0.5
    length_bucket: int = 1
    grouping: bool = True
    eos_token_ids: int | Iterable[int] | None = None

    def __post_init__(self) -> None:
        for name, words, least in (
            ("draft_tokens", "K, the draft tokens,", 1),
            ("max_new_tokens", "New tokens", 0),
            ("batch_size", "The batch size", 1),
            ("window", "The window", 1),
            ("length_bucket", "The length bucket", 1),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise DecodeError(
                    f"{words} must be a whole number of at least {least}, not {value}."
                )
        for name in ("temperature", "threshold"):
            if not isinstance(getattr(self, name), int | float):
                raise DecodeError(f"{name} must be a number, not {getattr(self, name)!r}.")
        for name in ("top_k", "seed"):
            if not isinstance(getattr(self, name), int | None):
                raise DecodeError(f"{name} must be a whole number, not {getattr(self, name)!r}.")
        if not self.temperature >= 0:
            raise DecodeError(f"temperature must be 0 or more, not {self.temperature}.")
        if self.temperature > 0:
            raise DecodeError(
                f"Sampling is not available yet: use temperature 0 instead of {self.temperature}."
            )
        if self.top_k is not None and self.top_k < 0:
            raise DecodeError(f"top_k must be 0 or more, not {self.top_k}.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise DecodeError(f"top_p must be above 0 and at most 1, not {self.top_p}.")
        if self.acceptance not in ACCEPTANCE_RULES:
            raise DecodeError(
                f"Unknown acceptance {self.acceptance!r}: "
                f"choose one of {', '.join(ACCEPTANCE_RULES)}."
            )
        if self.eos_token_ids is not None:
            ids = self.eos_token_ids
            ids = (ids,) if isinstance(ids, int) or not isinstance(ids, Iterable) else tuple(ids)
            for token in ids:
                if not isinstance(token, Integral):
                    raise DecodeError(f"EOS ids must be whole numbers, not {token!r}.")
            object.__setattr__(self, "eos_token_ids", tuple(map(int, ids)))
