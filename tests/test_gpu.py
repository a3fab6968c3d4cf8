"""Functions that need a GPU ask the host for one, where there is a host to ask."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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


def test_a_lent_gpu_is_left_to_the_functions_it_is_lent_to(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    class Model:
        def to(self, device: str) -> None:
            found.append(device)

    class Pair:
        models = (Model(), Model())

    gpu.moved(Pair())  # type: ignore[arg-type]
    assert not found and models.turn() is models.MODELS
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    gpu.moved(Pair())  # type: ignore[arg-type]
    assert found == ["cuda", "cuda"] and models.turn() is not models.MODELS
    loaded: list[str] = []
    monkeypatch.setattr(
        "batchspec.load_pair", lambda name, draft, device, **_: loaded.append(device)
    )
    monkeypatch.setattr("pages.models._kept", {})
    models.finished(models.load("qwen3"))
    assert loaded == ["cpu"]
