"""What a run looked like, phase by phase, as plain arrays."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.config import label_of
from batchspec.errors import DecodeError

TRACE_VERSION = 2
READ_VERSIONS = (1, 2)
"""What `Trace.from_json` reads: what version 2 added may be left out."""
PHASES = ("prefill", "schedule", "draft", "verify", "synchronize")
"""Those of a round, in order."""
SLOT_STATES = ("free", "pad", "committed", "draft", "hole", "stale")
"""A cache slot's state; `stale` and a visible `pad` are faults."""
ROLES = ("none", "prompt", "accepted", "correction", "bonus", "draft", "rejected", "pad")
"""How a token came into its row; `draft` is proposed and not judged yet."""

Integers = NDArray[np.int32]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class CacheFrame:
    """One model's KV cache, `[rows, slots]` each; rows outside the batch are all `free`.

    Attributes:
        state: place in `SLOT_STATES`.
        token: the id whose K/V the slot holds, -1 where free.
        position: the position ID it was fed with, -1 where free.
        expected: the position ID it should have, -1 where the slot holds no token of its row.
        visible: whether later queries may attend to it.
        error: relative K/V error against a clean forward, NaN where nothing was compared.
    """

    state: Integers
    token: Integers
    position: Integers
    expected: Integers
    visible: Booleans
    error: NDArray[np.float32]


@dataclass(frozen=True)
class FeedFrame:
    """One forward as it was fed.

    Attributes:
        model: `target` or `draft`.
        token, position: `[rows, queries]`, -1 for rows outside the batch.
        expected: the position ID of each query as it should be, -1 for filler.
        allowed: the mask fed, true where a query may attend, `[rows, queries, slots]`.
        should: the mask it should have been; equal to `allowed` for filler.
    """

    model: str
    token: Integers
    position: Integers
    expected: Integers
    allowed: Booleans
    should: Booleans


@dataclass(frozen=True)
class Judgement:
    """What both models thought of a round's proposals; K is the widest draft of the round.

    Probabilities are those after temperature and filters; at temperature 0 those of the softmax.

    Attributes:
        token: the proposals, -1 where there is none, `[rows, K]`.
        draft_probability: the draft's own probability of each, NaN where no draft model runs or
            there is no proposal, `[rows, K]`.
        choice: the target's own token at the place of each proposal and after the last, -1 before
            the target has judged and for other rows, `[rows, K + 1]`.
        choice_probability: the target's probability of each of them, NaN as above, `[rows, K + 1]`.
        target_probability: the target's probability of each proposal, NaN as above, `[rows, K]`.
    """

    token: Integers
    draft_probability: NDArray[np.float32]
    choice: Integers
    choice_probability: NDArray[np.float32]
    target_probability: NDArray[np.float32]


@dataclass(frozen=True)
class Violation:
    """An invariant found broken.

    Attributes:
        invariant: `I1` positions, `I2` mask, `I3` cache, `I4` output.
        row: the row it is broken for.
        model: whose cache or forward; None for the output.
        slot: the cache slot, or the place among the new tokens for `I4`.
        expected, found: position IDs, 1 or 0 for may and may not attend, the bound and the
            relative error, or token ids.
    """

    invariant: str
    row: int
    model: str | None
    slot: int
    expected: float
    found: float


