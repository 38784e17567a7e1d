"""The journal on disk: what was durable, group by group.

    file     header block (4096): stamp "BKJF" of file id: u64 | first sequence: u64 | directory id: u64 | boot: u64
             groups, each beginning at a multiple of 4096
    group    magic: u32 | version: u16 | flags: u16 | file id: u64 | sequence: u64 | offset: u64
             | durable-below sequence: u64 | records: u32 | bytes: u32 | crc of the records' crcs: u32
             | crc of this header: u32
             then the records, then zeros to the next multiple of 4096

All integers are big-endian. A group is what one sync made durable; sequences rise by one from group to group over all
files. File id, sequence and offset are under the header's crc: bytes left from an earlier life of a recycled file, or
put in the wrong place by the disk, are never taken for a group of this life (K8).

What damage means (K9). A group is *bad* if its header or its records fail their checks. ``durable_below`` says up to
which sequence everything was durable when the header was made; since groups are written one after the other, any valid
later group says so of all before it. So a bad or missing group before a valid one is **corruption**: acknowledged
records may be gone; so is one at or below the ``durable_below`` of a later header whose own records are torn. A bad
last group is corruption, too, if anything shows that it had been durable (evidence.py, torn_tail.py); else it was never
acknowledged: a **torn tail**, cut. After a clean stop there is no tail.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from struct import Struct, error

from bookkeeper.codec import chain_crcs, crc32c, scan_records
from bookkeeper.codec.shapes import RECORD_HEADER, Scan
from bookkeeper.errors import CorruptionError
from bookkeeper.seams import Buffer, File
from bookkeeper.storage.base.durable_file import BLOCK, stamp, unstamp
from bookkeeper.storage.base.read_room import ReadRoom

VERSION = 1
FILE_MAGIC = b"BKJF"
GROUP_MAGIC = 0x424B4A47  # "BKJG"
CLEAN_STOP = 1
"""Flag of the last group of a run that was stopped cleanly."""

_FILE = Struct(">QQQQ")
_GROUP = Struct(">IHHQQQQIII")
_CRC = Struct(">I")
GROUP_HEADER = _GROUP.size + _CRC.size
_MAGIC_BYTES = GROUP_MAGIC.to_bytes(4, "big")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileHeader:
    """First block of a journal file."""

    file_id: int
    first_sequence: int
    """Of the first group written into it."""
    directory_id: int = 0
    boot: int = 0

    def encode(self) -> bytes:
        body = _FILE.pack(self.file_id, self.first_sequence, self.directory_id, self.boot)
        return stamp(FILE_MAGIC, VERSION, body, pad_to=BLOCK)

    @classmethod
    def decode(cls, data: Buffer, what: str) -> FileHeader:
        """Raises CorruptionError, UnsupportedFormatError."""
        body = unstamp(data, FILE_MAGIC, VERSION, what)
        try:
            return cls(*_FILE.unpack(body))
        except error:
            raise CorruptionError(f"{what}: a header of {len(body)} bytes") from None


@dataclass(slots=True)
class GroupHeader:
    """What precedes the records of a group. Never changed; not frozen, because making a frozen one takes four times as
    long."""

    flags: int
    file_id: int
    sequence: int
    offset: int
    durable_below: int
    """The last sequence that was durable when this header was made."""
    records: int
    size: int
    """Bytes of the records."""
    chain: int
    """CRC32C over the records' crc fields: ties exactly these records to this header."""

    @property
    def padded(self) -> int:
        """Bytes the group takes in its file."""
        return padded(self.size)

    def encode(self) -> bytes:
        head = _GROUP.pack(
            GROUP_MAGIC,
            VERSION,
            self.flags,
            self.file_id,
            self.sequence,
            self.offset,
            self.durable_below,
            self.records,
            self.size,
            self.chain,
        )
        return head + _CRC.pack(crc32c(head))

    @classmethod
    def decode(cls, data: Buffer, file_id: int, offset: int) -> GroupHeader | None:
        """The header at the beginning of ``data``, if it is one of this file and this offset (K8)."""
        if len(data) < GROUP_HEADER:
            return None
        magic, version, flags, has_id, sequence, at, below, records, size, chain = _GROUP.unpack_from(data)
        if magic != GROUP_MAGIC or version != VERSION or has_id != file_id or at != offset:
            return None
        if crc32c(bytes(data[: _GROUP.size])) != _CRC.unpack_from(data, _GROUP.size)[0]:
            return None
        return cls(flags, has_id, sequence, at, below, records, size, chain)


