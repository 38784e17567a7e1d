"""The figures of a journal: how long syncs take, what waits, what failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

from bookkeeper.exposition import page
from bookkeeper.metrics import Metrics
from journal_manager import (
    Batch,
    EditLog,
    JournalFencedError,
    JournalUnavailableError,
    Member,
    SegmentInfo,
    SegmentWriter,
    open_writer,
    replicated,
)
from journal_manager.backends.memory import MemoryHub
from journal_manager.replicas.replica_config import ReplicaConfig
from journal_manager.testing import batch, write_segment
from journal_manager.write import JournalStats, MeasuredWriter
from tests.journal_manager.replicas import Ballot, Candidate, Ledger


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


class Slow(SegmentWriter):
    """Appends end when the test says so."""

    def __init__(self, inner: SegmentWriter) -> None:
        self._inner = inner
        self.waiting: list[asyncio.Future[None]] = []

    @property
    def info(self) -> SegmentInfo:
        return self._inner.info

    def append(self, item: Batch) -> Awaitable[None]:
        self.waiting.append(asyncio.get_running_loop().create_future())
        return self.waiting[-1]

    async def close(self) -> None: ...
    async def abort(self) -> None: ...


@pytest.fixture
async def hub() -> AsyncIterator[MemoryHub]:
    yield MemoryHub()


async def measured(hub: MemoryHub, clock: Clock, metrics: Metrics | None = None) -> MeasuredWriter:
    return MeasuredWriter(await open_writer("mem:x", hub=hub), JournalStats(metrics or Metrics(), "mem:x", clock))


async def test_what_waits_is_lag_and_what_is_durable_is_measured(
    hub: MemoryHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    writer = await measured(hub, clock)
    start = writer.inner.start_segment
    slow: list[Slow] = []

    async def start_slow(*args: Any) -> SegmentWriter:
        slow.append(Slow(await start(*args)))
        return slow[-1]

    monkeypatch.setattr(writer.inner, "start_segment", start_slow)
    segment = await writer.start_segment(1, 1)
    appends = [segment.append(batch(1, 3)), segment.append(batch(4, 2))]
    clock.at += 2
    found = writer.stats.now()
    assert (found.appended_txid, found.durable_txid, found.lag_edits, found.lag_s) == (5, 0, 5, 2.0)
    slow[0].waiting[0].set_result(None)
    await appends[0]
    clock.at += 4
    found = writer.stats.now()
    assert (found.durable_txid, found.lag_edits, found.lag_s) == (3, 2, 6.0)
    slow[0].waiting[1].set_result(None)
    await appends[1]
    found = writer.stats.now()
    assert (found.durable_txid, found.lag_edits, found.lag_s, found.syncs) == (5, 0, 0.0, 2)
    assert (found.sync_s_mean, found.sync_s_max, found.edits, found.errors) == (4.0, 6.0, 5, 0)
    assert found.bytes == len(batch(1, 3).frames) + len(batch(4, 2).frames)


async def test_failures_are_counted_and_the_last_is_kept_in_words(hub: MemoryHub) -> None:
    writer = await measured(hub, Clock())
    segment = await writer.start_segment(1, 1)
    await open_writer("mem:x", hub=hub)
    with pytest.raises(JournalFencedError):
        await segment.append(batch(1))
    with pytest.raises(JournalFencedError):
        await writer.ensure_owner()
    found = writer.stats.now()
    assert found.errors == 2 and "has taken the journal over" in found.last_error and found.lag_edits == 0


async def test_a_later_writer_goes_on_from_what_is_there(hub: MemoryHub) -> None:
    await write_segment(await open_writer("mem:x", hub=hub), 1, 7)
    found = (await measured(hub, Clock())).stats.now()
    assert (found.appended_txid, found.durable_txid, found.lag_edits, found.last_error) == (7, 7, 0, "")


async def test_an_edit_log_writes_through_it_and_the_metrics_are_shown(hub: MemoryHub) -> None:
    metrics = Metrics()
    writer = await measured(hub, Clock(), metrics)
    async with EditLog(writer) as log:
        for number in range(3):
            await log.log(b"%d" % number)
        await log.save_snapshot(3, [b"state"])
        assert [op.txid async for op in log.read(1)] == [1, 2, 3]
    writer.stats.refresh()
    text = page(metrics, "")[0].decode()
    assert 'edit_journal_edits_total{journal="mem:x"} 3.0' in text
    assert 'edit_journal_durable_txid{journal="mem:x"} 3.0' in text
    assert 'edit_journal_sync_seconds_count{journal="mem:x"} 3.0' in text


async def test_an_append_that_is_refused_at_once_is_no_lag(hub: MemoryHub, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = await measured(hub, Clock())
    segment = await writer.start_segment(1, 1)

    def refuse(item: Batch) -> Awaitable[None]:
        raise JournalUnavailableError("not now")

    monkeypatch.setattr(segment._segment, "append", refuse)  # type: ignore[attr-defined]
    with pytest.raises(JournalUnavailableError):
        segment.append(batch(1))
    found = writer.stats.now()
    assert (found.lag_edits, found.errors, found.last_error) == (0, 1, "not now")


async def test_a_replica_and_the_members_of_a_set_are_measured(hub: MemoryHub) -> None:
    metrics = Metrics()
    whole, shared, copy = (JournalStats(metrics, name) for name in ("set:", "mem:shared", "mem:copy"))
    options = {"hub": hub}
    members = [
        Member("mem:shared", shared=True, options=options, wrap=shared.measured),
        Member("mem:copy", options=options, wrap=copy.measured),
    ]
    config = ReplicaConfig()
    elected = Candidate(Ballot("a"), "a")
    async with replicated(
        "set:", Ledger(), name="a", config=config, election=elected, wrap=whole.measured, members=members
    ) as replica:
        await replica.wait_until_active()
        await replica.submit(b"one")
        await replica.submit(b"two")
        assert [stats.now().durable_txid for stats in (whole, shared, copy)] == [2, 2, 2]
        assert [stats.now().syncs for stats in (whole, shared, copy)] == [2, 2, 2]
