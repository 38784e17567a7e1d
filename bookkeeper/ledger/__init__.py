"""The protocol, pure: what a ledger is, and what may happen to it.

Data: :class:`QuorumSpec`, :class:`LedgerMetadata`, :class:`Fragment`, :class:`Entry`, :class:`DigestScheme`.
Machines: :class:`LedgerWriter` with :class:`~bookkeeper.ledger.forcing.Forcing` inside and
:class:`~bookkeeper.ledger.advanced_order.AdvancedOrder` in front of it, :class:`LedgerRecovery`, :class:`EntryReader`,
:class:`LacByCoverage`, :class:`LongPoll`.
The effects of a machine are named in its own module (``bookkeeper.ledger.writer.SendAdds``, ...).
"""

from bookkeeper.ledger.answer import Answer, classify
from bookkeeper.ledger.digest import DigestScheme, DigestType, crc32c, mac_key, master_key
from bookkeeper.ledger.entry import HEADER, HEADER_SIZE, Entry
from bookkeeper.ledger.last_add_confirmed import KnownLac, LacByCoverage, LongPoll
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.reader import EntryReader
from bookkeeper.ledger.recovery import LedgerRecovery
from bookkeeper.ledger.writer import LedgerWriter

__all__ = [
    "HEADER",
    "HEADER_SIZE",
    "Answer",
    "DigestScheme",
    "DigestType",
    "Entry",
    "EntryReader",
    "Fragment",
    "KnownLac",
    "LacByCoverage",
    "LedgerMetadata",
    "LedgerRecovery",
    "LedgerState",
    "LedgerWriter",
    "LongPoll",
    "QuorumSpec",
    "classify",
    "crc32c",
    "mac_key",
    "master_key",
]
