"""What a person asks of a run: the page's fields, and the checks they pass."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import gradio as gr

import batchspec
from batchspec.config import ACCEPTANCE_RULES, STRATEGY_NAMES, DecodeConfig, label_of
from batchspec.errors import DecodeError
from batchspec.faults import FAULTS
from batchspec.limits import Limits
from batchspec.storyteller import EXAMPLES
from batchspec.storyteller.example import BATCH_SIZE, DRAFT_TOKENS, LANES, NEW_TOKENS
from pages.models import OWN, State, check_pair, load, pair_choices
from visuals.link import Link

MOST_LANES = 3
MOST_WHOLE = 2**53
DEFAULTS = Link(
    OWN, "\n".join(EXAMPLES), LANES, k=DRAFT_TOKENS, tokens=NEW_TOKENS, batch=BATCH_SIZE
)
NUMBERS = (
    ("k", "K", "k"),
    ("tokens", "New tokens", "new-tokens"),
    ("batch", "Batch size", "batch-size"),
    ("window", "Pool window", "window"),
    ("temperature", "Temperature", "temperature"),
    ("seed", "Seed", "seed"),
)
"""Field of `Link`, words and element of each number on the page."""
BREAK_IT = "Break it yourself…"
BROKEN_LANES = {
    label_of(strategy, fault.name): f"{strategy}: {fault.title}"
    for strategy in ("eqspec", "exspec", "ragged", "holes", "rollback")
    for fault in FAULTS.values()
    if strategy in fault.strategies
}
"""What a person reads, by the name of the lane, of every fault in every strategy."""
LANE_NAMES = (*STRATEGY_NAMES, *BROKEN_LANES)


def controls() -> tuple[list[gr.components.Component], gr.Dropdown, list[gr.Button], gr.HTML]:
    """The settings in the order of `Link`, the fault to add, the buttons, and a message."""
    with gr.Row(elem_id="controls"):
        prompts = gr.Textbox(
            DEFAULTS.prompts,
            label="Prompts, one a line",
            lines=4,
            max_lines=8,
            elem_id="prompts",
            scale=4,
        )
        with gr.Column(scale=6, min_width=320):
            with gr.Row():
                pair, draft = pair_fields()
                k, tokens, batch = _numbers("k", "tokens", "batch")
                lanes = gr.Dropdown(
                    list(LANE_NAMES),
                    value=list(DEFAULTS.lanes),
                    multiselect=True,
                    max_choices=MOST_LANES,
                    label="Lanes, up to three",
                    elem_id="lanes",
                    min_width=270,
                    scale=3,
                )
            with gr.Row():
                run = gr.Button("Run", variant="primary", elem_id="run", min_width=100)
                by_hand = gr.Button("Step by hand", elem_id="by-hand", min_width=110)
                broken = gr.Dropdown(
                    [(BREAK_IT, ""), *((words, name) for name, words in BROKEN_LANES.items())],
                    value="",
                    show_label=False,
                    container=False,
                    elem_id="broken",
                    min_width=210,
                )
                further = _further()
            message = gr.HTML("", elem_id="message")
    *further, chat = further
    settings = [pair, prompts, lanes, k, tokens, batch, *further, draft, chat]
    return settings, broken, [run, by_hand], message


def _further() -> list[gr.components.Component]:
    """What is seldom changed: window, temperature, seed, acceptance, chat."""
    with gr.Accordion("More settings", open=False, elem_id="more"), gr.Row():
        numbers = _numbers("window", "temperature", "seed", width=96)
        acceptance = gr.Dropdown(
            list(ACCEPTANCE_RULES), value=DEFAULTS.acceptance, label="Acceptance", min_width=120
        )
        chat = gr.Checkbox(DEFAULTS.chat, label="Chat template", elem_id="chat")
    return [*numbers, acceptance, chat]


def pair_fields() -> tuple[gr.Dropdown, gr.Dropdown]:
    """The fields that choose a pair: a preset or a target, and a draft where not the pair's own."""
    free = Limits.of_this_page() is None
    pair = gr.Dropdown(
        pair_choices(),
        value=OWN,
        label="Pair or Hub id" if free else "Pair",
        allow_custom_value=free,
        elem_id="pair",
        min_width=130,
        scale=2,
    )
    draft = gr.Dropdown(
        [("its own", ""), ("n-gram", "ngram")],
        value="",
        label="Draft",
        allow_custom_value=free,
        elem_id="draft",
        min_width=112,
    )
    return pair, draft


