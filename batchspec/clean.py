"""The yardstick of the cache: a row alone, unpadded, through the bare model."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from batchspec.cached_model import attention_layers, cache_argument, known_ids
from batchspec.sampler import Sampler

BROKEN = 1e30
"""The relative error reported for K/V that are not numbers."""


class CleanRow:
    """The K/V and choices of one row, computed apart from any batch.

    Attributes:
        tokens: the sequence now cached.
        choices: the tokens that the model itself would have written after the prompt, each given
            the row's own tokens before it.
    """

    def __init__(
        self, model: PreTrainedModel, prompt_length: int, sampler: Sampler, key: int
    ) -> None:
        """Choices are made as `sampler` does with the row's `key`."""
        self.model = model
        self._first = prompt_length - 1
        self._sampler = sampler
        self._key = torch.tensor([key], device=model.device)
        self._cache_argument = cache_argument(model)
        self.cache = DynamicCache()
        self.tokens: list[int] = []
        self.choices: list[int] = []

    @torch.inference_mode()
    def extend(self, tokens: list[int]) -> None:
        """Hold exactly `tokens`, running the model over those not held yet."""
        shared = 0
        for old, new in zip(self.tokens, tokens, strict=False):
            if old != new:
                break
            shared += 1
        if shared < len(self.tokens):
            self.cache.crop(shared - len(self.tokens))
        del self.choices[max(0, shared - self._first) :]
        self.tokens = list(tokens)
        if shared == len(tokens):
            return
        device = self.model.device
        output = self.model(
            input_ids=known_ids(self.model, torch.tensor([tokens[shared:]], device=device)),
            position_ids=torch.arange(shared, len(tokens), device=device)[None],
            attention_mask=torch.ones(1, len(tokens), dtype=torch.long, device=device),
            use_cache=True,
            **{self._cache_argument: self.cache},
        )
        place = torch.arange(max(shared, self._first), len(tokens), device=device)[None]
        if place.numel():
            logits = output.logits[:, -place.shape[1] :]
            self.choices += self._sampler.choose(logits, self._key, place + 1)[0].tolist()

    def error(self, cache: DynamicCache, place: int, slots: Tensor, index: Tensor) -> Tensor:
        """Relative error of cached K/V against the clean ones.

        Args:
            cache: the batch's cache.
            place: the row's place in it.
            slots: slots to compare, `[count]`.
            index: the token each should hold, below `len(tokens)`, `[count]`.

        Returns:
            The largest |found - clean| / |clean| over layers, keys and values, `[count]`.
        """
        worst = torch.zeros(len(slots), device=slots.device)
        if not len(slots):
            return worst
        layers = attention_layers(cache), attention_layers(self.cache)
        for found, clean in zip(*layers, strict=True):
            for name in ("keys", "values"):
                right = getattr(clean, name)[0][:, index].double()
                wrong = getattr(found, name)[place][:, slots].double()
                size = right.square().sum((0, 2)).clamp(min=1e-24)
                difference = (wrong - right).square().sum((0, 2))
                worst = torch.maximum(worst, (difference / size).sqrt().float())
        return worst.nan_to_num(nan=BROKEN)
