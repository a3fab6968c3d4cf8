"""The benchmark: what it measures is what was run, in turns, and an interrupt loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import batchspec.commands
from batchspec import DecodeConfig, DecodeError, generate
from batchspec.bench import measuring
from batchspec.bench.baseline import generate_plainly
from batchspec.bench.experiments import Plan, experiments
from batchspec.bench.grid import grids, markdown
from batchspec.bench.measuring import measure
from batchspec.bench.metrics import METRICS
from batchspec.bench.names import EXPERIMENTS
from batchspec.bench.result import TRANSFORMERS, Benchmark, Setting
from batchspec.bench.serving import poisson_arrivals, serve
from batchspec.cli import main
from batchspec.decoding import start_rows
from batchspec.strategies import STRATEGIES
from batchspec.strategies.pad import Pad
from tiny import FAMILIES, ROWS, all_written, shared_pair

BUDGET = 12
CONFIG = DecodeConfig(max_new_tokens=BUDGET, batch_size=2, draft_tokens=3, eos_token_ids=())
METHODS = (TRANSFORMERS, "pad", "eqspec", "exspec", "ragged")
SERVED = ("eqspec", "exspec", "ragged", "holes", "rollback")


class Faulty(Pad):
    """Claims to be correct and is not."""

    name = "eqspec"
    correct = True


def plan(methods: tuple[str, ...] = METHODS, sizes: tuple[int, ...] = (1, 3)) -> Plan:
    return Plan(shared_pair(), CONFIG, methods, sizes)


def measured(names: tuple[str, ...], repeats: int = 1, **changes: Any) -> Benchmark:
    return list(measure(plan(**changes), ROWS, names, repeats))[-1].benchmark


@pytest.fixture
def ids_file(tmp_path: Path) -> str:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps({"ids": row}) for row in ROWS), encoding="utf-8")
    return str(file)


@pytest.fixture(autouse=True)
def _tiny_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchspec.commands.load_pair", lambda *_, **__: shared_pair())


# What is measured


def test_counts_and_tokens_are_those_of_the_run() -> None:
    benchmark = measured(("5a",), repeats=2)
    (experiment,) = benchmark.experiments
    points = benchmark.measured(experiment)
    assert [(point.series, point.x) for point, _ in points] == [
        (method, size) for method in METHODS for size in (1, 3)
    ]
    for point, found in points:
        config = found.setting.config
        assert config.batch_size == point.x and len(found.runs) == 2
        for run in found.runs:
            assert run.seconds > 0 and run.tokens == BUDGET * len(ROWS)
            speed = run.tokens / run.seconds
            spread = METRICS["tokens_per_second"].spread(benchmark, found)
            assert spread is not None and spread.lowest <= speed <= spread.highest
            if point.series == TRANSFORMERS:
                assert not run.phases and not found.promised
                continue
            stats = generate(shared_pair(), ROWS, config).stats
            assert run.counts["rounds"] == stats.rounds
            assert run.counts["group_rate"] == stats.group_rate
            assert 0 < sum(run.phases.values()) <= run.seconds
        assert (found.exact_match_rate == 1) is (point.series != "pad" or point.x == 1)
    assert benchmark.finished and benchmark.equivalent
    assert benchmark.environment["cores"] and benchmark.environment["processor"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_transformers_itself_is_run_right(family: str, size: int) -> None:
    pair, expected = shared_pair(family), all_written(family, ROWS, BUDGET)
    eos = (expected[0][3], expected[1][5])
    for ends in ((), eos):
        config = DecodeConfig(max_new_tokens=BUDGET, batch_size=size, eos_token_ids=ends)
        rows = start_rows(pair, ROWS, config)
        wanted = all_written(family, ROWS, BUDGET, ends)
        assert generate_plainly(pair, rows, config) == wanted


def test_a_speedup_compares_runs_of_the_same_repeat_and_batch_size() -> None:
    benchmark = measured(("5a",), repeats=3)
    for point, found in benchmark.measured(benchmark.experiments[0]):
        spread = METRICS["speedup"].spread(benchmark, found)
        rival = benchmark.rival(found)
        assert spread is not None and rival is not None
        assert rival.setting.method == TRANSFORMERS
        assert rival.setting.config.batch_size == point.x
        ratios = [
            its.seconds / run.seconds for run, its in zip(found.runs, rival.runs, strict=True)
        ]
        assert spread.median == pytest.approx(sorted(ratios)[1])


def test_settings_take_turns_and_equal_ones_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list(measure(plan(("eqspec", "ragged")), ROWS, ("5a", "5b"), 2))
    said = [step.doing for step in steps]
    # What is compared runs one after the other: the machine's speed changes within minutes.
    names = [f"{method}, batch of {size}" for size in (1, 3) for method in ("eqspec", "ragged")]
    turns = [f"{name}, run {number} of 2" for number in (1, 2) for name in names]
    assert said == ["the target alone", *(f"warm-up: {name}" for name in names), *turns, ""]
    assert [step.done for step in steps[-9:]] == list(range(9))
    assert {step.total for step in steps} == {8}
    assert steps[0].remaining is None and steps[-1].remaining == 0
    assert all(step.remaining is not None for step in steps[6:])


@pytest.mark.parametrize("stop", [1, 7, 12])
def test_whoever_stops_keeps_what_was_measured(stop: int) -> None:
    run = measure(plan(("eqspec", "ragged")), ROWS, ("5a",), 2)
    for _ in range(stop):
        progress = next(run)
    run.close()
    benchmark = progress.benchmark
    assert not benchmark.finished
    assert sum(len(each.runs) for each in benchmark.measurements) == max(0, stop - 6)
    assert "stopped" in markdown(benchmark, []) or stop == 1
    assert len(benchmark.measured(benchmark.experiments[0])) == min(4, max(0, stop - 6))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_and_survives_json(name: str) -> None:
    benchmark = measured((name,), methods=(TRANSFORMERS, "eqspec", "exspec", "ragged"))
    assert benchmark.equivalent and benchmark.finished
    text = json.dumps(benchmark.to_json(), allow_nan=False)
    assert Benchmark.from_json(json.loads(text)) == benchmark
    (experiment,) = benchmark.experiments
    assert len(benchmark.measured(experiment)) == len(experiment.points)
    found = grids(benchmark, experiment)
    assert found and all(len(row) == len(grid.heads) for grid in found for row in grid.rows)
    page = markdown(benchmark, ["bench", "--prompts", "two words.txt"])
    assert "'two words.txt'" in page and benchmark.environment["processor"] in page
    for grid in found:
        assert f"| {' | '.join(grid.rows[-1])} |" in page


def test_equal_lengths_group_more_often() -> None:
    benchmark = measured(("5c",), sizes=(2,))
    rates = {
        point.series: found.runs[0].counts["group_rate"]
        for point, found in benchmark.measured(benchmark.experiments[0])
    }
    assert rates["equal lengths"] > rates["given lengths"]


def test_a_pair_is_spared_what_it_cannot_run() -> None:
    pair = shared_pair("bloom", "copy")
    assert not pair.takes_query_masks
    found = experiments(Plan(pair, CONFIG, ("eqspec", "ragged"), (1,)), ("5a", "1"))
    assert {point.series for point in found[0].points} == {"eqspec"}
    assert "ragged" not in {point.series for point in found[1].points}


# Rows that arrive one by one


@pytest.mark.parametrize("strategy", SERVED)
@pytest.mark.parametrize("gap", [0.0, 1e-4, 2e-3, 10.0])
def test_rows_that_arrive_late_are_written_right(strategy: str, gap: float) -> None:
    prompts = ROWS * 3
    config = DecodeConfig(
        strategy=strategy, max_new_tokens=BUDGET, batch_size=4, window=6, eos_token_ids=()
    )
    pair = shared_pair()
    rows = start_rows(pair, prompts, config)
    served = serve(pair, rows, [gap * number for number in range(len(rows))], config)
    assert [row.generated for row in rows] == all_written("llama", prompts, BUDGET)
    assert served.stats.committed == BUDGET * len(rows)
    assert len(served.latencies) == len(rows) and min(served.latencies) > 0
    assert served.seconds >= gap * (len(rows) - 1)
    if gap == 10:  # nobody waits for anybody, and nobody for the clock
        assert max(served.latencies) < 9 and served.seconds > 80


def test_a_late_row_runs_beside_the_others_where_lanes_can_be_opened() -> None:
    pair = shared_pair()
    config = DecodeConfig(strategy="ragged", max_new_tokens=24, batch_size=3, eos_token_ids=())
    rows = start_rows(pair, ROWS, config)
    served = serve(pair, rows, [0.0, 1e-9, 1e-9], config)
    alone = generate(pair, ROWS[:1], config).stats.rounds
    together = generate(pair, ROWS, config).stats.rounds
    assert served.stats.rounds <= together + 1 < 3 * alone


def test_arrivals_are_poisson_and_the_same_again() -> None:
    times = poisson_arrivals(4000, 5.0, 1)
    assert times == poisson_arrivals(4000, 5.0, 1) != poisson_arrivals(4000, 5.0, 2)
    assert times[0] == 0 and times == sorted(times)
    assert 4000 / times[-1] == pytest.approx(5, rel=0.1)


def test_latencies_are_nearest_rank() -> None:
    benchmark = measured(("table4",), methods=("eqspec",))
    for _, found in benchmark.measured(benchmark.experiments[0]):
        ordered = sorted(found.runs[0].latencies)
        for name, place in (("latency_50", 1), ("latency_90", 2), ("latency_99", 2)):
            spread = METRICS[name].spread(benchmark, found)
            assert spread is not None and spread.median == ordered[place]
        assert found.arrivals_per_second > 0


# The command


COMMAND = ["bench", "--max-new-tokens", "12", "--eos-token-ids", "never", "--repeats", "1"]


def test_the_command_prints_and_writes(
    ids_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "bench.json", tmp_path / "bench.md"
    arguments = [*COMMAND, "--prompts", ids_file, "--batch-sizes", "1,2", "--figure", "5a"]
    assert main([*arguments, "--json", str(file), "--markdown", str(page)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and "Throughput against batch size" in out and "In every run" in out
    entry = json.loads(file.read_text(encoding="utf-8"))
    benchmark = Benchmark.from_json(entry)
    assert entry["equivalent"] is True and entry["prompts"] == ROWS
    assert benchmark.prompt_tokens == tuple(map(len, ROWS))
    for grid in grids(benchmark, benchmark.experiments[0]):
        for row in grid.rows:
            assert " ".join(row) in " ".join(out.split())
            assert f"| {' | '.join(row)} |" in page.read_text(encoding="utf-8")
    assert "--batch-sizes 1,2" in page.read_text(encoding="utf-8")


def test_a_divergence_is_1_and_what_promises_nothing_is_not(
    ids_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*COMMAND, "--prompts", ids_file, "--batch-sizes", "3", "--figure", "5a"]
    assert main([*arguments, "--strategy", "pad"]) == 0
    assert "pad promises no more" in capsys.readouterr().out
    monkeypatch.setitem(STRATEGIES, "eqspec", Faulty)
    assert main([*arguments, "--strategy", "eqspec"]) == 1
    assert "eqspec is a fault" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--figure 7", "'7'"),
        ("--strategy guess", "'guess'"),
        ("--batch-sizes 0", "not 0"),
        ("--batch-sizes 1,x", "'1,x'"),
        ("--repeats 0", "not 0"),
        ("--markdown missing/page.md", "missing/page.md"),
        ("--max-new-tokens 0", "at least 1"),
        ("--temperature 1", "temperature 0"),
        ("--max-new-tokens 9999", "context"),
        ("--figure 5b --strategy transformers", "Nothing is left"),
    ],
)
def test_bad_input_is_one_sentence(
    ids_file: str, arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--prompts", ids_file, *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and words in err


@pytest.mark.parametrize(("runs", "shown"), [(0, False), (3, True)])
def test_an_interrupt_shows_what_was_measured(
    runs: int,
    shown: bool,
    ids_file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*arguments: Any) -> Iterator[measuring.Progress]:
        for progress in measure(*arguments):
            yield progress
            if progress.done == runs:
                raise KeyboardInterrupt

    monkeypatch.setattr(batchspec.commands, "measure", interrupted)
    arguments = [*COMMAND, "--prompts", ids_file, "--batch-sizes", "1,2", "--figure", "5a"]
    assert main(arguments) == 130
    out = capsys.readouterr().out
    assert ("stopped before all runs" in out) is shown
    assert ("tokens/s" in out) is shown


def test_a_bench_refuses_what_is_no_list_of_experiments() -> None:
    for names in ((), ("guess",)):
        with pytest.raises(DecodeError, match="Unknown experiment"):
            measure(plan(), ROWS, names)
    with pytest.raises(DecodeError, match="at least one prompt"):
        measure(plan(), [])
    with pytest.raises(DecodeError, match="repeats"):
        measure(plan(), ROWS, repeats=0)


def test_a_setting_is_told_by_all_of_it() -> None:
    assert Setting("eqspec", CONFIG) == Setting("eqspec", CONFIG)
    assert Setting("eqspec", CONFIG) != Setting("eqspec", CONFIG, load=0.5)
