"""Journals in this process: ``mem:NAME``. For tests, and for programs that want the interface without durability.

A *hub* holds the journals by name; the option ``hub`` gives tests one of their own. Every step happens inside one call
on the event loop, so it is atomic.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import dataclass, field

from journal_manager.edits import UNKNOWN_EPOCH, Batch, DiscardedEdits, FencingToken, SegmentInfo, TxId, require_current
from journal_manager.errors import (
    JournalClosedError,
    JournalExistsError,
    JournalNotFormattedError,
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
from journal_manager.journals.chain import Chain, described
from journal_manager.journals.election import ElectableBackend, Election, LockElection, TryLock
from journal_manager.journals.journal_uri import JournalURI
from journal_manager.journals.registry import parse_options
from journal_manager.snapshots.snapshots import (
    Chunks,
    SnapshotInfo,
    SnapshotStore,
    adoptable,
    ensure_durable,
    no_snapshot,
    pieces,
)

MAX_BATCH_BYTES = 64 << 20


@dataclass(slots=True)
class MemoryJournal:
    """One journal in memory."""

    chain: Chain
    batches: dict[str, list[Batch]] = field(default_factory=dict)
    snapshots: dict[TxId, list[bytes]] = field(default_factory=dict)
    epochs: dict[TxId, int] = field(default_factory=dict)
    """The epochs of the snapshots."""
    offers: dict[tuple[TxId, int], list[bytes]] = field(default_factory=dict)
    """Snapshots that readers handed in, by id and epoch, and the owner has not adopted yet."""
    change: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and then replaced, on every change."""

    def changed(self) -> None:
        change, self.change = self.change, asyncio.Event()
        change.set()

    def last_of(self, segment: SegmentInfo) -> TxId:
        """The last edit stored in a segment; for an empty segment the id before its first."""
        batches = self.batches[segment.location]
        return batches[-1].last if batches else TxId(segment.first - 1)


class MemoryHub:
    """The journals of a process, by name."""

    def __init__(self) -> None:
        self.places: dict[str, MemoryJournal] = {}
        self.elected: dict[str, object] = {}
        """Journal -> the lock of its elected replica."""

    def place(self, uri: JournalURI) -> MemoryJournal:
        """Find a journal. Raises JournalNotFormattedError."""
        if uri.name not in self.places:
            raise JournalNotFormattedError(f"there is no journal at {uri}")
        return self.places[uri.name]


_PROCESS = MemoryHub()
_claims = itertools.count(1)


def _nonce() -> str:
    return f"{next(_claims)}"


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    hub: MemoryHub = _PROCESS


class MemoryReader(JournalReader, DescribableReader):
    """Reads a journal in memory."""

    def __init__(self, place: MemoryJournal) -> None:
        self._place = place
        self._closed = False

    async def segments(self) -> tuple[SegmentInfo, ...]:
        self._ensure_open()
        return self._place.chain.segments

    async def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        self._ensure_open()
        if segment not in self._place.chain.segments:
            raise SegmentNotFoundError(f"segment {segment} does not exist any more")
        for batch in tuple(self._place.batches[segment.location]):
            if batch.last >= start:
                yield batch

    async def discarded(self) -> DiscardedEdits:
        self._ensure_open()
        return self._place.chain.discarded

    async def describe(self) -> JournalDescription:
        self._ensure_open()
        return described(self._place.chain)

    async def changed(self, timeout_s: float) -> None:
        self._ensure_open()
        try:
            async with asyncio.timeout(timeout_s):  # wait_for forgets a cancellation that comes with the change
                await self._place.change.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        self._closed = True

    def _ensure_open(self) -> None:
        if self._closed:
            raise JournalClosedError("this journal was closed")


