"""Writes a journal to ledgers: claim, recover, begin, append, finish. Each step is one compare-and-set."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from bookkeeper.chains.orphans import ORPHAN_AGE_S
from bookkeeper.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
    TooManyRequestsError,
    in_words,
)
from journal_manager.backends.bookkeeper.error_translation import journal_error, worded
from journal_manager.backends.bookkeeper.journal_owner import JournalOwner
from journal_manager.backends.bookkeeper.ledgers import NewLedger, delete_quietly, segment_tags
from journal_manager.backends.bookkeeper.node_size import NodeSize
from journal_manager.backends.bookkeeper.orphans import JournalOrphans, in_journal_words
from journal_manager.backends.bookkeeper.reader import LedgerJournalReader, last_txid
from journal_manager.backends.bookkeeper.shared_client import SharedClient
from journal_manager.backends.bookkeeper.snapshots import LedgerSnapshotKeeper
from journal_manager.edits import Batch, FencingToken, SegmentInfo, TxId, require_current
from journal_manager.errors import (
    JournalClosedError,
    JournalCorruptionError,
    JournalError,
    JournalFencedError,
    JournalUnavailableError,
    SegmentExistsError,
    SegmentMismatchError,
    SegmentNotFoundError,
)
from journal_manager.journals.backend import JournalWriter, NamespaceInfo, RecoveryReport, SegmentWriter
from journal_manager.journals.capabilities import CopySource, CopyTracking, Discard, Orphan, OrphanSweep, Upgrade
from journal_manager.journals.chain import Chain
from journal_manager.snapshots.snapshots import Chunks, SnapshotInfo

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, ReadHandle, WriteHandle

_log = logging.getLogger(__name__)


async def recover(owner: JournalOwner, client: BookKeeper, password: bytes) -> RecoveryReport:
    """Close what an earlier writer left open: fence its ledger, read its end, fix it in the node.

    Raises:
        JournalFencedError: another claim came in between. JournalUnavailableError: not enough bookies to tell.
        JournalCorruptionError: the ledger does not exist, or its last entry is no batch.
    """
    segment = owner.chain.open_segment
    finalized: tuple[SegmentInfo, ...] = ()
    removed: tuple[SegmentInfo, ...] = ()
    if segment is not None:
        last = await _recovered_end(owner, client, password, segment)
        if last is None:
            await owner.step(lambda chain: chain.drop(owner.token, segment.first))
            await delete_quietly(client, segment.location)
            removed = (segment,)
        else:
            await owner.step(lambda chain: chain.finish(owner.token, segment.first, last))
            finalized = (owner.chain.find(segment.first),)
    return RecoveryReport(owner.token, finalized, removed, owner.chain.last_txid)


async def _recovered_end(owner: JournalOwner, client: BookKeeper, password: bytes, segment: SegmentInfo) -> TxId | None:
    try:
        handle: ReadHandle = await client.open_ledger(int(segment.location), password, recovery=True)
    except NoSuchLedgerError as error:
        await owner.ensure_current()  # the one who overtook us may have dropped it, empty
        raise JournalCorruptionError(
            f"ledger {segment.location} of segment {segment} does not exist any more",
            first_missing=segment.first,
            location=segment.location,
        ) from error
    except BookKeeperError as error:
        raise journal_error(error, f"recovering ledger {segment.location} of segment {segment}") from error
    with worded(f"reading the end of ledger {segment.location}"):
        try:
            return await last_txid(handle, segment)
        finally:
            await handle.close()


class LedgerSegmentWriter(SegmentWriter):
    """Writes a segment to one ledger; one entry per batch."""

    def __init__(self, handle: WriteHandle, owner: JournalOwner, info: SegmentInfo) -> None:
        self.handle, self._owner, self._info = handle, owner, info
        self.last = TxId(info.first - 1)
        """The last durable edit."""
        self._next = info.first
        self._held = 0
        """Batches that wait until the ledger's writer has room, in a task each."""
        self.closed = False
        """Whether the ledger is closed, or was given up."""
        self._ends = False
        """Whether ``close`` was called, so that nothing more is taken."""

    @property
    def info(self) -> SegmentInfo:
        return self._info

    def append(self, batch: Batch) -> Awaitable[None]:
        if self.closed or self._ends:
            raise JournalClosedError(f"segment {self._info} was closed, and takes no more edits")
        if batch.first != self._next:
            raise SegmentMismatchError(f"edit {batch.first} does not follow edit {self._next - 1}")
        self._next = TxId(batch.last + 1)
        if not self._held:
            try:
                return self._durable(batch, self.handle.append_nowait(batch.frames))
            except TooManyRequestsError:
                pass
            except BookKeeperError as error:
                return self._durable(batch, _failed(error))
        self._held += 1
        return asyncio.ensure_future(self._append_later(batch))  # tasks start in the order they were made

    async def _append_later(self, batch: Batch) -> None:
        try:
            await self._durable(batch, self.handle.append(batch.frames))
        finally:
            self._held -= 1

    async def _durable(self, batch: Batch, appended: Awaitable[int]) -> None:
        try:
            await appended
        except (LedgerFencedError, LedgerClosedError, NoSuchLedgerError) as error:
            raise await self._owner.why_refused(error) from error
        except BookKeeperError as error:
            raise journal_error(error, f"appending to segment {self._info} (ledger {self._info.location})") from error
        self.last = batch.last

    async def close(self) -> None:
        if self.closed:
            return
        self._ends = True
        try:
            await self.handle.close()
            self.closed = True
        except (LedgerFencedError, LedgerClosedError, NoSuchLedgerError) as error:
            raise await self._owner.why_refused(error) from error
        except BookKeeperError as error:
            raise journal_error(error, f"closing ledger {self._info.location}") from error

    async def abort(self) -> None:
        if self.closed:
            return
        self.closed = True
        try:
            await self.handle.abandon()
        except BookKeeperError as error:
            _log.warning(
                "ledger %s could not be released; a recovery closes it: %s", self._info.location, in_words(error)
            )


