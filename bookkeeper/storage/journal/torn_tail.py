"""What a power cut cannot have done to the last group of a journal (K9).

A group is one write, and a cut leaves each of its sectors as it was before or as it was written. What a sector held
before is zeros or bytes of the file's earlier life: never anything of *this* group. So a sector that holds something
only this group's write can have put there was written whole, and what is wrong in it was damaged later, when the group
had been durable. What only this group's write can have put there:

* the header: four of magic, version, file id, sequence and offset are as they had to be, and its crc is wrong (small
  numbers alone prove nothing: an entry of the file's earlier life may have the same ones at that place);
* the crc field of a record, when the crc fields of all records give the header's chain.

Damage in other sectors of a long record may as well be a sector that was never written: no proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import eq
from struct import Struct
from typing import Final

from bookkeeper.codec import RECORD_HEADER, crc32c, find_record
from bookkeeper.seams import File
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, GROUP_MAGIC, VERSION, GroupHeader

SECTOR: Final = 512
"""The least that a disk writes whole or not at all."""

_FACTS = Struct(">IHHQQQ")
_CRC_OF_HEADER = GROUP_HEADER - 4
_U32 = Struct(">I")


def rot_in(file: File, file_id: int, offset: int, sequence: int) -> str | None:
    """What proves that the group at ``offset``, which fails its checks, had been written whole; None if nothing does.

    Args:
        sequence: what its number had to be.
    """
    head = file.pread(SECTOR, offset)
    header = GroupHeader.decode(head, file_id, offset)
    if header is None:
        return "its header is damaged" if _was_ours(head, file_id, offset, sequence) else None
    data = file.pread(GROUP_HEADER + header.size, offset)
    if len(data) == GROUP_HEADER + header.size and _is_damaged(data, header):
        return "a sector of it is neither as it was before nor as it was written"
    return None


def _was_ours(head: bytes, file_id: int, offset: int, sequence: int) -> bool:
    if len(head) < GROUP_HEADER:
        return False
    if crc32c(head[:_CRC_OF_HEADER]) == _U32.unpack_from(head, _CRC_OF_HEADER)[0]:
        return False  # a whole header, of an earlier life
    magic, version, _, *rest = _FACTS.unpack_from(head)
    found, wanted = (magic, version, *rest), (GROUP_MAGIC, VERSION, file_id, sequence, offset)
    return list(map(eq, found, wanted)).count(True) >= 4


@dataclass(slots=True)
class _Record:
    """Of a damaged group: where it lies, and where it is not as its crc says."""

    begin: int
    end: int
    stored: int
    actual: int
    broken: tuple[int, int] | None = None


def _is_damaged(data: bytes, header: GroupHeader) -> bool:
    records = _walk(data)
    if len(records) != header.records:
        return False
    if _chain([record.stored for record in records]) == header.chain:
        written = records
        broken = [record.broken for record in records if record.broken is not None]
    elif _chain([record.actual for record in records]) == header.chain:  # the entries are whole, a crc field is not
        written = [record for record in records if record.broken is None]
        broken = [(record.begin + 4, record.begin + 8) for record in records if record.broken is not None]
    else:
        return False
    new = {0} | {_only_sector(record.begin + 4, record.begin + 8) for record in written}
    return any(new.issuperset(range(begin // SECTOR, (end - 1) // SECTOR + 1)) for begin, end in broken)


def _only_sector(begin: int, end: int) -> int:
    """The sector of these bytes; -1 if they lie in two."""
    return begin // SECTOR if begin // SECTOR == (end - 1) // SECTOR else -1


def _walk(data: bytes) -> list[_Record]:
    """The records by their lengths, whatever they hold; a length that does not fit is told by where the next valid
    record begins."""
    found: list[_Record] = []
    at, end = GROUP_HEADER, len(data)
    while end - at > RECORD_HEADER:
        record = _record(data, at, at + RECORD_HEADER + _U32.unpack_from(data, at)[0])
        if record is None or record.broken is not None:
            following = find_record(data, at + 1, end)
            guess = _record(data, at, end if following < 0 else following)
            if guess is not None and guess.stored == guess.actual:
                guess.broken = (at, at + 4)
                record = guess
        if record is None:
            return []
        found.append(record)
        at = record.end
    return found


def _record(data: bytes, begin: int, end: int) -> _Record | None:
    if not begin + RECORD_HEADER < end <= len(data):
        return None
    (stored,) = _U32.unpack_from(data, begin + 4)
    body = begin + RECORD_HEADER
    actual = crc32c(data[body:end], crc32c(_U32.pack(end - body)))
    return _Record(begin, end, stored, actual, (body, end) if stored != actual else None)


def _chain(crcs: list[int]) -> int:
    return crc32c(b"".join(map(_U32.pack, crcs)))