class MemorySegmentWriter(SegmentWriter):
    """Appends to a segment, while its epoch is the journal's."""

    def __init__(self, place: MemoryJournal, token: FencingToken, info: SegmentInfo) -> None:
        self._place, self._token, self._info = place, token, info
        self.last = TxId(info.first - 1)
        """The last durable edit."""
        self.closed = False

    @property
    def info(self) -> SegmentInfo:
        return self._info

    def append(self, batch: Batch) -> Awaitable[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._append(batch)
            done.set_result(None)
        except Exception as error:
            done.set_exception(error)
        return done

    def _append(self, batch: Batch) -> None:
        if self.closed:
            raise JournalClosedError(f"segment {self._info} was closed, and takes no more edits")
        require_current(self._token, self._place.chain.token)
        if batch.first != self._place.last_of(self._info) + 1:
            raise SegmentMismatchError(f"edit {batch.first} does not follow edit {self._place.last_of(self._info)}")
        self._place.batches[self._info.location].append(batch)
        self.last = batch.last
        self._place.changed()

    async def close(self) -> None:
        self.closed = True

    async def abort(self) -> None:
        self.closed = True


class MemoryWriter(MemoryReader, JournalWriter, Discard, Upgrade, CopyTracking):
    """The one writer of a journal in memory."""

    def __init__(self, place: MemoryJournal, recovery: RecoveryReport) -> None:
        super().__init__(place)
        self._recovery = recovery
        self._segment: MemorySegmentWriter | None = None

    @property
    def token(self) -> FencingToken:
        return self._recovery.token

    @property
    def recovery(self) -> RecoveryReport:
        return self._recovery

    @property
    def max_batch_bytes(self) -> int:
        return MAX_BATCH_BYTES

    async def start_segment(self, first: TxId, layout_version: int) -> SegmentWriter:
        self._ensure_open()
        info = SegmentInfo(first, None, layout_version, self.token.epoch, f"{first}.{self.token.epoch}")
        self._set(self._place.chain.begin(self.token, info))
        self._place.batches[info.location] = []
        self._segment = MemorySegmentWriter(self._place, self.token, info)
        return self._segment

    async def finalize_segment(self, first: TxId, last: TxId) -> SegmentInfo:
        self._ensure_open()
        segment = self._place.chain.find(first)
        if segment.in_progress:
            self._ensure_closed_writer(segment)
            if last != self._place.last_of(segment):
                raise SegmentMismatchError(
                    f"segment {segment} ends at edit {self._place.last_of(segment)}, not at {last}"
                )
        self._set(self._place.chain.finish(self.token, first, last))
        if self._segment is not None and self._segment.info.first == first:
            self._segment = None
        return self._place.chain.find(first)

    async def discard_segment(self, first: TxId) -> None:
        self._ensure_open()
        chain = self._place.chain.drop(self.token, first)
        segment = self._place.chain.find(first)
        self._ensure_closed_writer(segment)
        if self._place.last_of(segment) >= first:
            raise SegmentMismatchError(f"segment {segment} has edits, and is not removed")
        self._set(chain)
        self._segment = None
        del self._place.batches[segment.location]

    async def purge(self, min_txid: TxId) -> tuple[SegmentInfo, ...]:
        self._ensure_open()
        chain, gone = self._place.chain.purge(self.token, min_txid)
        self._set(chain)
        for segment in gone:
            del self._place.batches[segment.location]
        return gone

    async def discard_from(self, first: TxId) -> tuple[SegmentInfo, ...]:
        self._ensure_open()
        chain, gone = self._place.chain.discard(self.token, first)
        self._set(chain)
        self._remove_discarded(gone)
        return gone

    async def begin_upgrade(self, namespace: NamespaceInfo) -> None:
        self._ensure_open()
        self._set(self._place.chain.begin_upgrade(self.token, namespace))

    async def finalize_upgrade(self) -> None:
        self._ensure_open()
        self._set(self._place.chain.finalize_upgrade(self.token))

    async def roll_back(self) -> tuple[SegmentInfo, ...]:
        self._ensure_open()
        chain, gone = self._place.chain.roll_back(self.token)
        self._place.offers.clear()
        self._set(chain)
        self._remove_discarded(gone)
        return gone

    def _remove_discarded(self, gone: tuple[SegmentInfo, ...]) -> None:
        place = self._place
        for segment in gone:
            del place.batches[segment.location]
        for at, _ in [each for each in place.epochs.items() if place.chain.discarded.covers(*each)]:
            del place.snapshots[at], place.epochs[at]
        for offer in [each for each in place.offers if place.chain.discarded.covers(*each)]:
            del place.offers[offer]

    async def note_copy(self, copy: CopySource) -> None:
        self._ensure_open()
        self._set(self._place.chain.copied(self.token, copy))

    @property
    def durable_txid(self) -> TxId:
        return self._place.chain.last_txid if self._segment is None else self._segment.last

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        await self.ensure_owner()
        ensure_durable(at, self.durable_txid)
        self._place.chain.ensure_rollback_possible(at)
        content = [piece async for piece in pieces(chunks)]
        await self.ensure_owner()
        self._place.snapshots[at], self._place.epochs[at] = content, self.token.epoch
        return info_of(at, content, self.token.epoch)

    async def delete_snapshot(self, at: TxId) -> None:
        await self.ensure_owner()
        if not self._place.chain.needs_snapshot(at):
            self._place.snapshots.pop(at, None)
            self._place.epochs.pop(at, None)

    async def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        await self.ensure_owner()
        place = self._place
        offers = [info_of(at, content, epoch) for (at, epoch), content in place.offers.items()]
        chain = place.chain
        good, useless = adoptable(offers, snapshots_of(place), self.durable_txid, chain.discarded, chain.needs_snapshot)
        for info in good:
            place.snapshots[info.at], place.epochs[info.at] = place.offers.pop((info.at, info.epoch)), info.epoch
        for info in useless:
            del place.offers[info.at, info.epoch]
        return good

    async def ensure_owner(self) -> None:
        self._ensure_open()
        require_current(self.token, self._place.chain.token)

    def _set(self, chain: Chain) -> None:
        self._place.chain = chain
        self._place.changed()

    def _ensure_closed_writer(self, segment: SegmentInfo) -> None:
        if self._segment is not None and self._segment.info == segment and not self._segment.closed:
            raise SegmentExistsError(f"segment {segment} is still being written: close its writer first")


def recover(place: MemoryJournal, token: FencingToken) -> RecoveryReport:
    """Finalize what an earlier writer left in progress, or drop it if it has no edits."""
    segment = place.chain.open_segment
    finalized: tuple[SegmentInfo, ...] = ()
    removed: tuple[SegmentInfo, ...] = ()
    if segment is not None and place.batches[segment.location]:
        place.chain = place.chain.finish(token, segment.first, place.last_of(segment))
        finalized = (place.chain.find(segment.first),)
    elif segment is not None:
        place.chain = place.chain.drop(token, segment.first)
        del place.batches[segment.location]
        removed = (segment,)
    place.changed()
    return RecoveryReport(token, finalized, removed, place.chain.last_txid)


class MemorySnapshots(SnapshotStore):
    """The snapshots of a journal in memory."""

    def __init__(self, place: MemoryJournal) -> None:
        self._place = place

    async def list(self) -> tuple[SnapshotInfo, ...]:
        return snapshots_of(self._place)

    async def read(self, at: TxId) -> AsyncGenerator[bytes, None]:
        if at not in self._place.snapshots:
            raise no_snapshot(at)
        for piece in self._place.snapshots[at]:
            yield piece

    async def offer(self, at: TxId, chunks: Chunks, *, epoch: int = UNKNOWN_EPOCH) -> SnapshotInfo:
        content = [piece async for piece in pieces(chunks)]
        self._place.offers[at, epoch] = content
        return info_of(at, content, epoch)

    async def close(self) -> None:
        pass


def info_of(at: TxId, content: list[bytes], epoch: int) -> SnapshotInfo:
    return SnapshotInfo(at, sum(map(len, content)), f"snapshot {at}", epoch)


def snapshots_of(place: MemoryJournal) -> tuple[SnapshotInfo, ...]:
    return tuple(info_of(at, place.snapshots[at], place.epochs[at]) for at in sorted(place.snapshots))


class MemoryLock(TryLock):
    """A journal's lock within this process."""

    def __init__(self, elected: dict[str, object], name: str) -> None:
        self._elected, self._name = elected, name

    async def try_acquire(self) -> bool:
        return self._elected.setdefault(self._name, self) is self

    @property
    def in_force(self) -> bool:
        return self._elected.get(self._name) is self

    async def release(self) -> None:
        if self._elected.get(self._name) is self:
            del self._elected[self._name]


class MemoryBackend(Backend, ElectableBackend):
    """The backend of ``mem:`` journals."""

    async def format(self, uri: JournalURI, namespace: NamespaceInfo, options: Options, *, force: bool = False) -> None:
        hub = parse_options(MemoryOptions, uri, options).hub
        if not force and await self.has_data(uri, options):
            raise JournalExistsError(f"there are edits in {uri}: formatting it would remove them")
        if (old := hub.places.get(uri.name)) is None:
            hub.places[uri.name] = MemoryJournal(Chain(namespace))
            return
        claimed = old.chain.claim("format", _nonce())
        old.chain = claimed.cleared(claimed.token, namespace)
        for content in (old.batches, old.snapshots, old.epochs, old.offers):
            content.clear()
        old.changed()

    async def has_data(self, uri: JournalURI, options: Options) -> bool:
        place = parse_options(MemoryOptions, uri, options).hub.places.get(uri.name)
        return place is not None and bool(place.chain.segments or place.snapshots)

    async def open_reader(self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options) -> JournalReader:
        place = parse_options(MemoryOptions, uri, options).hub.place(uri)
        if namespace is not None:
            namespace.ensure_same(place.chain.namespace)
        return MemoryReader(place)

    async def open_writer(
        self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options, *, owner: str, create: bool = True
    ) -> JournalWriter:
        hub = parse_options(MemoryOptions, uri, options).hub
        if create and uri.name not in hub.places:
            await self.format(uri, namespace or NamespaceInfo(), options)
        place = hub.place(uri)
        if namespace is not None:
            namespace.ensure_same(place.chain.namespace)
        place.chain = place.chain.claim(owner, _nonce())
        report = recover(place, place.chain.token)
        return MemoryWriter(place, report)

    async def open_snapshots(self, uri: JournalURI, options: Options) -> SnapshotStore:
        return MemorySnapshots(parse_options(MemoryOptions, uri, options).hub.place(uri))

    async def open_election(self, uri: JournalURI, options: Options, *, name: str) -> Election:
        hub = parse_options(MemoryOptions, uri, options).hub
        return LockElection(MemoryLock(hub.elected, uri.name))
