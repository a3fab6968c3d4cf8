"""The page: layout and wiring. Run `python app.py` and open the address it prints."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import plotly

# The engine's names are looked up when first used, so that the page is there before torch is.
import batchspec
from batchspec.config import ACCEPTANCE_RULES, STRATEGY_NAMES
from batchspec.errors import DecodeError
from batchspec.faults import FAULTS
from batchspec.limits import Limits
from batchspec.runs import Runs
from batchspec.storyteller import EXAMPLES
from batchspec.storyteller.example import BATCH_SIZE, DRAFT_TOKENS, LANES, NEW_TOKENS, load_example
from visuals.link import Link
from visuals.opening import opened
from visuals.payload import pack, pack_piece
from visuals.player import player_css, player_markup, player_palette, player_script
from visuals.sentence import cause, plain, sentence, story
from visuals.standalone import standalone_page

TITLE = "BatchSpec"
PAIRS = ("storyteller",)
MOST_LANES = 3
MOST_RUNS = 24
MOST_WHOLE = 2**53
DEFAULTS = Link(
    PAIRS[0], "\n".join(EXAMPLES), LANES, k=DRAFT_TOKENS, tokens=NEW_TOKENS, batch=BATCH_SIZE
)
RUN_BROKEN = """(broken) => {
    if (broken) document.querySelector("#run").click();
    return "";
}"""
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
    f"{strategy}+{fault.name}": f"{strategy}: {fault.title}"
    for strategy in ("eqspec", "exspec", "ragged", "holes", "rollback")
    for fault in FAULTS.values()
    if strategy in fault.strategies
}
"""What a person reads, by the name of the lane, of every fault in every strategy."""
LANE_NAMES = (*STRATEGY_NAMES, *BROKEN_LANES)
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
CSS = """
.gradio-container .main.app{max-width:1680px!important;padding:8px 20px!important}
.gradio-container .contain>.column{gap:8px}.gradio-container .html-container{padding:0!important}
#brand h1{font-size:16px;font-weight:700;margin:0;line-height:1.3}
#brand small{font-size:13px;font-weight:400;color:#596170;margin-left:8px}
.dark #brand small{color:#a7afbd}
#controls{gap:12px}#controls .column,#controls .row{gap:6px}
#controls .form{border-radius:10px}#controls div.block{padding:5px 10px!important}
#controls label.block{padding:0!important}#controls span{margin-bottom:2px;white-space:nowrap}
#controls input{padding:3px 8px;margin:0}#controls .wrap-inner{padding:0}
#prompts textarea{font-size:13px;line-height:1.45;padding:5px 8px}
#run,#by-hand{padding:3px 14px;align-self:start;flex:none;font-size:14px}
#more{padding:4px 10px!important;min-width:min(100%,170px)!important}
#more .label-wrap{margin:0!important;font-size:13px}
#k,#new-tokens,#batch-size{max-width:92px}
#broken{max-width:230px;padding:0!important}#lanes{flex-grow:1}
#lanes .token{padding:0 4px 0 8px;border-radius:5px}
#lanes .wrap-inner{gap:4px;flex-wrap:nowrap}#lanes .token-remove{padding:2px}
#controls :is(input,textarea):focus-visible{outline:2px solid #7a6ad8!important}
#message{color:var(--error-text-color);padding:0!important}
#message:not(:has(p)){display:none}
#message p{margin:0;font-size:13px;font-weight:600;color:inherit}
footer{display:none!important}
"""

_loading = threading.Lock()
_models = threading.Lock()
_opening = threading.Lock()
_runs = Runs(MOST_RUNS)


@lru_cache(maxsize=2)
def _load(name: str) -> batchspec.ModelPair:
    import torch
    from transformers.utils import logging

    # The server and the browser need a core too; small models are no faster on all of them.
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    logging.disable_progress_bar()
    return batchspec.load_pair(name)


def pair_named(name: str) -> batchspec.ModelPair:
    """The pair of that name, loaded once for all sessions.

    Raises:
        DecodeError: there is none.
    """
    if name not in PAIRS:
        raise DecodeError(f"There is no pair {name!r:.60} here: choose one of {', '.join(PAIRS)}.")
    with _loading:
        return _load(name)


def start_run(link: Link, prompts: Sequence[str]) -> batchspec.LiveRun:
    """A run with a person's settings, checked; no model has run yet.

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
        name: _whole(words, getattr(link, field))
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
    configs = [batchspec.DecodeConfig(**lane_settings(lane), **settings) for lane in link.lanes]
    limits = Limits.of_this_page()
    if limits:
        limits.check(prompts, configs[0])
    # Two threads that import transformers at once see each other's half: the one that loads goes
    # first.
    pair = pair_named(link.pair)
    return batchspec.LiveRun(pair, prompts, configs)


