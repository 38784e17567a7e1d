from __future__ import annotations

import asyncio

import pytest

from bookkeeper.leases.lease import LeaseEntry, LeaseLostError, NamespaceOwnedError
from journal_manager import JournalFencedError, JournalUnavailableError
from spark_wal.webhdfs.config import GatewayConfig
from spark_wal.webhdfs.contents.blob_store import MemoryBlobs
from spark_wal.webhdfs.errors import NameQuotaExceededError, QuotaExceededError, RetriableError, StandbyError
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.gateway import ClaimedNamespace, Gateway, GatewayRole
from tests.spark_wal.webhdfs.ownership.test_file_system import put
from tests.spark_wal.webhdfs.virtual import HeldLog, LoopClock, Snapshots, Switch, in_virtual_time


class Hall:
    """Opens a new log over the edits of the last one, as often as it is asked."""

    def __init__(self) -> None:
        self.logs: list[HeldLog] = []
        self.snapshots = Snapshots()
        self.closed = False

    async def open(self) -> ClaimedNamespace:
        if self.closed:
            raise JournalUnavailableError("not now")
        ops = tuple(self.logs[-1].ops) if self.logs else ()
        self.logs.append(HeldLog(len(self.logs) + 1, ops))
        self.logs[-1].held = False
        self.logs[-1].snapshots = self.snapshots
        return ClaimedNamespace(self.logs[-1], self.snapshots, MemoryBlobs())

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
    assert roles == [GatewayRole.OWNER, GatewayRole.CLOSED]


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

    async def acquire(self, entry: LeaseEntry) -> None:
        if entry is LeaseEntry.WHEN_VACANT:
            await asyncio.Event().wait()


@in_virtual_time
async def test_one_that_was_replaced_says_standby() -> None:
    lease = Taken()
    gateway = Hall().gateway(lease)
    await gateway.start()
    lease.seen_with("other:1")
    lease.taken.set()
    began = asyncio.get_running_loop().time()
    asyncio.get_running_loop().call_later(0.3, lease.seen_with, "other:1")
    with pytest.raises(StandbyError):
        await gateway.owner()
    assert asyncio.get_running_loop().time() - began < 1, "who sees the owner renew says so at once"
    await asyncio.sleep(1)
    assert gateway.role is GatewayRole.STANDBY
    assert gateway.session is None
    await gateway.close()


@pytest.mark.rule("S12")
@in_virtual_time
async def test_who_comes_because_the_owner_died_is_not_sent_back_to_it() -> None:
    """One that stood by named the owner for three seconds after it had died: Hadoop's client, sent back and forth
    between a dead gateway and one that points there, makes its ten attempts within milliseconds and gives up."""
    lease = Taken()
    gateway = Hall().gateway(lease, GatewayConfig(park_s=5))
    await gateway.start()
    lease.seen_with("other:1")
    lease.taken.set()
    await asyncio.sleep(0.1)
    began = asyncio.get_running_loop().time()
    with pytest.raises(RetriableError):  # nobody renews any more, and nobody takes it
        await gateway.owner()
    assert asyncio.get_running_loop().time() - began > 4.9
    asking = asyncio.ensure_future(gateway.owner())
    await asyncio.sleep(1)
    gateway.park_no_more()
    with pytest.raises(RetriableError):
        await asyncio.wait_for(asking, 0.1)
    await gateway.close()


