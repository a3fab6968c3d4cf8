"""What a recorder knows of a row, and the row's tokens as chips: each with its role and round."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from batchspec.acceptance import Verdict
from batchspec.clean import CleanRow
from batchspec.frames import freeze
from batchspec.row import Row
from batchspec.trace import ROLES, Integers, first_difference

Chip = tuple[int, str, int]
"""A token id, its role and the round that committed it."""


@dataclass
class History:
    """One row as it was recorded so far.

    Attributes:
        start: the row before anything was written.
        clean: the row alone, per model name; empty once the row is done.
        roles, rounds: of the committed new tokens.
        generated: the committed new tokens.
        divergence: first new token the target alone would not have chosen, with its choice.
        finished: whether it is done.
        reference: the reference's new tokens, once they were needed.
    """

    start: Row
    clean: dict[str, CleanRow]
    roles: list[str] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    generated: list[int] = field(default_factory=list)
    divergence: tuple[int, int] | None = None
    finished: bool = False
    reference: list[int] | None = None

    @property
    def prompt(self) -> list[int]:
        """The prompt's token ids."""
        return self.start.prompt

    @property
    def tokens(self) -> list[int]:
        """The committed tokens."""
        return self.prompt + self.generated

    @property
    def known_reference(self) -> list[int]:
        """The reference as far as it is known without running the target further."""
        if self.divergence is None:
            return list(self.generated)
        place, choice = self.divergence
        return [*self.generated[:place], choice]

    @property
    def chips(self) -> list[Chip]:
        """The committed tokens in order."""
        roles = ["prompt"] * len(self.prompt) + self.roles
        rounds = [0] * len(self.prompt) + self.rounds
        return list(zip(self.tokens, roles, rounds, strict=True))

    def commit(self, verdict: Verdict, place: int, number: int, finished: bool) -> None:
        """Take over what the row won, and compare it with what the target alone would choose.

        Args:
            verdict: of the round.
            place: the row's in it.
            number: of the round.
            finished: whether the row is done now.
        """
        won = judged_chips(verdict, place, number)[: len(verdict.committed[place])]
        self.roles += [role for _, role, _ in won]
        self.rounds += [number] * len(won)
        self.generated += verdict.committed[place]
        self.finished = finished
        self.clean["target"].extend(self.tokens[:-1])
        choices = self.clean["target"].choices
        difference = first_difference(self.generated, choices)
        if self.divergence is None and difference is not None:
            self.divergence = difference, choices[difference]
        if finished:
            self.clean.clear()


def judged_chips(verdict: Verdict, place: int, number: int) -> list[Chip]:
    """A round's tokens of one row: accepted, the target's own, then the rejected drafts."""
    drafts, kept = verdict.drafts[place], verdict.accepted[place]
    tokens = verdict.committed[place]
    last = verdict.closing_role(place)
    chips = [(token, "accepted", number) for token in tokens[:kept]]
    chips += [(token, last, number) for token in tokens[kept:]]
    return chips + [(token, "rejected", number) for token in drafts[kept:]]


def chip_tables(rows: list[list[Chip]]) -> tuple[Integers, Integers, Integers]:
    """Tokens, roles and rounds of every row, `[rows, longest]` each; -1, 0 and -1 past its end."""
    table = np.full((3, len(rows), max(map(len, rows))), -1, dtype=np.int32)
    table[1] = 0
    for number, line in enumerate(rows):
        if line:
            token, role, token_round = zip(*line, strict=True)
            table[:, number, : len(line)] = token, list(map(ROLES.index, role)), token_round
    return freeze(table[0]), freeze(table[1]), freeze(table[2])
