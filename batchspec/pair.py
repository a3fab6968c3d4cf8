"""The two models of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from batchspec import storyteller
from batchspec.cached_model import (
    PAD,
    CachedModel,
    attention_layers,
    cache_argument,
    positions_by_token,
)
from batchspec.errors import DecodeError
from batchspec.ngram import NGramDraft

PROBE_BOUND = 0.05
"""Relative difference of logits above which a change of layout is no rounding."""


class ModelPair:
    """A target, the draft that proposes for it, and their tokenizer.

    Attributes:
        target: the verifying model.
        draft: the proposing model, with the target's vocabulary, or an n-gram draft.
        tokenizer: needed for prompts given as text and for texts in results.
        name: shown to people.
        examples: prompts that show the pair well; may be empty.
        skips_holes: whether hidden slots inside a row leave both models' results alone.
    """

    def __init__(
        self,
        target: PreTrainedModel,
        draft: PreTrainedModel | NGramDraft,
        tokenizer: PreTrainedTokenizerBase | None = None,
        name: str = "",
        examples: tuple[str, ...] = (),
    ) -> None:
        """Check that the two can work together.

        Raises:
            DecodeError: a model that cannot be decoded this way, or two that do not match.
        """
        _check_model("target", target)
        if not isinstance(draft, NGramDraft):
            _check_model("draft", draft)
            self._check_vocabularies(target, draft)
        self.target = target
        self.draft = draft
        self.tokenizer = tokenizer
        self.name = name or type(target).__name__
        self.examples = examples
        errors = (_gap_error(model, gap_at=2) for model in self.models)
        self.skips_holes = all(error <= PROBE_BOUND for error in errors)

    @staticmethod
    def _check_vocabularies(target: PreTrainedModel, draft: PreTrainedModel) -> None:
        sizes = _vocabulary(target), _vocabulary(draft)
        if sizes[0] != sizes[1]:
            raise DecodeError(
                f"Target and draft must share one vocabulary, but the target has {sizes[0]} "
                f"entries and the draft {sizes[1]}: choose a draft made for this target."
            )

    @property
    def models(self) -> list[PreTrainedModel]:
        """The target and, where it is a model, the draft."""
        return [self.target] if isinstance(self.draft, NGramDraft) else [self.target, self.draft]

    @property
    def context_length(self) -> int:
        """Tokens the shorter context of the models holds."""
        return min(map(_context, self.models))

    @property
    def vocabulary_size(self) -> int:
        """Entries of the shared vocabulary."""
        return _vocabulary(self.target)

    @property
    def filler_token_id(self) -> int:
        """The id fed where a row has nothing to feed; never told apart by its value."""
        pad = getattr(self.target.generation_config, "pad_token_id", None)
        return pad if isinstance(pad, int) and 0 <= pad < self.vocabulary_size else 0

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Ids that end a row, as the target's generation config has them."""
        ids = getattr(self.target.generation_config, "eos_token_id", None)
        if ids is None:
            return ()
        return (ids,) if isinstance(ids, int) else tuple(ids)


def load_pair(target: str = "storyteller") -> ModelPair:
    """Load a pair by name.

    Args:
        target: `storyteller`, the pair that ships with this package.

    Raises:
        DecodeError: there is no pair of that name.
    """
    if target != "storyteller":
        raise DecodeError(f"Unknown pair {target!r}: choose storyteller.")
    models = [
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
        for folder in (storyteller.TARGET_FOLDER, storyteller.DRAFT_FOLDER)
    ]
    tokenizer = AutoTokenizer.from_pretrained(storyteller.TARGET_FOLDER, local_files_only=True)
    return ModelPair(models[0], models[1], tokenizer, target, tuple(storyteller.EXAMPLES))