class Owned(Switch):
    """A lease that another gateway has, and renews until the test lets it go."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.Event()
        self.released = 0

    async def acquire(self, entry: LeaseEntry) -> None:
        if entry is LeaseEntry.TAKE_OVER:
            self.is_held = True
            return
        self.seen_with("other:1")
        if entry is LeaseEntry.IF_VACANT:
            raise NamespaceOwnedError("other:1")
        await self.gone.wait()
        self.is_held, self.other = True, None

    async def release(self) -> None:
        self.released += 1


@pytest.mark.rule("S12")
@in_virtual_time
async def test_one_that_starts_beside_a_living_owner_stands_by_and_takes_over_when_that_has_gone() -> None:
    """A gateway that started took the namespace from whoever had it: one that came back after a crash ended the
    session of the one that stood in for it, so that one crash cost two switches."""
    hall, lease = Hall(), Owned()
    gateway = hall.gateway(lease)
    await gateway.start()
    roles = [gateway.role]
    await asyncio.sleep(60)
    assert hall.logs == [], "the journal was claimed under its owner's feet"
    lease.gone.set()
    await asyncio.sleep(1)
    roles.append(gateway.role)
    assert roles == [GatewayRole.STANDBY, GatewayRole.OWNER]
    await gateway.close()


@pytest.mark.rule("S12")
@in_virtual_time
async def test_without_standing_by_a_living_owner_is_an_error_that_names_it() -> None:
    hall, lease = Hall(), Owned()
    with pytest.raises(NamespaceOwnedError, match="gateway at other:1 owns"):
        await hall.gateway(lease).start(stand_by=False)
    assert hall.logs == []
    assert lease.released


@pytest.mark.rule("S12")
@in_virtual_time
async def test_who_is_told_to_take_over_does() -> None:
    gateway = Hall().gateway(Owned())
    await gateway.start(take_over=True, stand_by=False)
    assert gateway.role is GatewayRole.OWNER
    await gateway.close()


class Later(Switch):
    """A lease whose former holder must be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.is_held = False

    async def wait_until_held(self) -> None:
        await asyncio.sleep(1.1)
        self.is_held = True


@pytest.mark.rule("S11")
@in_virtual_time
async def test_the_journal_is_replayed_while_the_former_owner_is_waited_for_and_nothing_is_changed() -> None:
    """The wait for the lease and the replay stood one behind the other, and clients waited for both."""
    hall, lease = Hall(), Later()
    gateway = hall.gateway(lease, GatewayConfig(quotas={"/c": 10}))
    starting = asyncio.ensure_future(gateway.start())
    asking = asyncio.ensure_future(gateway.owner())
    await asyncio.sleep(1)
    assert len(hall.logs) == 1, "the journal is claimed meanwhile"
    assert hall.logs[0].ops == [], "but nothing is written"
    assert not asking.done() and not starting.done()
    await starting
    assert await asking is gateway.session
    assert len(hall.logs[0].ops) == 1
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
    assert gateway.role is GatewayRole.STANDBY
    assert len(hall.logs) == 1
    await gateway.close()


@in_virtual_time
async def test_quotas_of_the_configuration_are_kept() -> None:
    gateway = Hall().gateway(config=GatewayConfig(quotas={"/c": 10}, names_quotas={"/c": 3}))
    await gateway.start()
    owner = await gateway.owner()
    await put(owner, "/c/a", bytes(10))
    with pytest.raises(QuotaExceededError):
        await put(owner, "/c/b", bytes(1))
    await put(owner, "/c/b", b"")
    with pytest.raises(NameQuotaExceededError):
        await put(owner, "/c/c", b"")
    await gateway.close()


class Contested(Switch):
    """A lease that is snatched away while it is being acquired; tells how it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[LeaseEntry] = []
        self.snatched = 0
        self.odd: Exception | None = None

    async def acquire(self, entry: LeaseEntry) -> None:
        self.asked.append(entry)
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
    assert gateway.role is GatewayRole.OWNER
    assert lease.asked == [LeaseEntry.IF_VACANT, LeaseEntry.WHEN_VACANT, LeaseEntry.WHEN_VACANT], (
        "it fights with nobody"
    )
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
    assert set(lease.asked[1:]) == {LeaseEntry.WHEN_VACANT}, (
        "it must not snatch the lease from one that can open it, again and again"
    )
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
    assert gateway.role is GatewayRole.OWNER
    await gateway.close()
