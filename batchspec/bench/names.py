"""The experiments by name, known without importing torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """What people read above an experiment.

    Attributes:
        title: its subject.
        axis: what is varied, empty where nothing is.
        note: how to read its numbers.
    """

    title: str
    axis: str
    note: str


EXPERIMENTS: dict[str, Heading] = {
    "1": Heading(
        "Fast but wrong",
        "",
        "Tokens a second tell nothing without the tokens: what is fast may be wrong.",
    ),
    "5a": Heading(
        "Throughput against batch size",
        "batch size",
        "transformers is the target's own batched generate, without a draft.",
    ),
    "5b": Heading(
        "What keeping the batch in step costs",
        "batch size",
        "The share is that of schedule and synchronize in the rounds, prefill apart.",
    ),
    "5c": Heading(
        "Group rate against batch size and spread of lengths",
        "batch size",
        "Share of EXSPEC's rounds whose rows had equal lengths from the start: with the prompts as "
        "given, and with all cut to the length of the shortest.",
    ),
    "table2": Heading(
        "Anatomy of a round",
        "",
        "Each line adds one effect to the line above it; ragged does without all of them. Shares "
        "are of the rounds, prefill apart.",
    ),
    "table4": Heading(
        "Rows that arrive one by one",
        "batch size",
        "Poisson arrivals at 70 % of the rate at which EQSPEC finishes rows that are all there; "
        "latency is from a row's arrival to its last token.",
    ),
    "window": Heading(
        "Group rate against the window",
        "window",
        "Share of EXSPEC's rounds whose rows had equal lengths from the start.",
    ),
    "k": Heading(
        "Tokens a second against K",
        "K",
        "A longer draft wins more tokens a round and costs more a round.",
    ),
}
"""Those with a number are the paper's figures and tables."""

STANDARD = ("5a", "5b", "window", "k")
"""The experiments that run unless told otherwise."""

METHODS = ("transformers", "autoregressive", "eqspec", "exspec", "ragged")
"""The methods compared unless told otherwise."""

BATCH_SIZES = (1, 2, 4, 8, 16, 32)
"""Batch sizes of a sweep unless told otherwise."""
