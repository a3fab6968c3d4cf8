"""Packed layers compute what plain ones do, and nothing else of a model changes."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel

import batchspec.packing
from batchspec import DecodeConfig, compare, load_pair
from batchspec.bench import measuring
from batchspec.bench.experiments import Plan
from batchspec.bench.measuring import measure
from batchspec.bench.result import TRANSFORMERS
from batchspec.memory import need_of
from batchspec.packing import PackedLinear, can_pack, copied_bytes, pack, unpacked
from batchspec.storyteller import TARGET_FOLDER
from tiny import FAMILIES, shared_pair, tiny

CPU = torch.device("cpu")
PRECISIONS = [dtype for dtype in (torch.float32, torch.bfloat16) if can_pack(CPU, dtype)]
pytestmark = pytest.mark.skipif(not PRECISIONS, reason="this machine has no kernels for it")


@pytest.fixture(autouse=True)
def _any_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batchspec.packing, "LEAST", 1)


@pytest.fixture
def model() -> PreTrainedModel:
    found: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        TARGET_FOLDER, dtype=torch.float32
    )
    return found.eval()


def packed_layers(model: PreTrainedModel) -> list[str]:
    return [name for name, module in model.named_modules() if isinstance(module, PackedLinear)]


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 1, 40), (3, 5, 40), (7, 40)])
def test_a_packed_layer_multiplies(shape: tuple[int, ...], bias: bool, dtype: torch.dtype) -> None:
    linear = nn.Linear(40, 24, bias=bias, dtype=dtype)
    layer, hidden = PackedLinear(linear), torch.randn(*shape, dtype=dtype)
    # What is cut from a larger tensor lies apart in memory.
    apart = torch.randn(*shape[:-1], 80, dtype=dtype)[..., ::2]
    with torch.inference_mode():
        for given in (hidden, apart):
            right = torch.nn.functional.linear(
                given.double(), linear.weight.double(), None if not bias else linear.bias.double()
            )
            close = 1e-5 if dtype == torch.float32 else 0.05
            assert torch.allclose(layer(given).double(), right, atol=close)
    back = layer.unpacked()
    assert torch.equal(back.weight, linear.weight)
    assert (back.bias is None) == (not bias) and (not bias or torch.equal(back.bias, linear.bias))


def test_large_linear_layers_are_packed_and_nothing_else(
    model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = model.lm_head.weight.numel()
    monkeypatch.setattr(batchspec.packing, "LEAST", largest + 1)
    pack(model)
    assert not packed_layers(model)
    kept = dict(model.named_parameters())
    monkeypatch.setattr(batchspec.packing, "LEAST", largest)
    pack(model)
    assert packed_layers(model) == ["lm_head"]
    for name, weight in model.named_parameters():
        assert weight is kept.get(name) or name == "lm_head.weight"
    monkeypatch.setattr(batchspec.packing, "LEAST", 1)
    pack(model)
    assert len(packed_layers(model)) == 1 + 7 * model.config.num_hidden_layers


def test_a_packed_model_writes_what_the_plain_one_does(model: PreTrainedModel) -> None:
    ids = torch.randint(0, 2000, (3, 9))
    with torch.inference_mode():
        right = model(ids).logits
        pack(model)
        assert torch.allclose(model(ids).logits, right, atol=1e-3)
        plain = unpacked(model)
        assert torch.equal(plain(ids).logits, right)
    assert not packed_layers(plain) and packed_layers(model)
    embedded = model.get_input_embeddings().weight
    assert plain.get_input_embeddings().weight is embedded is plain.lm_head.weight


def test_every_row_of_a_packed_pair_is_what_the_target_writes_alone() -> None:
    pair = load_pair("storyteller")
    assert all(map(packed_layers, pair.models))
    config = DecodeConfig(max_new_tokens=24, batch_size=3)
    result = compare(pair, list(pair.examples[:3]), [config])["eqspec"]
    assert result.exact_match_rate == 1.0
    assert result.generation.stats.draft_acceptance_rate > 0.3


def test_layers_of_another_kind_are_left() -> None:
    class Scaled(nn.Linear):
        """Computes something else."""

    model = tiny("llama")
    model.set_submodule("lm_head", Scaled(400, 400))
    pack(model)
    assert type(model.lm_head) is Scaled


@pytest.mark.parametrize("family", FAMILIES)
def test_all_families_can_be_packed(family: str) -> None:
    model = tiny(family).eval()
    ids = torch.randint(1, 90, (2, 6))
    with torch.inference_mode():
        right = model(input_ids=ids).logits
        copied = copied_bytes(model)
        embedded = model.get_input_embeddings().weight
        tied = model.get_output_embeddings().weight is embedded
        assert copied == (embedded.nbytes if tied else 0)
        pack(model)
        assert packed_layers(model)
        assert torch.allclose(model(input_ids=ids).logits, right, atol=1e-4)
        assert torch.equal(unpacked(model)(input_ids=ids).logits, right)


def test_what_the_machine_has_no_kernels_for_is_left(
    model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not can_pack(torch.device("cuda"), torch.float32)
    assert not can_pack(CPU, torch.float64) and not can_pack(CPU, torch.float16)
    monkeypatch.setattr(batchspec.packing.platform, "machine", lambda: "arm64")
    pack(model)
    assert not packed_layers(model) and unpacked(model) is model


def test_the_need_counts_the_second_layout(model: PreTrainedModel) -> None:
    need = need_of(model.config, torch.float32, CPU)
    assert need is not None and copied_bytes(model) > 0
    plain = need_of(model.config, torch.float32, torch.device("cuda"))
    assert plain is not None and need.weights == plain.weights + copied_bytes(model)
    sizes = [weight.numel() * 4 for weight in model.parameters()]
    assert plain.weights == sum(sizes)
    pack(model)
    assert need.weights == sum(weight.numel() * 4 for weight in model.parameters())


def test_the_benchmark_compares_with_a_target_as_transformers_loads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = shared_pair()
    monkeypatch.setattr(pair, "target", copy.deepcopy(pair.target))
    pack(pair.target)
    ran: list[bool] = []
    real = measuring.generate_plainly

    def noted(given, *others):
        ran.append(bool(packed_layers(given.target)))
        return real(given, *others)

    monkeypatch.setattr(measuring, "generate_plainly", noted)
    config = DecodeConfig(max_new_tokens=4, eos_token_ids=())
    benchmark = list(
        measure(Plan(pair, config, (TRANSFORMERS, "eqspec"), (2,)), [[1, 2]], ("5a",), 1)
    )
    assert ran and not any(ran) and packed_layers(pair.target)
    assert [each.runs[0].exact_match_rate for each in benchmark[-1].benchmark.measurements] == [
        1,
        1,
    ]
