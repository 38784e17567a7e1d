"""A feed of the tree's changes, for views and tests: one event per durable record, in order.

The gateway does not wait for subscribers. A subscriber that is too slow loses its subscription: its feed ends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from spark_wal.webhdfs.files.records import (
    AppendToFile,
    DeletePath,
    MakeDirectories,
    MoveToBlob,
    PutFile,
    Record,
    RemoveNumbered,
    Rename,
    SetNamesQuota,
    SetQuota,
)
from spark_wal.webhdfs.files.tree_answers import ApplyResult

PENDING_MAX: Final = 10_000
"""How many events a subscriber may be behind."""


@dataclass(frozen=True, slots=True)
class TreeEvent:
    """One durable change."""

    op: str
    """The kind: create, append, rename, delete, mkdirs, attributes, quota, or store (bytes are elsewhere now)."""
    path: str
    txid: int
    at_ms: int
    source: str | None = None
    """The path before a rename."""
    length: int | None = None

    def seen_by(self, sees: Callable[[str], bool]) -> TreeEvent | None:
        """What somebody is told who may know some paths only: neither the new nor the former name of another one. A
        file that is renamed out of his sight is deleted to him, one that comes into it is created. None: nothing."""
        if self.source is None or sees(self.source):
            if sees(self.path):
                return self
            return None if self.source is None else TreeEvent("delete", self.source, self.txid, self.at_ms)
        return TreeEvent("create", self.path, self.txid, self.at_ms, None, self.length) if sees(self.path) else None

    def line(self) -> bytes:
        """Encode the event as one line of JSON."""
        fields: dict[str, object] = {"op": self.op, "path": self.path, "txid": self.txid, "at": self.at_ms}
        if self.source is not None:
            fields["source"] = self.source
        if self.length is not None:
            fields["length"] = self.length
        return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def events_of(record: Record, applied: ApplyResult, txid: int) -> list[TreeEvent]:
    """Make the events of a record that was applied: one, unless it removes several files."""
    if isinstance(record, RemoveNumbered):
        return [TreeEvent("delete", path, txid, record.at_ms) for path in applied.removed]
    return [event_of(record, applied, txid)]


def event_of(record: Record, applied: ApplyResult, txid: int) -> TreeEvent:
    """Make the event of a record that was applied."""
    match record:
        case MoveToBlob():
            return TreeEvent("store", record.path, txid, 0)
        case MakeDirectories():
            return TreeEvent("mkdirs", record.path, txid, record.at_ms)
        case PutFile():
            return TreeEvent("create", record.path, txid, record.file.at_ms, length=record.file.length)
        case AppendToFile():
            return TreeEvent("append", record.path, txid, record.at_ms)
        case Rename():
            path = applied.path or record.target
            return TreeEvent("rename", path, txid, record.at_ms, source=record.source, length=applied.length)
        case DeletePath():
            return TreeEvent("delete", record.path, txid, record.at_ms)
        case SetQuota() | SetNamesQuota():
            return TreeEvent("quota", record.path, txid, record.at_ms)
        case _:
            return TreeEvent("attributes", record.path, txid, 0)


class TreeEventFeed:
    """Passes events on to its subscribers."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[TreeEvent | None]] = set()

    @property
    def subscribers(self) -> int:
        return len(self._queues)

    def publish(self, event: TreeEvent) -> None:
        for queue in list(self._queues):
            if queue.qsize() >= PENDING_MAX:
                self._queues.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

    def subscribe(self) -> TreeEventSubscription:
        """Subscribe to all events from now on."""
        queue: asyncio.Queue[TreeEvent | None] = asyncio.Queue()
        self._queues.add(queue)
        return TreeEventSubscription(self._queues, queue)

    def close(self) -> None:
        """End every feed."""
        for queue in self._queues:
            queue.put_nowait(None)
        self._queues.clear()


class TreeEventSubscription:
    """One subscriber's feed."""

    def __init__(self, queues: set[asyncio.Queue[TreeEvent | None]], queue: asyncio.Queue[TreeEvent | None]) -> None:
        self._queues = queues
        self._queue = queue

    async def next(self) -> TreeEvent | None:
        """The next event; None when the feed has ended."""
        return await self._queue.get()

    async def __aiter__(self) -> AsyncIterator[TreeEvent]:
        while (event := await self.next()) is not None:
            yield event

    def end(self) -> None:
        """End the feed behind what is in it."""
        self._queues.discard(self._queue)
        self._queue.put_nowait(None)

    def close(self) -> None:
        self._queues.discard(self._queue)


def common_directory(prefix: str) -> str:
    """The directory of all paths that begin with ``prefix``. One without a final slash matches more than one name."""
    return prefix.rstrip("/") or "/" if prefix.endswith("/") else prefix.rpartition("/")[0] or "/"
