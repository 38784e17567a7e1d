"""Which bookies: policies, and the one without a topology."""

from bookkeeper.ledger.placement.policy import PlacementPolicy, WhenShort
from bookkeeper.ledger.placement.random_choice import RandomChoice

__all__ = ["PlacementPolicy", "RandomChoice", "WhenShort"]
