"""Segments that end: by a failed add, by a roll, by another owner, by the death of the process, at any step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from bookkeeper.errors import (
    AddTimeoutError,
    BookieUnavailableError,
    BookKeeperError,
    LedgerFencedError,
    MetadataUnavailableError,
)
from bookkeeper.outcome import Outcome
from segments.config import ProducerPolicy, RollPolicy, StreamConfig
from segments.entries.columns import RecordColumns
from segments.entries.stored_entry import decode_entry
from segments.errors import (
    OwnershipLostError,
    StreamCorruptError,
    StreamError,
    StreamInvariantError,
    StreamMetadataError,
    StreamNotReadyError,
)
from segments.position import Position
from segments.record import AppendResult
from segments.stream import Stream
from segments.write import Producer
from segments.write.output import entry_output, entry_sender
from segments.write.segment.segment_change import recovered_end
from segments.write.state.contents_tally import ContentsTally
from segments.write.state.stream_owner import StreamOwner
from tests.segments.fake import AT_ONCE, Cluster, FakeWriter, chain_of, check_stream, stream_on, values_of
from tests.spark_wal.webhdfs.virtual import in_virtual_time


async def load(stream: Stream, count: int, pause_s: float = 0.0003) -> list[AppendResult]:
    """Append numbers, many at a time; return the results in order."""
    async with stream.writer() as writer:
        futures = []
        for number in range(count):
            futures.append(writer.append_nowait(b"%d" % number))
            if number % 3 == 0:
                await asyncio.sleep(pause_s)
        return list(await asyncio.gather(*futures))


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


# -- failed adds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1, 2, 5])
@in_virtual_time
async def test_a_failed_add_changes_the_segment_and_no_caller_notices(kept: int) -> None:
    """SEG-66: what the recovery found is acknowledged where it stands, the rest is written anew, in order, once."""
    cluster = Cluster()
    cluster.kept_after_failure = kept
    seen = 0

    def every_tenth(writer: FakeWriter, payload: bytes) -> BookKeeperError | None:
        nonlocal seen
        seen += 1
        return AddTimeoutError("no ack quorum") if seen % 10 == 0 else None

    cluster.breaks = every_tenth
    stream = await stream_on(cluster)
    results = await load(stream, 100)
    assert [result.seq_no for result in results] == list(range(100))
    assert len({result.position for result in results}) == 100
    assert await values_of(cluster, stream) == numbers(100)
    await check_stream(cluster, stream)
    assert len((await chain_of(stream)).segments) > 2
    records = {
        record.position: record.value
        for segment in (await chain_of(stream)).segments
        for entry, payload in enumerate(cluster.ledgers[segment.ledger_id].entries)
        for record in decode_entry(payload, segment.number, entry).records()
    }
    assert [records[result.position] for result in results] == numbers(100)


@in_virtual_time
async def test_a_recovery_that_lost_what_was_acknowledged_is_damage_and_nothing_is_written_over_it() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    writer = await stream.writer()
    await writer.append(b"0")
    await writer.append(b"1")

    def forgets(broken: FakeWriter, payload: bytes) -> BookKeeperError | None:
        broken.ledger.entries.pop()
        return AddTimeoutError("no ack quorum")

    cluster.breaks = forgets
    with pytest.raises(StreamCorruptError, match="but entry 1 was acknowledged"):
        await writer.append(b"2")
    assert len((await chain_of(stream)).segments) == 1, "no segment follows the damaged one"


@in_virtual_time
async def test_a_large_batch_survives_a_failure_in_its_middle_as_a_whole() -> None:
    """SEG-48: no part of it is cancelled; what was not durable is written anew, in order."""
    cluster = Cluster()
    cluster.kept_after_failure = 1
    seen = 0

    def second_entry(writer: FakeWriter, payload: bytes) -> BookKeeperError | None:
        nonlocal seen
        seen += 1
        return AddTimeoutError("late") if seen == 2 else None

    cluster.breaks = second_entry
    stream = await stream_on(cluster)
    values = [b"%02d" % number + bytes(200_000) for number in range(20)]
    async with stream.writer() as writer:
        done = await writer.append_batch(values, atomic=False)
        assert (done.position.segment, done.last.segment) == (1, 2)
    assert await values_of(cluster, stream) == values
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_failure_while_metadata_and_bookies_are_away_is_hidden_until_they_are_back() -> None:
    """SEG-63: no segment changes without the metadata store; it goes on by itself."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        await writer.append(b"0")
        cluster.metadata.begin_outage()
        cluster.breaks = lambda fake, payload: AddTimeoutError("gone")
        pending = [writer.append_nowait(b"%d" % number) for number in range(1, 4)]
        await asyncio.sleep(8)
        assert not any(future.done() for future in pending)
        cluster.breaks = lambda fake, payload: None
        cluster.metadata.end_outage()
        assert [(await future).seq_no for future in pending] == [1, 2, 3]
    assert await values_of(cluster, stream) == numbers(4)
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_ledger_that_somebody_closed_by_recovery_is_followed_by_the_next_segment() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        await writer.append(b"0")
        ledger = (await chain_of(stream)).segments[-1].ledger_id
        await cluster.client().open_ledger(ledger, None)  # an operator's `bk ledger recover`
        assert (await writer.append(b"1")).position == Position(2, 0, 0)
        assert not writer.lost.is_set()
    assert await values_of(cluster, stream) == numbers(2)
    await check_stream(cluster, stream)


