"""Reading caches and forwards into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchspec.cached_model import FREE, PAD, CachedModel, Feed
from batchspec.clean import CleanRow
from batchspec.trace import SLOT_STATES, CacheFrame, FeedFrame

_STATE = {name: place for place, name in enumerate(SLOT_STATES)}


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only."""
    array.setflags(write=False)
    return array


def spread(values: Tensor, numbers: Sequence[int], rows: int, fill: float) -> NDArray[Any]:
    """Put the batch's rows at their places among all prompts.

    Args:
        values: `[batch rows, ...]`.
        numbers: the prompt number of each batch row.
        rows: how many prompts there are.
        fill: what the other rows hold.
    """
    found = values.cpu().numpy()
    if found.dtype == np.int64:
        found = found.astype(np.int32)
    whole = np.full((rows, *found.shape[1:]), fill, dtype=found.dtype)
    whole[list(numbers)] = found
    return freeze(whole)


def read_cache(
    cached: CachedModel,
    numbers: Sequence[int],
    rows: int,
    committed: Sequence[int],
    clean: Sequence[CleanRow],
) -> CacheFrame:
    """One cache as arrays over all prompts.

    Args:
        cached: the model and its cache.
        numbers: the prompt number of each cache row.
        rows: how many prompts there are.
        committed: committed tokens of each cache row.
        clean: each cache row alone, holding every token the cache should hold.
    """
    index, visible = cached.index, cached.visible
    limit = torch.tensor(committed, device=index.device).view(-1, 1)
    rejected = torch.where(visible, _STATE["stale"], _STATE["hole"])
    state = torch.where(
        index >= 0,
        torch.where(index < limit, _STATE["committed"], _STATE["draft"]),
        torch.where(
            index == PAD, _STATE["pad"], torch.where(index == FREE, _STATE["free"], rejected)
        ),
    )
    error = torch.full(index.shape, torch.nan, dtype=torch.float32, device=index.device)
    compared = visible & (index >= 0)
    for place, row in enumerate(clean):
        slots = compared[place].nonzero()[:, 0]
        error[place, slots] = row.error(cached.cache, place, slots, index[place, slots])
    return CacheFrame(
        state=spread(state, numbers, rows, _STATE["free"]),
        token=spread(cached.ids, numbers, rows, -1),
        position=spread(cached.positions, numbers, rows, -1),
        expected=spread(index.clamp(min=-1), numbers, rows, -1),
        visible=spread(visible, numbers, rows, False),
        error=spread(error, numbers, rows, np.nan),
    )


def read_feed(feed: Feed, numbers: Sequence[int], rows: int) -> FeedFrame:
    """One forward as arrays over all prompts; `numbers` and `rows` as in `read_cache`."""
    allowed = feed.mask[:, 0] == 0
    place = feed.index[:, :, None]
    held = feed.slot_index[:, None]
    seen = feed.span.cut((held >= 0) & (held <= place), place, held)
    should = torch.where(place >= 0, seen, allowed)
    return FeedFrame(
        model=feed.model,
        token=spread(feed.ids, numbers, rows, -1),
        position=spread(feed.positions, numbers, rows, -1),
        expected=spread(feed.index.clamp(min=-1), numbers, rows, -1),
        allowed=spread(allowed, numbers, rows, False),
        should=spread(should, numbers, rows, False),
    )
