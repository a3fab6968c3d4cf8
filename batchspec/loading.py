"""Pairs by name: presets, Hub ids and local folders."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from batchspec import smollm2
from batchspec.checkpoint import VOCABULARY_FILES, Checkpoint
from batchspec.errors import DecodeError
from batchspec.memory import KV_TOKENS, free_bytes, need_of
from batchspec.ngram import NGramDraft
from batchspec.pair import ModelPair
from batchspec.presets import PRESETS, in_bytes
from batchspec.progress import Observer, nobody
from batchspec.smollm2.draft import draft_folder
from batchspec.smollm2.target import target_folder

EMBEDDED = "storyteller"
NGRAM = "ngram"

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}

PROBE_TEXTS = (
    "It's 12,345.60 of them:\n\n\tdef f(x): return x  # Done",
    "naïve café, cafe\u0301, 狐 🦊 안녕",
)
"""Tokenizers with one vocabulary that split these differently have other rules."""


def load_pair(
    target: str | Path = EMBEDDED,
    draft: str | Path | None = None,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    chat: bool | None = None,
    observe: Observer = nobody,
) -> ModelPair:
    """Load a pair by name. Weights come from safetensors only, and no code of a checkpoint runs.

    Args:
        target: a preset of docs/pairs.md, such as `storyteller`, which ships with this package; or
            a local folder or a Hub id.
        draft: `ngram`, or a folder or an id as for the target; None for a preset's own.
        device: as torch names it; `auto` takes CUDA, else MPS, else the CPU. On `auto` and `cuda`
            a target that does not fit the GPU is spread over it and the CPU, by accelerate.
        dtype: `float32`, `bfloat16`, `float16` or `float64`; `auto` is the checkpoint's own on
            CUDA and float32 elsewhere, where half precision is slow and inexact. For the
            storyteller alone, `auto` is float32 on the CPU, whatever there is.
        revision: a branch, tag or commit of the target on the Hub; the draft's is always its main.
        chat: whether texts are put into the tokenizer's chat template; None where it has one.
        observe: told what is being looked up, downloaded or loaded, and how far that is.

    Raises:
        DecodeError: something cannot be loaded or does not fit, or the two do not match.
    """
    name = str(target)
    preset = PRESETS.get(name)
    if draft is None and preset is None:
        raise DecodeError(
            f"Only presets ({', '.join(PRESETS)}) have a draft of their own, and {name!r} needs a "
            f'draft: give draft="{NGRAM}" or a model\'s id.'
        )
    alone = name == EMBEDDED and draft in (None, NGRAM)
    where = choose_device("cpu" if alone and device == "auto" else device)
    precision = choose_dtype("float32" if alone and dtype == "auto" else dtype, where)
    checkpoints = _checkpoints(name, None if draft is None else str(draft), revision, observe)
    tokenizer = _shared_tokenizer(checkpoints)
    shares = None if alone else _shares(checkpoints, where, precision)
    models = [
        checkpoint.model(where, precision, shares if checkpoint.role == "target" else None)
        for checkpoint in checkpoints
    ]
    observe("checking how the models can be decoded", None)
    proposer = NGramDraft() if draft == NGRAM else models[1]
    second = "" if draft is None else ", n-gram draft" if draft == NGRAM else f", draft {draft}"
    examples = preset.examples if preset else ()
    return ModelPair(models[0], proposer, tokenizer, f"{name}{second}", examples, chat)


def choose_device(name: str) -> torch.device:
    """The device of that name, or the fastest kind there is for `auto`.

    Raises:
        DecodeError: there is none of that name here.
    """
    counts = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    present = [kind for kind, count in counts.items() if count]
    if name == "auto":
        return torch.device(present[0])
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or (device.index or 0) >= counts.get(device.type, 0):
        raise DecodeError(
            f"There is no device {name!r} here: choose {', '.join(['auto', *present])}."
        )
    return device


def choose_dtype(name: str, device: torch.device) -> torch.dtype | str:
    """The precision of that name; `auto` stays what it is where the checkpoint's own serves well.

    Raises:
        DecodeError: there is none of that name.
    """
    if name == "auto":
        return "auto" if device.type == "cuda" else torch.float32
    if name not in DTYPES:
        raise DecodeError(f"Unknown dtype {name!r}: choose {', '.join(['auto', *DTYPES])}.")
    return DTYPES[name]


def _checkpoints(
    target: str, draft: str | None, revision: str | None, observe: Observer
) -> list[Checkpoint]:
    """The target and, where it is a model, the draft."""
    preset = PRESETS.get(target)
    place, own = (preset.target, preset.draft) if preset else (target, None)
    if target == smollm2.NAME:
        place = str(target_folder(observe))
        own = str(draft_folder(Path(place))) if draft is None else own
    places = [("target", target, place, revision)]
    if draft is None and own is not None:
        places.append(("draft", target, own, None))
    elif draft is not None and draft != NGRAM:
        places.append(("draft", draft, draft, None))
    return [
        Checkpoint(role, name if Path(place).is_dir() else place, place, commit, observe)
        for role, name, place, commit in places
    ]


def _shares(
    checkpoints: list[Checkpoint], device: torch.device, dtype: torch.dtype | str
) -> dict[int | str, int] | None:
    """Bytes the target may take on the GPU and on the CPU; None where all fits the device.

    Raises:
        DecodeError: it fits nowhere.
    """
    found = [need_of(checkpoint.config, dtype, device) for checkpoint in checkpoints]
    needs = [need for need in found if need is not None]
    weights, kv = sum(need.weights for need in needs), sum(need.kv for need in needs)
    free = free_bytes(device)
    if weights + kv <= free or found[0] is None:
        return None
    advice = "choose a smaller pair"
    if device.type == "cuda" and device.index is None:
        beside = weights + kv - found[0].weights
        shares = {0: free - beside, "cpu": free_bytes(torch.device("cpu"))}
        if min(shares.values()) > 0 and sum(shares.values()) >= found[0].weights:
            if find_spec("accelerate"):
                return shares
            advice = "install accelerate to spread it over GPU and CPU, or choose a smaller pair"
    elif dtype in (torch.float32, torch.float64):
        advice += ', or dtype="bfloat16"'
    raise DecodeError(
        f"The pair needs about {in_bytes(weights)} for its weights and {in_bytes(kv)} for the K/V "
        f"of {KV_TOKENS} tokens, but {device} has {in_bytes(free)} free: {advice}."
    )


def _shared_tokenizer(checkpoints: list[Checkpoint]) -> PreTrainedTokenizerBase:
    """The target's tokenizer, which the draft's must agree with if it has one.

    Raises:
        DecodeError: the target has none, or the two differ.
    """
    first, *others = [checkpoint.tokenizer() for checkpoint in checkpoints]
    target, draft = checkpoints[0], checkpoints[-1]
    if first is None:
        raise DecodeError(
            f"The target {target.name!r} has no tokenizer: add its {VOCABULARY_FILES[0]}, or make "
            "a ModelPair of models you load yourself."
        )
    if not others or others[0] is None:
        return first
    names = f"the target {target.name!r} and the draft {draft.name!r}"
    differing = _differing(first.get_vocab(), others[0].get_vocab())
    if differing:
        raise DecodeError(
            f"The tokenizers of {names} differ in {differing} entries: choose a draft made for "
            "this target."
        )
    for text in PROBE_TEXTS:
        if _ids(target, first, text) != _ids(draft, others[0], text):
            raise DecodeError(
                f"The tokenizers of {names} differ in 0 entries but split {text!r} differently: "
                "choose a draft made for this target."
            )
    return first


def _differing(mine: dict[str, int], other: dict[str, int]) -> int:
    """How many ids mean one token here and another there.

    What only one of them knows, such as a draft's further special tokens, costs acceptance alone.
    """
    by_id = {token_id: token for token, token_id in other.items()}
    return sum(
        by_id.get(token_id, token) != token or other.get(token, token_id) != token_id
        for token, token_id in mine.items()
    )


def _ids(checkpoint: Checkpoint, tokenizer: PreTrainedTokenizerBase, text: str) -> Any:
    with checkpoint.told("tokenizer of the "):
        return tokenizer(text, add_special_tokens=False)["input_ids"]
