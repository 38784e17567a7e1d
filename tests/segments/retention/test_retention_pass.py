"""A pass of retention on a stream: it removes what may go, finishes what a crash left, and respects holds that come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from bookkeeper import BookKeeper
from bookkeeper.chains.owned_node import OwnedNode
from segments.chain import StreamChain, StreamHead
from segments.config import StreamConfig, StreamRetention
from segments.cursors.acked_ranges import Mark
from segments.cursors.cursor_node import CursorNode
from segments.cursors.cursor_state import Acknowledgement, CursorState
from segments.directory.settings import StreamSettings
from segments.retention.chain_steps import change_chain
from segments.retention.cursor_positions import cursor_positions
from segments.retention.hold_node import HoldNode
from segments.retention.holds import Hold
from segments.retention.retention import CursorPosition
from segments.retention.retention_pass import RetentionPass
from segments.retention.truncation import truncate
from tests.segments.retention.chains import at
from tests.segments.retention.streams import ledgers_of, make_stream, run


class Cursors:
    """The cursors as the test wants them."""

    def __init__(self, *places: CursorPosition) -> None:
        self.places = places
        self.before_answer: asyncio.Event | None = None

    async def __call__(self) -> Sequence[CursorPosition]:
        if self.before_answer is not None:
            await self.before_answer.wait()
        return self.places


def pass_over(client: BookKeeper, record: StreamHead, cursors: Cursors | None = None) -> RetentionPass:
    return RetentionPass(client, record, cursors or Cursors())


def test_what_is_over_age_goes_on_a_timer() -> None:
    """SEG-102 an idle stream's segments go when they are old enough: no roll is needed."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(max_age_s=100)))
        retention = pass_over(client, record)
        assert (await retention.run()).deleted == ()
        timer = asyncio.ensure_future(retention.keep_running(every_s=30))
        await asyncio.sleep(140)
        timer.cancel()
        chain, _ = await record.read()
        assert [segment.number for segment in chain.segments] == [3] and chain.removing == ()
        assert (chain.first_position, chain.start_seq_no) == (at(3), 12)
        assert await ledgers_of(client) == {chain.segments[0].ledger_id}

    run(story)


def test_a_writer_whose_clock_was_ahead_keeps_nothing_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """A segment with a time of a later year kept itself and everything behind it, and nobody was told."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(max_age_s=100)))
        year_ms = client.services.seams.clock.wall_ms() + 365 * 86_400_000

        def ahead(chain: StreamChain) -> StreamChain:
            first, *others = chain.segments
            return chain.with_segments([replace(first, completed_ms=year_ms), *others])

        await change_chain(record, ahead)
        await asyncio.sleep(200)
        retention = pass_over(client, record)
        for _ in range(3):
            assert (await retention.run(all_reasons=False)).deleted == ()
        (line,) = [line for line in caplog.messages if "clock was ahead" in line]
        assert line.startswith("stream orders, segment 1: by its time it will be completed in 365 d")
        assert "Truncate the stream behind it" in line
        await truncate(client, record, at(2))
        assert [len((await retention.run()).deleted) for _ in range(3)] == [1, 1, 0], "then age counts again"
        assert len([line for line in caplog.messages if "clock was ahead" in line]) == 1

    run(story)


def test_truncated_segments_go_whatever_the_policy() -> None:
    """SEG-99 a stream without limits loses only what was truncated; SEG-100 a segment truncated in part stays."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await truncate(client, record, at(2, 1, 1))
        result = await pass_over(client, record).run()
        assert [segment.number for segment in result.report.going] == [1] and len(result.deleted) == 1
        chain, _ = await record.read()
        assert [segment.number for segment in chain.segments] == [2, 3] and chain.first_position == at(2, 1, 1)

    run(story)


def test_explaining_changes_nothing() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(max_records=6)))
        before = await record.read(), await ledgers_of(client)
        report = await pass_over(client, record, Cursors(CursorPosition("a", at(2)))).explain()
        assert [(each.segment.number, each.goes) for each in report.segments] == [(1, True), (2, False), (3, False)]
        assert report.segments[1].text == "cursor a is at 2:0:0"
        assert (await record.read(), await ledgers_of(client)) == before

    run(story)


def test_a_hold_that_comes_while_a_pass_decides_is_respected() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(max_age_s=0)))
        holds = HoldNode(client.metadata_store, record)
        running = asyncio.ensure_future(pass_over(client, record).run())
        putting = asyncio.ensure_future(holds.put(Hold("audit", at(2)), 0))
        done, put = await asyncio.gather(running, putting, return_exceptions=True)
        chain, _ = await record.read()
        numbers = [segment.number for segment in chain.segments]
        assert not isinstance(done, BaseException)
        assert numbers == ([3] if isinstance(put, Exception) else [2, 3])

    for seed in range(1, 4):
        run(story, seed)


