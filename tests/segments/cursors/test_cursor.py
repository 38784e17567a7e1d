"""Cursors on a simulated cluster: reading, acknowledging, moving, backlog, owners, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from bookkeeper.meta.store import Version
from segments.chain import StreamChain
from segments.cursors.acked_ranges import Mark
from segments.cursors.cursor import Cursor
from segments.cursors.cursor_node import CursorNode, read_cursors
from segments.cursors.cursor_state import CursorState
from segments.errors import (
    CursorConflictError,
    CursorFullError,
    CursorNotFoundError,
    CursorVersionError,
    PositionFormatError,
    PositionTruncatedError,
    StreamClosedError,
    StreamCorruptError,
    StreamNameError,
)
from segments.position import EARLIEST, LATEST, Position
from segments.read import StreamReading
from segments.record import StoredRecord
from segments.seek import AtCursor, AtSeqNo, Seek
from tests.segments.read.built_stream import BuiltStream, numbers, simulated

Make = Callable[..., Cursor]


def with_cursors(story: Callable[[BuiltStream, Make], Awaitable[None]]) -> None:
    """Run a story with a stream of two segments with ten records each, in entries of five."""

    async def run(stream: BuiltStream) -> None:
        def make(name: str = "c", *, start: Seek = EARLIEST, **options: object) -> Cursor:
            async def find_cursor(name: str) -> Mark:
                return (await Cursor(reading, stream.node, name).state()).mark

            reading = StreamReading(stream.client, stream.node, find_cursor)
            return Cursor(reading, stream.node, name, start=start, **options)  # type: ignore[arg-type]

        await stream.segment(5, 5)
        await stream.segment(5, 5)
        await story(stream, make)

    simulated(run)


async def batch_of(cursor: Cursor, count: int = 100) -> list[StoredRecord]:
    async with cursor.read() as reader:
        return (await reader.next_batch(count, wait=5)).records()


def test_a_cursor_persists_lists_and_begins_where_it_is_told() -> None:
    """SEG-86: an unknown name begins at the lower bound, or at the given start; the position survives."""

    async def story(stream: BuiltStream, make: Make) -> None:
        with pytest.raises(CursorNotFoundError):
            await make().position()
        async with make() as cursor, make("late", start=AtSeqNo(12)) as late:
            records = await batch_of(cursor, 7)
            assert [record.seq_no for record in records] == list(range(7))
            await cursor.advance(records[-1])
            assert (await batch_of(late))[0].seq_no == 12
        assert await make().position() == records[-1].position.next
        states = await read_cursors(stream.client.metadata_store, "built", "built")
        assert {name: state.mark.seq_no for name, state in states.items()} == {"c": 7, "late": 12}
        async with make() as again:
            assert [record.seq_no for record in await batch_of(again)] == list(range(7, 20))
        for bad in ("", "a b"):
            with pytest.raises(StreamNameError):
                make(bad)

    with_cursors(story)


def test_acknowledgements_out_of_order_survive_close_and_crash() -> None:
    """SEG-87: what is done is not read again, whatever came before it."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            records = await batch_of(cursor)
            await cursor.ack(records[3], records[12], records[4])
            await cursor.ack(records[11].position, records[0])
        crashed = await make().open()
        await crashed.ack(*records[15:18])
        async with make() as cursor:
            left = [1, 2, *range(5, 11), 13, 14, 18, 19]
            assert [record.seq_no for record in await batch_of(cursor)] == left
            await cursor.ack(*(records[n] for n in left))
            assert await cursor.position() == records[19].position.next
            assert await batch_of(cursor) == []
        with pytest.raises(CursorConflictError):
            await crashed.ack(records[1])

    with_cursors(story)


def test_batches_are_acknowledged_whole() -> None:
    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            async with cursor.read() as reader:
                first, second = await reader.next_batch(7, wait=1), await reader.next_batch(6, wait=1)
            await cursor.ack(second)
            assert (await cursor.state()).ranges.records == 6
            await cursor.ack(first)
            assert (await cursor.state()).mark.seq_no == 13
            await cursor.advance(Position(2, 1, 1))
            assert (await cursor.state()).mark == (17, Position(2, 1, 2))
            await cursor.advance(await stream_end(stream))
            assert (await cursor.state()).mark.seq_no == 20
            with pytest.raises(ValueError, match="no record"):
                await cursor.ack(Position(2, 1, 9))

    with_cursors(story)


async def stream_end(stream: BuiltStream) -> Position:
    return (await stream.locator.end()).position


