"""A trace survives its JSON form unchanged, and nothing else is read as one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchspec import DecodeConfig, DecodeError, Trace, record
from batchspec.strategies import STRATEGIES
from batchspec.trace import Frame, first_difference
from tiny import ROWS, shared_pair

every_strategy = pytest.mark.parametrize("strategy", list(STRATEGIES))


@cache
def trace_of(strategy: str, budget: int = 12) -> Trace:
    return record(
        shared_pair(),
        ROWS,
        DecodeConfig(strategy=strategy, max_new_tokens=budget, batch_size=2, eos_token_ids=(7, 11)),
    )


def leaves(value: Any) -> Iterator[Any]:
    if is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@every_strategy
def test_json_there_and_back_is_the_same_text(strategy: str) -> None:
    text = trace_of(strategy).to_json()
    assert Trace.from_json(text).to_json() == text


@every_strategy
def test_json_there_and_back_gives_the_same_frames(strategy: str) -> None:
    trace = trace_of(strategy)
    read = Trace.from_json(trace.to_json())
    assert len(read.frames) == len(trace.frames)
    compared = 0
    for old, new in zip(trace.frames, read.frames, strict=True):
        for before, after in zip(leaves(old), leaves(new), strict=True):
            if isinstance(before, np.ndarray):
                assert (before.dtype, before.shape) == (after.dtype, after.shape)
                assert not after.flags.writeable
                tolerance = 0.01 if before.dtype == np.float32 else 0
                np.testing.assert_allclose(after, before, rtol=tolerance)
                compared += before.size
            else:
                assert before == after
    assert compared > 1000


@every_strategy
def test_json_there_and_back_keeps_everything_beside_the_frames(strategy: str) -> None:
    trace = trace_of(strategy)
    read = Trace.from_json(trace.to_json())
    for field in fields(Trace):
        if field.name not in ("frames", "settings"):
            assert getattr(read, field.name) == getattr(trace, field.name), field.name
    kept = {name: value for name, value in trace.settings.items() if name != "eos_token_ids"}
    assert kept.items() <= read.settings.items()
    assert tuple(read.settings["eos_token_ids"]) == trace.settings["eos_token_ids"]
    assert read.first_divergence == trace.first_divergence
    assert read.first_violation == trace.first_violation


def test_a_file_there_and_back_is_the_same_trace(tmp_path: Path) -> None:
    trace = trace_of("pad")
    trace.save(tmp_path / "trace.json")
    assert Trace.load(tmp_path / "trace.json").to_json() == trace.to_json()


def test_a_trace_without_frames_survives() -> None:
    trace = trace_of("eqspec", budget=0)
    assert trace.frames == ()
    assert Trace.from_json(trace.to_json()) == Trace.from_json(trace.to_json())


def test_the_vocabulary_names_every_token_of_the_trace() -> None:
    trace = trace_of("pad")
    used = {token for row in (*trace.prompts, *trace.generated, *trace.reference) for token in row}
    for frame in trace.frames:
        for shown in (frame, frame.target, frame.draft, *frame.feeds):
            used |= set(np.unique(shown.token).tolist())
    assert trace.vocabulary.keys() == used - {-1}


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "5", '"text"', "{}", '{"frames": []}', "\ufffd", "NaN"]
)
def test_text_that_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="not a trace"):
        Trace.from_json(text)


@pytest.mark.parametrize("version", [0, 3, "1", None, [1]])
def test_a_trace_of_another_version_is_refused(version: Any) -> None:
    content = {**json.loads(trace_of("eqspec").to_json()), "version": version}
    with pytest.raises(DecodeError, match="version"):
        Trace.from_json(json.dumps(content))


def test_a_file_of_other_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(DecodeError):
        Trace.load(tmp_path / "trace.json")


@pytest.mark.parametrize("cut", [1, 10, 1000])
def test_a_trace_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(DecodeError):
        Trace.from_json(trace_of("eqspec").to_json()[:-cut])


NEW = {
    Trace: ("source", "source_line"),
    Frame: ("bytes_moved", "realigned", "pool", "waiting", "judgement", "lines"),
}
"""What version 2 of the format added."""


def test_a_trace_of_version_one_is_read() -> None:
    trace = trace_of("eqspec")
    content = json.loads(trace.to_json())
    for name in NEW[Trace]:
        del content[name]
    for frame in content["frames"]:
        for name in NEW[Frame]:
            del frame[name]
    read = Trace.from_json(json.dumps({**content, "version": 1}))
    assert read.generated == trace.generated and read.source == ""
    assert {(f.bytes_moved, f.pool, f.judgement) for f in read.frames} == {(0, (), None)}


@pytest.mark.parametrize("name", [f.name for f in fields(Trace) if f.name not in NEW[Trace]])
def test_a_trace_without_one_of_its_fields_is_refused(name: str) -> None:
    content = json.loads(trace_of("eqspec").to_json())
    del content[name]
    with pytest.raises(DecodeError, match="damaged"):
        Trace.from_json(json.dumps(content))


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value of a JSON object lies; of a list the first and last item alone."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*path, key))
    elif isinstance(value, list) and value:
        for place in {0, len(value) - 1}:
            yield from paths(value[place], (*path, place))


@cache
def frame_paths() -> list[tuple[Any, ...]]:
    frames = json.loads(trace_of("pad").to_json())["frames"]
    return [("frames", *path) for path in paths(frames)]


JUNK = st.sampled_from([None, True, -1, 2**40, 1.5, "", "01x", [], [[1], [2, 3]], {}, {"a": 1}])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data(), junk=JUNK, remove=st.booleans())
def test_a_damaged_frame_is_refused_or_read_but_never_crashes(
    data: st.DataObject, junk: Any, remove: bool
) -> None:
    content = json.loads(trace_of("pad").to_json())
    path = data.draw(st.sampled_from(frame_paths()))
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    if remove:
        del holder[path[-1]]
    else:
        holder[path[-1]] = junk
    try:
        Trace.from_json(json.dumps(content))
    except DecodeError as error:
        assert "damaged" in str(error)


def test_the_first_difference_of_two_rows() -> None:
    assert first_difference([], []) is None
    assert first_difference([1, 2], [1, 2]) is None
    assert first_difference([1, 2], [1, 3]) == 1
    assert first_difference([1], [1, 2]) == first_difference([1, 2], [1]) == 1
    assert first_difference([], [4]) == 0
