"""A model, its KV cache, and what is known of every cache slot."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from batchspec.attention import AttentionForm, Span

PAD, REJECTED, FREE = -1, -2, -3
"""Values of `CachedModel.index` for slots that hold no token of the row's sequence."""


@dataclass(frozen=True)
class Feed:
    """One forward as it was really fed.

    Attributes:
        model: `target` or `draft`.
        ids, positions, index: `[rows, queries]`, see `CachedModel`.
        slot_index: the index of every slot then in the cache, `[rows, slots]`.
        mask: the additive attention mask, `[rows, 1, queries, slots]`; of the layers that see most,
            where a model has several kinds.
        span: the reach of those layers.
        logits: what `feed` gave back, `[rows, queries, vocabulary]`; None where nobody needs them.
    """

    model: str
    ids: Tensor
    positions: Tensor
    index: Tensor
    slot_index: Tensor
    mask: Tensor
    span: Span
    logits: Tensor | None


class CachedModel:
    """One model of the pair with its cache, one cache row per batch row.

    Attributes:
        ids: the token whose K/V a slot holds, `[rows, slots]`.
        positions: the position ID it was fed with, `[rows, slots]`.
        index: its place in the row's sequence, or `PAD`, `REJECTED` or `FREE`, `[rows, slots]`.
        visible: whether queries may attend to the slot, `[rows, slots]`.
        pads: slots before each row's first token.
        fed_rows: the rows that a forward runs over.
        feeds: the forwards since the driver last took them.
    """

    def __init__(
        self,
        name: str,
        model: PreTrainedModel,
        position_rule: PositionRule,
        attention: AttentionForm,
        vocabulary: int | None = None,
    ) -> None:
        """Wrap a model.

        Args:
            name: `target` or `draft`.
            model: the model.
            position_rule: gives the position IDs of every feed.
            attention: how the model is told who may attend to whom.
            vocabulary: entries that logits shall have where not the model's own: those it lacks
                are impossible, those beyond are cut.
        """
        self.name = name
        self.attention = attention
        self.vocabulary = vocabulary
        self.model = model
        self.device = model.device
        self.position_rule = position_rule
        self._cache_argument = cache_argument(model)
        self._cuts_logits = "logits_to_keep" in forward_parameters(model)
        self._lacks_ids = vocabulary is not None and embedding_entries(model) < vocabulary
        # Large enough to hide a slot in float32 and below, and finite in every dtype: softmax
        # runs in float32, where the least float64 would turn into -inf and a row into NaN.
        least = max(torch.finfo(model.dtype).min, torch.finfo(torch.float32).min)
        self._hidden = torch.tensor(least, dtype=model.dtype, device=self.device)
        self._shown = torch.zeros((), dtype=model.dtype, device=self.device)
        self.fed_rows: slice | list[int] = slice(None)
        self.feeds: list[Feed] = []
        self.reset([])

    def reset(self, pads: list[int]) -> None:
        """Start an empty cache for rows that begin after so many pads."""
        self.cache = self.empty_cache()
        self.ids = torch.zeros(len(pads), 0, dtype=torch.long, device=self.device)
        self.positions = self.ids
        self.index = self.ids
        self.visible = torch.zeros(len(pads), 0, dtype=torch.bool, device=self.device)
        self.pads = pads

    def empty_cache(self) -> DynamicCache:
        """A cache in which all rows write at the same slot."""
        return DynamicCache()

    @property
    def slots(self) -> int:
        """Columns the cache has now."""
        return self.ids.shape[1]

    @property
    def slot_bytes(self) -> int:
        """Bytes of the keys and values of one slot of one row, over all layers."""
        states = cache_states(self.cache)
        return sum(state.shape[1] * state.shape[3] * state.element_size() for state in states)

    def feed(
        self, ids: Tensor, index: Tensor, visible: Tensor | None = None, logits: int = 0
    ) -> Tensor:
        """Run one forward and append its tokens to the cache.

        Args:
            ids: token ids, `[rows, queries]`.
            index: place in the row's sequence, `PAD` where a query is only filler.
            visible: whether later queries may see the token; by default unless it is filler.
            logits: how many last queries need logits; 0 gives those of all.

        Returns:
            Logits of the last queries, `[rows, queries, vocabulary]`.
        """
        if self._lacks_ids:
            ids = known_ids(self.model, ids)
        slot = self.next_slots(index)
        positions = self.position_rule(self, index, slot)
        shown = index >= 0 if visible is None else visible
        self.write(slot, ids, positions, index, shown)
        masks, rows = self._masks(slot, positions, index), self.fed_rows
        output = self.model(
            input_ids=ids,
            position_ids=positions,
            attention_mask=self.attention.argument(masks, self.visible[rows]),
            use_cache=True,
            **{self._cache_argument: self.cache},
            **({"logits_to_keep": logits} if self._cuts_logits else {}),
        )
        widest = self.attention.spans[0]
        mask = masks[widest.kind]
        found: Tensor = output.logits[:, -logits:] if logits else output.logits
        if self.vocabulary is not None and self.vocabulary != found.shape[-1]:
            found = pad(found, (0, self.vocabulary - found.shape[-1]), value=-torch.inf)
        held = self.index[rows]
        self.feeds.append(Feed(self.name, ids, positions, index, held, mask, widest, found))
        return found

    def _masks(self, slot: Tensor, positions: Tensor, index: Tensor) -> dict[str, Tensor]:
        """The additive mask of each kind of layer, `[rows, 1, queries, slots]`."""
        rows = self.fed_rows
        column, own = torch.arange(self.slots, device=self.device), slot[:, :, None]
        allowed = self.visible[rows][:, None] & (column <= own)
        if self.attention.by_query:
            # A filler sees itself alone: a query that saw nothing would turn softmax into NaN.
            allowed |= column == own
        spans = self.attention.spans
        seen = dict.fromkeys((span.kind for span in spans), allowed)
        if any(span.size for span in spans):
            # What holds no token and yet is visible lies where it was fed.
            held = self.index[rows]
            query = torch.where(index >= 0, index, positions)[:, :, None]
            key = torch.where(held >= 0, held, self.positions[rows])[:, None]
            seen = {span.kind: span.cut(allowed, query, key) for span in spans}
        return {
            kind: torch.where(cells, self._shown, self._hidden)[:, None]
            for kind, cells in seen.items()
        }

    def next_slots(self, index: Tensor) -> Tensor:
        """Slots of the tokens fed next, `[rows or 1, queries]`: one new column a query."""
        return torch.arange(self.slots, self.slots + index.shape[1], device=self.device)[None]

    def write(
        self, slot: Tensor, ids: Tensor, positions: Tensor, index: Tensor, visible: Tensor
    ) -> None:
        """Note what the next forward puts into `slot`."""
        self.ids = torch.cat([self.ids, ids], 1)
        self.positions = torch.cat([self.positions, positions], 1)
        self.index = torch.cat([self.index, index], 1)
        self.visible = torch.cat([self.visible, visible], 1)

    def crop(self, slots: int) -> None:
        """Drop every column from `slots` on, for all rows alike."""
        if slots == self.slots:
            return
        self.cache.crop(slots - self.slots)
        self.ids, self.positions = self.ids[:, :slots], self.positions[:, :slots]
        self.index, self.visible = self.index[:, :slots], self.visible[:, :slots]

    def reject(self, first: list[int]) -> None:
        """Note that slots from place `first` of each row on hold rejected tokens."""
        limit = torch.tensor(first, device=self.device).view(-1, 1)
        self.index = self.index.masked_fill(self.index >= limit, REJECTED)

    def gather(self, rows: list[int], source: Tensor) -> None:
        """Rebuild the cache from its own slots: one gather moves K/V and every table alike.

        Args:
            rows: the batch rows that stay, in their order.
            source: for every new slot the old slot it comes from, negative for a pad,
                `[len(rows), new slots]`.
        """
        kept = torch.tensor(rows, device=self.device)[:, None]
        filler = source < 0
        source = source.clamp(min=0)
        self.ids = self.ids[kept, source]
        self.positions = self.positions[kept, source].masked_fill(filler, 0)
        self.index = self.index[kept, source].masked_fill(filler, PAD)
        self.visible = self.visible[kept, source] & ~filler
        self.move_states(rows, source)

    def move_states(self, rows: list[int], source: Tensor) -> None:
        """Move the K/V alone; arguments as in `gather`, whose part it is, but no negative slot."""
        kept = torch.tensor(rows, device=self.device)[:, None]
        flat: dict[int, Tensor] = {}
        for layer in attention_layers(self.cache):
            assert layer.keys is not None and layer.values is not None
            heads, slots = layer.keys.shape[1:3]
            if heads not in flat:
                head = torch.arange(heads, device=self.device)[:, None]
                # [rows, heads, new slots] into keys seen as [rows * heads * slots, head_dim]
                place = (kept[:, :, None] * heads + head) * slots + source[:, None]
                flat[heads] = place.flatten()
            layer.keys = _rows_of(layer.keys, flat[heads], len(rows))
            layer.values = _rows_of(layer.values, flat[heads], len(rows))

    def select(self, rows: list[int]) -> None:
        """Keep only these batch rows; every slot stays where it is."""
        if len(rows) == self.ids.shape[0]:
            return
        kept = torch.tensor(rows, dtype=torch.long, device=self.device)
        self.ids, self.positions = self.ids[kept], self.positions[kept]
        self.index, self.visible = self.index[kept], self.visible[kept]
        self.pads = [self.pads[row] for row in rows]
        if self.slots:
            self.cache.batch_select_indices(kept)