# -- rolls --------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_rolls_under_load_lose_nothing_and_leave_one_open_segment() -> None:
    """SEG-57 SEG-58: the last position in the record is the last one that was acknowledged in that segment."""
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(roll=RollPolicy(max_records=10, min_age_s=0)))
    most_open = 0

    def look(name: str) -> None:
        nonlocal most_open
        most_open = max(
            most_open, sum(not ledger.closed and bool(ledger.entries) for ledger in cluster.ledgers.values())
        )

    cluster.step = look  # type: ignore[method-assign]
    results = await load(stream, 200, 0.002)
    assert most_open == 1
    assert await values_of(cluster, stream) == numbers(200)
    await check_stream(cluster, stream)
    chain = await chain_of(stream)
    assert len(chain.segments) > 5
    for segment in chain.segments:
        assert segment.last == max(r.position for r in results if r.position.segment == segment.number)


@in_virtual_time
async def test_a_roll_on_demand_returns_the_segment_and_empty_ones_are_not_rolled() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        with pytest.raises(StreamNotReadyError, match="has no records"):
            await writer.roll()
        first = writer.append_nowait(b"0")
        done = await writer.roll()
        assert (done.number, done.records, done.last) == (1, 1, (await first).position)
        await asyncio.sleep(2)
        ahead = (await chain_of(stream)).next_ledger
        assert ahead is not None, "the next ledger is made in advance"
        await writer.append(b"1")
        await writer.roll()
        assert (await chain_of(stream)).segments[-1].ledger_id == ahead
    assert await values_of(cluster, stream) == numbers(2)
    await check_stream(cluster, stream)
    assert set(cluster.ledgers) == set((await chain_of(stream)).ledgers)


@in_virtual_time
async def test_an_idle_segment_ends_by_the_clock_alone() -> None:
    """SEG-56: a timer ends idle and old segments; no append is needed."""
    cluster = Cluster()
    roll = RollPolicy(idle_age_s=5, max_age_s=60, min_age_s=0, age_jitter=0)
    stream = await stream_on(cluster, config=StreamConfig(roll=roll))
    async with stream.writer() as writer:
        await writer.append(b"0")
        await asyncio.sleep(6)
        assert [segment.is_open for segment in (await chain_of(stream)).segments] == [False, True]
        for number in range(1, 25):
            await writer.append(b"%d" % number)
            await asyncio.sleep(3)
        segments = (await chain_of(stream)).segments
        assert len(segments) == 3, "the second one was 60 seconds old"
    assert await values_of(cluster, stream) == numbers(25)