@pytest.mark.rule("C6")
def test_settings_that_are_replaced_while_a_pass_decides_are_respected() -> None:
    """The pass has read the settings already; whoever let the stream keep everything was told so. What was decided by
    the former ones was written all the same: of what it depended on only holds and cursors were conditions."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(max_records=0)))
        looks = 0

        async def cursors() -> Sequence[CursorPosition]:
            nonlocal looks
            looks += 1
            if looks == 1:
                settings = StreamSettings(client.metadata_store, record.stream_id, record.name)
                assert (await settings.patch({"retention.max_records": None})).retention == StreamRetention()
            return ()

        result = await RetentionPass(client, record, cursors).run()
        assert (looks, result.deleted) == (2, ())
        assert [segment.number for segment in (await record.read())[0].segments] == [1, 2, 3]

    run(story)


async def _made(record: CursorNode) -> None:
    assert await record.create(CursorState.create(Mark(0, at(1)), 0))


async def _overwritten(record: CursorNode) -> None:
    await record.store.set(record.path, b"damaged", None)
    await record.overwrite(CursorState.create(Mark(0, at(1)), 0))


async def _reset(record: CursorNode) -> None:
    owned = await OwnedNode.claim(record, "an owner", "nonce")
    await owned.step(lambda state: state.reset(Mark(0, at(1)), 0))


async def _restored(record: CursorNode) -> None:
    owned = await OwnedNode.claim(record, "an owner", "nonce")
    await owned.step(lambda state: state.restore(1, 0))


@pytest.mark.parametrize("place", [_made, _overwritten, _reset, _restored])
def test_a_cursor_that_is_placed_while_a_pass_decides_keeps_what_it_needs(
    place: Callable[[CursorNode], Awaitable[None]],
) -> None:
    """The pass has read the cursors already; whoever made the cursor, or moved it back, was told so."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(consumed=True)))
        metadata = client.metadata_store
        cursor = CursorNode(metadata, record.stream_id, record.name, "late")
        if place is not _made:
            await cursor.create(CursorState.create(Mark(0, at(1)), 0))
            owned = await OwnedNode.claim(cursor, "an owner", "before")
            await owned.step(lambda state: state.acknowledge([Acknowledgement(Mark(12, at(3)))], 0)[0])
        other = CursorNode(metadata, record.stream_id, record.name, "other")
        await other.create(CursorState.create(Mark(12, at(3)), 0))
        looks = 0

        async def cursors() -> Sequence[CursorPosition]:
            nonlocal looks
            looks += 1
            found = await cursor_positions(metadata, record.stream_id, record.name)
            if looks == 1:
                await place(cursor)
            return found

        result = await RetentionPass(client, record, cursors).run()
        chain, _ = await record.read()
        assert [segment.number for segment in chain.segments] == [1, 2, 3]
        assert (looks, result.deleted, chain.first_position) == (2, (), at(1))

    run(story)


def test_a_cursor_that_moves_on_does_not_put_a_pass_off() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(consumed=True)))
        metadata = client.metadata_store
        cursor = CursorNode(metadata, record.stream_id, record.name, "c")
        await cursor.create(CursorState.create(Mark(0, at(1)), 0))
        owned = await OwnedNode.claim(cursor, "an owner", "nonce")
        await owned.step(lambda state: state.acknowledge([Acknowledgement(Mark(6, at(2)))], 0)[0])
        looks = 0

        async def cursors() -> Sequence[CursorPosition]:
            nonlocal looks
            looks += 1
            found = await cursor_positions(metadata, record.stream_id, record.name)
            await owned.step(lambda state: state.acknowledge([Acknowledgement(Mark(12, at(3)))], 0)[0])
            return found

        await RetentionPass(client, record, cursors).run()
        assert looks == 1 and (await record.read())[0].first_position == at(2)

    run(story)


def test_the_pass_finishes_what_a_crash_has_left() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await change_chain(record, lambda chain: chain.truncate(at(3)).remove(2))
        assert len((await pass_over(client, record).run()).deleted) == 2
        assert (await record.read())[0].removing == ()

    run(story)


def test_two_passes_at_once_do_no_harm() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(consumed=True)))
        cursors = Cursors(CursorPosition("a", at(3)))
        await asyncio.gather(pass_over(client, record, cursors).run(), pass_over(client, record, cursors).run())
        chain, _ = await record.read()
        assert [segment.number for segment in chain.segments] == [3] and len(await ledgers_of(client)) == 1

    run(story)


def test_the_timer_ends_with_the_stream() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        timer = asyncio.ensure_future(pass_over(client, record).keep_running(every_s=1))
        await asyncio.sleep(3)
        await record.store.delete(record.path, None)
        await asyncio.wait_for(timer, 5)

    run(story)
