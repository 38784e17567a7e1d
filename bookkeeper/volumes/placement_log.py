"""The file ``placements`` in a bookie's directory (K35): every change of ``Placements``.

    file    stamp (magic BKPL) of 16 bytes and its body | record | record | ...
    body    id: u64, random; the file ``volumes`` has the same
    record  crc: u32 | kind: u8 | before: u24 | volume: u32 | number: u32 | ledger: i64    24 bytes, big-endian

``crc`` is CRC32C over the rest of the record, preceded by the file's id; ``number`` counts the records of the file from
0 on, and ``before`` those that were written in one group with it, before it. What a crash leaves behind the last synced
record is cut by the next start: of the last group any sectors may be there. A record that cannot be read, with one of a
later group behind it that can, is damage: then every volume must say itself which ledgers it has.

Records are collected while the file is being synced, like groups of the journal; one worker writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from bookkeeper.codec import crc32c
from bookkeeper.errors import BookieFailedError, CorruptionError, DiskFullError, in_words
from bookkeeper.seams import Disk, File, Worker
from bookkeeper.storage.durable_file import NO_SPACE, SyncFailedError, replace_file, stamp, sync, unstamp
from bookkeeper.storage.results import Done
from bookkeeper.volumes.placement import PlacementKind, PlacementRecord

NAME: Final = "placements"
_MAGIC: Final = b"BKPL"
_VERSION: Final = 1
_ID: Final = Struct(">Q")
_RECORD: Final = Struct(">IIIIq")
_BEFORE_MAX: Final = (1 << 24) - 1
_KINDS: Final = frozenset(int(kind) for kind in PlacementKind)
_HEAD: Final = len(stamp(_MAGIC, _VERSION, _ID.pack(0)))


@dataclass(frozen=True, slots=True)
class ReadPlacements:
    """What a file holds."""

    records: list[PlacementRecord]
    size: int
    """Bytes up to the first record that cannot be read; with damage up to the last one that can."""
    damage: str | None
    """Why some records in the middle are missing; None: none are."""


def encode_head(file_id: int) -> bytes:
    """The beginning of a file."""
    return stamp(_MAGIC, _VERSION, _ID.pack(file_id))


def encode_record(record: PlacementRecord, number: int, file_id: int, before: int = 0) -> bytes:
    """One record of a file, the one after ``before`` others of its group."""
    kind = record.kind << 24 | min(before, _BEFORE_MAX)
    body = _RECORD.pack(0, kind, record.volume, number, record.ledger_id)[4:]
    return crc32c(body, crc32c(_ID.pack(file_id))).to_bytes(4, "big") + body


def decode_placements(data: bytes, file_id: int, path: str) -> ReadPlacements:
    """
    Raises:
        CorruptionError: the head is damaged, or it is another bookie's file.
        UnsupportedFormatError: a file of another version.
    """
    head = unstamp(data, _MAGIC, _VERSION, path)
    records: list[PlacementRecord] = []
    size, first_bad, salt, group = _HEAD, None, crc32c(_ID.pack(file_id)), 0
    if head != _ID.pack(file_id):
        return ReadPlacements([], _HEAD, f"{path} does not belong to the file volumes beside it")
    for number, at in enumerate(range(_HEAD, len(data) - _RECORD.size + 1, _RECORD.size)):
        piece = data[at : at + _RECORD.size]
        crc, both, volume, has, ledger_id = _RECORD.unpack(piece)
        kind = both >> 24
        if crc != crc32c(piece[4:], salt) or has != number or kind not in _KINDS:
            first_bad = at if first_bad is None else first_bad
            continue
        records.append(PlacementRecord(PlacementKind(kind), ledger_id, volume))
        size, group = at + _RECORD.size, at - (both & _BEFORE_MAX) * _RECORD.size
    if first_bad is not None and first_bad < size:
        if first_bad < group:
            return ReadPlacements(records, size, f"{path} is damaged at offset {first_bad}")
        size = first_bad  # nobody was told that this group is durable
    return ReadPlacements(records, size, None)


def refuse_damage(data: bytes, path: str) -> None:
    """
    Raises:
        CorruptionError: a record in the middle cannot be read, or the head cannot.
        UnsupportedFormatError: a file of another version.
    """
    (file_id,) = _ID.unpack_from(unstamp(data, _MAGIC, _VERSION, path))
    if (damage := decode_placements(data, file_id, path).damage) is not None:
        raise CorruptionError(damage)


def write_placements(disk: Disk, directory: str, file_id: int, records: Iterable[PlacementRecord]) -> int:
    """Write the file anew. It is durable when this returns. Returns how many records it has."""
    pieces = [encode_record(record, number, file_id) for number, record in enumerate(records)]
    replace_file(disk, f"{directory}/{NAME}", b"".join((encode_head(file_id), *pieces)))
    return len(pieces)


def write_again(disk: Disk, directory: str, data: bytes) -> None:
    """Make durable what a start has found in the file: a process that was killed may have written it and not synced it,
    or not have been able to (K17, K23). It needs no space, and a crash changes nothing."""
    file = disk.open(f"{directory}/{NAME}")
    try:
        file.pwrite(data, 0)
        sync(file)
    finally:
        file.close()


@dataclass(slots=True)
class PlacementLog:
    """Appends records. Owned by the loop's thread, but for the jobs of its worker."""

    disk: Disk
    directory: str
    file_id: int
    count: int
    """Records that are in the file."""
    worker: Worker
    failed: Callable[[BaseException], None]
    """Called once, with the reason, when nothing can be made durable any more."""
    failure: BaseException | None = None
    full: DiskFullError | None = None
    """Why nothing can be written for now. Then nothing more is to be placed, so that no more than that is collected."""
    _file: File | None = None
    _collected: list[PlacementRecord] = field(default_factory=list)
    _waiting: list[Done] = field(default_factory=list)
    _writing: bool = False

    def append(self, record: PlacementRecord) -> None:
        """Take a record. It is durable when a later :meth:`when_durable` says so."""
        self._collected.append(record)

    @property
    def is_durable(self) -> bool:
        """Whether every record is durable."""
        return not self._collected and not self._writing

    def when_durable(self, callback: Done) -> None:
        """``callback(None)`` when every record handed in so far is durable; inside this call if they are."""
        if self.failure is not None:
            return callback(self.failure)
        if self.is_durable:
            return callback(None)
        self._waiting.append(callback)
        if not self._writing:
            self._write()
        return None

    def close(self) -> None:
        """End the worker, close the file. What is collected and was not waited for is written."""
        if self._collected and not self._writing and self.failure is None:
            self._write()
        self.worker.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self) -> None:
        """Write what is collected; what comes meanwhile is collected for the next group."""
        group, self._collected = self._collected, []
        waiting, self._waiting = self._waiting, []
        self._writing = True
        offset, first = _HEAD + self.count * _RECORD.size, self.count
        pieces = [encode_record(each, first + at, self.file_id, at) for at, each in enumerate(group)]
        self.count += len(group)

        def job() -> None:
            if self._file is None:
                self._file = self.disk.open(f"{self.directory}/{NAME}")
            self._file.pwrite(b"".join(pieces), offset)
            sync(self._file)

        def done(_none: None, error: BaseException | None) -> None:
            self._writing = False
            if error is not None:
                error = self._settle(group, error)
            else:
                self.full = None
            for callback in waiting:
                callback(error)
            if self._waiting and not self._writing and self.failure is None:
                self._write()

        self.worker.submit(job, done)

    def _settle(self, group: list[PlacementRecord], error: BaseException) -> BaseException:
        """A write failed. Without space the records wait for the next group, at the same place."""
        path = f"{self.directory}/{NAME}"
        if isinstance(error, OSError) and not isinstance(error, SyncFailedError) and error.errno in NO_SPACE:
            self.count -= len(group)
            self._collected[:0] = group
            self.full = DiskFullError(
                f"{path} cannot be written for now: {in_words(error, beside=path)}; free some space there"
            )
            return self.full
        self.failure = BookieFailedError(f"{path} could not be written: {in_words(error, beside=path)}")
        self.failed(self.failure)
        for callback in self._waiting:
            callback(self.failure)
        self._waiting = []
        return self.failure
