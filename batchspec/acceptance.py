"""The rules that accept drafts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from batchspec.config import DecodeConfig
from batchspec.drafting import Draft
from batchspec.noise import ACCEPT, DRAFT, TARGET, gumbel, uniform
from batchspec.sampler import Sampler


@dataclass(frozen=True)
class Verdict:
    """What the target decided in one round, a list entry per batch row.

    Attributes:
        drafts: the proposed tokens, filler left out.
        choices: the target's own token after each fed token, one more than drafts; it is taken
            where the draft is not.
        accepted: leading drafts the row keeps.
        committed: the tokens the row takes: the accepted drafts, then a correction or bonus
            unless EOS or the budget came first.
    """

    drafts: list[list[int]]
    choices: list[list[int]]
    accepted: list[int]
    committed: list[list[int]]

    def closing_role(self, place: int) -> str:
        """What the target's own token at the end of a row's round is: `bonus` or `correction`."""
        return "bonus" if self.accepted[place] == len(self.drafts[place]) else "correction"


class Exact:
    """Accept a draft that is the target's own choice: greedy, or with noise that both share.

    With noise it is the Gumbel-max coupling of draft and target: what a row writes equals, token
    for token, what the target alone would sample with the same seed.
    """

    def __init__(self, config: DecodeConfig) -> None:
        """Take temperature and filters from `config`; draft and target share them."""
        self.sampler = Sampler.of(config)

    def propose(self, logits: Tensor, key: Tensor, place: Tensor) -> tuple[Tensor, Tensor | None]:
        """Choose draft tokens.

        Args:
            logits: the draft model's, `[rows, 1, vocabulary]`.
            key, place: which random numbers to use, as in `noise.uniform`.

        Returns:
            Token ids, `[rows, 1]`, and the distribution they were drawn from, where `judge` needs
            it, `[rows, 1, vocabulary]`.
        """
        return self.sampler.choose(logits, key, place), None

    def judge(
        self, draft: Draft, logits: Tensor, key: Tensor, place: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Decide on each draft by itself.

        Args:
            draft: the proposals, `[rows, width]`.
            logits: the target's after the last committed token and each draft,
                `[rows, width + 1, vocabulary]`.
            key, place: of the tokens that these logits choose; as in `noise.uniform`.

        Returns:
            Which drafts may be kept, `[rows, width]`, and the target's own tokens,
            `[rows, width + 1]`.
        """
        choices = self.sampler.choose(logits, key, place)
        return draft.ids == choices[:, :-1], choices


def keep_probability(target: Tensor, proposed: Tensor) -> Tensor:
    """How likely each token is kept once it is proposed: min(1, p / q), 1 where q is 0."""
    return torch.where(proposed > 0, target / proposed, 1).clamp(max=1)


def residual(target: Tensor, proposed: Tensor) -> Tensor:
    """What rejected proposals leave to be sampled: max(p - q, 0), not normalised."""
    return (target - proposed).clamp(min=0)


class Speculative(Exact):
    """Speculative sampling: any row's distribution is the target's (arXiv 2211.17192, 2302.01318).

    A draft x drawn from q is kept with probability min(1, p(x) / q(x)); else the row takes a sample
    of max(p - q, 0). It keeps more drafts than shared noise does, but other tokens than the target
    alone would sample.
    """

    def propose(self, logits: Tensor, key: Tensor, place: Tensor) -> tuple[Tensor, Tensor | None]:
        """Sample draft tokens with numbers of their own."""
        return self.sampler.choose(logits, key, place, DRAFT), self.sampler.probabilities(logits)

    def judge(
        self, draft: Draft, logits: Tensor, key: Tensor, place: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compare the probabilities that both models gave to each draft."""
        target = self.sampler.probabilities(logits)
        size = target.shape[-1]
        if draft.probabilities is None:  # proposed without a distribution, so with certainty
            proposed = one_hot(draft.ids, size).to(target)
        else:
            proposed = draft.probabilities
        token = draft.ids[..., None]
        share = keep_probability(target[:, :-1], proposed).gather(-1, token)
        kept = uniform(key, place[:, :-1], ACCEPT, 1) < share
        missed = torch.where(
            draft.drafted[..., None], residual(target[:, :-1], proposed), target[:, :-1]
        )
        left = torch.cat([missed, target[:, -1:]], 1).log()
        return kept[..., 0], (left + gumbel(key, place, TARGET, size)).argmax(-1)


class Threshold(Exact):
    """Accept a draft to which the target gives a probability of at least `threshold`: lossy.

    At temperature 0 the probability is the one at temperature 1; from 0.5 on only the likeliest
    token can reach it, so that greedy output then stays exact.
    """

    def __init__(self, config: DecodeConfig) -> None:
        """Take temperature, filters and threshold from `config`."""
        super().__init__(config)
        self.threshold = config.threshold
        self.judging = replace(self.sampler, temperature=self.sampler.temperature or 1.0)

    def judge(
        self, draft: Draft, logits: Tensor, key: Tensor, place: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Look up how likely the target finds each draft."""
        probabilities = self.judging.probabilities(logits[:, :-1])
        kept = probabilities.gather(-1, draft.ids[..., None])[..., 0] >= self.threshold
        return kept, self.sampler.choose(logits, key, place)


RULES = {
    "exact": Exact,
    "coupled": Exact,
    "speculative": Speculative,
    "threshold": Threshold,
}
"""The rule behind each name of `DecodeConfig.rule`."""


def accept(
    rule: Exact, draft: Draft, logits: Tensor, key: Tensor, place: Tensor
) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Accept the longest prefix of drafts that `rule` keeps; arguments as in `Exact.judge`.

    Returns:
        Drafts, the target's own tokens and accepted counts, per row, after the round's one device
        read.
    """
    kept, choices = rule.judge(draft, logits, key, place)
    accepted = (kept & draft.drafted).long().cumprod(1).sum(1, keepdim=True)
    table = torch.cat([accepted, draft.ids, choices], 1).tolist()
    drafts = [row[1 : 1 + length] for row, length in zip(table, draft.lengths, strict=True)]
    first = 1 + draft.width
    chosen = [
        row[first : first + length + 1] for row, length in zip(table, draft.lengths, strict=True)
    ]
    return drafts, chosen, [row[0] for row in table]