def lane_settings(lane: str) -> dict[str, Any]:
    """What the name of a lane, `STRATEGY` or `STRATEGY+FAULT`, asks of a run."""
    strategy, plus, fault = lane.partition("+")
    return {"strategy": strategy, "fault": fault} if plus else {"strategy": strategy}


def open_page(request: gr.Request) -> list[object]:
    """What the page opens with: the recorded example, and the settings its address asks for.

    Returns:
        The settings, the player's payload, and what of the address could not be used.
    """
    query = dict(request.query_params)
    payload = pack(load_example())
    if not query.keys() & set(Link.names()):
        return [*[gr.skip()] * len(Link.names()), payload, ""]
    choices = {"pair": PAIRS, "acceptance": ACCEPTANCE_RULES}
    link, complaints = DEFAULTS.opened(query, choices, LANE_NAMES.__contains__, MOST_LANES)
    return [*link.values(), payload, _warning(" ".join(complaints))]


def break_it(broken: str, lanes: list[str]) -> list[str]:
    """Add a broken lane beside its sound one, in place of another where there is no room."""
    if not broken or broken in lanes:
        return lanes
    sound = broken.partition("+")[0]
    kept = [lane for lane in lanes if lane != sound][1 - MOST_LANES :]
    place = min(lanes.index(sound), len(kept)) if sound in lanes else len(kept)
    return [*kept[:place], sound, broken, *kept[place:]][:MOST_LANES]


def open_run(by_hand: bool, *settings: Any, session: str | None) -> tuple[object, str]:
    """Check the settings and make a run of them, in place of the session's earlier one.

    Returns:
        The player's payload and an empty message; or the picture as it was and what is wrong.
    """
    link = Link(*settings)
    try:
        run = start_run(link, [line for line in link.prompts.splitlines() if line.strip()])
    except DecodeError as error:
        return gr.skip(), _warning(str(error))
    key = _runs.open(str(session), run)
    return pack(run.traces(), live=True, link=link.query(), run=key, by_hand=by_hand), ""


def open_to_run(request: gr.Request, *settings: Any) -> tuple[object, str]:
    """A run that the player asks to run on; arguments and result as for `open_run`."""
    return open_run(False, *settings, session=request.session_hash)


def open_by_hand(request: gr.Request, *settings: Any) -> tuple[object, str]:
    """A run that the player asks for one phase at a time; as `open_run`."""
    return open_run(True, *settings, session=request.session_hash)


def open_link(request: gr.Request, *settings: Any) -> tuple[object, object]:
    """As `open_to_run` where the address holds prompts; what was said of the address stays."""
    if "prompts" not in request.query_params:
        return gr.skip(), gr.skip()
    payload, words = open_to_run(request, *settings)
    return payload, words or gr.skip()


def leave(request: gr.Request) -> None:
    """Forget what a session that is gone had."""
    _runs.end(str(request.session_hash))


def run_on(event: gr.EventData) -> None:
    """Run the phases of the run that the player names until it ends or somebody stops it."""
    run = _runs.get(event.run)
    while run is not None and not (run.finished or run.stopped.is_set()):
        _advance(run)
        time.sleep(0.001)  # whoever waits for the models gets them


