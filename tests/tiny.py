"""Tiny random models on which wrong positions, masks or caches change the tokens."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import transformers
from torch import nn
from transformers import DynamicCache, PreTrainedModel

from batchspec import DecodeConfig, ModelPair, decode
from batchspec.strategies import STRATEGIES

VOCABULARY = 97
ROWS = [[5, 9, 13], [7, 8, 11, 4, 6, 20, 33, 41, 55, *range(60, 71)], [44]]
FAMILIES = ("llama", "gpt2", "qwen3")
DRAFTS = ("copy", "noisy", "other")
CORRECT = tuple(name for name, strategy in STRATEGIES.items() if strategy.correct)
SPECULATIVE = tuple(name for name in CORRECT if STRATEGIES[name].speculative)
KEEPING = tuple(name for name in SPECULATIVE if name != "rollback")
"""Strategies in which a row keeps all it wins, whatever its neighbours do."""
LONGEST = 24
"""New tokens that `written` can give."""

_SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
_ALIKE = {**_SHAPE, "num_key_value_heads": 4}
_NEO = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_layers": 2,
    "num_heads": 4,
    "max_position_embeddings": 128,
    "attention_types": [[["global", "local"], 1]],
}
_MAMBA = {"mamba_d_state": 4, "use_mamba_kernels": False}
_SCALE = {"bloom": 3.0, "gemma2": 3.0, "gemma3": 3.0, "falcon alibi": 5.0, "zamba": 3.0}
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "bloom": (
        "Bloom",
        {"hidden_size": 32, "n_layer": 2, "n_head": 4, "tie_word_embeddings": False},
    ),
    "falcon": ("Falcon", {**_ALIKE, "alibi": False}),
    "falcon alibi": ("Falcon", {**_ALIKE, "alibi": True}),
    "gemma2": (
        "Gemma2",
        {**_SHAPE, "head_dim": 8, "tie_word_embeddings": False, "sliding_window": 8},
    ),
    "gemma3": (
        "Gemma3",
        {
            **_SHAPE,
            "head_dim": 8,
            "tie_word_embeddings": False,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "gpt2": ("GPT2", {"n_positions": 128, "n_embd": 32, "n_inner": 64, "n_layer": 2, "n_head": 4}),
    "gpt_neo": ("GPTNeo", {**_NEO, "window_size": 8}),
    "gpt_neo wide": ("GPTNeo", {**_NEO, "window_size": 256}),
    "gpt_neox": ("GPTNeoX", _ALIKE),
    "jamba": (
        "Jamba",
        {**_SHAPE, **_MAMBA, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2},
    ),
    "llama": ("Llama", _SHAPE),
    "llama4": (
        "Llama4",
        {
            **_SHAPE,
            "head_dim": 8,
            "attention_chunk_size": 8,
            "moe_layers": [],
            "layer_types": ["chunked_attention", "full_attention"],
            "no_rope_layers": [1, 0],
        },
    ),
    "mamba": ("Mamba", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}),
    "mistral": ("Mistral", {**_SHAPE, "sliding_window": None}),
    "mistral sliding": ("Mistral", {**_SHAPE, "sliding_window": 8}),
    "mixtral": ("Mixtral", {**_SHAPE, "num_local_experts": 4, "sliding_window": None}),
    "mpt": (
        "Mpt",
        {
            "d_model": 32,
            "n_layers": 2,
            "n_heads": 4,
            "max_seq_len": 128,
            "tie_word_embeddings": False,
        },
    ),
    "opt": ("OPT", {**_ALIKE, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "phi3": ("Phi3", {**_SHAPE, "sliding_window": 8}),
    "phi3 longrope": (
        "Phi3",
        {
            **_SHAPE,
            "original_max_position_embeddings": 16,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0] * 4,
                "long_factor": [4.0] * 4,
            },
        },
    ),
    "qwen3": ("Qwen3", {**_SHAPE, "head_dim": 8}),
    "zamba": (
        "Zamba",
        {
            **_SHAPE,
            **_MAMBA,
            "num_hidden_layers": 6,
            "attn_layer_period": 3,
            "attn_layer_offset": 2,
        },
    ),
}


def tiny(
    family: str = "llama",
    seed: int = 0,
    scale: float | None = None,
    vocabulary: int = VOCABULARY,
    attention: str | None = None,
) -> PreTrainedModel:
    """A random model whose weights are scaled up, so that it does not repeat one token."""
    name, shape = _KINDS[family]
    config_name = f"{name}TextConfig" if name in ("Gemma3", "Llama4") else f"{name}Config"
    model_name = "GPT2LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM"
    special = {"vocab_size": vocabulary, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(seed)
    config = getattr(transformers, config_name)(**copy.deepcopy(shape), **special)
    config._attn_implementation = attention
    model: PreTrainedModel = getattr(transformers, model_name)(config).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(scale or _SCALE.get(family, 8.0))
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


@cache
def shared_pair(family: str = "llama", draft: str = "noisy") -> ModelPair:
    """One pair for all tests; none of them may change it."""
    target = tiny(family)
    drafts = {
        "copy": lambda: copy.deepcopy(target),
        "noisy": lambda: noisy(target),
        "other": lambda: tiny(family, seed=5),
    }
    return ModelPair(target, drafts[draft]())


@cache
def _written(family: str, row: tuple[int, ...]) -> list[int]:
    return reference(shared_pair(family).target, list(row), LONGEST)


def written(
    family: str, row: Sequence[int], count: int = LONGEST, eos: tuple[int, ...] = ()
) -> list[int]:
    """What `reference` gives for the shared pair of a family, computed once a row."""
    tokens = _written(family, tuple(row))[:count]
    ends = [place for place, token in enumerate(tokens) if token in eos]
    return tokens[: ends[0] + 1] if ends else tokens


def all_written(
    family: str, rows: Sequence[Sequence[int]], count: int = LONGEST, eos: tuple[int, ...] = ()
) -> list[list[int]]:
    """`written` for every row."""
    return [written(family, row, count, eos) for row in rows]


@cache
def _proposed(family: str, draft: str, row: tuple[int, ...], count: int) -> list[int]:
    return reference(shared_pair(family, draft).draft, list(row), count)


def accepted_by_round(
    family: str, draft: str, row: Sequence[int], tokens: list[int], budget: int, width: int
) -> list[tuple[int, int]]:
    """Drafted and accepted tokens of each round of one row, played through without any cache.

    Nothing after the last of `tokens`, an EOS perhaps, counts as accepted.

    Args:
        family, draft: which pair.
        row: the prompt.
        tokens: what the target alone writes after it.
        budget: new tokens the row was allowed.
        width: tokens drafted a round.
    """
    rounds = []
    done = 0
    while done < len(tokens):
        drafted = min(width, budget - done - 1)
        proposal = _proposed(family, draft, (*row, *tokens[:done]), drafted)
        accepted = 0
        for mine, right in zip(proposal, tokens[done:], strict=False):
            if mine != right:
                break
            accepted += 1
        rounds.append((drafted, accepted))
        done += accepted + 1
    return rounds


def assert_telling(texts: Sequence[Sequence[int]]) -> None:
    """Rows that repeat one or two tokens would hide a wrong decoder."""
    assert all(len(set(tokens)) >= 3 for tokens in texts), texts


def assert_ragged(pair: ModelPair, prompts: Sequence[Sequence[int]], config: DecodeConfig) -> None:
    """A batch whose rows always accept alike would hide a wrong decoder."""
    won = [
        {len(tokens) for tokens in step.verdict.committed}
        for step in decode(pair, prompts, config)
        if step.phase == "verify" and step.verdict is not None
    ]
    assert any(len(counts) > 1 for counts in won), won


@torch.no_grad()
def clean_layers(model: PreTrainedModel, tokens: Sequence[int]) -> list[list[torch.Tensor]]:
    """Keys and values, `[kv_heads, tokens, head_dim]`, of each layer after one full forward."""
    output = model(input_ids=torch.tensor([list(tokens)]), use_cache=True)
    filled = next(value for value in output.values() if isinstance(value, DynamicCache))
    return [[layer.keys[0], layer.values[0]] for layer in filled.layers]


def worst_error(found: list[torch.Tensor], clean: list[torch.Tensor]) -> torch.Tensor:
    """The largest |found - clean| / |clean| per token, over tensors as in `clean_layers`."""
    errors = [
        (mine - right).norm(dim=(0, 2)) / right.norm(dim=(0, 2))
        for mine, right in zip(found, clean, strict=True)
    ]
    return torch.stack(errors).max(0).values


@contextmanager
def watched(module: nn.Module) -> Iterator[list[dict[str, Any]]]:
    """Collect the keyword arguments of every forward of `module`."""
    calls: list[dict[str, Any]] = []

    def note(_module: nn.Module, _inputs: Any, arguments: dict[str, Any]) -> None:
        calls.append(dict(arguments))

    handle = module.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield calls
    finally:
        handle.remove()
