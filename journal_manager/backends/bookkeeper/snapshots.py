"""Snapshots on ledgers: one closed ledger each, listed in a node beside the journal's.

A snapshot is there when the node names it: ledger first, closed, then the node; on removal the node first. Only
the journal's owner changes the node, in a write that is done only if the journal's own node is as the owner read
read it. What a reader offers waits beside the node until the owner moves it there.

A snapshot of edits that were discarded is none, by its epoch and the journal's node, also while it is still listed.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import BookKeeperError, MetadataConflictError
from journal_manager.backends.bookkeeper.error_translation import journal_error, worded
from journal_manager.backends.bookkeeper.ledgers import NewLedger, delete_quietly, snapshot_tags
from journal_manager.backends.bookkeeper.node_size import ensure_snapshots_fit
from journal_manager.backends.bookkeeper.snapshot_index import SnapshotIndex, SnapshotLine, encode_index
from journal_manager.edits import UNKNOWN_EPOCH, TxId
from journal_manager.errors import JournalCorruptionError, JournalFencedError, JournalFullError, SegmentNotFoundError
from journal_manager.snapshots.snapshots import (
    Chunks,
    SnapshotInfo,
    SnapshotStore,
    adoptable,
    ensure_durable,
    no_snapshot,
    pieces,
)

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from journal_manager.backends.bookkeeper.journal_owner import JournalOwner
    from journal_manager.backends.bookkeeper.shared_client import SharedClient

_AT_ONCE: Final = 16
"""Entries appended by one call."""


class LedgerSnapshots(SnapshotStore):
    """The snapshots of one journal."""

    def __init__(self, connection: SharedClient, index: SnapshotIndex, password: bytes, new_ledger: NewLedger) -> None:
        self._connection, self._client, self._index = connection, connection.client, index
        self._password, self._new_ledger = password, new_ledger

    async def list(self) -> tuple[SnapshotInfo, ...]:
        with worded("listing snapshots"):
            return tuple(each.info() for each in await self._listed())

    async def read(self, at: TxId) -> AsyncGenerator[bytes, None]:
        with worded("listing snapshots"):
            kept = await self._find(at)
        if kept is None:
            raise no_snapshot(at)
        digest, size = hashlib.sha256(), 0
        try:
            async with await self._client.open_ledger(kept.ledger, self._password, recovery=False) as handle:
                async for _, payloads in handle.read_batches(0, handle.last_add_confirmed):
                    for payload in payloads:
                        digest.update(payload)
                        size += len(payload)
                        yield payload
        except BookKeeperError as error:
            failure = journal_error(error, f"reading the snapshot at edit {at} (ledger {kept.ledger})")
            if isinstance(failure, SegmentNotFoundError):
                with worded("listing snapshots"):
                    if await self._find(at) != kept:
                        raise no_snapshot(at) from error  # its owner has removed or replaced it
                failure = JournalCorruptionError(str(failure), location=str(kept.ledger))
            raise failure from error
        if size != kept.size or digest.hexdigest() != kept.sha256:
            raise JournalCorruptionError(f"the snapshot at edit {at} is damaged", location=str(kept.ledger))

    async def offer(self, at: TxId, chunks: Chunks, *, epoch: int = UNKNOWN_EPOCH) -> SnapshotInfo:
        with worded(f"offering a snapshot at edit {at}"):
            tags = snapshot_tags(self._index.journal, at, None)
            line = await written(self._client, self._new_ledger, tags, at, chunks)
            if await self._index.discarded():
                line = replace(line, epoch=epoch)
            await self._index.offer(line)
        return line.info()

    async def _listed(self) -> tuple[SnapshotLine, ...]:
        """What is listed and was not discarded. The node is read last, so that nothing in between is missed."""
        lines, _ = await self._index.read()
        discarded = await self._index.discarded()
        return tuple(line for line in lines if not discarded.covers(line.at, line.epoch))

    async def _find(self, at: TxId) -> SnapshotLine | None:
        return next((line for line in await self._listed() if line.at == at), None)

    async def close(self) -> None:
        await self._connection.close()


class LedgerSnapshotKeeper:
    """What the owner does with the snapshots of its journal."""

    def __init__(self, client: BookKeeper, owner: JournalOwner, new_ledger: NewLedger) -> None:
        self._client, self._owner, self._new_ledger = client, owner, new_ledger
        self._index = SnapshotIndex(owner.node)

    async def save(self, at: TxId, chunks: Chunks, durable: TxId) -> SnapshotInfo:
        """Keep the state after edit ``at``. Raises as ``JournalWriter.save_snapshot``."""
        await self._owner.ensure_current()
        ensure_durable(at, durable)
        self._owner.chain.ensure_rollback_possible(at)
        with worded(f"keeping the snapshot at edit {at}"):
            tags = snapshot_tags(self._index.journal, at, self._owner.token.epoch)
            line = await written(self._client, self._new_ledger, tags, at, chunks)
            if self._owner.chain.discarded:
                line = replace(line, epoch=self._owner.token.epoch)
            try:
                await self._replace({at: line})
            except (JournalFencedError, JournalFullError):
                await self._delete_unless_listed(line)
                raise
        return line.info()

    async def _delete_unless_listed(self, line: SnapshotLine) -> None:
        """Delete a ledger that lost the race. The write may have been done, its reply lost, and the list replaced by
        the next owner since: then the ledger is a snapshot."""
        try:
            listed, _ = await self._index.read()
        except BookKeeperError:
            return  # an orphan, perhaps
        if all(each.ledger != line.ledger for each in listed):
            await delete_quietly(self._client, str(line.ledger))

    async def delete(self, at: TxId) -> None:
        await self._owner.ensure_current()
        if self._owner.chain.needs_snapshot(at):
            return
        with worded(f"removing the snapshot at edit {at}"):
            await self._replace({at: None})

    async def remove_discarded(self) -> None:
        """Remove the snapshots and offers of edits that were discarded; nobody restores or adopts them any more."""
        with worded("removing snapshots"):
            kept, _ = await self._index.read()
            if any(self._is_discarded(line) for line in kept):
                await self._replace({})
            await self._remove_offers([line for line in await self._index.offers() if self._is_discarded(line)])

    async def remove_offers(self) -> None:
        """Remove what readers have offered. An upgrade that is rolled back begins with it: an offer at an id from
        before the upgrade may be the new version's, and be adopted afterwards."""
        await self._owner.ensure_current()
        with worded("removing the snapshots that readers offer"):
            await self._remove_offers(await self._index.offers())

    async def _remove_offers(self, offers: Sequence[SnapshotLine]) -> None:
        """Remove offers, and those of their ledgers that are no snapshots."""
        listed = {line.ledger for line in (await self._index.read())[0]}
        for line in offers:
            await self._index.forget_offer(line)
            if line.ledger not in listed:
                await delete_quietly(self._client, str(line.ledger))

    def _is_discarded(self, line: SnapshotLine) -> bool:
        return self._owner.chain.discarded.covers(line.at, line.epoch)

    async def adopt(self, durable: TxId) -> tuple[SnapshotInfo, ...]:
        """Keep what readers have offered. Raises as ``JournalWriter.adopt_snapshots``."""
        await self._owner.ensure_current()
        with worded("looking at the snapshots that readers offer"):
            offered = {line.info(): line for line in await self._index.offers()}
            kept = [line.info() for line in (await self._index.read())[0] if not self._is_discarded(line)]
            chain = self._owner.chain
            good, useless = adoptable(offered, kept, durable, chain.discarded, chain.needs_snapshot)
            if good:
                await self._replace({info.at: offered[info] for info in good})
            await self._remove_offers([offered[info] for info in (*good, *useless)])
        return good

    async def _replace(self, changes: Mapping[TxId, SnapshotLine | None]) -> None:
        """Replace the lines of some ids, and leave out what was discarded; then delete the ledgers that are not
        listed any more.

        Raises:
            JournalFencedError: another writer has the journal; nothing was changed.
            JournalFullError: the list would be too long for the store; nothing was changed.
        """
        while True:
            condition = await self._owner.condition()
            kept, version = await self._index.read()
            lines = [each for each in kept if each.at not in changes and not self._is_discarded(each)]
            lines += [line for line in changes.values() if line is not None]
            if len(lines) > len(kept):
                ensure_snapshots_fit(self._index.journal, len(encode_index(lines)), len(lines))
            try:
                await self._index.write(lines, version, condition)
                break
            except MetadataConflictError:
                continue
        listed = {each.ledger for each in lines}
        for each in kept:
            if each.ledger not in listed:
                await self._index.forget_offer(each)
                await delete_quietly(self._client, str(each.ledger))


async def written(
    client: BookKeeper, new_ledger: NewLedger, tags: dict[str, bytes], at: TxId, chunks: Chunks
) -> SnapshotLine:
    """Write a snapshot's content to a new ledger and close it. What fails, or is cancelled, is deleted."""
    ledger = await new_ledger(tags)
    digest, size = hashlib.sha256(), 0
    waiting: list[bytes] = []
    try:
        async with ledger:
            async for piece in pieces(chunks):
                digest.update(piece)
                size += len(piece)
                waiting.append(piece)
                if len(waiting) == _AT_ONCE:
                    await ledger.append_many(waiting)
                    waiting = []
            if waiting:
                await ledger.append_many(waiting)
    except BaseException:
        await delete_quietly(client, str(ledger.id))
        raise
    return SnapshotLine(at, ledger.id, size, digest.hexdigest())