def test_whoever_opens_a_cursor_fences_its_former_owner() -> None:
    async def story(stream: BuiltStream, make: Make) -> None:
        one = await make(owner="one").open()
        two = await make(owner="two").open()
        with pytest.raises(CursorConflictError) as caught:
            await one.advance(Position(1, 0, 0))
        assert caught.value.owner == "two"
        await two.advance(Position(1, 0, 0), expect=EARLIEST)
        with pytest.raises(CursorConflictError, match="not at"):
            await two.advance(Position(1, 0, 4), expect=EARLIEST)
        with pytest.raises(CursorConflictError, match="in use by two"):
            await make().reset(EARLIEST)
        await make().reset(EARLIEST, force=True)
        with pytest.raises(CursorConflictError):
            await two.advance(Position(1, 0, 4))
        assert (await make().state()).owner == ""
        with pytest.raises(StreamClosedError):
            make().read()

    with_cursors(story)


def test_many_acknowledgements_at_once_share_writes() -> None:
    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            records = await batch_of(cursor)
            before = (await cursor.state()).version.number
            await asyncio.gather(*(cursor.ack(record) for record in records))
            state = await cursor.state()
            assert state.mark.seq_no == 20 and state.version.number - before <= 2

    with_cursors(story)


def test_acknowledgements_that_nobody_waits_for_are_stored_in_time() -> None:
    """SEG-92: after a while without anything else, and at the end."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make(save_every_s=2.0) as cursor:
            records = await batch_of(cursor)
            await cursor.ack_later(*records[:3])
            assert (await cursor.state()).mark.seq_no == 0
            await asyncio.sleep(3)
            assert (await cursor.state()).mark.seq_no == 3
            await cursor.ack_later(records[3])
            await cursor.flush()
            assert (await cursor.state()).mark.seq_no == 4
            await cursor.ack_later(records[4])
        assert (await make().state()).mark.seq_no == 5

    with_cursors(story)


def test_too_many_holes_are_refused_told_once_and_filled_later(caplog: pytest.LogCaptureFixture) -> None:
    """SEG-97: refused, never dropped; the crossing is logged once, and counted."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make(ranges_max=3) as cursor:
            records = await batch_of(cursor)
            await cursor.ack(records[2], records[4], records[6])
            for n in (8, 10):
                with pytest.raises(CursorFullError, match="in between"):
                    await cursor.ack(records[n])
            assert cursor.refused == 2
            assert sum("takes no more" in entry.message for entry in caplog.records) == 1
            await cursor.ack_later(records[8])
            with pytest.raises(CursorFullError):
                await cursor.flush()
            await cursor.ack(records[3])
            await cursor.flush()
            state = await cursor.state()
            assert [each[:2] for each in state.ranges] == [(2, 5), (6, 7), (8, 9)]

    with_cursors(story)


def test_reset_history_and_restore() -> None:
    """SEG-89: a second reset is refused while one runs; the history brings back what a reset forgot."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            records = await batch_of(cursor)
            await cursor.advance(records[9])
            await cursor.ack(records[12])
            moved = (await cursor.state()).version
            resetting = asyncio.create_task(cursor.reset(AtSeqNo(5)))
            await asyncio.sleep(0)
            with pytest.raises(CursorConflictError, match="being reset"):
                await cursor.reset(EARLIEST)
            with pytest.raises(CursorConflictError, match="being reset"):
                await cursor.ack(records[1])
            assert await resetting == records[5].position
            assert [record.seq_no for record in await batch_of(cursor)] == list(range(5, 20))
            history = await cursor.history()
            assert moved in history and history[0].mark.seq_no == 5
            await cursor.restore(moved)
            assert [record.seq_no for record in await batch_of(cursor)] == [10, 11, *range(13, 20)]
            with pytest.raises(CursorVersionError):
                await cursor.restore(77)

    with_cursors(story)


def _removed_on(monkeypatch: pytest.MonkeyPatch, method: str, stream: BuiltStream) -> None:
    """The first segment goes at the moment at which a cursor's place is about to be stored."""
    plain = getattr(CursorNode, method)

    async def late(record: CursorNode, *arguments: object, **options: object) -> object:
        if (await stream.chain()).find(1) is not None:
            await stream.change(lambda chain: chain.truncate(Position(2, 0, 0), 10).remove(1))
        return await plain(record, *arguments, **options)

    monkeypatch.setattr(CursorNode, method, late)


