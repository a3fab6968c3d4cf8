"""All strategies by name."""

from batchspec.strategies.autoregressive import Autoregressive
from batchspec.strategies.base import Strategy
from batchspec.strategies.eqspec import EqSpec
from batchspec.strategies.pad import Pad

STRATEGIES: dict[str, type[Strategy]] = {
    strategy.name: strategy for strategy in (Autoregressive, Pad, EqSpec)
}
