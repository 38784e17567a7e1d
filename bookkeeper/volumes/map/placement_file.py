"""The bytes of the file ``placements`` in a bookie's directory (K35): every change of ``Placements``. Pure: no I/O.

    file    stamp (magic BKPL) of 16 bytes and its body | record | record | ... | end | zeros
    body    id: u64, random; the file ``volumes`` has the same | generation: u64, the start that wrote the file anew |
            records: u64, how many it had then
    record  crc: u32 | kind: u8 | before: u24 | volume: u32 | number: u32 | ledger: i64    24 bytes, big-endian
    end     a record of kind 6, right behind the last one: the next group takes its place, and has another behind it

``crc`` is CRC32C over the rest of the record, preceded by the file's id; ``number`` counts the records of the file from
0 on, and ``before`` those that were written in one group with it, before it. What a crash leaves behind the last synced
record is cut by the next start: of the last group any sectors may be there. A record that cannot be read, with one of a
later group behind it that can, is damage: then every volume must say itself which ledgers it has.

A file that was cut at a record's border, or put back from an older copy, is a good file, too. So where it ends is
published beside the root of the metadata before anything that needs its records is answered (K32, K35), and a file that
ends before that is damaged. Of a file of which nothing was published the end mark, and the number of records in its
head, must be there.

Version 1 has neither generation nor number of records in its head, no end, and no zeros. It is read, and written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from struct import Struct
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.codec import crc32c
from bookkeeper.errors import CorruptionError
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.storage.base.durable_file import stamp, unstamp, version_of
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord

NAME: Final = "placements"
ROOM: Final = 1 << 16
"""Zeros that a file gets behind its end: records of fences and recovery adds go there when the disk is full (K26)."""
_MAGIC: Final = b"BKPL"
_VERSIONS: Final = (1, 2)
_IDS: Final = {1: Struct(">Q"), 2: Struct(">QQQ")}
_SALT: Final = Struct(">Q")
_RECORD: Final = Struct(">IIIIq")
RECORD_SIZE: Final = _RECORD.size
_BEFORE_MAX: Final = (1 << 24) - 1
_KINDS: Final = frozenset(int(kind) for kind in PlacementKind)
_END: Final = 6


@dataclass(frozen=True, slots=True)
class ReadPlacements:
    """What a file holds."""

    records: list[PlacementRecord]
    end: PlacementsEnd
    """Its records up to the first one that cannot be read; with damage up to the last one that can."""
    damage: str | None
    """Why records may be missing that were there; None: none are."""
    tidy: bool = False
    """Whether it is of the newest version, and has its end and nothing but zeros behind that."""
    ended: bool = True
    """Whether it has its end."""
    least: int = 0
    """How many records it had when it was written anew."""


def encode_head(file_id: int, generation: int, records: int) -> bytes:
    """The beginning of a file."""
    return stamp(_MAGIC, _VERSIONS[-1], _IDS[2].pack(file_id, generation, records))


def offset_of(number: int) -> int:
    """Where the record with this number lies in a file of the newest version."""
    return len(encode_head(0, 0, 0)) + number * RECORD_SIZE


def encode_record(record: PlacementRecord, number: int, file_id: int, before: int = 0) -> bytes:
    """One record of a file, the one after ``before`` others of its group."""
    return _encode(int(record.kind), record.volume, record.ledger_id, number, file_id, before)


def encode_group(records: Sequence[PlacementRecord], first: int, file_id: int) -> bytes:
    """Records that are written together, the first one with this number, and the end behind them."""
    pieces = [encode_record(each, first + at, file_id, at) for at, each in enumerate(records)]
    return b"".join(pieces) + _encode(_END, 0, -1, first + len(records), file_id, len(records))


def encode_file(records: Iterable[PlacementRecord], file_id: int, generation: int) -> tuple[bytes, PlacementsEnd]:
    """A whole file, and where it ends."""
    pieces = [encode_record(each, number, file_id) for number, each in enumerate(records)]
    head, tail = encode_head(file_id, generation, len(pieces)), encode_group((), len(pieces), file_id)
    return b"".join((head, *pieces, tail, bytes(ROOM))), PlacementsEnd(generation, len(pieces))


def _encode(kind: int, volume: int, ledger_id: int, number: int, file_id: int, before: int) -> bytes:
    body = _RECORD.pack(0, kind << 24 | min(before, _BEFORE_MAX), volume, number, ledger_id)[4:]
    return crc32c(body, crc32c(_SALT.pack(file_id))).to_bytes(4, "big") + body


def decode_placements(data: bytes, file_id: int, path: str) -> ReadPlacements:
    """
    Raises:
        CorruptionError: the head is damaged.
        UnsupportedFormatError: a file of another version.
    """
    version = version_of(data, _VERSIONS)
    head = unstamp(data, _MAGIC, version, path)
    has_id, generation, least = _numbers(head, version, path)
    if has_id != file_id:
        text = f"{path} does not belong to the file volumes beside it"
        return ReadPlacements([], PlacementsEnd(generation, 0), text, least=least)
    body = data[len(stamp(_MAGIC, version, head)) :]
    found = _scan(body, file_id)
    count, torn = found.known, None
    if found.first_bad is not None and found.first_bad < found.known:
        if found.first_bad < found.group:
            offset = len(data) - len(body) + found.first_bad * RECORD_SIZE
            torn = f"{path} is damaged at offset {offset}"
        else:
            count = found.first_bad  # nobody was told that this group is durable
    if torn is None and count < least:
        torn = f"{path} has {counted(count, 'record')}, and had {least} when it was written: it was cut"
    ended = version == 1 or found.end == count
    tail = body[(count + 1) * RECORD_SIZE :]
    tidy = version == _VERSIONS[-1] and found.end == count and not any(tail)
    return ReadPlacements(found.records, PlacementsEnd(generation, count), torn, tidy, ended, least)


@dataclass(slots=True)
class _Scan:
    """What can be read of a file's records."""

    records: list[PlacementRecord]
    known: int = 0
    """One more than the number of the last record that can be read; or that of the end, if it is the last."""
    first_bad: int | None = None
    """The number of the first one that cannot be read."""
    group: int = 0
    """The number with which the group of the last one begins."""
    end: int | None = None
    """The number of the end, if nothing of a later group is behind it."""


