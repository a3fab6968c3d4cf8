"""How far the layers of a model look back, and in what form they are told whom to see."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from transformers import PreTrainedConfig

SIZE_SETTINGS = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
"""Kinds of layers that look back over a part of their row, and the setting that holds its size."""


@dataclass(frozen=True)
class Span:
    """The part of its row that a query sees in one kind of layer.

    All kinds keep every slot in the cache, because a slot that was dropped cannot be rolled back;
    what a layer does not see costs memory and is only masked.

    Attributes:
        kind: what the config calls such layers, as `full_attention`.
        size: tokens of the window or chunk; 0 where the layer sees the whole row.
    """

    kind: str
    size: int = 0

    def cut(self, allowed: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Take away from `allowed` what lies out of reach.

        Args:
            allowed: what a layer without limits sees, `[rows, queries, slots]`.
            query: places in the row, `[rows, queries, 1]`: tokens are counted, never slots.
            key: places in the row, `[rows, 1, slots]`.
        """
        if not self.size:
            return allowed
        if self.kind == "chunked_attention":
            return allowed & (query // self.size == key // self.size)
        return allowed & (key > query - self.size)


@dataclass(frozen=True)
class AttentionForm:
    """How one model is told who may attend to whom.

    Attributes:
        spans: its kinds of layers, the one that sees most first.
        by_query: whether it takes a mask for every query; otherwise it is given the visible slots
            alone and applies the causal rule, and any window, by slot itself.
    """

    spans: tuple[Span, ...]
    by_query: bool = True

    def argument(self, masks: dict[str, Tensor], visible: Tensor) -> Tensor | dict[str, Tensor]:
        """What the model's forward is given.

        Args:
            masks: additive, `[rows, 1, queries, slots]`, by kind of layer.
            visible: which slots hold tokens, `[rows, slots]`.
        """
        if not self.by_query:
            return visible.long()
        return masks if len(masks) > 1 else next(iter(masks.values()))


def spans_of(config: PreTrainedConfig) -> tuple[Span, ...]:
    """The kinds of layers a text config describes, the one that sees most first.

    A config that has a window and names no kinds uses the window in all layers.
    """
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if not kinds:
        kinds = {"sliding_attention" if window else "full_attention"}
    sizes = {kind: getattr(config, SIZE_SETTINGS.get(kind, ""), None) or 0 for kind in kinds}
    spans = [Span(kind, size) for kind, size in sizes.items()]
    return tuple(sorted(spans, key=lambda span: (span.size > 0, -span.size, span.kind)))
