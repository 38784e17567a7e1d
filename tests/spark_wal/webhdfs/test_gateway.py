from __future__ import annotations

import asyncio

import pytest

from journal_manager import JournalFencedError, JournalUnavailableError
from spark_wal.webhdfs import file_system
from spark_wal.webhdfs.content import MemoryBlobs
from spark_wal.webhdfs.gateway import Gateway, GatewayConfig, Opened, Role
from spark_wal.webhdfs.lease import LeaseLostError
from spark_wal.webhdfs.refusals import QuotaExceededError, RetriableError, StandbyError
from tests.spark_wal.webhdfs.test_file_system import put
from tests.spark_wal.webhdfs.virtual import HeldLog, LoopClock, Snapshots, Switch, in_virtual_time


class Hall:
    """Opens a new log over the edits of the last one, as often as it is asked."""

    def __init__(self) -> None:
        self.logs: list[HeldLog] = []
        self.snapshots = Snapshots()
        self.closed = False

    async def open(self) -> Opened:
        if self.closed:
            raise JournalUnavailableError("not now")
        ops = tuple(self.logs[-1].ops) if self.logs else ()
        self.logs.append(HeldLog(len(self.logs) + 1, ops))
        self.logs[-1].held = False
        return Opened(self.logs[-1], self.snapshots, MemoryBlobs())

    def gateway(self, lease: Switch | None = None, config: GatewayConfig | None = None) -> Gateway:
        return Gateway(self.open, lease or Switch(), LoopClock(), config)


@in_virtual_time
async def test_it_owns_the_namespace_after_its_start() -> None:
    gateway = Hall().gateway()
    await gateway.start()
    roles = [gateway.role]
    await put(await gateway.owner(), "/a")
    await gateway.close()
    await gateway.close()
    roles.append(gateway.role)
    assert roles == [Role.OWNER, Role.CLOSED]


@in_virtual_time
async def test_a_start_that_fails_leaves_nothing_open() -> None:
    hall = Hall()
    hall.closed = True
    with pytest.raises(JournalUnavailableError):
        await hall.gateway().start()


@in_virtual_time
async def test_after_a_failure_of_the_journal_it_replays_and_goes_on() -> None:
    hall = Hall()
    gateway = hall.gateway()
    await gateway.start()
    await put(await gateway.owner(), "/a")
    hall.logs[-1].fail(JournalUnavailableError("lost"))
    hall.closed = True
    first = gateway.session
    assert first is not None
    first.failed.set()
    asyncio.get_running_loop().call_later(3, lambda: setattr(hall, "closed", False))
    owner = await gateway.owner()  # parked meanwhile
    assert owner is not first
    assert (await file_system.status(owner, "/a")).length == 1
    await gateway.close()


@in_virtual_time
async def test_a_request_is_parked_while_the_lease_is_in_doubt() -> None:
    lease = Switch()
    gateway = Hall().gateway(lease)
    await gateway.start()
    lease.is_held = False
    asyncio.get_running_loop().call_later(5, lambda: setattr(lease, "is_held", True))
    began = asyncio.get_running_loop().time()
    await gateway.owner()
    assert asyncio.get_running_loop().time() - began > 4.9
    await gateway.close()


@in_virtual_time
async def test_nobody_is_parked_for_ever() -> None:
    lease = Switch()
    gateway = Hall().gateway(lease)
    await gateway.start()
    lease.is_held = False
    began = asyncio.get_running_loop().time()
    with pytest.raises(RetriableError):
        await gateway.owner()
    assert asyncio.get_running_loop().time() - began < 60
    await gateway.close()


