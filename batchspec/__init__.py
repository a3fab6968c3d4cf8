"""Batched speculative decoding that can be watched: engine, strategies and traces."""

from batchspec.config import DecodeConfig
from batchspec.decoding import decode, generate
from batchspec.errors import DecodeError
from batchspec.generation import Generation, Stats
from batchspec.pair import ModelPair, load_pair
from batchspec.recorder import Recorder, record
from batchspec.trace import Frame, Trace

__all__ = [
    "DecodeConfig",
    "DecodeError",
    "Generation",
    "Frame",
    "ModelPair",
    "Recorder",
    "Stats",
    "Trace",
    "decode",
    "generate",
    "load_pair",
    "record",
]
