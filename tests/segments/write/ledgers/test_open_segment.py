"""Entries on their way to one ledger."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from bookkeeper.errors import AddTimeoutError, BookKeeperError, ClientClosedError
from segments.write.ledgers.open_segment import OpenSegment
from tests.segments.fake import Cluster, FakeWriter
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@dataclass(eq=False)
class Sent:
    payload: bytes
    entry: int = -1


class ProgressSource:
    def __init__(self, cluster: Cluster) -> None:
        self.handle = FakeWriter(cluster, cluster.new(b"", {}))
        self.durable: list[int] = []
        self.failures: list[BookKeeperError] = []
        self.bugs: list[BaseException] = []
        self.segment: OpenSegment[Sent] = OpenSegment(
            self.handle,  # type: ignore[arg-type]
            1,
            self._on_durable,
            self._on_failed,
            self.bugs.append,
        )

    def _on_durable(self, sent: Sent) -> None:
        self.durable.append(sent.entry)

    def _on_failed(self, segment: OpenSegment[Sent], error: BookKeeperError) -> None:
        self.failures.append(error)

    def send(self, count: int) -> None:
        for number in range(count):
            self.segment.send(Sent(b"%d" % number))


@pytest.mark.parametrize("room", [None, 1, 3])
@in_virtual_time
async def test_entries_become_durable_in_order_whatever_room_the_ledger_has(room: int | None) -> None:
    cluster = Cluster()
    cluster.room = room
    watched = ProgressSource(cluster)
    watched.send(10)
    await watched.segment.wait_until_durable()
    assert watched.durable == list(range(10))
    assert (watched.segment.next_entry, list(watched.segment.flights)) == (10, [])
    await watched.segment.wait_until_durable()


@in_virtual_time
async def test_the_first_failure_is_told_once_and_the_rest_is_of_unknown_outcome() -> None:
    cluster = Cluster()
    cluster.breaks = lambda writer, payload: AddTimeoutError("late") if payload == b"2" else None
    watched = ProgressSource(cluster)
    watched.send(5)
    with pytest.raises(AddTimeoutError):
        await watched.segment.wait_until_durable()
    watched.send(2)  # they go nowhere
    await asyncio.sleep(0.1)
    assert watched.durable == [0, 1]
    assert len(watched.failures) == 1
    unknown = await watched.segment.abandon()
    assert [sent.entry for sent in unknown] == [2, 3, 4, 5, 6]
    with pytest.raises(AddTimeoutError):
        await watched.segment.wait_until_durable()


@in_virtual_time
async def test_who_waits_when_the_segment_is_given_up_is_told() -> None:
    watched = ProgressSource(Cluster())
    watched.send(3)
    waiting = asyncio.ensure_future(watched.segment.wait_until_durable())
    await asyncio.sleep(0)
    await watched.segment.abandon()
    with pytest.raises(ClientClosedError):
        await waiting
    assert (watched.durable, watched.failures) == ([], [])
