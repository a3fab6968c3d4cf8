"""Every architecture is decoded exactly, or refused by what it does and not by its name."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache, wraps
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from architectures import (
    BY_SLOT,
    CASES,
    CAUSAL_BY_SLOT,
    COUNTING_SLOTS,
    EAGER_ONLY,
    FAMILIES,
    LIMITED,
    strategies_of,
)
from batchspec import DecodeConfig, DecodeError, ModelPair, NGramDraft, decode, generate, record
from batchspec.ablation import ablate
from batchspec.attention import Span
from batchspec.cached_model import CachedModel, positions_by_token
from batchspec.step import Step
from tiny import (
    LONGEST,
    ROWS,
    SPECULATIVE,
    all_written,
    assert_ragged,
    assert_telling,
    noisy,
    reference,
    shared_pair,
    tiny,
    watched,
)

every_case = pytest.mark.parametrize(("family", "attention"), CASES)


def config(strategy: str = "eqspec", **settings: Any) -> DecodeConfig:
    return DecodeConfig(
        strategy=strategy, max_new_tokens=LONGEST, batch_size=3, eos_token_ids=(), **settings
    )


@cache
def pair_of(family: str, attention: str = "eager") -> tuple[ModelPair, list[list[int]]]:
    """A pair and what its target writes alone; no test may change it."""
    target = tiny(family, attention=attention)
    return ModelPair(target, noisy(target)), [reference(target, row, LONGEST) for row in ROWS]


@every_case
def test_the_fixtures_can_tell_a_wrong_decoder(family: str, attention: str) -> None:
    pair, expected = pair_of(family, attention)
    assert pair.target.config._attn_implementation == attention
    assert_telling(expected)
    assert_ragged(pair, ROWS, config())


@pytest.mark.parametrize(
    ("family", "attention", "strategy"),
    [(*case, strategy) for case in CASES for strategy in strategies_of(case[0])],
)
def test_every_row_equals_the_reference(family: str, attention: str, strategy: str) -> None:
    pair, expected = pair_of(family, attention)
    assert generate(pair, ROWS, config(strategy)).tokens == expected


@pytest.mark.parametrize(
    ("family", "attention", "strategy"),
    [(family, "eager", "eqspec") for family in FAMILIES]
    + [
        (family, "eager" if family in EAGER_ONLY else "sdpa", strategy)
        for family in FAMILIES
        for strategy in ("holes", "ragged")
        if strategy in strategies_of(family)
    ],
)
def test_a_recorded_run_breaks_no_invariant(family: str, attention: str, strategy: str) -> None:
    pair, expected = pair_of(family, attention)
    trace = record(pair, ROWS, config(strategy))
    assert trace.generated == trace.reference == expected
    assert not [violation for frame in trace.frames for violation in frame.violations]


@pytest.mark.parametrize("family", ["bloom", "gemma3", "mistral sliding"])
def test_the_naive_batch_runs_and_is_caught(family: str) -> None:
    pair, expected = pair_of(family)
    trace = record(pair, ROWS, config("pad"))
    assert trace.reference == expected
    broken = {violation.invariant for frame in trace.frames for violation in frame.violations}
    assert broken >= {"I1", "I2", "I3"}


# Who may attend to whom


def fed_masks(family: str, strategy: str) -> Iterator[tuple[Step, Any, Any]]:
    """Each target forward of a run: its step, its recorded feed, the mask the model was given."""
    pair, _ = pair_of(family)
    with watched(pair.target) as calls:
        for step in decode(pair, ROWS, config(strategy)):
            for feed in step.feeds:
                if feed.model == "target":
                    yield step, feed, calls.pop(0)["attention_mask"]


def shown(mask: torch.Tensor, feed: Any) -> list[list[int]]:
    """Places in the row that each query with a token sees, for all rows one after the other."""
    held = feed.slot_index.tolist()
    return [
        [
            place
            for place, seen in zip(held[row], mask[row, 0, query].tolist(), strict=True)
            if not seen
        ]
        for row, query in (feed.index >= 0).nonzero().tolist()
    ]


@pytest.mark.parametrize("strategy", ["holes", "eqspec"])
@pytest.mark.parametrize("family", LIMITED)
def test_windows_and_chunks_count_tokens_of_the_row(family: str, strategy: str) -> None:
    cut = 0
    for _, feed, given in fed_masks(family, strategy):
        settings = pair_of(family)[0].target.config
        kinds = set(getattr(settings, "layer_types", ["sliding_attention"]))
        masks = given if isinstance(given, dict) else {"sliding_attention": given}
        assert masks.keys() == kinds
        places = feed.index[feed.index >= 0].tolist()
        for kind, mask in masks.items():
            first = {
                "full_attention": lambda place: 0,
                "sliding_attention": lambda place: max(0, place - 7),
                "chunked_attention": lambda place: place - place % 8,
            }[kind]
            wanted = [list(range(first(place), place + 1)) for place in places]
            assert shown(mask, feed) == wanted
            cut += sum(len(seen) <= place for seen, place in zip(wanted, places, strict=True))
        widest = masks.get("full_attention", next(iter(masks.values())))
        assert torch.equal(feed.mask, widest)
    assert cut


@pytest.mark.parametrize("strategy", ["holes", "eqspec"])
@pytest.mark.parametrize("family", BY_SLOT)
def test_a_model_that_masks_by_slot_is_given_the_visible_slots(family: str, strategy: str) -> None:
    hidden = 0
    for _, feed, given in fed_masks(family, strategy):
        assert given.shape == feed.slot_index.shape and not given.is_floating_point()
        # A token that is hidden from every query still counts where it is seen next time.
        assert torch.equal(given == 1, feed.slot_index >= 0)
        places = feed.index[feed.index >= 0].tolist()
        assert shown(feed.mask, feed) == [list(range(place + 1)) for place in places]
        hidden += int((given == 0).sum())
    assert hidden


def test_a_span_sees_what_its_kind_says() -> None:
    place = torch.arange(7)
    allowed = place <= place[:, None]
    seen = {
        span: span.cut(allowed, place[:, None], place)[5].nonzero()[:, 0].tolist()
        for span in (
            Span("full_attention"),
            Span("sliding_attention", 3),
            Span("sliding_attention", 1),
            Span("chunked_attention", 4),
        )
    }
    assert list(seen.values()) == [[0, 1, 2, 3, 4, 5], [3, 4, 5], [5], [4, 5]]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pair_knows_what_its_models_can_do(family: str) -> None:
    pair, _ = pair_of(family)
    assert pair.target_attention == pair.draft_attention
    assert pair.target_attention.by_query == (family not in BY_SLOT)
    assert pair.skips_holes == (family not in COUNTING_SLOTS)
    assert pair.takes_query_masks == (family not in CAUSAL_BY_SLOT)
    limits = {span.size for span in pair.target_attention.spans} - {0}
    assert limits == ({8} if family in LIMITED else set())


@pytest.mark.parametrize(
    ("family", "strategy", "reason"),
    [(family, "holes", "distance or a window in slots") for family in COUNTING_SLOTS]
    + [(family, "ragged", "causal rule by slot") for family in CAUSAL_BY_SLOT],
)
def test_a_strategy_is_refused_where_slots_decide(family: str, strategy: str, reason: str) -> None:
    pair, _ = pair_of(family)
    llama = shared_pair().target
    for refused in (pair, ModelPair(llama, pair.draft)):
        with pytest.raises(DecodeError, match=reason) as error:
            decode(refused, ROWS, config(strategy))
        assert str(error.value).endswith(".")


@pytest.mark.parametrize("family", ["llama", "bloom"])
def test_an_ablation_leaves_out_what_a_pair_cannot_run(family: str) -> None:
    ablation = ablate(pair_of(family)[0], ROWS, config(), repeats=1)
    names = [measurement.configuration.name for measurement in ablation.measurements]
    assert names[0] == "eqspec" and ("ragged" in names) == (family == "llama")
    assert all(row.result.exact_match_rate == 1 for row in ablation.measurements)


@pytest.mark.parametrize("family", ["bloom", "gemma3"])
@pytest.mark.parametrize("role", ["target", "draft"])
def test_target_and_draft_may_take_their_masks_differently(family: str, role: str) -> None:
    other = pair_of(family)[0].target
    llama = shared_pair().target
    pair = ModelPair(other, llama) if role == "target" else ModelPair(llama, other)
    assert pair.target_attention != pair.draft_attention
    expected = pair_of(family)[1] if role == "target" else all_written("llama", ROWS)
    trace = record(pair, ROWS, config())
    assert trace.generated == expected
    assert not [violation for frame in trace.frames for violation in frame.violations]


def test_a_model_that_masks_by_slot_works_with_an_n_gram_draft() -> None:
    target, expected = pair_of("bloom")[0].target, pair_of("bloom")[1]
    pair = ModelPair(target, NGramDraft())
    assert not pair.takes_query_masks
    assert generate(pair, ROWS, config()).tokens == expected


# Probes


def wrong_by_one(span: Span, allowed: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> Any:
    return allowed & (key >= query - span.size) if span.size else allowed


@pytest.mark.parametrize("family", ["mistral sliding", "gemma3", "llama4"])
def test_a_window_that_is_not_the_models_own_is_left_to_the_model(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, expected = pair_of(family)
    monkeypatch.setattr(Span, "cut", wrong_by_one)
    pair = ModelPair(right.target, right.draft)
    assert not pair.target_attention.by_query and not pair.draft_attention.by_query
    assert not pair.skips_holes and not pair.takes_query_masks
    assert generate(pair, ROWS, config()).tokens == expected
    with pytest.raises(DecodeError, match="window in slots"):
        decode(pair, ROWS, config("holes"))


def test_a_model_that_no_mask_keeps_apart_is_refused_with_its_config_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny("gemma3")
    before = copy.deepcopy(model.config.to_dict())
    forward = type(model).forward

    @wraps(forward)
    def deaf(self: Any, attention_mask: Any = None, **arguments: Any) -> Any:
        return forward(self, **arguments)

    monkeypatch.setattr(type(model), "forward", deaf)
    with pytest.raises(DecodeError, match=r"apart from left pads.*% off.*% off") as error:
        ModelPair(model, NGramDraft())
    assert str(error.value).endswith(".") and "\n" not in str(error.value)
    assert model.config.to_dict() == before


@pytest.mark.parametrize("family", LIMITED + BY_SLOT)
def test_probing_and_decoding_leave_models_as_they_were(family: str) -> None:
    model = tiny(family).train()
    before = copy.deepcopy(model.config.to_dict())
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    pair = ModelPair(model, NGramDraft())
    assert model.config.to_dict() == before
    assert all(module.training for module in model.modules())
    generate(pair, ROWS, config())
    assert model.config.to_dict() == before
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in weights.items())


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", FAMILIES)
def test_rounding_is_not_taken_for_a_fault(family: str, precision: torch.dtype) -> None:
    pair, _ = pair_of(family)
    found = ModelPair(copy.deepcopy(pair.target).to(precision), NGramDraft())
    assert found.target_attention == pair.target_attention
    assert found.skips_holes == pair.skips_holes
    assert found.takes_query_masks == pair.takes_query_masks


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_layer_of_an_unknown_kind_is_refused(role: str) -> None:
    model = tiny("llama")
    model.config.layer_types = ["full_attention", "window_attention"]
    models = {"target": shared_pair().target, "draft": shared_pair().target, role: model}
    with pytest.raises(DecodeError, match=f"The {role} Llama.*kind window_attention"):
        ModelPair(**models)


def test_attention_sharpened_by_slot_within_the_context_is_refused() -> None:
    model = tiny("llama4")
    model.config.floor_scale = 64
    with pytest.raises(DecodeError, match="sharpens its attention by cache slot from slot 64 on"):
        ModelPair(model, NGramDraft())
    model.config.attn_temperature_tuning = False
    ModelPair(model, NGramDraft())


@pytest.mark.parametrize("family", COUNTING_SLOTS)
@pytest.mark.parametrize("strategy", ["autoregressive", "rollback", "eqspec", "exspec"])
def test_a_table_of_slots_has_room_for_the_drafts_of_all_rows(family: str, strategy: str) -> None:
    pair, _ = pair_of(family)
    length = 128 - LONGEST - (0 if strategy == "autoregressive" else 4)
    prompts = [[(11 * place + 5) % 97 for place in range(length)], [44], [3, 9]]
    expected = [reference(pair.target, row, LONGEST) for row in prompts]
    assert generate(pair, prompts, config(strategy)).tokens == expected
    with pytest.raises(DecodeError, match=f"holds {length + LONGEST}:"):
        decode(pair, [[5] * (length + 1)], config(strategy))


# Vocabularies


@cache
def small_tokenizer() -> PreTrainedTokenizerFast:
    """Knows the ids 0 to 79."""
    words = {f"w{number}": number for number in range(80)}
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel(words, unk_token="w0")))


@cache
def padded_draft(entries: int) -> PreTrainedModel:
    """The shared draft with other padding; entries beyond the target's would win every argmax."""
    draft = copy.deepcopy(shared_pair().draft)
    draft.resize_token_embeddings(entries, mean_resizing=False)
    with torch.no_grad():
        draft.get_output_embeddings().weight[97:] = 100 * draft.get_output_embeddings().weight[5]
    return draft


