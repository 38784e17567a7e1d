"""A pass of retention on a stream: it removes what may go, finishes what a crash left, and respects holds that come."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bookkeeper import BookKeeper
from segments.chain import StreamRecord
from segments.config import StreamConfig, StreamRetention
from segments.life.chain_steps import change_chain
from segments.life.hold_record import HoldRecord
from segments.life.holds import Hold
from segments.life.retention import CursorPlace
from segments.life.retention_pass import RetentionPass
from segments.life.settings import StreamSettings
from segments.life.truncation import truncate
from tests.segments.life.chains import at
from tests.segments.life.streams import ledgers_of, make_stream, run


class Cursors:
    """The cursors as the test wants them."""

    def __init__(self, *places: CursorPlace) -> None:
        self.places = places
        self.before_answer: asyncio.Event | None = None

    async def __call__(self) -> Sequence[CursorPlace]:
        if self.before_answer is not None:
            await self.before_answer.wait()
        return self.places


def pass_over(client: BookKeeper, record: StreamRecord, cursors: Cursors | None = None) -> RetentionPass:
    settings = StreamSettings(client.metadata_store, record.stream_id, record.name)
    return RetentionPass(client, record, settings.read, cursors or Cursors())


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
        report = await pass_over(client, record, Cursors(CursorPlace("a", at(2)))).explain()
        assert [(each.segment.number, each.goes) for each in report.segments] == [(1, True), (2, False), (3, False)]
        assert report.segments[1].text == "cursor a is at 2:0:0"
        assert (await record.read(), await ledgers_of(client)) == before

    run(story)


def test_a_hold_that_comes_while_a_pass_decides_is_respected() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, config=StreamConfig(retention=StreamRetention(max_age_s=0)))
        holds = HoldRecord(client.metadata_store, record)
        running = asyncio.ensure_future(pass_over(client, record).run())
        putting = asyncio.ensure_future(holds.put(Hold("audit", at(2)), 0))
        done, put = await asyncio.gather(running, putting, return_exceptions=True)
        chain, _ = await record.read()
        numbers = [segment.number for segment in chain.segments]
        assert not isinstance(done, BaseException)
        assert numbers == ([3] if isinstance(put, Exception) else [2, 3])

    for seed in range(1, 4):
        run(story, seed)


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
        cursors = Cursors(CursorPlace("a", at(3)))
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
