"""Batched speculative decoding that can be watched: engine, strategies and traces."""

from batchspec.comparison import Comparison, compare
from batchspec.config import DecodeConfig
from batchspec.decoding import decode, generate
from batchspec.errors import DecodeError
from batchspec.generation import Generation, Stats
from batchspec.pair import ModelPair, load_pair
from batchspec.recorder import Recorder, record
from batchspec.trace import Frame, Trace

__all__ = [
    "Comparison",
    "DecodeConfig",
    "DecodeError",
    "Frame",
    "Generation",
    "ModelPair",
    "Recorder",
    "Stats",
    "Trace",
    "compare",
    "decode",
    "generate",
    "load_pair",
    "record",
]
