"""REPAIR: copies ledgers to other bookies, one fragment or everything that a bookie holds.

::

    from bookkeeper import BookKeeper
    from bookkeeper.replication import drain, replicate_fragment

    async with BookKeeper.connect(uri) as bk:
        report = await drain(bk, ["b1", "b2"])            # every ledger off two bookies
        await replicate_fragment(bk, ledger_id, 0, "b3")  # one fragment's share of b3 to somebody else

Safety rests on compare-and-set and on the rules (A1-A11, docs/rules.md), not on locks. Apache's bookies may be sources
and targets. Apache's list of under-replicated ledgers and its repair locks are kept as Apache's own workers keep them.

Rooms, from the bottom
    config            what an operator may set of a copy and of a drain
    copying           one bookie's share of a ledger, copied to another bookie
    inspection        what is where, what further failures would lose, what may be stopped
    repairs           a ledger made whole, by a worker, by an operator, by a bookie itself
    losses            what is given up by order: of a ledger, of the metadata
    decommissioning   drain, forget, and both with what lies between
"""

from bookkeeper.replication.config import CopyConfig, DrainConfig
from bookkeeper.replication.copying.fragment import CopyOutcome
from bookkeeper.replication.copying.repair import RepairResult
from bookkeeper.replication.copying.replace import replicate_fragment
from bookkeeper.replication.decommissioning.drain import (
    DrainProgress,
    DrainReport,
    LedgerShare,
    MovedCopy,
    StuckLedger,
    cannot_move,
    drain,
    shares_of,
)
from bookkeeper.replication.decommissioning.forget import ForgottenBookies, forget
from bookkeeper.replication.repairs.tidy import TidyResult

__all__ = [
    "CopyConfig",
    "CopyOutcome",
    "DrainConfig",
    "DrainProgress",
    "DrainReport",
    "ForgottenBookies",
    "LedgerShare",
    "MovedCopy",
    "RepairResult",
    "StuckLedger",
    "TidyResult",
    "cannot_move",
    "drain",
    "forget",
    "replicate_fragment",
    "shares_of",
]
