"""All strategies by name."""

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
