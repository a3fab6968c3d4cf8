"""Any pair on the page: loaded with news, refused in a sentence, and the page goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from gradio_client import Client
from playwright.sync_api import BrowserContext, Page, expect

from browser.driving import PATIENCE, ask, at, finish, lane, last, opened, press, run, visit
from browser.served import served_page
from hub import served_hub
from test_chat import tokenizer
from test_loading import save, words
from tiny import shared_pair, tiny

PROMPTS = "w5 w9 w13\nw7 w8"
SMALL = {"k": "2", "new_tokens": "6", "batch_size": "2"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    shared = shared_pair()
    save(folder / "us/target", shared.target, words())
    save(folder / "us/draft", shared.draft, words())  # type: ignore[arg-type]
    save(folder / "us/gated", shared.draft, words())  # type: ignore[arg-type]
    save(folder / "us/swapped", shared.target, {**words(), "w5": 6, "w6": 5})
    chat = save(folder / "us/chat", tiny("llama"))
    tokenizer().save_pretrained(chat)
    return folder


@pytest.fixture(scope="module")
def connected(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page that reaches a Hub."""
    with (
        served_hub(models, gated=("us/gated",)) as (hub, _),
        served_page(
            tmp_path_factory.mktemp("connected"), HF_ENDPOINT=hub, HF_HUB_OFFLINE="0"
        ) as address,
    ):
        yield address


@pytest.fixture
def own(context: BrowserContext, connected: str) -> Iterator[Page]:
    """A fresh page that reaches a Hub; fails the test on any console error."""
    with visit(context, connected) as page:
        yield page


def choose(page: Page, target: str, draft: str) -> None:
    for field, text in (("#pair", target), ("#draft", draft)):
        page.fill(f"{field} input", text)
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")


def test_ids_are_fetched_run_and_kept_in_the_address(own: Page, connected: str) -> None:
    choose(own, "us/target", "us/draft")
    run(own, PROMPTS, **SMALL)
    expect(own.locator("#player .state")).to_contain_text("us/target, draft us/draft")
    press(own, "End", last(own))
    assert "equal to the reference" in lane(own, "eqspec").inner_text()
    own.wait_for_function("new URLSearchParams(location.search).get('draft') === 'us/draft'")
    query = {name: values[0] for name, values in parse_qs(urlsplit(own.url).query).items()}
    assert query["pair"] == "us/target"
    again = opened(own.context, connected, '#player[data-live="live"]', **query)
    finish(again)
    expect(again.locator("#player .state")).to_contain_text("us/target, draft us/draft")
    again.close()


REFUSED = {
    "a wrong id": ("us/nothing", "ngram", "the Hub has no such model"),
    "a gated model": ("us/gated", "ngram", "gated"),
    "other tokenizers": ("us/target", "us/swapped", "differ in 2 entries"),
    "no draft": ("us/target", "", "needs a draft"),
    "no id": ("not an id!", "ngram", "neither a folder"),
}


def test_what_cannot_be_loaded_is_a_sentence_and_nothing_is_lost(own: Page) -> None:
    for target, draft, said in REFUSED.values():
        choose(own, target, draft or "its own")
        ask(own, PROMPTS, **SMALL)
        alert = own.locator("#message [role=alert]")
        expect(alert).to_contain_text(said, timeout=PATIENCE)
        assert own.input_value("#prompts textarea") == PROMPTS
        assert own.input_value("#pair input") == target and at(own, "frame") == "0"
    choose(own, "storyteller", "its own")
    run(own, "My sister", **SMALL)
    assert own.locator("#message [role=alert]").count() == 0


def test_a_chat_template_is_fed_unless_it_is_switched_off(own: Page) -> None:
    choose(own, "us/chat", "ngram")
    run(own, "w9 w8", **SMALL)
    assert "w1 w2 w9 w8 w3" in lane(own, "eqspec").inner_text().replace("\n", " ")
    own.click("#more button")
    own.uncheck("#chat input")
    run(own, "w9 w8", **SMALL)
    assert "w1 w9 w8" in lane(own, "eqspec").inner_text().replace("\n", " ")


def test_a_link_fetches_nothing_by_itself(context: BrowserContext, connected: str) -> None:
    query = {"pair": "us/swapped", "draft": "ngram", "prompts": PROMPTS}
    page = opened(context, connected, **query)
    expect(page.locator("#message")).to_contain_text("is not loaded yet: press Run")
    assert page.input_value("#pair input") == "us/swapped" and at(page, "live") == "recorded"
    page.close()


def test_programs_choose_a_pair_too(connected: str) -> None:
    trace = Client(connected, verbose=False).predict(
        ["w5 w9"], max_new_tokens=4, pair="us/target", draft="ngram", api_name="/run_trace"
    )
    assert trace["pair"] == "us/target, n-gram draft"


def test_without_a_network_the_page_says_so_and_goes_on(page: Page) -> None:
    choose(page, "us/target", "ngram")
    ask(page, PROMPTS, **SMALL)
    alert = page.locator("#message [role=alert]")
    expect(alert).to_contain_text("the Hub cannot be reached", timeout=PATIENCE)
    choose(page, "storyteller", "its own")
    run(page, "My sister", **SMALL)
