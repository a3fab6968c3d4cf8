"""Pairs by name: the one that ships with this package, Hub ids and local folders."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.utils import HFValidationError, validate_repo_id
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, cached_file, logging
from transformers.utils.hub import has_file

from batchspec import storyteller
from batchspec.errors import DecodeError
from batchspec.ngram import NGramDraft
from batchspec.pair import ModelPair

EMBEDDED = "storyteller"
NGRAM = "ngram"

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}

VOCABULARY_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
)
"""A model without any of these has no tokenizer; `AutoTokenizer` may invent an empty one for it."""

PROBE_TEXTS = (
    "It's 12,345.60 of them:\n\n\tdef f(x): return x  # Done",
    "naïve café, cafe\u0301, 狐 🦊 안녕",
)
"""Tokenizers with one vocabulary that split these differently have other rules."""


def load_pair(
    target: str | Path = EMBEDDED,
    draft: str | Path | None = None,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
) -> ModelPair:
    """Load a pair by name. Weights come from safetensors only, and no code of a checkpoint runs.

    Args:
        target: `storyteller`, the pair that ships with this package; or a local folder or a Hub id.
        draft: `ngram`, or a folder or an id as for the target; None for the storyteller's own.
        device: as torch names it; `auto` takes CUDA, else MPS, else the CPU.
        dtype: `float32`, `bfloat16`, `float16` or `float64`; `auto` is the checkpoint's own on
            CUDA and float32 elsewhere, where half precision is slow and inexact. For the
            storyteller alone, `auto` is float32 on the CPU, whatever there is.
        revision: a branch, tag or commit of the target on the Hub; the draft's is always its main.

    Raises:
        DecodeError: something cannot be loaded, or the two do not match.
    """
    embedded = target == EMBEDDED
    if draft is None and not embedded:
        raise DecodeError(
            f"Only the {EMBEDDED} has a draft of its own, and {str(target)!r} needs a draft: give "
            f'draft="{NGRAM}" or a model\'s id.'
        )
    alone = embedded and draft in (None, NGRAM)
    where = choose_device("cpu" if alone and device == "auto" else device)
    precision = choose_dtype("float32" if alone and dtype == "auto" else dtype, where)
    sources = _sources(str(target), None if draft is None else str(draft), revision)
    tokenizer = _shared_tokenizer(sources)
    models = [source.model(where, precision) for source in sources]
    proposer = NGramDraft() if draft == NGRAM else models[1]
    second = "" if draft is None else ", n-gram draft" if draft == NGRAM else f", draft {draft}"
    examples = tuple(storyteller.EXAMPLES) if embedded else ()
    return ModelPair(models[0], proposer, tokenizer, f"{target}{second}", examples)


def choose_device(name: str) -> torch.device:
    """The device of that name, or the fastest kind there is for `auto`.

    Raises:
        DecodeError: there is none of that name here.
    """
    counts = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    present = [kind for kind, count in counts.items() if count]
    if name == "auto":
        return torch.device(present[0])
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or (device.index or 0) >= counts.get(device.type, 0):
        raise DecodeError(
            f"There is no device {name!r} here: choose {', '.join(['auto', *present])}."
        )
    return device


def choose_dtype(name: str, device: torch.device) -> torch.dtype | str:
    """The precision of that name; `auto` stays what it is where the checkpoint's own serves well.

    Raises:
        DecodeError: there is none of that name.
    """
    if name == "auto":
        return "auto" if device.type == "cuda" else torch.float32
    if name not in DTYPES:
        raise DecodeError(f"Unknown dtype {name!r}: choose {', '.join(['auto', *DTYPES])}.")
    return DTYPES[name]


@dataclass(frozen=True)
class _Source:
    """Where a model comes from.

    Attributes:
        role: `target` or `draft`, for messages.
        name: what the caller calls it.
        place: a folder or a Hub id.
        revision: of the Hub id; None for its main.
    """

    role: str
    name: str
    place: str
    revision: str | None = None

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "revision": self.revision or "main",
            "trust_remote_code": False,
            "local_files_only": Path(self.place).is_dir(),
        }

    def check(self) -> None:
        """Find out before any weights are fetched what the config alone tells.

        Raises:
            DecodeError: there is no such model, or no architecture for it.
        """
        if not Path(self.place).is_dir():
            try:
                validate_repo_id(self.place)
            except HFValidationError as error:
                raise self._refusal("it is neither a folder that is there nor a Hub id") from error
        with self.told():
            config = AutoConfig.from_pretrained(self.place, **self._options)
            strange = self._unsafe_files(getattr(config, "transformers_weights", None))
        if strange:
            raise self._refusal(f"its weights are not all in safetensors ({_few(strange)})")

    def _unsafe_files(self, explicit: str | None) -> list[str]:
        """Files that an index of safetensors names and that would be unpickled."""
        name = explicit or SAFE_WEIGHTS_INDEX_NAME
        if not name.endswith(".json") or not has_file(self.place, name, self.revision):
            return []
        path = cached_file(self.place, name, revision=self.revision) or ""
        shards = json.loads(Path(path).read_text(encoding="utf-8"))["weight_map"].values()
        return sorted({shard for shard in shards if not shard.endswith(".safetensors")})

    def tokenizer(self) -> PreTrainedTokenizerBase | None:
        """Its tokenizer, or None if it has none of its own.

        Raises:
            DecodeError: there is one, which cannot be loaded.
        """
        with self.told("tokenizer of the "):
            if not any(has_file(self.place, file, self.revision) for file in VOCABULARY_FILES):
                return None
            return AutoTokenizer.from_pretrained(self.place, **self._options)

    def model(self, device: torch.device, dtype: torch.dtype | str) -> PreTrainedModel:
        """The model with every weight from its checkpoint.

        Raises:
            DecodeError: it cannot be loaded, or weights are missing or of another shape.
        """
        loader: Any = AutoModelForCausalLM
        with self.told():
            model, found = loader.from_pretrained(
                self.place,
                dtype=dtype,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # they are told in words of our own
                output_loading_info=True,
                **self._options,
            )
        self._check_whole(found)
        with self.told():
            placed: PreTrainedModel = model.to(device)
        return placed

    def _check_whole(self, found: dict[str, Any]) -> None:
        """Refuse a model of which a part was left as it was initialized."""
        absent = sorted({*found["missing_keys"], *(key[0] for key in found["mismatched_keys"])})
        if absent:
            raise self._refusal(
                f"{len(absent)} of its weights are missing or of another shape than its config "
                f"says ({_few(absent)})"
            )
        if found["error_msgs"]:
            raise self._refusal(f"its weights do not fit ({_first_line(found['error_msgs'][0])})")
        unused = sorted(found["unexpected_keys"])
        if unused:
            warnings.warn(
                f"The {self.role} {self.name!r} has {len(unused)} weights that its architecture "
                f"does not use ({_few(unused)}).",
                stacklevel=4,
            )

    @contextmanager
    def told(self, part: str = "") -> Iterator[None]:
        """Whatever goes wrong inside becomes one sentence, and transformers adds no report."""
        verbosity = logging.get_verbosity()
        logging.set_verbosity_error()
        try:
            yield
        except Exception as error:  # each file format and each architecture has errors of its own
            raise self._refusal(_first_line(error), part) from error
        finally:
            logging.set_verbosity(verbosity)

    def _refusal(self, reason: str, part: str = "") -> DecodeError:
        return DecodeError(f"The {part}{self.role} {self.name!r} cannot be loaded: {reason}.")


def _sources(target: str, draft: str | None, revision: str | None) -> list[_Source]:
    """The target and, where it is a model, the draft."""
    if target == EMBEDDED:
        sources = [_Source("target", target, str(storyteller.TARGET_FOLDER))]
    else:
        sources = [_Source("target", target, target, revision)]
    if draft is None:
        sources.append(_Source("draft", target, str(storyteller.DRAFT_FOLDER)))
    elif draft != NGRAM:
        sources.append(_Source("draft", draft, draft))
    return sources


def _shared_tokenizer(sources: list[_Source]) -> PreTrainedTokenizerBase:
    """The target's tokenizer, which the draft's must equal if it has one.

    Raises:
        DecodeError: the target has none, or the two differ.
    """
    for source in sources:
        source.check()
    first, *others = [source.tokenizer() for source in sources]
    target, draft = sources[0], sources[-1]
    if first is None:
        raise DecodeError(
            f"The target {target.name!r} has no tokenizer: add its {VOCABULARY_FILES[0]}, or make "
            "a ModelPair of models you load yourself."
        )
    if not others or others[0] is None:
        return first
    names = f"the target {target.name!r} and the draft {draft.name!r}"
    mine, other = first.get_vocab(), others[0].get_vocab()
    differing = sum(mine.get(token) != other.get(token) for token in mine.keys() | other.keys())
    if differing:
        raise DecodeError(
            f"The tokenizers of {names} differ in {differing} entries: choose a draft made for "
            "this target."
        )
    for text in PROBE_TEXTS:
        if _ids(target, first, text) != _ids(draft, others[0], text):
            raise DecodeError(
                f"The tokenizers of {names} differ in 0 entries but split {text!r} differently: "
                "choose a draft made for this target."
            )
    return first


def _ids(source: _Source, tokenizer: PreTrainedTokenizerBase, text: str) -> Any:
    with source.told("tokenizer of the "):
        return tokenizer(text, add_special_tokens=False)["input_ids"]


def _few(names: list[str]) -> str:
    return ", ".join([*names[:3], *(["…"] if len(names) > 3 else [])])


def _first_line(error: object) -> str:
    lines = [line.strip(" .:") for line in str(error).splitlines()]
    line = next(filter(None, lines), "")
    if isinstance(error, Exception) and (not line or isinstance(error, KeyError)):
        line = f"{type(error).__name__} {line}".strip()
    return line
