"""The storyteller pair ships small, loads offline, and drafts neither too well nor too badly."""

import warnings
from itertools import islice
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from batchspec.storyteller import DRAFT_FOLDER, EXAMPLES, FOLDER, MORE_EXAMPLES, TARGET_FOLDER
from batchspec.storyteller.grammar import KINDS, write_pieces

DRAFTED_PER_ROUND = 4
NEW_TOKENS = 64


@pytest.fixture(scope="module")
def target() -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(TARGET_FOLDER, dtype=torch.float32)


@pytest.fixture(scope="module")
def draft() -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(DRAFT_FOLDER, dtype=torch.float32)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(TARGET_FOLDER)


@torch.inference_mode()
def extend(model: PreTrainedModel, ids: list[int], new_tokens: int) -> list[int]:
    """Append greedy tokens by full forward passes, until the end token or the limit."""
    for _ in range(new_tokens):
        ids = [*ids, int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())]
        if ids[-1] == model.config.eos_token_id:
            break
    return ids


def accepted_per_round(target_ids: list[int], prompt: int, draft: PreTrainedModel) -> list[int]:
    """Count, round by round, how many drafted tokens are those of the target."""
    accepted, position = [], prompt
    while position < len(target_ids):
        drafted = extend(draft, target_ids[:position], DRAFTED_PER_ROUND)[position:]
        matches = 0
        for mine, theirs in zip(drafted, target_ids[position:], strict=False):
            if mine != theirs:
                break
            matches += 1
        accepted.append(matches)
        position += matches + 1
    return accepted


@pytest.fixture(scope="module")
def example_rows(
    target: PreTrainedModel, draft: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> list[tuple[list[int], list[int]]]:
    """New tokens and accepted counts of every built-in example."""
    rows = []
    for prompt in EXAMPLES:
        ids = tokenizer(prompt)["input_ids"]
        decoded = extend(target, ids, NEW_TOKENS)
        rows.append((decoded[len(ids) :], accepted_per_round(decoded, len(ids), draft)))
    return rows


def test_files_are_small():
    files = [path for folder in (TARGET_FOLDER, DRAFT_FOLDER) for path in folder.iterdir()]
    assert sum(path.stat().st_size for path in files) <= 10_000_000


def test_models_load_offline_without_warnings(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for folder in (TARGET_FOLDER, DRAFT_FOLDER):
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            assert next(model.parameters()).dtype == torch.float32


def test_both_models_know_the_same_tokens(target, draft, tokenizer):
    assert target.config.vocab_size == draft.config.vocab_size == len(tokenizer) <= 2048
    for model in (target, draft):
        assert model.get_input_embeddings().num_embeddings == len(tokenizer)
        for config in (model.config, model.generation_config):
            assert (config.pad_token_id, config.bos_token_id, config.eos_token_id) == (0, 1, 2)


@settings(max_examples=200, deadline=None)
@given(text=st.text())
def test_tokenizer_returns_any_text_unchanged(tokenizer, text):
    ids = tokenizer(text)["input_ids"]
    assert ids[0] == tokenizer.bos_token_id
    assert tokenizer.decode(ids[1:]) == text


def test_grammar_repeats_itself_for_the_same_seed_only():
    pieces = list(islice(write_pieces(5), 300))
    assert pieces == list(islice(write_pieces(5), 300))
    assert pieces != list(islice(write_pieces(6), 300))


def test_grammar_is_varied():
    pieces = list(islice(write_pieces(5), 3000))
    assert len(set(pieces)) > 2900
    assert len({" ".join(piece.split()[:3]) for piece in pieces}) > 700
    assert len({word for piece in pieces for word in piece.split()}) > 900


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_piece_is_clean(kind):
    for seed in range(50):
        piece = kind(Random(seed))
        assert piece == piece.strip()
        assert "{" not in piece and "  " not in piece


def test_examples_differ_in_length(tokenizer):
    lengths = [len(tokenizer(prompt)["input_ids"]) for prompt in EXAMPLES]
    assert len(EXAMPLES) == len(set(lengths)) == 4
    assert max(lengths) > 5 * min(lengths)
    assert len({*EXAMPLES, *MORE_EXAMPLES}) == 16


def test_drafts_for_the_examples_are_accepted_in_part(example_rows):
    rounds = [count for _, accepted in example_rows for count in accepted]
    assert 0.55 <= sum(rounds) / (DRAFTED_PER_ROUND * len(rounds)) <= 0.75


def test_example_rounds_are_ragged(example_rows):
    together = list(zip(*(accepted for _, accepted in example_rows), strict=False))
    ragged = sum(len(set(counts)) > 1 for counts in together)
    assert ragged > len(together) / 2


def test_some_examples_end_early_but_not_at_once(example_rows):
    lengths = [len(new) for new, _ in example_rows]
    assert min(lengths) >= 30
    assert min(lengths) < NEW_TOKENS
    assert max(lengths) == NEW_TOKENS


def test_importing_the_folder_names_needs_no_model_library():
    source = (FOLDER / "__init__.py").read_text()
    assert "torch" not in source and "transformers" not in source
