"""The two models of a run."""

from __future__ import annotations

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from batchspec import storyteller
from batchspec.cached_model import attention_layers, cache_argument
from batchspec.errors import DecodeError


class ModelPair:
    """A target, the draft that proposes for it, and their tokenizer.

    Attributes:
        target: the verifying model.
        draft: the proposing model, with the target's vocabulary.
        tokenizer: needed for prompts given as text and for texts in results.
        name: shown to people.
        examples: prompts that show the pair well; may be empty.
    """

    def __init__(
        self,
        target: PreTrainedModel,
        draft: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        name: str = "",
        examples: tuple[str, ...] = (),
    ) -> None:
        """Check that the two can work together.

        Raises:
            DecodeError: a model that cannot be decoded this way, or two that do not match.
        """
        for role, model in (("target", target), ("draft", draft)):
            _check_model(role, model)
        sizes = _vocabulary(target), _vocabulary(draft)
        if sizes[0] != sizes[1]:
            raise DecodeError(
                f"Target and draft must share one vocabulary, but the target has {sizes[0]} "
                f"entries and the draft {sizes[1]}: choose a draft made for this target."
            )
        self.target = target
        self.draft = draft
        self.tokenizer = tokenizer
        self.name = name or type(target).__name__
        self.examples = examples

    @property
    def context_length(self) -> int:
        """Tokens the shorter context of the two models holds."""
        return min(_context(self.target), _context(self.draft))

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


def _vocabulary(model: PreTrainedModel) -> int:
    return model.get_output_embeddings().weight.shape[0]


def _context(model: PreTrainedModel) -> int:
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return limit if isinstance(limit, int) else 2**31


def _check_model(role: str, model: PreTrainedModel) -> None:
    kind = type(model).__name__
    if model.config.is_encoder_decoder:
        raise DecodeError(
            f"The {role} {kind} is an encoder-decoder; only decoder-only models work."
        )
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    layers = getattr(config, "layer_types", None) or ()
    if window and "sliding_attention" in layers and window < _context(model):
        raise DecodeError(
            f"The {role} {kind} attends through a sliding window of {window} tokens, whose cache "
            "cannot be rolled back row by row; choose a model with full attention."
        )
    if not _caches_every_token(model):
        raise DecodeError(
            f"The {role} {kind} keeps a recurrent state instead of one cache entry a token, so "
            "rollback is impossible for this layer type; choose a model with full attention."
        )


@torch.inference_mode()
def _caches_every_token(model: PreTrainedModel) -> bool:
    """Whether a forward over two tokens leaves two slots in every layer of a plain cache."""
    if not hasattr(model, "get_output_embeddings") or model.get_output_embeddings() is None:
        return False
    cache = DynamicCache()
    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    try:
        model(input_ids=ids, use_cache=True, **{cache_argument(model): cache})
    except (TypeError, ValueError, AttributeError, IndexError, RuntimeError, KeyError):
        return False
    layers = attention_layers(cache)
    return len(layers) == len(cache.layers) > 0 and all(
        layer.keys is not None and layer.keys.shape[2] == 2 for layer in layers
    )
