"""The edit log over a journal whose every step waits for the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable

import pytest

from journal_manager import (
    NOTHING,
    Batch,
    Chunks,
    EditLog,
    EditLogConfig,
    FencingToken,
    JournalClosedError,
    JournalFailedError,
    JournalFencedError,
    JournalOverloadedError,
    JournalUnavailableError,
    JournalWriter,
    RecoveryReport,
    SegmentInfo,
    SegmentWriter,
    SnapshotInfo,
    TxId,
)
from journal_manager.fencing_token import fenced
from journal_manager.ops import OVERHEAD

TOKEN = FencingToken(3, "me")


class SlowWriter(JournalWriter):
    """Appends and steps end when the test says so."""

    def __init__(self, last: int = NOTHING) -> None:
        self._recovery = RecoveryReport(TOKEN, (), (), TxId(last))
        self.batches: list[Batch] = []
        self.waiting: list[asyncio.Future[None]] = []
        self.calls: list[str] = []
        self.hold: asyncio.Event | None = None
        """Steps besides appends wait for it."""

    @property
    def token(self) -> FencingToken:
        return TOKEN

    @property
    def recovery(self) -> RecoveryReport:
        return self._recovery

    @property
    def max_batch_bytes(self) -> int:
        return 10_000

    async def note(self, call: str) -> None:
        self.calls.append(call)
        if self.hold is not None:
            await self.hold.wait()

    async def start_segment(self, first: TxId, layout_version: int) -> SegmentWriter:
        await self.note(f"start {first}")
        return SlowSegment(self, SegmentInfo(first, None, layout_version, TOKEN.epoch, ""))

    async def finalize_segment(self, first: TxId, last: TxId) -> SegmentInfo:
        await self.note(f"finalize {first} {last}")
        return SegmentInfo(first, last, 1, TOKEN.epoch, "")

    async def discard_segment(self, first: TxId) -> None:
        raise NotImplementedError

    async def purge(self, min_txid: TxId) -> tuple[SegmentInfo, ...]:
        await self.note(f"purge {min_txid}")
        return ()

    @property
    def durable_txid(self) -> TxId:
        return self.batches[-1].last if self.batches else self._recovery.last_txid

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        await self.note(f"save snapshot {at}")
        return SnapshotInfo(at, 0, "")

    async def delete_snapshot(self, at: TxId) -> None:
        raise JournalUnavailableError("not now")

    async def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        await self.note("adopt snapshots")
        return ()

    async def ensure_owner(self) -> None:
        raise fenced(TOKEN, FencingToken(4, "other"))

    async def segments(self) -> tuple[SegmentInfo, ...]:
        return ()

    async def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        for batch in self.batches:
            yield batch

    async def changed(self, timeout_s: float) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self.calls.append("close")

    # -- for tests -------------------------------------------------------------------------------------

    async def durable(self, error: Exception | None = None) -> None:
        """The oldest append ends."""
        waiting = self.waiting.pop(0)
        waiting.set_exception(error) if error is not None else waiting.set_result(None)
        await turns()


class SlowSegment(SegmentWriter):
    def __init__(self, writer: SlowWriter, info: SegmentInfo) -> None:
        self._writer, self._info = writer, info

    @property
    def info(self) -> SegmentInfo:
        return self._info

    def append(self, batch: Batch) -> Awaitable[None]:
        self._writer.batches.append(batch)
        self._writer.waiting.append(asyncio.get_running_loop().create_future())
        return self._writer.waiting[-1]

    async def close(self) -> None:
        await self._writer.note("close segment")

    async def abort(self) -> None:
        self._writer.calls.append("abort segment")


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def counts(writer: SlowWriter) -> list[int]:
    return [batch.count for batch in writer.batches]


@pytest.fixture
def writer() -> SlowWriter:
    return SlowWriter()


@pytest.fixture
async def log(writer: SlowWriter) -> AsyncIterator[EditLog]:
    log = EditLog(writer, EditLogConfig(max_batch_bytes=10 * (OVERHEAD + 1), max_pending_bytes=15 * (OVERHEAD + 1)))
    yield log
    await log.abort()


async def test_edits_of_one_turn_and_those_that_come_while_syncing_make_one_batch_each(
    log: EditLog, writer: SlowWriter
) -> None:
    first = [log.log(b"x") for _ in range(3)]
    await turns()
    second = [log.log(b"x") for _ in range(4)]
    await turns()
    assert counts(writer) == [3] and not any(waiter.done() for waiter in first)
    await writer.durable()
    assert [waiter.result() for waiter in first] == [1, 2, 3]
    assert counts(writer) == [3, 4] and not second[0].done()
    assert (log.durable_txid, log.next_txid) == (3, 8)
    await writer.durable()
    assert [waiter.result() for waiter in second] == [4, 5, 6, 7]
    assert writer.calls == ["start 1"]


async def test_a_batch_is_bounded_and_a_group_is_never_divided(log: EditLog, writer: SlowWriter) -> None:
    for _ in range(7):
        log.log(b"x")
    group = log.log_group([(1, b"x")] * 4)
    await turns()
    await writer.durable()
    assert counts(writer) == [7, 4] and not group.done()
    await writer.durable()
    assert await group == 11


async def test_ids_go_on_after_the_recovered_ones() -> None:
    log = EditLog(SlowWriter(last=41))
    assert (log.next_txid, log.durable_txid) == (42, 41)
    assert await log.sync() == 41
    await log.close()


async def test_cancelling_who_waits_does_not_withdraw_the_edit(log: EditLog, writer: SlowWriter) -> None:
    one, two = log.log(b"1"), log.log(b"2")
    await turns()
    one.cancel()
    await writer.durable()
    assert await two == 2 and log.durable_txid == 2
    assert [op.body for batch in writer.batches for op in batch.ops()] == [b"1", b"2"]


async def test_sync_ends_with_its_own_edits_and_not_with_later_ones(log: EditLog, writer: SlowWriter) -> None:
    log.log(b"1")
    syncing = asyncio.create_task(log.sync())
    await turns()
    log.log(b"2")
    await writer.durable()
    assert syncing.done() and await syncing == 1
    with pytest.raises(ValueError, match="not logged yet"):
        await log.sync(TxId(3))


async def test_more_than_the_allowed_bytes_are_refused_until_there_is_room(log: EditLog, writer: SlowWriter) -> None:
    waiters = [log.log(b"x") for _ in range(15)]
    with pytest.raises(JournalOverloadedError):
        log.log(b"x")
    room = asyncio.create_task(log.room())
    await turns()
    assert not room.done()
    await writer.durable()
    await room
    assert log.next_txid == 16, "what was refused took no id"
    await writer.durable()
    assert [await waiter for waiter in waiters] == list(range(1, 16))


async def test_a_failed_sync_is_final_and_tells_everyone(log: EditLog, writer: SlowWriter) -> None:
    syncing, waiting = log.log(b"1"), None
    await turns()
    waiting = log.log(b"2")
    await writer.durable(JournalUnavailableError("disk"))
    for waiter in (syncing, waiting):
        with pytest.raises(JournalFailedError) as caught:
            await waiter
        assert isinstance(caught.value.__cause__, JournalUnavailableError)
    for call in (log.sync, log.roll, log.room, log.ensure_owner):
        with pytest.raises(JournalFailedError):
            await call()
    with pytest.raises(JournalFailedError):
        log.log(b"3")
    assert log.durable_txid == NOTHING and isinstance(log.failure, JournalUnavailableError)
    await log.close()
    assert writer.calls == ["start 1", "abort segment", "close"]


@pytest.mark.rule("C5")
async def test_being_fenced_is_told_by_its_own_error_with_the_epoch(log: EditLog, writer: SlowWriter) -> None:
    waiter = log.log(b"1")
    await turns()
    await writer.durable(fenced(TOKEN, FencingToken(4, "other")))
    for call in (lambda: waiter, log.sync, log.room):
        with pytest.raises(JournalFencedError) as caught:
            await call()
        assert (caught.value.epoch, caught.value.by) == (3, FencingToken(4, "other"))


@pytest.mark.rule("C5")
async def test_a_failed_look_at_the_owner_ends_the_log(log: EditLog) -> None:
    with pytest.raises(JournalFencedError):
        await log.ensure_owner()
    with pytest.raises(JournalFencedError):
        log.log(b"1")


@pytest.mark.rule("C2", "C7")
async def test_a_roll_makes_everything_logged_so_far_final(log: EditLog, writer: SlowWriter) -> None:
    one = log.log(b"1")
    await turns()
    two = log.log(b"2")
    rolling = asyncio.create_task(log.roll())
    await turns()
    three = log.log(b"3")
    await writer.durable()
    assert one.done() and not rolling.done()
    await writer.durable()
    assert await two == 2
    if not rolling.done():  # the third joined the second's batch
        await writer.durable()
    final = await rolling
    assert final is not None and final.first == 1 and final.last in (2, 3)
    if not three.done():
        await writer.durable()
        assert writer.calls[-1] == "start 3"
    assert await three == 3
    assert writer.calls[:3] == ["start 1", "close segment", f"finalize 1 {final.last}"]


async def test_a_roll_goes_on_when_the_task_that_asked_for_it_is_cancelled(log: EditLog, writer: SlowWriter) -> None:
    waiter = log.log(b"1")
    await turns()
    await writer.durable()
    await waiter
    writer.hold = asyncio.Event()
    rolling = asyncio.create_task(log.roll())
    await turns()
    rolling.cancel()
    await turns()
    assert rolling.cancelled() and log.failure is None
    writer.hold.set()
    await turns()
    assert writer.calls == ["start 1", "close segment", "finalize 1 1"]
    assert await log.roll() is None


async def test_whoever_closes_it_too_waits_for_the_same_end(log: EditLog, writer: SlowWriter) -> None:
    waiter = log.log(b"1")
    closing = [asyncio.ensure_future(log.close()) for _ in range(2)]
    await turns()
    assert not any(task.done() for task in closing)
    await writer.durable()
    await asyncio.gather(*closing)
    assert await waiter == 1 and writer.calls[-1] == "close"


async def test_close_makes_durable_and_final_and_takes_nothing_more(log: EditLog, writer: SlowWriter) -> None:
    waiter = log.log(b"1")
    closing = asyncio.create_task(log.close())
    await turns()
    with pytest.raises(JournalClosedError):
        log.log(b"2")
    await writer.durable()
    await closing
    assert await waiter == 1
    await log.close()
    assert writer.calls == ["start 1", "close segment", "finalize 1 1", "close"]
    for call in (log.sync, log.roll):
        with pytest.raises(JournalClosedError):
            await call()


async def test_abort_leaves_the_outcome_open(log: EditLog, writer: SlowWriter) -> None:
    waiter = log.log(b"1")
    await turns()
    await log.abort()
    with pytest.raises(JournalFailedError) as caught:
        await waiter
    assert caught.value.outcome_unknown
    assert writer.calls == ["start 1", "abort segment", "close"]


async def test_an_empty_group_and_an_unknown_opcode_are_refused(log: EditLog) -> None:
    with pytest.raises(ValueError, match="at least one edit"):
        log.log_group([])
    with pytest.raises(ValueError, match="got opcode"):
        log.log(b"", opcode=128)
    assert log.next_txid == 1


async def test_a_snapshot_is_saved_while_the_log_goes_on(log: EditLog, writer: SlowWriter) -> None:
    writer.hold = asyncio.Event()
    saving = asyncio.ensure_future(log.save_snapshot(7, [b"x"]))
    await turns()
    assert writer.calls == ["save snapshot 7"]
    writer.hold.set()
    logged = log.log(b"x")
    await turns()
    await writer.durable()
    assert await logged == 1
    assert (await saving).at == 7
    assert await log.adopt_snapshots() == ()


async def test_a_snapshot_that_fails_is_no_failure_of_the_log(log: EditLog, writer: SlowWriter) -> None:
    with pytest.raises(JournalUnavailableError):
        await log.delete_snapshot(7)
    assert log.failure is None
