"""Running a pair over prompts: phase by phase, or all at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import index
from typing import Any

from batchspec.config import DecodeConfig
from batchspec.errors import DecodeError
from batchspec.generation import Generation, Stats
from batchspec.lines import Lines
from batchspec.memory import memory_told
from batchspec.noise import row_key
from batchspec.pair import ModelPair, evaluation_mode
from batchspec.row import Row
from batchspec.step import Step
from batchspec.strategies import strategy_of
from batchspec.strategies.base import Strategy
from batchspec.text import prompt_ids

Prompts = Sequence[str] | Sequence[Sequence[int]]


def decode(pair: ModelPair, prompts: Prompts, config: DecodeConfig | None = None) -> Iterator[Step]:
    """Decode `prompts`, yielding every phase once it has run.

    Args:
        pair: the models.
        prompts: texts, or token ids of at least one token each.
        config: the settings; the defaults when None.

    Returns:
        A generator of steps. The input is checked at once, the models run as it is consumed.

    Raises:
        DecodeError: a prompt or setting that this pair cannot decode.
    """
    config = config or DecodeConfig()
    return run_rows(pair, start_rows(pair, prompts, config), config)


def generate(pair: ModelPair, prompts: Prompts, config: DecodeConfig | None = None) -> Generation:
    """Decode `prompts` to the end.

    Args and errors are those of `decode`; results are in the order of the prompts.
    """
    config = config or DecodeConfig()
    rows = start_rows(pair, prompts, config)
    return Generation.of(pair, rows, finish(pair, rows, config))


def finish(pair: ModelPair, rows: list[Row], config: DecodeConfig) -> Stats:
    """Decode rows, as `start_rows` gives them, to their ends; what it cost."""
    stats = Stats(batch_size=config.batch_size)
    for step in run_rows(pair, rows, config):
        stats.add(step)
    return stats


def write_alone(pair: ModelPair, row: Row, config: DecodeConfig) -> list[int]:
    """What the target alone writes for `row`, with the row's own random numbers.

    Args:
        pair: the models.
        row: as `start_rows` gives it; it is left as it is.
        config: the settings of the run whose reference this is.
    """
    fresh = Row(row.number, row.prompt, row.budget, row.key)
    alone = replace(config, strategy="autoregressive", acceptance="auto", batch_size=1, fault=None)
    for _ in run_rows(pair, [fresh], alone):
        pass
    return fresh.generated


def start_rows(pair: ModelPair, prompts: Prompts, config: DecodeConfig) -> list[Row]:
    """Turn prompts into rows, checking everything that can be known before a model runs.

    Raises:
        DecodeError: names the prompt by its place in the list.
    """
    strategy = strategy_of(config)
    refusal = strategy.refusal(pair)
    if refusal:
        raise DecodeError(refusal)
    if isinstance(prompts, str) or not isinstance(prompts, Iterable):
        raise DecodeError(f"Prompts must be a list of texts or of token ids, not {prompts!r:.60}.")
    context = _context(pair, config)
    rows = []
    repeats: Counter[tuple[int, ...]] = Counter()
    for number, prompt in enumerate(prompts):
        ids = _prompt_ids(pair, number, prompt)
        if len(ids) + config.max_new_tokens > context:
            raise DecodeError(
                f"Row {number} has {len(ids)} prompt tokens and asks for {config.max_new_tokens} "
                f"more, but the context of this pair holds {context}: "
                "shorten the prompt or ask for fewer new tokens."
            )
        key = row_key(config.seed, ids, repeats[tuple(ids)])
        repeats[tuple(ids)] += 1
        rows.append(Row(number, ids, config.max_new_tokens, key))
    return rows


def _context(pair: ModelPair, config: DecodeConfig) -> int:
    """Tokens a row may come to."""
    if strategy_of(config).speculative and not pair.skips_holes:
        # Beside a row at its end others still draft, and a table of slots holds their columns too.
        return pair.context_length - config.draft_tokens
    return pair.context_length


def _prompt_ids(pair: ModelPair, number: int, prompt: Any) -> list[int]:
    if isinstance(prompt, str):
        if pair.tokenizer is None:
            raise DecodeError(f"Row {number} is text, but this pair has no tokenizer: give ids.")
        if not prompt.strip():
            raise DecodeError(f"Row {number} is empty: write at least one word.")
        ids = prompt_ids(pair.tokenizer, prompt, pair.chat)
    else:
        try:
            ids = [index(token) for token in prompt]
        except TypeError:
            raise DecodeError(
                f"Row {number} must be a text or a list of token ids, not {prompt!r:.60}."
            ) from None
    if not ids:
        raise DecodeError(f"Row {number} is empty: give at least one token.")
    entries = pair.vocabulary_size
    for token in ids:
        if not 0 <= token < entries:
            raise DecodeError(
                f"Row {number} holds token id {token}, but the vocabulary ends at {entries - 1}."
            )
    return ids


def run_rows(
    pair: ModelPair, rows: list[Row], config: DecodeConfig, lines: Lines | None = None
) -> Iterator[Step]:
    """Decode rows as `start_rows` gives them; `lines` watches the strategy's `synchronize`."""
    if not rows or config.max_new_tokens == 0:
        return
    strategy = start_strategy(pair, rows, config)
    strategy.lines = lines
    with memory_told(), evaluation_mode(*pair.models):
        yield from strategy.steps()


def start_strategy(pair: ModelPair, rows: list[Row], config: DecodeConfig) -> Strategy:
    """The strategy that decodes `rows`, all of them waiting; there must be at least one."""
    return strategy_of(config)(pair, config, rows, eos_of(pair, config))


def eos_of(pair: ModelPair, config: DecodeConfig) -> tuple[int, ...]:
    """The ids that end a row."""
    eos = pair.eos_token_ids if config.eos_token_ids is None else config.eos_token_ids
    assert isinstance(eos, tuple)
    return eos
