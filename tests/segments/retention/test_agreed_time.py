"""Wall clocks that jump, or are wrong from the beginning, remove nothing (F6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from bookkeeper import BookKeeper
from bookkeeper.testing.cluster import SimCluster
from bookkeeper.testing.world import Node
from segments.config import StreamConfig, StreamRetention
from segments.errors import StreamHeldError
from segments.namespace import StreamNamespace
from segments.position import LATEST
from segments.record import from_ms
from segments.retention.agreed_time import AgreedTime
from segments.stream import Stream
from tests.segments.retention.streams import make_stream

YEAR_MS = 365 * 24 * 3_600_000
AGED = StreamConfig(retention=StreamRetention(max_age_s=100))


def beside(story: Callable[[BookKeeper, BookKeeper, Node], Awaitable[None]]) -> None:
    """Run a story with a client whose clock is the metadata store's, and one on a machine with a clock of its own."""

    async def work(cluster: SimCluster) -> None:
        machine = cluster.world.node("other")
        async with cluster.connect() as client:
            other = await cluster.new_client(node=machine)
            await story(client, other, machine)
            await other.close()

    SimCluster(seed=1).run(work)


async def opened(client: BookKeeper) -> Stream:
    return await StreamNamespace(client).open("orders")


@pytest.mark.rule("F6")
@pytest.mark.parametrize("wrong", ["from the beginning", "from then on"])
def test_a_clock_that_is_ahead_makes_no_segment_old(wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    """An age counted by the wall clock of whoever made the pass: one that was ahead removed everything."""

    async def story(client: BookKeeper, other: BookKeeper, machine: Node) -> None:
        record = await make_stream(client, config=AGED)
        here = await opened(other)
        if wrong == "from the beginning":
            machine.clock.wall_offset_ms = YEAR_MS
        retention = here._retention()
        machine.clock.wall_offset_ms = YEAR_MS
        result = await retention.run()
        assert (result.report.going, result.deleted) == ((), ())
        assert len((await record.read())[0].segments) == 3
        assert any("ahead of the metadata store's" in line for line in caplog.messages) is (wrong != "from then on")
        await asyncio.sleep(150)
        assert len((await retention.run()).deleted) == 2, "by then they are old, by all clocks"

    beside(story)


@pytest.mark.rule("F6")
def test_a_clock_that_jumps_under_a_timer_removes_nothing() -> None:
    """Also where the metadata store is on the same machine, and has the same clock."""

    async def work(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            record = await make_stream(client, config=AGED)
            timer = asyncio.ensure_future((await opened(client)).keep_retention(every_s=10))
            await asyncio.sleep(20)
            cluster.client.clock.wall_offset_ms = YEAR_MS
            await asyncio.sleep(30)
            assert len((await record.read())[0].segments) == 3
            await asyncio.sleep(150)
            assert len((await record.read())[0].segments) == 1
            timer.cancel()

    SimCluster(seed=1).run(work)


@pytest.mark.rule("F6")
@pytest.mark.parametrize("step", ["retention", "truncate", "delete", "hold", "export"])
def test_a_clock_that_is_ahead_ends_no_hold(step: str) -> None:
    """A hold ended by the wall clock of whoever looked, and putting another one swept it for everybody."""

    async def story(client: BookKeeper, other: BookKeeper, machine: Node) -> None:
        await make_stream(client, config=StreamConfig(retention=StreamRetention(max_records=0)))
        stream = await opened(client)
        until = from_ms(client.services.seams.clock.wall_ms()) + timedelta(seconds=60)
        hold = await stream.hold("audit", until=until)
        machine.clock.wall_offset_ms = YEAR_MS
        there = await opened(other)
        match step:
            case "retention":
                assert (await there.apply_retention()).deleted == ()
            case "truncate":
                with pytest.raises(StreamHeldError):
                    await there.truncate(LATEST)
            case "delete":
                with pytest.raises(StreamHeldError):
                    await StreamNamespace(other).delete("orders")
            case "hold":
                await there.hold("mine")
            case "export":
                assert [chunk async for chunk in there.export().chunks()]
        assert hold in await stream.holds() and len(await stream.segments()) == 3
        await asyncio.sleep(61)
        await there.truncate(LATEST, up_to_holds=step == "hold")
        assert (await there.chain()).first_position > hold.start or step == "hold"

    beside(story)


def test_the_earliest_of_the_clocks_counts() -> None:
    async def story(client: BookKeeper, other: BookKeeper, machine: Node) -> None:
        record = await make_stream(client)
        time = AgreedTime(other, record)
        began = time.here_ms()
        await asyncio.sleep(10)
        assert time.here_ms() == began + 10_000
        machine.clock.wall_offset_ms = -YEAR_MS
        assert time.here_ms() == await time.now_ms() == began + 10_000 - YEAR_MS
        machine.clock.wall_offset_ms = YEAR_MS
        assert time.here_ms() == began + 10_000
        ahead = AgreedTime(other, record)
        assert ahead.here_ms() == began + 10_000 + YEAR_MS
        assert 0 <= await ahead.now_ms() - (began + 10_000) < 1000
        assert await client.metadata_store.store.children(client.metadata_store.own("segments", "time")) == []

    beside(story)


@pytest.mark.rule("F6")
@pytest.mark.parametrize("behind_s", [0, 50, 3600])
def test_a_hold_of_a_clock_that_is_behind_lasts_as_long_as_was_meant(behind_s: int) -> None:
    """It had ended before it began."""

    async def story(client: BookKeeper, other: BookKeeper, machine: Node) -> None:
        await make_stream(client, config=AGED)
        machine.clock.wall_offset_ms = -1000 * behind_s
        here, meant = await opened(other), timedelta(seconds=1800)
        hold = await here.hold("h", until=from_ms(other.services.seams.clock.wall_ms()) + meant)
        assert hold.until is not None
        left = hold.until - from_ms(client.services.seams.clock.wall_ms())
        assert abs(left - meant) < timedelta(seconds=60)
        assert (await (await opened(client)).explain_retention()).going == ()

    beside(story)
