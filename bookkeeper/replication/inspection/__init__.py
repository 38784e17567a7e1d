"""What is where: bookies are asked what they hold, and nothing is changed.

check            whether a ledger is whole
explain          what is where, and what further failures would lose (pure)
explain_ledger   the same of a ledger, asked of its bookies
safe_to_stop     which bookies may be stopped
usage            what tenants and owners of ledgers have
"""

from bookkeeper.replication.inspection.check import IncompleteCopy, incomplete_copies
from bookkeeper.replication.inspection.explain import ExplainedCopy, ExplainedRange, Loss
from bookkeeper.replication.inspection.explain_ledger import ExplainedLedger, explain_ledger
from bookkeeper.replication.inspection.safe_to_stop import StopVerdict, safe_to_stop

__all__ = [
    "ExplainedCopy",
    "ExplainedLedger",
    "ExplainedRange",
    "IncompleteCopy",
    "Loss",
    "StopVerdict",
    "explain_ledger",
    "incomplete_copies",
    "safe_to_stop",
]
