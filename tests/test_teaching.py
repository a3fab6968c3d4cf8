"""A draft is taught what its target wrote and thought, token for token."""

from itertools import islice

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from batchspec.storyteller import TARGET_FOLDER, distil
from batchspec.storyteller.train import DRAFT_SHAPE, build_model
from batchspec.teaching import distillation
from batchspec.teaching.distillation import agreement, batch_of, batches, loss_of, whole
from batchspec.teaching.lessons import BEST, GROUPED, Lessons
from batchspec.teaching.optimizer import Optimizer

ROWS = 12


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(TARGET_FOLDER)


@pytest.fixture(scope="module")
def teacher() -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(TARGET_FOLDER, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def lessons(teacher, tokenizer) -> list[Lessons]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distil, "ROWS_PER_LESSON", ROWS)
        return list(islice(distil.write_lessons(teacher, tokenizer, seed=3), 2))


@pytest.fixture
def pupil() -> distil.PlainPupil:
    return distil.PlainPupil(build_model(DRAFT_SHAPE, seed=0))


def rows_of(lesson: Lessons) -> list[list[int]]:
    return [
        row[:length].tolist() for row, length in zip(lesson.tokens, lesson.lengths, strict=True)
    ]


def test_rows_are_openings_and_what_the_teacher_writes_after_them_alone(
    lessons, teacher, tokenizer
):
    assert len({lesson.first for lesson in lessons}) == 2
    for lesson in lessons:
        assert len(rows_of(lesson)) == ROWS and len({*map(tuple, rows_of(lesson))}) > ROWS / 2
        for number, row in enumerate(rows_of(lesson)):
            assert row[0] == tokenizer.bos_token_id
            assert tokenizer.eos_token_id not in row[:-1]
            length = len(row) - lesson.first
            assert row[-1] == tokenizer.eos_token_id or length == distil.WRITTEN_TOKENS
            with torch.inference_mode():
                alone = teacher(torch.tensor([row])).logits[0].log_softmax(-1).topk(BEST)
            before = slice(lesson.first - 1, len(row) - 1)
            if number < ROWS / 3:
                assert lesson.answers[number] == len(row)
            else:
                assert lesson.answers[number] == lesson.first
                assert alone.indices[before, 0].tolist() == row[lesson.first :]
            found = lesson.logprobs[number, lesson.first : len(row)].astype(np.float32)
            assert np.abs(found - alone.values[before].numpy()).max() < 0.02
    sampled = [lesson.tokens[: ROWS // 3, lesson.first :] for lesson in lessons]
    best = [lesson.best[: ROWS // 3, lesson.first :, 0] for lesson in lessons]
    assert any((tokens != ids).any() for tokens, ids in zip(sampled, best, strict=True))


def test_heads_that_ask_together_are_told_the_same(lessons, teacher, tokenizer, monkeypatch):
    grouped = AutoModelForCausalLM.from_pretrained(
        TARGET_FOLDER, dtype=torch.float32, attn_implementation=GROUPED
    )
    ids = torch.tensor([row[:9] for row in rows_of(lessons[0])])
    with torch.inference_mode():
        assert torch.allclose(grouped(ids).logits, teacher(ids).logits, atol=1e-3)
    monkeypatch.setattr(distil, "ROWS_PER_LESSON", ROWS)
    again = next(distil.write_lessons(grouped.eval(), tokenizer, seed=3))
    assert rows_of(again) == rows_of(lessons[0])


def test_a_time_through_meets_each_row_once_and_rows_of_like_lengths(lessons, monkeypatch):
    monkeypatch.setattr(distillation, "ROWS_PER_STEP", 3)
    monkeypatch.setattr(distillation, "STEPS_SORTED", 8)
    steps = batches(lessons, seed=0)
    first, second = ([next(steps) for _ in range(8)] for _ in range(2))

    def met(batches):
        return [len(batch.places) for batch in batches]

    rows = [(int(n), lesson.first) for lesson in lessons for n in lesson.lengths]
    rows.sort(key=lambda row: row[0])
    written = [length - first for length, first in rows]
    thirds = [sum(written[place : place + 3]) for place in range(0, 24, 3)]
    assert sorted(met(first)) == sorted(met(second)) == sorted(thirds)
    others = batches(lessons, seed=1)
    assert met(first) != met(second) or met(first) != met([next(others) for _ in range(8)])


def test_rows_of_lessons_of_different_widths_lie_side_by_side(lessons):
    picked = [(lesson, row) for row in range(2, 6) for lesson in lessons]
    batch = batch_of(picked)
    read = batch.ids.flatten()[batch.places]
    wanted = [rows_of(lesson)[row][lesson.first - 1 : -1] for lesson, row in picked]
    assert read.tolist() == [token for row in wanted for token in row]
    answers = [rows_of(lesson)[row][lesson.answers[row] :] for lesson, row in picked]
    assert batch.best[batch.answers, 0].tolist() == [token for row in answers for token in row]


def test_the_loss_is_cross_entropy_with_the_teacher(pupil, lessons, monkeypatch):
    # With every token compared nothing is left to chance.
    monkeypatch.setattr(distillation, "COMPARED", BEST)
    monkeypatch.setattr(distillation, "OTHERS", 10_000)
    given = whole(lessons)
    found = loss_of(pupil, given).item()
    logits = pupil.finished()(given.ids).logits.flatten(0, 1)[given.places]
    chances = given.logprobs.exp()
    chances = chances / chances.sum(1, keepdim=True)
    wanted = -(chances * logits.log_softmax(1).gather(1, given.best)).sum(1).mean().item()
    assert found == pytest.approx(wanted, rel=0.01)  # bfloat16


def test_tokens_drawn_at_random_stand_for_the_rest(pupil, lessons, monkeypatch):
    given = whole(lessons)
    monkeypatch.setattr(distillation, "OTHERS", 10_000)
    complete = loss_of(pupil, given).item()
    monkeypatch.setattr(distillation, "OTHERS", 200)
    sampled = np.mean([loss_of(pupil, given).item() for _ in range(8)])
    assert sampled == pytest.approx(complete, rel=0.03)


def test_it_learns(pupil, lessons):
    given, optimizer = whole(lessons), Optimizer(pupil)
    losses = [optimizer.descend(loss_of(pupil, given), 0.1) for _ in range(40)]
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])


def test_learning_rates_rise_and_fall_to_nothing():
    layer = torch.nn.Linear(2, 2)
    rates = []
    for progress in (0.0, 0.03, 0.5, 1.0):
        optimizer = Optimizer(layer, peak=0.5)
        optimizer.descend(layer(torch.ones(2)).sum(), progress)
        rates.append([part.param_groups[0]["lr"] for part in optimizer.parts])
    assert rates[1] == pytest.approx([0.01, 0.002])
    assert rates[0][0] < 0.1 * rates[1][0] and rates[3] == pytest.approx([0, 0])
    assert 0.4 < rates[2][0] / rates[1][0] < 0.6


def test_the_teacher_agrees_with_itself(teacher, lessons):
    assert agreement(teacher, whole(lessons)) == 1.0


def test_minutes_give_a_draft_and_a_record(tokenizer, monkeypatch):
    monkeypatch.setattr(distil, "ROWS_PER_LESSON", 16)
    monkeypatch.setattr(distil, "HELD_OUT_LESSONS", 1)
    draft = build_model(DRAFT_SHAPE, seed=0)
    record = distil.distil_draft(draft, tokenizer, minutes=0.02, lessons=1)
    assert record["steps"] >= 1 and record["tokens"] > 300
    assert 0 <= record["agreement"] < 0.9
