"""Policies that choose the bookies of a ledger, and the one that knows no topology."""

from bookkeeper.ledger.placement.policy import PlacementPolicy, WhenShort
from bookkeeper.ledger.placement.random_choice import RandomChoice

__all__ = ["PlacementPolicy", "RandomChoice", "WhenShort"]
