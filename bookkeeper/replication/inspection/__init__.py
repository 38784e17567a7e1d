"""What is where: bookies are asked what they hold, and nothing is changed.

check            whether a ledger is whole
explain          what is where, and what further failures would lose (pure)
explain_ledger   the same of a ledger, asked of its bookies
safe_to_stop     which bookies may be stopped
usage            what tenants and owners of ledgers have
"""

from __future__ import annotations

from bookkeeper.replication.inspection.check import (
    NO_LISTS,
    CopyGaps,
    IncompleteCopy,
    check_ledger,
    incomplete_copies,
    missing_entries,
)
from bookkeeper.replication.inspection.explain import CopyState, ExplainedCopy, ExplainedRange, Loss, without_copy
from bookkeeper.replication.inspection.explain_ledger import ExplainedLedger, explain_ledger, explained_ranges
from bookkeeper.replication.inspection.safe_to_stop import StopVerdict, safe_to_stop

__all__ = [
    "NO_LISTS",
    "CopyGaps",
    "CopyState",
    "ExplainedCopy",
    "ExplainedLedger",
    "ExplainedRange",
    "IncompleteCopy",
    "Loss",
    "StopVerdict",
    "check_ledger",
    "explain_ledger",
    "explained_ranges",
    "incomplete_copies",
    "missing_entries",
    "safe_to_stop",
    "without_copy",
]