@in_virtual_time
async def test_with_rolling_off_there_is_one_segment() -> None:
    """SEG-60"""
    cluster = Cluster()
    off = RollPolicy(max_bytes=0, max_age_s=0, min_age_s=0)
    stream = await stream_on(cluster, config=StreamConfig(roll=off))
    async with stream.writer() as writer:
        for number in range(50):
            await writer.append(b"%d" % number)
            await asyncio.sleep(3600)
    assert len((await chain_of(stream)).segments) == 1


@pytest.mark.parametrize("away", ["metadata", "bookies"])
@in_virtual_time
async def test_a_roll_that_is_impossible_is_put_off_and_the_old_segment_takes_more(
    away: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SEG-59 SEG-63"""
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(roll=RollPolicy(max_records=3, min_age_s=0)))
    async with stream.writer() as writer:
        if away == "metadata":
            cluster.metadata.begin_outage()
        else:
            cluster.step = refusing("create_ledger")  # type: ignore[method-assign, assignment]
        with caplog.at_level(logging.WARNING):
            results = [await writer.append(b"%d" % number) for number in range(10)]
            roll = asyncio.ensure_future(writer.roll())
            await asyncio.wait([roll], timeout=60)
            assert isinstance(roll.exception(), StreamNotReadyError)
        assert {result.position.segment for result in results} == {1}
        assert "goes on: it could not be rolled" in caplog.text
        if away == "metadata":
            cluster.metadata.end_outage()
        else:
            cluster.step = lambda name: None  # type: ignore[method-assign]
        await asyncio.sleep(40)
        assert (await writer.append(b"10")).position.segment == 2, "it was rolled by itself"
    assert await values_of(cluster, stream) == numbers(11)
    await check_stream(cluster, stream)


@in_virtual_time
async def test_whoever_asks_for_a_roll_is_told_also_if_the_segment_ends_without_a_record() -> None:
    """The record drops such a segment; its records are written to the next one."""
    cluster = Cluster()
    cluster.kept_after_failure = 0
    broken = [AddTimeoutError("no ack quorum")]
    cluster.breaks = lambda writer, payload: broken.pop() if broken else None
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        first = writer.append_nowait(b"0")
        roll = asyncio.ensure_future(writer.roll())
        async with asyncio.timeout(60):
            with pytest.raises(StreamNotReadyError, match=r"segment 1 of stream .* ended, and is not listed"):
                await roll
        assert (await first).position.segment == 2
        assert (await writer.roll()).number == 2
    assert await values_of(cluster, stream) == numbers(1)
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_store_that_goes_away_in_the_middle_of_a_roll_delays_appends_and_fails_none() -> None:
    """SEG-64: what is queued while segments change is written when they have changed, in order."""
    for at in ("close", "close done"):
        cluster = Cluster()
        stream = await stream_on(cluster)
        async with stream.writer() as writer:
            await writer.append(b"0")

            def away(name: str, cluster: Cluster = cluster, at: str = at) -> None:
                if name == at:
                    cluster.metadata.begin_outage()
                    cluster.step = lambda name: None  # type: ignore[method-assign]

            cluster.step = away  # type: ignore[method-assign]
            roll = asyncio.ensure_future(writer.roll())
            await asyncio.sleep(0.1)
            pending = [writer.append_nowait(b"%d" % number) for number in range(1, 6)]
            await asyncio.sleep(3)
            assert not any(future.done() for future in pending)
            cluster.metadata.end_outage()
            assert [(await future).seq_no for future in pending] == [1, 2, 3, 4, 5]
            assert (await roll).records == 1
        assert await values_of(cluster, stream) == numbers(6)
        await check_stream(cluster, stream)


@in_virtual_time
async def test_what_waits_while_segments_change_is_written_in_order_also_when_the_next_segment_fails_at_once() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    broken: set[int] = set()

    def first_append(writer: FakeWriter, payload: bytes) -> BookKeeperError | None:
        new = 1 < writer.id < 5 and writer.id not in broken
        broken.add(writer.id)
        return AddTimeoutError("no ack quorum") if new else None

    cluster.breaks = first_append
    async with stream.writer() as writer:
        await writer.append(b"0")
        roll = asyncio.ensure_future(writer.roll())
        while cluster.ledgers[1].closed is False:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.0001)
        pending = []
        for number in range(1, 30):
            pending.append(writer.append_nowait(b"%d" % number))
            await asyncio.sleep(0.0002)
        assert [(await future).seq_no for future in pending] == list(range(1, 30))
        assert (await roll).number == 1
        assert broken >= {2, 3, 4}
    assert await values_of(cluster, stream) == numbers(30)
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_segment_whose_ledger_could_not_be_closed_is_not_completed() -> None:
    """SEG-53: closing says so; everything acknowledged is there, and the next writer completes the segment."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    writer = await stream.writer()
    await writer.append(b"0")
    cluster.step = unreachable("close")  # type: ignore[method-assign, assignment]
    with pytest.raises(StreamMetadataError):
        await writer.close()
    assert (await chain_of(stream)).open_segment is not None
    cluster.step = lambda name: None  # type: ignore[method-assign]
    async with (await stream_on(cluster.sibling())).writer() as successor:
        assert successor.next_seq_no == 1
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_flush_waits_for_what_came_before_it_and_not_for_what_comes_after() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        going = True

        async def others() -> None:
            while going:
                writer.append_nowait(b"x")
                await asyncio.sleep(0.0002)

        task = asyncio.ensure_future(others())
        await asyncio.sleep(0.05)
        began = asyncio.get_running_loop().time()
        await writer.flush()
        assert asyncio.get_running_loop().time() - began < 0.01
        going = False
        await task


def unreachable(step: str) -> Callable[[str], None]:
    def refuse(name: str) -> None:
        if name == step:
            raise MetadataUnavailableError("away")

    return refuse


def refusing(step: str) -> Callable[[str], None]:
    def refuse(name: str) -> None:
        if name == step:
            raise BookieUnavailableError("too few bookies")

    return refuse


@in_virtual_time
async def test_changed_replication_holds_for_the_next_segment() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        await writer.append(b"0")
        await asyncio.sleep(2)  # the next ledger is made, with the old replication
        store = stream.client.metadata_store.store
        path = stream.client.metadata_store.own("segments", "streams", stream.id, "config")
        await store.set(path, AT_ONCE.patched({"ensemble": 5, "write_quorum": 3}).encode(), None)
        await writer.roll()
        await writer.append(b"1")
        assert cluster.created[-1]["ensemble"] == 5
    await check_stream(cluster, stream)
    assert set(cluster.ledgers) == set((await chain_of(stream)).ledgers), "the other one was deleted"


# -- other owners -------------------------------------------------------------------------------------------


@in_virtual_time
async def test_an_overtaken_writer_tells_of_every_append_what_became_of_it() -> None:
    """SEG-38 SEG-65: what the new owner found is acknowledged; the rest is not applied, and never will be."""
    for kept in range(4):
        cluster = Cluster()
        stream = await stream_on(cluster)
        first = await stream.writer(owner="first")
        await first.append(b"0")
        cluster.kept_after_failure = kept
        broken = False

        def break_once(writer: FakeWriter, payload: bytes) -> BookKeeperError | None:
            nonlocal broken
            broken, was = True, broken
            return None if was else LedgerFencedError("fenced")

        cluster.breaks = break_once
        futures = []
        for number in range(1, 6):
            futures.append(first.append_nowait(b"%d" % number))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        other = cluster.sibling()
        second = await (await stream_on(other)).writer(owner="second")
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        values = await values_of(cluster, stream)
        for number, outcome in enumerate(outcomes, 1):
            if isinstance(outcome, AppendResult):
                assert b"%d" % number in values
            else:
                assert isinstance(outcome, OwnershipLostError)
                assert outcome.outcome is Outcome.REJECTED
                assert b"%d" % number not in values
        assert (await second.append(b"next")).seq_no == len(values)
        await second.close()
        await check_stream(cluster, stream)
        await asyncio.gather(first.close(), return_exceptions=True)


@in_virtual_time
async def test_who_is_overtaken_while_it_changes_the_segment_settles_each_append_once() -> None:
    """What its own recovery had found was found a second time by the new owner's; a producer's batch was confirmed
    twice, which broke the writer off before it had told the others: they waited for ever."""
    cluster = Cluster()
    cluster.kept_after_failure = 2
    stream = await stream_on(cluster)
    first = await stream.writer(owner="first")
    producer = await Producer.open(first, "p")
    await producer.append(b"0")
    first._watch.close()  # type: ignore[union-attr]  # it hears nothing until it comes to the record itself
    other = await stream_on(cluster.sibling())

    async def overtaken(*arguments: Any) -> int:
        last = await recovered_end(*arguments)
        async with other.writer(owner="second"):
            pass
        return last

    failed = False

    def once(writer: FakeWriter, payload: bytes) -> BookKeeperError | None:
        nonlocal failed
        failed, was = True, failed
        return None if was else AddTimeoutError("no ack quorum")

    futures = []
    cluster.breaks = once
    for number in range(1, 6):
        futures.append(producer.append_nowait(b"%d" % number))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry_output, "recovered_end", overtaken)
        async with asyncio.timeout(60):
            outcomes = await asyncio.gather(*futures, return_exceptions=True)
            await asyncio.gather(first.close(), return_exceptions=True)
    values = await values_of(cluster, stream)
    for number, outcome in enumerate(outcomes, 1):
        assert isinstance(outcome, AppendResult) == (b"%d" % number in values)
        assert isinstance(outcome, AppendResult) or (
            isinstance(outcome, OwnershipLostError) and outcome.outcome is Outcome.REJECTED
        )
    assert (first.pending, first.pending_bytes) == (0, 0)


