"""Which pairs a page keeps, and what it says while it loads one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from batchspec import DecodeError
from batchspec.limits import PUBLIC
from pages import models
from pages.models import finished, load, news, pair_choices


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str | None]]]:
    """What was loaded, each as a fake of its name."""
    asked: list[tuple[str, str | None]] = []

    def fake(
        name: str, draft: str | None, device: str, observe: Callable[[str, float | None], None]
    ) -> str:
        asked.append((name, draft))
        observe("downloading", 0.5)
        if name == "broken":
            raise DecodeError("It is broken.")
        return f"{name} {draft}"

    monkeypatch.setattr("batchspec.load_pair", fake)
    monkeypatch.setattr(models, "_kept", {})
    yield asked


def test_the_storyteller_and_the_last_pair_stay(asked: list[tuple[str, str | None]]) -> None:
    for name, draft in (("storyteller", ""), ("a", "ngram"), (" a ", "ngram"), ("b", "x")):
        assert finished(load(name, draft)) == f"{name.strip()} {draft or None}"
    assert asked == [("storyteller", None), ("a", "ngram"), ("b", "x")]
    assert set(models._kept) == {("storyteller", ""), ("b", "x")}
    finished(load("a", "ngram"))
    finished(load("storyteller"))
    assert asked[3:] == [("a", "ngram")]


def test_a_pair_that_cannot_be_loaded_is_asked_for_again(
    asked: list[tuple[str, str | None]],
) -> None:
    for _ in range(2):
        with pytest.raises(DecodeError, match="It is broken"):
            finished(load("broken"))
    assert len(asked) == 2


@pytest.mark.parametrize(("name", "draft"), [("", ""), ("  ", ""), (None, ""), ("a", 3)])
def test_what_is_no_name_is_refused(name: str, draft: str) -> None:
    with pytest.raises(DecodeError, match="There is no pair"):
        finished(load(name, draft))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qwen3", True),
        ("owner/name", True),
        ("/tmp", True),
        ("", False),
        ("<img src=x onerror=alert(1)>", False),
        ("a\0b", False),
        ("x" * 5000, False),
    ],
)
def test_what_can_name_models_is_told_from_garbage(text: str, expected: bool) -> None:
    assert models.is_name(text) is expected


def test_a_public_page_offers_small_presets_alone(
    asked: list[tuple[str, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(pair_choices()) > 4
    monkeypatch.setenv(PUBLIC, "1")
    offered = [name for _, name in pair_choices()]
    assert "storyteller" in offered and "smollm2-360m" in offered
    assert not {"smollm2-1.7b", "qwen3"} & set(offered)
    for name, draft in (("qwen3", ""), ("owner/name", "ngram"), ("storyteller", "owner/name")):
        with pytest.raises(DecodeError, match="There is no"):
            finished(load(name, draft))
    assert not asked
    finished(load("smollm2-360m", "ngram"))


def test_news_are_text_and_a_bar() -> None:
    assert news(("looking up <x>", None)) == '<p role="status">looking up &lt;x&gt; …</p>'
    assert 'value="0.250"' in news(("downloading", 0.25)) and "25%" in news(("downloading", 0.25))
