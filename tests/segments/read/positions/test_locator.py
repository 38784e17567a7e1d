"""Finding places on a simulated cluster: positions, numbers, transaction ids, times, the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from segments.entries.columns import RecordColumns
from segments.errors import PositionTruncatedError
from segments.position import EARLIEST, LATEST, Position
from segments.record import Record, from_ms
from segments.seek import Ago, AtSeqNo, AtTime, AtTxId
from tests.segments.read.built_stream import BuiltStream, simulated


async def three_segments(stream: BuiltStream, *, footer: bool) -> list[tuple[int, Position]]:
    """Entries with transaction ids and times that rise, with duplicates at borders; the last segment is open. Returns
    (transaction id, position) of each record; it was appended at the second of its transaction id."""
    found: list[tuple[int, Position]] = []
    txid = 0
    for segment in (1, 2, 3):
        await stream.start()
        for _ in range(12):
            first = txid
            txids = [first, first + 2, first + 2]
            at = stream.entries
            found += [(each, Position(segment, at, slot)) for slot, each in enumerate(txids)]
            await stream.add(3, txids=txids, append_ms=1000 * first)
            if at % 5 == 3:
                await stream.control()
            txid += 2
        if segment < 3:
            await stream.complete(footer=footer)
    return found


@pytest.mark.parametrize("footer", [True, False])
def test_seeks_find_the_first_record_with_footers_and_without(footer: bool) -> None:
    """SEG-69: each transaction id, number and time, also between, below and above them."""

    async def story(stream: BuiltStream) -> None:
        records = await three_segments(stream, footer=footer)
        end = (await stream.locator.end()).position
        assert end > records[-1][1]
        for wanted in range(-1, records[-1][0] + 3):
            expected = next((at for txid, at in records if txid >= wanted), end)
            assert await stream.locator.find(AtTxId(wanted)) == expected, wanted
        for n, (_, position) in enumerate(records):
            assert await stream.locator.find(AtSeqNo(n)) == position
            assert await stream.locator.seq_no(position) == n
        assert await stream.locator.find(AtSeqNo(len(records))) == end
        for second in range(records[-1][0] + 1):
            expected = next((at for txid, at in records if at.slot == 0 and txid >= second), end)
            assert await stream.locator.find(AtTime(from_ms(1000 * second))) == expected

    simulated(story)


def test_a_seek_with_a_footer_reads_few_entries() -> None:
    """SEG-69: the footer names the entry, so nothing is searched."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        for n in range(200):
            await stream.add(1, txids=[n], append_ms=n)
        await stream.complete(footer=True)
        reads = 0
        opened = stream.source.open_segment

        async def counted(segment: object) -> object:
            nonlocal reads
            handle = await opened(segment)  # type: ignore[arg-type]
            assert handle is not None
            inner = handle.read_entry

            async def read_entry(entry_id: int) -> bytes:
                nonlocal reads
                reads += 1
                return await inner(entry_id)

            handle.read_entry = read_entry  # type: ignore[method-assign]
            return handle

        object.__setattr__(stream, "source", _Counting(stream.source, counted))
        stream.locator._source = stream.source
        assert await stream.locator.find(AtTxId(150)) == Position(1, 150, 0)
        assert reads <= 4

    simulated(story)


class _Counting:
    def __init__(self, source: object, open_segment: object) -> None:
        self._source = source
        self.open_segment = open_segment

    def __getattr__(self, name: str) -> object:
        return getattr(self._source, name)


def test_event_times_may_fall() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        for times in ([5, 1], [9, 3], [4, 20]):
            records = [Record(b"%d" % t, event_time=from_ms(t)) for t in times]
            await stream.add(columns=RecordColumns.of_records(records))
        await stream.complete(footer=True)
        find = stream.locator.find
        assert await find(AtTime(from_ms(2), event=True)) == Position(1, 0, 0)
        assert await find(AtTime(from_ms(6), event=True)) == Position(1, 1, 0)
        assert await find(AtTime(from_ms(10), event=True)) == Position(1, 2, 1)
        assert await find(AtTime(from_ms(21), event=True)) == Position(1, 2, 1).next

    simulated(story)


def test_records_are_counted_from_any_position_over_borders_with_control_entries() -> None:
    """SEG-72: in completed segments and in the live one."""

    async def story(stream: BuiltStream) -> None:
        await stream.segment(3, 2)
        await stream.start()
        await stream.control()
        await stream.add(4)
        await stream.control()
        await stream.add(1)
        seq_no = stream.locator.seq_no
        assert [await seq_no(Position(1, 0, slot)) for slot in range(5)] == [0, 1, 2, 3, 3]
        assert await seq_no(Position(1, 1, 1)) == 4
        assert await seq_no(Position(1, 7, 0)) == 5
        assert await seq_no(Position(2, 0, 0)) == await seq_no(Position(2, 1, 0)) == 5
        assert await seq_no(Position(2, 2, 0)) == await seq_no(Position(2, 3, 0)) == 9
        assert await seq_no(Position(2, 9, 0)) == await seq_no(LATEST) == 10
        assert (await stream.locator.end()).seq_no == 10

    simulated(story)


def test_the_end_and_the_last_record_of_any_stream() -> None:
    async def story(stream: BuiltStream) -> None:
        locator = stream.locator
        assert await locator.end() == (EARLIEST, 0)
        assert await locator.last() is None
        await stream.start()
        assert await locator.end() == (EARLIEST, 0)
        await stream.add(2)
        await stream.control()
        last = await locator.last()
        assert last is not None and last.position == Position(1, 0, 1)
        await stream.complete(footer=True)
        assert (await locator.end()) == (Position(1, 0, 2), 2)
        await stream.start()
        last = await locator.last()
        assert last is not None and last.seq_no == 1
        await stream.change(lambda chain: chain.truncate(Position(2, 0, 0), 2))
        assert await locator.last() is None
        assert await locator.find(EARLIEST) == Position(2, 0, 0)

    simulated(story)


def test_a_truncated_position_is_refused_and_other_seeks_lead_to_the_beginning() -> None:
    """SEG-71: the first position after a clean and after a partial truncation."""

    async def story(stream: BuiltStream) -> None:
        await three_segments(stream, footer=True)
        await stream.change(lambda chain: chain.truncate(Position(1, 3, 1), 10))
        find = stream.locator.find
        with pytest.raises(PositionTruncatedError) as caught:
            await find(Position(1, 2, 0))
        assert caught.value.position == Position(1, 3, 1)
        for seek in (EARLIEST, AtSeqNo(3), AtTxId(0), AtTime(from_ms(0)), Ago(timedelta(days=20_000))):
            assert await find(seek) == Position(1, 3, 1), seek

    simulated(story)
