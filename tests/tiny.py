"""Tiny random models on which wrong positions, masks or caches change the tokens."""

from __future__ import annotations

import copy

import torch
from torch import nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCABULARY = 97
ROWS = [[5, 9, 13], [7, 8, 11, 4, 6, 20, 33, 41, 55, *range(60, 71)], [44]]


def tiny(
    family: str = "llama", seed: int = 0, scale: float = 8.0, vocabulary: int = VOCABULARY
) -> PreTrainedModel:
    """A random model whose weights are scaled up, so that it does not repeat one token."""
    shape = {"vocab_size": vocabulary, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(seed)
    if family == "gpt2":
        config = GPT2Config(n_positions=128, n_embd=32, n_inner=64, n_layer=2, n_head=4, **shape)
        model: PreTrainedModel = GPT2LMHeadModel(config)
    else:
        makers = {
            "llama": (LlamaConfig, LlamaForCausalLM, {}),
            "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 8}),
        }
        config_class, model_class, extra = makers[family]
        config = config_class(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=128,
            **extra,
            **shape,
        )
        model = model_class(config)
    model = model.float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(scale)
    return model


def noisy(model: PreTrainedModel, amount: float = 0.05, seed: int = 1) -> PreTrainedModel:
    """A draft that agrees with `model` on some tokens: a copy with noise on its weights."""
    torch.manual_seed(seed)
    draft = copy.deepcopy(model)
    with torch.no_grad():
        parameter: nn.Parameter
        for parameter in draft.parameters():
            if parameter.numel() > 1:
                parameter.add_(amount * parameter.std() * torch.randn_like(parameter))
    return draft


@torch.no_grad()
def reference(
    model: PreTrainedModel, row: list[int], count: int, eos: tuple[int, ...] = ()
) -> list[int]:
    """Greedy tokens by full forwards: no batch, no padding, no cache."""
    tokens = list(row)
    for _ in range(count):
        logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits
        tokens.append(int(logits[0, -1].argmax()))
        if tokens[-1] in eos:
            break
    return tokens[len(row) :]
