"""The footer of a completed segment: what it holds, an index to seek by, which keys may be in it, and the producers.

A builder is told of every entry as it is written; the footer is the segment's last entry.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from segments.entries.layout import BODY_MAX
from segments.errors import EntryCorruptError, UnsupportedStreamFormatError

FOOTER_VERSION: Final = 1
INDEX_EVERY_BYTES: Final = 64 * 1024
"""An entry begins a row of the index when so many bytes of entries lie behind the last row."""

BLOOM_BITS_PER_KEY: Final = 10
BLOOM_HASHES: Final = 7
BLOOM_BYTES_MAX: Final = 256 * 1024
KEYS_MAX: Final = BLOOM_BYTES_MAX * 8 // BLOOM_BITS_PER_KEY
"""With more different keys a segment has no filter: every key may be in it."""

PRODUCERS_MAX: Final = 10_000

_NONE: Final = -(2**63)
_HEAD: Final = struct.Struct("<HHIIIQ")
"""Version, flags, rows of the index, producers, bytes of the filter, records with a key."""
_ROW: Final = struct.Struct("<qqqqq")
_PRODUCER: Final = struct.Struct("<HHIqqq")
"""Bytes of the name, nothing, records, epoch, first and last sequence number."""
_ALL_PRODUCERS: Final = 1
"""Flag: no producer was left out."""
_FILTER: Final = 2
"""Flag: the filter has all keys."""


class IndexRow(NamedTuple):
    """Where an entry is, and what its records begin with. Numbers are the greatest before or at its first record."""

    entry: int
    seq_no: int
    """Of its first record."""
    append_ms: int
    txid: int | None
    """The greatest transaction id before this entry; None if there is none."""
    event_ms: int | None
    """The greatest event time before this entry; None if there is none."""


class ProducerRange(NamedTuple):
    """What one producer appended to the segment."""

    name: str
    epoch: int
    """The last of its epochs."""
    first_sequence: int
    last_sequence: int
    records: int


@dataclass(frozen=True, slots=True)
class SegmentFooter:
    """What a completed segment holds, for seeking and skipping."""

    index: tuple[IndexRow, ...] = ()
    """By entry; the first row is the first entry with records."""
    producers: tuple[ProducerRange, ...] = ()
    all_producers: bool = True
    """Whether ``producers`` has every producer of the segment."""
    keyed: int = 0
    """Records with a key."""
    filter: bytes | None = b""
    """A Bloom filter of the keys; None if there were too many. Empty if no record has a key."""

    def entry_for_seq_no(self, seq_no: int) -> int | None:
        """An entry at or before the one with this record; None if the index is empty."""
        at = bisect_right(self.index, seq_no, key=lambda row: row.seq_no)
        return self.index[max(0, at - 1)].entry if self.index else None

    def entry_for_txid(self, txid: int) -> int | None:
        """An entry at or before the first record with this transaction id or a greater one."""
        return self._before([row.txid for row in self.index], txid)

    def entry_for_append_time(self, ms: int) -> int | None:
        """An entry at or before the first record appended at this time or later."""
        at = bisect_right([row.append_ms for row in self.index], ms - 1)
        return self.index[max(0, at - 1)].entry if self.index else None

    def entry_for_event_time(self, ms: int) -> int | None:
        """An entry at or before the first record with this event time or a later one."""
        return self._before([row.event_ms for row in self.index], ms)

    def _before(self, column: list[int | None], wanted: int) -> int | None:
        """The last row before which everything is lower."""
        if not self.index:
            return None
        numbers = [_NONE if each is None else each for each in column]
        at = bisect_right(numbers, wanted - 1)
        return self.index[max(0, at - 1)].entry

    def encode(self) -> bytes:
        """The footer as bytes."""
        flags = (_ALL_PRODUCERS if self.all_producers else 0) | (_FILTER if self.filter is not None else 0)
        keys = self.filter or b""
        parts = [_HEAD.pack(FOOTER_VERSION, flags, len(self.index), len(self.producers), len(keys), self.keyed)]
        parts += (
            _ROW.pack(
                row.entry,
                row.seq_no,
                row.append_ms,
                _NONE if row.txid is None else row.txid,
                _NONE if row.event_ms is None else row.event_ms,
            )
            for row in self.index
        )
        for each in self.producers:
            name = each.name.encode()
            parts += (
                _PRODUCER.pack(len(name), 0, each.records, each.epoch, each.first_sequence, each.last_sequence),
                name,
            )
        return b"".join((*parts, keys))

    @classmethod
    def decode(cls, data: bytes, base: int = 0) -> SegmentFooter:
        """Read a footer. ``base``, that of its segment, is added to the sequence numbers in it.

        Raises:
            UnsupportedStreamFormatError: a newer format. EntryCorruptError: no footer.
        """
        try:
            version, flags, rows, producers, size, keyed = _HEAD.unpack_from(data)
            if version > FOOTER_VERSION:
                raise UnsupportedStreamFormatError(
                    f"a segment's footer has format {version}, and this program reads formats up to {FOOTER_VERSION}"
                )
            at = _HEAD.size + rows * _ROW.size
            index = tuple(
                IndexRow(entry, base + seq, ms, None if txid == _NONE else txid, None if event == _NONE else event)
                for entry, seq, ms, txid, event in _ROW.iter_unpack(data[_HEAD.size : at])
            )
            if len(index) != rows:
                raise EntryCorruptError("a segment's footer is cut short")
            found: list[ProducerRange] = []
            for _ in range(producers):
                length, _, records, epoch, first, last = _PRODUCER.unpack_from(data, at)
                at += _PRODUCER.size
                found.append(ProducerRange(data[at : at + length].decode(), epoch, first, last, records))
                at += length
        except (struct.error, UnicodeDecodeError) as error:
            raise EntryCorruptError(f"a segment's footer is damaged: {error}") from error
        if at + size != len(data):
            raise EntryCorruptError(f"a segment's footer has {len(data)} bytes, and {at + size} are announced")
        keys = data[at:] if flags & _FILTER else None
        return cls(index, tuple(found), bool(flags & _ALL_PRODUCERS), keyed, keys)


class FooterBuilder:
    """Gathers a footer while a segment is written. Work per entry, and per different key."""

    def __init__(self, *, filtered: bool = True) -> None:
        """``filtered``: with a filter of the keys, which takes time for each of them."""
        self._index: list[IndexRow] = []
        self._behind = INDEX_EVERY_BYTES
        self._txid: int | None = None
        self._event: int | None = None
        self._producers: dict[str, ProducerRange] = {}
        self._all_producers = True
        self._keys: set[bytes] | None = set() if filtered else None
        self._keyed = 0

    def add_entry(
        self,
        entry: int,
        size: int,
        first_seq_no: int,
        append_ms: int,
        *,
        last_txid: int | None = None,
        max_event_ms: int | None = None,
    ) -> None:
        """An entry with records, of ``size`` bytes. Entries come in order."""
        if self._behind >= INDEX_EVERY_BYTES:
            self._index.append(IndexRow(entry, first_seq_no, append_ms, self._txid, self._event))
            self._behind = 0
        self._behind += size
        if last_txid is not None:
            self._txid = last_txid if self._txid is None else max(self._txid, last_txid)
        if max_event_ms is not None:
            self._event = max_event_ms if self._event is None else max(self._event, max_event_ms)

    def add_producer(self, name: str, epoch: int, first_sequence: int, records: int) -> None:
        """A batch of an idempotent producer."""
        last = first_sequence + records - 1
        known = self._producers.get(name)
        if known is not None:
            self._producers[name] = ProducerRange(
                name,
                max(epoch, known.epoch),
                min(first_sequence, known.first_sequence),
                max(last, known.last_sequence),
                known.records + records,
            )
        elif len(self._producers) < PRODUCERS_MAX:
            self._producers[name] = ProducerRange(name, epoch, first_sequence, last, records)
        else:
            self._all_producers = False

    def add_keyed(self, count: int) -> None:
        """So many records may have a key, and nobody looks at them. Only without a filter."""
        assert self._keys is None
        self._keyed += count

    def add_keys(self, keys: Iterable[bytes | None]) -> None:
        """The keys of some records."""
        given = [key for key in keys if key is not None]
        self._keyed += len(given)
        if self._keys is not None:
            self._keys.update(given)
            if len(self._keys) > KEYS_MAX:
                self._keys = None

    def build(self, limit: int = BODY_MAX) -> SegmentFooter:
        """The footer, of at most ``limit`` bytes: rows are left out first, then producers, then the filter."""
        keys = None if self._keys is None else bloom(self._keys)
        footer = SegmentFooter(
            tuple(self._index), tuple(self._producers.values()), self._all_producers, self._keyed, keys
        )
        while len(footer.encode()) > limit:
            if len(footer.index) > 1_000:
                footer = _replaced(footer, index=footer.index[::2])
            elif footer.producers:
                footer = _replaced(footer, producers=())
            else:
                footer = _replaced(footer, dropped_filter=True)
        return footer


def _replaced(
    footer: SegmentFooter,
    *,
    index: tuple[IndexRow, ...] | None = None,
    producers: tuple[ProducerRange, ...] | None = None,
    dropped_filter: bool = False,
) -> SegmentFooter:
    return SegmentFooter(
        footer.index if index is None else index,
        footer.producers if producers is None else producers,
        footer.all_producers and producers is None,
        footer.keyed,
        None if dropped_filter else footer.filter,
    )


def bloom(keys: Iterable[bytes]) -> bytes:
    """A Bloom filter of these keys; empty for none. About one of a hundred other keys seems to be there."""
    known = list(keys)
    if not known:
        return b""
    size = (len(known) * BLOOM_BITS_PER_KEY + 7) // 8
    bits = bytearray(size)
    for key in known:
        for bit in _bits(key, size * 8):
            bits[bit >> 3] |= 1 << (bit & 7)
    return bytes(bits)


def _bits(key: bytes, size: int) -> list[int]:
    """The bits of a key: double hashing by the halves of a digest."""
    digest = blake2b(key, digest_size=16).digest()
    one, two = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
    return [(one + i * two) % size for i in range(BLOOM_HASHES)]