class Taken(Switch):
    """A lease that somebody takes, and keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = asyncio.Event()

    async def lost(self) -> None:
        await self.taken.wait()

    async def acquire(self, *, wait_vacant: bool) -> None:
        if wait_vacant:
            await asyncio.Event().wait()


@in_virtual_time
async def test_one_that_was_replaced_says_standby() -> None:
    lease = Taken()
    gateway = Hall().gateway(lease)
    await gateway.start()
    lease.is_held = False
    lease.is_others = True
    lease.taken.set()
    began = asyncio.get_running_loop().time()
    with pytest.raises(StandbyError):
        await gateway.owner()
    assert asyncio.get_running_loop().time() - began < 1, "who knows the owner says so at once"
    await asyncio.sleep(1)
    assert gateway.role is Role.STANDBY
    assert gateway.session is None
    await gateway.close()


@in_virtual_time
async def test_one_that_the_journal_fenced_does_not_fight() -> None:
    hall, lease = Hall(), Taken()
    gateway = hall.gateway(lease)
    await gateway.start()
    hall.logs[-1].fail(JournalFencedError("another", epoch=1))
    session = gateway.session
    assert session is not None
    session.failed.set()
    await asyncio.sleep(10)
    assert gateway.role is Role.STANDBY
    assert len(hall.logs) == 1
    await gateway.close()


@in_virtual_time
async def test_quotas_of_the_configuration_are_kept() -> None:
    gateway = Hall().gateway(config=GatewayConfig(quotas={"/c": 10}))
    await gateway.start()
    owner = await gateway.owner()
    await put(owner, "/c/a", bytes(10))
    with pytest.raises(QuotaExceededError):
        await put(owner, "/c/b", bytes(1))
    await gateway.close()


class Contested(Switch):
    """A lease that is snatched away while it is being acquired; tells how it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bool] = []
        self.snatched = 0
        self.odd: Exception | None = None

    async def acquire(self, *, wait_vacant: bool) -> None:
        self.asked.append(wait_vacant)
        if self.snatched:
            self.snatched -= 1
            raise LeaseLostError("another started meanwhile")
        odd, self.odd = self.odd, None
        if odd is not None:
            raise odd


@pytest.mark.rule("V6")
@in_virtual_time
async def test_one_whose_lease_is_snatched_while_it_comes_back_stands_by_and_comes_back_later() -> None:
    hall, lease = Hall(), Contested()
    gateway = hall.gateway(lease)
    await gateway.start()
    await put(await gateway.owner(), "/a")
    session = gateway.session
    assert session is not None
    lease.snatched = 1
    hall.logs[-1].fail(JournalUnavailableError("lost"))
    session.failed.set()
    await asyncio.sleep(3)
    assert gateway.role is Role.OWNER
    assert lease.asked == [False, False, True], "after it lost a race it waits until the lease lies vacant"
    await gateway.close()


@pytest.mark.rule("V6")
@in_virtual_time
async def test_one_that_cannot_open_the_namespace_leaves_it_to_others() -> None:
    hall, lease = Hall(), Contested()
    gateway = hall.gateway(lease)
    await gateway.start()
    session = gateway.session
    assert session is not None
    hall.logs[-1].fail(JournalUnavailableError("no bookie can be reached from here"))
    hall.closed = True
    session.failed.set()
    await asyncio.sleep(5)
    assert len(lease.asked) > 3
    assert all(lease.asked[2:]), "it must not snatch the lease from one that can open it, again and again"
    await gateway.close()


@pytest.mark.rule("V6")
@in_virtual_time
async def test_no_error_however_odd_leaves_a_gateway_that_never_tries_again() -> None:
    hall, lease = Hall(), Contested()
    gateway = hall.gateway(lease)
    await gateway.start()
    session = gateway.session
    assert session is not None

    async def odd() -> None:
        raise ValueError("a connection that cannot even be closed")

    hall.logs[-1].abort = odd  # type: ignore[method-assign]
    lease.odd = ValueError("what stands in the store is no lease")
    hall.logs[-1].fail(JournalUnavailableError("lost"))
    session.failed.set()
    await asyncio.sleep(5)
    assert gateway.role is Role.OWNER
    await gateway.close()
