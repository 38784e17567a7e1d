"""Reading a stream on a simulated cluster: catching up, tailing, across segments, with gaps."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import ReadHandle
from segments.chain import StreamSegment
from segments.errors import (
    PositionTruncatedError,
    ReaderIdleError,
    SeekFormatError,
    StreamClosedError,
    StreamGapError,
    StreamNotFoundError,
)
from segments.position import EARLIEST, LATEST, Position
from segments.read.source.stream_source import StreamSource
from segments.record import Gap, GapKind, StoredRecord
from segments.seek import AtSeqNo
from tests.segments.read.built_stream import BuiltStream, numbers, simulated


def test_segments_follow_each_other_with_dense_numbers_and_rising_positions() -> None:
    """SEG-01, SEG-12: the counter continues across segments and readers, and positions rise."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(3, 2)
        await stream.segment(1, 4, footer=True)
        await stream.start()
        await stream.add(5)
        assert await numbers(stream.reader()) == list(range(15))
        async with stream.reader() as reader:
            records = [record async for record in reader if isinstance(record, StoredRecord)]
        positions = [record.position for record in records]
        assert positions == sorted(set(positions))
        assert positions[5] == Position(2, 0, 0) and positions[-1] == Position(3, 0, 4)
        for record in records:
            assert (await numbers(stream.reader(record.position)))[0] == record.seq_no

    simulated(story)


def test_zero_length_values_are_delivered() -> None:
    """SEG-15: an empty value is a record."""

    async def story(stream: BuiltStream) -> None:
        from segments.entries.columns import RecordColumns

        await stream.start()
        await stream.add(columns=RecordColumns.of_values([b"", b"x", b""]))
        async with stream.reader() as reader:
            assert (await reader.next_batch()).values() == [b"", b"x", b""]

    simulated(story)


def test_a_stream_that_is_empty_or_not_yet_written_ends_or_waits() -> None:
    """SEG-67: without ``follow`` an empty stream ends at once; with it the first record is waited for."""

    async def story(stream: BuiltStream) -> None:
        assert await numbers(stream.reader()) == []
        async with stream.reader(follow=True) as reader:
            assert await reader.next(timeout=1) is None
            assert reader.caught_up and not reader.ended
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(5)
            await stream.start()
            await asyncio.sleep(5)
            assert not waiting.done()
            assert await numbers(stream.reader()) == []
            await stream.add()
            record = await waiting
            assert isinstance(record, StoredRecord) and record.seq_no == 0

    simulated(story)


def test_a_missing_stream_is_told() -> None:
    """SEG-67: a stream that does not exist is an error at the first read."""

    async def story(stream: BuiltStream) -> None:
        other = BuiltStream(stream.client, "none")
        with pytest.raises(StreamNotFoundError):
            await other.reader().next()

    simulated(story)


def test_a_position_beyond_the_end_tails_from_there() -> None:
    """SEG-70: also in the middle of an entry that does not exist yet, and in a later segment."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        async with (
            stream.reader(Position(1, 2, 1), follow=True) as inside,
            stream.reader(Position(2, 0, 0), follow=True) as behind,
            stream.reader(LATEST, follow=True) as latest,
        ):
            assert await inside.next(0.5) is await behind.next(0.5) is await latest.next(0.5) is None
            await stream.add(3)
            await stream.add(3)
            await stream.complete()
            await stream.segment(2)
            assert [r.seq_no for r in await inside.next_batch()] == [6, 7]
            assert [r.seq_no for r in await behind.next_batch()] == [8, 9]
            assert [r.seq_no for r in await latest.next_batch()] == [2, 3, 4, 5, 6, 7]
        async with stream.reader(Position(1, 9, 0)) as reader:
            assert [r.seq_no for r in await reader.next_batch()] == [8, 9]

    simulated(story)


def test_a_caught_up_reader_crosses_a_roll_whose_completion_it_learns_late() -> None:
    """SEG-61, SEG-76: the ledger is closed first, the record says so later, and then the next segment comes."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        async with stream.reader(follow=True) as reader:
            assert len(await reader.next_batch()) == 2
            waiting = asyncio.create_task(reader.next_batch())
            await asyncio.sleep(1)
            await stream.add(1)
            assert len(await waiting) == 1
            await stream.complete(record=False)
            assert await reader.next(timeout=10) is None and not reader.ended
            await stream.say_completed()
            await stream.start()
            assert await reader.next(timeout=10) is None
            await stream.add(4)
            assert [record.seq_no for record in await reader.next_batch()] == [3, 4, 5, 6]

    simulated(story)