@in_virtual_time
async def test_a_paused_owner_can_do_nothing_after_it_was_overtaken() -> None:
    """SEG-39 SEG-43: its adds are refused, its steps fail, its close does not complete the segment."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    first = await stream.writer()
    await first.append(b"0")
    first._watch.close()  # type: ignore[union-attr]  # it is paused, and hears nothing
    other = cluster.sibling()
    async with (await stream_on(other)).writer() as second:
        await second.append(b"1")
        zombie = first.append_nowait(b"zombie")
        with pytest.raises(OwnershipLostError):
            await zombie
        assert first.lost.is_set()
        with pytest.raises(StreamError):
            await first.roll()
        await asyncio.gather(first.close(), return_exceptions=True)
        await second.append(b"2")
    assert await values_of(cluster, stream) == numbers(3)
    await check_stream(cluster, stream)
    assert set(cluster.ledgers) == set((await chain_of(stream)).ledgers)


@in_virtual_time
async def test_an_overtaken_owner_that_rolls_leaves_its_ledger_as_it_is() -> None:
    """Whoever has claimed the stream recovers that ledger: nobody else writes a footer to it, or closes it."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    first = await stream.writer()
    await first.append(b"0")
    await asyncio.sleep(2)  # the next ledger is made, so that a roll need not change the node for it
    first._watch.close()  # type: ignore[union-attr]  # it is paused, and hears nothing
    ledger = cluster.ledgers[(await chain_of(stream)).segments[0].ledger_id]
    await StreamOwner.claim((await stream_on(cluster.sibling())).node, "second", "a nonce")
    with pytest.raises(OwnershipLostError):
        await first.roll()
    assert len(ledger.entries) == 1 and not ledger.closed
    await asyncio.gather(first.close(), return_exceptions=True)


