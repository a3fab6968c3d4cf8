"""Turning the steps of a run into frames."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict

import numpy as np

from batchspec.cached_model import CachedModel
from batchspec.clean import CleanMemo, CleanRow
from batchspec.config import DecodeConfig
from batchspec.decoding import Prompts, run_rows, start_rows, write_alone
from batchspec.frames import freeze, read_cache, read_feed
from batchspec.generation import Stats
from batchspec.history import History, chip_tables, judged_chips
from batchspec.invariants import check_cache, check_mask, check_positions, check_visibility
from batchspec.judgement import read_judgement
from batchspec.lines import Lines
from batchspec.pair import ModelPair
from batchspec.row import Row
from batchspec.sampler import Sampler
from batchspec.step import Step
from batchspec.strategies import STRATEGIES
from batchspec.text import running_text, token_texts
from batchspec.trace import (
    SLOT_STATES,
    CacheFrame,
    FeedFrame,
    Frame,
    Integers,
    Judgement,
    Trace,
    Violation,
)

_MODELS = ("target", "draft")


class Recorder:
    """Runs a pair over prompts and looks at every phase.

    It reads the tensors that were really fed and cached, and runs each row once more alone, in a
    batch of one and without padding, to know what they should have been.

    Attributes:
        frames: those recorded so far.
        stats: the run's counts so far.
        seconds: time spent on observing, which no phase includes.
    """

    def __init__(
        self,
        pair: ModelPair,
        prompts: Prompts,
        config: DecodeConfig | None = None,
        memo: CleanMemo | None = None,
    ) -> None:
        """Check the input; the models run as `run` is consumed.

        Args:
            pair, prompts, config: as in `decode`.
            memo: an empty dict shared by the recorders of one pair and its prompts: a row alone is
                then run once for all of them as long as they agree. It holds K/V of every row.

        Raises:
            DecodeError: as `decode` does.
        """
        self.pair = pair
        self.config = config or DecodeConfig()
        self._sampler = Sampler.of(self.config)
        rows = start_rows(pair, prompts, self.config)
        self._rows = [History(row, self._alone(row, memo)) for row in rows]
        # The strategy's own function, also where a fault breaks it.
        self._lines = Lines(STRATEGIES[self.config.strategy].synchronize)
        fresh = start_rows(pair, prompts, self.config)
        self._steps = run_rows(pair, fresh, self.config, self._lines)
        self._judgement: Judgement | None = None
        self._dtype = str(pair.target.dtype).removeprefix("torch.")
        self._draft_dtype = str(pair.models[-1].dtype).removeprefix("torch.")
        self._last: dict[str, CacheFrame] = {}
        self._seen = {token for row in rows for token in row.prompt}
        self.frames: list[Frame] = []
        self.stats = Stats(batch_size=self.config.batch_size)
        self.seconds = 0.0

    def _alone(self, row: Row, memo: CleanMemo | None) -> dict[str, CleanRow]:
        samplers = self._sampler, None  # what the draft would write is not asked
        return {
            name: CleanRow(model, row.length, sampler, row.key, memo)
            for name, model, sampler in zip(_MODELS, self.pair.models, samplers, strict=False)
        }

    def run(self) -> Iterator[Frame]:
        """Run phase by phase, yielding the frame of each."""
        for step in self._steps:
            self._record(step)
            del step  # with its logits and masks: who asks for frames may take long to ask again
            yield self.frames[-1]

    def _record(self, step: Step) -> None:
        started = time.perf_counter()
        self.stats.add(step)
        frame = self._observe(step)
        self.frames.append(frame)
        self._see(frame)
        self.seconds += time.perf_counter() - started

    @property
    def agreed(self) -> dict[int, list[int]]:
        """New tokens of the rows that are done and wrote all that the target alone would."""
        return {
            number: list(row.generated)
            for number, row in enumerate(self._rows)
            if row.finished and row.divergence is None
        }

    @property
    def settled(self) -> list[tuple[int, list[int]]]:
        """Key, and the tokens that its caches will hold from now on, of each row not done."""
        # A draft cache may lack the last two that were committed.
        return [(row.start.key, row.tokens[:-2]) for row in self._rows if not row.finished]

    @property
    def finished(self) -> bool:
        """Whether every row is done."""
        return all(row.finished for row in self._rows)

    @property
    def share(self) -> float:
        """How much is done, 0 to 1, counted in the new tokens that the rows may take."""
        taken = sum(row.start.budget if row.finished else len(row.generated) for row in self._rows)
        return taken / max(1, sum(row.start.budget for row in self._rows))

    def trace(self, known: Mapping[int, list[int]] | None = None) -> Trace:
        """The trace of the frames so far, with the whole reference.

        Args:
            known: references that another strategy's recorder has `agreed` on for the same prompts;
                without them the target is run alone on every row that left it.
        """
        known = known or {}
        return self._trace(
            [
                known[number] if number in known else self._reference(number)
                for number in range(len(self._rows))
            ]
        )

    def trace_so_far(self) -> Trace:
        """The trace of the frames so far, with the reference as far as it is known.

        No model runs: where a row left the target, its reference ends with the target's choice.
        """
        return self._trace([row.known_reference for row in self._rows])

    def _trace(self, reference: list[list[int]]) -> Trace:
        generated = [list(row.generated) for row in self._rows]
        self._seen.update(token for tokens in reference for token in tokens)
        tokenizer = self.pair.tokenizer
        return Trace(
            pair=self.pair.name,
            strategy=self.config.strategy,
            title=STRATEGIES[self.config.strategy].title,
            summary=STRATEGIES[self.config.strategy].summary,
            settings=asdict(self.config),
            device=str(self.pair.target.device),
            dtype=self._dtype,
            draft_dtype=self._draft_dtype,
            special_ids=sorted(tokenizer.all_special_ids) if tokenizer is not None else [],
            prompts=[list(row.prompt) for row in self._rows],
            vocabulary=token_texts(tokenizer, self._seen - {-1}),
            frames=tuple(self.frames),
            generated=generated,
            reference=reference,
            texts=[running_text(tokenizer, tokens) for tokens in generated],
            reference_texts=[running_text(tokenizer, tokens) for tokens in reference],
            stats=self.stats.summary(),
            recorder_seconds=self.seconds,
            source=self._lines.source,
            source_line=self._lines.first,
        )

    def _see(self, frame: Frame) -> None:
        """Note the tokens whose texts a trace needs."""
        arrays = [frame.token, frame.target.token, *(feed.token for feed in frame.feeds)]
        arrays += [frame.draft.token] if frame.draft else []
        for array in arrays:
            self._seen.update(np.unique(array).tolist())

    def _reference(self, number: int) -> list[int]:
        """What the target alone writes; a row that never left it has already written it."""
        row = self._rows[number]
        if row.divergence is None:
            return list(row.generated)
        if row.reference is None:
            row.reference = write_alone(self.pair, row.start, self.config)
        return row.reference

    def _observe(self, step: Step) -> Frame:
        if step.phase == "synchronize":
            self._commit(step)
        drafts = self._drafts(step)
        count = len(self._rows)
        numbers = [row.number for row in step.rows]
        target = self._cache(step, step.target_cache, drafts)
        draft = self._cache(step, step.draft_cache, drafts) if step.draft_cache else None
        feeds = tuple(read_feed(feed, numbers, count) for feed in step.feeds)
        token, role, token_round = self._chips(step, drafts, target)
        self._judgement = read_judgement(step, self._sampler, count, self._judgement)
        verdict = step.verdict
        accepted, drafted = np.full((2, count), -1, dtype=np.int32)
        active = np.isin(np.arange(count), numbers)
        for place, number in enumerate(numbers):
            if step.draft is not None:
                drafted[number] = step.draft.lengths[place]
            if verdict is not None:
                accepted[number] = verdict.accepted[place]
        return Frame(
            phase=step.phase,
            round=step.round,
            seconds=step.seconds,
            active=freeze(active),
            finished=freeze(np.array([row.finished for row in self._rows], dtype=np.bool_)),
            length=freeze(np.array([len(row.tokens) for row in self._rows], dtype=np.int32)),
            drafted=freeze(drafted),
            accepted=freeze(accepted),
            token=token,
            role=role,
            token_round=token_round,
            target=target,
            draft=draft,
            feeds=feeds,
            violations=self._violations(target, draft, feeds),
            slots_moved=step.slots_moved,
            bytes_moved=step.bytes_moved,
            realigned=step.realigned,
            pool=step.pool,
            waiting=step.waiting,
            judgement=self._judgement,
            lines=step.lines,
        )

    def _drafts(self, step: Step) -> dict[int, list[int]]:
        """This round's proposals per prompt number, while they are not decided."""
        if step.draft is None or step.phase not in ("draft", "verify"):
            return {}
        proposed = step.draft.ids.tolist()
        lengths = step.draft.lengths
        return {
            row.number: proposed[place][: lengths[place]] for place, row in enumerate(step.rows)
        }

    def _commit(self, step: Step) -> None:
        """Take over what the rows won."""
        assert step.verdict is not None
        for place, row in enumerate(step.rows):
            self._rows[row.number].commit(step.verdict, place, step.round, row.finished)

    def _cache(self, step: Step, cached: CachedModel, drafts: dict[int, list[int]]) -> CacheFrame:
        fed = any(feed.model == cached.name for feed in step.feeds)
        if not fed and step.phase in ("draft", "verify"):
            return self._last[cached.name]
        numbers = [row.number for row in step.cached_rows]
        clean = []
        held = [int((row + 1).max(initial=0)) for row in cached.index.cpu().numpy()]
        for number, length in zip(numbers, held, strict=True):
            row = self._rows[number]
            row.clean[cached.name].extend((row.tokens + drafts.get(number, []))[:length])
            clean.append(row.clean[cached.name])
        committed = [len(self._rows[number].tokens) for number in numbers]
        frame = read_cache(cached, numbers, len(self._rows), committed, clean)
        self._last[cached.name] = frame
        return frame

    def _chips(
        self, step: Step, drafts: dict[int, list[int]], target: CacheFrame
    ) -> tuple[Integers, Integers, Integers]:
        """Tokens, roles and rounds of every row, `[rows, longest]` each."""
        chips = [row.chips for row in self._rows]
        # Where `pad` leaves rejected slots visible it believes in pad tokens; a fault does not.
        if self.config.fault is None:
            for number, line in enumerate(chips):
                stale = np.flatnonzero(target.state[number] == SLOT_STATES.index("stale"))
                for slot in stale[::-1]:
                    before = int((target.expected[number, :slot] >= 0).sum())
                    line.insert(before, (self.pair.filler_token_id, "pad", line[before][2]))
        if step.phase == "draft":
            for number, tokens in drafts.items():
                chips[number] += [(token, "draft", step.round) for token in tokens]
        if step.phase == "verify" and step.verdict is not None:
            for place, judged in enumerate(step.rows):
                chips[judged.number] += judged_chips(step.verdict, place, step.round)
        return chip_tables(chips)

    def _violations(
        self, target: CacheFrame, draft: CacheFrame | None, feeds: tuple[FeedFrame, ...]
    ) -> tuple[Violation, ...]:
        found = []
        for model, cache, dtype in (
            ("target", target, self._dtype),
            ("draft", draft, self._draft_dtype),
        ):
            if cache is not None:
                found += check_positions(model, cache)
                found += check_visibility(model, cache)
                found += check_cache(model, cache, dtype)
        for feed in feeds:
            found += check_mask(feed)
        for number, row in enumerate(self._rows):
            if row.divergence is not None:
                place, choice = row.divergence
                found.append(Violation("I4", number, None, place, choice, row.generated[place]))
        found.sort(key=lambda violation: (violation.invariant, violation.row))
        first = {(v.invariant, v.row, v.model): v for v in reversed(found)}
        return tuple(reversed(first.values()))


def record(pair: ModelPair, prompts: Prompts, config: DecodeConfig | None = None) -> Trace:
    """Run a pair over prompts and return the whole trace; arguments as in `decode`."""
    recorder = Recorder(pair, prompts, config)
    for _ in recorder.run():
        pass
    return recorder.trace()