def test_a_sealed_stream_ends_its_readers() -> None:
    """SEG-51, SEG-96: what remains is read, then waiting reads end."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(2)
        async with stream.reader(follow=True) as reader:
            assert len(await reader.next_batch()) == 2
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(1)
            await stream.change(lambda chain: chain.seal())
            assert await waiting is None and reader.ended
        assert await numbers(stream.reader(follow=True)) == [0, 1]

    simulated(story)


def test_bulk_reads_collect_or_return_early() -> None:
    """SEG-73: with ``wait`` a batch is filled until the time is over; without it what is there is returned."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        async with stream.reader(follow=True) as reader:
            assert len(await reader.next_batch(10)) == 2

            async def later() -> None:
                for _ in range(4):
                    await asyncio.sleep(1)
                    await stream.add(2)

            writing = asyncio.create_task(later())
            assert len(await reader.next_batch(10, wait=2.5)) == 4
            assert len(await reader.next_batch(3, wait=60)) == 3
            await writing
            assert len(await reader.next_batch(10, wait=0.5)) == 1
            assert len(await reader.next_batch(10, wait=0.5)) == 0

    simulated(story)


def test_a_batch_is_limited_in_records_and_in_bytes_and_has_at_least_one_record() -> None:
    """SEG-91: a limit in bytes below one record still gives one."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(10, 10)
        async with stream.reader() as reader:
            assert len(await reader.next_batch(4)) == 4
            assert len(await reader.next_batch(100, max_bytes=1)) == 1
            batch = await reader.next_batch(100)
            assert [record.seq_no for record in batch] == list(range(5, 20))
            assert batch.values() == [b"%d" % n for n in range(5, 20)]
            assert (batch.first_seq_no, batch.end_seq_no) == (5, 20)
            assert batch.first == Position(1, 0, 5) and batch.last == Position(1, 1, 9)
            assert not await reader.next_batch() and reader.ended

    simulated(story)


def test_stop_is_not_read() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(3, 3)
        await stream.segment(3, 3)
        for stop in range(13):
            assert await numbers(stream.reader(stop=AtSeqNo(stop))) == list(range(min(stop, 12)))
        assert await numbers(stream.reader(AtSeqNo(5), stop=Position(2, 0, 0), follow=True)) == [5]
        assert await numbers(stream.reader(stop=LATEST)) == list(range(12))

    simulated(story)


def test_cancelling_a_read_loses_nothing_and_closing_ends_it() -> None:
    """SEG-74: after a cancelled read the next one goes on at the same record; a closed reader raises."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(*[1] * 50)
        await stream.start()
        await stream.add(1)
        async with stream.reader(follow=True) as reader:
            seen: list[int] = []
            for pause in range(200):
                task = asyncio.create_task(reader.next_batch(1))
                for _ in range(pause % 40):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    seen += [record.seq_no for record in await task]
                except asyncio.CancelledError:
                    pass
            while len(seen) < 51:
                seen += [record.seq_no for record in await reader.next_batch()]
            assert seen == list(range(51))
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(1)
            with pytest.raises(RuntimeError, match="two tasks"):
                await reader.next()
            await reader.close()
            with pytest.raises(StreamClosedError):
                await waiting
            with pytest.raises(StreamClosedError):
                await reader.next()

    simulated(story)


def test_a_batch_that_is_cancelled_while_it_collects_comes_next_again() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(*[1] * 5)
        await stream.start()
        await stream.add(1)
        async with stream.reader(follow=True) as reader:
            assert len(await reader.next_batch(2)) == 2
            collecting = asyncio.create_task(reader.next_batch(9, wait=60))
            await asyncio.sleep(1)
            collecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await collecting
            assert not reader.caught_up
            assert [record.seq_no for record in await reader.next_batch(3)] == [2, 3, 4]
            assert (await reader.next()).seq_no == 5  # type: ignore[union-attr]

    simulated(story)


