"""The contract that is shipped: it passes for a backend that keeps it, and fails for one that breaks a promise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from journal_manager import Batch, SegmentInfo, TxId, testing
from journal_manager.backends.memory import MemoryHub, MemoryReader, MemorySegmentWriter, MemoryWriter
from journal_manager.testing import Journal, JournalBackendContract, batch, ends, pytest_configure

Test = Callable[[JournalBackendContract, Journal], Awaitable[None]]


async def verdict(test: Test) -> bool:
    """Whether a test of the contract passes on journals in memory, as they are now."""
    journal = Journal("mem:edits", {"hub": MemoryHub()})
    try:
        async with asyncio.timeout(20):
            await test(JournalBackendContract(), journal)
    except (Exception, pytest.fail.Exception):
        return False
    else:
        return True
    finally:
        await journal.close()


def unfenced_append(self: MemorySegmentWriter, item: Batch) -> None:
    self._place.batches.setdefault(self._info.location, []).append(item)


async def purge_all(self: MemoryWriter, min_txid: TxId) -> tuple[SegmentInfo, ...]:
    gone = self._place.chain.segments
    self._set(type(self._place.chain)(self._place.chain.namespace, self.token))
    return gone


async def unowned_delete(self: MemoryWriter, at: TxId) -> None:
    self._place.snapshots.pop(at, None)


async def lossy_read(self: MemoryReader, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
    for item in self._place.batches[segment.location][1:]:
        yield item


C = JournalBackendContract

BROKEN: list[tuple[type, str, Any, Test]] = [
    (MemorySegmentWriter, "_append", unfenced_append, C.test_j1_a_later_writer_fences_the_earlier_one_while_it_writes),
    (MemoryReader, "read", lossy_read, C.test_j2_edits_of_a_writer_that_vanished_are_recovered),
    (MemoryWriter, "purge", purge_all, C.test_j7_purge_removes_whole_segments_and_never_the_newest),
    (MemoryWriter, "delete_snapshot", unowned_delete, C.test_j9_only_the_owner_keeps_and_removes_snapshots),
    (MemoryWriter, "discard_from", purge_all, C.test_the_newest_edits_are_discarded_with_their_snapshots_or_it_cannot),
]


@pytest.mark.parametrize(("kind", "method", "broken", "test"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
async def test_a_broken_promise_is_found(
    kind: type, method: str, broken: Any, test: Test, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await verdict(test)
    monkeypatch.setattr(kind, method, broken)
    assert not await verdict(test)


async def test_a_backend_without_a_capability_passes_by_saying_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain:
        async def close(self) -> None: ...

    async def open_plain(uri: str, **options: object) -> Plain:
        return Plain()

    monkeypatch.setattr(testing.journal, "open_writer", open_plain)
    assert await verdict(C.test_the_newest_edits_are_discarded_with_their_snapshots_or_it_cannot)


def test_batches_are_what_they_say() -> None:
    assert (batch(5, 3).first, batch(5, 3).last) == (5, 7)
    assert ends([SegmentInfo(1, 2, 1, 1, ""), SegmentInfo(3, None, 1, 1, "")]) == [(1, 2), (3, None)]


def test_the_mark_of_promises_is_made_known() -> None:
    lines: list[tuple[str, str]] = []

    class Config:
        def addinivalue_line(self, name: str, line: str) -> None:
            lines.append((name, line))

    pytest_configure(Config())  # type: ignore[arg-type]
    assert lines and lines[0][0] == "markers" and lines[0][1].startswith("rule(")
