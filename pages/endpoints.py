"""Endpoints for programs, by way of `gradio_client`."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

import batchspec
from batchspec.errors import DecodeError
from pages.gpu import moved, on_gpu
from pages.models import OWN, finished, load, turn
from pages.settings import lane_configs, start_run
from visuals.link import Link
from visuals.sentence import cause, plain, sentence, story


def run_trace(
    prompts: list[str],
    strategy: str = "eqspec",
    draft_tokens: int = 4,
    max_new_tokens: int = 32,
    batch_size: int = 8,
    temperature: float = 0.0,
    seed: int = 0,
    pair: str = OWN,
    draft: str = "",
) -> dict[str, Any]:
    """Record one strategy on a list of prompts; for programs, by way of `gradio_client`.

    Args:
        prompts: texts.
        strategy: its name, or `STRATEGY+FAULT`.
        draft_tokens: K.
        max_new_tokens: tokens written per prompt at most.
        batch_size: rows decoded together.
        temperature: 0 is greedy.
        seed: decides all random numbers.
        pair: name of the model pair, or its target's Hub id or folder.
        draft: `ngram`, a Hub id or a folder; empty for the pair's own.

    Returns:
        The trace as the JSON object of docs/trace.md.
    """
    numbers = (draft_tokens, max_new_tokens, batch_size)
    link = Link(pair, "", [strategy], *numbers, temperature=temperature, seed=seed, draft=draft)
    try:
        finished(start_run(link, prompts))
        trace = recorded(link, prompts)
    except DecodeError as error:
        raise gr.Error(str(error), print_exception=False) from None
    content: dict[str, Any] = json.loads(trace.to_json())
    return content


@on_gpu
def recorded(link: Link, prompts: list[str]) -> batchspec.Trace:
    """The first lane of a run, to its end; its pair is loaded."""
    pair = moved(finished(load(link.pair, link.draft or ""))).with_chat(link.chat)
    run = batchspec.LiveRun(pair, prompts, lane_configs(link, prompts))
    while not run.finished:
        with turn():
            run.advance()
    return run.traces()[0]


def explain_step(trace: dict[str, Any], step: int) -> dict[str, Any]:
    """Say what one phase of a trace did, and why it goes wrong if it does.

    Args:
        trace: as `run_trace` gives it, or as another engine wrote it to docs/trace.md.
        step: the phase, counted from 0.

    Returns:
        `round`, `phase`, `story` (the phase in general), `sentence` (what this one did), `causes`
        (the invariants broken so far, first cause first), all as plain text.
    """
    try:
        return _explained(batchspec.Trace.from_json(json.dumps(trace)), step)
    except DecodeError as error:
        raise gr.Error(str(error), print_exception=False) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        words = f"This trace is damaged: {type(error).__name__} in step {step!r:.40}."
        raise gr.Error(words, print_exception=False) from None


def _explained(trace: batchspec.Trace, step: int) -> dict[str, Any]:
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < len(trace.frames):
        raise DecodeError(f"This trace has {len(trace.frames)} steps, so none is {step!r:.40}.")
    frame = trace.frames[step]
    return {
        "round": int(frame.round),
        "phase": frame.phase,
        "story": plain(story(frame.phase, int(trace.settings.get("draft_tokens", 0)))),
        "sentence": plain(sentence(trace, step)),
        "causes": plain(cause(trace, step)).splitlines(),
    }