def test_a_batch_that_is_cancelled_as_the_reader_is_closed_does_not_come_again() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(*[1] * 5)
        await stream.start()
        reader = stream.reader(follow=True)
        collecting = asyncio.create_task(reader.next_batch(9, wait=60))
        await asyncio.sleep(1)
        collecting.cancel()
        await reader.close()
        await asyncio.wait([collecting])
        with pytest.raises(StreamClosedError):
            await reader.next()

    simulated(story)


def test_a_seek_is_refused_while_another_task_reads() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(1, 1)
        await stream.start()
        async with stream.reader(follow=True) as reader:
            await reader.next_batch()
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(1)
            with pytest.raises(RuntimeError, match="seeks while another one reads"):
                await reader.seek(EARLIEST)
            await stream.add(1)
            assert (await waiting).seq_no == 2  # type: ignore[union-attr]
            with pytest.raises(SeekFormatError):
                await reader.seek("earliest")  # type: ignore[arg-type]
            await reader.seek(EARLIEST)
            assert (await reader.next()).seq_no == 0  # type: ignore[union-attr]

    simulated(story)


def test_non_blocking_reads_never_wait_and_never_skip() -> None:
    """SEG-82: a read with no time returns what is there, while catching up and at the end."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(*[2] * 20)
        await stream.start()
        async with stream.reader(follow=True) as reader:
            seen: list[int] = []
            for turn in range(400):
                began = asyncio.get_running_loop().time()
                record = await reader.next(timeout=0)
                if isinstance(record, StoredRecord):
                    seen.append(record.seq_no)
                else:
                    assert asyncio.get_running_loop().time() - began < 1
                    await asyncio.sleep(0.01)
                if turn % 50 == 49:
                    await stream.add(1)
            while isinstance(record := await reader.next(timeout=1), StoredRecord):
                seen.append(record.seq_no)
            assert seen == list(range(48))

    simulated(story)


def test_seeking_forgets_what_was_fetched() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(5, 5)
        await stream.segment(5)
        async with stream.reader(follow=True) as reader:
            await reader.next_batch(3)
            await reader.seek(AtSeqNo(12))
            assert [record.seq_no for record in await reader.next_batch()] == [12, 13, 14]
            await reader.seek(EARLIEST)
            assert [record.seq_no for record in await reader.next_batch(2)] == [0, 1]
            assert reader.position == Position(1, 0, 2)

    simulated(story)


def test_truncated_records_are_a_gap_at_the_head() -> None:
    """SEG-71, SEG-80: a partly and a wholly truncated first segment; the earliest is where the stream begins now."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(3, 3)
        await stream.segment(3, 3)
        async with stream.reader(follow=True, on_gap="yield") as live:
            await live.next_batch(2)
            await stream.change(lambda chain: chain.truncate(Position(1, 1, 1), 4))
            assert await numbers(stream.reader()) == list(range(4, 12))
            with pytest.raises(PositionTruncatedError) as caught:
                await numbers(stream.reader(Position(1, 0, 1)))
            assert caught.value.position == Position(1, 1, 1)
            async with stream.reader(Position(1, 0, 1), on_gap="yield") as reader:
                gap = await reader.next()
                assert gap == Gap(Position(1, 0, 1), Position(1, 1, 0), GapKind.TRUNCATED, 3, gap.detail)  # type: ignore[union-attr]
                assert (await reader.next_batch())[0].seq_no == 4
            await stream.change(lambda chain: chain.truncate(Position(2, 0, 0), 6))
            chain = await stream.change(lambda chain: chain.remove(1))
            await stream.client.delete_ledger(chain.removing[0].ledger_id)
            assert await numbers(stream.reader()) == list(range(6, 12))
            assert await numbers(stream.reader(Position(1, 0, 0))) == list(range(6, 12))
            seen: list[object] = []
            while len(seen) < 20 and (item := await live.next(timeout=1)) is not None:
                seen.append(item.kind if isinstance(item, Gap) else item.seq_no)
            assert [each for each in seen if isinstance(each, int)][-6:] == list(range(6, 12))
            assert seen[:4] == [2, 3, 4, 5] or GapKind.TRUNCATED in seen

    simulated(story)


