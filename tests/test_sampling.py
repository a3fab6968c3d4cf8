"""Sampling: the right distribution, and the same tokens whatever a row's neighbours are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from batchspec import DecodeConfig, ModelPair, NGramDraft, compare, decode, generate, record
from batchspec.acceptance import RULES, keep_probability, residual
from batchspec.drafting import Draft
from batchspec.noise import ACCEPT, DRAFT, TARGET, gumbel, row_key, uniform
from batchspec.sampler import Sampler
from tiny import FAMILIES, KEEPING, ROWS, SPECULATIVE, all_written, noisy, shared_pair, tiny

FILTERS = [
    {"temperature": 6.0},
    {"temperature": 5.0, "top_k": 12},
    {"temperature": 3.0, "top_p": 0.8, "seed": 7},
    {"temperature": 4.0, "top_k": 20, "top_p": 0.9, "seed": -1},
]
SMALL = 8
"""A vocabulary whose distributions can be enumerated."""


@torch.no_grad()
def sampled(model: torch.nn.Module, row: list[int], count: int, config: DecodeConfig) -> list[int]:
    """What the target alone samples by full forwards, one token at a time."""
    warpers = [
        *([TemperatureLogitsWarper(config.temperature)] if config.temperature else []),
        *([TopKLogitsWarper(config.top_k)] if config.top_k else []),
        *([TopPLogitsWarper(config.top_p)] if config.top_p else []),
    ]
    tokens = list(row)
    key = torch.tensor([row_key(config.seed, row, 0)])
    for _ in range(count):
        scores = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[:, -1].double()
        for warper in warpers:
            scores = warper(None, scores)
        noise = gumbel(key, torch.tensor([[len(tokens)]]), TARGET, scores.shape[-1])
        tokens.append(int((scores + noise).argmax()))
    return tokens[len(row) :]


# Noise


def splitmix(word: int) -> int:
    """SplitMix64's output function on an unsigned word."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


@pytest.mark.parametrize("stream", [TARGET, DRAFT, ACCEPT])
def test_numbers_are_the_hash_of_row_place_stream_and_element(stream: int) -> None:
    keys, places = [3, -9, 2**63 - 1], [[0, 5], [7, 2**40], [1, 1]]
    found = uniform(torch.tensor(keys), torch.tensor(places), stream, 4)
    step = 0x9E3779B97F4A7C15
    for row, query, element in product(range(3), range(2), range(4)):
        counter = splitmix((keys[row] + (places[row][query] * 3 + stream + 1) * step) % 2**64)
        word = splitmix((counter + (element + 1) * step) % 2**64)
        assert found[row, query, element].item() == ((word >> 12) + 0.5) / 2**52


def test_numbers_are_even_and_never_reach_0_or_1() -> None:
    numbers = uniform(torch.arange(50), torch.arange(40).expand(50, -1), TARGET, 100).flatten()
    assert numbers.min() > 0 and numbers.max() < 1
    counts = torch.histc(numbers, bins=100, min=0, max=1)
    assert ((counts - 2000).square() / 2000).sum() < 99 + 5 * (2 * 99) ** 0.5


def test_keys_differ_by_seed_prompt_and_repeat() -> None:
    prompts = [[], [0], [0, 0], [1], [1, 0], [0, 1]]
    keys = {row_key(*of) for of in product([0, 1, -1, 2**64 + 5], prompts, [0, 1, 2])}
    assert len(keys) == 4 * 6 * 3
    assert all(-(2**63) <= key < 2**63 for key in keys)


# Filters


@pytest.mark.parametrize("settings", FILTERS)
def test_filters_are_those_of_transformers(settings: dict[str, float]) -> None:
    torch.manual_seed(0)
    logits = torch.randn(3, 2, 50) * 9
    config = DecodeConfig(**settings)  # type: ignore[arg-type]
    expected = logits.double().flatten(0, 1) / config.temperature
    if config.top_k:
        expected = TopKLogitsWarper(config.top_k)(None, expected)
    if config.top_p:
        expected = TopPLogitsWarper(config.top_p)(None, expected)
    found = Sampler.of(config).probabilities(logits).flatten(0, 1)
    assert torch.allclose(found, expected.softmax(-1), atol=1e-12)


