"""The address of a run: everything that made it, and nothing that came out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

LONGEST = 8000
"""Characters of an address that every browser and server takes."""


@dataclass(frozen=True)
class Link:
    """The settings of a run as the page has them.

    Attributes:
        pair: name of the pair, or its target.
        prompts: one a line.
        lanes: names of strategies, each with `+FAULT` after it where a fault is switched on.
        k, tokens, batch, window: draft tokens, new tokens, batch size and pool window; None where
            the field is empty.
        temperature, seed, acceptance: how tokens are chosen.
        draft: the draft where it is not the pair's own.
        chat: whether a chat template is used where there is one.
    """

    pair: str
    prompts: str
    lanes: Sequence[str]
    k: float | None
    tokens: float | None
    batch: float | None
    window: float | None = 32
    temperature: float | None = 0
    seed: float | None = 0
    acceptance: str = "auto"
    draft: str = ""
    chat: bool = True

    @classmethod
    def names(cls) -> list[str]:
        """The parameters of an address, in the order of the page's fields."""
        return [field.name for field in fields(cls)]

    def values(self) -> list[Any]:
        """The settings in the order of `names`."""
        return [
            list(self.lanes) if name == "lanes" else getattr(self, name) for name in self.names()
        ]

    def query(self) -> str:
        """The query string of the address; empty where it would be too long for one."""
        values = {
            **asdict(self),
            "lanes": ",".join(self.lanes),
            "draft": self.draft or None,
            "chat": None if self.chat else "off",
        }
        query = urlencode({k: value for k, value in sorted(values.items()) if value is not None})
        return query if len(query) <= LONGEST else ""

    def opened(
        self,
        query: Mapping[str, str],
        choices: Mapping[str, Sequence[str]],
        is_lane: Callable[[str], bool],
        most: int,
    ) -> tuple[Link, list[str]]:
        """These settings with what an address says instead.

        Args:
            query: the parameters of the address; those of other names are left alone.
            choices: what there is to choose from; `pair` and `draft` may be free.
            is_lane: whether a lane of that name can be shown.
            most: how many lanes there may be.

        Returns:
            The settings, and a sentence for every part that could not be used.
        """
        link, complaints = self, []
        for name in {"prompts", "pair", "draft"} & query.keys() - choices.keys():
            text: Any = query[name]
            link = replace(link, **{name: text})
        link = replace(link, chat=query.get("chat", "" if self.chat else "off") != "off")
        for name, known in choices.items():
            value = query.get(name, getattr(self, name))
            if value in known:
                link = replace(link, **{name: value})
            else:
                complaints.append(f"The link names the {name} {value!r:.40}, which is not here.")
        names = query["lanes"].split(",") if "lanes" in query else list(self.lanes)
        shown = [name for name in dict.fromkeys(names) if is_lane(name)][:most]
        if shown != names:
            complaints.append(f"The link names lanes that cannot be shown: {query['lanes']!r:.60}.")
        link = replace(link, lanes=shown or self.lanes)
        for name in ("k", "tokens", "batch", "window", "temperature", "seed"):
            try:
                number = float(query.get(name, getattr(self, name)))
                whole: Any = int(number) if number == int(number) else number
                link = replace(link, **{name: whole})
            except (ValueError, OverflowError):
                complaints.append(f"The link gives {name} as {query[name]!r:.40}, no number.")
        return link, complaints
