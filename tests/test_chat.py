"""Texts go through the tokenizer's chat template where it has one; ids never do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from batchspec import DecodeConfig, DecodeError, ModelPair, load_pair, record
from batchspec.cli import main
from batchspec.decoding import start_rows
from test_loading import save, words
from tiny import shared_pair

BOS, ASK, ANSWER = 1, 2, 3
TEMPLATE = (
    "{{ bos_token }} {% for turn in messages %}w2 {{ turn['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}w3{% endif %}"
)
CONFIG = DecodeConfig(max_new_tokens=4)


def tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """One that begins every text with BOS, as its template does too."""
    bare = Tokenizer(WordLevel(words(), unk_token="w0"))
    bare.pre_tokenizer = WhitespaceSplit()
    bare.post_processor = TemplateProcessing(single="w1 $A", special_tokens=[("w1", BOS)])
    made = PreTrainedTokenizerFast(tokenizer_object=bare, bos_token="w1")
    made.chat_template = template
    return made


def pair(template: str | None = TEMPLATE, chat: bool | None = None) -> ModelPair:
    shared = shared_pair()
    return ModelPair(shared.target, shared.draft, tokenizer(template), chat=chat)


def prompts_of(pair: ModelPair, *prompts: object) -> list[list[int]]:
    return [row.prompt for row in start_rows(pair, prompts, CONFIG)]  # type: ignore[arg-type]


def test_a_template_surrounds_texts_with_one_bos() -> None:
    assert pair().chat
    assert prompts_of(pair(), "w9 w8") == [[BOS, ASK, 9, 8, ANSWER]]


def test_a_switch_turns_it_off() -> None:
    assert prompts_of(pair(chat=False), "w9 w8") == [[BOS, 9, 8]]


def test_ids_stay_as_they_are() -> None:
    assert prompts_of(pair(), [9, 8]) == [[9, 8]]


def test_without_a_template_texts_stay_as_they_are() -> None:
    assert not pair(None).chat
    assert prompts_of(pair(None), "w9") == [[BOS, 9]]
    with pytest.raises(DecodeError, match="no chat template"):
        pair(None, chat=True)


def test_a_trace_holds_what_was_really_fed() -> None:
    trace = record(pair(), ["w9 w8"], CONFIG)
    assert trace.prompts[0] == [BOS, ASK, 9, 8, ANSWER]


@pytest.mark.parametrize("template", ["{{ raise_exception('no users here') }}", "{% if %}"])
def test_a_template_that_fails_is_told(template: str) -> None:
    with pytest.raises(DecodeError, match=r"chat template of this pair fails .*: switch chat off"):
        prompts_of(pair(template), "w9")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    """A saved model whose tokenizer has a template."""
    place = save(tmp_path / "chat", shared_pair().target)
    tokenizer().save_pretrained(place)
    yield place


def test_a_loaded_pair_has_its_template_and_its_switch(folder: str) -> None:
    assert load_pair(folder, "ngram", device="cpu").chat
    assert not load_pair(folder, "ngram", device="cpu", chat=False).chat


@pytest.mark.parametrize(("switch", "expected"), [([], True), (["--no-chat"], False)])
def test_the_command_line_has_the_switch(
    switch: list[str],
    expected: bool,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = []
    real = start_rows

    def noted(pair: ModelPair, *others: object) -> object:
        found.append(pair.chat)
        return real(pair, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("batchspec.decoding.start_rows", noted)
    arguments = ["generate", "w9", "--target", folder, "--draft", "ngram", "--device", "cpu"]
    assert main([*arguments, *switch, "--json", "-"]) == 0
    assert set(found) == {expected}
    assert json.loads(capsys.readouterr().out)["chat"] is expected