@pytest.mark.parametrize("strategy", SPECULATIVE)
@pytest.mark.parametrize("entries", [85, 101])
def test_a_draft_with_other_padding_changes_no_token(strategy: str, entries: int) -> None:
    pair = ModelPair(shared_pair().target, padded_draft(entries), small_tokenizer())
    expected = all_written("llama", ROWS)
    assert max(map(max, expected)) >= 85  # the draft with 85 entries meets ids it lacks
    accepted = 0
    with watched(pair.draft) as calls:
        for step in decode(pair, ROWS, config(strategy)):
            if step.phase == "verify":
                assert step.draft is not None and step.verdict is not None
                assert (step.draft.ids < min(entries, 97)).all()
                accepted += sum(step.verdict.accepted)
    assert accepted > 0
    assert max(int(call["input_ids"].max()) for call in calls) < min(entries, 97)
    assert generate(pair, ROWS, config(strategy)).tokens == expected


@pytest.mark.parametrize("entries", [85, 101])
def test_a_draft_with_other_padding_keeps_the_invariants(entries: int) -> None:
    pair = ModelPair(shared_pair().target, padded_draft(entries), small_tokenizer())
    trace = record(pair, ROWS, config())
    assert trace.generated == all_written("llama", ROWS)
    assert not [violation for frame in trace.frames for violation in frame.violations]


