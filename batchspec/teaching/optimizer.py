"""How weights are changed: Muon for the layers, AdamW for the rest, along a cosine."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Optimizer:
    """Muon for the matrices of the layers, AdamW for embeddings, biases and norms.

    Attributes:
        parts: the two, each over its own weights.
    """

    def __init__(self, model: nn.Module, peak: float = 1.0) -> None:
        """Take charge of a model's weights.

        Args:
            model: what learns.
            peak: what the greatest learning rates are multiplied with.
        """
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, parameter in model.named_parameters():
            in_layer = parameter.ndim == 2 and "embed" not in name
            (matrices if in_layer else others).append(parameter)
        self.parts: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, lr=0.02 * peak, momentum=0.95, weight_decay=0.01),
            torch.optim.AdamW(
                others, lr=0.004 * peak, betas=(0.9, 0.95), weight_decay=0.0, fused=True
            ),
        ]
        self._peaks = [part.param_groups[0]["lr"] for part in self.parts]

    def descend(self, loss: Tensor, progress: float) -> float:
        """Take one step down a loss, and return what it was.

        Args:
            loss: a scalar.
            progress: share of the training that is over.
        """
        loss.backward()
        for part, peak in zip(self.parts, self._peaks, strict=True):
            part.param_groups[0]["lr"] = peak * learning_rate_factor(progress)
            part.step()
            part.zero_grad()
        return loss.item()


def learning_rate_factor(progress: float) -> float:
    """Rise over the first 3 % of the training, then fall to zero along a cosine."""
    if progress < 0.03:
        return max(progress, 0.001) / 0.03
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - 0.03) / 0.97)))
