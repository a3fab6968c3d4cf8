"""Pairs by folder or id: loaded whole and equal to what was saved, or refused in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging

from batchspec import DecodeConfig, DecodeError, ModelPair, NGramDraft, generate, load_pair
from batchspec.cli import main
from batchspec.loading import choose_device, choose_dtype
from tiny import LONGEST, ROWS, VOCABULARY, all_written, shared_pair, tiny

CONFIG = DecodeConfig(max_new_tokens=LONGEST, eos_token_ids=())
WEIGHTS = "model.safetensors"
ONE = "model.layers.0.mlp.up_proj.weight"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, and no progress on standard error."""
    logging.disable_progress_bar()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def words() -> dict[str, int]:
    return {f"w{number}": number for number in range(VOCABULARY)}


def save(
    folder: Path,
    model: PreTrainedModel,
    vocabulary: dict[str, int] | None = None,
    lowercase: bool = False,
    **settings: Any,
) -> str:
    """Save a model, with a tokenizer where a vocabulary is given; the folder's name."""
    model.save_pretrained(folder, **settings)
    if vocabulary is not None:
        tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="w0"))
        tokenizer.pre_tokenizer = WhitespaceSplit()
        if lowercase:
            tokenizer.normalizer = Lowercase()
        PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def target(tmp_path: Path) -> str:
    return save(tmp_path / "target", shared_pair().target, words())


@pytest.fixture
def draft(tmp_path: Path) -> str:
    return save(tmp_path / "draft", shared_pair().draft, words())


@cache
def accepted() -> int:
    return generate(shared_pair(), ROWS, CONFIG).stats.accepted


def loaded(target: str, draft: str | None, **settings: Any) -> ModelPair:
    return load_pair(target, draft, **{"device": "cpu", **settings})


def refused(target: str, draft: str | None = "ngram", **settings: Any) -> str:
    """The sentence with which it is refused."""
    with pytest.raises(DecodeError) as error:
        loaded(target, draft, **settings)
    text = str(error.value)
    assert text.endswith(".") and not text.endswith("..") and "\n" not in text
    return text


