"""What leaves the page as a file, and what files come back: the parts without a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from batchspec import DecodeError, Trace
from batchspec.storyteller.example import LANES, load_example
from test_trace_check import EVIL, written_by_hand
from test_visuals import unpacked
from visuals.opening import LARGEST, opened
from visuals.payload import pack
from visuals.standalone import standalone_page


def with_prompts(trace: Trace, text: str) -> Trace:
    return replace(trace, title=text, vocabulary=dict.fromkeys(trace.vocabulary, text))


def test_a_page_of_its_own_asks_nobody_for_anything() -> None:
    page = standalone_page(pack(load_example()))
    assert not re.search(
        r"<(link|img|iframe|object|base)\b|<script[^>]* src|@import|url\((?!#)", page
    )
    assert not re.search(r"https?:", page.replace('"http://www.w3.org/2000/svg"', ""))
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert page.count("<script") == page.count("</script>") == 2


def test_text_of_a_run_cannot_end_the_script_around_it() -> None:
    hostile = [with_prompts(trace, f"<!--<script>{EVIL}-->") for trace in load_example()]
    page = standalone_page(pack(hostile))
    assert EVIL not in page
    payload = re.search(r'<script id="payload" type="text/plain">([^<]*)</script>', page)
    assert payload and unpacked(payload[1])["lanes"][0]["title"] == hostile[0].title


def test_a_page_of_its_own_is_the_same_around_every_payload() -> None:
    before, after = standalone_page("\0").split("\0")
    assert before + "cGF5bG9hZA==" + after == standalone_page("cGF5bG9hZA==")


def texts() -> list[str]:
    return [trace.to_json() for trace in load_example()]


def test_files_open_as_lanes_one_by_one_or_in_an_array() -> None:
    one_by_one = unpacked(opened(texts(), 3))
    assert one_by_one == unpacked(opened([f" [{','.join(texts())}]"], 3))
    assert [lane["strategy"] for lane in one_by_one["lanes"]] == list(LANES)
    assert one_by_one["file"] is True and one_by_one["live"] == "recorded"
    assert "run" not in one_by_one


def test_the_trace_written_by_hand_is_a_lane() -> None:
    content = unpacked(opened([written_by_hand()], 3))
    assert content["lanes"][0]["title"] == "Mine"


def test_a_lane_is_named_by_strategy_and_fault() -> None:
    trace = load_example()[0]
    assert trace.label == "pad"
    faulty = replace(trace, settings={**trace.settings, "fault": "rows_swapped"})
    assert faulty.label == "pad+rows_swapped"


def of_other_prompts() -> str:
    content = json.loads(texts()[1])
    content["prompts"][0] = content["prompts"][1]
    return json.dumps(content)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (lambda: [texts()[0]] * 2, "Each strategy can be opened once"),
        (lambda: [texts()[0], of_other_prompts()], "different prompts"),
        (lambda: [], "room for 1 to 3 lanes, and the files hold 0"),
        (lambda: ["[]"], "files hold 0"),
        (lambda: ["[1, 2, 3, 4]"], "files hold 4"),
        (lambda: ["[1]"], "not a trace"),
        (lambda: ["[" * 100_000], "not a trace"),
        (lambda: ["{}"], "not a trace"),
        (lambda: [EVIL], "not a trace"),
        (lambda: [" " * (LARGEST + 1)], "more than 40 MB"),
        (lambda: [None], "Trace files are text"),
        (lambda: {"a": 1}, "Trace files are text"),
        (lambda: [json.dumps({**json.loads(texts()[0]), "frames": []})], "holds no phase"),
    ],
)
def test_files_that_cannot_be_shown_are_refused(files, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DecodeError, match=words):
        opened(files(), 3)


def test_a_sentence_stays_a_sentence_whatever_a_file_holds() -> None:
    content = {**json.loads(texts()[0]), "version": "x" * 10_000}
    with pytest.raises(DecodeError) as found:
        opened([json.dumps(content)], 3)
    assert len(str(found.value)) < 400
