"""What cannot be brought back, given up by an operator's order.

accept_loss   closes a ledger whose ordinary recovery is inconclusive
closing_loss  what of it is lost then (pure)
rollback      goes on from metadata that were put back: what bookies hold that the metadata do not know
"""

from bookkeeper.replication.losses.accept_loss import LossPlan, accept_loss, plan_loss
from bookkeeper.replication.losses.closing_loss import ClosingLoss
from bookkeeper.replication.losses.rollback import KEEP_S, HeldLedgers, accept, look

__all__ = [
    "KEEP_S",
    "ClosingLoss",
    "HeldLedgers",
    "LossPlan",
    "accept",
    "accept_loss",
    "look",
    "plan_loss",
]
