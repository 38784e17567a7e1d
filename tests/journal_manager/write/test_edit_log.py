"""The edit log over a journal whose every step waits for the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from typing import Any

import pytest

from bookkeeper.errors import Outcome
from journal_manager import (
    NOTHING,
    Batch,
    Chunks,
    EditLog,
    EditLogConfig,
    FencingToken,
    JournalClosedError,
    JournalError,
    JournalFailedError,
    JournalFencedError,
    JournalOverloadedError,
    JournalUnavailableError,
    JournalWriter,
    OpTooLargeError,
    RecoveryReport,
    RequestId,
    RequestTable,
    SegmentInfo,
    SegmentWriter,
    SnapshotInfo,
    TxId,
)
from journal_manager.edits import OVERHEAD, fenced
from journal_manager.errors import JournalDiskError, RequestForgottenError
from tests.spark_wal.webhdfs.virtual import in_virtual_time

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
    assert caught.value.outcome is Outcome.UNKNOWN
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


# -- segments that end by themselves -------------------------------------------------------------------


async def logged(log: EditLog, writer: SlowWriter, count: int = 1) -> None:
    """So many edits, each durable before the next."""
    for _ in range(count):
        waiter = log.log(b"x")
        await turns()
        await writer.durable()
        await waiter


async def test_a_segment_ends_at_its_number_of_edits(writer: SlowWriter) -> None:
    log = EditLog(writer, EditLogConfig(segment_edits=3))
    await logged(log, writer, 7)
    assert [call for call in writer.calls if call != "close segment"] == [
        "start 1",
        "finalize 1 3",
        "start 4",
        "finalize 4 6",
        "start 7",
    ]
    await log.abort()


async def test_edits_that_wait_are_divided_at_the_number_of_edits_and_a_group_is_not(writer: SlowWriter) -> None:
    log = EditLog(writer, EditLogConfig(segment_edits=3))
    waiters = [log.log(b"x") for _ in range(4)]
    group = log.log_group([(0, b"x")] * 5)
    await turns()
    for _ in range(3):
        await writer.durable()
    assert counts(writer) == [3, 1, 5] and await group == 9
    assert [call for call in writer.calls if call.startswith("start")] == ["start 1", "start 4", "start 5"]
    assert all(waiter.done() for waiter in waiters)
    await log.abort()


@in_virtual_time
async def test_a_segment_ends_at_its_age_without_another_edit_and_an_empty_log_starts_none() -> None:
    writer = SlowWriter()
    log = EditLog(writer, EditLogConfig(segment_s=60))
    await asyncio.sleep(200)
    assert writer.calls == []
    await logged(log, writer)
    await asyncio.sleep(59)
    await logged(log, writer)
    assert writer.calls == ["start 1"]
    await asyncio.sleep(2)
    assert writer.calls == ["start 1", "close segment", "finalize 1 2"]
    await asyncio.sleep(200)
    await logged(log, writer)
    assert writer.calls[3:] == ["start 3"]
    await asyncio.sleep(30)
    await log.roll()
    await asyncio.sleep(20)
    await logged(log, writer)
    await asyncio.sleep(50)
    assert writer.calls[-1] == "start 4", "the age of a segment that was rolled does not end the next one"
    await asyncio.sleep(20)
    assert writer.calls[-1] == "finalize 4 4"
    await log.close()


@in_virtual_time
async def test_a_segment_at_its_age_ends_behind_the_batch_that_is_being_synced() -> None:
    writer = SlowWriter()
    log = EditLog(writer, EditLogConfig(segment_s=60))
    one, two = log.log(b"1"), None
    await asyncio.sleep(61)
    two = log.log(b"2")
    assert writer.calls == ["start 1"]
    await writer.durable()
    await turns()
    assert await one == 1 and writer.calls == ["start 1", "close segment", "finalize 1 1", "start 2"]
    await writer.durable()
    assert await two == 2
    await log.abort()


# -- transmitting before the batch in front is durable -------------------------------------------------

SIZE = OVERHEAD + 1
"""The bytes of an edit whose body is one byte."""


def transmitting(writer: SlowWriter, **config: Any) -> EditLog:
    return EditLog(writer, EditLogConfig(transmit_bytes=2 * SIZE, **config))


async def test_more_than_the_threshold_does_not_wait_for_the_batch_before(writer: SlowWriter) -> None:
    log = transmitting(writer)
    waiters = [log.log(b"x")]
    await turns()
    waiters += [log.log(b"x") for _ in range(2)]
    await turns()
    assert counts(writer) == [1], "exactly the threshold waits"
    waiters.append(log.log(b"x"))
    assert counts(writer) == [1, 3]
    await writer.durable()
    assert [waiter.done() for waiter in waiters] == [True, False, False, False]
    await writer.durable()
    assert [await waiter for waiter in waiters] == [1, 2, 3, 4]
    await log.abort()


async def test_a_later_batch_that_is_durable_first_is_acknowledged_in_order(writer: SlowWriter) -> None:
    log = transmitting(writer)
    one = log.log(b"x")
    await turns()
    rest = [log.log(b"x") for _ in range(3)]
    writer.waiting[1].set_result(None)
    await turns()
    assert not rest[0].done() and log.durable_txid == NOTHING
    writer.waiting[0].set_result(None)
    await turns()
    assert one.done() and rest[-1].done() and log.durable_txid == 4
    await log.abort()


async def test_only_so_many_batches_are_sent_at_once(writer: SlowWriter) -> None:
    log = transmitting(writer, max_transmitted=2)
    for _ in range(2):
        log.log_group([(0, b"x")] * 3)
        await turns()
    log.log_group([(0, b"x")] * 3)
    await turns()
    assert counts(writer) == [3, 3]
    await writer.durable()
    assert counts(writer) == [3, 3, 3]
    await log.abort()


async def test_a_failed_batch_fails_those_that_were_sent_behind_it(writer: SlowWriter) -> None:
    log = transmitting(writer)
    first = log.log(b"x")
    await turns()
    rest = [log.log(b"x") for _ in range(3)]
    writer.waiting[1].set_exception(JournalUnavailableError("second"))
    await writer.durable(JournalUnavailableError("first"))
    for waiter in (first, *rest):
        with pytest.raises(JournalFailedError, match="first"):
            await waiter
    await log.abort()


async def test_a_roll_waits_for_what_was_sent_and_is_not_put_off_by_more(writer: SlowWriter) -> None:
    log = transmitting(writer)
    log.log(b"x")
    await turns()
    log.log_group([(0, b"x")] * 3)
    rolling = asyncio.create_task(log.roll())
    await turns()
    log.log_group([(0, b"x")] * 3)
    assert counts(writer) == [1, 3], "while a step waits nothing more is sent ahead of it"
    await writer.durable()
    await writer.durable()
    final = await rolling
    assert final is not None and (final.first, final.last) == (1, 4)
    assert counts(writer) == [1, 3, 3]
    await log.abort()


async def test_a_full_segment_takes_nothing_ahead(writer: SlowWriter) -> None:
    log = transmitting(writer, segment_bytes=4 * SIZE)
    log.log_group([(0, b"x")] * 3)
    await turns()
    log.log_group([(0, b"x")] * 3)
    assert counts(writer) == [3]
    await writer.durable()
    assert counts(writer) == [3, 3] and writer.calls[-2:] == ["finalize 1 3", "start 4"]
    await log.abort()


# -- repeated requests ---------------------------------------------------------------------------------

ASK = RequestId(b"client", 1)


async def test_a_repeated_request_logs_nothing_and_returns_the_first_id_once_it_is_durable(writer: SlowWriter) -> None:
    log = EditLog(writer, requests=RequestTable())
    first, again = log.log(b"x", request=ASK), log.log(b"x", request=ASK)
    await turns()
    assert not again.done() and log.next_txid == 2
    await writer.durable()
    assert (await first, await again, await log.log(b"other", request=ASK)) == (1, 1, 1)
    assert [op.request for batch in writer.batches for op in batch.ops()] == [ASK]
    other = log.log(b"x", request=RequestId(b"client", 2))
    await turns()
    await writer.durable()
    assert await other == 2
    await log.abort()


async def test_a_request_of_a_client_that_is_forgotten_logs_nothing(writer: SlowWriter) -> None:
    log = EditLog(writer, requests=RequestTable(1, 1))
    for number in range(4):
        log.log(b"x", request=RequestId(b"%d" % number, 1), since=TxId(number))
    with pytest.raises(RequestForgottenError, match="may have been carried out"):
        log.log(b"x", request=RequestId(b"0", 1), since=NOTHING)
    with pytest.raises(RequestForgottenError, match="discarded since"):
        log.log_group([(0, b"x")], request=RequestId(b"new", 1), since=TxId(5))
    assert log.next_txid == 5
    await log.abort()


async def test_a_refused_edit_leaves_its_request_new(writer: SlowWriter) -> None:
    requests = RequestTable()
    log = EditLog(writer, requests=requests)
    with pytest.raises(OpTooLargeError):
        log.log(bytes(20_000), request=ASK)
    assert requests.answer_to(ASK) is None
    with pytest.raises(OpTooLargeError):
        log.ensure_loggable(bytes(20_000), request=ASK)
    log.ensure_loggable(b"x", request=ASK)
    assert log.next_txid == 1 and requests.answer_to(ASK) is None
    await log.abort()


async def test_without_a_table_requests_are_only_kept_with_their_edits(writer: SlowWriter) -> None:
    log = EditLog(writer)
    log.log(b"x", request=ASK)
    log.log_group([(0, b"x"), (0, b"y")], request=ASK)
    await turns()
    assert [op.request for batch in writer.batches for op in batch.ops()] == [ASK, None, ASK]
    await log.abort()


# -- a store that is away for a while ------------------------------------------------------------------


class AwayWriter(SlowWriter):
    """Its steps fail until the store is back; appends are durable at once."""

    def __init__(self) -> None:
        super().__init__()
        self.back_at = 0.0

    async def note(self, call: str) -> None:
        if asyncio.get_running_loop().time() < self.back_at:
            raise JournalUnavailableError("the store is away")
        await super().note(call)

    def away(self, seconds: float) -> None:
        self.back_at = asyncio.get_running_loop().time() + seconds


@in_virtual_time
async def test_a_store_that_is_away_for_five_seconds_ends_no_writer() -> None:
    writer = AwayWriter()
    log = EditLog(writer, EditLogConfig(segment_edits=2))
    writer.away(5)
    one = log.log(b"1")
    await asyncio.sleep(4)
    assert not one.done()
    await asyncio.sleep(2)
    await writer.durable()
    assert await one == 1
    writer.away(5)
    rolling = asyncio.create_task(log.roll())
    await asyncio.sleep(6)
    assert (await rolling) is not None
    writer.away(5)
    await log.purge(TxId(1))
    assert log.failure is None
    assert writer.calls == ["start 1", "close segment", "finalize 1 1", "purge 1"]
    await log.close()


@in_virtual_time
async def test_a_store_that_stays_away_ends_the_log_after_its_patience() -> None:
    writer = AwayWriter()
    log = EditLog(writer, EditLogConfig(patience_s=10))
    began = asyncio.get_running_loop().time()
    writer.away(3600)
    with pytest.raises(JournalFailedError, match="the store is away"):
        await log.log(b"1")
    assert 9 < asyncio.get_running_loop().time() - began <= 10
    await log.abort()


@pytest.mark.parametrize("error", [fenced(TOKEN, None), JournalDiskError("sync")], ids=["fenced", "disk"])
@in_virtual_time
async def test_what_is_final_is_never_tried_again(error: JournalError) -> None:
    class Failing(SlowWriter):
        async def start_segment(self, first: TxId, layout_version: int) -> SegmentWriter:
            self.calls.append("start")
            raise error

    writer = Failing()
    log = EditLog(writer)
    with pytest.raises((JournalFencedError, JournalFailedError)):
        await log.log(b"1")
    assert writer.calls == ["start"]
    await log.abort()


async def test_a_purge_that_fails_is_no_failure_of_the_log_unless_it_is_fenced(writer: SlowWriter) -> None:
    class Failing(SlowWriter):
        error: JournalError = JournalDiskError("unlink")

        async def purge(self, min_txid: TxId) -> tuple[SegmentInfo, ...]:
            raise self.error

    failing = Failing()
    log = EditLog(failing)
    with pytest.raises(JournalDiskError):
        await log.purge(1)
    await logged(log, failing)
    failing.error = fenced(TOKEN, None)
    with pytest.raises(JournalFencedError):
        await log.purge(1)
    assert isinstance(log.failure, JournalFencedError)
    await log.abort()


def test_settings_that_cannot_work_are_refused() -> None:
    for wrong in ({"segment_edits": 0}, {"segment_s": 0.0}, {"max_transmitted": 0}, {"segment_bytes": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            EditLogConfig(**wrong)
