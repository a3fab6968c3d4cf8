"""The app: its pages and its look. Run `python app.py` and open the address it prints."""

from __future__ import annotations

import sys
import threading

import gradio as gr

from pages.benchmark import CSS as BENCHMARK_CSS
from pages.benchmark import build_benchmark
from pages.debugger import build_debugger
from pages.models import OWN, PLOTLY, finished, load
from visuals.player import player_css

TITLE = "BatchSpec"
CSS = """
.gradio-container .main.app{max-width:1680px!important;padding:8px 20px!important}
.gradio-container .contain>.column{gap:8px}.gradio-container .html-container{padding:0!important}
#brand h1{font-size:16px;font-weight:700;margin:0;line-height:1.3}
#brand{display:flex}#brand .html-container,#brand .prose{width:100%}
#brand a{font-size:13px;float:right;margin-top:-22px}
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
#k{max-width:62px}#new-tokens,#batch-size{max-width:94px}
#controls :is(#pair,#draft) input{padding-right:24px!important;text-overflow:ellipsis}
#chat label{white-space:nowrap}
#broken{max-width:230px;padding:0!important}#lanes{flex-grow:1}
#lanes .token{padding:0 4px 0 8px;border-radius:5px}
#lanes .wrap-inner{gap:4px;flex-wrap:nowrap}#lanes .token-remove{padding:2px}
#controls :is(input,textarea):focus-visible{outline:2px solid #7a6ad8!important}
#message{color:var(--error-text-color);padding:0!important}
#message:not(:has(p)){display:none}
#message p{margin:0;font-size:13px;font-weight:600;color:inherit}
#message p[role=status]{font-weight:400;color:var(--body-text-color)}
#message progress{appearance:none;width:160px;height:6px;vertical-align:middle;margin-right:6px}
#message progress,#message ::-webkit-progress-bar{background:#8884;border-radius:3px}
#message ::-webkit-progress-value{background:#7a6ad8;border-radius:3px}
#message ::-moz-progress-bar{background:#7a6ad8;border-radius:3px}
footer,.nav-holder{display:none!important}
@media(max-width:760px){#broken,#pair,#draft,#k,#new-tokens,#batch-size{max-width:none}}
"""


def build() -> gr.Blocks:
    """All pages."""
    gr.set_static_paths([PLOTLY])
    # Loaded while the page is built and the server starts, so that it is there for the first run.
    threading.Thread(target=lambda: finished(load(OWN)), daemon=True).start()
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as page:
        _brand("batched speculative decoding, one phase at a time", "benchmark", "Benchmark")
        build_debugger(page)
    with page.route("Benchmark", "/benchmark"):
        _brand("how fast, at which batch size, and is the text right", ".", "Debugger")
        build_benchmark()
    return page


def _brand(words: str, address: str, other: str) -> None:
    link = f'<a href="{address}">{other}</a>'
    gr.HTML(f"<h1>{TITLE} <small>{words}</small></h1>{link}", elem_id="brand")


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
        button_primary_background_fill_hover_dark="#ffffff",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#15171b",
        error_text_color="#b3001b",
        error_text_color_dark="#ff8a80",
    )
    build().launch(theme=theme, css=CSS + player_css() + BENCHMARK_CSS)


if __name__ == "__main__":
    main()