def _advance(run: batchspec.LiveRun) -> None:
    try:
        with _models:
            run.advance()
    except Exception as error:
        run.failure = f"The run broke off: {type(error).__name__}: {error}"
        run.stopped.set()
        raise


def frames(request: list[Any]) -> str | None:
    """What a run has gained; asked for by the player, which keeps what it has.

    Args:
        request: the run's key, and how many frames of each lane the player has.

    Returns:
        A piece as `pack_piece` makes it; None where the run is gone.
    """
    key, since = request
    run = _runs.get(key)
    if run is None:
        return None
    with run.lock:
        if run.finished:  # the player has everything now
            _runs.close(key)
        more = {"ended": run.ended, "share": run.share, "failure": run.failure}
        return pack_piece(run.traces(), since, more)


def advance(request: list[Any]) -> str | None:
    """Run the next phase of a run on the models; arguments and result are those of `frames`."""
    run = _runs.get(request[0])
    if run is not None and not run.finished:
        _advance(run)
    return frames(request)


def stop(key: str) -> None:
    """Pause a run after the phase that is under way."""
    run = _runs.get(key)
    if run is not None:
        run.stopped.set()


def resume(key: str) -> None:
    """Let a paused run be run on."""
    run = _runs.get(key)
    if run is not None:
        run.stopped.clear()


def blank_page(_: object) -> list[str]:
    """What stands before and after the payload in a file that needs no server."""
    return standalone_page("\0").split("\0")


def open_traces(texts: list[Any]) -> dict[str, str]:
    """What the player shows of the trace files that somebody opened, or why it cannot."""
    try:
        with _opening:  # one at a time, so that memory is bounded
            return {"payload": opened(texts, MOST_LANES)}
    except DecodeError as error:
        return {"failure": str(error)}


