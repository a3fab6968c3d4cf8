"""The pool: who runs with whom, who waits, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from batchspec import DecodeConfig, decode, generate
from batchspec.row import Row
from tiny import FAMILIES, all_written, shared_pair, written

LENGTHS = [3, 7, 3, 1, 20, 7, 3, 1, 5, 7, 20, 3]
PROMPTS = [[(7 * row + 3 * place) % 89 + 5 for place in range(n)] for row, n in enumerate(LENGTHS)]


def config(**settings: Any) -> DecodeConfig:
    given = {"batch_size": 4, "window": 6, "max_new_tokens": 20, "eos_token_ids": ()}
    return DecodeConfig(strategy="exspec", **{**given, **settings})


def schedules(draft: str = "noisy", **settings: Any) -> Iterator[tuple[list[Row], bool, list[Row]]]:
    """Of every round the scheduled rows, whether they were realigned, and all rows under way."""
    under_way: dict[int, Row] = {}
    for step in decode(shared_pair("llama", draft), PROMPTS, config(**settings)):
        if step.phase == "prefill":
            under_way |= {row.number: row for row in step.rows}
        if step.phase == "schedule":
            yield list(step.rows), step.realigned, list(under_way.values())
        if step.phase == "synchronize":
            for row in step.rows:
                if row.finished:
                    del under_way[row.number]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("window", "bucket"), [(6, 1), (6, 8), (1, 1), (12, 64)])
def test_results_come_in_prompt_order(family: str, window: int, bucket: int) -> None:
    settings = config(window=window, length_bucket=bucket)
    found = generate(shared_pair(family), PROMPTS, settings).tokens
    assert found == all_written(family, PROMPTS, 20)


def test_a_group_has_one_length_or_is_realigned_unless_it_just_ran_in_step() -> None:
    before: list[int] = []
    kinds = set()
    for rows, realigned, _ in schedules():
        numbers = sorted(row.number for row in rows)
        assert len(rows) <= 4
        one_length = len({row.length for row in rows}) == 1
        assert one_length or realigned or numbers == before
        assert not (one_length and realigned and numbers != before)
        kinds.add(one_length)
        before = numbers
    assert kinds == {True, False}


@pytest.mark.parametrize("window", [4, 6, 9])
def test_the_pool_is_refilled_at_once(window: int) -> None:
    seen: set[int] = set()
    done = 0
    for rows, _, under_way in schedules(window=window):
        seen |= {row.number for row in under_way}
        done = len(seen) - len(under_way)
        assert len(under_way) == min(window, len(PROMPTS) - done)
        assert len(rows) <= len(under_way)
    assert len(seen) == len(PROMPTS) and done >= len(PROMPTS) - 4


@pytest.mark.parametrize("grouping", [True, False])
@pytest.mark.parametrize("window", [3, 6])
def test_no_row_starves(window: int, grouping: bool) -> None:
    """One row of a length of its own, among rows that always fill a batch without it."""
    prompts = [[5, 9], *[[number] for number in range(20, 32)]]
    settings = config(batch_size=2, window=window, grouping=grouping, max_new_tokens=21)
    waited = longest = rounds = 0
    for step in decode(shared_pair("llama", "copy"), prompts, settings):
        if step.phase == "schedule":
            rounds += 1
            waited = 0 if any(row.number == 0 for row in step.rows) else waited + 1
            longest = max(longest, waited)
        if any(row.number == 0 and row.finished for row in step.rows):
            break
    assert longest <= window + 1
    assert rounds > window


def test_rows_of_one_length_take_turns() -> None:
    prompts = [[number] for number in range(20, 26)]
    settings = config(batch_size=2, window=6, max_new_tokens=21)
    waited = dict.fromkeys(range(6), 0)
    longest = 0
    for step in decode(shared_pair("llama", "copy"), prompts, settings):
        if step.phase == "schedule":
            running = [row.number for row in step.rows]
            waited = {row: 0 if row in running else waited[row] + 1 for row in waited}
            longest = max(longest, *waited.values())
        if any(row.finished for row in step.rows):
            break
    assert longest == 2  # two of six run at a time


def test_a_full_group_runs_where_there_is_one() -> None:
    full = 0
    for rows, _, under_way in schedules("copy", window=12):
        lengths = [row.length for row in under_way]
        if any(lengths.count(length) >= 4 for length in lengths):
            full += 1
            assert len({row.length for row in rows}) == 1 and len(rows) == 4
    assert full >= 3


def test_rows_of_a_bucket_run_together() -> None:
    mixed = 0
    for rows, _, under_way in schedules("copy", window=12, length_bucket=8):
        buckets = [row.length // 8 for row in under_way]
        if any(buckets.count(bucket) >= 4 for bucket in buckets):
            assert len({row.length // 8 for row in rows}) == 1
            mixed += len({row.length for row in rows}) > 1
    assert mixed


def test_equal_lengths_need_no_realignment_at_all() -> None:
    prompts = [written("llama", [number], 6) for number in range(8)]
    settings = config(window=8, max_new_tokens=21)
    stats = generate(shared_pair("llama", "copy"), prompts, settings).stats
    assert (stats.realigned_rounds, stats.group_rate, stats.busy_row_share) == (0, 1, 1)


def test_without_grouping_rows_are_chosen_by_who_waited_longest() -> None:
    rates = [
        generate(shared_pair("llama", "copy"), PROMPTS, config(window=12, grouping=on)).stats
        for on in (True, False)
    ]
    assert rates[0].group_rate > rates[1].group_rate
