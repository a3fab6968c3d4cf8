"""What models need is known before they are loaded; running out of memory is a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from architectures import FAMILIES
from batchspec import DecodeConfig, DecodeError, LiveRun, ModelPair, decode, generate, load_pair
from batchspec.cached_model import cache_argument, cache_states
from batchspec.checkpoint import Checkpoint
from batchspec.loading import _shares
from batchspec.memory import KV_TOKENS, free_bytes, need_of, ran_out
from test_loading import refused, save, words
from tiny import ROWS, all_written, shared_pair, tiny

CONFIG = DecodeConfig(max_new_tokens=24, eos_token_ids=())
CPU = torch.device("cpu")
ALLOCATION = "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate"
OUT = [torch.OutOfMemoryError("CUDA out of memory."), MemoryError(), RuntimeError(ALLOCATION)]


@pytest.mark.parametrize("family", [name for name in FAMILIES if "falcon" not in name])
def test_the_need_is_what_the_loaded_model_takes(family: str) -> None:
    model = tiny(family).eval()
    need = need_of(model.config, torch.float32, CPU)
    assert need is not None
    assert need.weights == sum(weight.nbytes for weight in model.parameters())
    cache = DynamicCache()
    model(input_ids=torch.tensor([[1, 2, 3]]), use_cache=True, **{cache_argument(model): cache})
    assert need.kv * 3 == sum(state.nbytes for state in cache_states(cache)) * KV_TOKENS
    half = need_of(model.config, torch.float16, CPU)
    assert half is not None and (half.weights * 2, half.kv * 2) == (need.weights, need.kv)


def test_what_the_config_does_not_tell_is_not_guessed() -> None:
    config = tiny("llama").config
    config.quantization_config = {"quant_method": "gptq"}
    assert need_of(config, "auto", CPU) is None


def test_a_pair_that_does_not_fit_is_refused_with_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = save(tmp_path / "a", shared_pair().target, words())
    monkeypatch.setattr("batchspec.loading.free_bytes", lambda _: 2_000_000)
    text = refused(target, target, device="cpu", dtype="float32")
    assert "of 4096 tokens, but cpu has 2.0 MB free" in text and 'dtype="bfloat16"' in text
    monkeypatch.setattr("batchspec.loading.free_bytes", lambda _: 1000)
    assert "bfloat16" not in refused(target, target, device="cpu", dtype="float16")
    load_pair("storyteller")


def test_a_target_that_does_not_fit_the_gpu_is_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = save(tmp_path / "a", shared_pair().target, words())
    checkpoints = [Checkpoint(role, "x", place) for role in ("target", "draft")]
    need = need_of(checkpoints[0].config, torch.float32, torch.device("cuda"))
    assert need is not None
    beside = 2 * need.kv + need.weights
    free = {"cuda": beside + 1000, "cpu": need.weights}
    monkeypatch.setattr("batchspec.loading.free_bytes", lambda device: free[device.type])
    shares = _shares(checkpoints, torch.device("cuda"), torch.float32)
    assert shares == {0: 1000, "cpu": need.weights}
    with pytest.raises(DecodeError, match="cuda:0 has"):
        _shares(checkpoints, torch.device("cuda:0"), torch.float32)
    monkeypatch.setattr("batchspec.loading.find_spec", lambda _: None)
    with pytest.raises(DecodeError, match="install accelerate"):
        _shares(checkpoints, torch.device("cuda"), torch.float32)
    free["cuda"] = beside - 1
    with pytest.raises(DecodeError, match="choose a smaller pair"):
        _shares(checkpoints, torch.device("cuda"), torch.float32)


def test_a_spread_target_is_loaded_whole(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    checkpoint = Checkpoint("target", "x", save(tmp_path / "a", shared_pair().target, words()))
    model = checkpoint.model(torch.device("cpu"), torch.float32, {"cpu": 10**9})
    pair = ModelPair(model, shared_pair().draft)
    assert generate(pair, ROWS, CONFIG).tokens == all_written("llama", ROWS)


def test_a_target_whose_weights_lie_elsewhere_decodes_the_same(tmp_path: Path) -> None:
    """Weights that come from the disk, layer by layer, as from the CPU beside a GPU."""
    accelerate = pytest.importorskip("accelerate")
    place = save(tmp_path / "a", shared_pair().target, words())
    pair = load_pair(place, "ngram", device="cpu")
    layers = {f"model.layers.{number}": "disk" for number in range(2)}
    here = dict.fromkeys(("model.embed_tokens", "model.norm", "model.rotary_emb", "lm_head"), "cpu")
    accelerate.dispatch_model(
        pair.target, {**here, **layers}, main_device="cpu", offload_dir=str(tmp_path / "disk")
    )
    for strategy in ("eqspec", "ragged"):
        config = DecodeConfig(strategy=strategy, max_new_tokens=24, eos_token_ids=())
        assert generate(pair, ROWS, config).tokens == all_written("llama", ROWS)


@pytest.mark.parametrize("error", OUT, ids=lambda error: type(error).__name__)
def test_running_out_of_memory_is_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = shared_pair()
    forward = pair.target.forward

    def failing(*arguments: Any, **settings: Any) -> Any:
        if settings["input_ids"].shape[0] > 1:
            raise error
        return forward(*arguments, **settings)

    steps = decode(pair, ROWS, CONFIG)
    live = LiveRun(pair, ROWS, [CONFIG])
    with monkeypatch.context() as context:
        context.setattr("transformers.LlamaForCausalLM.__call__", failing)
        for run in (lambda: [*steps], live.advance):
            with pytest.raises(DecodeError, match="ran out of memory: ask for a smaller batch"):
                run()
    assert generate(pair, ROWS, CONFIG).tokens == all_written("llama", ROWS)


@pytest.mark.parametrize("error", OUT, ids=lambda error: type(error).__name__)
def test_running_out_while_loading_is_a_sentence(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = save(tmp_path / "a", shared_pair().target, words())

    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", failing)
    assert "memory ran out, so choose a smaller model" in refused(target)


def test_other_errors_are_not_taken_for_it() -> None:
    assert not ran_out(RuntimeError("shapes do not match"))


def test_a_containers_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = free_bytes(torch.device("cpu"))
    assert whole > 0
    monkeypatch.setattr("batchspec.memory.CONTROL_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("4500\n")
    (tmp_path / "memory.stat").write_text("anon 4000\ninactive_file 300\n")
    assert free_bytes(torch.device("cpu")) == 800
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(torch.device("cpu")) > 800


def test_running_out_while_observing_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("batchspec.clean.CleanRow.extend", failing)
    with pytest.raises(DecodeError, match="ran out of memory"):
        LiveRun(shared_pair(), ROWS, [CONFIG]).advance()
