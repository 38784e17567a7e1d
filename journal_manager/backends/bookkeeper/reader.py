"""Reads a journal from ledgers: without fencing, up to what is confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import NO_ENTRY
from journal_manager.backends.bookkeeper.error_translation import journal_error, worded
from journal_manager.backends.bookkeeper.journal_node import JournalNode
from journal_manager.backends.bookkeeper.node_size import NODE_BYTES_MAX
from journal_manager.backends.bookkeeper.shared_client import SharedClient
from journal_manager.edits import Batch, DiscardedEdits, SegmentInfo, TxId
from journal_manager.errors import JournalClosedError, OpFormatError, check
from journal_manager.journals.backend import JournalReader
from journal_manager.journals.capabilities import DescribableReader, JournalDescription
from journal_manager.journals.chain import described

if TYPE_CHECKING:
    from bookkeeper import ReadHandle

POLL_S: Final = 0.1
"""Seconds between two questions to an open ledger. (The node is watched.)"""
LEAST_S: Final = 1e-6
"""A wait that is shorter than this is over: a loop's timers may be early by its clock's resolution."""


class LedgerJournalReader(JournalReader, DescribableReader):
    """Reads a journal. Opens ledgers without recovery only."""

    def __init__(self, connection: SharedClient, node: JournalNode, password: bytes) -> None:
        self._connection, self._node, self._password = connection, node, password
        self._client = connection.client
        self._tail: ReadHandle | None = None
        """The last entry of the ledger that was in progress at the last look."""
        self._changed = asyncio.Event()
        self._watch = node.watch(self._changed.set)
        self._closed = False

    async def segments(self) -> tuple[SegmentInfo, ...]:
        self._ensure_open()
        with worded(f"reading the node of journal {self._node.name}"):
            return (await self._node.read())[0].segments

    async def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        self._ensure_open()
        handle: ReadHandle | None = None
        try:
            handle = await self._open(segment)
            last = await self._last_entry(handle, segment)
            first = await self._entry_of(handle, start, last) if start > segment.first else 0
            async with aclosing(payloads(handle, first, last)) as entries:
                async for payload in entries:
                    batch = Batch.of(payload)
                    if batch.last >= start:
                        yield batch
        except BookKeeperError as error:
            raise journal_error(error, f"reading segment {segment} (ledger {segment.location})") from error
        finally:
            if handle is not None and handle is not self._tail:
                await handle.close()

    async def _open(self, segment: SegmentInfo) -> ReadHandle:
        ledger = int(segment.location)
        if self._tail is not None and self._tail.id == ledger:
            return self._tail
        handle = await self._client.open_ledger(ledger, self._password, recovery=False)
        if segment.in_progress:
            await self._close_tail()
            self._tail = handle
        return handle

    async def _last_entry(self, handle: ReadHandle, segment: SegmentInfo) -> int:
        """The last entry that is confirmed now: every recovery keeps it."""
        return await handle.read_last_add_confirmed()

    async def _entry_of(self, handle: ReadHandle, txid: TxId, last: int) -> int:
        """The entry that holds an edit, if an entry up to ``last`` does: the last that does not begin behind it."""
        low, high = 0, last
        while low < high:
            middle = (low + high + 1) // 2
            if Batch.of(await read_entry(handle, middle)).first <= txid:
                low = middle
            else:
                high = middle - 1
        return low

    async def discarded(self) -> DiscardedEdits:
        self._ensure_open()
        with worded(f"reading the node of journal {self._node.name}"):
            return (await self._node.read())[0].discarded

    async def describe(self) -> JournalDescription:
        self._ensure_open()
        with worded(f"reading the node of journal {self._node.name}"):
            chain, _ = await self._node.read()
        return replace(described(chain), node_bytes=len(chain.encode()), node_bytes_max=NODE_BYTES_MAX)

    async def changed(self, timeout_s: float) -> None:
        self._ensure_open()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        seen = self._tail.last_add_confirmed if self._tail is not None else NO_ENTRY
        while not self._changed.is_set() and (left := deadline - loop.time()) > LEAST_S:
            if self._tail is not None:
                with worded("asking an open ledger for new entries"):
                    if await self._tail.read_last_add_confirmed() > seen:
                        return
            try:
                async with asyncio.timeout(min(left, POLL_S)):  # wait_for forgets a cancellation that comes with it
                    await self._changed.wait()
            except TimeoutError:
                pass
        self._changed.clear()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._watch.close()
        await self._close_tail()
        await self._connection.close()

    async def _close_tail(self) -> None:
        tail, self._tail = self._tail, None
        if tail is not None:
            await tail.close()

    def _ensure_open(self) -> None:
        if self._closed:
            raise JournalClosedError("this journal was closed")


async def payloads(handle: ReadHandle, first: int, last: int) -> AsyncGenerator[bytes, None]:
    """Read entries ``first .. last``, all of which are confirmed, although this handle may not know it yet."""
    known = min(last, handle.last_add_confirmed)
    if first <= known:
        async for _, entries in handle.read_batches(first, known):
            for payload in entries:
                yield payload
    for entry in range(max(first, known + 1), last + 1):
        yield await handle.read_unconfirmed(entry)


async def read_entry(handle: ReadHandle, entry: int) -> bytes:
    """Read one entry that is confirmed."""
    if entry <= handle.last_add_confirmed:
        return await handle.read_entry(entry)
    return await handle.read_unconfirmed(entry)


async def last_txid(handle: ReadHandle, segment: SegmentInfo) -> TxId | None:
    """The last edit in a ledger that recovery closed; None if it is empty."""
    if handle.last_add_confirmed == NO_ENTRY:
        return None
    try:
        batch = Batch.of(await handle.read_entry(handle.last_add_confirmed))
    except OpFormatError as error:
        error.location = segment.location
        raise
    check(
        batch.first >= segment.first,
        "C7",
        f"ledger {segment.location} of segment {segment} ends at edit {batch.last}, which is not in the segment",
    )
    return batch.last
