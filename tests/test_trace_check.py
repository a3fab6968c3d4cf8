"""Whatever is read as a trace can be shown, and everything else is refused in one sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec import DecodeConfig, DecodeError, Trace, decode, record
from batchspec.strategies import STRATEGIES
from batchspec.trace import PHASES
from tiny import ROWS, shared_pair
from visuals.payload import pack
from visuals.sentence import STORY, cause, sentence, story

MARKUP = re.compile(r"</?(b|q|li)>")
EVIL = '<img src=x onerror=alert(1)> a<b & "q"</script>'
HOSTILE = [
    *(EVIL, "", None, True, -1, -2, 2**31, 2**60, 1.5, float("nan"), float("inf"), -1e300),
    *([], [[]], {}, [EVIL], [[EVIL]], {"a": EVIL}, [[[[[[1]]]]]], "0101", "prefill", "1"),
]


@cache
def text_of(strategy: str, new_tokens: int = 16) -> str:
    config = DecodeConfig(strategy, max_new_tokens=new_tokens, batch_size=2, eos_token_ids=())
    return record(shared_pair(), ROWS, config).to_json()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value lies, whole lists and objects too."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))


@cache
def places(strategy: str) -> dict[tuple[str, ...], list[tuple[Any, ...]]]:
    """The places of a trace by the names on the way to them, so that all kinds come up."""
    kinds: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for path in leaves(json.loads(text_of(strategy))):
        kinds.setdefault(tuple(str(key) for key in path if isinstance(key, str)), []).append(path)
    return kinds


def changed(strategy: str, *changes: tuple[tuple[Any, ...], Any]) -> str:
    content = json.loads(text_of(strategy))
    for path, value in changes:
        holder = content
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value
    return json.dumps(content)


def told(trace: Trace) -> list[str]:
    """All that is said of a trace as HTML."""
    pack([trace])
    numbers = range(len(trace.frames))
    words = [part(trace, number) for number in numbers for part in (sentence, cause)]
    return words + [story(phase, trace.settings["draft_tokens"]) for phase in PHASES]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_run_passes(strategy: str) -> None:
    for new_tokens in (16, 0, 1):
        text = text_of(strategy, new_tokens)
        assert Trace.from_json(text).to_json() == text


def test_every_phase_has_its_story_and_every_step_is_a_phase() -> None:
    assert tuple(STORY) == PHASES
    steps = decode(shared_pair(), ROWS, DecodeConfig("exspec", max_new_tokens=4, batch_size=2))
    assert {step.phase for step in steps} == set(PHASES)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(data=st.data(), strategy=st.sampled_from(["pad", "exspec"]), value=st.sampled_from(HOSTILE))
def test_a_hostile_value_is_refused_or_can_be_shown_without_markup(
    data: st.DataObject, strategy: str, value: Any
) -> None:
    kinds = places(strategy)
    path = data.draw(st.sampled_from(kinds[data.draw(st.sampled_from(sorted(kinds)))]))
    try:
        trace = Trace.from_json(changed(strategy, (path, value)))
    except DecodeError as error:
        assert "damaged" in str(error) or "version" in str(error)
        return
    for words in told(trace):
        assert "<" not in MARKUP.sub("", words), words
    assert "NaN" not in trace.to_json() and "Infinity" not in trace.to_json()


FRAME = ("frames", 4)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*FRAME, "phase"), EVIL, "the phase '<img"),
        ((*FRAME, "round"), EVIL, "round of frame 4"),
        ((*FRAME, "round"), 0, "belongs before"),
        ((*FRAME, "seconds"), float("nan"), "seconds of frame 4"),
        ((*FRAME, "active"), "000", "no active row"),
        ((*FRAME, "active"), "11", "active of frame 4 must hold 3 values"),
        ((*FRAME, "target", "token"), [[1]], "token of the target cache"),
        ((*FRAME, "target", "state", 0, 0), 9, "state of the target cache"),
        ((*FRAME, "token", 0, 0), 2**30, "not in the vocabulary"),
        (("frames", 5, "phase"), "synchronize", "not verified"),
        (("prompts", 0, 0), 2**30, "no id of the vocabulary"),
        (("prompts",), [], "no prompt"),
        (("texts",), ["a"], "one entry per prompt"),
        (("settings", "draft_tokens"), EVIL, "settings.draft_tokens"),
        (("settings", "seed"), float("nan"), "settings.seed"),
        (("dtype",), "int4", "dtype must be one of"),
        (("title",), 5, "title must be text"),
        (("stats", "rounds"), float("inf"), "stats.rounds"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(path: Any, value: Any, words: str) -> None:
    with pytest.raises(DecodeError, match="This trace is damaged: ") as found:
        Trace.from_json(changed("pad", (path, value)))
    assert words in str(found.value)


@pytest.mark.parametrize("name", ["row", "slot", "expected", "found", "model", "invariant"])
@pytest.mark.parametrize("value", [EVIL, None, [1], {}, float("nan"), -(2**70), 1e308])
def test_a_violation_holds_numbers_and_names_alone(name: str, value: Any) -> None:
    frames = json.loads(text_of("pad"))["frames"]
    frame, place = next(
        (number, place)
        for number, one in enumerate(frames)
        for place, violation in enumerate(one["violations"])
        if violation["invariant"] == "I2"
    )
    with pytest.raises(DecodeError, match="damaged"):
        Trace.from_json(changed("pad", (("frames", frame, "violations", place, name), value)))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"version":1,"frames":' + "[" * 100_000])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        Trace.from_json(text)


@pytest.mark.parametrize("name", ["settings", "frames", "special_ids"])
def test_nesting_that_json_can_read_is_refused_too(name: str) -> None:
    deep = json.loads("[" * 400 + "]" * 400)
    with pytest.raises(DecodeError, match="damaged"):
        Trace.from_json(changed("pad", ((name,), {"a": deep} if name == "settings" else deep)))


def written_by_hand() -> str:
    """The example in the description of the format."""
    text = (Path(__file__).parents[1] / "docs" / "trace.md").read_text(encoding="utf-8")
    return text.split("```json")[1].split("```")[0]


def test_the_trace_written_by_hand_opens() -> None:
    trace = Trace.from_json(written_by_hand())
    assert "Row 0</b> stops at its second draft" in sentence(trace, 0)
    assert "wants <q>,</q>, not <q>tea</q>" in sentence(trace, 0)
    assert trace.first_violation is None
    assert told(trace)
