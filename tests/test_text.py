"""Token ids as text: fragments of characters are bytes, and running text has only whole ones."""

from __future__ import annotations

import pytest

from batchspec import load_pair
from batchspec.text import running_text, token_texts

TEXTS = ["a fox 🦊 runs", "안녕하세요 세계", "naïve café", "👩‍👩‍👧", "一二三"]


@pytest.mark.parametrize("text", TEXTS)
def test_running_text_never_shows_an_incomplete_character(text: str) -> None:
    tokenizer = load_pair("storyteller").tokenizer
    assert tokenizer is not None
    ids = tokenizer(text)["input_ids"]
    assert len(ids) > len(text.encode()) // 3
    shown = [running_text(tokenizer, ids[:count]) for count in range(len(ids) + 1)]
    assert shown[-1] == text
    for prefix in shown:
        assert "\ufffd" not in prefix and text.startswith(prefix)


@pytest.mark.parametrize("text", TEXTS)
def test_a_fragment_is_shown_as_its_bytes(text: str) -> None:
    tokenizer = load_pair("storyteller").tokenizer
    assert tokenizer is not None
    ids = tokenizer(text)["input_ids"][1:]
    pieces = token_texts(tokenizer, ids)
    assert not any("\ufffd" in piece for piece in pieces.values())
    joined = b"".join(
        bytes.fromhex(pieces[token][1:-1])
        if "\ufffd" in str(tokenizer.decode([token]))
        else pieces[token].encode()
        for token in ids
    )
    assert joined.decode() == text


def test_without_a_tokenizer_ids_are_shown() -> None:
    assert running_text(None, [5, 7]) == "5 7"
    assert token_texts(None, {7, 5}) == {5: "5", 7: "7"}
