"""Models from the Hub: one cheap question, its files with progress, every refusal a sentence."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants, errors
from huggingface_hub.utils import httpx
from safetensors.torch import load_file

from batchspec import DecodeConfig, DecodeError, ModelPair, generate, load_pair
from batchspec.hub import hub_reason
from hub import COMMIT, served_hub
from test_loading import save, words
from tiny import LONGEST, ROWS, all_written, shared_pair

CONFIG = DecodeConfig(max_new_tokens=LONGEST, eos_token_ids=())
TARGET, DRAFT, GATED, PICKLED = "us/target", "us/draft", "us/gated", "us/pickled"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all models of this Hub."""
    folder = tmp_path_factory.mktemp("models")
    shared = shared_pair()
    save(folder / TARGET, shared.target, words(), max_shard_size="20KB")
    save(folder / DRAFT, shared.draft, words())  # type: ignore[arg-type]
    shutil.copytree(folder / DRAFT, folder / GATED)
    shutil.copytree(folder / DRAFT, folder / PICKLED)
    weights = folder / PICKLED / "model.safetensors"
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    weights.unlink()
    (folder / DRAFT / "other").mkdir()
    (folder / DRAFT / "other" / "model.safetensors").write_bytes(b"not wanted")
    (folder / DRAFT / "consolidated.safetensors").write_bytes(b"not wanted")
    return folder


@pytest.fixture
def asked(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The Hub in place of the real one, with an empty cache; the paths it was asked for."""
    with served_hub(models, gated=(GATED,)) as (address, asked):
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE
        template = template.replace(constants.ENDPOINT, address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield asked


def loaded(target: str = TARGET, draft: str = DRAFT, **more: object) -> ModelPair:
    return load_pair(target, draft, device="cpu", **more)  # type: ignore[arg-type]


def refused(target: str = TARGET, draft: str = "ngram", **more: object) -> str:
    """The sentence with which it is refused."""
    with pytest.raises(DecodeError) as error:
        loaded(target, draft, **more)
    text = str(error.value)
    assert text.endswith(".") and text.count(". ") == 0 and "\n" not in text
    return text


def test_two_ids_decode_as_the_models_that_were_saved(asked: list[str]) -> None:
    told: list[tuple[str, float | None]] = []
    pair = loaded(observe=lambda words, share: told.append((words, share)))
    assert generate(pair, ROWS, CONFIG).tokens == all_written("llama", ROWS)
    assert pair.name == f"{TARGET}, draft {DRAFT}"
    assert not any("other" in path or "consolidated" in path for path in asked)
    stages = list(dict.fromkeys(words for words, _ in told))
    assert stages[0] == f"looking up {TARGET}"
    for stage in (f"downloading {TARGET}", f"downloading {DRAFT}", f"loading the draft {DRAFT}"):
        shares = [share for said, share in told if said == stage]
        assert shares[-1] == 1.0
        whole = [share for share in shares if share is not None]
        assert all(0 <= share <= 1 for share in whole)


def test_what_was_fetched_loads_again_without_a_network(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded()
    asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert generate(loaded(), ROWS, CONFIG).tokens == all_written("llama", ROWS)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    start = time.perf_counter()
    assert generate(loaded(), ROWS, CONFIG).tokens == all_written("llama", ROWS)
    assert time.perf_counter() - start < 5
    assert asked == []


@pytest.mark.parametrize("role", ["target", "draft"])
def test_an_unreachable_hub_is_told_fast(
    role: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded()
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    start = time.perf_counter()
    text = refused(**{role: "us/new", "draft" if role == "target" else "target": TARGET})
    assert time.perf_counter() - start < 5
    assert f"The {role} 'us/new'" in text and "cannot be reached" in text


def test_a_wrong_id_is_told(asked: list[str]) -> None:
    text = refused("us/nothing")
    assert "'us/nothing' cannot be loaded: the Hub has no such model" in text


def test_a_wrong_revision_is_told(asked: list[str]) -> None:
    assert "no such revision" in refused(revision="nothing")
    loaded(revision=COMMIT)


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_gated_model_is_told(role: str, asked: list[str]) -> None:
    text = refused(**{"target": TARGET, role: GATED})
    assert f"The {role} {GATED!r}" in text and "gated" in text and "hf auth login" in text


def test_weights_that_would_be_unpickled_are_not_fetched(asked: list[str]) -> None:
    assert "no weights in safetensors" in refused(PICKLED)
    assert not any(path.endswith(".bin") for path in asked)


def test_what_does_not_fit_is_refused_before_its_weights_are_fetched(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchspec.loading.free_bytes", lambda _: 1000)
    text = refused(draft=DRAFT)
    assert "needs about" in text and "free" in text
    assert not any(path.endswith(".safetensors") for path in asked)


def test_other_tokenizers_are_refused_before_weights_are_fetched(
    asked: list[str], models: Path
) -> None:
    swapped = {**words(), "w5": 6, "w6": 5}
    save(models / "us/swapped", shared_pair().target, swapped)
    assert "differ in 2 entries" in refused(draft="us/swapped")
    assert not any(path.endswith(".safetensors") for path in asked)


def test_a_models_own_safetensors_by_pull_request_are_found(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Offer:
        git_reference = "refs/pr/7"

    def discussions(_: object, id: str, author: str, **__: object) -> Iterator[Offer]:
        seen.append((id, author))
        yield Offer()

    monkeypatch.setattr("huggingface_hub.HfApi.get_repo_discussions", discussions)
    refused(PICKLED)
    assert seen == [(PICKLED, "SFconvertbot")]
    assert any(path.endswith("/revision/refs/pr/7") for path in asked)


def _response(status: int) -> httpx.Response:
    return httpx.Response(status, request=httpx.Request("GET", "https://hub/api"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ConnectError("no"), "cannot be reached"),
        (httpx.ReadTimeout("slow"), "cannot be reached"),
        (errors.OfflineModeIsEnabled("off"), "cannot be reached"),
        (errors.HfHubHTTPError("busy", response=_response(503)), "an error (503)"),
        (errors.GatedRepoError("ask", response=_response(403)), "gated"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_breaks_under_way_is_a_sentence(
    error: Exception, words: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("batchspec.hub.snapshot_download", broken)
    assert words in refused()


def test_errors_of_other_kinds_are_left_to_others() -> None:
    assert hub_reason(ValueError("x")) is None
    assert json.dumps(hub_reason(httpx.ConnectError("x")))
