"""Prompts from a file: plain text, JSON lines, or Spec-Bench's questions."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from batchspec.errors import DecodeError

_JSON_START = re.compile(r'\s*[\[{]\s*(["{}\]]|$)')


def read_prompts(file: str) -> Iterator[str | list[int]]:
    """The prompts of a file, `-` being standard input, read as they are asked for.

    Raises:
        DecodeError: the file cannot be read, holds no prompt, or a line of it is broken.
    """
    try:
        if file == "-":
            yield from parse_prompts(sys.stdin.buffer, "standard input")
        else:
            with open(file, "rb") as lines:
                yield from parse_prompts(lines, file)
    except OSError as error:
        raise DecodeError(f"{file} cannot be read: {error.strerror}.") from error


def parse_prompts(lines: Iterable[bytes], name: str) -> Iterator[str | list[int]]:
    """The prompt of every line that is not blank.

    The first such line decides: what begins as a JSON object, text or list makes all lines JSON,
    anything else makes all of them plain text.

    Args:
        lines: lines of UTF-8, ended by LF or CRLF.
        name: what errors call the file.

    Raises:
        DecodeError: names the file and the line, counted from 1.
    """
    as_json = None
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            if not text.strip():
                continue
            if as_json is None:
                as_json = _is_json(text)
            yield _prompt(text) if as_json else text
        except UnicodeDecodeError:
            raise DecodeError(f"{name}, line {number}: this is not UTF-8.") from None
        except DecodeError as error:
            raise DecodeError(f"{name}, line {number}: {error}") from error
    if as_json is None:
        raise DecodeError(f"{name} holds no prompt: write at least one, one a line.")


def check_text(text: Any) -> str:
    """Give back a text that a tokenizer can read.

    Raises:
        DecodeError: it is no text, is blank, or holds half of a surrogate pair.
    """
    if not isinstance(text, str) or not text.strip():
        raise DecodeError(f"a prompt must be a text of at least one word, not {text!r:.60}.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DecodeError("the prompt holds bytes that are no characters: write it in UTF-8.")
    return text


def _is_json(text: str) -> bool:
    # Not only what parses: a broken first object is to be reported, not decoded as a text.
    if _JSON_START.match(text):
        return True
    try:
        return isinstance(json.loads(text), str | list)
    except (ValueError, RecursionError):  # such as a sentence that begins with direct speech
        return False


def _prompt(text: str) -> str | list[int]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise DecodeError("this is not valid JSON, which the file's start announces.") from None
    if isinstance(value, str):
        return check_text(value)
    known = ("prompt", "ids", "turns")
    kinds = [kind for kind in known if kind in value] if isinstance(value, dict) else []
    if len(kinds) != 1:
        raise DecodeError("give a JSON text, or an object with one of `prompt`, `ids` and `turns`.")
    found = value[kinds[0]]
    if kinds == ["prompt"]:
        return check_text(found)
    if not isinstance(found, list) or not found:
        raise DecodeError(f"`{kinds[0]}` must be a list of at least one entry, not {found!r:.60}.")
    if kinds == ["turns"]:
        return check_text(found[0])
    if any(type(token) is not int for token in found):
        raise DecodeError(f"`ids` must hold whole numbers only, not {found!r:.60}.")
    return found
