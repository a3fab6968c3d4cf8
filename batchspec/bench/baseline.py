"""What speculative decoding has to beat: transformers' own batched `generate`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig

from batchspec.config import DecodeConfig
from batchspec.decoding import eos_of
from batchspec.pair import ModelPair, evaluation_mode
from batchspec.row import Row
from batchspec.shared_keys import plain_attention


@torch.inference_mode()
def generate_plainly(pair: ModelPair, rows: list[Row], config: DecodeConfig) -> list[list[int]]:
    """Decode greedily by the target's `generate`, in consecutive left-padded batches.

    Args:
        pair: whose target runs; the draft does not.
        rows: as `start_rows` gives them; they are left as they are.
        config: batch size, new tokens and EOS ids; the rest does not apply.

    Returns:
        New tokens of each row, EOS kept.
    """
    eos = eos_of(pair, config)
    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=config.max_new_tokens,
        # Without any it would ask the model's own settings, so none is an id no token has.
        eos_token_id=list(eos) or [pair.vocabulary_size],
        pad_token_id=pair.filler_token_id,
    )
    target: Any = pair.target  # torch's stubs take its methods for tensors
    found = []
    with evaluation_mode(pair.target), plain_attention(pair.target):
        for start in range(0, len(rows), config.batch_size):
            batch = rows[start : start + config.batch_size]
            ids, mask = _left_padded(pair, batch)
            written = target.generate(
                input_ids=ids, attention_mask=mask, generation_config=settings
            )
            new = written[:, ids.shape[1] :].tolist()
            found += [row.cut(tokens, eos) for row, tokens in zip(batch, new, strict=True)]
    return found


def _left_padded(pair: ModelPair, batch: list[Row]) -> tuple[Tensor, Tensor]:
    """Ids and mask, `[rows, longest prompt]`."""
    width = max(row.length for row in batch)
    pads = [width - row.length for row in batch]
    ids = [[pair.filler_token_id] * pad + row.prompt for pad, row in zip(pads, batch, strict=True)]
    mask = [[0] * pad + [1] * (width - pad) for pad in pads]
    device = pair.target.device
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)