def _numbers(*names: str, width: int = 70) -> list[gr.Number]:
    return [
        gr.Number(getattr(DEFAULTS, name), label=label, min_width=width, elem_id=place)
        for name, label, place in NUMBERS
        if name in names
    ]


def break_it(broken: str, lanes: list[str]) -> list[str]:
    """Add a broken lane beside its sound one, in place of another where there is no room."""
    if not broken or broken in lanes:
        return lanes
    sound = broken.partition("+")[0]
    kept = [lane for lane in lanes if lane != sound][1 - MOST_LANES :]
    place = min(lanes.index(sound), len(kept)) if sound in lanes else len(kept)
    return [*kept[:place], sound, broken, *kept[place:]][:MOST_LANES]


def lane_configs(link: Link, prompts: Sequence[str]) -> list[DecodeConfig]:
    """A person's settings, one for each lane, checked as far as they can be without the models.

    Raises:
        DecodeError: bad input.
    """
    if not prompts:
        raise DecodeError("There is no prompt: write at least one, one a line.")
    if not all(isinstance(text, str) for text in (*prompts, *link.lanes)):
        raise DecodeError("Prompts must be a list of texts, and a strategy is named by a text.")
    if not link.lanes:
        raise DecodeError("There is no lane: choose at least one strategy.")
    if len(link.lanes) > MOST_LANES:
        raise DecodeError(f"There is room for {MOST_LANES} lanes, not {len(link.lanes)}.")
    settings: dict[str, Any] = {
        name: whole_number(words, getattr(link, field))
        for field, name, words in (
            ("k", "draft_tokens", "K"),
            ("tokens", "max_new_tokens", "New tokens"),
            ("batch", "batch_size", "Batch size"),
            ("window", "window", "The pool window"),
            ("seed", "seed", "The seed"),
        )
    }
    if settings["max_new_tokens"] == 0:
        raise DecodeError("With 0 new tokens no model runs: ask for at least 1.")
    settings["temperature"] = float(_number("the temperature", link.temperature))
    settings["acceptance"] = link.acceptance
    configs = [DecodeConfig(**lane_settings(lane), **settings) for lane in link.lanes]
    limits = Limits.of_this_page()
    if limits:
        limits.check(prompts, configs[0])
    check_pair(link.pair, link.draft or "")
    return configs


def start_run(link: Link, prompts: Sequence[str]) -> Generator[State, None, batchspec.LiveRun]:
    """A run with a person's settings; how far its models are loaded. None of them has run yet.

    Raises:
        DecodeError: bad input, or a pair that cannot be loaded.
    """
    configs = lane_configs(link, prompts)
    # Two threads that import transformers at once see each other's half: the one that loads goes
    # first.
    pair = yield from load(link.pair, link.draft or "")
    return batchspec.LiveRun(pair.with_chat(link.chat), prompts, configs)


def lane_settings(lane: str) -> dict[str, Any]:
    """What the name of a lane, `STRATEGY` or `STRATEGY+FAULT`, asks of a run."""
    strategy, plus, fault = lane.partition("+")
    return {"strategy": strategy, "fault": fault} if plus else {"strategy": strategy}


def _number(name: str, value: float | None) -> float:
    if value is None:
        raise DecodeError(f"A number is missing: fill in {name}.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecodeError(f"{name} must be a number, not {value!r:.40}.")
    return value


def whole_number(name: str, value: float | None) -> int:
    """The number in a field.

    Raises:
        DecodeError: it is empty, or no whole number that is kept exactly.
    """
    number = _number(name, value)
    # Beyond it, neither a browser nor JSON keeps whole numbers apart.
    if not abs(number) <= MOST_WHOLE:
        raise DecodeError(f"{name} must be a number of at most {MOST_WHOLE}, not {number:.3g}.")
    if number != int(number):
        raise DecodeError(f"{name} must be a whole number, not {number}.")
    return int(number)
