"""Strategies held against the reference, and a diagnosis for every row that differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from batchspec.config import DecodeConfig
from batchspec.decoding import Prompts, generate, start_rows
from batchspec.errors import DecodeError
from batchspec.faults import FAULTS
from batchspec.generation import Generation
from batchspec.invariants import INVARIANTS
from batchspec.pair import ModelPair, evaluation_mode
from batchspec.recorder import record
from batchspec.row import Row
from batchspec.sampler import Sampler
from batchspec.strategies import strategy_of
from batchspec.trace import Trace, Violation, first_difference

TIE_BOUNDS = {"float64": 1e-9, "float32": 1e-4, "float16": 5e-2, "bfloat16": 4e-1}
"""Largest change of the logits that rounding can cause, per dtype."""
OTHER_TOKENS = {
    "speculative": (
        "another sample: speculative acceptance keeps the target's distribution, not its tokens; "
        "coupled acceptance keeps both"
    ),
    "threshold": "lossy acceptance: drafts pass that the target gives a probability of {} or more",
}
"""Acceptance rules under which a correct strategy may write other tokens than the reference."""


@dataclass(frozen=True)
class Result:
    """One strategy against the reference.

    Attributes:
        generation: what the strategy wrote, and its cost.
        first_divergence: per prompt the first new token that differs, None where all are equal.
        diagnosis: per prompt why it differs, None where it is equal.
        promised: whether strategy and acceptance rule promise the reference's tokens.
    """

    generation: Generation
    first_divergence: list[int | None]
    diagnosis: list[str | None]
    promised: bool

    @property
    def exact_match_rate(self) -> float:
        """Share of the prompts whose tokens all equal the reference's; 1 without prompts."""
        equal = [place is None for place in self.first_divergence]
        return sum(equal) / len(equal) if equal else 1.0


@dataclass(frozen=True)
class Comparison(Mapping[str, Result]):
    """Results by `DecodeConfig.label`: the strategy's name, and its fault where it has one.

    Attributes:
        reference: the target alone, one row at a time, without padding.
        results: one entry per compared config.
    """

    reference: Generation
    results: dict[str, Result]

    def __getitem__(self, name: str) -> Result:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


def compare(pair: ModelPair, prompts: Prompts, configs: Sequence[DecodeConfig]) -> Comparison:
    """Run the reference and every config on the same prompts.

    Args:
        pair: the models.
        prompts: as in `decode`.
        configs: one per strategy and fault; they must ask for the same tokens, so that one
            reference serves.

    Raises:
        DecodeError: bad input, or configs that no single reference fits.
    """
    if not configs:
        raise DecodeError("Nothing to compare: give at least one config.")
    names = [config.label for config in configs]
    if len(set(names)) < len(names):
        raise DecodeError(
            "Each strategy can be compared once, and once with each fault: "
            "give configs of different strategies or faults."
        )
    references = {reference_config(config) for config in configs}
    if len(references) > 1:
        raise DecodeError(
            "The configs ask for different tokens: give all of them the same max_new_tokens, "
            "sampling settings and EOS ids."
        )
    for config in configs:  # what one of them refuses is known before the reference has run
        start_rows(pair, prompts, config)
    reference = generate(pair, prompts, references.pop())
    return Comparison(
        reference,
        {config.label: check(pair, prompts, config, reference) for config in configs},
    )


def reference_config(config: DecodeConfig) -> DecodeConfig:
    """The settings under which the target alone writes what `config` asks for."""
    standard = DecodeConfig()
    return replace(
        config,
        strategy="autoregressive",
        batch_size=1,
        acceptance=standard.acceptance,
        threshold=standard.threshold,
        draft_tokens=standard.draft_tokens,
        window=standard.window,
        length_bucket=standard.length_bucket,
        grouping=standard.grouping,
        fault=None,
    )


def check(pair: ModelPair, prompts: Prompts, config: DecodeConfig, reference: Generation) -> Result:
    """Run one config and hold it against what the target alone wrote.

    Args and errors are those of `decode`; where tokens differ, the run is repeated and recorded.
    """
    generation = generate(pair, prompts, config)
    divergence = [
        first_difference(*tokens)
        for tokens in zip(generation.tokens, reference.tokens, strict=True)
    ]
    diagnosis: list[str | None] = [None] * len(divergence)
    if any(place is not None for place in divergence):
        trace = record(pair, prompts, config)
        rows = start_rows(pair, prompts, config)
        for number, place in enumerate(divergence):
            if place is not None:
                agreed = rows[number].prompt + reference.tokens[number][:place]
                diagnosis[number] = _diagnose(pair, config, trace, rows[number], agreed)
    promised = strategy_of(config).correct and config.rule not in OTHER_TOKENS
    return Result(generation, divergence, diagnosis, promised)


def _diagnose(
    pair: ModelPair, config: DecodeConfig, trace: Trace, row: Row, agreed: list[int]
) -> str:
    """Why a row left the reference after the tokens `agreed`."""
    for frame in trace.frames:
        for violation in frame.violations:
            if violation.row == row.number and violation.invariant != "I4":
                where = f"round {frame.round}, {frame.phase}"
                return f"state error: {describe(violation)} ({where})"
    if config.rule in OTHER_TOKENS:
        return OTHER_TOKENS[config.rule].format(config.threshold)
    if config.fault is not None and FAULTS[config.fault].breaks == "I4":
        return f"the fault {config.fault}: the cache is sound, and the row took another token"
    margin = _margin(pair, config, row, agreed)
    bound = TIE_BOUNDS[trace.dtype]
    if margin <= bound:
        return (
            f"numeric tie: a change of {margin:.1e} in the target's logits makes it choose another "
            f"token, under the bound of {bound:.0e} for {trace.dtype}"
        )
    return f"unexplained: no invariant broke and the target's choice is safe by {margin:.2f} logits"


@torch.inference_mode()
def _margin(pair: ModelPair, config: DecodeConfig, row: Row, agreed: list[int]) -> float:
    """How little the target's logits after `agreed` must change for another choice."""
    device = pair.target.device
    ids = torch.tensor([agreed], device=device)
    with evaluation_mode(pair.target):
        logits = pair.target(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, -1:]
    key = torch.tensor([row.key], device=device)
    place = torch.tensor([[len(agreed)]], device=device)
    return Sampler.of(config).margin(logits, key, place)


def describe(violation: Violation) -> str:
    """A violation as words, for people."""
    what = f"{violation.invariant} {INVARIANTS[violation.invariant]}"
    where = f"row {violation.row}, {violation.model} slot {violation.slot}"
    expected, found = violation.expected, violation.found
    if violation.invariant == "I1":
        return f"{what}: {where} has position {found:.0f}, expected {expected:.0f}"
    if violation.invariant == "I2":
        return f"{what}: {where} is {'visible' if found else 'hidden'}, which is wrong"
    if violation.invariant == "I3":
        return f"{what}: {where} is off by {found:.1e}, bound {expected:.0e}"
    place = f"row {violation.row}, new token {violation.slot}"
    return f"{what}: {place} is id {found:.0f}, the target alone writes id {expected:.0f}"
