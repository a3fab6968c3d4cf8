"""The draft of SmolLM2: a few layers that ship, and embeddings taken from the target."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from huggingface_hub import cached_assets_path
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from batchspec.checkpoint import told
from batchspec.smollm2 import DRAFT_FOLDER, NAME
from batchspec.smollm2.target import WEIGHTS

SHIPPED = DRAFT_FOLDER / "layers.safetensors"
PROJECTION = "embed_projection"
EMBEDDINGS = "model.embed_tokens.weight"


def draft_folder(target: Path) -> Path:
    """An ordinary checkpoint of the draft, written once.

    Nine tenths of the draft are its embeddings. They are the target's, `[vocabulary, 576]`, times a
    matrix that was learned, `[576, 256]`, so that only this and the layers have to ship.

    Args:
        target: the folder of the target's checkpoint.

    Raises:
        DecodeError: it cannot be made.
    """
    stamp = hashlib.sha256(SHIPPED.read_bytes() + bytes(target)).hexdigest()[:12]
    folder = cached_assets_path("batchspec", NAME, f"draft-{stamp}")
    if not (folder / WEIGHTS).exists():
        with told(f"draft {NAME!r}"):
            _write(folder, target)
    return folder


def _write(folder: Path, target: Path) -> None:
    tensors = load_file(SHIPPED)
    projection = tensors.pop(PROJECTION).float()
    with safe_open(target / WEIGHTS, framework="pt") as file:
        embeddings = file.get_tensor(EMBEDDINGS).float()
    tensors[EMBEDDINGS] = (embeddings @ projection).half()
    shutil.copy(DRAFT_FOLDER / "config.json", folder)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        written = Path(scratch) / WEIGHTS
        save_file(tensors, written, metadata={"format": "pt"})
        written.replace(folder / WEIGHTS)