@dataclass(frozen=True)
class Frame:
    """The whole batch after one phase; arrays have one entry per prompt.

    Attributes:
        phase, round, seconds: as in `Step`.
        active: rows that took part in the phase.
        finished: rows that are done.
        length: committed tokens.
        drafted, accepted: this round's counts, -1 before they are known.
        token: the row's tokens in order, this round's drafts last, -1 past the end,
            `[rows, longest]`.
        role: place in `ROLES` for each of them.
        token_round: the round that committed each of them; 0 for the prompt, -1 for none.
        target, draft: the caches; `draft` is None where no draft is used.
        feeds: the forwards of the phase.
        violations: first broken place per invariant, row and model.
        slots_moved: committed cache slots that changed place.
        bytes_moved: bytes of their keys and values, both caches together.
        realigned: whether rows were moved against each other.
        pool: per lane the number of the row that holds it, -1 where it is free; empty for
            strategies without lanes.
        waiting: numbers of the rows that have not started, in order.
        judgement: of the proposals, in draft and verify phases.
        lines: line numbers of the strategy's `synchronize` that ran, see `Trace.source_line`.
    """

    phase: str
    round: int
    seconds: float
    active: Booleans
    finished: Booleans
    length: Integers
    drafted: Integers
    accepted: Integers
    token: Integers
    role: Integers
    token_round: Integers
    target: CacheFrame
    draft: CacheFrame | None
    feeds: tuple[FeedFrame, ...]
    violations: tuple[Violation, ...]
    slots_moved: int
    bytes_moved: int = 0
    realigned: bool = False
    pool: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    judgement: Judgement | None = None
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A recorded run; see `docs/trace.md` for its JSON form.

    Attributes:
        pair, strategy: names.
        title, summary: the strategy in words.
        settings: the `DecodeConfig` as a mapping.
        device, dtype: of the target.
        draft_dtype: of the draft.
        special_ids: tokens that texts leave out, such as EOS.
        prompts: token ids.
        vocabulary: the text of every token id that occurs.
        frames: one per phase.
        generated: new tokens per row.
        reference: the reference's new tokens per row.
        texts, reference_texts: the same as text.
        stats: counts and rates of the run.
        recorder_seconds: time spent on observing, not part of any phase.
        source: text of the strategy's own `synchronize`, without its indent.
        source_line: number of its first line, from which `Frame.lines` count; 0 where unknown.
    """

    pair: str
    strategy: str
    title: str
    summary: str
    settings: dict[str, Any]
    device: str
    dtype: str
    draft_dtype: str
    special_ids: list[int]
    prompts: list[list[int]]
    vocabulary: dict[int, str]
    frames: tuple[Frame, ...]
    generated: list[list[int]]
    reference: list[list[int]]
    texts: list[str]
    reference_texts: list[str]
    stats: dict[str, Any]
    recorder_seconds: float
    source: str = ""
    source_line: int = 0

    @property
    def label(self) -> str:
        """What tells its lane from others: as `DecodeConfig.label`."""
        return label_of(self.strategy, self.settings.get("fault"))

    @property
    def first_divergence(self) -> list[int | None]:
        """Per row the first new token that differs from the reference, None where all are equal."""
        return [
            first_difference(*pair) for pair in zip(self.generated, self.reference, strict=True)
        ]

    @property
    def first_violation(self) -> tuple[int, Violation] | None:
        """The frame and the invariant that broke first, None where none did."""
        for number, frame in enumerate(self.frames):
            if frame.violations:
                return number, frame.violations[0]
        return None

    def content(self) -> dict[str, Any]:
        """The trace as the object that its documented JSON form holds."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        content["frames"] = [_pack(frame) for frame in self.frames]
        return {"version": TRACE_VERSION, **content}

    def to_json(self) -> str:
        """The trace in its documented JSON form."""
        return json.dumps(self.content(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Read a trace back.

        Raises:
            DecodeError: the text is no trace of a version that can be read.
        """
        from batchspec.trace_check import checked  # which knows the classes of this file

        try:
            content = json.loads(text)
            version = content.pop("version")
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise DecodeError(
                "This is not a trace: expected a JSON object with a version."
            ) from None
        if version not in READ_VERSIONS:
            names = " and ".join(map(str, READ_VERSIONS))
            raise DecodeError(f"This trace has version {version}; this app reads {names}.")
        try:
            content["frames"] = tuple(_unpack_frame(frame) for frame in content["frames"])
            content["vocabulary"] = {int(k): str(v) for k, v in content["vocabulary"].items()}
            return checked(cls(**content))
        except KeyError as error:
            raise DecodeError(f"This trace is damaged: {error} is missing.") from None
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise DecodeError(f"This trace is damaged: {error}.") from None

    def save(self, path: str | Path) -> None:
        """Write the JSON form to a file, compressed where its name ends in `.gz`."""
        content = self.to_json().encode()
        zipped = str(path).endswith(".gz")
        Path(path).write_bytes(gzip.compress(content, mtime=0) if zipped else content)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a file written by `save`; errors as in `from_json`."""
        content = Path(path).read_bytes()
        try:
            zipped = str(path).endswith(".gz")
            text = (gzip.decompress(content) if zipped else content).decode()
        except (UnicodeDecodeError, gzip.BadGzipFile, EOFError):
            raise DecodeError(f"{path} is damaged or no text file, so it holds no trace.") from None
        return cls.from_json(text)


def first_difference(found: list[int], expected: list[int]) -> int | None:
    """The first place at which two token lists differ, None where they are equal."""
    for place, pair in enumerate(zip(found, expected, strict=False)):
        if pair[0] != pair[1]:
            return place
    return None if len(found) == len(expected) else min(len(found), len(expected))


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _pack_array(value)
    if isinstance(value, Violation):
        return asdict(value)
    if isinstance(value, tuple):
        return [_pack(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _pack(getattr(value, field.name)) for field in fields(value)}
    return value


def _pack_array(array: NDArray[Any]) -> Any:
    """Nested lists; the last axis of truth values as a string of 0 and 1, NaN as null."""
    if array.dtype == np.bool_ and array.ndim == 1:
        return "".join("1" if value else "0" for value in array.tolist())
    if array.dtype == np.bool_:
        return [_pack_array(part) for part in array]
    if array.dtype == np.float32:
        return [
            [None if value != value else float(f"{value:.2e}") for value in row]
            for row in array.tolist()
        ]
    return array.tolist()


def _booleans(packed: Any) -> Booleans:
    if isinstance(packed, str):
        return np.array([character == "1" for character in packed], dtype=np.bool_)
    return np.stack([_booleans(part) for part in packed])


def _freeze(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _unpack(kind: type, packed: dict[str, Any]) -> dict[str, Any]:
    """Turn the lists of one JSON object back into the arrays that `kind` declares."""
    content = dict(packed)
    for field in fields(kind):
        if field.type == "Integers":
            content[field.name] = _freeze(np.array(packed[field.name], dtype=np.int32))
        elif field.type == "Booleans":
            content[field.name] = _freeze(_booleans(packed[field.name]))
        elif field.type == "NDArray[np.float32]":
            content[field.name] = _freeze(np.array(packed[field.name], dtype=np.float32))
    return content


def _unpack_frame(packed: dict[str, Any]) -> Frame:
    content = _unpack(Frame, packed)
    content["target"] = CacheFrame(**_unpack(CacheFrame, packed["target"]))
    if packed["draft"] is not None:
        content["draft"] = CacheFrame(**_unpack(CacheFrame, packed["draft"]))
    content["feeds"] = tuple(FeedFrame(**_unpack(FeedFrame, feed)) for feed in packed["feeds"])
    content["violations"] = tuple(Violation(**violation) for violation in packed["violations"])
    for name in ("pool", "waiting", "lines"):
        content[name] = tuple(map(int, packed.get(name, ())))
    if packed.get("judgement") is not None:
        content["judgement"] = Judgement(**_unpack(Judgement, packed["judgement"]))
    return Frame(**content)
