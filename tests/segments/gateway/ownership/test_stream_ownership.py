from __future__ import annotations

import asyncio

import pytest

from bookkeeper.client.tasks import Tasks
from bookkeeper.leases.lease import LeaseEntry, NamespaceOwnedError
from bookkeeper.real import SystemClock
from segments.errors import (
    GatewayRedirectError,
    OwnershipLostError,
    StreamClosedError,
    StreamNotReadyError,
    StreamSealedError,
)
from segments.gateway.config import GrpcGatewayConfig
from segments.gateway.ownership.stream_ownership import StreamOwnership
from tests.spark_wal.webhdfs.virtual import in_virtual_time


class FakeWriter:
    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.pending = 0
        self.ended: list[str] = []

    async def close(self, *, complete: bool = True) -> None:
        self.ended.append("closed")

    async def abort(self) -> None:
        self.ended.append("aborted")


class FakeLease:
    """A lease that the test gives and takes."""

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        """The other gateway that renews it."""
        self.others_seen = 0
        self.other: str | None = None
        self.is_held = False
        self.released = 0
        self.gone = asyncio.Event()

    async def acquire(self, entry: LeaseEntry) -> None:
        assert entry is LeaseEntry.IF_VACANT
        await asyncio.sleep(0.3)
        if self.owner:
            raise NamespaceOwnedError(self.owner)

    async def wait_until_held(self) -> None:
        await asyncio.sleep(0.5)
        self.is_held = True

    async def lost(self) -> None:
        await self.gone.wait()

    async def release(self) -> None:
        self.released += 1
        self.is_held = False

    def take(self, other: str) -> None:
        self.is_held, self.other = False, other
        self.gone.set()


class Site:
    """One stream's ownership, its leases and writers."""

    def __init__(self, owner: str = "", fails: Exception | None = None) -> None:
        self.owner, self.fails = owner, fails
        self.leases: list[FakeLease] = []
        self.writers: list[FakeWriter] = []
        self.tasks = Tasks("test")
        self.ownership: StreamOwnership[FakeWriter] = StreamOwnership(
            "s", self.lease, self.open, _Loop(), GrpcGatewayConfig(), self.tasks
        )

    def lease(self) -> FakeLease:
        self.leases.append(FakeLease(self.owner))
        return self.leases[-1]

    async def open(self) -> FakeWriter:
        await asyncio.sleep(0.1)
        if self.fails is not None:
            raise self.fails
        self.writers.append(FakeWriter())
        return self.writers[-1]


