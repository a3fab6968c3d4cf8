"""Prompts are read as they were written, whatever the format, and a broken line is named."""

from __future__ import annotations

import io
import json
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec import DecodeError
from batchspec.prompt_file import parse_prompts, read_prompts

TEXTS = [
    "One day, a fox",
    "Größe 🦊 \u2028 \x0b \x85 狐",
    "{name} said [INST]",
    "12",
    " led by a space",
]
LINE_TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])).filter(
    lambda text: text.strip()
)

as_text = [text.encode() for text in TEXTS]
as_json = [json.dumps(text).encode() for text in TEXTS]
as_unicode_json = [json.dumps(text, ensure_ascii=False).encode() for text in TEXTS]
as_objects = [json.dumps({"prompt": text, "id": 7}).encode() for text in TEXTS]
as_questions = [
    json.dumps({"question_id": 1, "category": "qa", "turns": [text, "And then?"]}).encode()
    for text in TEXTS
]


def parse(content: bytes) -> list[str | list[int]]:
    return list(parse_prompts(io.BytesIO(content), "file"))


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n \n"], ids=["plain", "bom", "blanks"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n", b"\r\n \r\n"])
@pytest.mark.parametrize("lines", [as_text, as_json, as_unicode_json, as_objects, as_questions])
def test_all_formats_give_the_same_prompts(lines: list[bytes], end: bytes, start: bytes) -> None:
    assert parse(start + end.join(lines)) == TEXTS
    assert parse(start + end.join(lines) + end) == TEXTS


@given(st.lists(LINE_TEXT, max_size=5))
def test_any_plain_text_comes_back(texts: list[str]) -> None:
    texts = ["Once", *texts]
    assert parse("\n".join(texts).encode()) == texts


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip), min_size=1))
def test_any_json_text_comes_back(texts: list[str]) -> None:
    assert parse("\n".join(map(json.dumps, texts)).encode()) == texts
    objects = [json.dumps({"prompt": text}, ensure_ascii=False) for text in texts]
    assert parse("\r\n".join(objects).encode()) == texts


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_one_sentence(content: bytes) -> None:
    try:
        prompts = parse(content)
    except DecodeError as error:
        assert str(error).startswith("file") and str(error).endswith(".")
        assert "\n" not in str(error)
    else:
        assert prompts and all(prompts)


def test_ids_and_texts_may_stand_in_one_file() -> None:
    assert parse(b'{"ids": [5, 9, 13]}\n"One day"\n{"ids": [44]}') == [[5, 9, 13], "One day", [44]]


@pytest.mark.parametrize("line", ['"Where is my hat?" asked Tom.', "[1] Smith", "{x} is", "3.5"])
def test_a_sentence_that_only_begins_like_json_is_text(line: str) -> None:
    assert parse(f'{line}\n{{"prompt": "One"}}'.encode()) == [line, '{"prompt": "One"}']


@pytest.mark.parametrize(
    ("content", "number", "words"),
    [
        (b'{"prompt": "One"', 1, "JSON"),
        (b'\n\n{"prompt": "One"', 3, "JSON"),
        (b'"One"\n\n"Two', 3, "JSON"),
        (b'"One"\nTwo', 2, "JSON"),
        (b'{"prompt": "One"}\n{"text": "Two"}', 2, "`prompt`"),
        (b'{"prompt": "One", "ids": [1]}', 1, "one of"),
        (b'{"prompt": 5}', 1, "not 5"),
        (b'{"prompt": "  "}', 1, "at least one word"),
        (b'"One"\n" "', 2, "at least one word"),
        (b'"One"\n5', 2, "`prompt`"),
        (b'"One"\nnull', 2, "`prompt`"),
        (b"[5, 9]", 1, "`ids`"),
        (b'["One", "Two"]', 1, "`prompt`"),
        (b'[\n"One",\n"Two"\n]', 1, "JSON"),
        (b'{\n"prompt": "One"\n}', 1, "JSON"),
        (b'{"ids": []}', 1, "`ids`"),
        (b'{"ids": [1, true]}', 1, "whole numbers"),
        (b'{"ids": [1, 2.5]}', 1, "whole numbers"),
        (b'{"ids": "12"}', 1, "`ids`"),
        (b'{"turns": []}', 1, "`turns`"),
        (b'{"turns": [["One"]]}', 1, "at least one word"),
        (b'"One"\n"\\ud800"', 2, "UTF-8"),
        (b"One\nTwo\xff", 2, "UTF-8"),
        ("One".encode("utf-16"), 1, "UTF-8"),
        (b'"One"\n' + b"[" * 100_000, 2, "JSON"),
        (b'"One"\n{"ids": [' + b"9" * 5000 + b"]}", 2, "JSON"),
    ],
)
def test_a_broken_line_is_named_with_its_number(content: bytes, number: int, words: str) -> None:
    with pytest.raises(DecodeError) as error:
        parse(content)
    text = str(error.value)
    assert text.startswith(f"file, line {number}: ") and words in text
    assert text.endswith(".") and "\n" not in text and len(text) < 200


@pytest.mark.parametrize("content", [b"", b"\n \r\n\t\n", b"\xef\xbb\xbf"])
def test_a_file_without_prompts_is_refused(content: bytes) -> None:
    with pytest.raises(DecodeError, match="file holds no prompt"):
        parse(content)


def test_what_is_not_asked_for_is_not_read() -> None:
    assert list(islice(parse_prompts(iter([b'"One"\n', b"broken"]), "file"), 1)) == ["One"]


def test_the_content_decides_and_not_the_name(tmp_path: Path) -> None:
    for name, content in (("a.jsonl", "One\nTwo"), ("a.txt", '"One"\n{"prompt": "Two"}')):
        file = tmp_path / name
        file.write_text(content, encoding="utf-8")
        assert list(read_prompts(str(file))) == ["One", "Two"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(DecodeError, match="cannot be read") as error:
            list(read_prompts(str(path)))
        assert str(error.value).startswith(str(path))


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for content, expected in ((b"One\r\nTwo\r\n", ["One", "Two"]), (b'{"ids": [5]}', [[5]])):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert list(read_prompts("-")) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'"One"\nTwo')))
    with pytest.raises(DecodeError, match="standard input, line 2"):
        list(read_prompts("-"))
