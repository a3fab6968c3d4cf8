"""What a model can do, asked of its config and of small forwards, never of its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig, PreTrainedModel

from batchspec.attention import SIZE_SETTINGS, AttentionForm, Span, spans_of
from batchspec.cached_model import (
    PAD,
    CachedModel,
    attention_layers,
    cache_argument,
    positions_by_token,
)
from batchspec.errors import DecodeError

LAYOUT_BOUND = 0.05
"""Relative difference of logits above which a change of layout is no rounding."""

HALF_PRECISION_BOUND = 0.25
"""The same between two attention kernels in half precision, which round differently."""

PROBED_SIZE = 2
"""Tokens to which windows and chunks are set while the probes run."""

_TOKENS = [1, 2, 3, 4, 5]
_FAILURES = (TypeError, ValueError, AttributeError, IndexError, RuntimeError, KeyError)


@dataclass(frozen=True)
class Abilities:
    """What the probes found.

    Attributes:
        attention: the form in which the model takes its mask.
        skips_holes: whether hidden slots inside a row leave its results alone.
        obeys_mask: whether the mask alone decides what a query sees, wherever its K/V lie.
    """

    attention: AttentionForm
    skips_holes: bool
    obeys_mask: bool


def context_length(model: PreTrainedModel) -> int:
    """Tokens the model's context holds; positions without end count as 2**31."""
    config = model.config.get_text_config()
    for name in ("max_position_embeddings", "max_seq_len"):
        limit = getattr(config, name, None)
        if isinstance(limit, int):
            return limit
    return 2**31


@torch.inference_mode()
def probe(role: str, model: PreTrainedModel) -> Abilities:
    """Find out how `model` can be decoded in a batch; it must be in evaluation mode.

    Args:
        role: `target` or `draft`, for messages.
        model: the model.

    Raises:
        DecodeError: it cannot; the message says why.
    """
    kind = f"The {role} {type(model).__name__}"
    if model.config.is_encoder_decoder:
        raise DecodeError(f"{kind} is an encoder-decoder; only decoder-only models work.")
    config = model.config.get_text_config()
    _check_scaling(kind, config)
    _check_temperature(kind, model)
    _check_cache(kind, model)
    form = AttentionForm(spans_of(config))
    _check_kinds(kind, form)
    with _short_spans(config, form) as probed:
        found = _form_of(kind, model, probed)
        # Where a table as long as the context hides slots, holes must also not outgrow it.
        table = _has_slot_table(model)
        skips_holes = _skips_holes(model, found, context_length(model) if table else 1)
    return Abilities(
        attention=replace(form, by_query=found.by_query),
        skips_holes=skips_holes,
        obeys_mask=found.by_query and (skips_holes or not table),
    )


def _check_scaling(kind: str, config: PreTrainedConfig) -> None:
    scaling = _rope_types(config) & {"dynamic", "longrope"}
    if scaling:
        raise DecodeError(
            f"{kind} scales its rotary positions ({scaling.pop()}) by the longest sequence of the "
            "batch, so a row would depend on its neighbours; choose a model with fixed scaling."
        )


def _check_temperature(kind: str, model: PreTrainedModel) -> None:
    config = model.config.get_text_config()
    floor = getattr(config, "floor_scale", 2**31)
    if getattr(config, "attn_temperature_tuning", False) and floor < context_length(model):
        raise DecodeError(
            f"{kind} sharpens its attention by cache slot from slot {floor} on, which padding "
            "would shift; set attn_temperature_tuning to False or choose another model."
        )


def _rope_types(config: PreTrainedConfig) -> set[str]:
    """Names of the rotary scalings, which some configs hold per kind of layer."""
    found = set()
    waiting = [getattr(config, name, None) for name in ("rope_parameters", "rope_scaling")]
    while waiting:
        parameters = waiting.pop()
        if isinstance(parameters, dict):
            found |= {parameters.get("rope_type"), parameters.get("type")}
            waiting += parameters.values()
    return {name for name in found if isinstance(name, str)}