class _Loop(SystemClock):
    """The time of the loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@in_virtual_time
async def test_the_first_call_takes_the_stream_and_all_get_one_writer() -> None:
    site = Site()
    found = await asyncio.gather(*(site.ownership.writer() for _ in range(5)))
    assert len(site.writers) == len(site.leases) == 1
    assert found == site.writers * 5
    assert site.ownership.is_here
    assert not site.ownership.is_certain
    assert await site.ownership.certain_writer() is site.writers[0]
    await site.ownership.end()
    assert (site.writers[0].ended, site.leases[0].released) == (["closed"], 1)
    with pytest.raises(StreamNotReadyError, match="being stopped"):
        await site.ownership.writer()


@in_virtual_time
async def test_calls_are_redirected_to_the_owner_until_nobody_renews_the_lease() -> None:
    """SEG-120: a gateway that is not the owner redirects, and takes over when the owner is gone."""
    site = Site(owner="other:1")
    for _ in range(3):
        with pytest.raises(GatewayRedirectError) as caught:
            await site.ownership.writer()
        assert caught.value.owner == "other:1"
    assert len(site.leases) == 1
    site.owner = ""
    await asyncio.sleep(1.0)
    assert await site.ownership.writer() is site.writers[0]
    await site.ownership.end()


@in_virtual_time
async def test_a_stream_that_another_gateway_takes_is_left_at_once() -> None:
    site = Site()
    writer = await site.ownership.writer()
    site.leases[0].take("other:1")
    writer.lost.set()
    await asyncio.sleep(0.01)
    with pytest.raises(GatewayRedirectError, match="other:1"):
        await site.ownership.writer()
    assert writer.ended == ["aborted"]
    await site.ownership.end()


@in_virtual_time
async def test_a_stream_that_a_program_takes_is_left_alone_and_taken_back_when_a_call_wants_it() -> None:
    site = Site()
    (await site.ownership.writer()).lost.set()
    await asyncio.sleep(1.5)
    assert site.leases[0].released == 1
    with pytest.raises(StreamNotReadyError, match="with the library"):
        await site.ownership.writer()
    await asyncio.sleep(2.0)
    assert await site.ownership.writer() is site.writers[1]
    await site.ownership.end()


@in_virtual_time
async def test_a_stream_that_cannot_be_taken_says_why_to_all_who_wait_and_is_tried_again_later() -> None:
    site = Site(fails=StreamSealedError("sealed"))
    found = await asyncio.gather(*(site.ownership.writer() for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in found] == [StreamSealedError] * 3
    assert site.leases[0].released == 1
    site.fails = None
    assert await site.ownership.writer() is site.writers[0]
    await site.ownership.end()


@in_virtual_time
async def test_who_waits_too_long_is_told_to_come_again() -> None:
    site = Site()

    async def never() -> FakeWriter:
        await asyncio.Event().wait()
        raise AssertionError

    site.ownership = StreamOwnership("s", site.lease, never, _Loop(), GrpcGatewayConfig(), site.tasks)
    with pytest.raises(StreamNotReadyError, match="within 5 s"):
        await site.ownership.writer()
    await site.ownership.end()
    assert site.leases[0].released >= 1


@in_virtual_time
async def test_an_idle_stream_is_given_up_and_taken_again() -> None:
    site = Site()
    writer = await site.ownership.writer()
    await asyncio.sleep(70)
    assert site.ownership.idle_s >= 70
    writer.pending = 1
    assert site.ownership.idle_s == 0
    await site.ownership.release()
    assert (writer.ended, site.leases[0].released) == (["closed"], 1)
    assert await site.ownership.writer() is site.writers[1]
    await site.ownership.end()
    await site.ownership.end()


@in_virtual_time
async def test_a_writer_that_does_not_end_well_does_not_keep_the_lease() -> None:
    site = Site()
    writer = await site.ownership.writer()

    async def close(*, complete: bool = True) -> None:
        raise StreamClosedError("no")

    writer.close = close  # type: ignore[method-assign]
    await site.ownership.end()
    assert site.leases[0].released == 1


@in_virtual_time
async def test_work_is_done_between_two_writers_while_the_lease_stays_and_calls_wait() -> None:
    site = Site()
    first = await site.ownership.writer()

    async def work() -> str:
        assert first.ended == ["closed"] and not site.ownership.is_here
        await asyncio.sleep(1)
        return "done"

    working = asyncio.ensure_future(site.ownership.exclusively(work))
    await asyncio.sleep(0.5)
    assert await site.ownership.writer() is site.writers[1]
    assert await working == "done"
    assert len(site.leases) == 1 and not site.leases[0].released
    await site.ownership.end()


@in_virtual_time
async def test_a_stream_that_a_program_takes_during_the_work_is_left_alone() -> None:
    site = Site()
    await site.ownership.writer()

    async def work() -> None:
        raise OwnershipLostError("a program has it")

    with pytest.raises(OwnershipLostError):
        await site.ownership.exclusively(work)
    await asyncio.sleep(1.5)
    assert site.leases[0].released == 1 and len(site.writers) == 1
    with pytest.raises(StreamNotReadyError, match="with the library"):
        await site.ownership.writer()
    await site.ownership.end()


@in_virtual_time
async def test_after_work_that_failed_there_is_a_writer_again_and_none_if_the_gateway_ended() -> None:
    site = Site()
    await site.ownership.writer()

    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await site.ownership.exclusively(fails)
    assert await site.ownership.writer() is site.writers[1]

    async def ends() -> None:
        await site.ownership.end()

    await site.ownership.exclusively(ends)
    await asyncio.sleep(1)
    assert len(site.writers) == 2 and site.leases[0].released == 1
