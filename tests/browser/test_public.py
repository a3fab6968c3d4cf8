"""What a public page refuses, and its two endpoints for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from playwright.sync_api import BrowserContext, expect

from batchspec.limits import PUBLIC
from browser.driving import ask, at, example_traces, visit
from browser.served import served_page
from pages import endpoints

TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "rows": ({"prompts": ["Hi"] * 17}, "at most 16 prompts, not 17"),
    "text": ({"prompts": ["word " * 1700]}, "at most 8000 characters of prompts, not 8500"),
    "tokens": ({"max_new_tokens": 129}, "at most 128 new tokens, not 129"),
    "K": ({"draft_tokens": 9}, "at most 8 draft tokens K, not 9"),
    "batch": ({"batch_size": 17}, "at most 16 rows a batch, not 17"),
}
"""By what is too much: the arguments of `run_trace`, and words of the refusal."""
FIELDS = {"max_new_tokens": "new_tokens", "draft_tokens": "k", "batch_size": "batch_size"}


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a public page."""
    with served_page(tmp_path_factory.mktemp("public"), **{PUBLIC: "1"}) as address:
        yield address


@pytest.fixture(scope="module")
def client(public: str) -> Client:
    return Client(public, verbose=False)


def refusal(client: Client, **settings: Any) -> str:
    """The one sentence with which `run_trace` refuses."""
    with pytest.raises(AppError) as refused:
        client.predict(**{"prompts": ["Hi"], **settings}, api_name="/run_trace")
    return one_sentence(str(refused.value))


def one_sentence(words: str) -> str:
    assert words.strip().endswith(".") and "\n" not in words.strip()
    assert "upstream Gradio" not in words
    assert "Traceback" not in words and "object at 0x" not in words
    assert len(words) < 300, words
    return words


@pytest.mark.parametrize("what", list(TOO_MUCH))
def test_a_public_server_refuses_programs_too_much_in_one_sentence(
    client: Client, what: str
) -> None:
    settings, words = TOO_MUCH[what]
    assert words in refusal(client, **settings)


def test_a_public_page_refuses_too_much_in_one_sentence(
    context: BrowserContext, public: str
) -> None:
    with visit(context, public) as page:
        fitting = {"new_tokens": "8", "k": "3", "batch_size": "2"}
        for settings, words in TOO_MUCH.values():
            numbers = {FIELDS[name]: str(settings[name]) for name in settings if name in FIELDS}
            ask(page, "\n".join(settings.get("prompts", ["Hi"])), **{**fitting, **numbers})
            expect(page.locator("#message")).to_contain_text(words)
            assert at(page, "frame") == "0"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"pair": "gpt2"}, "There is no pair 'gpt2' here"),
        ({"pair": "../../etc"}, "There is no pair"),
        ({"strategy": "magic"}, "magic"),
        ({"strategy": "ragged+nothing"}, "nothing"),
        ({"prompts": []}, "There is no prompt"),
        ({"prompts": "Hi"}, "list of texts"),
        ({"prompts": [1, None]}, "list of texts"),
        ({"strategy": None}, "named by a text"),
        ({"batch_size": True}, "number"),
        ({"draft_tokens": 0}, "at least 1"),
        ({"draft_tokens": 2.5}, "whole number"),
        ({"draft_tokens": "many"}, "number"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "hot"}, "number"),
        ({"max_new_tokens": None}, "number"),
        ({"seed": "x"}, "number"),
        ({"seed": 1e300}, "at most"),
    ],
)
def test_programs_are_told_what_is_wrong(
    client: Client, settings: dict[str, Any], words: str
) -> None:
    assert words in refusal(client, **settings)


def test_programs_get_a_trace_and_its_steps_explained(client: Client) -> None:
    trace = client.predict(["One, two,"], "pad", 2, 6, api_name="/run_trace")
    assert trace["version"] == 2 and trace["strategy"] == "pad"
    said = client.predict(trace, 1, api_name="/explain_step")
    frame = trace["frames"][1]
    assert (said["round"], said["phase"]) == (frame["round"], frame["phase"])
    assert "drafts for 1 rows" in said["sentence"] and "<" not in said["sentence"]
    with pytest.raises(AppError) as refused:
        client.predict(trace, 999, api_name="/explain_step")
    assert "so none is 999" in one_sentence(str(refused.value))


HOSTILE: list[Any] = [
    {},
    [],
    None,
    "a trace",
    {"version": 3},
    {"version": 2},
    {"version": [2]},
    {"version": 2, "frames": 5, "vocabulary": {}},
    {"version": 2, "frames": [{}], "vocabulary": {}},
    {"version": 2, "frames": [], "vocabulary": {}, "__class__": "os"},
]
DAMAGE: list[Any] = [None, 10**12, "<b>", [], {}, [[None]]]


@pytest.mark.parametrize("hostile", HOSTILE, ids=str)
def test_explaining_no_trace_gives_one_sentence(client: Client, hostile: Any) -> None:
    with pytest.raises(AppError) as refused:
        client.predict(hostile, 0, api_name="/explain_step")
    one_sentence(str(refused.value))


def damaged(value: Any, damage: Any) -> Iterator[Any]:
    """Copies of a JSON value with one part in turn put in the place of another."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield {**value, name: damage}
            if isinstance(part, dict) and name != "vocabulary":
                for inner in damaged(part, damage):
                    yield {**value, name: inner}
    if isinstance(value, list):
        yield [damage, *value[1:]]


def test_explaining_a_damaged_trace_works_or_gives_one_sentence() -> None:
    whole = json.loads(example_traces()["pad"].to_json())
    frames = whole["frames"][:4]
    whole = {**whole, "frames": frames}
    assert endpoints.explain_step(whole, 3)["causes"]
    refused = 0
    for damage in DAMAGE:
        broken = [*damaged(whole, damage)]
        for frame in damaged(frames[3], damage):
            broken.append({**whole, "frames": [*frames[:3], frame]})
        for trace in broken:
            try:
                endpoints.explain_step(trace, 3)
            except gradio.Error as error:
                one_sentence(str(error.message))
                refused += 1
    assert refused > 50


@pytest.mark.parametrize("step", [-1, 10**20, 1.5, None, "0", [0]])
def test_explaining_no_step_gives_one_sentence(client: Client, step: Any) -> None:
    trace = json.loads(example_traces()["pad"].to_json())
    trace["frames"] = trace["frames"][:2]
    with pytest.raises(AppError) as refused:
        client.predict(trace, step, api_name="/explain_step")
    one_sentence(str(refused.value))
