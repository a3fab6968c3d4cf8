"""Draw a benchmark's charts and put them into the page with its tables.

`PYTHONPATH=tests python -m browser.charts found.json docs/benchmarks.md`, after
`python -m batchspec bench --json found.json --markdown docs/benchmarks.md`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from batchspec.bench.result import Benchmark
from browser.served import chromium
from visuals.chart import charts_of

WIDTH = 720
DRAW = "figure => Plotly.toImage(figure, {format: 'svg', width: figure.layout.width})"
PICTURE = re.compile(r"^!\[.*\n\n", re.MULTILINE)


def main(found: Path, document: Path) -> None:
    """Write a folder of pictures beside the document, and lines that show them into it."""
    benchmark = Benchmark.from_json(json.loads(found.read_text(encoding="utf-8")))
    folder = document.with_suffix("")
    folder.mkdir(exist_ok=True)
    text = PICTURE.sub("", document.read_text(encoding="utf-8"))
    with chromium() as browser:
        page = browser.new_page()
        page.add_script_tag(content=get_plotlyjs())
        for experiment in benchmark.experiments:
            lines = ""
            for number, figure in enumerate(charts_of(benchmark, experiment), 1):
                path = folder / f"{experiment.name}-{number}.svg"
                path.write_text(_drawn(page, figure), encoding="utf-8")
                layout = figure.layout
                measure = layout.yaxis.title.text or layout.xaxis.title.text
                lines += f"![{layout.title.text}: {measure}]({folder.name}/{path.name})\n\n"
            heading = re.compile(rf"(^## .*`--figure {experiment.name}`\)\n\n.*\n\n)", re.MULTILINE)
            text = heading.sub(lambda match, lines=lines: match[0] + lines, text)
    document.write_text(text, encoding="utf-8")


def _drawn(page, figure: go.Figure) -> str:
    # A page of its own may be dark, and the ink is not.
    figure.update_layout(width=WIDTH, paper_bgcolor="#ffffff", margin={"l": 24, "r": 24, "b": 24})
    address = page.evaluate(DRAW, json.loads(figure.to_json()))
    return unquote(address.partition(",")[2])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