@in_virtual_time
async def test_an_overtaken_owner_whose_empty_ledger_was_deleted_is_told_that_it_was_overtaken() -> None:
    """Not that the stream is damaged: the new owner has dropped the segment, which had no record."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    first = await stream.writer()
    first._watch.close()  # type: ignore[union-attr]  # it is paused, and hears nothing
    ledger = (await chain_of(stream)).segments[0].ledger_id
    async with (await stream_on(cluster.sibling())).writer() as second:
        await asyncio.sleep(1)
        assert ledger not in cluster.ledgers
        with pytest.raises(OwnershipLostError):
            await first.close()
        await second.append(b"0")
    await check_stream(cluster, stream)


# -- death at any step --------------------------------------------------------------------------------------


class Story:
    """An idempotent producer that appends numbers, over many lives, each until it is acknowledged."""

    def __init__(self) -> None:
        self.acked: dict[int, Position] = {}

    async def life(self, cluster: Cluster, until: int) -> None:
        config = StreamConfig(
            roll=RollPolicy(max_records=7, min_age_s=0), producers=ProducerPolicy(snapshot_every_bytes=300)
        )
        stream = await stream_on(cluster, config=config)
        async with stream.producer("p") as producer:
            missing = next((n for n in range(until) if n not in self.acked), until)
            futures = {}
            for number in range(max(0, missing - 2), until):
                futures[number] = producer.append_nowait(b"%d" % number, seq=number)
                if number % 2:
                    await asyncio.sleep(0.0007)
            for number, future in futures.items():
                result = await future
                assert self.acked.setdefault(number, result.position) == result.position

    async def check(self, cluster: Cluster) -> None:
        stream = await stream_on(cluster)
        values = await values_of(cluster, stream)
        assert values[: len(self.acked)] == numbers(len(self.acked))
        assert len(values) == len(set(values)), "twice"
        await check_stream(cluster, stream)


@pytest.mark.rule("C1", "C3", "C4", "C5", "C9")
@in_virtual_time
async def test_death_at_any_step_loses_nothing_and_doubles_nothing() -> None:
    """SEG-118: duplicates are known over the death of the owner, with and without a snapshot."""
    deaths = 0
    for at in range(400):
        first = Cluster(at)
        story = Story()
        first.die_after(at)
        if not await first.live(lambda: story.life(first, 12)):  # noqa: B023
            break
        second = first.sibling()
        second.die_after(at % 23)
        deaths += 1 + await second.live(lambda: story.life(second, 16))  # noqa: B023
        third = second.sibling()
        assert not await third.live(lambda: story.life(third, 20))  # noqa: B023
        assert len(story.acked) == 20
        await story.check(third)
    else:
        pytest.fail("the story never came to its end")
    assert deaths > 60


@pytest.mark.rule("C4", "C5")
@in_virtual_time
async def test_any_metadata_reply_that_is_lost_changes_nothing() -> None:
    from tests.journal_manager.backends.bookkeeper.fake import LostReplies

    for lost in range(30):
        cluster = Cluster(lost)
        story = Story()
        await stream_on(cluster)
        cluster.metadata.interference = LostReplies(lost)
        try:
            await asyncio.wait_for(story.life(cluster, 20), 60)
        except StreamError:
            cluster.metadata.interference = None
            await story.life(cluster.sibling(), 20)
        cluster.metadata.interference = None
        await story.check(cluster)
        assert len(story.acked) == 20


@pytest.mark.parametrize("step", ["create_ledger", "open_ledger", "append", "close", "get", "set", "sync", "read"])
@in_virtual_time
async def test_any_step_that_fails_once_is_hidden_or_leaves_a_stream_that_opens(step: str) -> None:
    metadata = step in ("get", "set", "sync")
    for at in range(40):
        cluster = Cluster(at)
        story = Story()
        seen = 0

        def count(name: str) -> None:
            nonlocal seen
            seen += name == step
            if name == step and seen == at + 1:  # noqa: B023
                raise MetadataUnavailableError("away") if metadata else BookieUnavailableError("away")

        cluster.step = count  # type: ignore[method-assign]
        try:
            await story.life(cluster, 20)
        except StreamError:
            pass
        cluster.step = lambda name: None  # type: ignore[method-assign]
        await story.life(cluster.sibling(), 24)
        await story.check(cluster)
        assert len(story.acked) == 24
        if seen <= at:
            break


# -- bugs ---------------------------------------------------------------------------------------------------


def failing_for(word: bytes, monkeypatch: pytest.MonkeyPatch, name: str = "encode_entry") -> None:
    """Have the making of entries fail as a bug would, for those that have this word."""
    real = getattr(entry_sender, name)

    def encode(of: Any, *args: Any, **options: Any) -> bytes:
        if not isinstance(of, RecordColumns) or word in of.values.data:
            raise KeyError("a bug")
        return bytes(real(of, *args, **options))

    monkeypatch.setattr(entry_sender, name, encode)


@in_virtual_time
async def test_an_entry_that_cannot_be_made_ends_the_writer_and_whoever_waits_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cause: what went wrong while an entry was made was raised into a callback of the loop, which logs it. The futures
    of its appends were never resolved, ``close`` waited for them for ever, and later appends came behind the gap."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    failing_for(b"bad", monkeypatch)
    async with asyncio.timeout(60):
        writer = await stream.writer()
        await writer.append(b"good")
        under_way = writer.append_nowait(b"under way")
        await asyncio.sleep(0)
        bad, beside = writer.append_nowait(b"bad"), writer.append_nowait(b"beside it")
        told = await asyncio.gather(under_way, bad, beside, return_exceptions=True)
        assert [type(each) for each in told] == [StreamInvariantError] * 3
        assert [getattr(each, "outcome", None) for each in told] == [
            Outcome.UNKNOWN,
            Outcome.REJECTED,
            Outcome.REJECTED,
        ]
        assert writer.lost.is_set() and not writer.pending_bytes
        with pytest.raises(StreamInvariantError, match="this is a bug, and another writer can go on"):
            await writer.append(b"later")
        await writer.close()
        async with stream.writer() as another:
            await another.append(b"again")
    values = await values_of(cluster, stream)
    assert (values[0], values[-1]) == (b"good", b"again") and not {b"bad", b"beside it", b"later"} & {*values}


@in_virtual_time
async def test_a_bug_between_two_segments_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: as above, for the groups that wait for the next segment, and those that are written again in it."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    broken = 0

    def once(writer: FakeWriter, payload: bytes) -> BookKeeperError | None:
        nonlocal broken
        broken += 1
        return AddTimeoutError("no ack quorum") if broken == 2 else None

    cluster.breaks = once
    async with asyncio.timeout(600):
        writer = await stream.writer()
        await writer.append(b"good")
        futures = []
        for value in (b"first", b"again", b"last"):
            futures.append(writer.append_nowait(value))
            await asyncio.sleep(0)
        failing_for(b"again", monkeypatch)
        while not writer.lost.is_set():
            futures.append(writer.append_nowait(b"meanwhile"))
            await asyncio.sleep(0.001)
        told = await asyncio.gather(*futures, return_exceptions=True)
        assert all(isinstance(each, StreamError) and each.outcome is not Outcome.APPLIED for each in told)
        assert isinstance(told[1], StreamInvariantError) and told[1].outcome is Outcome.REJECTED
        assert not writer.pending_bytes
        await writer.close()
    assert await values_of(cluster, stream) in ([b"good"], [b"good", b"first"])


@in_virtual_time
async def test_a_snapshot_that_cannot_be_made_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: as above, when the entry itself was sent already: what became of it is not known to this writer."""
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(producers=ProducerPolicy(snapshot_every_bytes=4096)))
    failing_for(b"", monkeypatch, "encode_snapshot")
    async with asyncio.timeout(60):
        writer = await stream.writer()
        with pytest.raises(StreamInvariantError) as caught:
            await writer.append(bytes(5000))
        assert caught.value.outcome is Outcome.UNKNOWN
        await writer.close()
        monkeypatch.undo()
        async with stream.writer() as another:
            await another.append(b"again")
    assert (await values_of(cluster, stream))[-1] == b"again"