@contextmanager
def evaluation_mode(*models: PreTrainedModel) -> Iterator[None]:
    """Switch dropout off and leave the models as they were."""
    training = [module for model in models for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _vocabulary(model: PreTrainedModel) -> int:
    return model.get_output_embeddings().weight.shape[0]


def _context(model: PreTrainedModel) -> int:
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return limit if isinstance(limit, int) else 2**31


def _check_model(role: str, model: PreTrainedModel) -> None:
    kind = f"The {role} {type(model).__name__}"
    if model.config.is_encoder_decoder:
        raise DecodeError(f"{kind} is an encoder-decoder; only decoder-only models work.")
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    if window and window < _context(model) and "sliding_attention" in _layer_types(config, window):
        raise DecodeError(
            f"{kind} attends through a sliding window of {window} tokens, whose cache cannot be "
            "rolled back row by row; choose a model with full attention."
        )
    if "chunked_attention" in _layer_types(config, window):
        raise DecodeError(
            f"{kind} attends in chunks, counted by cache slot, which padding would shift; choose a "
            "model with full attention."
        )
    scaling = _rope_types(config) & {"dynamic", "longrope"}
    if scaling:
        raise DecodeError(
            f"{kind} scales its rotary positions ({scaling.pop()}) by the longest sequence of the "
            "batch, so a row would depend on its neighbours; choose a model with fixed scaling."
        )
    _check_cache(kind, model)
    _check_padding(kind, model)


def _layer_types(config: PreTrainedConfig, window: int | None) -> set[str]:
    """Kinds of attention; a config that has a window and names no kinds uses it in all layers."""
    types = getattr(config, "layer_types", None)
    return set(types) if types else ({"sliding_attention"} if window else set())


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


@torch.inference_mode()
def _check_cache(kind: str, model: PreTrainedModel) -> None:
    """A forward over two tokens must leave two slots in every layer of a plain cache."""
    cache = DynamicCache()
    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    problem = None
    try:
        model(input_ids=ids, use_cache=True, **{cache_argument(model): cache})
    except (TypeError, ValueError, AttributeError, IndexError, RuntimeError, KeyError) as error:
        problem = error
    layers = attention_layers(cache)
    if len(layers) != len(cache.layers) or not layers or layers[0].get_seq_length() != 2:
        raise DecodeError(
            f"{kind} keeps a recurrent state instead of one cache entry a token, so rollback is "
            "impossible for this layer type; choose a model with full attention."
        ) from problem
    if problem is not None:
        raise DecodeError(f"{kind} cannot run a forward with a cache: {problem}.") from problem


def _check_padding(kind: str, model: PreTrainedModel) -> None:
    """A row must come out the same behind left pads as alone."""
    try:
        difference = _gap_error(model, gap_at=0)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        raise DecodeError(
            f"{kind} does not take an attention mask of four dimensions, which keeps the rows of a "
            "ragged batch apart; choose a model without ALiBi."
        ) from error
    if difference > PROBE_BOUND:
        raise DecodeError(
            f"{kind} gives a row other results behind left pads than alone (by {difference:.0%}), "
            "so it cannot be decoded in a batch; choose a model with explicit positions."
        )


@torch.inference_mode()
def _gap_error(model: PreTrainedModel, gap_at: int) -> float:
    """How much a hidden slot among three tokens changes the last one's logits, relatively."""
    tokens = [1, 2, 3]
    index = [0, 1, 2]
    alone = CachedModel("probe", model, positions_by_token)
    gapped = CachedModel("probe", model, positions_by_token)
    logits = []
    with evaluation_mode(model):
        for cached, gap in ((alone, 0), (gapped, 1)):
            cached.reset([0])
            ids = tokens[:gap_at] + [0] * gap + tokens[gap_at:]
            places = index[:gap_at] + [PAD] * gap + index[gap_at:]
            device = cached.device
            logits.append(
                cached.feed(
                    torch.tensor([ids], device=device),
                    torch.tensor([places], device=device),
                    logits=1,
                ).double()
            )
    right, found = logits
    return float((found - right).norm() / right.norm().clamp(min=1e-12))
