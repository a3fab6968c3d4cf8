"""The storyteller pair ships small, loads offline, and drafts neither too well nor too badly."""

import subprocess
import sys
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

from batchspec import DecodeConfig, Trace, decode, generate, load_pair
from batchspec.storyteller import DRAFT_FOLDER, EXAMPLES, FOLDER, MORE_EXAMPLES, TARGET_FOLDER
from batchspec.storyteller.example import LANES, RECORDINGS, record_example
from batchspec.storyteller.grammar import KINDS, write_pieces

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


@pytest.fixture(scope="module")
def example_rounds() -> list[list[tuple[int, int, int]]]:
    """Per round of the built-in examples: row, drafted and accepted tokens of each row."""
    pair = load_pair("storyteller")
    config = DecodeConfig(draft_tokens=4, max_new_tokens=NEW_TOKENS, batch_size=len(EXAMPLES))
    rounds = []
    for step in decode(pair, list(pair.examples), config):
        if step.phase == "verify":
            counts = zip(step.rows, step.verdict.drafts, step.verdict.accepted, strict=True)
            rounds.append([(row.number, len(drafts), kept) for row, drafts, kept in counts])
    return rounds


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


def test_drafts_for_the_examples_are_accepted_in_part(example_rounds):
    rows = [row for rows in example_rounds for row in rows]
    drafted, accepted = sum(row[1] for row in rows), sum(row[2] for row in rows)
    assert 0.55 <= accepted / drafted <= 0.75


def test_example_rounds_are_ragged(example_rounds):
    ragged = sum(len({accepted for _, _, accepted in rows}) > 1 for rows in example_rounds)
    assert ragged > len(example_rounds) / 2


def test_the_examples_continue_and_some_end_early():
    pair = load_pair("storyteller")
    written = generate(pair, list(pair.examples), DecodeConfig(max_new_tokens=NEW_TOKENS)).tokens
    lengths = [len(tokens) for tokens in written]
    assert min(lengths) >= 30
    assert min(lengths) < NEW_TOKENS
    assert max(lengths) == NEW_TOKENS


def test_importing_the_folder_names_needs_no_model_library():
    source = (FOLDER / "__init__.py").read_text()
    assert "torch" not in source and "transformers" not in source


@pytest.mark.parametrize("lane", LANES)
def test_the_recorded_example_is_what_a_run_shows(lane):
    shipped = Trace.load(RECORDINGS[lane])
    again = record_example(lane)
    assert shipped.generated == again.generated
    if lane == "pad":
        assert shipped.first_violation[0] == again.first_violation[0]
    assert (shipped.first_violation is None) == (lane != "pad")
    assert shipped.source == again.source
    for old, new in zip(shipped.frames, again.frames, strict=True):
        assert (old.phase, old.round) == (new.phase, new.round)
        assert (old.token == new.token).all() and (old.role == new.role).all()
        assert (old.target.state == new.target.state).all()
        assert (old.target.position == new.target.position).all()
        assert (old.pool, old.waiting, old.lines) == (new.pool, new.waiting, new.lines)


def test_the_recorded_example_shows_failure_and_repair_and_a_pool_with_a_group():
    pad, eqspec, exspec = (Trace.load(RECORDINGS[lane]) for lane in LANES)
    assert any(place is not None and place < 10 for place in pad.first_divergence)
    for trace in (eqspec, exspec):
        assert trace.generated == pad.reference and any(f.bytes_moved for f in trace.frames)
    assert any(sum(number >= 0 for number in frame.pool) == 4 for frame in exspec.frames)
    groups = [
        frame
        for frame in exspec.frames
        if frame.phase == "schedule" and frame.active.sum() == 2 and not frame.realigned
    ]
    assert any(len(set(frame.length[frame.active].tolist())) == 1 for frame in groups)
    assert sum(path.stat().st_size for path in RECORDINGS.values()) < 100_000


def test_the_recorded_example_is_read_without_a_model_library():
    code = (
        "import sys; from batchspec.storyteller.example import load_example; load_example()\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