def run_trace(
    prompts: list[str],
    strategy: str = "eqspec",
    draft_tokens: int = 4,
    max_new_tokens: int = 32,
    batch_size: int = 8,
    temperature: float = 0.0,
    seed: int = 0,
    pair: str = PAIRS[0],
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
        pair: name of the model pair.

    Returns:
        The trace as the JSON object of docs/trace.md.
    """
    numbers = (draft_tokens, max_new_tokens, batch_size)
    link = Link(pair, "", [strategy], *numbers, temperature=temperature, seed=seed)
    try:
        run = start_run(link, prompts)
        while not run.finished:
            with _models:
                run.advance()
    except DecodeError as error:
        raise gr.Error(str(error), print_exception=False) from None
    content: dict[str, Any] = json.loads(run.traces()[0].to_json())
    return content


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


def _warning(words: str) -> str:
    return f'<p role="alert">⚠ {escape(words)}</p>' if words else ""


def _number(name: str, value: float | None) -> float:
    if value is None:
        raise DecodeError(f"A number is missing: fill in {name}.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecodeError(f"{name} must be a number, not {value!r:.40}.")
    return value


def _whole(name: str, value: float | None) -> int:
    number = _number(name, value)
    # Beyond it, neither a browser nor JSON keeps whole numbers apart.
    if not abs(number) <= MOST_WHOLE:
        raise DecodeError(f"{name} must be a number of at most {MOST_WHOLE}, not {number:.3g}.")
    if number != int(number):
        raise DecodeError(f"{name} must be a whole number, not {number}.")
    return int(number)


def build() -> gr.Blocks:
    """The page."""
    gr.set_static_paths([PLOTLY])
    # Loaded while the page is built and the server starts, so that it is there for the first run.
    threading.Thread(target=pair_named, args=(PAIRS[0],), daemon=True).start()
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as page:
        gr.HTML(
            f"<h1>{TITLE} <small>batched speculative decoding, one phase at a time</small></h1>",
            elem_id="brand",
        )
        settings, broken, buttons, message = _controls()
        player = gr.HTML(
            "",
            html_template=player_markup(),
            js_on_load=player_script(),
            apply_default_css=False,
            server_functions=[frames, advance, stop, resume, blank_page, open_traces],
            palette=player_palette(),
            plotly=f"gradio_api/file={PLOTLY}",
        )
        opened = page.load(
            open_page, outputs=[*settings, player, message], api_visibility="private"
        )
        opened.then(
            open_link,
            inputs=settings,
            outputs=[player, message],
            show_progress_on=message,
            api_visibility="private",
        )
        page.unload(leave)
        for button, start in zip(buttons, (open_to_run, open_by_hand), strict=True):
            button.click(
                start,
                inputs=settings,
                outputs=[player, message],
                show_progress_on=message,
                api_visibility="private",
            )
        lanes = settings[Link.names().index("lanes")]
        added = broken.input(
            break_it,
            inputs=[broken, lanes],
            outputs=lanes,
            show_progress="hidden",
            api_visibility="private",
        )
        # Leaving the list with the tab key chooses nothing, and counts as input all the same.
        added.then(None, inputs=broken, outputs=broken, js=RUN_BROKEN)
        # One run at a time has the models; looking at a picture asks for none.
        for function in (run_trace, explain_step):
            gr.api(function, concurrency_limit=1, concurrency_id="models")
        player.play(
            run_on,
            show_progress="hidden",
            concurrency_limit=1,
            concurrency_id="models",
            api_visibility="private",
        )
    return page


def _controls() -> tuple[list[gr.components.Component], gr.Dropdown, list[gr.Button], gr.HTML]:
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
                pair = gr.Dropdown(list(PAIRS), value=PAIRS[0], label="Pair", min_width=120)
                k, tokens, batch = _numbers("k", "tokens", "batch")
                lanes = gr.Dropdown(
                    list(LANE_NAMES),
                    value=list(DEFAULTS.lanes),
                    multiselect=True,
                    max_choices=MOST_LANES,
                    label="Lanes, up to three",
                    elem_id="lanes",
                    min_width=300,
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
                with gr.Accordion("Sampling and pool", open=False, elem_id="more"), gr.Row():
                    window, temperature, seed = _numbers("window", "temperature", "seed")
                    acceptance = gr.Dropdown(
                        list(ACCEPTANCE_RULES),
                        value=DEFAULTS.acceptance,
                        label="Acceptance",
                        min_width=120,
                    )
            message = gr.HTML("", elem_id="message")
    numbers = [k, tokens, batch, window, temperature, seed]
    return [pair, prompts, lanes, *numbers, acceptance], broken, [run, by_hand], message


def _numbers(*names: str) -> list[gr.Number]:
    return [
        gr.Number(getattr(DEFAULTS, name), label=label, min_width=70, elem_id=place)
        for name, label, place in NUMBERS
        if name in names
    ]


def main() -> None:
    """Serve the page; GRADIO_SERVER_NAME and GRADIO_SERVER_PORT choose where."""
    # The engine is imported while the server starts; shorter turns keep one from waiting for the
    # other.
    sys.setswitchinterval(5e-4)
    theme = gr.themes.Base(
        font=[gr.themes.Font("Inter"), gr.themes.Font("system-ui"), gr.themes.Font("sans-serif")],
        font_mono=[gr.themes.Font("ui-monospace"), gr.themes.Font("monospace")],
        text_size="sm",
    ).set(
        body_background_fill="#fbfbfa",
        body_background_fill_dark="#15171b",
        block_background_fill="#ffffff",
        block_background_fill_dark="#1c1f25",
        block_border_color="#e0e2e7",
        block_border_color_dark="#30353f",
        input_background_fill="#f4f5f7",
        input_background_fill_dark="#15171b",
        button_primary_background_fill="#1d1f23",
        button_primary_background_fill_hover="#3a3d44",
        button_primary_background_fill_dark="#e8eaed",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#15171b",
        error_text_color="#b3001b",
        error_text_color_dark="#ff8a80",
    )
    build().launch(theme=theme, css=CSS + player_css())


if __name__ == "__main__":
    main()
