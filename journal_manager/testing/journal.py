"""A journal under test, and edits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from journal_manager import (
    EditLog,
    EditLogConfig,
    JournalReader,
    JournalWriter,
    NamespaceInfo,
    SnapshotStore,
    TxId,
    open_reader,
    open_snapshots,
    open_writer,
)
from journal_manager.edits import Batch, encode_batch
from journal_manager.read import read_ops

NAMESPACE = NamespaceInfo(namespace_id=7, cluster_id="c", pool_id="p")


@dataclass
class Journal:
    """One journal's address, and the handles a test opened: all are closed at its end."""

    uri: str
    options: dict[str, Any] = field(default_factory=dict)
    opened: list[Any] = field(default_factory=list)

    async def writer(self, owner: str = "a", **options: Any) -> JournalWriter:
        writer = await open_writer(self.uri, owner=owner, **self.options, **options)
        self.opened.append(writer)
        return writer

    async def reader(self, **options: Any) -> JournalReader:
        reader = await open_reader(self.uri, **self.options, **options)
        self.opened.append(reader)
        return reader

    async def log(self, owner: str = "a", **config: Any) -> EditLog:
        log = await EditLog.open(self.uri, owner=owner, config=EditLogConfig(**config), **self.options)
        self.opened.append(log)
        return log

    async def snapshots(self) -> SnapshotStore:
        store = await open_snapshots(self.uri, **self.options)
        self.opened.append(store)
        return store

    async def close(self) -> None:
        for handle in reversed(self.opened):
            await (handle.abort() if isinstance(handle, EditLog) else handle.close())


async def closing(journal: Journal) -> AsyncIterator[Journal]:
    """For fixtures: hand the journal out, close its handles afterwards."""
    yield journal
    await journal.close()


def body(txid: int) -> bytes:
    return b"edit %d" % txid


def batch(first: int, count: int = 1) -> Batch:
    return encode_batch(TxId(first), [(txid % 100, body(txid)) for txid in range(first, first + count)])


async def write_segment(writer: JournalWriter, first: int, last: int, *, batches_of: int = 1) -> None:
    """A finalized segment."""
    segment = await writer.start_segment(TxId(first), 1)
    for at in range(first, last + 1, batches_of):
        await segment.append(batch(at, min(batches_of, last + 1 - at)))
    await segment.close()
    await writer.finalize_segment(TxId(first), TxId(last))


async def write_others(writer: JournalWriter, first: int, last: int) -> None:
    """A finalized segment with other edits."""
    segment = await writer.start_segment(TxId(first), 1)
    await segment.append(encode_batch(TxId(first), [(1, b"other %d" % txid) for txid in range(first, last + 1)]))
    await segment.close()
    await writer.finalize_segment(TxId(first), TxId(last))


async def txids(reader: JournalReader, start: int = 1, end: int | None = None, **options: Any) -> list[int]:
    """The ids that are read; every body is checked."""
    found: list[int] = []
    async for op in read_ops(reader, TxId(start), None if end is None else TxId(end), **options):
        assert op.body == body(op.txid) and op.opcode == op.txid % 100
        found.append(op.txid)
    return found


def ends(segments: Any) -> list[tuple[int, int | None]]:
    return [(segment.first, segment.last) for segment in segments]