@pytest.mark.parametrize(
    ("start", "beginning", "seq_no", "missing"),
    [
        (Position(1, 0, 0), Position(2, 0, 0), 6, 6),
        (Position(1, 1, 0), Position(2, 0, 0), 6, None),
        (Position(1, 1, 1), Position(2, 1, 0), 8, None),
        (Position(1, 1, 1), Position(3, 0, 0), 12, None),
    ],
)
def test_a_segment_that_is_removed_while_a_reader_enters_it_is_a_gap(
    start: Position, beginning: Position, seq_no: int, missing: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that began within it went on behind it, and told nothing; another was told that the records are lost."""

    async def story(stream: BuiltStream) -> None:
        for _ in range(3):
            await stream.segment(2, 2, 2)
        opening = StreamSource.open_segment

        async def removed_before(self: StreamSource, segment: StreamSegment) -> ReadHandle | None:
            monkeypatch.undo()
            await stream.change(lambda chain: chain.truncate(beginning, seq_no))
            for gone in (await stream.change(lambda chain: chain.remove(beginning.segment - 1))).removing:
                await stream.client.delete_ledger(gone.ledger_id)
            return await opening(self, segment)

        monkeypatch.setattr(StreamSource, "open_segment", removed_before)
        async with stream.reader(start, on_gap="yield") as reader:
            gap = await reader.next()
            assert isinstance(gap, Gap) and (gap.kind, gap.first, gap.records) == (GapKind.TRUNCATED, start, missing)
            assert [each.seq_no async for each in reader if isinstance(each, StoredRecord)] == list(range(seq_no, 18))

    simulated(story)


def test_broken_entries_fail_by_default_and_are_skipped_or_told_when_asked() -> None:
    """SEG-79: also at a segment's end, across its border, and at the live end."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        await stream.raw(b"no entry of a stream")
        stream.next_seq_no += 3
        stream.records += 3
        await stream.add(2)
        await stream.raw(b"neither is this")
        stream.next_seq_no += 1
        stream.records += 1
        stream.last = (stream.entries - 1, 0)
        await stream.complete()
        await stream.start()
        await stream.add(1)
        assert await numbers(stream.reader(on_gap="skip")) == [0, 1, 5, 6, 8]
        async with stream.reader(on_gap="yield") as reader:
            found = [item async for item in reader]
        gaps = [item for item in found if isinstance(item, Gap)]
        assert [(gap.kind, gap.records, gap.first) for gap in gaps] == [
            (GapKind.CORRUPT, 3, Position(1, 1, 0)),
            (GapKind.CORRUPT, 1, Position(1, 3, 0)),
        ]
        async with stream.reader() as strict:
            assert len(await strict.next_batch()) == 2
            for _ in range(2):
                with pytest.raises(StreamGapError) as caught:
                    await strict.next()
            assert caught.value.position == Position(1, 1, 0)
            await strict.seek(gaps[0].last.next)
            assert [record.seq_no for record in await strict.next_batch()] == [5, 6]
        async with stream.reader(follow=True, on_gap="yield") as live:
            while (await live.next(timeout=1)) is not None:
                pass
            await stream.raw(b"broken")
            gap = await live.next(timeout=10)
            assert isinstance(gap, Gap) and gap.records is None and gap.first == Position(2, 1, 0)

    simulated(story)


def test_records_that_no_entry_has_are_lost_and_told() -> None:
    """SEG-79: a number that is missing is noticed although every entry can be read."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        await stream.add(2, lost=5)
        stream.records += 5
        await stream.complete()
        async with stream.reader(on_gap="yield") as reader:
            gaps = [item async for item in reader if isinstance(item, Gap)]
        assert [(gap.kind, gap.records) for gap in gaps] == [(GapKind.LOST, 5)]

    simulated(story)


def test_a_segment_whose_ledger_is_gone_is_a_gap() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.segment(2)
        await stream.segment(3)
        await stream.segment(2)
        await stream.client.delete_ledger((await stream.chain()).segments[1].ledger_id)
        assert await numbers(stream.reader(on_gap="skip")) == [0, 1, 5, 6]
        async with stream.reader(on_gap="yield") as reader:
            gaps = [item async for item in reader if isinstance(item, Gap)]
        assert [(gap.kind, gap.records) for gap in gaps] == [(GapKind.LOST, 3)]

    simulated(story)


def test_control_entries_are_not_seen_and_lose_nothing() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.control()
        await stream.add(2)
        await stream.control()
        await stream.raw(b"a broken control entry")
        await stream.add(2)
        assert await numbers(stream.reader()) == [0, 1, 2, 3]

    simulated(story)


def test_a_record_in_pieces_comes_whole_wherever_reading_begins() -> None:
    """SEG-76: also from a position at one of its later pieces; unfinished pieces are no record."""
    value = bytes(range(256)) * 10_000

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(1)
        await stream.add_pieces(value)
        await stream.add(1)
        await stream.add_pieces(value, upto=2)
        await stream.complete()
        for start in (EARLIEST, Position(1, 1, 0), Position(1, 2, 0), Position(1, 3, 0), AtSeqNo(1)):
            async with stream.reader(start) as reader:
                records = [record async for record in reader if isinstance(record, StoredRecord)]
            assert [record.seq_no for record in records] == ([0, 1, 2] if start == EARLIEST else [1, 2])
            assert records[-2].value == value and records[-2].position == Position(1, 3, 0)

    simulated(story)


def test_deleting_the_stream_under_a_reader_is_told() -> None:
    """SEG-81: a reader that waits gets the error, and one that reads, too."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(2)
        async with stream.reader(follow=True) as reader:
            await reader.next_batch()
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(1)
            await stream.node.store.delete(stream.node.path, None)
            with pytest.raises(StreamNotFoundError):
                await waiting

    simulated(story)


def test_a_lost_notification_is_repaired_by_the_look_of_an_idle_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEG-77: the record's watch never fires, and the reader goes on all the same."""

    class Deaf:
        def close(self) -> None: ...

    async def story(stream: BuiltStream) -> None:
        await stream.segment(2)
        monkeypatch.setattr(stream.node, "watch", lambda callback: Deaf())
        async with stream.reader(follow=True, look_s=5.0) as reader:
            await reader.next_batch()
            waiting = asyncio.create_task(reader.next())
            await asyncio.sleep(1)
            await stream.segment(1)
            began = asyncio.get_running_loop().time()
            record = await waiting
            assert isinstance(record, StoredRecord) and record.seq_no == 2
            assert asyncio.get_running_loop().time() - began <= 6

    simulated(story)


def test_an_idle_error_fires_when_nothing_comes_and_not_before() -> None:
    """SEG-78: the reader says so after the given time, and can go on."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(1)
        async with stream.reader(follow=True, idle_error_s=10.0) as reader:
            for _ in range(5):
                await reader.next_batch()
                writing = asyncio.create_task(asyncio.sleep(8))
                await writing
                await stream.add(1)
            await reader.next_batch()
            began = asyncio.get_running_loop().time()
            with pytest.raises(ReaderIdleError):
                await reader.next()
            assert 9.9 <= asyncio.get_running_loop().time() - began <= 11
            await stream.add(1)
            assert isinstance(await reader.next(), StoredRecord)

    simulated(story)


def test_two_streams_read_in_turn_under_rolls_stay_consistent() -> None:
    """SEG-84: two readers, alternating, while both streams roll."""

    async def story(stream: BuiltStream) -> None:
        other = BuiltStream(stream.client, "other")
        from segments.chain import StreamChain

        await other.node.create_if_absent(StreamChain(stream_id="other").claim("test", "n"))

        async def write(one: BuiltStream) -> None:
            for _ in range(6):
                await one.segment(2, 1)
                await asyncio.sleep(0.3)

        writing = [asyncio.create_task(write(one)) for one in (stream, other)]
        async with stream.reader(follow=True) as first, other.reader(follow=True) as second:
            for n in range(18):
                for reader in (first, second):
                    record = await reader.next()
                    assert isinstance(record, StoredRecord) and record.seq_no == n
        await asyncio.gather(*writing)

    simulated(story)


def test_what_a_batch_has_collected_is_not_lost_with_an_error() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        async with stream.reader(follow=True, idle_error_s=2) as reader:
            assert len(await reader.next_batch(10, wait=60)) == 2
            with pytest.raises(ReaderIdleError):
                await reader.next_batch(10, wait=60)
            await stream.add()
            assert len(await reader.next_batch(1, wait=60)) == 1

    simulated(story)
