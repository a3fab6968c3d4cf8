"""Whether models fit: what they need, what is free, and what is said when it was not enough."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from batchspec.errors import DecodeError
from batchspec.packing import can_pack, copied_bytes

KV_TOKENS = 4096
"""Tokens whose K/V an estimate includes: a batch of eight rows of 512 tokens."""

CONTROL_GROUP = Path("/sys/fs/cgroup")
"""Where Linux tells what a container may use."""


@dataclass(frozen=True)
class Need:
    """Memory in bytes.

    Attributes:
        weights: of the parameters, and what packing them takes.
        kv: of the K/V of `KV_TOKENS` tokens.
    """

    weights: int
    kv: int


def need_of(
    config: PreTrainedConfig, dtype: torch.dtype | str, device: torch.device
) -> Need | None:
    """What a model needs, counted on a model without memory.

    Args:
        config: the model's.
        dtype: its precision; `auto` is that of the checkpoint.
        device: where it goes.

    Returns:
        The need; None where a config tells too little, as of weights that are quantized.
    """
    if getattr(config, "quantization_config", None) is not None:
        return None
    own = config.dtype if isinstance(config.dtype, torch.dtype) else torch.float32
    wanted = dtype if isinstance(dtype, torch.dtype) else own
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=wanted, trust_remote_code=False)
    except Exception:  # what cannot be built is told by loading it
        return None
    kv = _kv_elements(config.get_text_config()) * wanted.itemsize * KV_TOKENS
    copied = copied_bytes(model) if can_pack(device, wanted) else 0
    return Need(sum(weight.nbytes for weight in model.parameters()) + copied, kv)


def _kv_elements(config: PreTrainedConfig) -> int:
    """Numbers that the K/V of one token are made of, over all layers."""
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * kv_heads * width)


def free_bytes(device: torch.device) -> int:
    """Memory that can be had on a device now."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0] + unused)
    return min(psutil.virtual_memory().available, _container_bytes())


def _container_bytes() -> int:
    """What the container may still use, if there is one with a limit."""
    try:
        limit = int(Path(CONTROL_GROUP, "memory.max").read_text())
        used = int(Path(CONTROL_GROUP, "memory.current").read_text())
        lines = Path(CONTROL_GROUP, "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no container, or its limit is `max`
        return 2**62
    # Pages of files that were read count as used, and make room when it is needed.
    return limit - used + int(dict(line.split() for line in lines).get("inactive_file", 0))


def ran_out(error: BaseException) -> bool:
    """Whether an error says that there was not enough memory."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError)
        and any(words in str(error) for words in ("DefaultCPUAllocator", "out of memory"))
    )


def release(error: BaseException) -> None:
    """Give back what was allocated on the way to an error, so that something smaller fits."""
    traceback.clear_frames(error.__traceback__)
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def memory_told() -> Iterator[None]:
    """Running out of memory inside becomes a sentence.

    Raises:
        DecodeError: it ran out.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        release(error)
        raise DecodeError(
            "The run ran out of memory: ask for a smaller batch, fewer new tokens or shorter "
            "prompts, or choose a smaller pair."
        ) from None
