"""Random numbers that depend on a row and a place in it, and on nothing else.

They are hashed, not drawn from a state: a row meets the same numbers alone, in any batch and under
any strategy, on every device, and the global random state is left alone. The hash is SplitMix64
(Steele, Lea, Flood 2014), whose 64-bit words wrap around in int64 tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

TARGET, DRAFT, ACCEPT = range(3)
"""Streams of independent numbers: for the target's choice, the draft's, and their comparison."""

_WORD = 2**64
_STEP = 0x9E3779B97F4A7C15
_FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31


def row_key(seed: int, prompt: Sequence[int], repeat: int) -> int:
    """What tells one row's numbers from another's.

    Args:
        seed: any whole number.
        prompt: the row's token ids.
        repeat: how many equal prompts came before, so that each of them is another sample.

    Returns:
        A signed 64-bit word.
    """
    key = seed % _WORD
    for token in (repeat, *prompt):
        key = _mixed((key + (token + 1) * _STEP) % _WORD)
    return _signed(key)


def uniform(key: Tensor, place: Tensor, stream: int, count: int) -> Tensor:
    """Numbers above 0 and below 1, as fine as the device can tell apart.

    Args:
        key: `row_key` of each row, `[rows]`.
        place: places in the rows' sequences, `[rows, queries]`.
        stream: `TARGET`, `DRAFT` or `ACCEPT`.
        count: numbers for each place.

    Returns:
        `[rows, queries, count]`, in float64 where the device has it.
    """
    step = _signed(_STEP)
    counter = _hash(key[:, None] + (place * 3 + stream + 1) * step)
    element = torch.arange(1, count + 1, device=place.device)
    word = _hash(counter[..., None] + element * step)
    dtype, bits = (torch.float32, 23) if place.device.type == "mps" else (torch.float64, 52)
    return (_shifted(word, 64 - bits).to(dtype) + 0.5) / 2**bits


def gumbel(key: Tensor, place: Tensor, stream: int, count: int) -> Tensor:
    """Gumbel noise: the largest of log-probability plus noise is a sample; shapes as `uniform`."""
    return -torch.log(-torch.log(uniform(key, place, stream, count)))


def _hash(word: Tensor) -> Tensor:
    for shift, factor in _FACTORS:
        word = (word ^ _shifted(word, shift)) * _signed(factor)
    return word ^ _shifted(word, _LAST_SHIFT)


def _shifted(word: Tensor, bits: int) -> Tensor:
    """Shift to the right as if the words had no sign."""
    return (word >> bits) & (2 ** (64 - bits) - 1)


def _mixed(word: int) -> int:
    for shift, factor in _FACTORS:
        word = (word ^ (word >> shift)) * factor % _WORD
    return word ^ (word >> _LAST_SHIFT)


def _signed(word: int) -> int:
    return word - _WORD if word >= _WORD // 2 else word
