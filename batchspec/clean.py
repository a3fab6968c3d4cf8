"""The yardstick of the cache: a row alone, unpadded, through the bare model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from batchspec.cached_model import cache_argument, cache_states, forward_parameters, known_ids
from batchspec.sampler import Sampler

BROKEN = 1e30
"""The relative error reported for K/V that are not numbers."""
CHUNK = 2**20
"""Numbers that are compared in one step."""


CleanMemo = dict[tuple[Any, ...], tuple[list[tuple[Tensor, Tensor]], list[int]]]
"""K/V and choices of clean forwards, by model, row and tokens."""


def forget_passed(memo: CleanMemo, settled: Iterable[tuple[int, Sequence[int]]]) -> None:
    """Drop the forwards that nobody can ask for again.

    Args:
        memo: shared by the rows of all lanes.
        settled: key and first tokens of each row that is not done, as its cache will hold them from
            now on; a row stands here once a lane.
    """
    rows = defaultdict(list)
    for key, first in settled:
        rows[key].append(tuple(first))
    for forward in list(memo):
        (*_, key), _, tokens = forward
        if not any(tokens[: len(first)] == first for first in rows[key]):
            del memo[forward]


class CleanRow:
    """The K/V and choices of one row, computed apart from any batch.

    Attributes:
        tokens: the sequence now cached.
        choices: the tokens that the model itself would have written after the prompt, each given
            the row's own tokens before it.
        memo: forwards to be looked up instead of being run again; None keeps none.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        prompt_length: int,
        sampler: Sampler | None,
        key: int,
        memo: CleanMemo | None = None,
    ) -> None:
        """Choices are made as `sampler` does with the row's `key`; without one there are none."""
        self.model = model
        self._first = prompt_length - 1
        self._sampler = sampler
        self._key = torch.tensor([key], device=model.device)
        self._row = (model, sampler, prompt_length, key)
        self._cache_argument = cache_argument(model)
        cuts = sampler is None and "logits_to_keep" in forward_parameters(model)
        self._least_logits = {"logits_to_keep": 1} if cuts else {}
        self.cache = DynamicCache()
        self.tokens: list[int] = []
        self.choices: list[int] = []
        self.memo = memo

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
        forward = (self._row, shared, tuple(tokens))
        if self.memo is not None and forward in self.memo:
            states, choices = self.memo[forward]
            for number, (keys, values) in enumerate(states):
                self.cache.update(keys, values, number)
            self.choices += choices
            return
        choices = self._run(shared, tokens)
        self.choices += choices
        if self.memo is not None:
            layers = zip(*[iter(cache_states(self.cache))] * 2, strict=True)
            states = [(k[:, :, shared:].clone(), v[:, :, shared:].clone()) for k, v in layers]
            self.memo[forward] = states, choices

    def _run(self, shared: int, tokens: list[int]) -> list[int]:
        """Run the model over what follows the first `shared` tokens; its choices after that."""
        device = self.model.device
        output = self.model(
            input_ids=known_ids(self.model, torch.tensor([tokens[shared:]], device=device)),
            position_ids=torch.arange(shared, len(tokens), device=device)[None],
            attention_mask=torch.ones(1, len(tokens), dtype=torch.long, device=device),
            use_cache=True,
            **{self._cache_argument: self.cache},
            **self._least_logits,
        )
        place = torch.arange(max(shared, self._first), len(tokens), device=device)[None]
        if self._sampler is None or not place.numel():
            return []
        logits = output.logits[:, -place.shape[1] :]
        choices: list[int] = self._sampler.choose(logits, self._key, place + 1)[0].tolist()
        return choices

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
        pairs = list(zip(cache_states(cache), cache_states(self.cache), strict=True))
        # Alike states are compared together, as many as fit into a few megabytes.
        by_shape = sorted(pairs, key=lambda pair: _shape(pair[1]))
        for shape, alike in groupby(by_shape, key=lambda pair: _shape(pair[1])):
            several = max(1, CHUNK // (shape[0] * shape[1] * len(slots)))
            for part in _chunks(list(alike), several):
                wrong = torch.stack([found[place].index_select(1, slots) for found, _ in part])
                right = torch.stack([clean[0].index_select(1, index) for _, clean in part])
                worst = torch.maximum(worst, _relative(wrong, right))
        return worst.nan_to_num(nan=BROKEN)


def _shape(state: Tensor) -> tuple[int, int]:
    return state.shape[1], state.shape[3]


def _chunks(pairs: list[tuple[Tensor, Tensor]], size: int) -> list[list[tuple[Tensor, Tensor]]]:
    return [pairs[start : start + size] for start in range(0, len(pairs), size)]


def _relative(found: Tensor, clean: Tensor) -> Tensor:
    """The largest |found - clean| / |clean|, `[slots]`, of `[states, heads, slots, head_dim]`."""
    if clean.dtype != torch.float64:  # whose rounding lies far below every bound
        found, clean = found.float(), clean.float()
    size = torch.linalg.vector_norm(clean, dim=(1, 3)).clamp(min=1e-12)
    return (torch.linalg.vector_norm(found - clean, dim=(1, 3)) / size).amax(0).float()
