"""A GPU by the call, where the host lends one that way (ZeroGPU); nothing anywhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from batchspec.pair import ModelPair

LONGEST = 120
"""Seconds for which a call may have the GPU."""
DEVICE = "cuda"
"""What it is called."""

Function = TypeVar("Function", bound=Callable[..., object])


def on_gpu(function: Function) -> Function:
    """Let a function, or a generator, run with a GPU where the package `spaces` is there.

    The host runs it in a process of its own, forked from this one: the pair must be loaded before,
    and only what the function gives back or yields comes home.
    """
    if find_spec("spaces") is None:
        return function
    lent: Function = import_module("spaces").GPU(duration=LONGEST)(function)
    return lent


def is_lent() -> bool:
    """Whether the host lends its GPU by the call."""
    return bool(os.environ.get("SPACES_ZERO_GPU"))


def moved(pair: ModelPair) -> ModelPair:
    """The pair on the GPU that a function of `on_gpu` was lent; as it is on other hosts.

    The given pair is of no use in this process any more, which ends with the function.
    """
    if not is_lent():
        return pair
    # Here and not above: a page without a pair needs no torch.
    from batchspec.packing import unpacked

    lent = copy(pair)
    lent.target, *drafts = [
        unpacked(model).to(DEVICE)  # type: ignore[arg-type]
        for model in pair.models
    ]
    lent.draft = drafts[0] if drafts else pair.draft
    return lent
