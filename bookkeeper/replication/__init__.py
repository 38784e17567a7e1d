"""REPAIR: copies ledgers to other bookies, one fragment or everything that a bookie holds.

::

    from bookkeeper import BookKeeper
    from bookkeeper.replication import drain, replicate_fragment

    async with BookKeeper.connect(uri) as bk:
        report = await drain(bk, ["b1", "b2"])            # every ledger off two bookies
        await replicate_fragment(bk, ledger_id, 0, "b3")  # one fragment's share of b3 to somebody else

Safety rests on compare-and-set and on the rules (A1-A11, docs/rules.md), not on locks. Apache's bookies may be sources
and targets. Apache's list of under-replicated ledgers and its repair locks are kept as Apache's own workers keep them.

Read in this order
    copies      what a bookie holds of a ledger, by metadata (pure)
    fragment    the machine that copies one bookie's share to another bookie (pure)
    throttle    bytes per second (pure)
    repair      the shell around the machine: reads, writes, reads back, swaps
    replace     choosing targets; ``replicate_fragment``
    check, repair_lock, tidy
                whether a ledger is whole; one repair at a time; which marks of under-replicated ledgers may go
    peer_completer
                what a bookie has lost itself, copied from the others
    drain       moving every ledger off some bookies
    forget      removing the cookies of bookies that no ledger names
    decommission
                drain, wait until everything is whole, forget
    explain, explain_ledger, safe_to_stop
                what is where (explain is pure), what further failures would lose, what may be stopped
    ledger_repair, repair_once
                one ledger made whole: by a worker, by an operator
    given_up, accept_loss
                closing a ledger by order of which something is lost (given_up is pure)
    rollback    what bookies hold that the metadata do not know
"""

from __future__ import annotations

from bookkeeper.replication.config import CopyConfig, DrainConfig
from bookkeeper.replication.drain import (
    DrainProgress,
    DrainReport,
    LedgerShare,
    MovedCopy,
    StuckLedger,
    cannot_move,
    drain,
    shares_of,
)
from bookkeeper.replication.forget import ForgottenBookies, forget
from bookkeeper.replication.fragment import CopyOutcome
from bookkeeper.replication.repair import RepairResult
from bookkeeper.replication.replace import replicate_fragment
from bookkeeper.replication.tidy import TidiedMark

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
    "TidiedMark",
    "cannot_move",
    "drain",
    "forget",
    "replicate_fragment",
    "shares_of",
]