@pytest.mark.parametrize("settings", [{"top_k": 0}, {"top_k": 50}, {"top_k": 99}, {"top_p": 1.0}])
def test_filters_may_keep_everything(settings: dict[str, float]) -> None:
    logits = torch.randn(1, 1, 50)
    sampler = Sampler.of(DecodeConfig(temperature=1.0, **settings))  # type: ignore[arg-type]
    assert torch.allclose(sampler.probabilities(logits), logits.double().softmax(-1))


# Exact against the reference


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("strategy", SPECULATIVE)
@pytest.mark.parametrize("settings", FILTERS)
def test_coupled_sampling_equals_the_target_alone_token_for_token(
    family: str, strategy: str, settings: dict[str, float]
) -> None:
    pair = shared_pair(family)
    config = DecodeConfig(
        strategy=strategy,
        max_new_tokens=12,
        batch_size=2,
        eos_token_ids=(),
        **settings,  # type: ignore[arg-type]
    )
    trace = record(pair, ROWS, config)
    assert trace.generated == [sampled(pair.target, row, 12, config) for row in ROWS]
    assert trace.first_violation is None
    assert trace.generated != all_written(family, ROWS, 12)
    assert 0 < trace.stats["accepted"] < trace.stats["drafted"]


@pytest.mark.parametrize("strategy", KEEPING)
@pytest.mark.parametrize("rule", ["coupled", "speculative"])
def test_a_draft_that_is_the_target_is_accepted_whole(strategy: str, rule: str) -> None:
    config = DecodeConfig(
        strategy=strategy, acceptance=rule, temperature=3.0, max_new_tokens=17, eos_token_ids=()
    )
    stats = generate(shared_pair("llama", "copy"), ROWS, config).stats
    assert stats.accepted == stats.drafted > 0


@pytest.mark.parametrize("rule", [name for name in RULES if name != "exact"])
@pytest.mark.parametrize("temperature", [0.0, 1e-6, 1e-300])
@pytest.mark.parametrize("seed", [0, 5])
def test_no_temperature_is_greedy(rule: str, temperature: float, seed: int) -> None:
    config = DecodeConfig(
        acceptance=rule, temperature=temperature, seed=seed, eos_token_ids=(), max_new_tokens=24
    )
    assert generate(shared_pair(), ROWS, config).tokens == all_written("llama", ROWS)


@pytest.mark.parametrize("rule", ["coupled", "speculative", "threshold"])
@pytest.mark.parametrize("strategy", KEEPING)
def test_a_row_is_the_same_alone_and_in_any_batch(rule: str, strategy: str) -> None:
    def tokens(rows: list[list[int]], batch_size: int) -> list[list[int]]:
        config = DecodeConfig(
            strategy=strategy,
            acceptance=rule,
            temperature=3.0,
            threshold=0.2,
            batch_size=batch_size,
            max_new_tokens=15,
            eos_token_ids=(),
        )
        return generate(shared_pair("qwen3"), rows, config).tokens

    rows = [*ROWS, [3, 4], [60] * 9]
    together = tokens(rows, 3)
    assert together == [tokens([row], 1)[0] for row in rows]
    assert together == tokens(rows[::-1], 8)[::-1]


def test_equal_prompts_are_different_samples_and_seeds_too() -> None:
    config = DecodeConfig(temperature=3.0, max_new_tokens=8, eos_token_ids=())
    tokens = generate(shared_pair(), [ROWS[0]] * 5, config).tokens
    other = DecodeConfig(temperature=3.0, max_new_tokens=8, eos_token_ids=(), seed=1)
    again = generate(shared_pair(), [ROWS[0]], config).tokens
    tokens += generate(shared_pair(), [ROWS[0]], other).tokens
    assert len(set(map(tuple, tokens))) == 6 and again[0] == tokens[0]


