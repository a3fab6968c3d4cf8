"""The command line: the engine's numbers, readable and as JSON, and exit codes to rely on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from functools import cache
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

import batchspec.ablation
from batchspec import DecodeConfig, ModelPair, NGramDraft, compare, generate, load_pair
from batchspec.ablation import ablate
from batchspec.cli import main, make_parser
from batchspec.config import STRATEGY_NAMES
from batchspec.strategies import STRATEGIES
from batchspec.strategies.pad import Pad
from batchspec.tables import print_ablation, print_comparison, print_table
from batchspec.terminal import visible
from tiny import ROWS, shared_pair

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
SHORT = ["--max-new-tokens", "12", "--eos-token-ids", "never"]
CONFIG = DecodeConfig(max_new_tokens=12, eos_token_ids=())
FOX = "One day, a fox"
KITE = "Q: Who has the kite?"


class Faulty(Pad):
    """Claims to be correct and is not."""

    name = "eqspec"
    correct = True


@cache
def storyteller() -> ModelPair:
    return load_pair("storyteller")


@pytest.fixture(autouse=True)
def _pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the storyteller once, and know the tiny pair by name."""

    def load(name: str, draft: str | None, *others: str, **more: Any) -> ModelPair:
        known = {"storyteller": storyteller, "tiny": shared_pair}
        if draft is None and others == ("auto", "auto") and name in known:
            return known[name]()
        return load_pair(name, draft, *others, **more)

    monkeypatch.setattr("batchspec.commands.load_pair", load)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def ids_file(tmp_path: Path) -> str:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps({"ids": row}) for row in ROWS), encoding="utf-8")
    return str(file)


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, list[Any], DecodeConfig]]:
    """What the parser hands on, without running it."""
    calls: list[tuple[Any, list[Any], DecodeConfig]] = []

    def run(options: Any, prompts: list[Any], config: DecodeConfig) -> int:
        calls.append((options, prompts, config))
        return 0

    monkeypatch.setattr("batchspec.commands.run", run)
    return calls


