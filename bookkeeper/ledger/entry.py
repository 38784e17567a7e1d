"""An entry as bookies keep it, and the explicit last-add-confirmed blob.

    offset  size  field
    0       8     ledger id
    8       8     entry id
    16      8     last add confirmed, as its writer knew it when it built the entry (-1: none)
    24      8     length: payload bytes of the ledger up to and including this entry
    32      d     digest over bytes 0..31 and the payload (d = 0, 4, 8 or 20; see ``digest.py``)
    32+d    n     payload

Copies of one entry agree in everything but the last add confirmed, and so in everything but the digest (L6), because a
recovery builds what it writes back anew.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import DigestMismatchError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.seams import Buffer

HEADER: Final = struct.Struct(">qqqq")
"""Ledger id, entry id, last add confirmed, length."""

HEADER_SIZE: Final = HEADER.size
"""Bytes before the digest."""

LAC_BLOB: Final = struct.Struct(">qq")
"""Ledger id, last add confirmed: what an explicit last add confirmed holds before its digest."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that was checked."""

    ledger_id: LedgerId
    entry_id: EntryId
    last_add_confirmed: EntryId
    length: int
    """Payload bytes of the ledger up to and including this entry."""
    payload: bytes


def header(ledger_id: int, entry_id: int, last_add_confirmed: int, length: int) -> bytes:
    """The first 32 bytes of an entry."""
    return HEADER.pack(ledger_id, entry_id, last_add_confirmed, length)


def ids(packet: Buffer) -> tuple[LedgerId, EntryId, EntryId]:
    """Ledger id, entry id and last add confirmed of an entry: all that a bookie looks at.

    Raises:
        DigestMismatchError: the packet has fewer bytes than a header.
    """
    if len(packet) < HEADER_SIZE:
        raise DigestMismatchError(f"an entry has {len(packet)} bytes, but its header alone has {HEADER_SIZE}")
    ledger_id, entry_id, last_add_confirmed, _ = HEADER.unpack_from(packet)
    return LedgerId(ledger_id), EntryId(entry_id), EntryId(last_add_confirmed)
