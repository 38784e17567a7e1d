from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from bookkeeper.errors import (
    LedgerClosedError,
    LedgerExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataForbiddenError,
    MetadataFormatError,
    MetadataUnavailableError,
    NoSuchLedgerError,
    SessionExpiredError,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledgers import Ledgers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import LOST_MAX, MetadataStore, Version
from bookkeeper.meta.stores.memory import Fate
from tests.bookkeeper.meta.services import FINE, REPLY_LOST, REQUEST_LOST, Losing, MemoryService, Recording
from tests.contracts.metadata_store import Calls, Service

SPEC = QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)
NEW = LedgerMetadata.create(SPEC, [BookieId("a:1")])


def ledgers_in(store: MetadataStore, layout: Layout = Layout.HIERARCHICAL, seed: int = 1) -> Ledgers:
    return Ledgers(store, Paths(), layout, random.Random(seed))


@pytest.fixture
async def ledgers(memory_service: MemoryService) -> Ledgers:
    return ledgers_in(await memory_service.connect())


async def test_a_ledger_from_creation_to_deletion(store: MetadataStore) -> None:
    """On every kind of store."""
    ledgers = ledgers_in(store)
    number, created = await ledgers.create(NEW)
    assert (number, created.version) == (0, 0)
    found = await ledgers.read(number, fresh=True)
    assert found.value == created.value
    assert found.value.creator_token > 0
    written = await ledgers.write(number, found.value.begin_recovery(), found.version)
    assert (await ledgers.read(number)).value == written.value
    with pytest.raises(MetadataConflictError):
        await ledgers.write(number, found.value, found.version)
    with pytest.raises(MetadataConflictError):
        await ledgers.delete(number, Version(0))
    await ledgers.delete(number, written.version)
    with pytest.raises(NoSuchLedgerError):
        await ledgers.read(number)
    with pytest.raises(NoSuchLedgerError):
        await ledgers.write(number, found.value, written.version)
    await ledgers.delete(number)
    assert [ledger async for ledger in ledgers.list()] == []
    assert await store.children(Paths().root) == ["idgen"]


@pytest.mark.parametrize("layout", Layout)
async def test_ledgers_are_listed_in_order(memory_service: MemoryService, layout: Layout) -> None:
    ledgers = ledgers_in(await memory_service.connect(), layout)
    short = layout in (Layout.FLAT, Layout.LEGACY_HIERARCHICAL)
    ids = [3, 10_000, 123_456_789, *([] if short else [2**31 - 1, 2**32, 2**62])]
    for number in reversed(ids):
        await ledgers.create(NEW, LedgerId(number))
    assert [ledger async for ledger in ledgers.list()] == ids
    if short:
        with pytest.raises(NoSuchLedgerError):
            await ledgers.read(LedgerId(2**40))


async def test_a_callers_id_is_taken_once(ledgers: Ledgers) -> None:
    await ledgers.create(NEW, LedgerId(7))
    with pytest.raises(LedgerExistsError):
        await ledgers.create(NEW, LedgerId(7))


async def test_a_generated_id_that_a_caller_chose_before_is_passed_over(ledgers: Ledgers) -> None:
    await ledgers.create(NEW, LedgerId(0))
    assert (await ledgers.create(NEW))[0] == 1


@pytest.mark.rule("M5", "M8", "Z4")
@pytest.mark.parametrize("lost", [REPLY_LOST, REQUEST_LOST])
async def test_a_creation_without_answer_is_done_once(memory_service: MemoryService, lost: object) -> None:
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    await ledgers.create(NEW, LedgerId(1))
    hand = memory_service.cluster.interference = Losing(create=[lost])  # type: ignore[list-item]
    number, created = await ledgers.create(NEW, LedgerId(2))
    assert len(hand.lost) == 1
    assert (await ledgers.read(number)).value == created.value
    assert [ledger async for ledger in ledgers.list()] == [1, 2]


@pytest.mark.rule("M5", "M8")
@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.9], ids=lambda at: f"at {at} s")
async def test_a_creation_outlives_the_session_it_was_begun_in(memory_service: MemoryService, at: float) -> None:
    """It expires at each of its steps: before and after the id is drawn, before and after the value is there."""
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    await ledgers.create(NEW)
    slow = Fate(delay_before_s=0.2, delay_after_s=0.2)
    memory_service.cluster.interference = Losing(create=[slow, slow])
    asyncio.get_running_loop().call_later(at, memory_service.cluster.expire, store)
    number, created = await ledgers.create(NEW)
    assert (await ledgers.read(number)).value == created.value
    assert [ledger async for ledger in ledgers.list()] == [0, number]


