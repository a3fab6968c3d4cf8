"""The benchmark page: how fast each strategy is, and whether its text is right."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import gradio as gr

from batchspec.bench.names import BATCH_SIZES, EXPERIMENTS, METHODS, STANDARD
from batchspec.config import STRATEGY_NAMES, DecodeConfig
from batchspec.errors import DecodeError
from batchspec.limits import Limits
from batchspec.storyteller import EXAMPLES
from pages.gpu import moved, on_gpu
from pages.models import PLOTLY_ADDRESS, check_pair, finished, load, news, turn, warning
from pages.settings import pair_fields, whole_number
from visuals.player import charts_script

if TYPE_CHECKING:
    from batchspec.bench.measuring import Progress
    from batchspec.bench.result import Benchmark

SIZES = (1, 4, 8)
REPEATS, NEW_TOKENS = 3, 32
REDRAW = 3.0
"""Seconds between two drawings of the charts."""
TEMPLATE = '<div id="charts"></div><div class="tables"></div><p class="conditions"></p>'
CSS = """
#charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:12px}
#charts>div{min-width:0;overflow:hidden}
.tables{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:0 24px}
.tables>p{grid-column:1/-1}.conditions{font-size:12px;opacity:.8}
#bench-state{min-height:20px}#bench-state progress{width:240px;accent-color:#5b4bd6}
.tables section{min-width:0;overflow-x:auto}.tables h4{margin:10px 0 0;font-size:13px}
.tables table{border-collapse:collapse;margin:4px 0 12px;font-size:12px}
.tables :is(th,td){padding:2px 14px 2px 0!important;text-align:right;border:0!important}
.tables tr{border-bottom:1px solid #8884}.tables :is(th,td):first-child{text-align:left}
"""


def run_benchmark(
    name: str,
    draft: str,
    prompts: str,
    experiments: list[str],
    methods: list[str],
    sizes: list[int],
    tokens: float | None,
    repeats: float | None,
) -> Iterator[tuple[object, str, str]]:
    """Run the benchmark; yields figures, how far it is, and what is wrong, as it goes."""
    draft = draft or ""  # where the field was emptied
    lines = [line for line in prompts.splitlines() if line.strip()]
    try:
        if not methods or not sizes:
            raise DecodeError("Choose at least one method and one batch size.")
        config = DecodeConfig(max_new_tokens=whole_number("New tokens", tokens))
        times = whole_number("Repeats", repeats)
        limits = Limits.of_this_page()
        if limits:
            limits.check(lines, replace(config, batch_size=max(sizes)))
            if times > REPEATS:
                raise DecodeError(f"This public page repeats a run at most {REPEATS} times.")
        check_pair(name, draft)
        loading = load(name, draft)
        try:
            while True:
                yield gr.skip(), news(next(loading)), ""
        except StopIteration:
            drawn = -REDRAW
        for state in measured((name, draft), config, methods, sizes, lines, experiments, times):
            # Charts drawn after every short run would leave a browser no time for anything else.
            due = time.monotonic() - drawn >= REDRAW or not state.doing
            yield _drawn(state.benchmark) if due else gr.skip(), _state(state), ""
            drawn = time.monotonic() if due else drawn
    except DecodeError as error:
        yield gr.skip(), "", warning(str(error))


@on_gpu
def measured(
    pair: tuple[str, str],
    config: DecodeConfig,
    methods: list[str],
    sizes: list[int],
    prompts: list[str],
    experiments: list[str],
    repeats: int,
) -> Iterator[Progress]:
    """What `measure` yields, for a pair by its name and draft, which is loaded."""
    from batchspec.bench.experiments import Plan
    from batchspec.bench.measuring import measure

    plan = Plan(moved(finished(load(*pair))), config, methods, sorted(sizes))
    progress = measure(plan, prompts, experiments, repeats)
    while True:
        with turn():
            state = next(progress, None)
        if state is None:
            return
        yield state


def cancelled() -> str:
    """What stands where the progress was."""
    return "Cancelled; what was measured stays."


def _state(progress: Progress) -> str:
    if not progress.doing:
        return f"<b>Done:</b> {progress.done} runs."
    left = "" if progress.remaining is None else f", about {progress.remaining:.0f} s left"
    return (
        f'<progress max="{progress.total}" value="{progress.done}"></progress> '
        f"{progress.done} of {progress.total} runs{left}: {escape(progress.doing)}"
    )


def _drawn(benchmark: Benchmark) -> str:
    from batchspec.bench.grid import conditions, grids, verdict
    from visuals.chart import charts

    if not any(each.runs for each in benchmark.measurements):
        return "{}"
    figures: list[Any] = [json.loads(figure.to_json()) for figure in charts(benchmark)]
    tables = [f"<p>{escape(verdict(benchmark))}</p>"]
    for experiment in benchmark.experiments:
        for grid in grids(benchmark, experiment):
            title = " · ".join(filter(None, (experiment.title, grid.title)))
            head = "".join(f'<th scope="col">{escape(word)}</th>' for word in grid.heads)
            body = "".join(
                f"<tr>{''.join(f'<td>{escape(word)}</td>' for word in row)}</tr>"
                for row in grid.rows
            )
            table = f"<table><tr>{head}</tr>{body}</table>"
            tables.append(f"<section><h4>{escape(title)}</h4>{table}</section>")
    return json.dumps(
        {"figures": figures, "tables": "".join(tables), "conditions": conditions(benchmark)}
    )


def build_benchmark() -> None:
    """Lay the page out, inside the Blocks of its route."""
    with gr.Row():
        prompts = gr.Textbox(
            "\n".join(EXAMPLES * 2), label="Prompts, one a line", lines=4, max_lines=8, scale=2
        )
        with gr.Column(scale=3):
            experiments = gr.CheckboxGroup(
                [(heading.title, name) for name, heading in EXPERIMENTS.items()],
                value=list(STANDARD[:2]),
                label="Experiments",
            )
            with gr.Row():
                methods = gr.Dropdown(
                    ["transformers", *STRATEGY_NAMES],
                    value=list(METHODS),
                    multiselect=True,
                    label="Methods",
                    scale=3,
                )
                sizes = gr.Dropdown(
                    list(BATCH_SIZES), value=list(SIZES), multiselect=True, label="Batch sizes"
                )
            with gr.Row():
                pair, draft = pair_fields()
                tokens = gr.Number(NEW_TOKENS, label="New tokens", min_width=80)
                repeats = gr.Number(REPEATS, label="Repeats", min_width=80)
                start = gr.Button("Run benchmark", variant="primary", elem_id="run-benchmark")
                cancel = gr.Button("Cancel", elem_id="cancel-benchmark")
    message = gr.HTML("", elem_id="message")
    state = gr.HTML("", elem_id="bench-state")
    charts = gr.HTML("", html_template=TEMPLATE, js_on_load=charts_script(), plotly=PLOTLY_ADDRESS)
    running = start.click(
        run_benchmark,
        inputs=[pair, draft, prompts, experiments, methods, sizes, tokens, repeats],
        outputs=[charts, state, message],
        show_progress="hidden",
        concurrency_limit=1,
        concurrency_id="models",
        api_visibility="private",
    )
    # Said once the run that is under way has had its last word.
    cancel.click(None, cancels=running).then(
        cancelled, outputs=state, concurrency_id="models", api_visibility="private"
    )
