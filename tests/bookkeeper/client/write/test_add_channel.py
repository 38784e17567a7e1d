"""The way of one writer's adds to one bookie."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from bookkeeper import codec
from bookkeeper.client.bookies.bookie_pool import BookiePool
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.add_channel import AddChannel
from bookkeeper.errors import BookieUnavailableError, BookKeeperError
from bookkeeper.ids import Address, BookieId, LedgerId
from bookkeeper.ledger import QuorumSpec
from bookkeeper.net.connection import AddRun
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.wire import Dialect, Status
from tests.bookkeeper.client.scripted import ScriptedBookie, connection_of, settled

FULL = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)
STRIPED = QuorumSpec(ensemble_size=4, write_quorum=2, ack_quorum=2)
B1 = BookieId("b1")


class Lanes:
    """Makes lanes to one scripted bookie and collects what they report."""

    def __init__(self, spec: QuorumSpec = FULL) -> None:
        self.net = InProcessNet()
        self.bookie = ScriptedBookie("b1")
        self.spec = spec
        self.tasks = Tasks("channels")
        self.pool = BookiePool(self.net, Random(1), ClientConfig(), self.address_of)
        self.replies: list[list[AddRun]] = []
        self.failures: list[BookKeeperError] = []

    async def address_of(self, bookie: BookieId) -> Address:
        return Address("b1", 1)

    async def listen(self) -> None:
        await self.net.listen(Address("b1", 1), lambda: connection_of(self.bookie))

    def channel(self, position: int = 0) -> AddChannel:
        return AddChannel(
            self.pool,
            self.tasks,
            B1,
            position,
            5,
            LedgerId(7),
            self.spec,
            lambda channel, batch: self.replies.append(batch),
            lambda channel, error: self.failures.append(error),
        )

    def frames(self, first: int, count: int = 1) -> bytes:
        payloads = [b"x"] * count
        frames, _ = codec.encode_adds(
            Dialect.V3, 7, first, payloads, -1, 0, b"k" * 20, codec.Digest.DUMMY, b"", 5 << codec.STREAM_SHIFT
        )
        return frames


async def test_what_is_sent_before_the_connection_stands_goes_out_first() -> None:
    channels = Lanes()
    await channels.listen()
    channel = channels.channel()
    channel.open()
    channel.send(channels.frames(0))
    assert not channels.replies
    await settled()
    channel.send(channels.frames(1, 2))
    await settled()
    assert channels.replies == [[(0, 1, Status.OK)], [(1, 2, Status.OK)]]
    await channels.pool.close()


async def test_a_bookie_that_is_not_there_and_one_that_goes_are_reported_once() -> None:
    channels = Lanes()
    channels.channel().open()
    await settled()
    assert [type(error) for error in channels.failures] == [BookieUnavailableError]
    await channels.listen()
    channels.pool.forgive(B1)
    channels.channel().open()
    await settled()
    channels.bookie.connections[0].abort()
    await settled()
    assert len(channels.failures) == 2
    await channels.pool.close()


@pytest.mark.rule("W10b")
async def test_after_a_drop_nothing_is_reported_and_the_next_lane_gets_another_connection() -> None:
    channels = Lanes()
    await channels.listen()
    channel = channels.channel()
    channel.open()
    await settled()
    before = channels.pool.ready(B1)
    channels.bookie.refuse_adds, channels.bookie.refusal_delay_s = Status.IO_ERROR, 0.05
    channel.send(channels.frames(0))
    await settled()  # it is sent, its reply is on the way
    channels.bookie.refuse_adds = None
    channel.drop()
    channel.send(channels.frames(1))
    await settled()
    assert not channels.replies and not channels.failures
    again = channels.channel()
    again.open()
    await settled()
    assert channels.pool.ready(B1) is not before
    again.send(channels.frames(1))
    await settled()
    await asyncio.sleep(0.1)
    assert channels.replies == [[(1, 1, Status.OK)]]
    await channels.pool.close()


async def test_a_connection_that_takes_nothing_is_ended_with_what_was_written() -> None:
    channels = Lanes()
    await channels.listen()
    channel = channels.channel()
    channel.open()
    await settled()
    connection = channels.pool.ready(B1)
    assert connection is not None
    channels.bookie.connections[0].pause_reading()
    channel.send(channels.frames(0, 100_000))
    await settled()
    channel.drop()
    await settled()
    assert connection.closed
    await channels.pool.close()


async def test_runs_between_which_a_bookie_holds_nothing_are_one() -> None:
    channels = Lanes(STRIPED)
    channel = channels.channel(position=0)  # holds 0, 3, 4, 7, 8, 11 ...
    ok, io = Status.OK, Status.IO_ERROR
    channel._replies([(0, 1, ok), (3, 2, ok), (7, 1, ok), (8, 1, io), (11, 2, ok)])
    assert channels.replies == [[(0, 8, ok), (8, 1, io), (11, 2, ok)]]
    channel._replies([(0, 1, ok), (7, 2, ok)])  # 3 and 4 are missing in between
    assert channels.replies[1] == [(0, 1, ok), (7, 2, ok)]