@pytest.mark.rule("M5")
async def test_a_clash_after_a_lost_request_is_told_from_our_own_success(memory_service: MemoryService) -> None:
    """Ours is lost on the way; meanwhile another creates the same id, with equal metadata but its own token."""
    ours, theirs = [ledgers_in(await memory_service.connect(), seed=seed) for seed in (1, 2)]
    memory_service.cluster.interference = Losing(create=[REQUEST_LOST, FINE])
    mine = asyncio.create_task(ours.create(NEW, LedgerId(5)))
    await asyncio.sleep(0)
    await theirs.create(NEW, LedgerId(5))
    with pytest.raises(LedgerExistsError):
        await mine


@pytest.mark.rule("M8", "M1")
async def test_a_write_without_answer_is_read_again_and_compared(memory_service: MemoryService) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    number, created = await ledgers.create(NEW)
    memory_service.cluster.interference = Losing(set=[REPLY_LOST, REQUEST_LOST])
    recovering = await ledgers.write(number, created.value.begin_recovery(), created.version)
    assert recovering.version == 1
    closed = await ledgers.write(number, recovering.value.close_recovered(-1, 0), recovering.version)
    assert closed.version == 2
    assert (await ledgers.read(number)).value.state is LedgerState.CLOSED


@pytest.mark.rule("M8")
async def test_a_lost_write_that_another_followed_is_a_conflict(memory_service: MemoryService) -> None:
    """Whether ours was done cannot be told any more: whoever wrote decides from what is there now."""
    store = await memory_service.connect()
    ledgers, other = ledgers_in(store), ledgers_in(await memory_service.connect())
    number, created = await ledgers.create(NEW)

    class Overtaken(Losing):
        async def finish(self) -> None:
            found = await other.read(number)
            await other.write(number, found.value.close_recovered(-1, 0), found.version)

    memory_service.cluster.interference = hand = Overtaken(set=[REPLY_LOST])
    original = store.sync

    async def sync(path: str) -> None:
        await hand.finish()
        await original(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "sync", sync)
        with pytest.raises(MetadataConflictError):
            await ledgers.write(number, created.value.begin_recovery(), created.version)
    assert (await ledgers.read(number)).value.state is LedgerState.CLOSED