@pytest.mark.parametrize("entries", [85, 101])
def test_the_targets_logits_keep_all_their_entries(entries: int) -> None:
    pair = ModelPair(shared_pair().target, padded_draft(entries), small_tokenizer())
    assert pair.vocabulary_size == 97
    ids, index = torch.tensor([[5, 96]]), torch.tensor([[0, 1]])
    alone = shared_pair().target(input_ids=ids).logits
    cached = CachedModel("target", pair.target, positions_by_token, pair.target_attention)
    cached.reset([0])
    assert torch.allclose(cached.feed(ids, index), alone, atol=1e-4)


@pytest.mark.parametrize("entries", [60, 101])
@pytest.mark.parametrize("with_tokenizer", [False, True])
def test_vocabularies_that_differ_by_more_than_padding_are_refused_with_all_sizes(
    entries: int, with_tokenizer: bool
) -> None:
    tokenizer = small_tokenizer() if with_tokenizer else None
    draft = tiny(vocabulary=entries)
    if with_tokenizer and entries == 101:
        ModelPair(shared_pair().target, draft, tokenizer)
        return
    with pytest.raises(DecodeError, match=f"target has 97 .* draft {entries}") as error:
        ModelPair(shared_pair().target, draft, tokenizer)
    assert ("the tokenizer has 80" if with_tokenizer else "no tokenizer") in str(error.value)
    assert str(error.value).endswith(".") and "\n" not in str(error.value)
