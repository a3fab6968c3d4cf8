"""The page: layout and wiring. Run `python app.py` and open the address it prints."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path

import gradio as gr
import plotly

# The engine's names are looked up when first used, so that the page is there before torch is.
import batchspec
from batchspec.config import STRATEGY_NAMES
from batchspec.errors import DecodeError
from batchspec.storyteller import EXAMPLES
from batchspec.storyteller.example import BATCH_SIZE, DRAFT_TOKENS, LANES, NEW_TOKENS, load_example
from visuals.link import Link
from visuals.payload import pack
from visuals.player import player_css, player_markup, player_palette, player_script

TITLE = "BatchSpec"
PAIRS = ("storyteller",)
MOST_LANES = 3
DEFAULTS = Link(
    PAIRS[0], "\n".join(EXAMPLES), LANES, k=DRAFT_TOKENS, tokens=NEW_TOKENS, batch=BATCH_SIZE
)
RUN_LINK = """() => {
    if (new URLSearchParams(location.search).has("prompts")) document.querySelector("#run").click();
}"""
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
#run{max-width:140px;padding:4px 16px;align-self:center}
#lanes{flex-grow:1}
#lanes .token{padding:0 4px 0 8px;border-radius:5px}
#lanes .wrap-inner{gap:4px;flex-wrap:nowrap}#lanes .token-remove{padding:2px}
#message{color:var(--error-text-color);padding:0!important}
#message:not(:has(p)){display:none}
#message p{margin:0;font-size:13px;font-weight:600;color:inherit}
footer{display:none!important}
"""


_loading = threading.Lock()


@lru_cache(maxsize=2)
def _load(name: str) -> batchspec.ModelPair:
    import torch
    from transformers.utils import logging

    # The server and the browser need a core too; small models are no faster on all of them.
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    logging.disable_progress_bar()
    return batchspec.load_pair(name)


def pair_named(name: str) -> batchspec.ModelPair:
    """The pair of that name, loaded once for all sessions."""
    with _loading:
        return _load(name)


def record_lanes(
    pair: batchspec.ModelPair,
    prompts: list[str],
    lanes: Sequence[str],
    draft_tokens: int,
    max_new_tokens: int,
    batch_size: int,
) -> Iterator[tuple[float, str] | list[batchspec.Trace]]:
    """Record every lane; yields (share done, words) as it goes, then the traces.

    Raises:
        DecodeError: bad input.
    """
    recorders = [
        batchspec.Recorder(
            pair,
            prompts,
            batchspec.DecodeConfig(
                strategy=lane,
                draft_tokens=draft_tokens,
                max_new_tokens=max_new_tokens,
                batch_size=batch_size,
            ),
        )
        for lane in lanes
    ]
    wanted = len(prompts) * max_new_tokens * len(lanes)
    written = 0
    for recorder in recorders:
        for frame in recorder.run():
            share = (written + recorder.stats.committed) / wanted
            yield share, f"{recorder.config.strategy}: round {frame.round}, {frame.phase}"
        written += recorder.stats.committed
    known = {number: tokens for recorder in recorders for number, tokens in recorder.agreed.items()}
    yield [recorder.trace(known) for recorder in recorders]


def open_page(request: gr.Request) -> list[object]:
    """What the page opens with: the recorded example, and the settings its address asks for.

    Returns:
        The six settings, the player's payload, and what of the address could not be used.
    """
    query = dict(request.query_params)
    payload = pack(load_example())
    if not Link.names() & query.keys():
        return [*[gr.skip()] * len(Link.names()), payload, ""]
    link, complaints = DEFAULTS.opened(query, PAIRS, STRATEGY_NAMES, MOST_LANES)
    settings = [link.pair, link.prompts, list(link.lanes), link.k, link.tokens, link.batch]
    return [*settings, payload, _warning(" ".join(complaints))]


def run(
    name: str,
    prompts: str,
    lanes: list[str],
    draft_tokens: float,
    max_new_tokens: float,
    batch_size: float,
    progress: gr.Progress = gr.Progress(),  # noqa: B008 (how gradio injects it)
) -> tuple[object, str]:
    """Record all lanes on a person's prompts.

    Returns:
        The player's payload and an empty message; or the picture as it was and what is wrong.
    """
    lines = [line for line in prompts.splitlines() if line.strip()]
    try:
        if not lines:
            raise DecodeError("There is no prompt: write at least one, one a line.")
        if not lanes:
            raise DecodeError("There is no lane: choose at least one strategy.")
        numbers = [_whole(value) for value in (draft_tokens, max_new_tokens, batch_size)]
        if numbers[1] == 0:
            raise DecodeError("With 0 new tokens no model runs: ask for at least 1.")
        for state in record_lanes(pair_named(name), lines, lanes, *numbers):
            if isinstance(state, list):
                link = Link(name, prompts, lanes, *numbers)
                return pack(state, live=True, link=link.query()), ""
            progress(*state)
    except DecodeError as error:
        return gr.skip(), _warning(str(error))
    raise AssertionError("a recording ends with its traces")


def _warning(words: str) -> str:
    return f'<p role="alert">⚠ {escape(words)}</p>' if words else ""


def _whole(value: float | None) -> int:
    if value is None:
        raise DecodeError("A number is missing: fill in K, new tokens and batch size.")
    if value != int(value):
        raise DecodeError(f"K, new tokens and batch size are whole numbers, not {value}.")
    return int(value)


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
        settings, button, message = _controls()
        player = gr.HTML(
            "",
            html_template=player_markup(),
            js_on_load=player_script(),
            apply_default_css=False,
            palette=player_palette(),
            plotly=f"gradio_api/file={PLOTLY}",
        )
        opened = page.load(open_page, outputs=[*settings, player, message], api_name=False)
        opened.then(None, js=RUN_LINK)
        button.click(
            run,
            inputs=settings,
            outputs=[player, message],
            concurrency_limit=1,
            concurrency_id="models",
        )
    return page


def _controls() -> tuple[list[gr.components.Component], gr.Button, gr.HTML]:
    """The settings in the order in which `run` takes them, the button, and room for a message."""
    with gr.Row(elem_id="controls"):
        prompts = gr.Textbox(
            DEFAULTS.prompts,
            label="Prompts, one a line",
            lines=4,
            max_lines=8,
            elem_id="prompts",
            scale=5,
        )
        with gr.Column(scale=4, min_width=320):
            with gr.Row():
                pair = gr.Dropdown(list(PAIRS), value=PAIRS[0], label="Pair", min_width=120)
                numbers = [
                    gr.Number(value, label=label, min_width=width, elem_id=name)
                    for value, label, width, name in (
                        (DEFAULTS.k, "K", 60, "k"),
                        (DEFAULTS.tokens, "New tokens", 80, "new-tokens"),
                        (DEFAULTS.batch, "Batch size", 80, "batch-size"),
                    )
                ]
            with gr.Row():
                lanes = gr.Dropdown(
                    list(STRATEGY_NAMES),
                    value=list(DEFAULTS.lanes),
                    multiselect=True,
                    max_choices=MOST_LANES,
                    label="Lanes, up to three",
                    elem_id="lanes",
                    scale=2,
                )
                button = gr.Button("Run", variant="primary", elem_id="run", scale=0)
            message = gr.HTML("", elem_id="message")
    return [pair, prompts, lanes, *numbers], button, message


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
