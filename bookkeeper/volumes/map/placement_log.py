"""Appends to the file ``placements`` (:mod:`~bookkeeper.volumes.map.placement_file`), and says when a record is
durable.

    taken       handed in; the newest are collected while the file is being written and synced, as groups are
    stored      in the file, and synced; one worker writes
    published   whoever publishes has said so (:meth:`PlacementLog.published`): only now a record is durable, because
                what was not published is not missed when the file is cut, or put back from an older copy (K35)

One publication serves all groups that were stored when it began. So it costs one write of the metadata for each new
ledger that comes alone, and one for hundreds that come together.

**No space**: zeros behind the end are written while there is space. Without space for more of them places of new
ledgers are refused, and those that a fence or a recovery add needs go into what is left (K26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.errors import BookieFailedError, DiskFullError, TooManyRequestsError, in_words
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.seams import Disk, File, Worker
from bookkeeper.storage.base.durable_file import NO_SPACE, SyncFailedError, replace_file, sync
from bookkeeper.storage.base.results import Done
from bookkeeper.volumes.map.ledger_map import PlacementRecord
from bookkeeper.volumes.map.placement_file import NAME, RECORD_SIZE, ROOM, encode_file, encode_group, offset_of

_LOW: Final = ROOM // 2
"""With less room than this behind the end more zeros are written."""
_COLLECTED_MAX: Final = _LOW // RECORD_SIZE
"""Records that fences and recovery adds may leave in memory while there is no space."""


def write_placements(
    disk: Disk, directory: str, file_id: int, generation: int, records: Iterable[PlacementRecord]
) -> PlacementsEnd:
    """Write the file anew. It is durable when this returns. Returns where it ends."""
    data, end = encode_file(records, file_id, generation)
    replace_file(disk, f"{directory}/{NAME}", data)
    return end


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
    """Owned by the loop's thread, but for the jobs of its worker."""

    disk: Disk
    directory: str
    file_id: int
    end: PlacementsEnd
    """Where the file ends: what is stored."""
    worker: Worker
    failed: Callable[[BaseException], None]
    """Called once, with the reason, when nothing can be made durable any more."""
    failure: BaseException | None = None
    full: DiskFullError | None = None
    """Why there is no space for more than the room that is left."""
    unpublished: TooManyRequestsError | None = None
    """Why the last publication did not succeed."""
    _file: File | None = None
    _room: int = 0
    """How far the file reaches, as its last write has found it."""
    _collected: list[PlacementRecord] = field(default_factory=list)
    _writing: int | None = None
    """How many records are being written."""
    _published: int = -1
    """How many records of this file are published."""
    _closed: bool = False
    _ask: Callable[[], None] | None = None
    _waiting: list[tuple[int, Done]] = field(default_factory=list)
    """Who waits until so many records are published, in order."""
    _for_file: list[tuple[int, Done]] = field(default_factory=list)
    """Who waits until so many records are stored."""

    def append(self, record: PlacementRecord) -> None:
        """Take a record. It is durable when a later :meth:`when_durable` says so."""
        self._collected.append(record)

    def refuse_if_behind(self, recovery: bool) -> None:
        """To be called before a ledger is placed, so that no more is collected than can be made durable. What could not
        be published is tried again.

        Args:
            recovery: the ledger is needed for a fence or a recovery add, which may use the room that is left (K26).

        Raises: DiskFullError, TooManyRequestsError.
        """
        if self.full is not None and not (recovery and len(self._collected) < _COLLECTED_MAX):
            raise self.full
        if self.unpublished is not None and not recovery:
            if self._ask is not None:
                self._ask()
            raise self.unpublished

    @property
    def is_durable(self) -> bool:
        """Whether every record is durable."""
        return self._published >= self._taken

    def when_durable(self, callback: Done) -> None:
        """``callback(None)`` when every record handed in so far is stored and published; inside this call if they are.

        With DiskFullError or TooManyRequestsError when that cannot be done now: the records stay, and are stored and
        published with the next that are waited for. With another error when it can never be done.
        """
        self._wait(self._waiting, callback, self._published)

    def when_stored(self, callback: Done) -> None:
        """The same, without a publication."""
        self._wait(self._for_file, callback, self.end.count)

    def catch_up(self) -> None:
        """Look whether there is space again, if there was none."""
        if self.full is not None and self._writing is None and self.failure is None:
            self._write()

    # -- publication --------------------------------------------------------------------------------------

    def publish_with(self, ask: Callable[[], None]) -> None:
        """Whom to ask to publish :attr:`end` soon; each time :meth:`published` or :meth:`not_published` follows. From
        then on what is waited for is published; before, it waits."""
        self._ask = ask
        self._advance()

    def published(self, end: PlacementsEnd) -> None:
        """Where the file ended is published, durably."""
        self.unpublished = None
        self._published = max(self._published, end.count)
        waiting, self._waiting = self._waiting, []
        self._waiting = [each for each in waiting if each[0] > self._published]
        for number, callback in waiting:
            if number <= self._published:
                callback(None)
        self._advance()

    def not_published(self, error: BaseException, *, final: bool = False) -> None:
        """It could not be published. Those who wait for what is stored are told, and may ask again.

        Args:
            final: another process has taken over: nothing is published any more.
        """
        if final:
            return self._fail(
                BookieFailedError(f"on which ledger directory new ledgers are cannot be published: {in_words(error)}")
            )
        self.unpublished = TooManyRequestsError(
            f"on which ledger directory new ledgers are cannot be published for now: {in_words(error)}; send it again "
            "later"
        )
        self._fail_waiting(self.end.count, self.unpublished)
        return self._advance()

    # -- the file -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the worker, close the file. What is collected and was not waited for is written."""
        if self._collected and self._writing is None and self.failure is None:
            self._write()
        self._closed = True
        self.worker.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def _taken(self) -> int:
        return self.end.count + (self._writing or 0) + len(self._collected)

    def _wait(self, waiting: list[tuple[int, Done]], callback: Done, reached: int) -> None:
        if self.failure is not None:
            return callback(self.failure)
        if reached >= self._taken:
            return callback(None)
        waiting.append((self._taken, callback))
        return self._advance()

    def _advance(self) -> None:
        """Begin what somebody waits for."""
        if self.failure is not None:
            return
        waited_for = bool(self._waiting or self._for_file)
        if self._collected and waited_for and self._writing is None and not self._closed:
            self._write()
        if self._ask is not None and self._waiting and self._published < self.end.count:
            self._ask()

    def _write(self) -> None:
        """Write what is collected; what comes meanwhile is collected for the next group. Without space for more, what
        fits into the room that is left."""
        first, offset = self.end.count, offset_of(self.end.count)
        fits = (self._room - offset) // RECORD_SIZE - 1 if self.full is not None else len(self._collected)
        fits = fits if fits > 0 else len(self._collected)
        group, self._collected = self._collected[:fits], self._collected[fits:]
        self._writing = len(group)
        data = encode_group(group, first, self.file_id)

        def job() -> _WriteResult:
            if self._file is None:
                self._file = self.disk.open(f"{self.directory}/{NAME}")
            return _store(self._file, data, offset)

        def done(stored: _WriteResult | None, error: BaseException | None) -> None:
            self._writing = None
            if stored is not None:
                self._room, error = stored.reach, stored.lacking
                self.full = None
            if stored is not None and stored.whole:
                self.end = PlacementsEnd(self.end.generation, first + len(group))
                waiting, self._for_file = self._for_file, []
                self._for_file = [each for each in waiting if each[0] > self.end.count]
                for number, callback in waiting:
                    if number <= self.end.count:
                        callback(None)
            else:
                self._collected[:0] = group
            self._judge(error, None if stored is not None and stored.whole else first + len(group))
            self._advance()

        self.worker.submit(job, done)

    def _judge(self, error: BaseException | None, least: int | None) -> None:
        """What an error of a write means, if there is one; it kept those who wait for ``least`` records from theirs."""
        path = f"{self.directory}/{NAME}"
        if isinstance(error, OSError) and not isinstance(error, SyncFailedError) and error.errno in NO_SPACE:
            self.full = DiskFullError(
                f"{path} cannot be written for now: {in_words(error, beside=path)}; free some space there"
            )
            if least is not None:
                self._fail_waiting(least, self.full)
        elif error is not None:
            self._fail(BookieFailedError(f"{path} could not be written: {in_words(error, beside=path)}"))

    def _fail(self, error: BookieFailedError) -> None:
        if self.failure is None:
            self.failure = error
            self.failed(error)
            self._fail_waiting(self._taken, error)

    def _fail_waiting(self, least: int, error: BaseException) -> None:
        """Tell an error to all who wait for no more than so many records."""
        waiting = [*self._waiting, *self._for_file]
        self._waiting = [each for each in self._waiting if each[0] > least]
        self._for_file = [each for each in self._for_file if each[0] > least]
        for number, callback in waiting:
            if number <= least:
                callback(error)


@dataclass(frozen=True, slots=True)
class _WriteResult:
    """What became of one write."""

    reach: int
    """How far the file reaches."""
    lacking: OSError | None
    """Why it does not reach further."""
    whole: bool = True
    """Whether the group is in the file, durably; if not, nothing of it is."""


def _store(file: File, data: bytes, offset: int) -> _WriteResult:
    """Write a group and its end, and zeros behind it if there is little room. Raises: OSError."""
    reach, end, lacking = file.size(), offset + len(data), None
    if end + _LOW > reach:
        try:
            file.pwrite(bytes(end + ROOM - reach), reach)
            reach = end + ROOM
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            lacking = error
            if end > reach:
                return _WriteResult(reach, lacking, whole=False)
    file.pwrite(data, offset)
    sync(file)
    return _WriteResult(reach, lacking)
