"""Train the storyteller pair from scratch: ``python -m batchspec.storyteller.train``.

The tokenizer and the target learn from text that ``grammar`` writes, of which no piece is seen
twice; the draft learns from the target. The finished pair is measured and described in
``README.md``.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from batchspec.storyteller import DRAFT_FOLDER, FOLDER, TARGET_FOLDER
from batchspec.storyteller.card import write_card
from batchspec.storyteller.distil import distil_draft
from batchspec.storyteller.grammar import write_pieces
from batchspec.teaching.optimizer import Optimizer

VOCABULARY = 2048
CONTEXT = 512
TOKENS_PER_STEP = 2048
PAD, BOS, EOS = "<|pad|>", "<|bos|>", "<|eos|>"
TOKENIZER_SEED, TARGET_SEED, DRAFT_SEED = 11, 12, 13

TARGET_SHAPE = {
    "num_hidden_layers": 8,
    "hidden_size": 192,
    "intermediate_size": 416,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
}
DRAFT_SHAPE = {
    "num_hidden_layers": 1,
    "hidden_size": 128,
    "intermediate_size": 320,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
}
RECORD = "training.json"
FIRST_LAYERS, FIRST_SHARE, DEEP_PEAK = 4, 0.8, 0.25
ROW_LENGTHS = {0.0: CONTEXT // 4, 0.5: CONTEXT // 2, 0.9: CONTEXT}


def train_tokenizer() -> PreTrainedTokenizerFast:
    """Learn a byte-level vocabulary; encoding puts the start token in front."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, BOS, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(islice(write_pieces(TOKENIZER_SEED), 20_000), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def build_model(shape: dict[str, Any], seed: int) -> LlamaForCausalLM:
    """Build an untrained model whose input and output embeddings are one matrix."""
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            **shape,
        )
    )
    return model


