"""A cluster in this process for tests of streams, and what a ledger of a stream holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from segments.config import RollPolicy, StreamConfig
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.namespace import StreamNamespace, connect
from segments.stream import Stream

AT_ONCE = StreamConfig(roll=RollPolicy(min_age_s=0))
"""Segments end as soon as they are asked to."""


@asynccontextmanager
async def a_namespace(directory: Path, bookies: int = 3) -> AsyncIterator[StreamNamespace]:
    """Streams on bookies in this process."""
    async with connect(f"embedded://{directory}?bookies={bookies}") as namespace:
        yield namespace


async def entries_of(stream: Stream) -> list[StoredEntry]:
    """All entries of all segments, in order; those of the open segment as far as readers see them."""
    found: list[StoredEntry] = []
    for segment in await stream.segments():
        async with await stream.client.open_ledger(segment.ledger_id, None, recovery=False) as reader:
            if reader.last_add_confirmed < 0:
                continue
            async for first, payloads in reader.read_batches(0, reader.last_add_confirmed):
                found += [decode_entry(each, segment.number, entry) for entry, each in enumerate(payloads, first)]
    return whole(found)


def whole(entries: list[StoredEntry]) -> list[StoredEntry]:
    """The same entries with pieces put together; pieces without an end are left out."""
    found: list[StoredEntry] = []
    pieces: list[StoredEntry] = []
    for entry in entries:
        if entry.piece is None:
            found.append(entry)
            continue
        pieces = [entry] if entry.piece.number == 0 else [*pieces, entry]
        if entry.piece.is_last:
            found.append(entry.assembled(pieces))
    return found


async def values_of(stream: Stream) -> list[bytes]:
    """The values of all records, in order."""
    return [value for entry in await entries_of(stream) if entry.kind is EntryKind.DATA for value in entry.values()]