@in_virtual_time
async def test_a_segment_that_cannot_begin_leaves_nobody_waiting_whose_records_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cause: the snapshot of producers with which a segment begins could not be made. The former segment was left by
    then, and the records that were to be written again in this one were in neither."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with asyncio.timeout(600):
        writer = await stream.writer()
        producer = await Producer.open(writer, "loader")
        await producer.append(b"good")
        failing_for(b"", monkeypatch, "encode_snapshot")
        cluster.breaks = lambda ledger, payload: AddTimeoutError("no ack quorum")
        futures = [producer.append_nowait(b"again"), producer.append_nowait(b"last")]
        told = await asyncio.gather(*futures, return_exceptions=True)
        assert all(isinstance(each, StreamInvariantError) and each.outcome is not Outcome.APPLIED for each in told)
        assert not writer.pending_bytes
        await writer.close()


@pytest.mark.parametrize("broken", ["add_entry", "add_records"])
@in_virtual_time
async def test_who_waits_for_an_entry_that_was_not_taken_note_of_is_told(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug between an acknowledgement and its callers ends the writer, and nobody waits for ever."""
    cluster = Cluster()
    stream = await stream_on(cluster)

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("a bug")

    writer = await stream.writer()
    await writer.append(b"before")
    monkeypatch.setattr(ContentsTally, broken, fail)
    first = writer.append_nowait(b"durable")
    await asyncio.sleep(0.0005)
    behind = writer.append_nowait(b"behind")
    for future in (first, behind):
        with pytest.raises(StreamInvariantError, match="is durable and was not taken note of"):
            await future
    assert isinstance(error := first.exception(), StreamInvariantError) and error.outcome is Outcome.APPLIED
    assert writer.lost.is_set() and not writer.pending_bytes
    monkeypatch.undo()
    await writer.close()
    assert (await values_of(cluster, stream))[:2] == [b"before", b"durable"]


@pytest.mark.parametrize("room", [None, 1])
@in_virtual_time
async def test_an_append_to_the_ledger_that_fails_by_a_bug_ends_the_writer_and_whoever_waits_is_told(
    room: int | None,
) -> None:
    cluster = Cluster()
    cluster.room = room
    stream = await stream_on(cluster)
    writer = await stream.writer()
    await writer.append(b"before")
    cluster.breaks = lambda ledger, payload: ZeroDivisionError("a bug")  # type: ignore[assignment, return-value]
    futures = [writer.append_nowait(b"lost")]
    await asyncio.sleep(0.0005)
    futures.append(writer.append_nowait(b"behind"))
    async with asyncio.timeout(10):
        told = await asyncio.gather(*futures, return_exceptions=True)
    assert [type(each) for each in told] == [StreamInvariantError] * 2
    assert writer.lost.is_set() and not writer.pending_bytes
    await writer.close()
    cluster.breaks = lambda ledger, payload: None
    async with stream.writer() as another:
        await another.append(b"again")
    values = await values_of(cluster, stream)
    assert (values[0], values[-1]) == (b"before", b"again")
