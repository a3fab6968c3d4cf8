"""The Share menu: every file that leaves the page is read here, and traces come back."""

from __future__ import annotations

import csv
import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page, expect

from batchspec.storyteller.example import LANES, RECORDINGS, load_example
from batchspec.trace import SLOT_STATES, Trace
from browser.served import READY
from browser.test_page import at, press
from test_trace_check import written_by_hand

IMAGE = '<img src=x onerror=alert(1)> a<b & "q"'
HOSTILE = f"{IMAGE}\n</script><!-- said 🦊\n=1+1, two,"
SVG = "{http://www.w3.org/2000/svg}"


def open_menu(page: Page) -> None:
    if not page.locator(".sharing[open]").count():
        page.click(".sharing summary")


def saved(page: Page, what: str, folder: Path, lane: str = "", view: str = "") -> Path:
    """The file that a button of the menu makes."""
    open_menu(page)
    page.select_option(".share-lane", lane)
    if view:
        page.select_option(".share-view", view)
    with page.expect_download() as download:
        page.click(f'[data-share="{what}"]')
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def open_files(page: Page, *paths: Path) -> None:
    page.set_input_files('.sharing input[type="file"]', paths)


@pytest.fixture
def hostile(page: Page) -> Iterator[Page]:
    """The page with a live run of prompts that are markup, script and formulas."""
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    query = {"prompts": HOSTILE, "lanes": "pad,eqspec", "tokens": 8, "batch": 3}
    page.goto(f"{page.url.split('?')[0]}?{urlencode(query)}&__theme=light")
    page.wait_for_selector('#player[data-live="live"]', timeout=60_000)
    for frame in range(1, 4):
        press(page, "ArrowRight", frame)
    yield page
    assert not dialogs


def test_the_example_leaves_as_the_trace_that_came(page: Page, tmp_path: Path) -> None:
    for lane, recording in RECORDINGS.items():
        path = saved(page, "trace", tmp_path, lane)
        assert path.name == f"batchspec-{lane}-trace.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        assert content == json.loads(Trace.load(recording).to_json())
        assert Trace.load(path).strategy == lane
    both = json.loads(saved(page, "trace", tmp_path).read_text(encoding="utf-8"))
    assert both == [json.loads(trace.to_json()) for trace in load_example()]


def test_a_run_leaves_as_a_trace_with_its_whole_reference(hostile: Page, tmp_path: Path) -> None:
    trace = Trace.load(saved(hostile, "trace", tmp_path, "eqspec"))
    assert trace.generated == trace.reference and trace.texts == trace.reference_texts
    assert all(len(row) == 8 for row in trace.generated)
    spelled = ["".join(trace.vocabulary[token] for token in row) for row in trace.prompts]
    assert IMAGE in spelled[0] and "</script><!--" in spelled[1]


def test_a_run_under_way_leaves_as_far_as_it_is(page: Page, tmp_path: Path) -> None:
    page.fill("#prompts textarea", "One, two,")
    page.click("#by-hand")
    page.wait_for_selector('#player[data-live="live"][data-frames="1"]', timeout=60_000)
    press(page, "ArrowRight", 1)
    trace = Trace.load(saved(page, "trace", tmp_path, "pad"))
    assert [frame.phase for frame in trace.frames] == ["prefill", "draft"]


def test_slots_leave_as_a_table(hostile: Page, tmp_path: Path) -> None:
    path = saved(hostile, "table", tmp_path)
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    traces = [Trace.load(saved(hostile, "trace", tmp_path, lane)) for lane in ("pad", "eqspec")]
    place = 0
    for trace in traces:
        frame = trace.frames[3]
        for row in range(3):
            for model, cache in (("target", frame.target), ("draft", frame.draft)):
                for slot in range(cache.state.shape[1]):
                    line = lines[place]
                    place += 1
                    assert (line["lane"], line["model"]) == (trace.strategy, model)
                    assert (line["row"], line["slot"]) == (str(row), str(slot))
                    assert (line["round"], line["phase"]) == ("1", "synchronize")
                    assert line["state"] == SLOT_STATES[cache.state[row, slot]]
                    token, text = int(cache.token[row, slot]), line["token text"]
                    assert line["token id"] == (str(token) if token >= 0 else "")
                    held = trace.vocabulary.get(token, "")
                    risky = held[:1] in tuple("=+-@\t\r\n")
                    assert text == (f"'{held}" if held and risky else held)
                    position = int(cache.position[row, slot])
                    assert line["position"] == (str(position) if position >= 0 else "")
                    assert line["visible"] == str(int(cache.visible[row, slot]))
    assert place == len(lines)
    assert any(line["token text"].startswith("'=") for line in lines)


