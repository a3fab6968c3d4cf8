"""All strategies by name."""

from batchspec.config import DecodeConfig
from batchspec.errors import DecodeError
from batchspec.faults import FAULTS
from batchspec.strategies.autoregressive import Autoregressive
from batchspec.strategies.base import Strategy
from batchspec.strategies.eqspec import EqSpec
from batchspec.strategies.exspec import ExSpec
from batchspec.strategies.mask import Holes, Mask
from batchspec.strategies.pad import Pad
from batchspec.strategies.ragged import Ragged
from batchspec.strategies.rollback import Rollback

STRATEGIES: dict[str, type[Strategy]] = {
    strategy.name: strategy
    for strategy in (Autoregressive, Pad, Mask, Holes, Rollback, EqSpec, ExSpec, Ragged)
}


def strategy_of(config: DecodeConfig) -> type[Strategy]:
    """The strategy that a config asks for, with its fault where it has one.

    Raises:
        DecodeError: there is no such strategy, or it cannot have the fault.
    """
    if config.strategy not in STRATEGIES:
        raise DecodeError(
            f"Unknown strategy {config.strategy!r}: choose one of {', '.join(STRATEGIES)}."
        )
    strategy = STRATEGIES[config.strategy]
    return strategy if config.fault is None else FAULTS[config.fault].broken(strategy)
