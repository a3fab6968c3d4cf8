"""Every correct strategy writes, token for token, what the target writes alone."""

from __future__ import annotations

import copy
import random
from functools import cache
from itertools import groupby
from typing import Any

import pytest
import torch

from batchspec import DecodeConfig, ModelPair, decode, generate
from batchspec.cached_model import CachedModel
from batchspec.decoding import run_rows, start_rows
from batchspec.generation import Stats
from batchspec.row import Row
from tiny import (
    CORRECT,
    DRAFTS,
    FAMILIES,
    KEEPING,
    ROWS,
    SPECULATIVE,
    VOCABULARY,
    accepted_by_round,
    all_written,
    assert_ragged,
    assert_telling,
    clean_layers,
    noisy,
    reference,
    shared_pair,
    tiny,
    watched,
    worst_error,
    written,
)

every_family = pytest.mark.parametrize("family", FAMILIES)
every_strategy = pytest.mark.parametrize("strategy", CORRECT)
every_speculative = pytest.mark.parametrize("strategy", SPECULATIVE)


def config(strategy: str = "eqspec", **settings: Any) -> DecodeConfig:
    return DecodeConfig(
        **{"strategy": strategy, "max_new_tokens": 24, "eos_token_ids": (), **settings}
    )


@every_family
def test_the_fixtures_can_tell_a_wrong_decoder(family: str) -> None:
    assert_telling(all_written(family, ROWS))
    assert_ragged(shared_pair(family), ROWS, config())


@every_family
@every_strategy
@pytest.mark.parametrize("draft", DRAFTS)
def test_every_row_equals_the_reference(family: str, strategy: str, draft: str) -> None:
    generation = generate(shared_pair(family, draft), ROWS, config(strategy))
    assert generation.tokens == all_written(family, ROWS)


@every_family
@every_strategy
def test_a_row_of_one_token_and_a_row_of_a_hundred_share_a_batch(
    family: str, strategy: str
) -> None:
    prompts = [[44], [(7 * place + 3) % VOCABULARY for place in range(100)]]
    pair = shared_pair(family)
    assert_telling(all_written(family, prompts))
    finite = []
    handles = [
        model.register_forward_hook(
            lambda _module, _inputs, output: finite.append(bool(output.logits.isfinite().all()))
        )
        for model in (pair.target, pair.draft)
    ]
    tokens = generate(pair, prompts, config(strategy, draft_tokens=5)).tokens
    for handle in handles:
        handle.remove()
    assert tokens == all_written(family, prompts)
    assert finite and all(finite)


@every_family
@every_strategy
@pytest.mark.parametrize(
    "prompts",
    [[[0, 5, 0], [0], [7, 0, 0, 0, 9, 0]], [[2, 5, 2, 2, 9], [2], [7, 8, 2, 4, 6, 20, 2]]],
    ids=["pad ids", "eos ids"],
)
def test_pad_and_eos_ids_inside_prompts_are_tokens_like_any_other(
    family: str, strategy: str, prompts: list[list[int]]
) -> None:
    expected = all_written(family, prompts)
    assert any(len(set(tokens)) >= 3 for tokens in expected)
    assert generate(shared_pair(family), prompts, config(strategy)).tokens == expected


@every_strategy
@pytest.mark.parametrize("pad", [2, 60, 0, None])
def test_the_choice_of_pad_token_changes_nothing(strategy: str, pad: int | None) -> None:
    shared = shared_pair()
    pair = ModelPair(copy.deepcopy(shared.target), shared.draft)
    pair.target.config.pad_token_id = pair.target.generation_config.pad_token_id = pad
    prompts = [[2, 5, 2, 2, 9], *ROWS]
    assert generate(pair, prompts, config(strategy)).tokens == all_written("llama", prompts)
    assert pair.target.get_input_embeddings().num_embeddings == VOCABULARY
    assert pair.target.config.vocab_size == VOCABULARY


