"""The layout of an entry: a header, then the body, which may be compressed (docs/streams.md draws it).

All numbers are little-endian. In the body each section begins at a multiple of 8 bytes.

header | batches | producers' names | value offsets | values | keys | txids | event times | headers
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import Final

MAGIC: Final = b"BKS"
VERSION: Final = 1

# magic, version, kind, codec, flags, records, batches, first sequence number, append time, entry of the last snapshot
# of producers, unpacked size, stored size, nothing, checksum
HEADER: Final = struct.Struct("<3sBBBHIIqqqII4xI")
HEADER_SIZE: Final = HEADER.size
APPEND_MS: Final = struct.Struct("<q")
APPEND_MS_AT: Final = 24
CRC: Final = struct.Struct("<I")
CRC_AT: Final = 52
"""The checksum is CRC32C of the header's bytes before it, and of the stored body."""

BATCH: Final = struct.Struct("<IHHqq")
"""Of a batch: records, length of the producer's name, flags, the producer's epoch, its first sequence number."""

ONE_BATCH: Final = struct.Struct("<IHHqqii")
"""A batch without a producer's name, and the offsets of the one value that it has."""

PIECE: Final = struct.Struct("<IIQ")
"""Before a piece: its number from 0, how many there are, and the bytes of all together."""

ENTRY_MAX: Final = 1024 * 1024 - 4 * 1024
"""The largest entry, unpacked, header included."""

BODY_MAX: Final = ENTRY_MAX - HEADER_SIZE
NO_SNAPSHOT: Final = -1
"""In the header: no snapshot of producers is in this ledger before this entry."""


class EntryKind(IntEnum):
    """What an entry holds."""

    DATA = 1
    SNAPSHOT = 2
    """The producers, as of this entry. Takes no slot."""
    FOOTER = 3
    """Statistics of the segment; its last entry. Takes no slot."""
    PIECE = 4
    """A piece of records that do not fit into one entry; they stand at the last piece."""
    CONTROL = 5
    """Nothing: it tells readers that the entries before it are confirmed. Takes no slot."""


class Columns(IntFlag):
    """Which columns an entry has."""

    TXIDS = 1
    TXID_NULLS = 2
    """Some records have no transaction id: a bitmap says which have one."""
    KEYS = 4
    KEY_NULLS = 8
    EVENTS = 16
    EVENT_NULLS = 32
    HEADERS = 64


class BatchFlag(IntFlag):
    """Of one batch."""

    PRODUCER = 1
    """The records are those of an idempotent producer."""


def padded(size: int) -> int:
    """The next multiple of 8."""
    return (size + 7) & ~7
