"""Attention in which all queries that share keys ask them together.

Where several query heads share the keys of one, transformers asks for a single query a row in this
way, and for more it copies keys and values once for each head. A verification asks for a few
queries a row, and the copies of a long cache then take longer than the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

MOST = 32
"""Queries a row up to which they ask together: the mask is repeated for it, and a prompt's is
large."""

PLAIN = "sdpa"
"""What transformers calls its own attention through PyTorch's kernels."""
SHARED = "batchspec_shared_keys"
"""What transformers calls this one."""


def shared_keys_attention(
    layer: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **settings: Any
) -> tuple[Tensor, None]:
    """Attention as transformers' own gives it, whose work it is where there is nothing to gain.

    Args:
        layer: the module that asks.
        query: `[rows, heads, queries, head_dim]`.
        key, value: `[rows, kv_heads, slots, head_dim]`.
        mask: what is added, or which slots are seen, `[rows, 1, queries, slots]`.
        settings: as transformers has them: `scaling`, `dropout` and what a kind of model adds.

    Returns:
        `[rows, queries, heads, head_dim]`.
    """
    queries = query.shape[2]
    if (
        mask is None
        or mask.shape[1] > 1
        or query.shape[1] == key.shape[1]
        or not 1 < queries <= MOST
        or any(settings.get(name) is not None for name in ("position_bias", "softcap"))
    ):
        found: tuple[Tensor, None] = _plain(layer, query, key, value, mask, **settings)
        return found
    dropout, scaling = settings.get("dropout", 0.0), settings.get("scaling")
    answer = partial(scaled_dot_product_attention, dropout_p=dropout, scale=scaling)
    return ask_together(answer, query, key, value, mask), None


def ask_together(
    answer: Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
) -> Tensor:
    """Attention of heads that share keys, which `answer` gives with one head for each head of keys.

    Args:
        answer: attention of queries, keys, values and what is added, `[rows, heads, ...]` each.
        query: `[rows, heads, queries, head_dim]`.
        key, value: `[rows, kv_heads, slots, head_dim]`.
        mask: `[rows, 1, queries, slots]`, or nothing where all is seen.

    Returns:
        `[rows, queries, heads, head_dim]`.
    """
    rows, heads, queries, width = query.shape
    shared = heads // key.shape[1]
    asked = query.reshape(rows, key.shape[1], shared * queries, width)
    answers = answer(asked, key, value, None if mask is None else mask.repeat(1, 1, shared, 1))
    # [rows, kv_heads, shared, queries, head_dim], the queries then first
    apart = answers.unflatten(2, (shared, queries)).permute(0, 3, 1, 2, 4)
    return apart.reshape(rows, queries, heads, -1).contiguous()


_plain: Any = ALL_ATTENTION_FUNCTIONS[PLAIN]
AttentionInterface.register(SHARED, shared_keys_attention)
AttentionMaskInterface.register(SHARED, ALL_MASK_ATTENTION_FUNCTIONS[PLAIN])


def share_keys(model: PreTrainedModel) -> None:
    """Let a model that runs on PyTorch's attention kernels use this one, where it can be told."""
    if model.config._attn_implementation == PLAIN and model.is_backend_compatible():
        model.set_attn_implementation(SHARED)


@contextmanager
def plain_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let a model run on transformers' own attention for a while."""
    changed = model.config._attn_implementation == SHARED
    if changed:
        model.set_attn_implementation(PLAIN)
    try:
        yield
    finally:
        if changed:
            model.set_attn_implementation(SHARED)
