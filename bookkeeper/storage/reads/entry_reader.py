"""Reads entries: it takes places from the index and records from the logs, and verifies every record (B7).

The loop's thread first tries each step without waiting. If the step would wait, the read worker does it, on values that
nobody changes, and the loop's thread continues with the result. A read keeps the index pages that it waited for until
it is answered. So it waits for each page once, however small the cache is, and every read ends (V1).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bookkeeper.codec import RECORD_HEADER, ascending, pack_entries, read_record
from bookkeeper.codec.shapes import RECORD_MAX, Stop
from bookkeeper.errors import BookieFailedError, CorruptionError, DataUnknownError, NoSuchEntryError, in_words
from bookkeeper.seams import Buffer, File
from bookkeeper.storage.base.durable_file import TRANSIENT
from bookkeeper.storage.base.read_room import ReadRoom
from bookkeeper.storage.base.results import EngineStats, PackedEntries
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.index.entry_index import LOG_SHIFT, OFFSET_MASK
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.reads.entry_places import NONE_HELD, EntryPlaces, Held, PageMissing
from bookkeeper.storage.reads.unwritten import CachedSource, UnwrittenRecords

T = TypeVar("T")
_BATCH_MAX = 8192
"""The most entries one batch read looks up."""

_NEAR = 64 * 1024
"""Records at most so many bytes apart are read together."""

HINT_UNIT = 512
"""A read asks for a multiple of so many bytes."""


class DamagedRecordError(CorruptionError):
    """A record that was asked for is damaged."""

    def __init__(self, path: str, offset: int, text: str) -> None:
        super().__init__(text)
        self.path = path
        """The entry log, or what else should hold it."""
        self.offset = offset


class _WouldWaitError(Exception):
    """The bytes are not in memory."""


_Read = Callable[[File, int, int], Buffer]
"""(file, size, offset) -> bytes, which are valid until the next call."""


def _now(file: File, size: int, offset: int) -> bytes:
    data = file.pread_cached(size, offset)
    if data is None:
        raise _WouldWaitError
    return data


def _wait(file: File, size: int, offset: int) -> bytes:
    return file.pread(size, offset)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Records of consecutive entries that lie close together."""

    source: File | bytes
    """A log, or a copy of bytes that are not in a log yet."""
    begin: int
    """Offset of the first record in the source."""
    size: int
    first: int
    offsets: array[int]
    """Offsets of the records, relative to ``begin``."""
    name: str
    log_offset: int


def fetch(file: File, offset: int, hint: int, ledger_id: int, entry_id: int, read: _Read) -> bytes:
    """Read one entry from a log, and verify it.

    Raises:
        CorruptionError: the record is damaged; the error names file and offset.
    """
    data = read(file, max(hint, RECORD_HEADER), offset)
    size = RECORD_HEADER + int.from_bytes(data[:4], "big")
    if size > len(data) and size <= RECORD_MAX:
        data = read(file, size, offset)
    entry = read_record(data, 0, ledger_id, entry_id) if len(data) >= size else None
    if entry is None:
        text = f"{file.path} is damaged at byte {offset}: it should hold entry {entry_id} of ledger {ledger_id}"
        raise DamagedRecordError(file.path, offset, text)
    return entry


def fetch_batch(plan: list[_Stretch], ledger_id: int, size_max: int, read: _Read) -> PackedEntries:
    """Read the stretches of a plan, packed, up to ``size_max`` bytes or the first damaged entry.

    Raises:
        CorruptionError: the first entry is damaged.
    """
    parts: list[bytes] = []
    size = count = 0
    for stretch in plan:
        done = 0
        while done < len(stretch.offsets):
            at = stretch.offsets[done]
            data = _bytes_of(stretch, at, read)
            offsets = stretch.offsets
            if done or at:
                offsets = array("q", [offset - at for offset in offsets[done:]])
            packed = pack_entries(data, offsets, ledger_id, stretch.first + done, size_max - size, 0 if count else 1)
            parts.append(packed.body)
            size, count, done = size + len(packed.body), count + packed.n, done + packed.n
            if packed.n == 0 or packed.stop in (Stop.BUDGET, Stop.DAMAGED):
                if count == 0:
                    where = f"{stretch.name} is damaged at byte {stretch.log_offset}"
                    text = f"{where}: it should hold entry {stretch.first} of ledger {ledger_id}"
                    raise DamagedRecordError(stretch.name, stretch.log_offset, text)
                return PackedEntries(b"".join(parts), count)
    return PackedEntries(b"".join(parts), count)


def _bytes_of(stretch: _Stretch, at: int, read: _Read) -> Buffer:
    """The bytes of the stretch from ``at`` on. Its first record is complete."""
    if isinstance(stretch.source, bytes):
        return stretch.source[stretch.begin + at :]
    data = read(stretch.source, stretch.size - at, stretch.begin + at)
    size = RECORD_HEADER + int.from_bytes(data[:4], "big")
    return data if not len(data) < size <= RECORD_MAX else read(stretch.source, size, stretch.begin + at)