def edit(folder: str, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file of a saved model."""
    path = Path(folder, name)
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def edit_weights(folder: str, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(Path(folder, WEIGHTS))
    change(weights)
    save_file(weights, Path(folder, WEIGHTS), {"format": "pt"})


# What loads


def test_two_folders_decode_as_the_models_that_were_saved(target: str, draft: str) -> None:
    pair = loaded(target, draft)
    generation = generate(pair, ROWS, CONFIG)
    expected = all_written("llama", ROWS)
    assert generation.tokens == expected
    assert generation.stats.accepted == accepted() > 0  # the draft is the one that was saved
    assert generation.texts == [" ".join(f"w{token}" for token in row) for row in expected]
    text = " ".join(f"w{token}" for token in ROWS[1])
    assert generate(pair, [text], CONFIG).tokens == [expected[1]]
    assert target in pair.name and draft in pair.name and pair.examples == ()


def test_a_pair_as_paths_loads_too(target: str, draft: str) -> None:
    pair = load_pair(Path(target), Path(draft), device="cpu")
    assert generate(pair, ROWS, CONFIG).tokens == all_written("llama", ROWS)


def test_ngram_drafts_for_any_target(target: str) -> None:
    pair = loaded(target, "ngram")
    assert isinstance(pair.draft, NGramDraft) and "n-gram" in pair.name
    assert generate(pair, ROWS, CONFIG).tokens == all_written("llama", ROWS)


@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3"])
def test_a_draft_without_a_tokenizer_uses_the_targets(family: str, tmp_path: Path) -> None:
    shared = shared_pair(family)
    target = save(tmp_path / "target", shared.target, words())
    draft = save(tmp_path / "draft", shared.draft)  # type: ignore[arg-type]
    pair = loaded(target, draft)
    assert pair.tokenizer is not None and len(pair.tokenizer) == VOCABULARY
    assert generate(pair, ROWS, CONFIG).tokens == all_written(family, ROWS)


def test_shards_load_as_one(tmp_path: Path) -> None:
    target = save(tmp_path / "a", shared_pair().target, words(), max_shard_size="20KB")
    assert not Path(target, WEIGHTS).exists()
    assert generate(loaded(target, "ngram"), ROWS, CONFIG).tokens == all_written("llama", ROWS)


def test_weights_nobody_uses_are_told_and_change_nothing(target: str) -> None:
    edit_weights(target, lambda weights: weights.update({"model.extra": torch.ones(3)}))
    with pytest.warns(UserWarning, match=r"1 weights .*not use \(model\.extra\)"):
        pair = loaded(target, "ngram")
    assert generate(pair, ROWS, CONFIG).tokens == all_written("llama", ROWS)


def test_loading_leaves_the_verbosity_of_transformers_alone(target: str) -> None:
    before = logging.get_verbosity()
    loaded(target, "ngram")
    refused(target + "-not")
    assert logging.get_verbosity() == before != logging.ERROR


def test_the_storyteller_takes_another_draft() -> None:
    whole = load_pair("storyteller")
    assert whole.target.dtype == torch.float32 and whole.target.device.type == "cpu"
    assert whole.name == "storyteller" and whole.examples
    pair = load_pair("storyteller", draft="ngram")
    assert isinstance(pair.draft, NGramDraft) and pair.examples == whole.examples


# Device and precision


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "float64"])
def test_a_precision_is_taken_by_name(name: str, target: str, draft: str) -> None:
    pair = loaded(target, draft, dtype=name)
    wanted = getattr(torch, name)
    assert [next(model.parameters()).dtype for model in pair.models] == [wanted, wanted]


def test_half_precision_checkpoints_are_float32_on_the_cpu(tmp_path: Path) -> None:
    target = save(tmp_path / "half", tiny("llama").to(torch.bfloat16), words())
    assert loaded(target, "ngram").target.dtype == torch.float32


def test_auto_takes_the_fastest_device_and_the_checkpoints_own_precision_on_cuda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for cuda, mps in ((True, True), (False, True), (False, False)):
        monkeypatch.setattr("torch.cuda.is_available", lambda cuda=cuda: cuda)
        monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
        monkeypatch.setattr("torch.backends.mps.is_available", lambda mps=mps: mps)
        device = choose_device("auto")
        found.append((device.type, choose_dtype("auto", device)))
    assert found == [("cuda", "auto"), ("mps", torch.float32), ("cpu", torch.float32)]


@pytest.mark.parametrize("name", ["guess", "", "cuda:99", "meta", "cpu:1"])
def test_a_device_that_is_not_there_is_refused(name: str, target: str) -> None:
    assert f"no device {name!r}" in refused(target, device=name)


@pytest.mark.parametrize("name", ["guess", "", "int8", "torch.float32"])
def test_an_unknown_precision_is_refused(name: str, target: str) -> None:
    assert f"dtype {name!r}" in refused(target, dtype=name)


# What is refused


def test_a_target_without_a_draft_is_refused_before_anything_is_read() -> None:
    text = refused("no/such", None)
    assert "'no/such' needs a draft" in text and 'draft="ngram"' in text


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_missing_folder_is_told_with_its_role(role: str, target: str) -> None:
    names = {"target": target, "draft": target, role: target + "-not"}
    assert f"The {role} {names[role]!r}" in refused(**names)


@pytest.mark.parametrize("role", ["target", "draft"])
def test_an_id_that_no_network_reaches_is_refused_fast(role: str, target: str) -> None:
    names = {"target": target, "draft": target, role: "nobody-here/no-such-model"}
    start = time.perf_counter()
    text = refused(**names)
    assert time.perf_counter() - start < 5
    assert f"The {role} 'nobody-here/no-such-model'" in text and "connect" in text


def test_a_file_is_no_model(target: str) -> None:
    assert "neither a folder" in refused(str(Path(target, "config.json")))


def break_off(folder: str) -> None:
    content = Path(folder, WEIGHTS).read_bytes()
    Path(folder, WEIGHTS).write_bytes(content[: len(content) // 2])


def unpickled(folder: str) -> None:
    torch.save(load_file(Path(folder, WEIGHTS)), Path(folder, "pytorch_model.bin"))
    Path(folder, WEIGHTS).unlink()


def unpickled_by_index(folder: str, name: str = WEIGHTS + ".index.json") -> None:
    unpickled(folder)
    weights = torch.load(Path(folder, "pytorch_model.bin"))
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, "pytorch_model.bin")}
    Path(folder, name).write_text(json.dumps(index), encoding="utf-8")


def unpickled_by_own_index(folder: str) -> None:
    unpickled_by_index(folder, "own.safetensors.index.json")
    entry = {"transformers_weights": "own.safetensors.index.json"}
    edit(folder, "config.json", lambda content: content.update(entry))


def to_sentencepiece(folder: str) -> None:
    Path(folder, "tokenizer.json").rename(Path(folder, "tokenizer.model"))


def configured(**entries: Any) -> Callable[[str], None]:
    return lambda folder: edit(folder, "config.json", lambda content: content.update(entries))


def weighted(**tensors: torch.Tensor) -> Callable[[str], None]:
    return lambda folder: edit_weights(folder, lambda weights: weights.update(tensors))


BROKEN: dict[str, tuple[Callable[[str], object], str]] = {
    "no config": (lambda folder: Path(folder, "config.json").unlink(), "config.json"),
    "a config that is no JSON": (lambda f: Path(f, "config.json").write_text("{"), "JSON"),
    "a wrong config": (configured(hidden_size="x"), "hidden_size"),
    "another size": (configured(hidden_size=64), "another shape"),
    "an unknown architecture": (configured(model_type="guess"), "guess"),
    "no language model": (configured(model_type="vit"), "ViT"),
    "code": (configured(model_type="guess", auto_map={"AutoConfig": "a.B"}), "custom code"),
    "no weights": (lambda folder: Path(folder, WEIGHTS).unlink(), WEIGHTS),
    "corrupt weights": (lambda f: Path(f, WEIGHTS).write_bytes(b"\xff" * 99), "header"),
    "half the weights": (break_off, "incomplete"),
    "pickled weights": (unpickled, WEIGHTS),
    "an index of pickled weights": (unpickled_by_index, r"safetensors (pytorch_model.bin)"),
    "its own index of pickled weights": (unpickled_by_own_index, r"(pytorch_model.bin)"),
    "a missing weight": (lambda f: edit_weights(f, lambda weights: weights.pop(ONE)), f"({ONE})"),
    "a weight of another shape": (weighted(**{ONE: torch.ones(3)}), f"({ONE})"),
    "no tokenizer": (lambda folder: Path(folder, "tokenizer.json").unlink(), "no tokenizer"),
    "a tokenizer of SentencePiece": (to_sentencepiece, "sentencepiece protobuf"),
    "a broken tokenizer": (lambda f: Path(f, "tokenizer.json").write_text("{"), "tokenizer of"),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("role", ["target", "draft"])
def test_what_is_broken_is_refused_with_its_role(
    case: str, role: str, target: str, draft: str
) -> None:
    if case == "a tokenizer of SentencePiece" and find_spec("sentencepiece"):
        pytest.skip("the packages are there")
    names = {"target": target, "draft": draft}
    change, words = BROKEN[case]
    change(names[role])
    if case == "no tokenizer" and role == "draft":
        assert loaded(**names).tokenizer is not None
        return
    text = refused(**names)
    assert f"{role} {names[role]!r}" in text and words in text


def test_tied_weights_are_not_missing_and_their_loss_is(tmp_path: Path) -> None:
    target = save(tmp_path / "tied", tiny("gpt2"), words())
    assert "lm_head.weight" not in load_file(Path(target, WEIGHTS))
    loaded(target, "ngram")
    edit_weights(target, lambda weights: weights.pop("transformer.wte.weight"))
    assert "missing" in refused(target)


def test_the_reason_is_kept_as_the_cause(target: str) -> None:
    break_off(target)
    with pytest.raises(DecodeError) as error:
        loaded(target, "ngram")
    assert type(error.value.__cause__).__name__ == "SafetensorError"


# Tokenizers


def test_other_tokenizers_are_refused_with_the_number_of_entries(
    target: str, tmp_path: Path
) -> None:
    swapped = {**words(), "w5": 6, "w6": 5}
    del swapped["w96"]
    draft = save(tmp_path / "swapped", shared_pair().target, swapped)
    text = refused(target, draft)
    assert repr(target) in text and repr(draft) in text and "in 2 entries" in text


def test_tokenizers_that_split_differently_are_refused(tmp_path: Path) -> None:
    known = {**words(), "It's": 95, "it's": 96}
    del known["w95"], known["w96"]
    target = save(tmp_path / "as it is", shared_pair().target, known)
    draft = save(tmp_path / "lower", shared_pair().draft, known, lowercase=True)  # type: ignore[arg-type]
    both = [AutoTokenizer.from_pretrained(folder).get_vocab() for folder in (target, draft)]
    assert both[0] == both[1]
    text = refused(target, draft)
    assert repr(target) in text and repr(draft) in text and "differently" in text
    loaded(draft, draft)


def test_vocabularies_of_different_sizes_are_refused(target: str, tmp_path: Path) -> None:
    draft = save(tmp_path / "small", tiny("llama", vocabulary=90))
    assert "one vocabulary" in refused(target, draft)


# The command line


def test_the_command_line_loads_folders(
    target: str, draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps({"ids": row}) for row in ROWS), encoding="utf-8")
    arguments = ["generate", "--target", target, "--draft", draft, "--prompts", str(file)]
    arguments += ["--max-new-tokens", str(LONGEST), "--eos-token-ids", "never", "--json", "-"]
    assert main([*arguments, "--device", "cpu", "--dtype", "float64"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tokens"] == all_written("llama", ROWS)
    assert found["stats"]["accepted"] == accepted()
    environment = found["environment"]
    assert (environment["device"], environment["dtype"], environment["draft_dtype"]) == (
        "cpu",
        "float64",
        "float64",
    )


def test_the_command_line_tells_in_one_sentence_what_cannot_be_loaded(target: str) -> None:
    edit_weights(target, lambda weights: weights.pop(ONE))
    arguments = ["generate", "w5 w9", "--target", target, "--draft", "ngram", "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-m", "batchspec", *arguments],
        cwd=Path(__file__).resolve().parent.parent,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("batchspec: The target") and done.stderr.count("\n") == 1
    assert ONE in done.stderr
