"""One segment's entries, in runs, as they are confirmed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.errors import BookieUnavailableError, DataMissingError, DigestMismatchError, NoSuchLedgerError
from bookkeeper.ids import EntryId
from segments.errors import StreamUnavailableError
from segments.read.source.segment_feed import BrokenEntry, EntryRun, SegmentDeletedError, SegmentFeed
from segments.record import GapKind
from tests.segments.read.built_stream import BuiltStream, simulated


async def feed_of(stream: BuiltStream, first: int = 0, ahead: int = 1 << 20, patience_s: float = 5.0) -> SegmentFeed:
    segment = (await stream.chain()).segments[-1]
    handle = await stream.source.open_segment(segment)
    assert handle is not None
    return SegmentFeed(stream.source, segment, handle, first, ahead_bytes=ahead, patience_s=patience_s)


def test_a_live_segment_is_read_to_its_end_after_it_completes() -> None:
    """SEG-76: runs follow each other, the long poll brings the next entry, and the closed ledger ends it."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        for _ in range(5):
            await stream.add(1)
        feed = await feed_of(stream, 2)
        run = await feed.run()
        assert isinstance(run, EntryRun) and run.first == 2 and len(run.payloads) == 3
        assert await feed.run() is None
        assert (feed.has_ended,) == (False,)
        loop = asyncio.get_running_loop()
        assert not await feed.wait(loop.time() + 1)
        waiting = asyncio.create_task(feed.wait(loop.time() + 60))
        await asyncio.sleep(0.5)
        await stream.add(1)
        assert await waiting
        run = await feed.run()
        assert isinstance(run, EntryRun) and run.first == 5
        await stream.complete()
        assert await feed.wait(loop.time() + 60) and feed.has_ended
        await feed.close()

    simulated(story)


def test_what_is_asked_for_ahead_never_exceeds_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEG-75: the entries in flight, and not yet handed out, fit into the bound."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        for _ in range(60):
            await stream.raw(bytes(1000))
        await stream.complete()
        for ahead in (1, 1000, 5000, 20_000):
            feed = await feed_of(stream, 0, ahead)
            source = feed.handle._source
            asked, most = 0, 0

            def read(first: int, count: int = 1, *, inner: Any = source.read, **options: object) -> object:
                nonlocal asked, most
                asked += count
                most = max(most, asked)
                return inner(first, count, **options)

            monkeypatch.setattr(source, "read", read)
            got = 0
            while (run := await feed.run()) is not None:
                assert isinstance(run, EntryRun)
                asked -= len(run.payloads)
                got += len(run.payloads)
            assert got == 60 and most * 1000 <= max(ahead, 1000) + 1000
            await feed.close()

    simulated(story)


@pytest.mark.parametrize(
    ("error", "kind"), [(DigestMismatchError("bad"), GapKind.CORRUPT), (DataMissingError("gone"), GapKind.LOST)]
)
def test_an_entry_that_nobody_can_give_is_told_and_the_next_ones_come(error: Exception, kind: GapKind) -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        for _ in range(6):
            await stream.add(1)
        feed = await feed_of(stream)
        source = feed.handle._source
        inner = source.read

        def read(first: int, count: int = 1, **options: object) -> asyncio.Future[list[bytes]]:
            if first <= 3 < first + count:
                failed: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
                failed.set_exception(error)
                return failed
            return inner(first, count, **options)  # type: ignore[arg-type]

        source.read = read  # type: ignore[method-assign]
        found: list[object] = []
        while (run := await feed.run()) is not None:
            found += [run.entry] if isinstance(run, BrokenEntry) else range(run.first, run.first + len(run.payloads))
            if isinstance(run, BrokenEntry):
                assert run.kind is kind
        assert found == list(range(6))
        await feed.close()

    simulated(story)


def test_bookies_that_fail_are_asked_again_until_patience_ends() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(1)
        feed = await feed_of(stream, patience_s=4)
        source, inner, failing = feed.handle._source, feed.handle._source.read, True

        def read(first: int, count: int = 1, **options: object) -> asyncio.Future[list[bytes]]:
            if not failing:
                return inner(first, count, **options)  # type: ignore[arg-type]
            failed: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
            failed.set_exception(BookieUnavailableError("away"))
            return failed

        source.read = read  # type: ignore[method-assign]
        await asyncio.sleep(100)  # patience counts from the first failure, not from the loop's beginning
        began = asyncio.get_running_loop().time()
        with pytest.raises(StreamUnavailableError):
            await feed.run()
        assert 3.5 < asyncio.get_running_loop().time() - began < 8
        assert feed.stuck_s > 3
        failing = False
        assert isinstance(await feed.run(), EntryRun) and feed.stuck_s == 0
        await feed.close()

    simulated(story)


@pytest.mark.parametrize(
    ("error", "told"),
    [(NoSuchLedgerError("deleted"), SegmentDeletedError), (BookieUnavailableError("away"), StreamUnavailableError)],
)
def test_who_asks_how_far_it_goes_is_told_why_nobody_answers(error: Exception, told: type[Exception]) -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        feed = await feed_of(stream)

        async def fails() -> EntryId:
            raise error

        feed.handle.read_last_add_confirmed = fails  # type: ignore[method-assign]
        with pytest.raises(told):
            await feed.refresh_end()
        await feed.close()

    simulated(story)


def test_a_ledger_that_was_deleted_is_told() -> None:
    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(1)
        feed = await feed_of(stream, 1)
        await stream.client.delete_ledger(feed.segment.ledger_id, force=True)
        with pytest.raises(SegmentDeletedError):
            while not feed.has_ended:
                await feed.wait(asyncio.get_running_loop().time() + 30)
                await feed.refresh_end()
            await feed.refresh_end()
            raise SegmentDeletedError  # the deletion closed it first: that is an end, too
        await feed.close()

    simulated(story)
