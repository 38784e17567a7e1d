"""What lacks copies is made whole.

ledger_repair    one ledger, as a worker of autorecovery does it
repair_once      one ledger, for an operator
tidy             which marks of under-replicated ledgers may go
peer_completer   what a bookie has lost itself, copied from the others
bookie_client    the client inside a bookie that does it
"""

from __future__ import annotations

from bookkeeper.replication.repairs.bookie_client import BorrowedCluster, client_of_bookie
from bookkeeper.replication.repairs.ledger_repair import GracePeriods, LedgerRepair, repair_ledger
from bookkeeper.replication.repairs.repair_once import repair_once
from bookkeeper.replication.repairs.tidy import TidiedMark, tidy_mark, tidy_marks

__all__ = [
    "BorrowedCluster",
    "GracePeriods",
    "LedgerRepair",
    "TidiedMark",
    "client_of_bookie",
    "repair_ledger",
    "repair_once",
    "tidy_mark",
    "tidy_marks",
]