@dataclass(frozen=True, slots=True)
class JournalGroup:
    """A valid group as read back."""

    header: GroupHeader
    data: Buffer
    """Header and records, unpadded."""
    scan: Scan
    """The records, in ``data``."""

    @property
    def end(self) -> int:
        """Where it ends in its file, padding and all."""
        return self.header.offset + self.header.padded


@dataclass(frozen=True, slots=True)
class DamagedStretch:
    """A stretch of a file that holds no valid group of its life."""

    offset: int
    end: int
    last: bool
    """No valid group follows in this file."""
    begun: bool
    """It begins with a valid header of this file: a group was written here, and its records are not all there."""
    claims: int = 0
    """If ``last``: the greatest ``durable_below`` of the headers in it that are valid without their records. Up to
    there everything was durable, so it must have been read before this (K9)."""
    sequence: int = 0
    """If ``begun``: the group's."""


def padded(size: int) -> int:
    """Bytes a group with ``size`` bytes of records takes in its file."""
    return -(-(GROUP_HEADER + size) // BLOCK) * BLOCK


def read_group(file: File, file_id: int, offset: int, room: ReadRoom | None = None) -> JournalGroup | None:
    """The group at ``offset``, every checksum verified; None if there is no valid one.

    Args:
        room: where its bytes are read to; they are valid until the next read into it. None: they are the group's own.
    """
    head = file.pread(BLOCK, offset)
    header = GroupHeader.decode(head, file_id, offset)
    if header is None:
        return None
    size = GROUP_HEADER + header.size
    data: Buffer = head[:size]
    if size > BLOCK:  # all of it at once: to put parts together is a copy
        data = file.pread(size, offset) if room is None else room.read(file, size, offset)
    if len(data) < size:
        return None
    scan = scan_records(data, GROUP_HEADER, len(data), max(len(data), RECORD_HEADER))
    if scan.next != len(data) or len(scan.offsets) != header.records:
        return None
    if chain_crcs(data, GROUP_HEADER, len(data)) != header.chain:
        return None
    return JournalGroup(header, data, scan)


def read_groups(file: File, file_id: int, room: ReadRoom | None = None) -> Iterator[JournalGroup | DamagedStretch]:
    """Everything in a journal file: groups, and the stretches between and after them that hold none.

    Args:
        room: as of :func:`read_group`.
    """
    for step in group_steps(file, file_id, room):
        if not isinstance(step, int):
            yield step


def group_steps(
    file: File, file_id: int, room: ReadRoom | None = None
) -> Iterator[JournalGroup | DamagedStretch | int]:
    """The same for who must not read faster than at some rate: while a valid group is looked for, it says from time to
    time how many bytes it has read since."""
    offset, size = BLOCK, file.size()
    while offset < size:
        if (group := read_group(file, file_id, offset, room)) is not None:
            yield group
            offset += group.header.padded
            continue
        begun = GroupHeader.decode(file.pread(GROUP_HEADER, offset), file_id, offset)
        found, claims = yield from _next_group(file, file_id, offset, size)
        yield DamagedStretch(
            offset,
            size if found is None else found,
            found is None,
            begun is not None,
            claims if found is None else 0,
            begun.sequence if begun is not None else 0,
        )
        if found is None:
            return
        offset = found


def _next_group(file: File, file_id: int, bad: int, size: int) -> Generator[int, None, tuple[int | None, int]]:
    """Where the next valid group begins, behind the bad one at ``bad``; and the greatest ``durable_below`` of the
    valid headers on the way, that one's included. Yields how many bytes it reads."""
    offset, claims = bad, 0
    while offset < size:
        chunk = file.pread(_CHUNK, offset)
        yield len(chunk)
        for at in range(0, len(chunk), BLOCK):
            if not chunk.startswith(_MAGIC_BYTES, at):
                continue
            if offset + at > bad and read_group(file, file_id, offset + at) is not None:
                return offset + at, claims
            header = GroupHeader.decode(chunk[at : at + GROUP_HEADER], file_id, offset + at)
            if header is not None:
                claims = max(claims, header.durable_below)
        offset += _CHUNK
    return None, claims