@every_strategy
@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_more_prompts_than_places_keep_their_order(strategy: str, batch_size: int) -> None:
    prompts = [*ROWS, [3] * 9, [90, 12], ROWS[1][:13], [50, 51, 52]]
    rows = start_rows(shared_pair(), prompts, config(strategy))
    steps = run_rows(shared_pair(), rows, config(strategy, batch_size=batch_size))
    assert max(len(step.rows) for step in steps) == min(batch_size, len(prompts))
    assert [row.generated for row in rows] == all_written("llama", prompts)


@every_strategy
def test_no_prompts_give_an_empty_result(strategy: str) -> None:
    generation = generate(shared_pair(), [], config(strategy))
    assert generation.tokens == []
    assert generation.stats.rounds == 0


@cache
def precise_pair(family: str, attention: str) -> tuple[ModelPair, list[list[int]]]:
    """A float64 pair and what its target writes."""
    pair = shared_pair(family)
    models = [copy.deepcopy(model).double() for model in (pair.target, pair.draft)]
    for model in models:
        model.set_attn_implementation(attention)
    return ModelPair(*models), [reference(models[0], row, 24) for row in ROWS]


@every_family
@every_strategy
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_float64_is_exact_with_either_attention(family: str, attention: str, strategy: str) -> None:
    pair, expected = precise_pair(family, attention)
    assert_telling(expected)
    assert generate(pair, ROWS, config(strategy)).tokens == expected


@every_speculative
@pytest.mark.parametrize("draft_type", [torch.bfloat16, torch.float64])
def test_a_draft_of_another_precision_changes_no_token(
    strategy: str, draft_type: torch.dtype
) -> None:
    shared = shared_pair()
    pair = ModelPair(shared.target, copy.deepcopy(shared.draft).to(draft_type))
    generation = generate(pair, ROWS, config(strategy))
    assert generation.tokens == all_written("llama", ROWS)
    assert generation.stats.accepted > 0


@every_speculative
def test_one_model_can_be_target_and_draft(strategy: str) -> None:
    target = shared_pair().target
    generation = generate(ModelPair(target, target), ROWS, config(strategy))
    assert generation.tokens == all_written("llama", ROWS)


@every_speculative
def test_a_draft_of_another_family_changes_no_token(strategy: str) -> None:
    pair = ModelPair(shared_pair("llama").target, shared_pair("gpt2").draft)
    assert generate(pair, ROWS, config(strategy)).tokens == all_written("llama", ROWS)


# Caches


def assert_clean(cached: CachedModel, place: int, row: Row, missing: range) -> None:
    """One cache row holds the row's tokens but the last few, once each and unspoilt."""
    slots = cached.visible[place].nonzero()[:, 0]
    slots = slots[cached.positions[place, slots].argsort()]
    count = len(slots)
    assert row.length - count in missing
    assert cached.positions[place, slots].tolist() == list(range(count))
    assert cached.ids[place, slots].tolist() == row.tokens[:count]
    if count:
        for layer, clean in zip(
            cached.cache.layers, clean_layers(cached.model, row.tokens[:count]), strict=True
        ):
            found = [states[place][:, slots] for states in (layer.keys, layer.values)]
            assert worst_error(found, clean).max() < 1e-4


@every_family
@every_strategy
@pytest.mark.parametrize("draft", ["copy", "noisy"])
def test_after_every_round_the_caches_hold_a_clean_prefill(
    family: str, strategy: str, draft: str
) -> None:
    prompts = [*ROWS, [3] * 9]
    checked = 0
    for step in decode(
        shared_pair(family, draft), prompts, config(strategy, batch_size=3, max_new_tokens=15)
    ):
        if step.phase in ("prefill", "synchronize"):
            for place, row in enumerate(step.cached_rows):
                if step.phase == "synchronize" and not row.generated:
                    assert strategy == "ragged"  # just given a lane, its prompt comes next
                    continue
                assert_clean(step.target_cache, place, row, range(1, 2))
                if step.draft_cache is not None:
                    assert_clean(step.draft_cache, place, row, range(1, 3))
                checked += 1
    assert checked > len(prompts)


