"""Weights of linear layers, laid out ahead for the processor's own matrix kernels.

A forward of speculative decoding multiplies large weights with a few tokens. PyTorch's layer brings
the weights into the kernel's order each time, which then takes longer than the product. oneDNN, as
PyTorch ships it, keeps them in that order, as compiled models on a CPU do.
"""

from __future__ import annotations

import copy
import platform
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

ROWS = 8
"""Tokens of a forward for which the order is chosen; it serves others nearly as well."""
LEAST = 100_000
"""Entries of the smallest layer that gains: less is reordered faster than the packed call takes."""


class PackedLinear(nn.Module):
    """A linear layer that can only be called.

    Attributes:
        weight: in an order of the kernel's own, `[out, in]`; only its shape can be read.
        bias: `[out]`, or None.
    """

    def __init__(self, linear: nn.Linear) -> None:
        """Take over what a layer computes; the layer itself stays as it is."""
        super().__init__()
        packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), ROWS)
        self.weight = nn.Parameter(packed, requires_grad=False)
        self.bias = linear.bias

    def forward(self, hidden: Tensor) -> Tensor:
        """Of `[..., in]`, `[..., out]`."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise.default(
            hidden, self.weight, self.bias, "none", [], ""
        )
        return product

    def unpacked(self) -> nn.Linear:
        """The layer it was made of, with memory of its own."""
        out, width = self.weight.shape
        linear = nn.Linear(width, out, bias=self.bias is not None, device="meta")
        linear.weight = nn.Parameter(self.weight.to_dense(), requires_grad=False)
        linear.bias = self.bias
        return linear


def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether this machine has kernels for it."""
    return (
        device.type == "cpu"
        and platform.machine() in ("x86_64", "AMD64")
        and torch.backends.mkldnn.is_available()
        and (
            dtype == torch.float32
            or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
        )
    )


def pack(model: PreTrainedModel) -> None:
    """Change a model's large linear layers in place, where this machine has kernels for it.

    The model can then neither be trained nor saved. An output layer that shares its weights with
    the embeddings gets a copy of them.
    """
    if can_pack(model.device, model.dtype):
        for name, linear in _to_pack(model).items():
            model.set_submodule(name, PackedLinear(linear))


def unpacked(model: PreTrainedModel) -> PreTrainedModel:
    """A model with plain layers, which shares all other weights with this one, or this one."""
    packed = [module for module in model.modules() if isinstance(module, PackedLinear)]
    if not packed:
        return model
    known: dict[int, Any] = {id(weight): weight for weight in model.parameters()}
    known |= {id(module): module.unpacked() for module in packed}
    plain = copy.deepcopy(model, known)
    plain.tie_weights()
    return plain


def copied_bytes(model: PreTrainedModel) -> int:
    """What packing takes beside the weights: a second layout of those that embeddings share."""
    embeddings: Any = model.get_input_embeddings()
    shared = [each for each in _to_pack(model).values() if each.weight is embeddings.weight]
    return sum(linear.weight.nbytes for linear in shared)


def _to_pack(model: PreTrainedModel) -> dict[str, nn.Linear]:
    """The layers to pack by their names; a kind of its own may compute something else."""
    return {
        name: each
        for name, each in model.named_modules()
        if type(each) is nn.Linear and each.weight.numel() >= LEAST
    }
