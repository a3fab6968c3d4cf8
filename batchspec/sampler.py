"""What a model chooses: its likeliest token, or a sample of its filtered distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from batchspec.config import DecodeConfig
from batchspec.noise import TARGET, gumbel


@dataclass(frozen=True)
class Sampler:
    """Temperature and filters, in the order in which they apply.

    Attributes:
        temperature: 0 always takes the likeliest token.
        top_k: keeps this many of the likeliest tokens; None or 0 keeps all.
        top_p: then keeps the likeliest tokens until they have this probability; None keeps all.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    @classmethod
    def of(cls, config: DecodeConfig) -> Sampler:
        """The sampler that a config asks for."""
        return cls(float(config.temperature), config.top_k, config.top_p)

    def choose(self, logits: Tensor, key: Tensor, place: Tensor, stream: int = TARGET) -> Tensor:
        """One token per query.

        Args:
            logits: `[rows, queries, vocabulary]`.
            key, place, stream: which random numbers to use, as in `noise.uniform`.

        Returns:
            Token ids, `[rows, queries]`.
        """
        if self.temperature == 0:
            return logits.argmax(-1)
        scores = self.scores(logits)
        return (scores + gumbel(key, place, stream, scores.shape[-1])).argmax(-1)

    def scores(self, logits: Tensor) -> Tensor:
        """Logits over the temperature, the largest being 0, minus infinity where filtered out."""
        wide = logits.float() if logits.device.type == "mps" else logits.double()
        wide = wide - wide.amax(-1, keepdim=True)
        # A temperature near 0 would turn the largest logit into an infinity if it were not 0.
        scores = wide / self.temperature
        if self.top_k and self.top_k < scores.shape[-1]:
            least = scores.topk(self.top_k).values[..., -1:]
            scores = scores.masked_fill(scores < least, -torch.inf)
        if self.top_p is not None and self.top_p < 1:
            ordered, order = scores.sort(stable=True, dim=-1, descending=True)
            share = ordered.softmax(-1)
            beyond = share.cumsum(-1) - share >= self.top_p
            scores = scores.masked_fill(beyond.scatter(-1, order, beyond), -torch.inf)
        return scores

    def probabilities(self, logits: Tensor) -> Tensor:
        """The distribution that `choose` samples from, `[rows, queries, vocabulary]`."""
        if self.temperature == 0:
            likeliest = logits.argmax(-1, keepdim=True)
            return torch.zeros_like(logits, dtype=torch.float32).scatter_(-1, likeliest, 1.0)
        return self.scores(logits).softmax(-1)

    def margin(self, logits: Tensor, key: Tensor, place: Tensor) -> float:
        """How little the logits of one query must change for another choice, at least.

        Args:
            logits: `[1, 1, vocabulary]`.
            key, place: as in `choose`, of one row and query.
        """
        best = logits.double().flatten().sort(descending=True).values
        if self.temperature == 0:
            return float(best[0] - best[1])
        scores = self.scores(logits)
        noisy = scores + gumbel(key, place, TARGET, scores.shape[-1])
        first, second = noisy.flatten().topk(2).values.tolist()
        margins = [(first - second) * self.temperature]
        if self.top_k and self.top_k < len(best):
            margins.append(float(best[self.top_k - 1] - best[self.top_k]))
        if self.top_p is not None and self.top_p < 1:
            kept = replace(self, top_p=None).scores(logits).flatten().softmax(-1)
            mass = kept.sort(descending=True).values.cumsum(-1)
            margins.append(float((mass - self.top_p).abs().min()) * self.temperature)
        return min(margins)