@torch.no_grad()
def deepen(shallow: LlamaForCausalLM, layers: int) -> LlamaForCausalLM:
    """Spread the layers of a model among new ones that at first change nothing."""
    shape = {key: getattr(shallow.config, key) for key in TARGET_SHAPE}
    deep = build_model(shape | {"num_hidden_layers": layers}, TARGET_SEED)
    deep.model.embed_tokens.load_state_dict(shallow.model.embed_tokens.state_dict())
    deep.model.norm.load_state_dict(shallow.model.norm.state_dict())
    for layer in deep.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    spread = layers // len(shallow.model.layers)
    for index, layer in enumerate(shallow.model.layers):
        deep.model.layers[index * spread + spread // 2].load_state_dict(layer.state_dict())
    return deep


def pack_rows(tokenizer: PreTrainedTokenizerFast, seed: int, length: int) -> Iterator[list[int]]:
    """Lay pieces end to end in rows of a given length; every row begins with a new piece."""
    pieces = write_pieces(seed)
    while True:
        row: list[int] = []
        while len(row) < length:
            encoded = tokenizer(list(islice(pieces, 4)))["input_ids"]
            for ids in encoded:
                row += [*ids, tokenizer.eos_token_id]
        yield row[:length]


def loss_of(model: LlamaForCausalLM, rows: list[list[int]]) -> torch.Tensor:
    """The mean loss of the next token over some rows."""
    ids = torch.tensor(rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())


def train_model(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    minutes: float,
    peak: float,
    seed: int,
    checkpoint: Path,
    before: dict[str, float],
) -> dict[str, float]:
    """Train for a number of minutes, on rows that grow to the length of the context.

    ``peak`` scales the learning rates. What was trained ``before`` is added to the record that
    comes back.
    """
    optimizer = Optimizer(model, peak)
    row_sources = {
        length: pack_rows(tokenizer, seed + length, length + 1) for length in ROW_LENGTHS.values()
    }
    start = saved = time.monotonic()
    step, progress, record = 0, 0.0, before
    model.train()
    while progress < 1.0:
        length = ROW_LENGTHS[max(share for share in ROW_LENGTHS if share <= progress)]
        rows = list(islice(row_sources[length], TOKENS_PER_STEP // length))
        loss = optimizer.descend(loss_of(model, rows), progress)
        step += 1
        now = time.monotonic()
        progress = (now - start) / (minutes * 60)
        record = {
            "steps": before["steps"] + step,
            "tokens": before["tokens"] + step * TOKENS_PER_STEP,
            "minutes": round(before["minutes"] + (now - start) / 60, 1),
        }
        if step % 50 == 0:
            print(f"step {step}  {progress:.0%}  loss {loss:.3f}", flush=True)
        if now - saved > 120:
            save_model(model, checkpoint)
            (checkpoint / RECORD).write_text(json.dumps(record))
            saved = now
    return record


def save_model(model: LlamaForCausalLM, folder: Path) -> None:
    """Write a model in half precision to a folder, file by file in one move each."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as written:
        stored = LlamaForCausalLM(model.config)
        stored.load_state_dict(model.state_dict())
        stored.half().save_pretrained(written)
        for path in sorted(Path(written).iterdir()):
            path.chmod(0o644)
            os.replace(path, folder / path.name)


def record_training(part: str, record: dict[str, float]) -> None:
    """Keep how long a part was trained, for the model card."""
    path = FOLDER / RECORD
    records = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(records | {part: record}, indent=2) + "\n")


def train_target(minutes: float, resume: bool) -> None:
    """Train the target, from the start or from its last checkpoint, and publish it.

    It is first trained with few layers, which see far more text in the same time.
    """
    layers = TARGET_SHAPE["num_hidden_layers"]
    tokenizer = PreTrainedTokenizerFast.from_pretrained(TARGET_FOLDER)
    checkpoint = Path(tempfile.gettempdir()) / "storyteller-target"
    record = {"steps": 0, "tokens": 0, "minutes": 0.0}
    if resume:
        model = LlamaForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
        record = json.loads((checkpoint / RECORD).read_text())
    else:
        model = build_model(TARGET_SHAPE | {"num_hidden_layers": FIRST_LAYERS}, TARGET_SEED)
        share = FIRST_SHARE * minutes
        record = train_model(model, tokenizer, share, 1.0, TARGET_SEED, checkpoint, record)
        minutes -= share
    peak = 1.0
    if model.config.num_hidden_layers < layers:
        model, peak = deepen(model, layers), DEEP_PEAK
    seed = TARGET_SEED + int(record["steps"])
    record = train_model(model, tokenizer, minutes, peak, seed, checkpoint, record)
    save_model(model, TARGET_FOLDER)
    record_training("target", record)


def train_draft(minutes: float, lessons: int) -> None:
    """Let the target teach a new draft, and publish it."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(TARGET_FOLDER)
    model = build_model(DRAFT_SHAPE, DRAFT_SEED)
    record = distil_draft(model, tokenizer, minutes, lessons)
    save_model(model, DRAFT_FOLDER)
    record_training("draft", record)


def main() -> None:
    """Train what the command line asks for, measure the pair and write its card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ["tokenizer", "target", "draft"]
    parser.add_argument(
        "--only", nargs="*", default=parts, choices=parts, metavar="PART",
        help=f"train only some of {', '.join(parts)} (or none), then write the card",
    )  # fmt: skip
    parser.add_argument("--minutes", type=float, default=30, help="training time of the target")
    parser.add_argument("--draft-minutes", type=float, default=14, help="and of the draft")
    parser.add_argument("--lessons", type=int, default=140, help="the draft's, 16,000 tokens each")
    parser.add_argument("--threads", type=int, default=2, help="one, where others use the cores")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the target's last checkpoint"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if "tokenizer" in arguments.only:
        train_tokenizer().save_pretrained(TARGET_FOLDER)
    if "target" in arguments.only:
        train_target(arguments.minutes, arguments.resume)
    if "draft" in arguments.only:
        train_draft(arguments.draft_minutes, arguments.lessons)
    torch.set_num_threads(2)
    write_card()


if __name__ == "__main__":
    main()