def test_global_random_state_is_left_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    for rule in ("coupled", "speculative", "threshold"):
        config = DecodeConfig(temperature=1.0, acceptance=rule, max_new_tokens=5)
        generate(shared_pair(), ROWS, config)
    assert torch.equal(before, torch.get_rng_state())


# Distributions


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("top_p", [None, 0.7])
def test_one_step_of_the_rule_has_the_distribution_of_the_target(
    seed: int, top_p: float | None
) -> None:
    torch.manual_seed(seed)
    sampler = Sampler(1.5, None, top_p)
    target, proposed = sampler.probabilities(4 * torch.randn(2, 1, SMALL, dtype=torch.float64))
    target, proposed = target[0], proposed[0]
    kept = keep_probability(target, proposed)
    left = residual(target, proposed)
    left = left / left.sum().clamp(min=1e-300)
    outcome = proposed * kept + (proposed * (1 - kept)).sum() * left
    assert (outcome - target).abs().max() < 1e-12
    assert top_p or 0.01 < (proposed * kept).sum() < 0.99


@torch.no_grad()
def joint(model: torch.nn.Module, prompt: list[int], sampler: Sampler) -> torch.Tensor:
    """The exact distribution of the next two tokens, `[first, second]`."""
    first = sampler.probabilities(model(input_ids=torch.tensor([prompt])).logits[:, -1:])[0, 0]
    continued = torch.tensor([[*prompt, token] for token in range(SMALL)])
    second = sampler.probabilities(model(input_ids=continued).logits[:, -1:])[:, 0]
    return first[:, None] * second


@cache
def small_pair(draft: str) -> ModelPair:
    target = tiny(vocabulary=SMALL, scale=4.0)
    return ModelPair(target, NGramDraft() if draft == "ngram" else noisy(target, 0.4))


@pytest.mark.parametrize("draft", ["model", "ngram"])
@pytest.mark.parametrize("rule", ["speculative", "coupled"])
@pytest.mark.parametrize("settings", [{}, {"top_k": 5}, {"top_p": 0.85}])
def test_two_tokens_have_the_joint_distribution_of_the_target(
    draft: str, rule: str, settings: dict[str, float]
) -> None:
    prompt, count = [5, 3, 4, 5, 3], 6000
    config = DecodeConfig(
        acceptance=rule,
        temperature=1.3,
        draft_tokens=2,
        max_new_tokens=3,
        batch_size=count,
        eos_token_ids=(),
        **settings,  # type: ignore[arg-type]
    )
    pair = small_pair(draft)
    generation = generate(pair, [prompt] * count, config)
    expected = joint(pair.target, prompt, Sampler.of(config)) * count
    found = torch.zeros_like(expected)
    for tokens in generation.tokens:
        found[tokens[0], tokens[1]] += 1
    assert (found[expected == 0] == 0).all()
    often = expected >= 5
    cells = int(often.sum())
    assert cells >= 8
    distance = ((found - expected).square() / expected)[often].sum()
    assert distance < cells + 4 * (2 * cells) ** 0.5
    assert 0.05 < generation.stats.draft_acceptance_rate < 0.97


def test_speculative_sampling_keeps_more_drafts_than_shared_noise() -> None:
    rates = []
    for rule in ("speculative", "coupled"):
        config = DecodeConfig(
            acceptance=rule, temperature=1.3, draft_tokens=1, max_new_tokens=2, batch_size=4000
        )
        generation = generate(small_pair("model"), [[5, 3, 4]] * 4000, config)
        rates.append(generation.stats.draft_acceptance_rate)
    assert rates[0] > rates[1] + 0.02


# Threshold


