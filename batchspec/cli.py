"""`python -m batchspec`: options read and checked before anything slow is imported."""

from __future__ import annotations

import math
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import fields
from inspect import getdoc
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, get_args, get_type_hints

from batchspec.bench.names import BATCH_SIZES, EXPERIMENTS, METHODS, STANDARD
from batchspec.config import FAULT_NAMES, STRATEGY_NAMES, DecodeConfig
from batchspec.errors import DecodeError
from batchspec.presets import PRESETS, short
from batchspec.prompt_file import check_text, read_prompts
from batchspec.terminal import visible, waiting

BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
"""Exit codes besides 0 and, where a correct strategy diverges, 1. The last two are a shell's."""

EOS_HELP = "ids that end a row, as 2,5, or `never`; without it the target's own"
FAULT_HELP = (
    "what a correct strategy shall do wrongly, to see it fail: "
    f"{', '.join(FAULT_NAMES)}; compare runs the strategy without it too"
)
GROUPING_HELP = "let exspec form its batches without looking for equal lengths"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code.

    Args:
        arguments: the command line without the program's name; that of the process when None.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except DecodeError as error:
        print(f"batchspec: {visible(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more at its end, which would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _run(arguments: Sequence[str] | None) -> int:
    options = make_parser().parse_args(arguments)
    options.command_line = sys.argv[1:] if arguments is None else list(arguments)
    config = DecodeConfig(**{name: getattr(options, name) for name in _setting_names()})
    for file in (options.json, getattr(options, "markdown", None)):
        if file not in (None, "-"):
            _check_writable(file)
    prompts = list(islice(_prompts(options), options.limit))
    with waiting("loading torch and transformers"):
        from batchspec.commands import run
    return run(options, prompts, config)


class Parser(ArgumentParser):
    """A parser whose errors are those of the engine: one sentence, no usage."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong as a DecodeError."""
        raise DecodeError(f"{message} (see {self.prog} --help).")


def make_parser() -> ArgumentParser:
    """The parser of all commands."""
    parser = Parser(
        prog="python -m batchspec",
        description="Batched speculative decoding, held against the target alone.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    generate = _add_command(commands, "generate", "write on from prompts with one strategy")
    generate.add_argument(
        "--strategy",
        choices=STRATEGY_NAMES,
        metavar="NAME",
        default=DecodeConfig.strategy,
        help=f"one of {', '.join(STRATEGY_NAMES)} (default %(default)s)",
    )
    compare = _add_command(commands, "compare", "hold strategies against the target alone")
    compare.add_argument(
        "--strategy",
        action="append",
        choices=STRATEGY_NAMES,
        metavar="NAME",
        help=f"one of {', '.join(STRATEGY_NAMES)}; repeatable (default pad, eqspec, exspec)",
    )
    compare.add_argument(
        "--ablate",
        action="store_true",
        help="show where exspec's gain comes from: refill, pool and grouping added one by one",
    )
    _add_bench(commands)
    return parser


def _add_bench(commands: Any) -> None:
    bench = _add_command(commands, "bench", "measure speed, where it goes, and whether it is right")
    methods = tuple(dict.fromkeys((*METHODS, *STRATEGY_NAMES)))
    bench.add_argument(
        "--strategy",
        action="append",
        choices=methods,
        metavar="NAME",
        help=f"one of {', '.join(methods)}; repeatable (default {', '.join(METHODS)})",
    )
    bench.add_argument(
        "--figure",
        action="append",
        choices=tuple(EXPERIMENTS),
        metavar="NAME",
        help="an experiment, those with a number being the paper's; repeatable: "
        + "; ".join(f"{name}: {each.title.lower()}" for name, each in EXPERIMENTS.items())
        + f" (default {', '.join(STANDARD)})",
    )
    bench.add_argument(
        "--batch-sizes",
        type=_counts,
        metavar="N,N",
        default=BATCH_SIZES,
        help=f"where it is varied (default {','.join(map(str, BATCH_SIZES))})",
    )
    bench.add_argument(
        "--repeats",
        type=_at_least_one,
        metavar="N",
        default=3,
        help="timed runs of each setting, which take turns (default 3)",
    )
    bench.add_argument("--markdown", metavar="FILE", help="write tables as a Markdown page")


def _add_command(commands: Any, name: str, summary: str) -> ArgumentParser:
    """A command with the options that all of them have."""
    parser: ArgumentParser = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + ".", allow_abbrev=False
    )
    parser.add_argument(
        "texts", nargs="*", metavar="PROMPT", help="without any, the pair's own examples are used"
    )
    parser.add_argument(
        "--prompts",
        metavar="FILE",
        help="further prompts, `-` for standard input: one a line, as plain text, JSON lines or "
        "Spec-Bench's questions",
    )
    parser.add_argument("--limit", type=_at_least_one, metavar="N", help="only the first N prompts")
    models = parser.add_mutually_exclusive_group()
    sizes = (
        f"{name} ({short(preset.target_parameters)} and {short(preset.draft_parameters)})"
        for name, preset in PRESETS.items()
    )
    models.add_argument(
        "--pair",
        metavar="NAME",
        default="storyteller",
        help=f"one of {', '.join(sizes)} (default storyteller)",
    )
    models.add_argument(
        "--target", metavar="ID", help="a Hub id or a folder instead of a pair's name"
    )
    parser.add_argument(
        "--draft", metavar="ID", help="another draft, by id or folder; `ngram` needs no model"
    )
    parser.add_argument(
        "--device", metavar="NAME", default="auto", help="where the models run (default auto)"
    )
    parser.add_argument(
        "--dtype",
        metavar="NAME",
        default="auto",
        help="float32, bfloat16, float16 or float64 (default auto)",
    )
    parser.add_argument(
        "--chat",
        action=BooleanOptionalAction,
        help="whether texts are put into the tokenizer's chat template (default where it has one)",
    )
    parser.add_argument("--json", metavar="FILE", help="write all numbers, `-` to standard output")
    _add_settings(parser.add_argument_group("settings"))
    return parser


def _add_settings(group: Any) -> None:
    """One option for every setting, told in the words of the config's docstring."""
    words = _descriptions()
    hints = get_type_hints(DecodeConfig)
    for setting in fields(DecodeConfig):
        name, default = setting.name, setting.default
        option = "--" + name.replace("_", "-")
        if name == "eos_token_ids":
            group.add_argument(option, type=_token_ids, metavar="IDS", help=EOS_HELP)
        elif name == "fault":
            group.add_argument(option, choices=FAULT_NAMES, metavar="NAME", help=FAULT_HELP)
        elif name == "grouping":
            group.add_argument("--no-grouping", dest=name, action="store_false", help=GROUPING_HELP)
        elif name != "strategy":
            kind = next(k for k in (int, float, str) if k in (hints[name], *get_args(hints[name])))
            group.add_argument(
                *(["-k"] if name == "draft_tokens" else []),
                option,
                type=_finite if kind is float else kind,
                default=default,
                metavar={int: "N", float: "X", str: "NAME"}[kind],
                help=words.get(name, "") + ("" if default is None else f" (default {default})"),
            )


def _descriptions() -> dict[str, str]:
    found = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", getdoc(DecodeConfig) or "", re.MULTILINE)
    return {name: " ".join(text.split()).replace("%", "%%") for name, text in found}


def _setting_names() -> list[str]:
    return [setting.name for setting in fields(DecodeConfig) if setting.name != "strategy"]


def _prompts(options: Namespace) -> Iterator[str | list[int]]:
    for number, text in enumerate(options.texts, 1):
        try:
            yield check_text(text)
        except DecodeError as error:
            raise DecodeError(f"Prompt {number}: {error}") from error
    if options.prompts is not None:
        yield from read_prompts(options.prompts)


def _check_writable(file: str) -> None:
    """Find out before a long run, not after it, and without touching what is there."""
    path = Path(file)
    place = path if path.exists() else path.parent
    if path.is_dir() or not place.exists() or not os.access(place, os.W_OK):
        raise DecodeError(f"{file} cannot be written: choose a file in a folder that is there.")


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ArgumentTypeError(f"it must be at least 1, not {number}")
    return number


def _counts(text: str) -> tuple[int, ...]:
    try:
        return tuple(_at_least_one(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"it must be numbers such as 1,8, not {text!r}") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ArgumentTypeError(f"it must be a finite number, not {text}")
    return number


def _token_ids(text: str) -> tuple[int, ...]:
    if text == "never":
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"it must be ids such as 2,5, or never, not {text!r}") from None
