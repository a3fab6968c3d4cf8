"""The debugger page: settings above, the player below."""

from __future__ import annotations

import gradio as gr

from pages.endpoints import explain_step, run_trace
from pages.models import PLOTLY_ADDRESS
from pages.serving import (
    advance,
    blank_page,
    frames,
    leave,
    open_by_hand,
    open_link,
    open_page,
    open_to_run,
    open_traces,
    resume,
    run_on,
    stop,
)
from pages.settings import break_it, controls
from visuals.link import Link
from visuals.player import player_markup, player_palette, player_script

OPENING = 8
"""Visitors who may wait for models at the same time; who needs none loaded waits for nobody."""
RUN_LINK = """() => {
    const { search } = location;
    if (new URLSearchParams(search).has("prompts")) document.querySelector("#run-link").click();
}"""
RUN_BROKEN = """(broken) => {
    if (broken) document.querySelector("#run").click();
    return "";
}"""


def build_debugger(page: gr.Blocks) -> None:
    """Lay the page out, inside its Blocks."""
    settings, broken, buttons, message = controls()
    player = gr.HTML(
        "",
        html_template=player_markup(),
        js_on_load=player_script(),
        apply_default_css=False,
        server_functions=[frames, advance, stop, resume, blank_page, open_traces],
        palette=player_palette(),
        plotly=PLOTLY_ADDRESS,
    )
    opened = page.load(open_page, outputs=[*settings, player, message], api_visibility="private")
    # A page that is only looked at asks the server nothing more once it is there.
    run_link = gr.Button("Run the link", visible="hidden", elem_id="run-link")
    opened.then(None, js=RUN_LINK)
    page.unload(leave)
    starts = (open_link, open_to_run, open_by_hand)
    for button, start in zip((run_link, *buttons), starts, strict=True):
        button.click(
            start,
            inputs=settings,
            outputs=[player, message],
            show_progress="hidden",
            concurrency_limit=OPENING,
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