@dataclass(slots=True)
class EntryReader:
    """Reads single entries and batches. Runs on the loop's thread."""

    entry_logs: EntryLogs
    places: EntryPlaces
    stats: EngineStats
    workers: StorageWorkers
    unwritten: UnwrittenRecords
    """Records that are not in the files yet."""
    source_of: Callable[[int], CachedSource]
    """Where records of a log are read that are at hand."""
    found_damage: Callable[[str, int | None], None] = lambda path, offset: None
    """Called with the file in which a reader has met a damaged record, and where; None: the disk did not say."""
    _room: ReadRoom = field(default_factory=ReadRoom)

    # -- one entry ----------------------------------------------------------------------------------------

    def read(
        self,
        state: LedgerDescriptor,
        entry_id: int,
        unknown: bool,
        reply: Callable[[bytes | BaseException], None],
        held: Held = NONE_HELD,
    ) -> None:
        """See :meth:`Engine.read`. With ``unknown`` an absent entry is answered as unknown (B5)."""
        try:
            found = self.places.find(state, entry_id, held)
            if not found:
                return reply(absent(state.ledger_id, entry_id, unknown))
            offset = found & OFFSET_MASK
            if (memory := self.unwritten.holding(found)) is not None:
                entry = read_record(memory.record_from(offset), 0, state.ledger_id, entry_id)
                if entry is None:
                    raise CorruptionError(f"{memory.name} is damaged: it should hold entry {entry_id}")
                self.stats.reads_inline += 1
                return reply(entry)
            file, hint = self.entry_logs.file(found >> LOG_SHIFT), state.read_hint
            try:
                entry = fetch(file, offset, hint, state.ledger_id, entry_id, _now)
            except _WouldWaitError:
                self._submit(state, lambda: fetch(file, offset, hint, state.ledger_id, entry_id, _wait), len, reply)
                return None
            self.learn(state, len(entry))
            self.stats.reads_inline += 1
            reply(entry)
        except PageMissing as missing:
            self._load(missing, held, lambda pages: self.read(state, entry_id, unknown, reply, pages), reply)
        except (CorruptionError, OSError) as error:
            reply(self.trouble(error))

    def peek(self, state: LedgerDescriptor, entry_id: int) -> bytes | None:
        """The stored entry if it is in memory (B6); None if it is not, or does not exist."""
        try:
            found = self.places.find(state, entry_id)
            if not found:
                return None
            if (memory := self.unwritten.holding(found)) is not None:
                return read_record(memory.record_from(found & OFFSET_MASK), 0, state.ledger_id, entry_id)
            file = self.entry_logs.file(found >> LOG_SHIFT)
            return fetch(file, found & OFFSET_MASK, state.read_hint, state.ledger_id, entry_id, _now)
        except (PageMissing, _WouldWaitError, CorruptionError, OSError):
            return None

    # -- many ---------------------------------------------------------------------------------------------

    def read_batch(
        self,
        state: LedgerDescriptor,
        first: int,
        count_max: int,
        size_max: int,
        unknown: bool,
        reply: Callable[[PackedEntries | BaseException], None],
        held: Held = NONE_HELD,
    ) -> None:
        """See :meth:`Engine.read_batch`."""
        try:
            plan = self._plan(state, first, count_max, size_max, held)
        except PageMissing as missing:

            def again(pages: Held) -> None:
                self.read_batch(state, first, count_max, size_max, unknown, reply, pages)

            return self._load(missing, held, again, reply)
        except (CorruptionError, OSError) as error:
            return reply(self.trouble(error))
        if not plan:
            return reply(absent(state.ledger_id, first, unknown))
        ledger_id = state.ledger_id
        try:
            packed = fetch_batch(plan, ledger_id, size_max, self._at_hand)
        except _WouldWaitError:
            return self._submit(state, lambda: fetch_batch(plan, ledger_id, size_max, _wait), _share, reply)
        except (CorruptionError, OSError) as error:
            return reply(self.trouble(error))
        self.stats.reads_inline += 1
        self.learn(state, _share(packed))
        return reply(packed)

    def _plan(
        self, state: LedgerDescriptor, first: int, count_max: int, size_max: int, held: Held = NONE_HELD
    ) -> list[_Stretch]:
        """The stretches of the entries from ``first`` on, up to the first that is not here."""
        likely = 64 + 2 * size_max // max(36, state.read_hint - 512)  # a guess; at worst a reply ends early
        limit = min(count_max or _BATCH_MAX, _BATCH_MAX, 1 + size_max // 36, likely)
        places = self.places.run(state, first, limit, held)
        near, written = max(_NEAR, 4 * state.read_hint), self.unwritten.logged_below
        holding = self.unwritten.holding
        if (dense := _dense(places, size_max, 4 * state.read_hint)) and (
            places[0] + dense[-1] < written or holding(places[0]) is holding(places[0] + dense[-1])
        ):
            return [self._stretch(state, first, places[0], dense)]
        plan: list[_Stretch] = []
        begin = spent = 0
        for at in range(1, len(places)):
            found, before = places[at], places[at - 1]
            step = found - before
            if not 0 < step < near or (found >= written and holding(found) is not holding(before)):
                plan.append(
                    self._stretch(state, first + begin, places[begin], ascending(places[begin:at], OFFSET_MASK))
                )
                begin, step = at, state.read_hint
            spent += step
            if spent > size_max:
                places = places[: at + 1]
                break
        if places:
            plan.append(self._stretch(state, first + begin, places[begin], ascending(places[begin:], OFFSET_MASK)))
        return plan

    def _stretch(self, state: LedgerDescriptor, first: int, start: int, offsets: array[int]) -> _Stretch:
        log_offset = start & OFFSET_MASK
        if (memory := self.unwritten.holding(start)) is not None:
            last = offsets[-1]
            size = RECORD_HEADER + int.from_bytes(memory.read(log_offset + last, 4), "big")
            data = memory.read(log_offset, last + max(state.read_hint, size))
            return _Stretch(data, 0, len(data), first, offsets, memory.name, log_offset)
        file = self.entry_logs.file(start >> LOG_SHIFT)
        return _Stretch(file, log_offset, offsets[-1] + state.read_hint, first, offsets, file.path, log_offset)

    def _load(
        self,
        missing: PageMissing,
        held: Held,
        again: Callable[[Held], None],
        reply: Callable[[BaseException], None],
    ) -> None:
        self.places.load(missing, held, again, lambda error: reply(self.trouble(error)))

    def _at_hand(self, file: File, size: int, offset: int) -> memoryview:
        """What is in memory, in the room of the loop's thread."""
        room = self._room.of(size)
        if (count := file.pread_cached_into(room, offset)) is None:
            raise _WouldWaitError
        return room[:count]

    # -- small things -------------------------------------------------------------------------------------

    def _submit(
        self,
        state: LedgerDescriptor,
        job: Callable[[], T],
        size_of: Callable[[T], int],
        reply: Callable[[T | BaseException], None],
    ) -> None:
        self.stats.reads_waited += 1

        def done(result: T | None, error: BaseException | None) -> None:
            if result is None or error is not None:
                return reply(self.trouble(error))
            self.learn(state, size_of(result))
            return reply(result)

        self.workers.get("read").submit(job, done)

    def learn(self, state: LedgerDescriptor, size: int) -> None:
        """Make the next read of the ledger ask for slightly more than this one needed."""
        if size:
            state.read_hint = -(-(size + RECORD_HEADER) // HINT_UNIT) * HINT_UNIT

    def trouble(self, error: BaseException | None) -> BaseException:
        """The error for a reader. An I/O error means unknown, never that the entry does not exist (K27)."""
        if isinstance(error, CorruptionError):
            self.stats.corruptions += 1
            if isinstance(error, DamagedRecordError):
                self.found_damage(error.path, error.offset)
            return error
        if isinstance(error, OSError):
            if error.errno not in TRANSIENT and isinstance(error.filename, str):
                self.found_damage(error.filename, None)
            return BookieFailedError(f"the disk could not read the entry: {in_words(error)}")
        return error if error is not None else BookieFailedError("the entry could not be read")


def _share(packed: PackedEntries) -> int:
    """The average bytes of an entry of a batch; 0 for an empty batch."""
    return len(packed.body) // packed.count if packed.count else 0


def _dense(places: array[int], size_max: int, share: int) -> array[int] | None:
    """How far the first entries lie behind the first of them, up to ``size_max`` bytes and one more, if their places
    ascend by at most ``share`` bytes on average.

    Entries that one writer sent alone look like this. This finds them without a step per entry in Python.
    """
    offsets = ascending(places, size_max)
    if len(offsets) < 2 or (len(offsets) < len(places) and offsets[-1] <= size_max):
        return None
    return offsets if offsets[-1] <= min(share * len(offsets), size_max + _NEAR) else None


def absent(ledger_id: int, entry_id: int, unknown: bool) -> BaseException:
    """The error for an absent entry: it does not exist, or whether it existed is unknown (B5)."""
    if unknown:
        return DataUnknownError(f"this bookie does not know whether it had entry {entry_id} of ledger {ledger_id}")
    return NoSuchEntryError(f"this bookie has no entry {entry_id} of ledger {ledger_id}")