def forward_parameters(model: PreTrainedModel) -> frozenset[str]:
    """Names of the arguments that the model's forward declares."""
    return frozenset(inspect.signature(model.forward).parameters)


def cache_argument(model: PreTrainedModel) -> str:
    """What the model's forward calls its cache: older transformers say `past_key_values`."""
    return "cache" if "cache" in forward_parameters(model) else "past_key_values"


def known_ids(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """Ids as the model can be fed them: id 0 in place of those beyond its embeddings.

    A draft with fewer padding entries than its target may meet such an id in a row. Whatever it is
    fed there changes what it proposes, never what is accepted.
    """
    return torch.where(ids < embedding_entries(model), ids, 0)


def embedding_entries(model: PreTrainedModel) -> int:
    """Ids, from 0 on, that the model can be fed."""
    embeddings: Any = model.get_input_embeddings()
    entries: int = embeddings.weight.shape[0]
    return entries


def attention_layers(cache: DynamicCache) -> list[DynamicLayer]:
    """The layers that hold K/V, `[rows, kv_heads, slots, head_dim]` each."""
    return [
        layer for layer in cache.layers if isinstance(layer, DynamicLayer) and layer.is_initialized
    ]


def cache_states(cache: DynamicCache) -> list[Tensor]:
    """Keys, then values, of one layer after the other, `[rows, kv_heads, slots, head_dim]` each."""
    both = [state for layer in attention_layers(cache) for state in (layer.keys, layer.values)]
    return [state for state in both if state is not None]


def _rows_of(states: Tensor, flat: Tensor, rows: int) -> Tensor:
    heads, width = states.shape[1], states.shape[3]
    return states.reshape(-1, width).index_select(0, flat).view(rows, heads, -1, width)


PositionRule = Callable[[CachedModel, Tensor, Tensor], Tensor]
"""Gives the position IDs, `[rows, queries]`, of tokens to be fed, from their places in the rows'
sequences, `[rows, queries]`, and their slots, `[rows or 1, queries]`."""


def positions_by_token(_cached: CachedModel, index: Tensor, _slot: Tensor) -> Tensor:
    """Count tokens: a token's position is its place in the row's sequence (right)."""
    return index.clamp(min=0)