def _begun(chain: Chain, token: FencingToken, info: SegmentInfo) -> Chain:
    """The node with the segment begun. If an earlier attempt has done it, that is no change."""
    require_current(token, chain.token)
    return chain if chain.open_segment == info else chain.begin(token, info)


async def _failed(error: BookKeeperError) -> int:
    raise error


class LedgerJournalWriter(LedgerJournalReader, JournalWriter, Discard, Upgrade, OrphanSweep, CopyTracking):
    """The one writer of a journal on ledgers."""

    def __init__(
        self,
        connection: SharedClient,
        owner: JournalOwner,
        recovery: RecoveryReport,
        *,
        password: bytes,
        new_ledger: NewLedger,
        max_batch_bytes: int,
        wall_ms: Callable[[], int],
    ) -> None:
        super().__init__(connection, owner.node, password)
        self._owner, self._recovery = owner, recovery
        self._new_ledger, self._max_batch_bytes = new_ledger, max_batch_bytes
        self._snapshots = LedgerSnapshotKeeper(connection.client, owner, new_ledger)
        self._size = NodeSize(owner.node.name)
        self._orphans = JournalOrphans(connection.client, owner, wall_ms)
        self._segment: LedgerSegmentWriter | None = None
        self._prepared: LedgerSegmentWriter | None = None
        """A segment that could not be begun because the store did not answer; the outcome may be unknown."""

    @property
    def token(self) -> FencingToken:
        return self._owner.token

    @property
    def recovery(self) -> RecoveryReport:
        return self._recovery

    @property
    def max_batch_bytes(self) -> int:
        return self._max_batch_bytes

    async def start_segment(self, first: TxId, layout_version: int) -> SegmentWriter:
        self._ensure_open()
        segment = await self._prepared_segment(first, layout_version)
        info, handle = segment.info, segment.handle
        try:
            await self._owner.step(lambda chain: _begun(chain, self.token, info))  # before its first entry
        except JournalUnavailableError:
            raise  # when the caller tries again it gets the same ledger; otherwise the next writer finds it, empty
        except JournalFencedError:
            self._prepared = None
            await handle.abandon()
            await self._delete_unless_in_the_chain(info.location)
            raise
        except JournalError:
            self._prepared = None
            await handle.abandon()  # an orphan
            raise
        self._segment, self._prepared = segment, None
        return segment

    async def _prepared_segment(self, first: TxId, layout_version: int) -> LedgerSegmentWriter:
        """A segment with a ledger that has no entry: the one of an attempt that failed, or a new one."""
        info = SegmentInfo(first, None, layout_version, self.token.epoch, "")
        if self._prepared is not None and replace(self._prepared.info, location="") == info:
            return self._prepared
        await self._give_up_prepared()
        begun = self._owner.chain.begin(self.token, info)  # refused before a ledger is made for nothing
        self._size.begins(len(begun.encode()), len(begun.segments))
        with worded(f"making a ledger for journal {self._node.name}"):
            handle = await self._new_ledger(segment_tags(self._node.name, first, self.token))
        self._prepared = LedgerSegmentWriter(handle, self._owner, replace(info, location=str(handle.id)))
        return self._prepared

    async def _give_up_prepared(self) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            await prepared.abort()

    async def _delete_unless_in_the_chain(self, ledger: str) -> None:
        """Delete a ledger that lost the race.

        The step may have been done, its reply lost, and the node replaced since: then the next owner drops it.
        """
        try:
            chain, _ = await self._node.read()
        except BookKeeperError:
            return
        if all(segment.location != ledger for segment in chain.segments):
            await delete_quietly(self._client, ledger)

    async def finalize_segment(self, first: TxId, last: TxId) -> SegmentInfo:
        self._ensure_open()
        await self._owner.ensure_current()
        if self._owner.chain.find(first).in_progress:
            current = self._closed_segment(first)
            if current.last != last:
                raise SegmentMismatchError(f"segment {current.info} ends at edit {current.last}, not at {last}")
        await self._owner.step(lambda chain: chain.finish(self.token, first, last))
        if self._segment is not None and self._segment.info.first == first:
            self._segment = None
        return self._owner.chain.find(first)

    async def discard_segment(self, first: TxId) -> None:
        self._ensure_open()
        current = self._closed_segment(first)
        if current.last >= first:
            raise SegmentMismatchError(f"segment {current.info} has edits, and is not removed")
        await self._owner.step(lambda chain: chain.drop(self.token, first))
        self._segment = None
        await delete_quietly(self._client, current.info.location)

    async def purge(self, min_txid: TxId) -> tuple[SegmentInfo, ...]:
        self._ensure_open()
        gone: tuple[SegmentInfo, ...] = ()

        def shorten(chain: Chain) -> Chain:
            nonlocal gone
            chain, gone = chain.purge(self.token, min_txid)
            return chain

        await self._owner.step(shorten)
        for segment in gone:
            await delete_quietly(self._client, segment.location)  # the node first
        return gone

    async def discard_from(self, first: TxId) -> tuple[SegmentInfo, ...]:
        self._ensure_open()
        await self._owner.ensure_current()
        gone: tuple[SegmentInfo, ...] = ()

        def shorten(chain: Chain) -> Chain:
            nonlocal gone
            chain, gone = chain.discard(self.token, first)
            return chain

        await self._owner.step(shorten)
        await self._remove_discarded(gone)
        return gone

    async def _remove_discarded(self, gone: tuple[SegmentInfo, ...]) -> None:
        """The node was first: nobody reads them any more."""
        for segment in gone:
            await delete_quietly(self._client, segment.location)
        await self._snapshots.remove_discarded()

    async def note_copy(self, copy: CopySource) -> None:
        self._ensure_open()
        if self._owner.chain.copy != copy:
            await self._owner.step(lambda chain: chain.copied(self.token, copy))

    async def begin_upgrade(self, namespace: NamespaceInfo) -> None:
        self._ensure_open()
        await self._owner.ensure_current()
        await self._owner.step(lambda chain: chain.begin_upgrade(self.token, namespace))

    async def finalize_upgrade(self) -> None:
        self._ensure_open()
        await self._owner.step(lambda chain: chain.finalize_upgrade(self.token))

    async def roll_back(self) -> tuple[SegmentInfo, ...]:
        self._ensure_open()
        await self._snapshots.remove_offers()
        gone: tuple[SegmentInfo, ...] = ()

        def shorten(chain: Chain) -> Chain:
            nonlocal gone
            chain, gone = chain.roll_back(self.token)
            return chain

        await self._owner.step(shorten)
        await self._remove_discarded(gone)
        return gone

    @property
    def durable_txid(self) -> TxId:
        return self._owner.chain.last_txid if self._segment is None else self._segment.last

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        self._ensure_open()
        return await self._snapshots.save(at, chunks, self.durable_txid)

    async def delete_snapshot(self, at: TxId) -> None:
        self._ensure_open()
        await self._snapshots.delete(at)

    async def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        self._ensure_open()
        return await self._snapshots.adopt(self.durable_txid)

    async def find_orphans(self, *, older_than_s: float = ORPHAN_AGE_S) -> tuple[Orphan, ...]:
        self._ensure_open()
        return in_journal_words(await self._orphans.find(older_than_s))

    async def sweep_orphans(self, *, older_than_s: float = ORPHAN_AGE_S) -> tuple[Orphan, ...]:
        self._ensure_open()
        return in_journal_words(await self._orphans.sweep(older_than_s))

    async def ensure_owner(self) -> None:
        self._ensure_open()
        await self._owner.ensure_current()

    async def close(self) -> None:
        await self._give_up_prepared()
        if self._segment is not None and not self._closed:
            await self._segment.abort()
        await super().close()

    async def _last_entry(self, handle: ReadHandle, segment: SegmentInfo) -> int:
        if self._segment is not None and self._segment.info == segment:
            return self._segment.handle.last_add_confirmed
        return await super()._last_entry(handle, segment)

    def _closed_segment(self, first: TxId) -> LedgerSegmentWriter:
        if self._segment is None or self._segment.info.first != first:
            raise SegmentNotFoundError(f"no segment of this writer begins at edit {first}")
        if not self._segment.closed:
            raise SegmentExistsError(f"segment {self._segment.info} is still being written: close its writer first")
        return self._segment
