"""The table of presets: true numbers, and the same in the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchspec import NGramDraft, load_pair
from batchspec.checkpoint import Checkpoint
from batchspec.cli import make_parser
from batchspec.presets import PRESETS, in_bytes, short, table
from batchspec.storyteller.card import count_parameters
from test_loading import refused

ROOT = Path(__file__).resolve().parent.parent
OF_OUR_OWN = ("storyteller", "smollm2")
"""Pairs that do without the Hub."""


def test_the_document_has_the_table() -> None:
    assert table(PRESETS.values()) in (ROOT / "docs" / "pairs.md").read_text(encoding="utf-8")


def test_the_shipped_pair_has_as_many_parameters_as_its_row_says() -> None:
    pair = load_pair("storyteller")
    row = PRESETS["storyteller"]
    counts = list(map(count_parameters, pair.models))
    assert counts == [row.target_parameters, row.draft_parameters] and row.ships
    assert row.weight_bytes("float32") == 4 * sum(counts) == 2 * row.weight_bytes("bfloat16")


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in OF_OUR_OWN])
def test_a_preset_is_asked_of_the_hub_by_its_ids(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert f"The target {PRESETS[name].target!r} cannot be loaded" in refused(name, None)


def test_a_preset_takes_another_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    known = PRESETS["storyteller"]

    def noted(role: str, name: str, place: str, *others: object) -> Checkpoint:
        asked.append((role, place))
        return Checkpoint(role, name, known.target if role == "target" else known.draft)

    monkeypatch.setattr("batchspec.loading.Checkpoint", noted)
    pair = load_pair("qwen3", device="cpu")
    assert asked == [("target", "Qwen/Qwen3-8B"), ("draft", "Qwen/Qwen3-0.6B")]
    assert pair.name == "qwen3" and pair.examples == PRESETS["qwen3"].examples
    asked.clear()
    assert isinstance(load_pair("qwen3", "ngram", device="cpu").draft, NGramDraft)
    assert asked == [("target", "Qwen/Qwen3-8B")]


def test_the_command_line_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args(["compare", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for name in PRESETS)


def test_numbers_are_short() -> None:
    assert [short(n) for n in (295_200, 68_030_208, 1_711_376_384, 9.4e9)] == [
        "0.3M",
        "68M",
        "1.7B",
        "9.4B",
    ]
    assert [in_bytes(n) for n in (2e6, 16.38e9, 1.2e11)] == ["2.0 MB", "16.4 GB", "120 GB"]
