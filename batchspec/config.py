"""What a run is asked to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isinf
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
FAULT_NAMES = (
    "positions_by_slot",
    "rejected_visible",
    "rejected_zeroed",
    "pads_visible",
    "repad_without_unpad",
    "kv_not_shifted",
    "bonus_cached",
    "draft_as_correction",
    "rows_swapped",
)
"""The faults that can be switched on, see `batchspec.faults`."""
ACCEPTANCE_RULES = ("auto", "exact", "coupled", "speculative", "threshold")


def label_of(strategy: str, fault: str | None) -> str:
    """A strategy's name, and where it has a fault that after a plus."""
    return f"{strategy}+{fault}" if fault else strategy


@dataclass(frozen=True)
class DecodeConfig:
    """Settings of one run; checked at construction.

    Attributes:
        strategy: how the batch is kept in step after a ragged round; see `batchspec.strategies`.
        draft_tokens: K, the tokens the draft proposes per row and round.
        max_new_tokens: tokens written per row at most; 0 runs no model.
        batch_size: rows decoded together; further prompts follow in consecutive batches.
        window: prompts an equal-length pool may choose from.
        temperature: 0 takes the most likely token; above 0 tokens are sampled.
        top_k: keep this many of the likeliest tokens when sampling.
        top_p: keep the likeliest tokens up to this probability when sampling.
        seed: with a row's prompt, decides all its random numbers.
        acceptance: the rule that accepts drafts, see `batchspec.acceptance`: `exact` (greedy),
            `coupled` (sampled like the target alone, token for token), `speculative` (sampled from
            the target's distribution, other tokens) or `threshold` (lossy). `auto` means `exact`
            at temperature 0 and `coupled` above.
        threshold: least target probability of a draft under `threshold` acceptance.
        length_bucket: lengths that an equal-length pool counts as equal.
        grouping: whether an equal-length pool looks for equal lengths at all.
        eos_token_ids: ids that end a row; None asks the target's generation config, () is never.
        fault: one decision that a correct strategy shall make wrongly, see `batchspec.faults`;
            None leaves it right.

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
    fault: str | None = None

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
        self._check_sampling()
        if self.fault is not None and self.fault not in FAULT_NAMES:
            raise DecodeError(
                f"Unknown fault {self.fault!r}: choose one of {', '.join(FAULT_NAMES)}."
            )
        if self.eos_token_ids is not None:
            ids = self.eos_token_ids
            ids = (ids,) if isinstance(ids, int) or not isinstance(ids, Iterable) else tuple(ids)
            for token in ids:
                if not isinstance(token, Integral):
                    raise DecodeError(f"EOS ids must be whole numbers, not {token!r}.")
            object.__setattr__(self, "eos_token_ids", tuple(map(int, ids)))

    def _check_sampling(self) -> None:
        for name in ("temperature", "top_p", "threshold"):
            value = getattr(self, name)
            if value is None and name == "top_p":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or isinf(value):
                raise DecodeError(f"{name} must be a number, not {value!r}.")
        for name in ("top_k", "seed"):
            value = getattr(self, name)
            if value is None and name == "top_k":
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise DecodeError(f"{name} must be a whole number, not {value!r}.")
        if not self.temperature >= 0:
            raise DecodeError(f"temperature must be 0 or more, not {self.temperature}.")
        if self.top_k is not None and self.top_k < 0:
            raise DecodeError(f"top_k must be 0 or more, not {self.top_k}.")
        for name in ("top_p", "threshold"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise DecodeError(f"{name} must be above 0 and at most 1, not {value}.")
        if self.acceptance not in ACCEPTANCE_RULES:
            raise DecodeError(
                f"Unknown acceptance {self.acceptance!r}: "
                f"choose one of {', '.join(ACCEPTANCE_RULES)}."
            )
        if self.acceptance == "exact" and self.temperature > 0:
            raise DecodeError(
                f"exact acceptance is greedy, but temperature is {self.temperature}: "
                "use coupled or speculative acceptance, or temperature 0."
            )

    @property
    def label(self) -> str:
        """What a result is called: the strategy, then its fault, as `eqspec+rows_swapped`."""
        return label_of(self.strategy, self.fault)

    @property
    def rule(self) -> str:
        """The acceptance rule that `auto` stands for, or the one that was named."""
        if self.acceptance != "auto":
            return self.acceptance
        return "coupled" if self.temperature > 0 else "exact"
