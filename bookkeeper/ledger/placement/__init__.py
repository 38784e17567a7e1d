"""Policies that choose the bookies of a ledger: one that knows no topology, and one that keeps copies apart.

policy          what a policy is asked, and what happens when there are too few bookies
random_choice   any bookie is as good as another
spread_choice   copies stand in different racks or regions, by the search of ``arrangement``
candidates      bookies in random order
"""

from bookkeeper.ledger.placement.candidates import Candidates
from bookkeeper.ledger.placement.policy import PlacementPolicy, WhenShort
from bookkeeper.ledger.placement.random_choice import RandomChoice
from bookkeeper.ledger.placement.spread_choice import SpreadChoice

__all__ = ["Candidates", "PlacementPolicy", "RandomChoice", "SpreadChoice", "WhenShort"]