def _check_cache(kind: str, model: PreTrainedModel) -> None:
    """A forward over two tokens must leave two slots in every layer of a plain cache."""
    cache = DynamicCache()
    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    problem = None
    try:
        model(input_ids=ids, use_cache=True, **{cache_argument(model): cache})
    except _FAILURES as error:
        problem = error
    layers = attention_layers(cache)
    if len(layers) != len(cache.layers) or not layers or layers[0].get_seq_length() != 2:
        raise DecodeError(
            f"{kind} keeps a recurrent state instead of one cache entry a token, so rollback is "
            "impossible for this layer type; choose a model with full attention."
        ) from problem
    if problem is not None:
        raise DecodeError(f"{kind} cannot run a forward with a cache: {problem}.") from problem


def _check_kinds(kind: str, form: AttentionForm) -> None:
    strange = {span.kind for span in form.spans} - {"full_attention", *SIZE_SETTINGS}
    if strange:
        raise DecodeError(
            f"{kind} has layers of the kind {min(strange)}, whose reach over a padded row is not "
            f"known; choose a model with {', '.join(['full_attention', *SIZE_SETTINGS])} only."
        )


@contextmanager
def _short_spans(config: PreTrainedConfig, form: AttentionForm) -> Iterator[AttentionForm]:
    """Shorten windows and chunks in `config` for a while, so that five tokens exceed them."""
    names = [SIZE_SETTINGS[span.kind] for span in form.spans if span.size]
    settings = {name: getattr(config, name) for name in names}
    for name in settings:
        setattr(config, name, PROBED_SIZE)
    try:
        spans = (Span(span.kind, PROBED_SIZE if span.size else 0) for span in form.spans)
        yield replace(form, spans=tuple(spans))
    finally:
        for name, size in settings.items():
            setattr(config, name, size)


def _form_of(kind: str, model: PreTrainedModel, form: AttentionForm) -> AttentionForm:
    """The first form in which a row comes out the same behind a pad as alone."""
    ids = torch.tensor([_TOKENS], device=model.device)
    alone = model(input_ids=ids, use_cache=False).logits
    bound = LAYOUT_BOUND if model.dtype.itemsize > 2 else HALF_PRECISION_BOUND
    reasons = []
    for candidate in (form, replace(form, by_query=False)):
        try:
            difference = _difference(_behind_a_pad(model, candidate), alone)
        except _FAILURES as error:
            reasons.append(f"fails ({str(error).splitlines()[0]:.80})")
            continue
        if difference <= bound:
            return candidate
        reasons.append(f"gives other results ({difference:.0%} off)")
    raise DecodeError(
        f"{kind} cannot keep a row apart from left pads: with a mask a query it {reasons[0]}, "
        f"with a mask a slot it {reasons[1]}; choose a model with explicit positions."
    )


def _behind_a_pad(model: PreTrainedModel, form: AttentionForm) -> Tensor:
    """Logits of the probe's tokens after one left pad."""
    cached = CachedModel("probe", model, positions_by_token, form)
    cached.reset([1])
    ids = torch.tensor([[0, *_TOKENS]], device=cached.device)
    index = torch.arange(PAD, len(_TOKENS), device=cached.device)[None]
    return torch.cat(
        [cached.feed(ids[:, :4], index[:, :4]), cached.feed(ids[:, 4:], index[:, 4:])], 1
    )


def _skips_holes(model: PreTrainedModel, form: AttentionForm, holes: int) -> bool:
    """Whether the last of the probe's tokens come out the same after so many hidden slots."""
    cached = CachedModel("probe", model, positions_by_token, form)
    ids = torch.tensor([_TOKENS], device=cached.device)
    index = torch.arange(len(_TOKENS), device=cached.device)[None]
    cached.reset([0])
    cached.feed(ids[:, :2], index[:, :2])
    cached.gather([0], torch.tensor([[0, 1, *[-1] * holes]], device=cached.device))
    try:
        found = cached.feed(ids[:, 2:], index[:, 2:])
    except _FAILURES:
        return False
    return _difference(found, _behind_a_pad(model, form)) <= LAYOUT_BOUND


def _difference(found: Tensor, right: Tensor) -> float:
    """The relative difference of the last queries, as many as both have."""
    count = min(found.shape[1], right.shape[1])
    found, right = found[:, -count:].double(), right[:, -count:].double()
    return float((found - right).norm() / right.norm().clamp(min=1e-12))


def _has_slot_table(model: PreTrainedModel) -> bool:
    """Whether the model holds a table of who sees whom, as wide and as high as its context."""
    context = context_length(model)
    return any(buffer.shape[-2:] == (context, context) for buffer in model.buffers())
