"""Ragged: rows write at their own lengths, and finished rows' lanes go on working."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch

from batchspec import DecodeConfig, decode, generate
from batchspec.cached_model import FREE
from batchspec.lanes import BLOCK
from batchspec.step import Step
from tiny import ROWS, all_written, shared_pair

PROMPTS = [*ROWS, [3] * 9, [12, 13], [44, 5], [9, 9, 1, 30], [50]]


def run(**settings: object) -> Iterator[tuple[Step, dict[str, int]]]:
    """Every step, with where the K/V of the first target layer then lie and their room."""
    config = DecodeConfig(strategy="ragged", eos_token_ids=(), **settings)  # type: ignore[arg-type]
    for step in decode(shared_pair("llama"), PROMPTS, config):
        layers = step.target_cache.cache.layers
        states = layers[0].keys if layers else None
        room = {"capacity": 0, "place": 0, "length": max(row.length for row in step.rows)}
        if states is not None:
            room |= {"capacity": states.shape[2], "place": states.data_ptr()}
        yield step, room


def test_nothing_is_moved_or_realigned() -> None:
    config = DecodeConfig(strategy="ragged", batch_size=3, max_new_tokens=20, eos_token_ids=())
    stats = generate(shared_pair("llama"), PROMPTS, config).stats
    assert (stats.kv_slots_moved, stats.realigned_rounds) == (0, 0)


def test_memory_moves_only_where_it_grows_or_the_batch_shrinks() -> None:
    seen = list(run(batch_size=3, max_new_tokens=24))
    moves = 0
    for (before, old), (after, new) in pairwise(seen):
        if old["place"] != new["place"]:
            moves += 1
            grown = new["capacity"] > old["capacity"]
            assert grown or len(after.cached_rows) < len(before.cached_rows)
    assert 0 < moves <= 5 < len(seen)


@pytest.mark.parametrize("budget", [24, 90])
def test_room_comes_in_blocks_and_at_most_doubles_what_is_used(budget: int) -> None:
    longest = 0
    for step, room in run(batch_size=3, max_new_tokens=budget):
        longest = max(longest, room["length"])
        if room["capacity"]:
            assert room["capacity"] % BLOCK == 0
            assert room["capacity"] <= max(BLOCK, 2 * (longest + 5) + BLOCK)
            assert room["capacity"] >= step.target_cache.slots


def test_a_feed_stays_as_it_was_fed() -> None:
    kept = [
        (feed, feed.slot_index.clone())
        for step, _ in run(batch_size=3, max_new_tokens=24)
        for feed in step.feeds
    ]
    assert all(torch.equal(feed.slot_index, then) for feed, then in kept)


def test_a_freed_lane_is_taken_at_once() -> None:
    waiting = len(PROMPTS) - 3
    lanes: dict[int, int] = {}
    for step, _ in run(batch_size=3, max_new_tokens=12):
        if step.phase == "synchronize":
            left = [row for row in step.rows if row.finished]
            waiting = max(0, waiting - len(left))
            if waiting:
                assert len(step.cached_rows) == 3
        if step.phase == "verify":
            for lane, row in enumerate(step.rows):
                if waiting:
                    assert lanes.setdefault(row.number, lane) == lane
    assert waiting == 0 and len(lanes) > 3


def test_a_prompt_enters_without_running_the_other_lanes() -> None:
    prefills = [step for step, _ in run(batch_size=3, max_new_tokens=12) if step.phase == "prefill"]
    assert any(len(step.rows) < 3 for step in prefills)
    for step in prefills[1:]:
        for feed in step.feeds:
            assert feed.ids.shape == (len(step.rows), max(len(row.prompt) for row in step.rows) - 1)


def test_a_cleared_lane_forgets_its_row() -> None:
    entered = 0
    for step, _ in run(batch_size=3, max_new_tokens=12):
        for lane, row in enumerate(step.cached_rows):
            if step.phase == "synchronize" and not row.generated:
                assert (step.target_cache.index[lane] == FREE).all()
                assert not step.target_cache.visible[lane].any()
                entered += 1
    assert entered


def test_a_cache_is_as_wide_as_its_longest_row() -> None:
    for step, _ in run(batch_size=3, max_new_tokens=24):
        if step.phase == "synchronize" and step.cached_rows:
            longest = max(row.length if row.generated else 1 for row in step.cached_rows)
            assert step.target_cache.slots == longest - 1


def test_growing_keeps_what_was_cached() -> None:
    settings = {"batch_size": 3, "max_new_tokens": 100, "eos_token_ids": ()}
    found = [
        generate(shared_pair("llama"), ROWS, DecodeConfig(strategy=name, **settings)).tokens  # type: ignore[arg-type]
        for name in ("autoregressive", "ragged")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 8])
def test_results_come_in_prompt_order(batch_size: int) -> None:
    config = DecodeConfig(
        strategy="ragged", batch_size=batch_size, max_new_tokens=24, eos_token_ids=()
    )
    assert generate(shared_pair("llama"), PROMPTS, config).tokens == all_written("llama", PROMPTS)
