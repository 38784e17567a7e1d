"""THE PROTOCOL, pure: what a ledger is, and what may happen to it.

Rooms and modules, each above those that it imports
    write               the machine that writes a ledger, and what stands in front of it
    recovery            the machine that closes a ledger whose writer is gone
    read                the machines that read: which bookie is asked, and how far the ledger may be read
    ensemble            the bookies of one writer: what each acknowledged, which of them failed, and what follows
    placement           which bookies a new ledger gets, and which stand in
    metadata            a ledger's state, its fragments and its end, and the legal steps
    location            where a bookie stands
    quorum, digest      the arithmetic of E, Qw and Qa; how entries are sealed and checked
    entry, answer, config, effects
                        an entry's bytes; what a reply means; the machines' limits; what all machines ask for

This door has the data. The rooms of machines have doors of their own and are not imported here: a bookie has no use
for a writer.
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
