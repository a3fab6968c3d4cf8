"""The storyteller's model card, with every number measured as the card is written."""

import json
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from batchspec.loading import load_pair
from batchspec.packing import unpacked
from batchspec.pair import ModelPair
from batchspec.storyteller import DRAFT_FOLDER, EXAMPLES, FOLDER, MORE_EXAMPLES, TARGET_FOLDER
from batchspec.storyteller.measure import (
    DRAFTED_PER_ROUND,
    NEW_TOKENS,
    Continuation,
    continue_greedily,
    measure_forward_milliseconds,
    measure_loss,
    measure_recall,
    total_acceptance,
    write_held_out_prompts,
)

TEMPLATE = """\
# storyteller

A target and a draft model for trying speculative decoding without a network: they write short,
simple English pieces (tiny stories, counting, dialogues, lists, questions with answers, a little
arithmetic, rhymes, letters). Both are `LlamaForCausalLM` with one byte-level BPE tokenizer of
{vocabulary} tokens, which lies in `target/`. Weights are stored in float16 and are meant to be
run in float32.

| | target | draft |
|---|---|---|
| layers x hidden size | {target_shape} | {draft_shape} |
| attention heads (key/value heads) | {target_heads} | {draft_heads} |
| parameters | {target_parameters:,} | {draft_parameters:,} |
| folder size | {target_size:.2f} MB | {draft_size:.2f} MB |
| trained for | {target_training} of text | {draft_training} that the target wrote |
| held-out loss, nats per token | {target_loss:.3f} | {draft_loss:.3f} |
| forward pass of one token, 2 threads | {target_time:.2f} ms | {draft_time:.2f} ms |

One target forward costs {ratio:.1f} draft forwards. Context: {context} tokens. The numbers here
come from a CPU with two cores.

## Text

`grammar.py` writes the text from a seed, with the words in `words.py` and the story frames in
`stories.py`; all sentences were written for this pair. The target sees every piece once. The draft
learns from the target alone (`distil.py`): from the tokens it wrote after openings of other pieces,
two rows in three greedily and the third sampled, and from what it thought likely at each. Where
the target writes greedily after openings of held-out pieces, the draft's choice is the same at
**{draft_agreement:.1%}** of the tokens. The measurements use a seed that training never used.

## Greedy acceptance

Share of drafted tokens that the target accepts, {drafted} drafted per round, both greedy, up to
{new_tokens} new tokens:

- {held_out_count} held-out openings of all kinds, 3 to 20 tokens long: **{held_out:.1%}**
  ({ended} of them end by themselves)
- the 4 built-in examples: **{examples:.1%}**
- the 12 further examples: **{more_examples:.1%}**

{example_table}

## What it can and cannot do

It continues openings that look like its own pieces with well-formed sentences, counts, and stops
by itself. How well it remembers: it answers {recall:.0%} of 60 unseen questions such as "Q: Mia has
a red kite. Tom has a drum. Who has the drum?" exactly. It knows a few hundred words and nothing
about the world beyond them. Names and owners get mixed up, sums are unreliable, and other words,
other languages and long prompts lead it astray. It is no assistant; use it to watch decoding, not
to learn facts.

## Train it again

    python -m batchspec.storyteller.train

This trains the tokenizer, the target and the draft from fixed seeds and writes this card. Most of
the target's time goes to a model of four layers, which are then spread among new layers that at
first change nothing, and trained on together. The draft's lessons are written first, in about ten
minutes. How much text fits into the minutes depends on the machine, so the weights differ each
time; `EXAMPLES` were chosen for the weights that ship.
`--only draft` trains one part, a bare `--only` measures without training.
"""


def count_parameters(model: PreTrainedModel) -> int:
    """Count the parameters of a model; shared ones count once, packed or not."""
    return sum(parameter.numel() for parameter in unpacked(model).parameters())


def folder_megabytes(folder: Path) -> float:
    """Add up the file sizes in a folder, in millions of bytes."""
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def describe_training(record: dict[str, float]) -> str:
    """Say how long a model was trained and on how much text."""
    return (
        f"{record['minutes']:.0f} minutes, {record['steps']:,} steps, "
        f"{record['tokens'] / 1e6:.1f} M tokens"
    )


def tabulate_examples(continuations: list[Continuation]) -> str:
    """Lay out the built-in examples as a table."""
    lines = ["| prompt | tokens | acceptance | continuation |", "|---|---|---|---|"]
    for row in continuations:
        prompt, text = (part.strip().replace("\n", " / ") for part in (row.prompt, row.text))
        end = " (ends)" if row.ended else " ..."
        lines.append(
            f"| {prompt} | {row.prompt_tokens} | {row.accepted / row.drafted:.0%} | {text}{end} |"
        )
    return "\n".join(lines)


def measure_part(
    name: str, model: PreTrainedModel, pair: ModelPair, folder: Path
) -> dict[str, Any]:
    """Measure one model of the pair; the keys begin with its name."""
    config, tokenizer = model.config, pair.tokenizer
    assert tokenizer is not None
    training = json.loads((FOLDER / "training.json").read_text())
    values = {
        "shape": f"{config.num_hidden_layers} x {config.hidden_size}",
        "heads": f"{config.num_attention_heads} ({config.num_key_value_heads})",
        "parameters": count_parameters(model),
        "size": folder_megabytes(folder),
        "training": describe_training(training[name]),
        "agreement": training[name].get("agreement"),
        "loss": measure_loss(model, tokenizer),
        "time": measure_forward_milliseconds(model),
    }
    return {f"{name}_{key}": value for key, value in values.items()}


def write_card() -> None:
    """Measure the pair and write ``README.md``."""
    pair = load_pair("storyteller")
    assert pair.tokenizer is not None
    target = measure_part("target", pair.models[0], pair, TARGET_FOLDER)
    draft = measure_part("draft", pair.models[1], pair, DRAFT_FOLDER)
    held_out = [
        continue_greedily(pair, prompt) for prompt in write_held_out_prompts(pair.tokenizer)
    ]
    examples = [continue_greedily(pair, prompt) for prompt in EXAMPLES]
    more_examples = [continue_greedily(pair, prompt) for prompt in MORE_EXAMPLES]
    card = TEMPLATE.format(
        **target,
        **draft,
        vocabulary=len(pair.tokenizer),
        context=pair.target.config.max_position_embeddings,
        ratio=target["target_time"] / draft["draft_time"],
        drafted=DRAFTED_PER_ROUND,
        new_tokens=NEW_TOKENS,
        held_out_count=len(held_out),
        held_out=total_acceptance(held_out),
        ended=sum(row.ended for row in held_out),
        examples=total_acceptance(examples),
        more_examples=total_acceptance(more_examples),
        example_table=tabulate_examples(examples),
        recall=measure_recall(pair),
    )
    (FOLDER / "README.md").write_text(card)
