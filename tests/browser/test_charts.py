"""The charts of a benchmark's document: drawn by the browser, one set however often."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from subprocess import run

from batchspec import DecodeConfig
from batchspec.bench.experiments import Plan
from batchspec.bench.grid import markdown
from batchspec.bench.measuring import measure
from browser.served import ROOT
from tiny import ROWS, shared_pair


def test_each_experiment_of_a_document_gets_its_charts(tmp_path: Path) -> None:
    plan = Plan(shared_pair(), DecodeConfig(max_new_tokens=4), ("transformers", "eqspec"), (1, 2))
    benchmark = list(measure(plan, ROWS, ("5a", "table2"), 1))[-1].benchmark
    found, document = tmp_path / "found.json", tmp_path / "speed.md"
    found.write_text(json.dumps(benchmark.to_json()))
    document.write_text(markdown(benchmark, ["bench"]))
    before = document.read_text()
    heading = "## Anatomy of a round (`--figure table2`)\n\n"
    assert heading in before
    document.write_text(before.replace(heading, f"![An old chart](speed/old.svg)\n\n{heading}"))
    # A process of its own: one that tests drive has a browser already.
    command = [sys.executable, "-m", "browser.charts", str(found), str(document)]
    run(command, cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}, check=True)
    text = document.read_text()
    shown = [
        "![Throughput against batch size: tokens/s](speed/5a-1.svg)",
        "![Throughput against batch size: times transformers' own generate](speed/5a-2.svg)",
        "![Where a round's time goes: ms a round](speed/table2-1.svg)",
    ]
    assert [line for line in text.splitlines() if line.startswith("!")] == shown
    for line in shown:
        text = text.replace(f"{line}\n\n", "")
        picture = ElementTree.parse(tmp_path / line.partition("(")[2].rstrip(")")).getroot()
        words = {each.text for each in picture.iter() if each.tag.endswith("text")}
        assert "eqspec" in words
    assert text == before