def test_phases_leave_as_a_timeline(page: Page, tmp_path: Path) -> None:
    content = json.loads(saved(page, "timing", tmp_path).read_text(encoding="utf-8"))
    events = content["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(names.values()) == list(LANES)
    for tid, trace in zip(names, load_example(), strict=True):
        spans = [e for e in events if e["ph"] == "X" and e["tid"] == tid]
        assert [span["name"] for span in spans] == [frame.phase for frame in trace.frames]
        end = 0.0
        for span, frame in zip(spans, trace.frames, strict=True):
            assert {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"} <= span.keys()
            assert span["ts"] == pytest.approx(end) and span["dur"] >= 0
            assert span["dur"] == pytest.approx(1e6 * frame.seconds)
            assert span["args"]["round"] == frame.round
            assert span["args"]["slots moved"] == frame.slots_moved
            assert span["args"]["drafted"] == frame.drafted[frame.active].clip(0).sum()
            end = span["ts"] + span["dur"]


def test_views_leave_as_pictures(hostile: Page, tmp_path: Path) -> None:
    for view in ("tokens", "cache", "positions", "mask"):
        path = saved(hostile, "svg", tmp_path, "eqspec", view)
        assert path.name == f"batchspec-eqspec-round-1-synchronize-{view}.svg"
        drawing = ElementTree.parse(path).getroot()
        assert {element.tag.removeprefix(SVG) for element in drawing.iter()} <= {
            *("svg", "g", "rect", "text", "defs", "pattern")
        }
        texts = [element.text or "" for element in drawing.iter(f"{SVG}text")]
        assert any(text.startswith("EQSPEC: ") for text in texts)
        assert any("round 1, synchronize" in text for text in texts)
        if view == "positions":
            shown = hostile.locator(f'[data-lane="eqspec"] [data-view="{view}"] .slots i')
            assert set(shown.all_inner_texts()) <= {"", *texts}
        if view == "tokens":
            assert any("<" in text for text in texts)
        assert "var(" not in path.read_text(encoding="utf-8")
        size = [2 * int(drawing.get(name, "")) for name in ("width", "height")]
        picture = saved(hostile, "png", tmp_path, "eqspec", view).read_bytes()
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        assert list(struct.unpack(">II", picture[16:24])) == size


def test_a_page_of_its_own_steps_without_server_and_network(
    hostile: Page, browser: Browser, tmp_path: Path
) -> None:
    path = saved(hostile, "page", tmp_path)
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    asked: list[str] = []
    context.route(lambda url: not url.startswith("file:"), lambda r: (asked.append(""), r.abort()))
    alone = context.new_page()
    errors: list[str] = []
    alone.on("console", lambda message: errors.append(message.text))
    alone.on("pageerror", lambda error: errors.append(str(error)))
    alone.on("dialog", lambda dialog: (errors.append("a dialog"), dialog.dismiss()))
    alone.goto(path.as_uri())
    alone.wait_for_selector(READY)
    assert (at(alone, "live"), at(alone, "frames")) == ("recorded", at(hostile, "frames"))
    press(alone, "ArrowLeft", 2)
    press(alone, "ArrowRight", 3)
    for view in ("tokens", "cache", "positions", "mask", "outputs"):
        place = f'[data-lane="eqspec"] [data-view="{view}"]'
        assert alone.inner_text(place) == hostile.inner_text(place)
    press(alone, "End", int(at(alone, "frames")) - 1)
    press(alone, "ArrowRight", int(at(alone, "frames")) - 1)
    press(alone, "Home", 0)
    alone.keyboard.press("c")
    assert alone.locator("#player :is([data-large], [data-run], .share):visible").count() == 0
    assert alone.locator('[data-share="link"], [data-share="page"]').count() == 0
    again = Trace.load(saved(alone, "trace", tmp_path, "pad"))
    assert again.to_json() == Trace.load(saved(hostile, "trace", tmp_path, "pad")).to_json()
    for what in ("table", "timing", "svg", "png"):
        assert saved(alone, what, tmp_path, "eqspec").stat().st_size > 500
    assert alone.locator("#player img, #player script").count() == 0
    alone.wait_for_timeout(300)
    assert not errors and not asked
    context.close()


def test_a_page_of_its_own_opens_where_one_looked(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    page.fill('#player input[type="range"]', "7")
    page.wait_for_selector('#player[data-frame="7"]')
    page.keyboard.press("Escape")
    page.locator("#player").focus()
    for key in ("m", "m", "c"):
        page.keyboard.press(key)
    page.click('[data-shows="error"]')
    page.click("#player details.menu:not(.sharing) summary")
    for name in ("mask", "table"):
        page.click(f'[data-toggle="{name}"]')
    path = saved(page, "page", tmp_path)
    alone = browser.new_page(viewport={"width": 1440, "height": 900})
    alone.goto(path.as_uri())
    alone.wait_for_selector('#player[data-frame="7"]')
    assert (at(alone, "round"), at(alone, "phase")) == (at(page, "round"), at(page, "phase"))
    assert alone.input_value("#player .row-picker") == "2"
    pressed = "all => all.map((one) => [one.textContent, one.ariaPressed])"
    buttons = "#player :is([data-model], [data-shows], [data-toggle])"
    there, here = (one.locator(buttons).evaluate_all(pressed) for one in (alone, page))
    assert there == here
    for view in ("cache", "positions", "table"):
        shown = f'[data-lane="eqspec"] [data-view="{view}"]'
        assert alone.inner_text(shown) == page.inner_text(shown)
    press(alone, "Home", 0)
    alone.close()


def test_a_page_of_its_own_is_light_or_dark_as_the_reader_likes(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    path = saved(page, "page", tmp_path)
    grounds = []
    for scheme in ("light", "dark"):
        alone = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 844})
        alone.goto(path.as_uri())
        alone.wait_for_selector(READY)
        ground = "getComputedStyle(document.querySelector('.lane')).backgroundColor"
        grounds.append(alone.evaluate(ground))
        assert alone.evaluate("document.documentElement.scrollWidth") <= 390
        alone.close()
    assert grounds == ["rgb(255, 255, 255)", "rgb(28, 31, 37)"]


def test_the_link_is_copied_or_shown(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press(page, "ArrowRight", 1)
    open_menu(page)
    page.click('[data-share="link"]')
    told = page.locator(".sharing .told")
    expect(told).to_contain_text("Link copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url and "frame=1" in copied
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }")
    page.click('[data-share="link"]')
    expect(told.locator("input")).to_have_value(page.url)


def test_traces_open_as_lanes(hostile: Page, tmp_path: Path) -> None:
    both = saved(hostile, "trace", tmp_path)
    texts = {}
    for view in ("tokens", "cache", "positions"):
        texts[view] = hostile.inner_text(f'[data-lane="pad"] [data-view="{view}"]')
    zipped = tmp_path / "example.json.gz"
    zipped.write_bytes(RECORDINGS["eqspec"].read_bytes())
    open_files(hostile, zipped)
    expect(hostile.locator(".lane")).to_have_count(1)
    hostile.wait_for_selector('#player[data-live="recorded"][data-frame="0"]')
    assert len(load_example()[1].frames) == int(at(hostile, "frames"))
    open_files(hostile, both)
    expect(hostile.locator(".lane")).to_have_count(2)
    for frame in range(1, 4):
        press(hostile, "ArrowRight", frame)
    for view, text in texts.items():
        assert hostile.inner_text(f'[data-lane="pad"] [data-view="{view}"]') == text
    open_menu(hostile)
    hostile.click('[data-share="link"]')
    expect(hostile.locator(".sharing .told")).to_contain_text("A link cannot hold")
    open_files(hostile, *RECORDINGS.values())
    expect(hostile.locator('[data-view="tokens"] .row')).to_have_count(4 * len(LANES))


def test_the_trace_written_by_hand_opens_on_the_page(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(written_by_hand(), encoding="utf-8")
    open_files(page, path)
    expect(page.locator('[data-lane="mine"] [data-part="sentence"]')).to_contain_text(
        "second draft"
    )
    assert at(page, "frames") == "1"
    for what in ("trace", "table", "timing", "svg", "png", "page"):
        assert saved(page, what, tmp_path).stat().st_size > 200


def damaged(name: str, tmp_path: Path) -> list[Path]:
    """Files that cannot be shown."""
    content = json.loads(gzip.decompress(RECORDINGS["pad"].read_bytes()))
    path = tmp_path / "file.json"
    if name == "markup":
        content["frames"][3]["phase"] = IMAGE
    elif name == "twice":
        return [RECORDINGS["pad"]] * 2
    elif name == "bytes":
        path.write_bytes(b"\xff\xfe\x00\x81")
        return [path]
    elif name == "zip":
        path.write_bytes(RECORDINGS["pad"].read_bytes()[:500])
        return [path]
    elif name == "large":
        path.write_bytes(gzip.compress(b" " * 41_000_000))
        return [path]
    path.write_text(json.dumps(content if name == "markup" else [1, 2]), encoding="utf-8")
    return [path]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("markup", "has the phase '<img src=x"),
        ("twice", "Each strategy can be opened once"),
        ("bytes", "file.json is damaged or no text file"),
        ("zip", "file.json is damaged or no text file"),
        ("large", "more than 40 MB"),
        ("numbers", "not a trace"),
    ],
)
def test_files_that_cannot_be_shown_leave_the_picture(
    page: Page, tmp_path: Path, name: str, words: str
) -> None:
    press(page, "ArrowRight", 1)
    before = page.inner_text("#player .lanes")
    open_files(page, *damaged(name, tmp_path))
    expect(page.locator("#player .state")).to_contain_text(words, timeout=20_000)
    assert page.inner_text("#player .lanes") == before and at(page, "frame") == "1"
    assert page.locator("#player img").count() == 0
    press(page, "ArrowRight", 2)


@pytest.mark.parametrize("width", [1440, 390])
def test_the_menu_opens_inside_the_window_and_by_keys(
    browser: Browser, address: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(f"{address}/?__theme=light")
    page.wait_for_selector(READY, timeout=60_000)
    page.focus(".sharing summary")
    page.keyboard.press("Enter")
    panel = page.locator(".sharing > div")
    expect(panel).to_be_visible()
    page.wait_for_timeout(200)
    box = panel.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= width
    assert box["y"] >= 0 and box["y"] + box["height"] <= 844
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.share") == "trace"
    with page.expect_download():
        page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.close()