@pytest.mark.rule("M8")
async def test_a_write_that_cannot_be_checked_stays_unknown(
    memory_service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bookkeeper.meta.stores.memory.OPERATION_TIMEOUT_S", 0.01)
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    number, created = await ledgers.create(NEW)
    memory_service.cluster.suspend(store)
    with pytest.raises(MetadataUnavailableError):
        await ledgers.write(number, created.value.begin_recovery(), created.version)


@pytest.mark.rule("M1", "M2", "M3")
async def test_of_many_that_close_at_once_one_decides_the_end(service: Service, store: MetadataStore) -> None:
    number, _ = await ledgers_in(store).create(NEW)

    async def close(session: MetadataStore, last: int) -> int:
        ledgers = ledgers_in(session)
        while True:
            found = await ledgers.read(number, fresh=True)
            try:
                wanted = found.value.begin_recovery().close_recovered(last, last)
                return (await ledgers.write(number, wanted, found.version)).value.last_entry
            except MetadataConflictError:
                continue
            except LedgerClosedError:
                return found.value.last_entry

    sessions = [store, await service.connect(), await service.connect()]
    ends = await asyncio.gather(*(close(session, last) for last, session in enumerate(sessions, 10)))
    assert len(set(ends)) == 1
    assert (await ledgers_in(store).read(number, fresh=True)).version == 1


async def test_a_watch_tells_of_changes_and_of_the_end(memory_service: MemoryService) -> None:
    ledgers, calls = ledgers_in(await memory_service.connect()), Calls()
    number, created = await ledgers.create(NEW)
    ledgers.watch(number, calls)
    await ledgers.write(number, created.value.begin_recovery(), created.version)
    await calls.wait()
    await ledgers.delete(number)
    await calls.wait()


async def test_parents_that_are_still_used_stay(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    for number in (1, 2, 10_000):
        await ledgers.create(NEW, LedgerId(number))
    await ledgers.delete(LedgerId(10_000))
    assert await store.children("/ledgers/00") == ["0000"]
    await ledgers.delete(LedgerId(1))
    assert await store.children("/ledgers/00/0000") == ["L0002"]


@pytest.mark.parametrize("refusal", [MetadataForbiddenError("not yours"), SessionExpiredError("gone")], ids=repr)
async def test_a_deletion_is_done_though_a_parent_of_somebody_elses_stays(
    memory_service: MemoryService, monkeypatch: pytest.MonkeyPatch, refusal: MetadataError
) -> None:
    """A node's access list, or the end of our session, may keep us from the parents; the ledger is gone by then."""
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    number, _ = await ledgers.create(NEW)
    delete = store.delete

    async def guarded(path: str, expected: Version | None) -> None:
        if path != ledgers.path(number):
            raise refusal
        await delete(path, expected)

    monkeypatch.setattr(store, "delete", guarded)
    await ledgers.delete(number)
    with pytest.raises(NoSuchLedgerError):
        await ledgers.read(number)


@pytest.mark.rule("M8")
async def test_a_write_that_is_lost_each_time_is_given_up_and_says_how_large_it_is(
    memory_service: MemoryService,
) -> None:
    """As ZooKeeper does with one above its limit: it ends the connection, each time."""
    ledgers = ledgers_in(await memory_service.connect())
    number, created = await ledgers.create(NEW)
    memory_service.cluster.interference = losing = Losing(set=[REQUEST_LOST] * 99, create=[FINE, *[REQUEST_LOST] * 99])
    with pytest.raises(MetadataUnavailableError, match=r"no answer to 10 writes of \d+ bytes.*jute\.maxbuffer"):
        await ledgers.write(number, created.value.begin_recovery(), created.version)
    with pytest.raises(MetadataUnavailableError, match=r"jute\.maxbuffer"):
        await ledgers.create(NEW)
    assert len(losing.lost) == 1 + 2 * LOST_MAX
    memory_service.cluster.interference = None
    assert (await ledgers.read(number)).version == created.version


@pytest.mark.rule("M6")
async def test_the_id_of_a_deleted_ledger_is_not_issued_again(memory_service: MemoryService) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    number, _ = await ledgers.create(NEW)
    await ledgers.delete(number)
    assert (await ledgers.create(NEW))[0] == number + 1


@pytest.mark.rule("Z6")
async def test_what_destroys_or_hides_data_is_decided_on_fresh_reads(memory_service: MemoryService) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    number, created = await ledgers.create(NEW)
    memory_service.cluster.interference = seen = Recording()
    await ledgers.read(number, fresh=True)
    assert seen.kinds == ["sync", "get"]
    seen.kinds.clear()
    assert [ledger async for ledger in ledgers.list()] == [number]
    assert seen.kinds[:2] == ["sync", "children"]
    memory_service.cluster.interference = Losing(set=[REPLY_LOST])
    assert (await ledgers.write(number, created.value.begin_recovery(), created.version)).version == 1


async def test_a_ledgers_metadata_is_one_call_to_read_and_one_to_write(memory_service: MemoryService) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    number, created = await ledgers.create(NEW)
    memory_service.cluster.interference = seen = Recording()
    await ledgers.write(number, created.value, created.version)
    await ledgers.read(number)
    assert seen.kinds == ["set", "get"]


@pytest.mark.rule("M2", "M6")
async def test_metadata_are_put_back_only_where_none_can_be_read(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    number, _ = await ledgers.create(NEW)
    value = await ledgers.stored(number)
    assert not await ledgers.put_back(number, value), "they are there"
    with pytest.raises(MetadataFormatError):
        await ledgers.put_back(number, b"rubbish")
    found = await ledgers.read(number)
    await ledgers.write(number, found.value.begin_recovery(), found.version)
    with pytest.raises(LedgerExistsError, match="can be read"):
        await ledgers.put_back(number, value)
    await store.set(ledgers.path(number), b"rubbish", None)
    assert await ledgers.put_back(number, value, dry_run=True)
    assert await ledgers.stored(number) == b"rubbish"
    assert await ledgers.put_back(number, value)
    assert (await ledgers.read(number)).value.state is LedgerState.OPEN
    await store.delete(ledgers.path(number), None)
    with pytest.raises(NoSuchLedgerError):
        await ledgers.stored(number)
    assert await ledgers.put_back(number, value, dry_run=True) and await ledgers.put_back(number, value)
    await ledgers.delete(number, grace_s=60)
    with pytest.raises(LedgerExistsError, match="undelete"):
        await ledgers.put_back(number, value)
    await ledgers.restore(number)
    await ledgers.delete(number)
    with pytest.raises(LedgerExistsError, match="for good"):
        await ledgers.put_back(number, value)


@pytest.mark.rule("M6", "G1")
async def test_metadata_are_not_put_back_while_a_bookie_finds_the_ledger_gone(memory_service: MemoryService) -> None:
    """A bookie marks the id before it drops the data. Metadata that were put back between the look for the mark and
    the write named a ledger whose data went."""
    store, other = await memory_service.connect(), await memory_service.connect()
    ledgers, bookies = ledgers_in(store), ledgers_in(other, seed=2)
    number, _ = await ledgers.create(NEW)
    value = await ledgers.stored(number)
    await store.delete(ledgers.path(number), None)
    create = store.create

    async def create_then(path: str, *args: Any, **options: Any) -> tuple[str, Version]:
        store.create = create  # type: ignore[method-assign]
        assert await bookies.deleted.add(number, bookies.path(number))
        return await create(path, *args, **options)

    store.create = create_then  # type: ignore[method-assign]
    with pytest.raises(LedgerExistsError, match="for good"):
        await ledgers.put_back(number, value)
    with pytest.raises(NoSuchLedgerError):
        await ledgers.stored(number)
