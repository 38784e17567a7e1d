"""Recovery: closes a ledger whose writer is gone, and never truncates it. The shell is ``client/ledgers``.

recovery   the machine: hands over from one phase to the next
fencing    the first phase: no write set of the last fragment can acknowledge an add any more
reading    the second: reads on until an entry is provably absent
writing    beside it: writes back what was found, and says where the ledger is closed
effects    what the machine asks its shell to do
parts      the state of one entry while it is read, and while it is written back
"""

from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.recovery.effects import (
    BeginRecovery,
    CloseRecovered,
    Effect,
    FenceRead,
    FindStandIns,
    ForgetPayloads,
    RecoveryDone,
    RecoveryFailed,
    RecoveryRead,
    WriteBack,
)
from bookkeeper.ledger.recovery.recovery import LedgerRecovery, RecoveryState

__all__ = [
    "BeginRecovery",
    "CloseRecovered",
    "Effect",
    "FenceRead",
    "FindStandIns",
    "ForgetPayloads",
    "LedgerRecovery",
    "RecoveryDone",
    "RecoveryFailed",
    "RecoveryRead",
    "RecoveryState",
    "WakeAt",
    "WriteBack",
]