@every_family
def test_the_caches_of_a_batch_are_no_wider_than_its_longest_row(family: str) -> None:
    for step in decode(shared_pair(family), ROWS, config()):
        if step.phase == "synchronize" and step.cached_rows:
            longest = max(row.length for row in step.cached_rows)
            assert step.target_cache.slots == longest - 1
            assert step.draft_cache is not None
            assert step.draft_cache.slots in (longest - 2, longest - 1)


@every_family
@every_speculative
@pytest.mark.parametrize("width", [1, 2, 4, 7])
def test_a_draft_that_is_the_target_is_accepted_whole(
    family: str, strategy: str, width: int
) -> None:
    rounds = 0
    for step in decode(shared_pair(family, "copy"), ROWS, config(strategy, draft_tokens=width)):
        if step.phase == "verify":
            assert step.verdict is not None and step.draft is not None
            assert step.verdict.accepted == step.draft.lengths
            assert [len(tokens) for tokens in step.verdict.committed] == [
                length + 1 for length in step.draft.lengths
            ]
            rounds += 1
    assert rounds == -(-24 // (width + 1))


@every_family
@every_speculative
def test_the_tokens_committed_by_round_are_the_row(family: str, strategy: str) -> None:
    joined: dict[int, list[int]] = {number: [] for number in range(len(ROWS))}
    for step in decode(shared_pair(family), ROWS, config(strategy)):
        if step.phase == "verify":
            assert step.verdict is not None
            for place, row in enumerate(step.rows):
                drafts, kept = step.verdict.drafts[place], step.verdict.accepted[place]
                committed = step.verdict.committed[place]
                assert committed[:kept] == drafts[:kept]
                assert len(committed) == kept + 1 or strategy not in KEEPING
                if kept < min(len(drafts), len(committed)):
                    assert committed[kept] != drafts[kept]
                assert row.generated == joined[row.number]
                joined[row.number] += committed
    assert list(joined.values()) == all_written(family, ROWS)


def test_phases_come_in_order() -> None:
    steps = [(step.round, step.phase) for step in decode(shared_pair(), ROWS, config(batch_size=2))]
    rounds = [[phase for _, phase in group] for _, group in groupby(steps, lambda step: step[0])]
    assert rounds[0] == ["prefill", "draft", "verify", "synchronize"]
    assert rounds[1] == ["draft", "verify", "synchronize"]
    assert sum("prefill" in phases for phases in rounds) == 2
    assert [number for number, _ in groupby(steps, lambda step: step[0])] == list(
        range(1, len(rounds) + 1)
    )


# Stopping


@every_family
@every_strategy
def test_a_finished_row_leaves_and_its_neighbours_do_not_change(family: str, strategy: str) -> None:
    for number, row in enumerate(ROWS):
        eos = (written(family, row)[1],)
        expected = all_written(family, ROWS, eos=eos)
        assert len(expected[number]) <= 2
        left = set()
        tokens: dict[int, list[int]] = {}
        for step in decode(shared_pair(family), ROWS, config(strategy, eos_token_ids=eos)):
            assert not left & {row.number for row in step.rows}
            assert not any(row.finished for row in step.cached_rows)
            assert step.target_cache.ids.shape[0] == len(step.cached_rows)
            left |= {row.number for row in step.rows if row.finished}
            tokens |= {row.number: list(row.generated) for row in step.rows}
        assert [tokens[place] for place in range(len(ROWS))] == expected


@every_family
def test_some_row_outlives_a_neighbour_that_met_eos(family: str) -> None:
    lengths = [
        [len(tokens) for tokens in all_written(family, ROWS, eos=(written(family, row)[1],))]
        for row in ROWS
    ]
    assert any(min(counts) <= 2 and max(counts) == 24 for counts in lengths)


@every_family
@every_strategy
@pytest.mark.parametrize("place", [3, 4])
def test_eos_inside_an_accepted_block_ends_the_row_there(
    family: str, strategy: str, place: int
) -> None:
    for row in ROWS:
        eos = (written(family, row)[place],)
        generation = generate(
            shared_pair(family, "copy"), ROWS, config(strategy, draft_tokens=8, eos_token_ids=eos)
        )
        assert generation.tokens == all_written(family, ROWS, eos=eos)


def test_nothing_after_eos_counts_as_accepted() -> None:
    eos = (written("llama", ROWS[0])[3],)
    row = written("llama", ROWS[0], eos=eos)
    stats = generate(
        shared_pair(draft="copy"), ROWS[:1], config(draft_tokens=8, eos_token_ids=eos)
    ).stats
    assert (stats.rounds, stats.drafted) == (1, 8)
    assert stats.accepted == stats.committed == len(row) < 8


@every_strategy
def test_eos_can_be_one_id_several_or_none(strategy: str) -> None:
    first, second = written("llama", ROWS[1])[2], written("llama", ROWS[2])[5]
    for given, meant in [
        (first, (first,)),
        ([first, second], (first, second)),
        ((second,), (second,)),
        ({first}, (first,)),
        ([], ()),
    ]:
        tokens = generate(shared_pair(), ROWS, config(strategy, eos_token_ids=given)).tokens
        assert tokens == all_written("llama", ROWS, eos=meant)


@every_strategy
def test_eos_comes_from_the_generation_config_when_not_given(strategy: str) -> None:
    first, second = written("llama", ROWS[1])[2], written("llama", ROWS[2])[5]
    pair = ModelPair(copy.deepcopy(shared_pair().target), shared_pair().draft)
    for given, meant in [(first, (first,)), ([first, second], (first, second)), (None, ())]:
        pair.target.generation_config.eos_token_id = given
        tokens = generate(pair, ROWS, config(strategy, eos_token_ids=None)).tokens
        assert tokens == all_written("llama", ROWS, eos=meant)


@every_strategy
@pytest.mark.parametrize("width", [1, 4, 7])
@pytest.mark.parametrize("budget", range(10))
def test_a_row_never_takes_more_than_its_budget(strategy: str, width: int, budget: int) -> None:
    settings = config(strategy, draft_tokens=width, max_new_tokens=budget)
    pair = shared_pair()
    with watched(pair.target) as target_calls, watched(pair.draft) as draft_calls:
        tokens = generate(pair, ROWS, settings).tokens
    assert tokens == all_written("llama", ROWS, budget)
    if budget == 0:
        assert not target_calls and not draft_calls


@every_strategy
def test_a_row_may_fill_the_context_to_its_last_position(strategy: str) -> None:
    for family in FAMILIES:
        pair = shared_pair(family)
        prompts = [[(11 * place + 5) % VOCABULARY for place in range(116)], [44]]
        expected = [reference(pair.target, row, 12) for row in prompts]
        assert generate(pair, prompts, config(strategy, max_new_tokens=12)).tokens == expected


def test_a_row_cuts_what_it_is_given_to_its_budget_and_to_eos() -> None:
    row = Row(number=0, prompt=[5], budget=4, generated=[9])
    assert row.cut([6, 7], ()) == [6, 7]
    assert row.cut([6, 7, 8, 2], ()) == [6, 7, 8]
    assert row.cut([6, 2, 2, 7], (2,)) == [6, 2]
    assert row.cut([6, 7, 8, 2], (2,)) == [6, 7, 8]


# Counts


@every_family
@pytest.mark.parametrize("strategy", KEEPING)
@pytest.mark.parametrize("draft", DRAFTS)
def test_counts_are_those_of_rows_played_alone(family: str, strategy: str, draft: str) -> None:
    pair = shared_pair(family, draft)
    stats = generate(pair, ROWS, config(strategy)).stats
    rounds = [accepted_by_round(family, draft, row, written(family, row), 24, 4) for row in ROWS]
    every = [counts for row in rounds for counts in row]
    assert stats.drafted == sum(drafted for drafted, _ in every)
    assert stats.accepted == sum(accepted for _, accepted in every)
    assert stats.committed == 24 * len(ROWS)
    assert stats.row_rounds == len(every)
    assert stats.rounds == max(map(len, rounds))
    assert stats.draft_acceptance_rate == stats.accepted / stats.drafted
    assert stats.mean_acceptance_length == stats.committed / stats.row_rounds
    assert stats.busy_row_share == stats.row_rounds / (stats.rounds * 8)


@every_strategy
def test_forwards_are_counted_as_they_happen(strategy: str) -> None:
    pair = shared_pair()
    with watched(pair.target) as target_calls, watched(pair.draft) as draft_calls:
        stats = generate(pair, ROWS, config(strategy)).stats
    assert stats.target_forwards == len(target_calls)
    assert stats.draft_forwards == len(draft_calls)


@every_speculative
def test_a_perfect_draft_saves_target_forwards(strategy: str) -> None:
    pair = shared_pair(draft="copy")
    plain = generate(pair, ROWS, config("autoregressive")).stats
    stats = generate(pair, ROWS, config(strategy)).stats
    assert stats.target_forwards < plain.target_forwards
    assert plain.drafted == plain.draft_forwards == 0


def places(cached: CachedModel, rows: tuple[Row, ...]) -> dict[tuple[int, int], int]:
    """The slot of every visible token, by row number and position."""
    return {
        (row.number, int(cached.positions[place, slot])): slot
        for place, row in enumerate(rows)
        for slot in cached.visible[place].nonzero()[:, 0].tolist()
    }


@every_family
@every_strategy
def test_moved_slots_are_counted_one_by_one(family: str, strategy: str) -> None:
    before: list[dict[tuple[int, int], int]] = []
    counted = 0
    pad_slots = slots = 0
    for step in decode(shared_pair(family), ROWS, config(strategy)):
        caches = [cached for cached in (step.target_cache, step.draft_cache) if cached]
        now = [places(cached, step.cached_rows) for cached in caches]
        if step.phase == "synchronize":
            moved = sum(
                old[token] != slot
                for old, new in zip(before, now, strict=True)
                for token, slot in new.items()
            )
            assert step.slots_moved == moved
            slots += step.target_cache.visible.numel()
            pad_slots += int((~step.target_cache.visible).sum())
        counted += step.slots_moved
        before = now
    stats = generate(shared_pair(family), ROWS, config(strategy)).stats
    assert stats.kv_slots_moved == counted
    assert stats.pad_slot_share == pad_slots / slots
    assert (stats.realigned_rounds > 0) == (counted > 0)


@pytest.mark.parametrize("grouping", [False, True])
def test_what_exspec_moves_in_its_schedule_is_counted(grouping: bool) -> None:
    settings = config("exspec", batch_size=2, grouping=grouping)
    steps = list(decode(shared_pair(), ROWS, settings))
    assert {step.phase for step in steps if step.slots_moved} == {"schedule"}
    stats = generate(shared_pair(), ROWS, settings).stats
    assert stats.kv_slots_moved == sum(step.slots_moved for step in steps)
    assert stats.realigned_rounds == len({step.round for step in steps if step.realigned}) > 0


def test_seconds_are_given_for_every_phase() -> None:
    stats = generate(shared_pair(), ROWS, config()).stats
    assert set(stats.seconds) == {"prefill", "schedule", "draft", "verify", "synchronize"}
    assert all(stats.seconds[phase] > 0 for phase in ("prefill", "draft", "verify", "synchronize"))
    assert stats.tokens_per_second == stats.committed / sum(stats.seconds.values())


# What a run leaves behind


def traits(model: torch.nn.Module) -> dict[str, Any]:
    return {
        "weights": {name: value.clone() for name, value in model.state_dict().items()},
        "config": copy.deepcopy(model.config.to_dict()),
        "generation": copy.deepcopy(model.generation_config.to_dict()),
        "training": [module.training for module in model.modules()],
        "hooks": [len(module._forward_pre_hooks) for module in model.modules()],
    }


def assert_same_traits(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert before["weights"].keys() == after["weights"].keys()
    for name, value in before["weights"].items():
        assert torch.equal(value, after["weights"][name])
    for name in before.keys() - {"weights"}:
        assert before[name] == after[name]


@every_strategy
@pytest.mark.parametrize("training", [False, True])
def test_models_and_random_state_are_as_they_were(strategy: str, training: bool) -> None:
    models = [tiny("gpt2"), noisy(tiny("gpt2"))]
    for model in models:
        model.train(training)
        model.transformer.h[0].train(not training)
    pair = ModelPair(*models)
    before = [traits(model) for model in models]
    state = torch.get_rng_state()
    tokens = generate(pair, ROWS, config(strategy)).tokens
    assert torch.equal(state, torch.get_rng_state())
    for model, old in zip(models, before, strict=True):
        assert_same_traits(old, traits(model))
    assert tokens == all_written("gpt2", ROWS)


def test_an_abandoned_run_gives_the_models_back() -> None:
    pair = ModelPair(tiny().train(), noisy(tiny()).train())
    run = decode(pair, ROWS, config())
    next(run)
    assert not pair.target.training
    run.close()
    assert all(module.training for model in (pair.target, pair.draft) for module in model.modules())


@every_strategy
def test_sampling_defaults_of_a_model_do_not_leak_in(strategy: str) -> None:
    models = [copy.deepcopy(model) for model in (shared_pair().target, shared_pair().draft)]
    for model in models:
        model.generation_config.do_sample = True
        model.generation_config.temperature = 5.0
        model.generation_config.repetition_penalty = 3.0
        model.generation_config.num_beams = 4
        model.config.use_cache = False
    tokens = generate(ModelPair(*models), ROWS, config(strategy)).tokens
    assert tokens == all_written("llama", ROWS)


@every_strategy
def test_prompts_given_in_are_not_changed(strategy: str) -> None:
    prompts = copy.deepcopy(ROWS)
    generate(shared_pair(), prompts, config(strategy))
    assert prompts == ROWS


@every_strategy
def test_the_same_input_gives_the_same_tokens_again(strategy: str) -> None:
    first, second = (generate(shared_pair(), ROWS, config(strategy)) for _ in range(2))
    assert first.tokens == second.tokens
    assert first.stats.accepted == second.stats.accepted


@pytest.mark.parametrize("strategy", ["exspec", "ragged"])
def test_a_long_queue_keeps_the_batch_busy_and_the_caches_small(strategy: str) -> None:
    chance = random.Random(3)
    prompts = [
        [chance.randrange(3, 60) for _ in range(chance.choice([1, 2, 4, 8, 16, 32, 64]))]
        for _ in range(128)
    ]
    config = DecodeConfig(strategy=strategy, batch_size=8, max_new_tokens=40, eos_token_ids=())
    stats, held = Stats(config.batch_size), []
    for step in decode(shared_pair("llama"), prompts, config):
        stats.add(step)
        if step.phase == "synchronize":
            held.append(step.target_cache.slots * len(step.cached_rows))
    assert stats.committed == 128 * 40
    assert stats.busy_row_share >= 0.95
    assert max(held[len(held) // 2 :]) <= 1.1 * max(held[: len(held) // 2])
