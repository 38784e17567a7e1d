"""REPAIR: bringing copies of ledgers to other bookies, one fragment or all that a bookie holds.

::

    from bookkeeper import BookKeeper
    from bookkeeper.replication import drain, replicate_fragment

    async with BookKeeper.connect(uri) as bk:
        report = await drain(bk, ["b1", "b2"])            # every ledger off two bookies
        await replicate_fragment(bk, ledger_id, 0, "b3")  # one fragment's share of b3 to somebody else

Safety is the compare-and-set's and the rules' (A1-A11, docs/rules.md), not the locks'. Works with Apache's bookies as
sources and targets; its list of under-replicated ledgers and its repair locks are kept as its own workers keep them.

Read in this order
    copies      what a bookie holds of a ledger, by metadata (pure)
    fragment    the machine that brings one copy to another bookie (pure);  throttle  bytes per second (pure)
    repair      the shell around it: reads, writes, reads back, swaps
    replace     choosing targets; ``replicate_fragment``
    check, marks, tidy
                is a ledger whole; the list of under-replicated ledgers and its locks; which marks may go
    completer   what a bookie has lost itself, from the others
    drain       every ledger off some bookies;  forget  their cookies, when nothing names them any more
"""

from __future__ import annotations

from bookkeeper.replication.drain import (
    DrainConfig,
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
from bookkeeper.replication.fragment import CopyConfig, CopyOutcome
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