def test_a_new_cursor_needs_nothing_that_was_removed_before_it_was_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that begins wherever the stream does begins later; a place that is gone is an error, and no cursor stays."""

    async def story(stream: BuiltStream, make: Make) -> None:
        with monkeypatch.context() as patched:
            _removed_on(patched, "create", stream)
            async with make() as cursor:
                assert await cursor.position() == Position(2, 0, 0)

    with_cursors(story)

    async def refused(stream: BuiltStream, make: Make) -> None:
        with monkeypatch.context() as patched:
            _removed_on(patched, "create", stream)
            with pytest.raises(PositionTruncatedError):
                await make(start=Position(1, 1, 0)).open()
        assert await read_cursors(stream.client.metadata_store, "built", "built") == {}

    with_cursors(refused)


def test_a_cursor_that_another_reader_has_by_now_is_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever made it found its place gone and deleted it, without a look whether somebody had opened it meanwhile:
    what that one acknowledged was lost."""

    async def story(stream: BuiltStream, make: Make) -> None:
        other = make()
        kept = Cursor._is_retained

        async def late(self: Cursor, mark: Mark) -> bool:
            if self is not other and other.refused == 0 and not opened:
                opened.append(await other.open())
                await other.advance(Position(1, 0, 2))
                return False
            return await kept(self, mark)

        opened: list[Cursor] = []
        monkeypatch.setattr(Cursor, "_is_retained", late)
        assert not await make().make()
        await other.advance(Position(1, 0, 3))
        assert (await other.state()).mark.seq_no == 4
        await other.close()

    with_cursors(story)


