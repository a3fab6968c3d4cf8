"""The architectures that must be exact, and what each of them cannot do."""

from __future__ import annotations

from tiny import CORRECT

EAGER_ONLY = ("bloom", "gemma2", "gpt_neo", "gpt_neo wide", "mpt")
"""Families that transformers itself has no sdpa for."""
FAMILIES = (
    *EAGER_ONLY,
    "falcon",
    "falcon alibi",
    "gemma3",
    "gpt2",
    "gpt_neox",
    "llama",
    "llama4",
    "mistral",
    "mistral sliding",
    "mixtral",
    "opt",
    "phi3",
    "qwen3",
)
COUNTING_SLOTS = ("gpt_neo", "gpt_neo wide", "mpt")
"""Families that measure distance or a window in slots, so that no row may have holes."""
BY_SLOT = ("bloom", "falcon alibi")
CAUSAL_BY_SLOT = (*BY_SLOT, "gpt_neo", "gpt_neo wide")
"""Families in which slots alone decide what comes before what."""
LIMITED = ("gemma2", "gemma3", "llama4", "mistral sliding", "phi3")
"""Families some layers of which see 8 tokens at most; all prompts and texts here are longer."""
CASES = [
    (family, attention)
    for family in FAMILIES
    for attention in ("eager", "sdpa")
    if attention == "eager" or family not in EAGER_ONLY
]


def strategies_of(family: str) -> list[str]:
    """The correct strategies that a family can run."""
    refused = {"holes": COUNTING_SLOTS, "ragged": CAUSAL_BY_SLOT}
    return [name for name in CORRECT if family not in refused.get(name, ())]