def judged(threshold: float, temperature: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Kept drafts and their probabilities for random logits."""
    torch.manual_seed(1)
    logits = 3 * torch.randn(4, 4, SMALL)
    config = DecodeConfig(acceptance="threshold", threshold=threshold, temperature=temperature)
    draft = Draft(torch.randint(SMALL, (4, 3)), [3] * 4)
    place = torch.arange(4).expand(4, -1)
    kept, _ = RULES["threshold"](config).judge(draft, logits, torch.arange(4), place)
    shares = (logits.double() / (temperature or 1.0)).softmax(-1)[:, :-1]
    return kept, shares.gather(-1, draft.ids[..., None])[..., 0]


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_threshold_keeps_what_is_likely_enough(temperature: float) -> None:
    _, shares = judged(1.0, temperature)
    middle = float(shares.flatten().sort().values[4:6].mean())
    kept, _ = judged(middle, temperature)
    assert torch.equal(kept, shares >= middle)
    assert kept.any() and not kept.all()


def test_a_low_threshold_is_lossy_and_says_so() -> None:
    config = DecodeConfig(
        acceptance="threshold", threshold=1e-3, max_new_tokens=20, eos_token_ids=()
    )
    result = compare(shared_pair("llama"), ROWS, [config])["eqspec"]
    assert result.exact_match_rate < 1
    for reason in result.diagnosis:
        assert reason is None or reason.startswith("lossy acceptance")


def test_only_kept_drafts_and_the_targets_own_token_are_committed() -> None:
    config = DecodeConfig(
        acceptance="threshold", threshold=1e-3, max_new_tokens=20, eos_token_ids=()
    )
    for step in decode(shared_pair("llama"), ROWS, config):
        if step.phase == "verify" and step.verdict is not None:
            verdict = step.verdict
            for place, count in enumerate(verdict.accepted):
                own = verdict.choices[place][count]
                assert verdict.committed[place] == [*verdict.drafts[place][:count], own]


# Diagnosis


def test_comparison_under_sampling() -> None:
    settings = {"temperature": 1.0, "max_new_tokens": 24, "eos_token_ids": ()}
    comparison = compare(
        shared_pair("llama"),
        ROWS,
        [
            DecodeConfig(strategy="pad", **settings),  # type: ignore[arg-type]
            DecodeConfig(strategy="eqspec", **settings),  # type: ignore[arg-type]
            DecodeConfig(strategy="ragged", acceptance="speculative", **settings),  # type: ignore[arg-type]
        ],
    )
    assert comparison["eqspec"].exact_match_rate == 1
    wrong = [reason for reason in comparison["pad"].diagnosis if reason]
    assert wrong and all(reason.startswith("state error") for reason in wrong)
    other = [reason for reason in comparison["ragged"].diagnosis if reason]
    assert other and all(reason.startswith("another sample") for reason in other)


def test_equal_prompts_are_recorded_with_references_of_their_own() -> None:
    prompts = [ROWS[1]] * 4 + [ROWS[0]] * 4
    settings = DecodeConfig(
        strategy="pad", temperature=1.0, max_new_tokens=24, batch_size=8, eos_token_ids=()
    )
    trace = record(shared_pair("llama"), prompts, settings)
    alone = replace(settings, strategy="autoregressive", batch_size=1)
    assert trace.reference == generate(shared_pair("llama"), prompts, alone).tokens
    assert trace.first_divergence.count(None) < 7
    assert len(set(map(tuple, trace.reference))) > 2


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, *FILTERS])
def test_the_margin_is_a_change_that_logits_survive(settings: dict[str, float]) -> None:
    sampler = Sampler.of(DecodeConfig(**settings))  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(1, 1, 60, generator=generator, dtype=torch.float64)
    key, place = torch.tensor([5]), torch.tensor([[9]])
    chosen = sampler.choose(logits, key, place)
    margin = sampler.margin(logits, key, place)
    assert margin > 0
    for _ in range(50):
        change = torch.rand(logits.shape, generator=generator, dtype=torch.float64) - 0.5
        assert torch.equal(sampler.choose(logits + 0.9 * margin * change, key, place), chosen)
