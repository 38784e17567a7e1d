"""Journals as files in a directory: ``file:///DIR``. For one host, and for local copies.

The blocking steps are in ``file_directory``. Here they run one after the other in a thread of each reader and writer,
so a step runs to its end whatever happens to the task that asked for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from journal_manager.backends import file_format as form
from journal_manager.backends.blocking_steps import BlockingSteps
from journal_manager.backends.file_directory import STATE, JournalDirectory, SegmentFile, unknown_end
from journal_manager.backends.file_snapshots import FileSnapshotKeeper, FileSnapshots
from journal_manager.backends.files import Files, HeldLock, OpenFile, SystemFiles
from journal_manager.edits import Batch, DiscardedEdits, FencingToken, SegmentInfo, TxId
from journal_manager.errors import (
    JournalClosedError,
    JournalConfigError,
    JournalCorruptionError,
    JournalUnavailableError,
    SegmentExistsError,
    SegmentMismatchError,
    SegmentNotFoundError,
)
from journal_manager.journals.backend import (
    Backend,
    JournalReader,
    JournalWriter,
    NamespaceInfo,
    Options,
    RecoveryReport,
    SegmentWriter,
)
from journal_manager.journals.capabilities import (
    CopySource,
    CopyTracking,
    DescribableReader,
    Discard,
    JournalDescription,
    Upgrade,
)
from journal_manager.journals.chain import described
from journal_manager.journals.election import ElectableBackend, Election, LockElection, TryLock
from journal_manager.journals.journal_uri import JournalURI
from journal_manager.journals.registry import parse_options
from journal_manager.snapshots.snapshots import Chunks, SnapshotInfo, SnapshotStore

_CHUNK: Final = 4 << 20
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Options of ``file:`` journals."""

    lock_timeout_s: float = 10.0
    """Seconds that a step waits for another process's step on the same directory."""
    files: Files | None = None
    """Another file system, for tests."""
    threads: bool = True
    """False runs blocking steps on the event loop, for tests."""


