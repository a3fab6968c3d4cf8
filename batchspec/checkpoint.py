"""One model's files: what its config alone tells, its tokenizer, its weights."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.utils import HFValidationError, validate_repo_id
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, logging

from batchspec.errors import DecodeError
from batchspec.hub import HubModel, hub_reason
from batchspec.memory import ran_out, release
from batchspec.packing import pack
from batchspec.progress import Observer, nobody, told_bar
from batchspec.shared_keys import share_keys

VOCABULARY_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
)
"""A model without any of these has no tokenizer; `AutoTokenizer` may invent an empty one for it."""


class Checkpoint:
    """A model in a local folder or on the Hub, of which only the weights are not read yet.

    Attributes:
        role: `target` or `draft`, for messages.
        name: what the caller calls it.
        folder: where its files are.
        config: of the model.
    """

    def __init__(
        self,
        role: str,
        name: str,
        place: str,
        revision: str | None = None,
        observe: Observer = nobody,
    ) -> None:
        """Find it, fetch what describes it, and check what that tells.

        Args:
            role: `target` or `draft`.
            name: what the caller calls it.
            place: a folder or a Hub id.
            revision: of the Hub id; None for its main.
            observe: told how far it is.

        Raises:
            DecodeError: there is no such model, or no architecture for it.
        """
        self.role = role
        self.name = name
        self._observe = observe
        self._hub: HubModel | None = None
        self.folder = Path(place)
        if not self.folder.is_dir():
            try:
                validate_repo_id(place)
            except HFValidationError as error:
                raise self._refusal("it is neither a folder that is there nor a Hub id") from error
            with self.told():
                self._hub = HubModel(place, revision, observe)
            self.folder = self._hub.folder
        with self.told():
            self.config: PreTrainedConfig = AutoConfig.from_pretrained(
                self.folder, trust_remote_code=False, local_files_only=True
            )
            self._files = self._weight_files()
        strange = [file for file in self._files if not file.endswith(".safetensors")]
        if strange:
            raise self._refusal(f"its weights are not all in safetensors ({_few(strange)})")

    def _weight_files(self) -> list[str]:
        """Names of the files that hold its weights."""
        name = getattr(self.config, "transformers_weights", None)
        if name is None:
            has_index = Path(self.folder, SAFE_WEIGHTS_INDEX_NAME).is_file()
            name = SAFE_WEIGHTS_INDEX_NAME if has_index else SAFE_WEIGHTS_NAME
        if not name.endswith(".json"):
            return [name]
        index = json.loads(Path(self.folder, name).read_text(encoding="utf-8"))
        return sorted(set(index["weight_map"].values()))

    def tokenizer(self) -> PreTrainedTokenizerBase | None:
        """Its tokenizer, or None if it has none of its own.

        Raises:
            DecodeError: there is one, which cannot be loaded.
        """
        found = [file for file in VOCABULARY_FILES if Path(self.folder, file).is_file()]
        if not found:
            return None
        if found[0] == "tokenizer.model" and not _can_import("sentencepiece", "google.protobuf"):
            raise self._refusal(
                "its tokenizer.model needs two packages, so `pip install sentencepiece protobuf`",
                "tokenizer of the ",
            )
        with self.told("tokenizer of the "):
            return AutoTokenizer.from_pretrained(
                self.folder, trust_remote_code=False, local_files_only=True
            )

    def model(
        self,
        device: torch.device,
        dtype: torch.dtype | str,
        shares: dict[int | str, int] | None = None,
    ) -> PreTrainedModel:
        """The model with every weight from its checkpoint, made fast.

        Args:
            device: where it goes.
            dtype: its precision; `auto` is that of the checkpoint.
            shares: bytes it may take at most on GPU 0 and on `cpu` where it does not fit one.

        Raises:
            DecodeError: it cannot be loaded, or weights are missing or of another shape.
        """
        if self._hub is not None:
            with self.told():
                self._hub.fetch(self._files)
        absent = [file for file in self._files if not Path(self.folder, file).is_file()]
        if absent:
            raise self._refusal(f"it has no weights in safetensors ({_few(absent)} is not there)")
        loader: Any = AutoModelForCausalLM
        spread = {"device_map": "auto", "max_memory": shares} if shares else {}
        bar = told_bar(f"loading the {self.role} {self.name}", self._observe, unit="it")
        with self.told(), _bars(bar):
            model, found = loader.from_pretrained(
                self.folder,
                dtype=dtype,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # they are told in words of our own
                output_loading_info=True,
                trust_remote_code=False,
                local_files_only=True,
                **spread,
            )
        self._check_whole(found)
        with self.told():
            if not shares:
                pack(model.to(device))
            share_keys(model)
        whole: PreTrainedModel = model
        return whole

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

    def told(self, part: str = "") -> AbstractContextManager[None]:
        """As `told`, of a part of it."""
        return told(self._what(part))

    def _refusal(self, reason: str, part: str = "") -> DecodeError:
        return refusal(self._what(part), reason)

    def _what(self, part: str) -> str:
        return f"{part}{self.role} {self.name!r}"


def refusal(what: str, reason: str) -> DecodeError:
    """The sentence about what cannot be loaded."""
    return DecodeError(f"The {what} cannot be loaded: {reason}.")


@contextmanager
def told(what: str) -> Iterator[None]:
    """Whatever goes wrong inside becomes one sentence, and transformers adds no report."""
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    except Exception as error:  # each file format and each architecture has errors of its own
        if ran_out(error):
            release(error)
            raise refusal(what, "memory ran out, so choose a smaller model") from None
        raise refusal(what, hub_reason(error) or _first_line(error)) from error
    finally:
        logging.set_verbosity(verbosity)


@contextmanager
def _bars(kind: Any) -> Iterator[None]:
    """Progress bars of transformers are of this kind meanwhile."""
    before = logging.set_tqdm_hook(lambda _, arguments, settings: kind(*arguments, **settings))
    try:
        yield
    finally:
        logging.set_tqdm_hook(before)


def _can_import(*packages: str) -> bool:
    try:
        return all(import_module(package) for package in packages)
    except ImportError:
        return False


def _few(names: list[str]) -> str:
    return ", ".join([*names[:3], *(["…"] if len(names) > 3 else [])])


def _first_line(error: object) -> str:
    lines = [line.strip(" .:") for line in str(error).splitlines()]
    line = next(filter(None, lines), "")
    if isinstance(error, Exception) and (not line or isinstance(error, KeyError)):
        line = f"{type(error).__name__} {line}".strip()
    return line
