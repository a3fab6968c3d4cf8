"""The rule that accepts drafts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from batchspec.drafting import Draft


@dataclass(frozen=True)
class Verdict:
    """What the target decided in one round, a list entry per batch row.

    Attributes:
        drafts: the proposed tokens, filler left out.
        choices: the target's own token after each fed token, one more than drafts.
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


def accept_exact(
    draft: Draft, logits: Tensor
) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Accept the longest prefix that equals the target's own greedy choices.

    Args:
        draft: the proposals.
        logits: the target's logits for the last committed token and each draft,
            `[rows, width + 1, vocabulary]`.

    Returns:
        Drafts, choices and accepted counts, per row, after the round's one device read.
    """
    choices = logits.argmax(-1)
    column = torch.arange(draft.width, device=choices.device)
    lengths = torch.tensor(draft.lengths, device=choices.device)[:, None]
    matches = (draft.ids == choices[:, :-1]) & (column < lengths)
    accepted = matches.long().cumprod(1).sum(1, keepdim=True)
    table = torch.cat([accepted, draft.ids, choices], 1).tolist()
    drafts = [row[1 : 1 + length] for row, length in zip(table, draft.lengths, strict=True)]
    first = 1 + draft.width
    chosen = [
        row[first : first + length + 1] for row, length in zip(table, draft.lengths, strict=True)
    ]
    return drafts, chosen, [row[0] for row in table]
