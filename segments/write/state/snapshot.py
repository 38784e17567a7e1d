"""The snapshot that a writer puts into a segment now and then: its producers, and what the segment holds up to there.

A take-over reads the last entry, the snapshot that it names, and the entries behind what the snapshot covers. The
snapshot is built of what is durable when it is sent; entries that are under way stand before it, and are not covered.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from segments.config import ProducerPolicy
from segments.entries.layout import BODY_MAX
from segments.errors import EntryCorruptError, UnsupportedStreamFormatError
from segments.producers import ProducerTable
from segments.write.state.contents_tally import ContentsTally

VERSION: Final = 1
_HEAD: Final = struct.Struct("<HHI11q")
"""Version, nothing, nothing, then the contents: records, bytes, last entry, entry and slot of the last record, first
and last transaction id, first and last append time, least and greatest event time."""
_NONE: Final = -(2**63)
PRODUCERS_MAX: Final = BODY_MAX - _HEAD.size
"""The bytes that producers may take."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a take-over begins with. ``contents.last_entry`` is the last entry that is covered."""

    contents: ContentsTally
    producers: ProducerTable


def encode_snapshot(contents: ContentsTally, producers: ProducerTable) -> bytes:
    """The payload of a snapshot entry."""
    entry, slot = contents.last if contents.last is not None else (None, None)
    numbers = (
        contents.records,
        contents.bytes,
        contents.last_entry,
        entry,
        slot,
        contents.first_txid,
        contents.last_txid,
        contents.first_append_ms,
        contents.last_append_ms,
        contents.min_event_ms,
        contents.max_event_ms,
    )
    head = _HEAD.pack(VERSION, 0, 0, *(_NONE if number is None else number for number in numbers))
    return head + producers.encode(PRODUCERS_MAX)


def decode_snapshot(payload: bytes, policy: ProducerPolicy | None = None) -> Snapshot:
    """Read a snapshot.

    Raises:
        UnsupportedStreamFormatError: a newer format. EntryCorruptError: no snapshot.
    """
    try:
        version, _, _, *numbers = _HEAD.unpack_from(payload)
    except struct.error as error:
        raise EntryCorruptError(f"a snapshot of {len(payload)} bytes is cut short") from error
    if version > VERSION:
        raise UnsupportedStreamFormatError(
            f"a snapshot has format {version}, and this program reads formats up to {VERSION}"
        )
    records, size, last_entry, entry, slot, *rest = (None if number == _NONE else number for number in numbers)
    last = None if entry is None or slot is None else (entry, slot)
    contents = ContentsTally(records or 0, size or 0, -1 if last_entry is None else last_entry, last, *rest)
    return Snapshot(contents, ProducerTable.decode(payload[_HEAD.size :], policy))
