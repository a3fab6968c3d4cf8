"""The address of a run says what made it, and garbage in it is told and not obeyed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.config import ACCEPTANCE_RULES, STRATEGY_NAMES
from visuals.link import LONGEST, Link

HERE = Link("storyteller", "One,", ["pad", "eqspec"], k=4, tokens=48, batch=4)
PAIRS = ("storyteller", "other")


def opened(query: dict[str, str]) -> tuple[Link, list[str]]:
    choices = {"pair": PAIRS, "acceptance": ACCEPTANCE_RULES}
    return HERE.opened(query, choices, lambda name: name in STRATEGY_NAMES, most=3)


@given(
    prompts=st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    lanes=st.lists(st.sampled_from(STRATEGY_NAMES), min_size=1, max_size=3, unique=True),
    numbers=st.tuples(*[st.integers(-5, 10**6)] * 6),
    pair=st.sampled_from(PAIRS),
    acceptance=st.sampled_from(ACCEPTANCE_RULES),
    draft=st.sampled_from(("", "ngram", "owner/name")),
    chat=st.booleans(),
)
def test_an_address_opens_as_the_settings_it_was_made_of(
    prompts: str,
    lanes: list[str],
    numbers: tuple[int, ...],
    pair: str,
    acceptance: str,
    draft: str,
    chat: bool,
) -> None:
    link = Link(pair, prompts, lanes, *numbers, acceptance, draft, chat)
    query = dict(parse_qsl(link.query(), keep_blank_values=True, strict_parsing=True))
    left_out = {name for name, bare in (("draft", not draft), ("chat", chat)) if bare}
    assert query.keys() == {field.name for field in fields(Link)} - left_out
    assert opened(query) == (link, [])


def test_what_an_address_leaves_out_stays_as_it_is() -> None:
    assert opened({}) == (HERE, [])
    assert opened({"__theme": "dark", "utm": "x"}) == (HERE, [])
    assert opened({"k": "7"}) == (replace(HERE, k=7), [])


@pytest.mark.parametrize(
    ("query", "expected", "word"),
    [
        ({"pair": "<img src=x>"}, HERE, "pair"),
        ({"lanes": "nix"}, HERE, "nix"),
        ({"lanes": ""}, HERE, "lanes"),
        ({"lanes": "pad,nix,ragged"}, replace(HERE, lanes=["pad", "ragged"]), "nix"),
        ({"lanes": "pad,pad"}, replace(HERE, lanes=["pad"]), "pad,pad"),
        ({"k": "many"}, HERE, "many"),
        ({"k": ""}, HERE, "k as ''"),
        ({"tokens": "inf"}, HERE, "inf"),
        ({"batch": "nan"}, HERE, "nan"),
        ({"acceptance": "luck"}, HERE, "luck"),
        ({"temperature": "warm", "seed": "3"}, replace(HERE, seed=3), "warm"),
    ],
)
def test_garbage_is_told_and_the_rest_is_kept(
    query: dict[str, str], expected: Link, word: str
) -> None:
    link, complaints = opened({**query, "prompts": "kept"})
    assert link == replace(expected, prompts="kept")
    assert len(complaints) == 1 and word in complaints[0] and complaints[0].endswith(".")


def test_lanes_are_cut_to_what_can_be_shown() -> None:
    link, complaints = opened({"lanes": "pad,mask,holes,eqspec"})
    assert link.lanes == ["pad", "mask", "holes"] and len(complaints) == 1


def test_a_fraction_is_kept_for_the_page_to_refuse() -> None:
    assert opened({"k": "2.5"})[0].k == 2.5


@pytest.mark.parametrize("name", ["k", "tokens", "batch"])
def test_an_empty_field_is_left_out(name: str) -> None:
    settings: dict[str, Any] = {name: None}
    assert f"{name}=" not in replace(HERE, **settings).query()


def test_what_no_address_holds_has_none() -> None:
    assert replace(HERE, prompts="x" * LONGEST).query() == ""


def test_a_pair_is_free_where_no_choices_are_given() -> None:
    choices = {"acceptance": ACCEPTANCE_RULES}
    query = {"pair": "owner/name", "draft": "ngram"}
    link, complaints = HERE.opened(query, choices, lambda _: True, most=3)
    assert (link.pair, link.draft, complaints) == ("owner/name", "ngram", [])
    choices = {"pair": PAIRS, "draft": ("", "ngram"), "acceptance": ACCEPTANCE_RULES}
    link, complaints = HERE.opened({**query, "draft": "x/y"}, choices, lambda _: True, most=3)
    assert (link.pair, link.draft, len(complaints)) == ("storyteller", "", 2)