def _scan(body: bytes, file_id: int) -> _Scan:
    found, salt = _Scan([]), crc32c(_SALT.pack(file_id))
    for number, (crc, both, volume, has, ledger_id) in enumerate(
        _RECORD.iter_unpack(body[: len(body) // RECORD_SIZE * RECORD_SIZE])
    ):
        kind = both >> 24
        if (
            has != number
            or (kind not in _KINDS and kind != _END)
            or crc != crc32c(body[number * RECORD_SIZE + 4 : (number + 1) * RECORD_SIZE], salt)
        ):
            found.first_bad = number if found.first_bad is None else found.first_bad
            continue
        if found.end is not None:  # a record was to take its place
            found.first_bad = found.end if found.first_bad is None else min(found.first_bad, found.end)
            found.end = None
        found.group = number - (both & _BEFORE_MAX)
        if kind == _END:
            found.end = found.known = number
        else:
            found.records.append(PlacementRecord(PlacementKind(kind), ledger_id, volume))
            found.known = number + 1
    return found


def judged(read: ReadPlacements, published: PlacementsEnd | None, path: str) -> ReadPlacements:
    """The same; damaged, if the file ends before what was published of it.

    Args:
        published: None: nothing was.
    """
    if read.damage is not None:
        return read
    if published is not None and read.end < published:
        was = f"{counted(published.count, 'record')} of start {published.generation}"
        has = f"{counted(read.end.count, 'record')} of start {read.end.generation}"
        text = f"{path} was cut, or put back from an older copy: it has {has}, and had {was}"
        return replace(read, damage=text)
    if published is None and not read.ended:
        return replace(read, damage=f"{path} was cut: its end is missing")
    return read


def refuse_damage(data: bytes, path: str) -> None:
    """
    Raises:
        CorruptionError: a record in the middle cannot be read, or the head cannot, or records are missing with which
            the file was written.
        UnsupportedFormatError: a file of another version.
    """
    version = version_of(data, _VERSIONS)
    file_id, _, _ = _numbers(unstamp(data, _MAGIC, version, path), version, path)
    if (damage := decode_placements(data, file_id, path).damage) is not None:
        raise CorruptionError(damage)


def _numbers(head: bytes, version: int, path: str) -> tuple[int, int, int]:
    """The id, the generation, and the number of records that a head names."""
    if len(head) != _IDS[version].size:
        raise CorruptionError(f"{path} is damaged: its head has {len(head)} bytes")
    numbers: tuple[int, ...] = _IDS[version].unpack(head)
    return (numbers[0], 0, 0) if version == 1 else (numbers[0], numbers[1], numbers[2])