class FileReader(JournalReader, DescribableReader):
    """Reads a directory. Writes nothing, takes no lock."""

    def __init__(self, place: JournalDirectory, steps: BlockingSteps) -> None:
        self._place, self._steps = place, steps
        self._seen: tuple[object, ...] = ()
        self._places_read: dict[tuple[str, int, str], tuple[TxId, int]] = {}
        """(open segment, epoch, claim) -> (next id, its offset): where the last read of the segment ended."""

    async def segments(self) -> tuple[SegmentInfo, ...]:
        return await self._steps.submit(self._place.segments)

    async def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        try:
            file, nonce = await self._steps.submit(lambda: self._open(segment))
        except JournalUnavailableError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise SegmentNotFoundError(f"{segment.location} does not exist any more") from error
            raise
        try:
            expected, offset = segment.first, form.HEADER_BYTES
            key = (segment.location, segment.epoch, nonce)
            if (known := self._places_read.get(key)) is not None and known[0] <= start and segment.in_progress:
                expected, offset = known
            while found := await self._steps.submit(lambda at=offset: self._chunk(file, segment, at, nonce)):  # type: ignore[misc]
                for batch, end in found:
                    if batch.first != expected:
                        raise _damaged(segment, expected)
                    expected, offset = TxId(batch.last + 1), end
                    if segment.in_progress:
                        self._places_read = {key: (expected, offset)}
                    if batch.last >= start:
                        yield batch
            if segment.last is not None and expected != segment.last + 1:
                raise _damaged(segment, expected)
        finally:
            self._steps.finish(file.close)

    def _open(self, segment: SegmentInfo) -> tuple[OpenFile, str]:
        """The file, and what tells the newest claim from others. A name alone may be that of another segment: one that
        got the same ids after they were discarded."""
        file = self._place.files.open(self._place.path(segment.location), write=False)
        try:
            header = form.decode_header(file.pread(form.HEADER_BYTES + 1, 0), segment.location)
            if header is None or header.first != segment.first:
                raise _damaged(segment, segment.first)
            if header.epoch != segment.epoch:
                raise SegmentNotFoundError(f"{segment.location} holds another segment now")
            return file, self._place.state().nonce
        except BaseException:
            file.close()
            raise

    def _chunk(self, file: OpenFile, segment: SegmentInfo, offset: int, nonce: str) -> list[tuple[Batch, int]]:
        """Read some batches with the offsets of their ends; none at the end, or at an incomplete record.

        Of a segment in progress this returns only what every later recovery keeps. For that it syncs the file, and
        checks the epoch after the read, as the writer does.
        """
        data = file.pread(_CHUNK, offset)
        if (size := form.record_size(data, 0)) > len(data):
            data = file.pread(size, offset)
        found = form.scan(data)
        if segment.in_progress and found.batches:
            file.sync()
            state = self._place.state()
            if (state.token.epoch, state.nonce) != (segment.epoch, nonce):
                return []
        return [(batch, offset + end) for batch, end in zip(found.batches, found.ends, strict=True)]

    async def discarded(self) -> DiscardedEdits:
        return (await self._steps.submit(self._place.state)).discarded

    async def describe(self) -> JournalDescription:
        return described(await self._steps.submit(self._place.state))

    async def changed(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while (look := await self._steps.submit(self._signature)) == self._seen:
            if (left := deadline - loop.time()) <= 0:
                return
            await asyncio.sleep(min(left, _POLL_S))
        self._seen = look

    def _signature(self) -> tuple[object, ...]:
        names = [name for name in self._place.files.list(self._place.directory) if form.parse_name(name)]
        sizes: list[int] = []
        for name in [name for name in names if name.startswith("edits_inprogress_")]:
            try:
                file = self._place.files.open(self._place.path(name), write=False)
            except FileNotFoundError:
                continue
            sizes.append(file.size())
            file.close()
        state = self._place.state()
        return (*names, *sizes, state.token, state.nonce, state.discarded)

    async def close(self) -> None:
        self._steps.close()


def _damaged(segment: SegmentInfo, first_missing: TxId) -> JournalCorruptionError:
    return JournalCorruptionError(
        f"{segment.location} is damaged: edit {first_missing} is not in it",
        first_missing=first_missing,
        location=segment.location,
    )


class FileSegmentWriter(SegmentWriter):
    """Appends records in the writer's thread."""

    def __init__(self, segment: SegmentFile, steps: BlockingSteps) -> None:
        self.segment, self._steps = segment, steps
        self.closed = False

    @property
    def info(self) -> SegmentInfo:
        return self.segment.info

    def append(self, batch: Batch) -> Awaitable[None]:
        if self.closed:
            raise JournalClosedError(f"segment {self.info} was closed, and takes no more edits")
        return self._steps.submit(lambda: self.segment.append(batch))

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            await self._steps.submit(self.segment.close)

    async def abort(self) -> None:
        if not self.closed:
            self.closed = True
            self._steps.finish(self.segment.close)


class FileWriter(FileReader, JournalWriter, Discard, Upgrade, CopyTracking):
    """The one writer of a directory."""

    def __init__(
        self,
        place: JournalDirectory,
        steps: BlockingSteps,
        recovery: RecoveryReport,
        snapshots: FileSnapshotKeeper,
    ) -> None:
        super().__init__(place, steps)
        self._recovery, self._snapshots = recovery, snapshots
        self._segment: FileSegmentWriter | None = None
        self._last_final = recovery.last_txid

    @property
    def token(self) -> FencingToken:
        return self._recovery.token

    @property
    def recovery(self) -> RecoveryReport:
        return self._recovery

    @property
    def max_batch_bytes(self) -> int:
        return form.MAX_RECORD_BYTES - form.RECORD_OVERHEAD

    async def start_segment(self, first: TxId, layout_version: int) -> SegmentWriter:
        info, file = await self._steps.submit(lambda: self._place.start(self.token, first, layout_version))
        self._segment = FileSegmentWriter(SegmentFile(self._place, self.token, info, file), self._steps)
        return self._segment

    async def finalize_segment(self, first: TxId, last: TxId) -> SegmentInfo:
        await self.ensure_owner()
        if self._segment is None or self._segment.info.first != first:
            segment = await self._steps.submit(lambda: self._place.find(first))
            if segment.in_progress:
                raise SegmentNotFoundError(f"no segment of this writer begins at edit {first}")
            return segment.finalized(last)
        current = self._closed_segment(first)
        if current.failed:
            raise unknown_end(current.info)
        if current.last != last:
            raise SegmentMismatchError(f"segment {current.info} ends at edit {current.last}, not at {last}")
        final = await self._steps.submit(lambda: self._place.finalize(self.token, current.info, current.end, last))
        self._segment, self._last_final = None, last
        return final

    async def discard_segment(self, first: TxId) -> None:
        await self.ensure_owner()
        current = self._closed_segment(first)
        await self._steps.submit(lambda: self._place.discard(self.token, current.info))
        self._segment = None

    async def purge(self, min_txid: TxId) -> tuple[SegmentInfo, ...]:
        return await self._steps.submit(lambda: self._place.purge(self.token, min_txid))

    async def discard_from(self, first: TxId) -> tuple[SegmentInfo, ...]:
        gone = await self._snapshots.discard_from(first)
        if gone:
            self._last_final = TxId(gone[0].first - 1)
        return gone

    async def note_copy(self, copy: CopySource) -> None:
        await self._steps.submit(lambda: self._place.note_copy(self.token, copy))

    async def begin_upgrade(self, namespace: NamespaceInfo) -> None:
        await self._steps.submit(lambda: self._place.begin_upgrade(self.token, namespace))

    async def finalize_upgrade(self) -> None:
        await self._steps.submit(lambda: self._place.finalize_upgrade(self.token))

    async def roll_back(self) -> tuple[SegmentInfo, ...]:
        gone = await self._snapshots.roll_back()
        if gone:
            self._last_final = TxId(gone[0].first - 1)
        return gone

    @property
    def durable_txid(self) -> TxId:
        return self._last_final if self._segment is None else self._segment.segment.last

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        return await self._snapshots.save(at, chunks, self.durable_txid)

    async def delete_snapshot(self, at: TxId) -> None:
        await self._snapshots.delete(at)

    async def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        return await self._snapshots.adopt(self.durable_txid)

    async def ensure_owner(self) -> None:
        await self._steps.submit(lambda: self._place.ensure_current(self.token))

    async def close(self) -> None:
        if self._segment is not None:
            await self._segment.abort()
        self._snapshots.close()
        await super().close()

    def _closed_segment(self, first: TxId) -> SegmentFile:
        if self._segment is None or self._segment.info.first != first:
            raise SegmentNotFoundError(f"no segment of this writer begins at edit {first}")
        if not self._segment.closed:
            raise SegmentExistsError(f"segment {self._segment.info} is still being written: close its writer first")
        return self._segment.segment


class FileBackend(Backend, ElectableBackend):
    """The backend of ``file:`` journals."""

    async def format(self, uri: JournalURI, namespace: NamespaceInfo, options: Options, *, force: bool = False) -> None:
        place, steps = _open(uri, options)
        with closing(steps):
            await steps.submit(lambda: place.format(namespace, force=force))

    async def has_data(self, uri: JournalURI, options: Options) -> bool:
        place, steps = _open(uri, options)
        with closing(steps):
            return await steps.submit(place.has_data)

    async def open_reader(self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options) -> JournalReader:
        place, steps = _open(uri, options)
        with _closed_if_failed(steps):
            state = await steps.submit(place.state)
            if namespace is not None:
                namespace.ensure_same(state.namespace)
        return FileReader(place, steps)

    async def open_writer(
        self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options, *, owner: str, create: bool = True
    ) -> JournalWriter:
        place, steps = _open(uri, options)

        def claim() -> RecoveryReport:
            if create and not place.files.exists(place.path(STATE)):
                place.create_if_absent(namespace or NamespaceInfo())
            return place.claim(owner, namespace)

        with _closed_if_failed(steps):
            recovery = await steps.submit(claim)
        beside = BlockingSteps(steps.threads)  # a long snapshot must not hold up appends
        return FileWriter(place, steps, recovery, FileSnapshotKeeper(place, beside, recovery.token))

    async def open_snapshots(self, uri: JournalURI, options: Options) -> SnapshotStore:
        place, steps = _open(uri, options)
        with _closed_if_failed(steps):
            await steps.submit(place.state)
        return FileSnapshots(place, steps)

    async def open_election(self, uri: JournalURI, options: Options, *, name: str) -> Election:
        place, steps = _open(uri, options)
        return FileElection(place.files, place.directory, steps)


@contextmanager
def _closed_if_failed(steps: BlockingSteps) -> Iterator[None]:
    try:
        yield
    except BaseException:
        steps.close()
        raise


def _open(uri: JournalURI, options: Options) -> tuple[JournalDirectory, BlockingSteps]:
    parsed = parse_options(FileOptions, uri, options)
    if uri.authority or not uri.path.startswith("/"):
        raise JournalConfigError(f"expected file:///DIRECTORY with an absolute path, got {uri}")
    directory = uri.path.rstrip("/") or "/"
    place = JournalDirectory(parsed.files or SystemFiles(), directory, lock_timeout_s=parsed.lock_timeout_s)
    return place, BlockingSteps(parsed.threads)


ACTIVE: Final = "active.lock"


class DirectoryLock(TryLock):
    """Takes the lock in the journal's thread."""

    def __init__(self, files: Files, directory: str, steps: BlockingSteps) -> None:
        self._files, self._directory, self._steps = files, directory, steps
        self._held: HeldLock | None = None

    async def try_acquire(self) -> bool:
        return await self._steps.submit(self._try)

    @property
    def in_force(self) -> bool:
        return self._held is not None and self._held.in_force

    async def release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._steps.finish(held.release)

    def _try(self) -> bool:
        if self._held is not None and not self._held.in_force:
            self._held.release()
            self._held = None
        if self._held is None:
            self._files.make_directories(self._directory)
            try:
                self._held = self._files.lock(f"{self._directory}/{ACTIVE}")
            except BlockingIOError:
                return False
        return True


class FileElection(LockElection):
    """Whoever has the directory's lock is elected. A stopped process keeps it, a dead one does not; nor does one whose
    lock file was removed (by a cleaner of old files, or with the directory), because another one locks the next file.
    """

    def __init__(self, files: Files, directory: str, steps: BlockingSteps) -> None:
        super().__init__(DirectoryLock(files, directory, steps))
        self._steps = steps

    async def close(self) -> None:
        await super().close()
        self._steps.close()
