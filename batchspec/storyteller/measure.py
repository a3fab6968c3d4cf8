"""Measure the storyteller pair: losses, greedy acceptance, and the cost of a forward pass."""

import time
from dataclasses import dataclass
from itertools import islice
from random import Random
from statistics import median
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from batchspec.cached_model import cache_argument
from batchspec.config import DecodeConfig
from batchspec.decoding import generate
from batchspec.pair import ModelPair
from batchspec.storyteller.grammar import KINDS, correct_articles, write_owners, write_pieces

HELD_OUT_SEED = 99
DRAFTED_PER_ROUND = 4
NEW_TOKENS = 64


@dataclass(frozen=True)
class Continuation:
    """A greedy continuation and what the draft contributed to it."""

    prompt: str
    text: str
    prompt_tokens: int
    ended: bool
    drafted: int
    accepted: int


def continue_greedily(pair: ModelPair, prompt: str, new_tokens: int = NEW_TOKENS) -> Continuation:
    """Decode one prompt with drafts of four tokens."""
    assert pair.tokenizer is not None
    config = DecodeConfig(draft_tokens=DRAFTED_PER_ROUND, max_new_tokens=new_tokens)
    generation = generate(pair, [prompt], config)
    assert generation.texts is not None
    return Continuation(
        prompt=prompt,
        text=generation.texts[0],
        prompt_tokens=len(pair.tokenizer(prompt)["input_ids"]),
        ended=generation.tokens[0][-1] in pair.eos_token_ids,
        drafted=generation.stats.drafted,
        accepted=generation.stats.accepted,
    )


def total_acceptance(continuations: list[Continuation]) -> float:
    """Compute the accepted share of all tokens drafted for some continuations."""
    return sum(row.accepted for row in continuations) / sum(row.drafted for row in continuations)


def write_held_out_prompts(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Cut openings of 3 to 20 tokens from two unseen pieces of every kind."""
    random = Random(HELD_OUT_SEED)
    prompts = []
    for kind in KINDS:
        for _ in range(2):
            ids = tokenizer(correct_articles(kind(random)))["input_ids"]
            prompts.append(str(tokenizer.decode(ids[1 : random.randint(4, 21)])))
    return prompts


def measure_recall(pair: ModelPair, count: int = 60) -> float:
    """Compute the share of unseen questions about owners, looks and places answered exactly."""
    random = Random(HELD_OUT_SEED)
    asked, right = 0, 0
    while asked < count:
        question, *rest = write_owners(random).split("\nA: ")
        if rest:
            answer = correct_articles(rest[0]).split("\n")[0]
            prompt = correct_articles(f"{question}\nA:")
            written = continue_greedily(pair, prompt, new_tokens=20).text
            right += written.strip().split("\n")[0] == answer
            asked += 1
    return right / count


@torch.inference_mode()
def measure_loss(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> float:
    """Compute the mean loss per token, in nats, over 200 unseen pieces."""
    total, tokens = 0.0, 0
    for piece in islice(write_pieces(HELD_OUT_SEED), 200):
        ids = torch.tensor([[*tokenizer(piece)["input_ids"], tokenizer.eos_token_id]])
        logits = model(input_ids=ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits[0], ids[0, 1:], reduction="sum")
        total += loss.item()
        tokens += ids.shape[1] - 1
    return total / tokens


@torch.inference_mode()
def measure_forward_milliseconds(model: PreTrainedModel) -> float:
    """Take the median time of a forward pass of one token after 64 cached tokens."""
    cache = DynamicCache()
    cached: Any = {cache_argument(model): cache}
    model(input_ids=torch.ones((1, 64), dtype=torch.long), **cached)
    feed = torch.ones((1, 1), dtype=torch.long)
    times = []
    for _ in range(60):
        start = time.perf_counter()
        model(input_ids=feed, **cached)
        times.append(time.perf_counter() - start)
        cache.crop(-1)
    return 1000 * median(times[10:])
