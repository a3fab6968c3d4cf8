"""Batched speculative decoding that can be watched: engine, strategies and traces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from batchspec.comparison import Comparison, compare
    from batchspec.config import DecodeConfig
    from batchspec.decoding import decode, generate
    from batchspec.errors import DecodeError
    from batchspec.generation import Generation, Stats
    from batchspec.live import LiveRun
    from batchspec.loading import load_pair
    from batchspec.ngram import NGramDraft
    from batchspec.pair import ModelPair
    from batchspec.recorder import Recorder, record
    from batchspec.trace import Frame, Trace

__all__ = [
    "Comparison",
    "DecodeConfig",
    "DecodeError",
    "Frame",
    "Generation",
    "LiveRun",
    "ModelPair",
    "NGramDraft",
    "Recorder",
    "Stats",
    "Trace",
    "compare",
    "decode",
    "generate",
    "load_pair",
    "record",
]

# Names are imported when they are first used: a trace can be read and drawn without torch.
_MODULES = {
    "Comparison": "comparison",
    "compare": "comparison",
    "DecodeConfig": "config",
    "decode": "decoding",
    "generate": "decoding",
    "DecodeError": "errors",
    "Generation": "generation",
    "Stats": "generation",
    "LiveRun": "live",
    "NGramDraft": "ngram",
    "ModelPair": "pair",
    "load_pair": "loading",
    "Recorder": "recorder",
    "record": "recorder",
    "Frame": "trace",
    "Trace": "trace",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
