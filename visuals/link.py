"""The address of a run: everything that made it, and nothing that came out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

LONGEST = 8000
"""Characters of an address that every browser and server takes."""


@dataclass(frozen=True)
class Link:
    """The settings of a run as the page has them.

    Attributes:
        pair: name of the pair.
        prompts: one a line.
        lanes: names of strategies.
        k, tokens, batch: draft tokens, new tokens and batch size; None where the field is empty.
    """

    pair: str
    prompts: str
    lanes: Sequence[str]
    k: float | None
    tokens: float | None
    batch: float | None

    @classmethod
    def names(cls) -> set[str]:
        """The parameters of an address."""
        return {field.name for field in fields(cls)}

    def query(self) -> str:
        """The query string of the address; empty where it would be too long for one."""
        values = {name: getattr(self, name) for name in sorted(self.names())}
        values["lanes"] = ",".join(self.lanes)
        query = urlencode({name: value for name, value in values.items() if value is not None})
        return query if len(query) <= LONGEST else ""

    def opened(
        self, query: Mapping[str, str], pairs: Sequence[str], strategies: Sequence[str], most: int
    ) -> tuple[Link, list[str]]:
        """These settings with what an address says instead.

        Args:
            query: the parameters of the address; those of other names are left alone.
            pairs, strategies: the names that exist.
            most: how many lanes there may be.

        Returns:
            The settings, and a sentence for every part that could not be used.
        """
        link, complaints = self, []
        if "prompts" in query:
            link = replace(link, prompts=query["prompts"])
        if query.get("pair", self.pair) in pairs:
            link = replace(link, pair=query.get("pair", self.pair))
        else:
            complaints.append(f"The link names the pair {query['pair']!r:.40}, which is not here.")
        names = query["lanes"].split(",") if "lanes" in query else list(self.lanes)
        known = [name for name in dict.fromkeys(names) if name in strategies][:most]
        if known != names:
            complaints.append(f"The link names lanes that cannot be shown: {query['lanes']!r:.60}.")
        link = replace(link, lanes=known or self.lanes)
        for name in ("k", "tokens", "batch"):
            try:
                number = float(query.get(name, getattr(self, name)))
                whole: Any = int(number) if number == int(number) else number
                link = replace(link, **{name: whole})
            except (ValueError, OverflowError):
                complaints.append(f"The link gives {name} as {query[name]!r:.40}, no number.")
        return link, complaints
