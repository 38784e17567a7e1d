"""What lacks copies is made whole.

ledger_repair    one ledger, as a worker of autorecovery does it
repair_once      one ledger, for an operator
tidy             which marks of under-replicated ledgers may go
peer_completer   what a bookie has lost itself, copied from the others
bookie_client    the client inside a bookie that does it

The last two are for bookies, and are not loaded by this door: an operator's command needs no bookie's settings.
"""

from bookkeeper.replication.repairs.ledger_repair import GracePeriods, LedgerRepair, repair_ledger
from bookkeeper.replication.repairs.repair_once import repair_once

__all__ = ["GracePeriods", "LedgerRepair", "repair_ledger", "repair_once"]
