"""Drafting by prompt lookup."""

from __future__ import annotations

import pytest

from batchspec import DecodeConfig, DecodeError, ModelPair, NGramDraft, generate, record
from batchspec.strategies import STRATEGIES
from tiny import ROWS, reference, tiny

REPEATING = [*ROWS, [5, 9, 5, 9, 5], [3]]
SPECULATIVE = [name for name, s in STRATEGIES.items() if s.correct and s.speculative]


@pytest.mark.parametrize(
    ("tokens", "count", "expected"),
    [
        ([1, 2, 3, 1, 2], 4, [3, 1, 2]),
        ([1, 2, 3, 1, 2], 1, [3]),
        ([7, 2, 4, 1, 2, 5, 1, 2], 2, [5, 1]),  # the latest occurrence of the longest suffix
        ([9, 2, 4, 2], 2, [4, 2]),  # a shorter suffix where the longer has not occurred
        ([1, 2, 3], 4, []),
        ([1], 4, []),
        ([6, 6], 4, [6]),
    ],
)
def test_what_followed_the_longest_suffix_is_proposed(
    tokens: list[int], count: int, expected: list[int]
) -> None:
    assert NGramDraft(3).continuation(tokens, count) == expected


@pytest.mark.parametrize("strategy", SPECULATIVE)
def test_rows_with_drafts_of_different_lengths_equal_the_reference(strategy: str) -> None:
    target = tiny()
    config = DecodeConfig(strategy, max_new_tokens=24, batch_size=3, eos_token_ids=())
    trace = record(ModelPair(target, NGramDraft(3)), REPEATING, config)
    assert trace.generated == [reference(target, row, 24) for row in REPEATING]
    assert trace.first_violation is None
    assert trace.stats["draft_forwards"] == 0 and trace.stats["accepted"] > 0
    drafted = {
        frozenset(frame.drafted[frame.active].tolist())
        for frame in trace.frames
        if frame.phase == "verify"
    }
    assert any(len(lengths) > 1 for lengths in drafted)
    assert any(0 in lengths for lengths in drafted)


def test_lookup_saves_forwards_on_a_text_that_repeats() -> None:
    pair = ModelPair(tiny(), NGramDraft())
    configs = [DecodeConfig(name, batch_size=1) for name in ("autoregressive", "eqspec")]
    alone, drafted = (generate(pair, [[5, 9, 13]], config).stats for config in configs)
    assert drafted.target_forwards < alone.target_forwards


@pytest.mark.parametrize("value", [0, -1, 2.5, "3"])
def test_a_wrong_ngram_length_is_refused(value: object) -> None:
    with pytest.raises(DecodeError, match="at least 1, not"):
        NGramDraft(value)  # type: ignore[arg-type]