def process(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    command = ["-m", "batchspec"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *command, *arguments],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


# Options


def test_help_is_there_without_torch() -> None:
    code = (
        "import sys; from batchspec.cli import main\n"
        "try: main(['compare', '--help'])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = process(code=code)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--strategy" in done.stdout


@pytest.mark.parametrize("command", ["generate", "compare"])
def test_every_setting_has_an_option_with_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args([command, "--help"])
    text = " ".join(capsys.readouterr().out.split("settings:")[1].split())
    for setting in fields(DecodeConfig):
        if setting.name not in ("strategy", "grouping"):
            option = text.split("--" + setting.name.replace("_", "-"))[1].split(" --")[0]
            assert len(option.split()) > 5, option
    assert "--no-grouping" in text


def test_a_fault_is_compared_with_the_strategy_it_breaks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = "compare --max-new-tokens 12 --fault draft_as_correction --json - --limit 2"
    assert main(argv.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equivalent"] and found["settings"]["fault"] == "draft_as_correction"
    assert list(found["strategies"]) == [
        "eqspec",
        "eqspec+draft_as_correction",
        "exspec",
        "exspec+draft_as_correction",
    ]
    assert found["strategies"]["exspec+draft_as_correction"]["exact_match_rate"] < 1
    assert main(["compare", "--ablate", "--fault", "rows_swapped"]) == 2
    assert main(["compare", "--strategy", "ragged", "--fault", "rows_swapped"]) == 2
    assert "cannot occur in ragged" in capsys.readouterr().err


def test_every_setting_reaches_the_run(captured: Any) -> None:
    wanted = DecodeConfig(
        draft_tokens=2,
        max_new_tokens=9,
        batch_size=3,
        window=5,
        top_k=7,
        top_p=0.5,
        seed=11,
        acceptance="exact",
        threshold=0.25,
        length_bucket=2,
        grouping=False,
        eos_token_ids=(2, 5),
    )
    argv = "compare -k 2 --max-new-tokens 9 --batch-size 3 --window 5 --temperature 0 --top-k 7"
    argv += " --top-p 0.5 --seed 11 --acceptance exact --threshold 0.25 --length-bucket 2"
    argv += " --no-grouping --eos-token-ids 2,5"
    assert main(argv.split()) == main(["generate"]) == 0
    main(["generate", "--draft-tokens", "3", "--eos-token-ids", "never"])
    configs = [config for _, _, config in captured]
    assert configs == [
        wanted,
        DecodeConfig(),
        DecodeConfig(draft_tokens=3, eos_token_ids=()),
    ]


def test_prompts_come_from_arguments_then_the_file_up_to_the_limit(
    captured: Any, ids_file: str
) -> None:
    main(["generate", FOX, KITE, "--prompts", ids_file])
    main(["generate", FOX, "--prompts", ids_file, "--limit", "2"])
    main(["generate", FOX, KITE, "--limit", "1"])
    assert [prompts for _, prompts, _ in captured] == [[FOX, KITE, *ROWS], [FOX, ROWS[0]], [FOX]]


def test_strategies_are_chosen_by_name(captured: Any) -> None:
    main(["compare", "--strategy", "pad", "--strategy", "holes"])
    main(["compare"])
    main(["generate", "--strategy", "holes"])
    main(["generate"])
    chosen = [options.strategy for options, _, _ in captured]
    assert chosen == [["pad", "holes"], None, "holes", "eqspec"]


BAD = [
    ("", "COMMAND"),
    ("guess", "'guess'"),
    ("generate --strategy guess", "'guess'"),
    ("generate --guess", "--guess"),
    ("compare --strat pad", "--strat"),
    ("compare -k 0", "at least 1, not 0"),
    ("compare -k two", "'two'"),
    ("compare --temperature nan", "nan"),
    ("compare --temperature -1", "-1"),
    ("compare --threshold inf", "inf"),
    ("compare --acceptance lucky", "'lucky'"),
    ("compare --eos-token-ids 2,x", "'2,x'"),
    ("compare --limit 0", "not 0"),
    ("compare --prompts missing.txt", "missing.txt"),
    ("compare --json missing/numbers.json", "missing/numbers.json"),
    ("compare --json .", "cannot be written"),
    ("compare --pair storyteller --target storyteller", "--target"),
    ("compare --pair guess", "'guess'"),
    ("compare --target guess --draft ngram", "'guess'"),
    ("compare --target guess", "needs a draft"),
    ("compare --draft guess", "'guess'"),
    ("compare --device guess", "'guess'"),
    ("compare --dtype guess", "'guess'"),
    ("compare --strategy pad --strategy pad", "once"),
    ("compare --ablate --strategy pad", "--strategy"),
    ("compare --max-new-tokens 999999", "context"),
    ("generate --pair tiny", "no prompt"),
    ("generate --pair tiny Once", "no tokenizer"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_one_sentence(
    arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("batchspec: ") and err.endswith(".\n") and err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(("text", "words"), [("", "Prompt 1"), ("a\udcff", "UTF-8")])
def test_a_prompt_that_is_no_text_is_refused(
    text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", text]) == 2
    assert words in capsys.readouterr().err


def test_an_error_sends_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--prompts", "\x1b[31m\n"]) == 2
    err = capsys.readouterr().err
    assert "␛[31m↵" in err and "\x1b" not in err


# What the commands print and write


def test_generate_prints_every_text_and_what_it_cost(capsys: pytest.CaptureFixture[str]) -> None:
    expected = generate(storyteller(), [FOX, KITE], DecodeConfig(max_new_tokens=12))
    capsys.readouterr()  # what loading the pair here printed
    assert main(["generate", FOX, KITE, "--max-new-tokens", "12"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"row 0: {FOX}\n" in out and f"row 1: {KITE}\n" in out
    assert expected.texts is not None
    lines = [line.strip() for line in out.split("\n")]
    for text in expected.texts:
        assert all(line.strip() in lines for line in text.split("\n"))
    facts = dict(line.rsplit(maxsplit=1) for line in out.strip().split("\n")[-10:])
    assert facts["target forwards"] == str(expected.stats.target_forwards)
    assert facts["mean acceptance length"] == f"{expected.stats.mean_acceptance_length:.2f}"
    assert "own examples" not in out


def test_without_prompts_the_examples_are_used_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["generate", "--limit", "2", "--max-new-tokens", "2"]) == 0
    out = capsys.readouterr().out
    assert "own examples" in out
    assert [example in out for example in storyteller().examples[:3]] == [True, True, False]


def test_ngram_drafts_without_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["generate", FOX, "--max-new-tokens", "20", "--draft", "ngram", "--json", "-"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    pair = ModelPair(storyteller().target, NGramDraft(), storyteller().tokenizer)
    expected = generate(pair, [FOX], DecodeConfig(max_new_tokens=20))
    assert found["tokens"] == expected.tokens
    assert found["stats"]["draft_forwards"] == 0 and "n-gram" in found["pair"]
    assert found["environment"]["draft_dtype"] is None


def test_json_holds_the_numbers_of_compare(
    ids_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "numbers.json"
    arguments = ["compare", "--pair", "tiny", "--prompts", ids_file, *SHORT, "--json", str(file)]
    assert main(arguments) == 0
    assert "exact" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    names = ("pad", "eqspec", "exspec")
    expected = compare(
        shared_pair(),
        ROWS,
        [DecodeConfig(strategy=name, max_new_tokens=12, eos_token_ids=()) for name in names],
    )
    assert list(found["strategies"]) == list(names) and found["equivalent"] is True
    assert found["prompts"] == ROWS
    assert found["settings"]["max_new_tokens"] == 12 and found["settings"]["eos_token_ids"] == []
    assert {"python", "torch", "transformers", "device", "dtype"} <= set(found["environment"])
    assert found["reference"]["tokens"] == expected.reference.tokens
    for name in names:
        entry, result = found["strategies"][name], expected[name]
        assert entry["exact_match_rate"] == result.exact_match_rate
        assert entry["first_divergence"] == result.first_divergence
        assert entry["diagnosis"] == result.diagnosis
        assert entry["tokens"] == result.generation.tokens and entry["texts"] is None
        assert entry["promised"] is (name != "pad")
        timed = {"seconds", "tokens_per_second", "moving_share"}
        summary = result.generation.stats.summary()
        assert entry["stats"].keys() == summary.keys()
        assert {key: entry["stats"][key] for key in summary.keys() - timed} == {
            key: summary[key] for key in summary.keys() - timed
        }


def test_compare_prints_the_same_numbers_and_why_rows_diverge(
    ids_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "numbers.json"
    main(["compare", "--pair", "tiny", "--prompts", ids_file, *SHORT, "--json", str(file)])
    out = capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))["strategies"]
    lines = out.split("\n")
    for name, entry in found.items():
        cells = next(line for line in lines if line.startswith(name + " ")).split()
        places = [place for place in entry["first_divergence"] if place is not None]
        stats = entry["stats"]
        assert cells == [
            name,
            f"{100 * entry['first_divergence'].count(None) // len(ROWS)}%",
            str(min(places)) if places else "–",
            f"{stats['mean_acceptance_length']:.2f}",
            f"{stats['draft_acceptance_rate']:.0%}",
            str(stats["target_forwards"]),
            str(stats["rounds"]),
            f"{stats['moving_share']:.1%}",
            f"{stats['tokens_per_second']:.0f}",
            str(stats["realigned_rounds"]),
            f"{stats['group_rate']:.0%}",
            str(stats["kv_slots_moved"]),
        ]
        for number, words in enumerate(entry["diagnosis"]):
            assert (f"{name}, row {number} " in out) is (words is not None)
            assert words is None or words in out
    assert any(found["pad"]["diagnosis"]) and "no more is promised" in out


def test_what_is_piped_is_wide_and_plain() -> None:
    done = process("compare", *storyteller().examples, "--max-new-tokens", "8", "--strategy", "pad")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    head = next(line for line in done.stdout.split("\n") if line.startswith("strategy"))
    assert head.split()[0] == "strategy" and head.split()[-1] == "moved"


def test_json_on_standard_output_is_alone_there() -> None:
    done = process("generate", FOX, "--max-new-tokens", "4", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["prompts"] == [FOX]


def console(width: int) -> tuple[Console, StringIO]:
    file = StringIO()
    return Console(file=file, width=width, markup=False, highlight=False, emoji=False), file


@pytest.mark.parametrize("width", [80, 100, 200])
def test_tables_fit_the_terminal_and_wrap_no_number(width: int) -> None:
    names = [*STRATEGY_NAMES]
    comparison = compare(
        shared_pair(),
        ROWS,
        [DecodeConfig(strategy=name, max_new_tokens=12, eos_token_ids=()) for name in names],
    )
    output, file = console(width)
    print_comparison(output, ROWS, comparison)
    lines = file.getvalue().split("\n")
    assert max(map(len, lines)) <= width
    for name in names:  # each number whole, whichever part of the table it is in
        rows = [line.split()[1:] for line in lines if line.startswith(name + "  ")]
        assert len(rows) == (1 if width == 200 else 2)
        stats = comparison[name].generation.stats
        assert sum(map(len, rows)) == 11 and rows[-1][-1] == str(stats.kv_slots_moved)
    output, file = console(width)
    print_ablation(output, ROWS, ablate(shared_pair(), ROWS, CONFIG, repeats=1))
    lines = file.getvalue().split("\n")
    assert max(map(len, lines)) <= width and "…" not in file.getvalue()
    ratios = re.findall(r"[×–][\d.]*(?= |$)", "\n".join(lines[:-4]), re.MULTILINE)
    assert len(ratios) == 9 * len(batchspec.ablation.configurations(shared_pair(), CONFIG))


def test_a_column_that_fits_nowhere_is_printed_all_the_same() -> None:
    output, file = console(10)
    print_table(output, ["name", "a" * 12, "b" * 12], [[Text("x"), Text("1"), Text("2")]])
    assert "1" in file.getvalue() and "2" in file.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 狐 🦊 é\u200d", "plain 狐 🦊 é\u200d"),
        ("a\nb\tc\rd\0", "a↵b␉c␍d␀"),
        ("\x1b[31m\x7f\x9b", "␛[31m<U+007F><U+009B>"),
        ("\u202eabc\u2066\u2028", "<U+202E>abc<U+2066><U+2028>"),
    ],
)
def test_what_would_command_a_terminal_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_markup_and_control_characters_of_texts_are_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "[bold red]\x1b]0;owned\x07[/] :smile:\n[/nothing]"
    monkeypatch.setattr("batchspec.generation.running_text", lambda tokenizer, ids: nasty)
    monkeypatch.setattr(storyteller(), "name", "[blue]\x1b[/blue]")
    assert main(["generate", "[red]A[/red] \x1b[2J", "--max-new-tokens", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("[blue]␛[/blue]: ")
    assert "row 0: [red]A[/red] ␛[2J\n" in out
    assert "  [bold red]␛]0;owned␇[/] :smile:\n  [/nothing]\n" in out
    assert not any(code in out for code in "\x1b\x07")


# Exit codes


@pytest.mark.parametrize("extra", [[], ["--ablate"]])
def test_a_correct_strategy_that_diverges_is_1(
    extra: list[str],
    ids_file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(STRATEGIES, "eqspec", Faulty)
    arguments = ["compare", "--pair", "tiny", "--prompts", ids_file, *SHORT, *extra]
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert re.search(r"eqspec, row \d \(ids [\d ]+…?\), from new token \d+ on:\n  state error", out)
    assert main([*arguments, "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["equivalent"] is False


def test_a_wrong_strategy_that_diverges_is_0(
    ids_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compare", "--pair", "tiny", "--prompts", ids_file, *SHORT, "--strategy", "pad"]
    assert main(arguments) == 0
    words = "pad: 2 of 3 rows equal the target alone and no more is promised"
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(("rule", "temperature"), [("speculative", "3"), ("threshold", "0")])
def test_an_acceptance_rule_that_promises_other_tokens_is_0(
    ids_file: str, capsys: pytest.CaptureFixture[str], rule: str, temperature: str
) -> None:
    sampling = ["--acceptance", rule, "--temperature", temperature, "--threshold", "1e-3"]
    arguments = ["compare", "--pair", "tiny", "--prompts", ids_file, *SHORT, *sampling]
    assert main([*arguments, "--strategy", "eqspec"]) == 0
    out = capsys.readouterr().out
    assert "no more is promised" in out and ("another sample" in out or "lossy" in out)


def test_exit_codes_of_the_process() -> None:
    short = ("--max-new-tokens", "16")
    good = process("compare", *short, "--strategy", "pad", "--strategy", "eqspec")
    assert good.returncode == 0 and "✓ eqspec" in good.stdout
    code = (
        "import sys; from batchspec.cli import main; from batchspec.strategies import STRATEGIES\n"
        "class Faulty(STRATEGIES['pad']):\n    name = 'eqspec'; correct = True\n"
        "STRATEGIES['eqspec'] = Faulty\n"
        "sys.exit(main(['compare', '--strategy', 'eqspec', *sys.argv[1:]]))"
    )
    faulty = process(*short, code=code)
    assert faulty.returncode == 1 and "✗ eqspec" in faulty.stdout
    bad = process("compare", *short, "--strategy", "guess")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "'guess'" in bad.stderr and bad.stderr.count("\n") == 1
    assert "Traceback" not in good.stderr + faulty.stderr + bad.stderr


def test_an_interrupt_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("batchspec.commands.generate", interrupted)
    assert main(["generate", FOX]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("extra", [[], ["--json", "-"]])
def test_a_reader_that_leaves_ends_it_quietly(extra: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "batchspec", "generate", FOX, "--max-new-tokens", "2", *extra],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=300,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


# Ablation


def test_each_configuration_adds_one_effect() -> None:
    config = DecodeConfig(batch_size=2, window=3, draft_tokens=3, max_new_tokens=12)
    found = {
        each.name: each.config for each in batchspec.ablation.configurations(shared_pair(), config)
    }
    expected = {
        "eqspec": ("eqspec", 3, True),
        "+ refill": ("exspec", 2, False),
        "+ pool of 3": ("exspec", 3, False),
        "+ grouping": ("exspec", 3, True),
        "ragged": ("ragged", 3, True),
    }
    assert list(found) == list(expected)
    for name, (strategy, window, grouping) in expected.items():
        settings = found[name]
        assert (settings.strategy, settings.window, settings.grouping) == (
            strategy,
            window,
            grouping,
        )
        assert (settings.draft_tokens, settings.max_new_tokens, settings.batch_size) == (3, 12, 2)


def test_an_ablation_takes_turns_and_counts_as_generate_does() -> None:
    config = DecodeConfig(batch_size=2, window=3, max_new_tokens=12, eos_token_ids=())
    said: list[str] = []
    ablation = ablate(shared_pair(), ROWS, config, repeats=2, report=said.append)
    names = [row.configuration.name for row in ablation.measurements]
    turns = [f"{name}, run {number} of 2" for number in (1, 2) for name in names]
    assert said[-len(turns) :] == turns and ablation.repeats == 2
    assert ablation.reference.stats.batch_size == 1
    for row in ablation.measurements:
        stats = generate(shared_pair(), ROWS, row.configuration.config).stats
        found = row.result.generation.stats
        assert row.result.exact_match_rate == 1
        for count in ("rounds", "target_forwards", "draft_forwards", "kv_slots_moved"):
            assert getattr(found, count) == getattr(stats, count)
        assert 0 < row.moving_seconds < row.seconds
    moved = Counter(
        {
            row.configuration.name: row.result.generation.stats.kv_slots_moved
            for row in ablation.measurements
        }
    )
    assert all(moved[name] > 0 for name in names if name != "ragged")


def test_the_seconds_are_medians(monkeypatch: pytest.MonkeyPatch) -> None:
    real, times = batchspec.ablation.generate, iter([9.0, 1.0, 2.0] * 10)
    monkeypatch.setattr(batchspec.ablation, "configurations", lambda pair, config: only)
    only = [batchspec.ablation.Configuration("eqspec", "", CONFIG)]

    def timed(pair: Any, prompts: Any, config: DecodeConfig) -> Any:
        generation = real(pair, prompts, config)
        if config.strategy == "eqspec":
            # The phases' seconds are a sum of clocks, so the clocks are what can be set.
            phases = {"schedule": next(times), "synchronize": 1.0, "draft": 5.0}
            clocks = [(phase, SimpleNamespace(seconds=value)) for phase, value in phases.items()]
            generation.stats.clocks = clocks
            generation.stats._seconds = dict.fromkeys(phases, 0.0)
        return generation

    monkeypatch.setattr(batchspec.ablation, "generate", timed)
    row = ablate(shared_pair(), ROWS, CONFIG, repeats=3).measurements[0]
    assert (row.seconds, row.moving_seconds) == (8.0, 3.0)


def test_ablate_prints_ratios_and_writes_json(
    ids_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "numbers.json"
    arguments = ["compare", "--ablate", "--pair", "tiny", "--prompts", ids_file, *SHORT]
    arguments += ["--batch-size", "2", "--window", "3"]
    assert main([*arguments, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    rounds = {each["name"]: each["stats"]["rounds"] for each in found["configurations"]}
    assert found["repeats"] == 3 and "medians of 3 runs" in out
    lines = out.split("\n")
    for name, count in rounds.items():
        place = next(number for number, line in enumerate(lines) if line.startswith(name + "  "))
        assert str(count) in lines[place].split()
        assert f"×{count / rounds['eqspec']:.2f}" in lines[place + 1].split()
    assert "no row ever waits" not in out
    main([*arguments[:-4]])
    assert "no row ever waits" in capsys.readouterr().out
