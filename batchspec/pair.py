"""The two models of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from batchspec.errors import DecodeError
from batchspec.ngram import NGramDraft
from batchspec.probe import context_length, probe


class ModelPair:
    """A target, the draft that proposes for it, and their tokenizer.

    Attributes:
        target: the verifying model.
        draft: the proposing model, with the target's vocabulary up to padding, or an n-gram draft.
        tokenizer: needed for prompts given as text and for texts in results.
        name: shown to people.
        examples: prompts that show the pair well; may be empty.
        chat: whether a text is put into the tokenizer's chat template before it is tokenized.
        target_attention, draft_attention: the form in which each model takes its mask; an n-gram
            draft's is the target's and never used.
        skips_holes: whether hidden slots inside a row leave both models' results alone.
        takes_query_masks: whether in both models the mask alone decides what a query sees. If not,
            one of them applies the causal rule or a window by slot itself, as if each query's K/V
            lay in the last slots; a strategy that writes them elsewhere must refuse the pair.
    """

    def __init__(
        self,
        target: PreTrainedModel,
        draft: PreTrainedModel | NGramDraft,
        tokenizer: PreTrainedTokenizerBase | None = None,
        name: str = "",
        examples: tuple[str, ...] = (),
        chat: bool | None = None,
    ) -> None:
        """Check that the two can work together.

        Args are the attributes of these names; `chat` None is whether there is a template.

        Raises:
            DecodeError: a model that cannot be decoded this way, or two that do not match.
        """
        self.target = target
        self.draft = draft
        self.tokenizer = tokenizer
        self.name = name or type(target).__name__
        self.examples = examples
        if chat and not self.has_template:
            raise DecodeError(
                "This pair's tokenizer has no chat template: leave chat out, or choose a model "
                "made for chat."
            )
        self.chat = self.has_template if chat is None else chat
        with evaluation_mode(*self.models):
            found = [
                probe(role, model)
                for role, model in zip(("target", "draft"), self.models, strict=False)
            ]
        self._check_vocabularies()
        self.target_attention = found[0].attention
        self.draft_attention = found[-1].attention
        self.skips_holes = all(abilities.skips_holes for abilities in found)
        self.takes_query_masks = all(abilities.obeys_mask for abilities in found)

    @property
    def has_template(self) -> bool:
        """Whether the tokenizer knows how to write a chat."""
        return bool(getattr(self.tokenizer, "chat_template", None))

    def with_chat(self, chat: bool) -> ModelPair:
        """The same models, with texts put into a chat template or not; without one, as it is."""
        other = copy(self)
        other.chat = chat and self.has_template
        return other

    def _check_vocabularies(self) -> None:
        """Sizes may differ by padding: entries that no token of the tokenizer uses."""
        sizes = [_vocabulary(model) for model in self.models]
        if len(set(sizes)) == 1 or (
            self.tokenizer is not None and len(self.tokenizer) <= min(sizes)
        ):
            return
        known = (
            "no tokenizer is given"
            if self.tokenizer is None
            else f"the tokenizer has {len(self.tokenizer)}"
        )
        raise DecodeError(
            "Target and draft must share one vocabulary up to padding, but the target has "
            f"{sizes[0]} entries and the draft {sizes[1]}, and {known}: choose a draft made for "
            "this target, and give the tokenizer."
        )

    @property
    def models(self) -> list[PreTrainedModel]:
        """The target and, where it is a model, the draft."""
        return [self.target] if isinstance(self.draft, NGramDraft) else [self.target, self.draft]

    @property
    def context_length(self) -> int:
        """Tokens the shorter context of the models holds."""
        return min(map(context_length, self.models))

    @property
    def vocabulary_size(self) -> int:
        """Entries of the target's vocabulary; a draft's may have other padding."""
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
