"""The protocol, pure: what a ledger is, and what may happen to it.

Data: :class:`QuorumSpec`, :class:`LedgerMetadata`, :class:`Fragment`, :class:`Entry`, :class:`DigestScheme`.
Machines, each with its effects in a module of its own that is not imported here (a bookie has no use for a writer):
:class:`~bookkeeper.ledger.writer.LedgerWriter`, which is made of
:class:`~bookkeeper.ledger.writer_ensemble.WriterEnsemble`, a :class:`~bookkeeper.ledger.sync_policy.SyncPolicy` and
:class:`~bookkeeper.ledger.force_rounds.ForceRounds`, with
:class:`~bookkeeper.ledger.advanced_order.AdvancedOrder` in front of it,
:class:`~bookkeeper.ledger.recovery.LedgerRecovery`, :class:`~bookkeeper.ledger.reader.FragmentReader` (with
:mod:`~bookkeeper.ledger.read_plan`, :mod:`~bookkeeper.ledger.hedged_reads`, :mod:`~bookkeeper.ledger.batch_support` and
:mod:`~bookkeeper.ledger.replica_order` in front of it), and
:class:`~bookkeeper.ledger.last_add_confirmed.LacByCoverage` and ``LongPoll``.
"""

from bookkeeper.ledger.answer import Answer, classify
from bookkeeper.ledger.digest import DigestScheme, DigestType, mac_key, master_key
from bookkeeper.ledger.entry import HEADER, HEADER_SIZE, Entry
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from bookkeeper.ledger.quorum import QuorumSpec

__all__ = [
    "HEADER",
    "HEADER_SIZE",
    "Answer",
    "DigestScheme",
    "DigestType",
    "Entry",
    "Fragment",
    "LedgerMetadata",
    "LedgerState",
    "QuorumSpec",
    "classify",
    "mac_key",
    "master_key",
]
