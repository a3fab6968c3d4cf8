"""Functions that need a GPU ask the host for one, where there is a host to ask."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from batchspec import load_pair
from pages import gpu, models
from pages.gpu import on_gpu

FAKE = """
asked = []
def GPU(duration):
    def lend(function):
        asked.append((function.__name__, duration))
        return function
    return lend
"""


def test_without_the_package_a_function_stays_itself() -> None:
    def function() -> None:
        """Do nothing."""

    assert on_gpu(function) is function


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """The names of the functions for which a package in place of the host's was asked."""
    (tmp_path / "spaces.py").write_text(FAKE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda: [name for name, _ in sys.modules["spaces"].asked]  # type: ignore[attr-defined]
    sys.modules.pop("spaces", None)
    importlib.invalidate_caches()
    sys.modules.pop("pages.benchmark", None)
    sys.modules.pop("pages.endpoints", None)


def test_what_runs_models_and_leaves_nothing_behind_is_lent_a_gpu(
    asked: Callable[[], list[str]],
) -> None:
    for name in ("pages.benchmark", "pages.endpoints"):
        sys.modules.pop(name, None)
        importlib.import_module(name)
    assert asked() == ["measured", "recorded"]


def test_where_a_gpu_is_lent_pairs_wait_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert models.turn() is models.MODELS
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert models.turn() is not models.MODELS
    loaded: list[str] = []
    monkeypatch.setattr(
        "batchspec.load_pair", lambda name, draft, device, **_: loaded.append(device)
    )
    monkeypatch.setattr("pages.models._kept", {})
    models.finished(models.load("qwen3"))
    assert loaded == ["cpu"]


@pytest.mark.parametrize("draft", [None, "ngram"])
def test_a_pair_moves_to_the_gpu_that_is_lent(
    draft: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = load_pair("storyteller", draft)
    assert gpu.moved(pair) is pair
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setattr(gpu, "DEVICE", "meta")
    lent = gpu.moved(pair)
    assert lent is not pair and len(lent.models) == len(pair.models)
    assert (lent.draft is pair.draft) == (draft is not None)
    for model in lent.models:
        assert {weight.device.type for weight in model.parameters()} == {"meta"}
        assert type(model.get_output_embeddings()) is torch.nn.Linear