@pytest.mark.parametrize("change", ["reset", "restore", "properties", "open"])
def test_a_cursor_that_is_claimed_meanwhile_is_not_taken_over_without_force(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That nobody had it was read, and then it was claimed from whoever had it by then."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make():
            pass
        owner = make(owner="billing-1")
        read = CursorNode.read_created

        async def late(self: CursorNode) -> tuple[CursorState, Version, int]:
            found = await read(self)
            if not claimed:
                claimed.append(True)
                await owner.open()
            return found

        claimed: list[bool] = []
        monkeypatch.setattr(CursorNode, "read_created", late)
        changes: dict[str, Callable[[Cursor], Awaitable[object]]] = {
            "reset": lambda cursor: cursor.reset(LATEST),
            "restore": lambda cursor: cursor.restore(1),
            "properties": lambda cursor: cursor.set_properties({"a": "b"}),
            "open": lambda cursor: cursor.open(if_free=True),
        }
        with pytest.raises(CursorConflictError, match="in use by billing-1"):
            await changes[change](make(owner="other"))
        await owner.advance(Position(1, 0, 3))
        await owner.close()

    with_cursors(story)


def test_a_cursor_that_was_mended_meanwhile_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """That its record is damaged was read, and then whatever was there was replaced."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            path = cursor.path
        whole = (await stream.node.store.get(path)).value
        await stream.node.store.set(path, b"damaged", None)
        overwrite = CursorNode.overwrite

        async def late(self: CursorNode, state: CursorState) -> None:
            await stream.node.store.set(path, whole, None)
            await overwrite(self, state)

        monkeypatch.setattr(CursorNode, "overwrite", late)
        with pytest.raises(CursorConflictError, match="replaced by someone else"):
            await make().reset(LATEST, force=True)
        assert (await stream.node.store.get(path)).value == whole

    with_cursors(story)


def test_a_reset_to_a_place_that_goes_meanwhile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stream: BuiltStream, make: Make) -> None:
        async with make(start=LATEST) as cursor:
            with monkeypatch.context() as patched:
                _removed_on(patched, "write", stream)
                assert await cursor.reset(EARLIEST) == Position(2, 0, 0)
            assert [record.seq_no for record in await batch_of(cursor)] == list(range(10, 20))

    with_cursors(story)

    async def refused(stream: BuiltStream, make: Make) -> None:
        async with make(start=LATEST) as cursor:
            _removed_on(monkeypatch, "write", stream)
            with pytest.raises(PositionTruncatedError):
                await cursor.reset(Position(1, 1, 0))

    with_cursors(refused)


def test_skipping_counts_or_ignores_what_is_acknowledged() -> None:
    """SEG-90."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            records = await batch_of(cursor)
            await cursor.ack(*records[2:6])
            assert await cursor.skip(3) == records[7].position
            await cursor.reset(EARLIEST)
            await cursor.ack(*records[2:6])
            assert await cursor.skip(3, count_acked=True) == records[5].position.next
            assert await cursor.skip(1000) == await stream_end(stream)

    with_cursors(story)


def test_the_backlog_with_holes_and_after_truncation() -> None:
    """SEG-94: the quick and the precise backlog agree, also after truncation and with a live segment."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            assert (await cursor.backlog()).records == 20
            records = await batch_of(cursor)
            await cursor.advance(records[4])
            await cursor.ack(*records[10:13])
            await stream.start()
            await stream.add(4)
            for precise in (False, True):
                lag = await cursor.backlog(precise=precise)
                assert lag.records == 16 and lag.bytes > 0 and (lag.seconds is not None) is precise
            for slot, start_seq_no in ((2, 7), (3, None)):
                await stream.change(partial(StreamChain.truncate, before=Position(1, 1, slot), seq_no=start_seq_no))
                assert (await cursor.backlog()).records == (await cursor.backlog(precise=True)).records == 16 - slot
            await cursor.advance(LATEST)
            assert await cursor.backlog(precise=True) == (0, 0, 0.0)

    with_cursors(story)


@pytest.mark.rule("C4")
@pytest.mark.parametrize("how", ["advance", "reset", "start"])
def test_a_cursor_is_never_beyond_the_end(how: str) -> None:
    """It was put there: at LATEST for ever, so that what was appended later was never read, and counted as done for
    retention; or a few entries beyond the end, and those were passed over."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async def move(name: str, to: Position) -> None:
            if how == "start":
                await make(name, start=to).make()
                return
            async with make(name) as cursor:
                await getattr(cursor, how)(to)

        async def beyond(name: str, *positions: Position) -> None:
            for to in positions:
                with pytest.raises(PositionFormatError, match="beyond the end"):
                    await move(name, to)

        await move("closed", LATEST)
        await move("next", Position(3, 0, 0))
        await beyond("none", Position(3, 0, 1), Position(4, 0, 0))
        await stream.start()
        await stream.add(4)
        await move("open", LATEST)
        await move("end", Position(3, 1, 0))
        await move("behind", Position(3, 0, 4))
        await beyond("none", Position(3, 1, 1), Position(3, 2, 0), Position(4, 0, 0))
        for _ in range(3):
            await stream.add(4)
        for name in ("closed", "next", "open", "end", "behind"):
            async with make(name) as cursor:
                first = 20 if name in ("closed", "next") else 24
                assert [record.seq_no for record in await batch_of(cursor)] == list(range(first, 36)), name
                assert (await cursor.backlog()).records == 36 - first

    with_cursors(story)


@pytest.mark.rule("C4")
def test_a_cursor_that_an_earlier_version_has_put_at_latest_goes_on_where_the_end_was() -> None:
    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            await cursor._held().change(lambda state: state.reset(Mark(15, LATEST), 0))
        async with make() as cursor:
            assert [record.seq_no for record in await batch_of(cursor)] == list(range(15, 20))
            assert (await make().state()).mark == Mark(15, Position(2, 1, 0))

    with_cursors(story)


def test_a_cursor_below_the_truncated_is_told_and_nothing_is_passed_over_silently() -> None:
    """SEG-80: also one that has never moved; a reset to the beginning goes on."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            await stream.change(lambda chain: chain.truncate(Position(1, 1, 0), 5))
            with pytest.raises(PositionTruncatedError):
                await batch_of(cursor)
            async with cursor.read(on_gap="skip") as reader:
                assert (await reader.next_batch())[0].seq_no == 5
                assert reader.skipped_gaps == 1
            await cursor.reset(EARLIEST)
            assert (await batch_of(cursor))[0].seq_no == 5
            assert await cursor.position() == Position(1, 1, 0)

    with_cursors(story)


def test_a_damaged_cursor_is_an_error_until_it_is_reset_by_force() -> None:
    """SEG-88: never another place, and nothing is lost but by order."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            path = cursor.path
        await stream.node.store.set(path, b"damaged", None)
        with pytest.raises(StreamCorruptError):
            await make().open()
        with pytest.raises(StreamCorruptError):
            await make().reset(EARLIEST)
        await make().reset(AtSeqNo(3), force=True)
        async with make() as cursor:
            assert (await batch_of(cursor))[0].seq_no == 3

    with_cursors(story)


def test_deleting_a_cursor_that_is_gone_succeeds() -> None:
    """SEG-95."""

    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            await make().delete()
            with pytest.raises(CursorNotFoundError):
                await cursor.advance(Position(1, 0, 0))
            await cursor.abandon()
        await make().delete()
        with pytest.raises(CursorNotFoundError):
            await make().delete(missing_ok=False)
        with pytest.raises(CursorNotFoundError):
            await make(create=False).open()

    with_cursors(story)


def test_properties_and_reading_the_stream_from_a_cursor() -> None:
    async def story(stream: BuiltStream, make: Make) -> None:
        async with make() as cursor:
            assert await cursor.set_properties({"job": "billing", "x": "1"}) == {"job": "billing", "x": "1"}
            await cursor.set_properties({"x": None})
            await cursor.advance(Position(2, 0, 1))
            assert await cursor.properties() == {"job": "billing"}
            reading = cursor.reading
            assert await reading.locator.find(AtCursor("c")) == Position(2, 0, 2)
            assert (await numbers(reading.read(AtCursor("c"))))[0] == 12

    with_cursors(story)


def test_a_sealed_stream_ends_a_cursors_reader() -> None:
    """SEG-96: what remains is read, then the reader ends."""

    async def story(stream: BuiltStream, make: Make) -> None:
        await stream.change(lambda chain: chain.seal())
        async with make(start=AtSeqNo(18)) as cursor, cursor.read(follow=True) as reader:
            assert len(await reader.next_batch()) == 2
            assert await reader.next() is None and reader.ended

    with_cursors(story)
