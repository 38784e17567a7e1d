"""Deleted ledgers can be brought back while their records exist (G8)."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from bookkeeper.errors import (
    LedgerExistsError,
    MetadataConflictError,
    MetadataFormatError,
    MetadataUnavailableError,
    NoSuchLedgerError,
)
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.meta.records import deleted_ledgers
from bookkeeper.meta.records.deleted_ids import MERGE_MIN
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger, decode
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledgers import Ledgers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, Version
from bookkeeper.meta.stores.memory import MemoryCluster
from tests.bookkeeper.meta.records.test_ledgers import NEW, ledgers_in
from tests.bookkeeper.meta.services import REPLY_LOST, REQUEST_LOST, Losing, MemoryService

SEVEN = LedgerId(7)


async def restorable(ledgers: Ledgers) -> list[int]:
    return [ledger async for ledger in ledgers.restorable.all()]


@pytest.mark.rule("G8", "M6")
@pytest.mark.parametrize("number", [7, 2**62])
async def test_a_deleted_ledger_comes_back_as_it_was(store: MetadataStore, number: int) -> None:
    """On every kind of store. Its id stays used throughout, also when it is deleted once more."""
    ledgers, ledger = ledgers_in(store), LedgerId(number)
    _, created = await ledgers.create(NEW, ledger)
    closed = await ledgers.write(ledger, NEW.begin_recovery(), created.version)
    stored = (await store.get(ledgers.path(ledger))).value
    for _ in range(2):
        await ledgers.delete(ledger, grace_s=100)
        with pytest.raises(NoSuchLedgerError):
            await ledgers.read(ledger)
        with pytest.raises(LedgerExistsError, match="id cannot be used again"):
            await ledgers.create(NEW, ledger)
        assert await restorable(ledgers) == [number]
        assert (await ledgers.restorable.read(ledger)).metadata == closed.value
        await ledgers.restore(ledger)
        assert (await store.get(ledgers.path(ledger))).value == stored
        assert await restorable(ledgers) == [] and not await ledgers.deleted.has(ledger)
        with pytest.raises(LedgerExistsError, match="exists already"):
            await ledgers.create(NEW, ledger)
    await ledgers.delete(ledger)
    assert await ledgers.deleted.has(ledger)
    with pytest.raises(NoSuchLedgerError, match="cannot be brought back"):
        await ledgers.restore(ledger)


@pytest.mark.rule("G8")
async def test_the_record_goes_when_the_grace_is_over_by_the_store_s_clock(store: MetadataStore) -> None:
    """On every kind of store. What lies above a record goes with the last one."""
    ledgers = ledgers_in(store)
    for number in (1, 2, 2**30):
        await ledgers.create(NEW, LedgerId(number))
        await ledgers.delete(LedgerId(number), grace_s=1000)
    records = ledgers.restorable
    now, ids = await records.now_ms(), [LedgerId(number) for number in (1, 2, 2**30)]
    assert await records.remove_expired(ids, now + 900_000) == set() and await restorable(ledgers) == ids
    assert await records.remove_expired(ids[:1], now + 1_100_000) == {1} and await restorable(ledgers) == ids[1:]
    assert await records.remove_expired(ids, now + 1_100_000) == set(ids) and await restorable(ledgers) == []
    assert await store.children(Paths().own("deleted", "ledgers")) == []
    with pytest.raises(NoSuchLedgerError, match="time for that is over"):
        await ledgers.restore(ids[0])


@pytest.mark.rule("G8", "M8")
@pytest.mark.parametrize("lost", [REPLY_LOST, REQUEST_LOST])
async def test_writes_without_an_answer_leave_one_of_the_two_and_never_both(
    memory_service: MemoryService, lost: object
) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    await ledgers.create(NEW, SEVEN)
    memory_service.cluster.interference = Losing(multi=[lost, lost])  # type: ignore[list-item]
    await ledgers.delete(SEVEN, grace_s=100)
    assert await restorable(ledgers) == [7]
    memory_service.cluster.interference = Losing(multi=[lost, lost])  # type: ignore[list-item]
    await ledgers.restore(SEVEN)
    assert await restorable(ledgers) == [] and (await ledgers.read(SEVEN)).value.spec == NEW.spec


@pytest.mark.rule("G8", "M8")
async def test_a_record_that_the_store_never_takes_is_an_error_and_the_ledger_stays(
    memory_service: MemoryService,
) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    await ledgers.create(NEW, SEVEN)
    memory_service.cluster.interference = Losing(multi=[REQUEST_LOST] * 50)
    with pytest.raises(MetadataUnavailableError):
        await ledgers.delete(SEVEN, grace_s=100)
    await ledgers.read(SEVEN)


@pytest.mark.rule("G8", "M8")
async def test_a_grace_that_is_ended_is_ended_or_an_error(memory_service: MemoryService) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    for lost, ended in ((2, True), (50, False)):
        await ledgers.create(NEW, LedgerId(lost))
        await ledgers.delete(LedgerId(lost), grace_s=100)
        memory_service.cluster.interference = Losing(multi=[REQUEST_LOST] * lost)
        if ended:
            await ledgers.restorable.remove(LedgerId(lost))
        else:
            with pytest.raises(MetadataUnavailableError, match="can still be brought back"):
                await ledgers.restorable.remove(LedgerId(lost))
        memory_service.cluster.interference = None
        assert await ledgers.restorable.has(LedgerId(lost)) is not ended


@pytest.mark.rule("G8", "M1")
async def test_only_the_version_that_was_read_is_deleted(memory_service: MemoryService) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    _, created = await ledgers.create(NEW, SEVEN)
    await ledgers.write(SEVEN, NEW.begin_recovery(), created.version)
    with pytest.raises(MetadataConflictError):
        await ledgers.delete(SEVEN, Version(0), grace_s=100)
    assert await restorable(ledgers) == []


@pytest.mark.rule("G8", "M6")
async def test_who_has_made_the_id_anew_keeps_it(memory_service: MemoryService) -> None:
    """Apache's client knows no marks. When its ledger is deleted, too, that one is what can be brought back."""
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    await ledgers.create(NEW, SEVEN)
    await ledgers.delete(SEVEN, grace_s=100)
    await store.create(ledgers.path(SEVEN), b"another", parents=True)
    with pytest.raises(LedgerExistsError, match="somebody has made another ledger"):
        await ledgers.restore(SEVEN)
    assert (await store.get(ledgers.path(SEVEN))).value == b"another"
    await ledgers.delete(SEVEN, grace_s=100)
    assert (await ledgers.restorable.read(SEVEN)).value == b"another"


@pytest.mark.rule("G8")
async def test_an_undeletion_keeps_the_marks_of_its_neighbours(memory_service: MemoryService) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    ids = [LedgerId(number) for number in range(MERGE_MIN)]
    for number in ids:
        await ledgers.create(NEW, number)
        await ledgers.delete(number, grace_s=100)
    await ledgers.deleted.merge(ledgers.deleted.place(0))
    await ledgers.restore(ids[4])
    assert await ledgers.deleted.near(ids) == IdRanges([(0, 3), (5, ids[-1])])


@pytest.mark.rule("G8", "M6")
async def test_no_bookie_remembers_what_can_be_brought_back_as_gone(memory_service: MemoryService) -> None:
    """It would refuse the copies that a repair makes there."""
    store = await memory_service.connect()
    ledgers, other = ledgers_in(store), ledgers_in(await memory_service.connect(), seed=2)
    for number in range(6):
        await ledgers.create(NEW, LedgerId(number))
        await ledgers.delete(LedgerId(number), grace_s=100 if number in (2, 4) else 0)
    assert await ledgers.never_again([LedgerId(0)]) == IdRanges([(0, 1), (3, 3), (5, 5)])
    near = ledgers.restorable.near
    looks: list[int] = []

    async def restored_in_between(ledger_id: int) -> list[LedgerId]:
        if not looks:
            await other.restore(LedgerId(2))
        looks.append(ledger_id)
        return await near(ledger_id)

    ledgers.restorable.near = restored_in_between  # type: ignore[method-assign]
    assert 2 not in await ledgers.never_again([LedgerId(0)])
    assert len(looks) == 2


@pytest.mark.rule("G8")
async def test_a_ledger_that_is_brought_back_and_deleted_anew_has_its_grace_anew() -> None:
    clock = [0]
    cluster = MemoryCluster(lambda: clock[0])
    ledgers = ledgers_in(cluster.connect())
    await ledgers.create(NEW, SEVEN)
    await ledgers.delete(SEVEN, grace_s=100)
    clock[0] = 90_000
    await ledgers.restore(SEVEN)
    await ledgers.delete(SEVEN, grace_s=100)
    clock[0] = 110_000
    assert await ledgers.restorable.remove_expired([SEVEN], await ledgers.restorable.now_ms()) == set()
    clock[0] = 190_000
    assert await ledgers.restorable.remove_expired([SEVEN], await ledgers.restorable.now_ms()) == {SEVEN}


@pytest.mark.rule("G8")
async def test_who_deletes_looks_now_and_then_for_records_whose_time_is_over() -> None:
    """Bookies of Apache's do not: the records would grow for ever."""
    clock = [0]
    store = MemoryCluster(lambda: clock[0]).connect()
    ledgers = Ledgers(store, Paths(), Layout.HIERARCHICAL, random.Random(3))
    most = 0
    for number in range(600):
        clock[0] += 3_600_000
        await ledgers.create(NEW, LedgerId(number))
        await ledgers.delete(LedgerId(number), grace_s=10)
        most = max(most, len(await restorable(ledgers)))
    assert most < 150


@pytest.mark.rule("G8")
async def test_who_deletes_while_the_stores_clock_is_hours_ahead_ends_no_grace() -> None:
    clock = [0]
    ledgers = Ledgers(MemoryCluster(lambda: clock[0]).connect(), Paths(), Layout.HIERARCHICAL, random.Random(3))
    await ledgers.create(NEW, LedgerId(0))
    await ledgers.delete(LedgerId(0), grace_s=600)
    clock[0] = 20 * 3_600_000
    for number in range(1, 200):
        await ledgers.create(NEW, LedgerId(number))
        await ledgers.delete(LedgerId(number), grace_s=600)
    clock[0] = 1000
    assert 0 in await restorable(ledgers)


@pytest.mark.rule("G8")
async def test_two_who_bring_it_back_at_once_bring_back_one(store: MetadataStore) -> None:
    ledgers = ledgers_in(store)
    await ledgers.create(NEW, SEVEN)
    await ledgers.delete(SEVEN, grace_s=100)
    ends = await asyncio.gather(*(ledgers.restore(SEVEN) for _ in range(3)), return_exceptions=True)
    assert [end for end in ends if end is None] == [None]
    assert all(isinstance(end, NoSuchLedgerError) for end in ends if end is not None)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}\nx",
        b'{"grace_s": "1"}\nx',
        b'{"grace_s": 1}',
        b"\xff\nx",
        b"[1]\nx",
        b'{"grace_s": 1, "version": ""}\nx',
    ],
)
@pytest.mark.rule("X29")
def test_a_damaged_record_is_refused_by_name(value: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="deleted ledger 7"):
        decode(SEVEN, value)


def test_a_record_says_the_grace_and_what_was_stored() -> None:
    record = DeletedLedger(SEVEN, 60, b"a\nb", 1000, Version(4))
    assert decode(SEVEN, record.encode(), 1000) == record and record.until_ms == 61_000


def test_a_record_of_an_earlier_release_says_no_version() -> None:
    assert decode(SEVEN, b'{"grace_s": 60}\na') == DeletedLedger(SEVEN, 60, b"a")


@pytest.mark.rule("M2")
@pytest.mark.parametrize("times", [0, 1, 5])
async def test_who_has_slept_since_before_the_deletion_replaces_nothing(store: MetadataStore, times: int) -> None:
    """On every kind of store. A writer that has only seen the open ledger must not open it again."""
    ledgers = ledgers_in(store)
    _, found = await ledgers.create(NEW, SEVEN)
    seen = [found]
    for _ in range(times):
        seen.append(await ledgers.write(SEVEN, NEW, seen[-1].version))
    recovering = await ledgers.write(SEVEN, NEW.begin_recovery(), seen[-1].version)
    for _ in range(2):
        await ledgers.delete(SEVEN, grace_s=100)
        await ledgers.restore(SEVEN)
        for each in (*seen, recovering):
            with pytest.raises(MetadataConflictError):
                await ledgers.write(SEVEN, NEW, each.version)
        now = await ledgers.read(SEVEN, fresh=True)
        assert now.value == recovering.value
        seen.append(now)
    assert (await ledgers.write(SEVEN, recovering.value, now.version)).version > now.version


async def test_metadata_that_changed_very_often_come_back_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one transaction that every store takes."""
    monkeypatch.setattr(deleted_ledgers, "VERSIONS_MAX", 3)
    ledgers = ledgers_in(MemoryCluster(lambda: 0).connect())
    _, found = await ledgers.create(NEW, SEVEN)
    for _ in range(6):
        found = await ledgers.write(SEVEN, NEW, found.version)
    await ledgers.delete(SEVEN, grace_s=100)
    await ledgers.restore(SEVEN)
    now = await ledgers.read(SEVEN)
    assert now.value == NEW and now.version == 4


async def test_the_record_of_an_earlier_release_brings_its_ledger_back() -> None:
    store = MemoryCluster(lambda: 0).connect()
    ledgers = ledgers_in(store)
    _, found = await ledgers.create(NEW, SEVEN)
    await ledgers.delete(SEVEN, grace_s=100)
    path = ledgers.restorable.path(SEVEN)
    record = await store.get(path)
    await store.set(path, b'{"grace_s": 100}\n' + record.value.partition(b"\n")[2], record.version)
    await ledgers.restore(SEVEN)
    assert (await ledgers.read(SEVEN)).value == found.value


@pytest.mark.rule("M2", "M9")
@pytest.mark.parametrize("at", range(6))
async def test_metadata_come_back_as_they_were_last_also_when_somebody_else_brought_them_back_meanwhile(
    at: int,
) -> None:
    """It is brought back, changed and deleted again by somebody else: its record has the same version."""
    service = MemoryService()
    store = await service.connect()
    others = ledgers_in(await service.connect())
    for ledger in (SEVEN, LedgerId(8)):  # the second one keeps the parent
        await others.create(NEW, ledger)
    await others.delete(SEVEN, grace_s=100)
    calls = 0

    class Meanwhile:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def get(self, path: str) -> Any:
            await self._one()
            return await store.get(path)

        async def exists(self, path: str) -> Version | None:
            await self._one()
            return await store.exists(path)

        async def _one(self) -> None:
            nonlocal calls
            calls += 1
            if calls == at + 1:
                await others.restore(SEVEN)
                found = await others.read(SEVEN)
                await others.write(SEVEN, NEW.begin_recovery(), found.version)
                await others.delete(SEVEN, grace_s=100)

    await ledgers_in(Meanwhile()).restore(SEVEN)
    assert ((await others.read(SEVEN)).value.state is NEW.begin_recovery().state) == (calls > at)


@pytest.mark.rule("G8", "M9")
async def test_a_record_whose_time_was_over_stays_if_its_ledger_was_deleted_anew_meanwhile() -> None:
    """It is brought back and deleted again between the look at its record and the removal."""
    service = MemoryService()
    store = await service.connect()
    others = ledgers_in(await service.connect())
    for ledger in (SEVEN, LedgerId(8)):
        await others.create(NEW, ledger)
    await others.delete(SEVEN, grace_s=1)

    class Meanwhile:
        asked = False

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def multi(self, operations: Any) -> Any:
            if not self.asked:
                self.asked = True
                await others.restore(SEVEN)
                await others.delete(SEVEN, grace_s=100)
            return await store.multi(operations)

    records = ledgers_in(Meanwhile()).restorable
    assert await records.remove_expired([SEVEN], 5000) == set()
    assert await others.restorable.has(SEVEN, fresh=True)


@pytest.mark.rule("M8", "G8")
async def test_a_grace_that_is_ended_by_order_is_not_that_of_a_later_deletion() -> None:
    """The removal is done, no answer comes, and a later deletion of a ledger of this id has written its record."""
    service = MemoryService()
    store = await service.connect()
    ledgers = ledgers_in(store)
    await ledgers.create(NEW, SEVEN)
    await ledgers.delete(SEVEN, grace_s=100)
    path = ledgers.restorable.path(SEVEN)
    record = (await store.get(path)).value

    class Meanwhile:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def multi(self, operations: Any) -> Any:
            await store.multi(operations)
            await store.create(path, record, parents=True)
            raise MetadataUnavailableError("no answer")

    await ledgers_in(Meanwhile()).restorable.remove(SEVEN)
    assert await ledgers.restorable.has(SEVEN, fresh=True)


@pytest.mark.rule("G8", "M9")
async def test_a_grace_that_is_ended_by_order_leaves_the_record_of_a_deletion_in_the_same_moment() -> None:
    """Between the look at the record and its removal the ledger is brought back and deleted again. The removal named no
    version, and what had just been deleted could not be brought back."""
    service = MemoryService()
    store = await service.connect()
    others = ledgers_in(await service.connect())
    for ledger in (SEVEN, LedgerId(8)):
        await others.create(NEW, ledger)
    await others.delete(SEVEN, grace_s=1)

    class Meanwhile:
        asked = False

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def multi(self, operations: Any) -> Any:
            if not self.asked:
                self.asked = True
                await others.restore(SEVEN)
                await others.delete(SEVEN, grace_s=100)
            return await store.multi(operations)

    await ledgers_in(Meanwhile()).restorable.remove(SEVEN)
    assert (await others.restorable.read(SEVEN)).grace_s == 100


@pytest.mark.rule("G8", "M8")
@pytest.mark.parametrize("then", ["changed", "deleted again", "deleted again between two looks", "nothing"])
async def test_what_becomes_of_a_ledger_that_has_come_back_stays_also_if_the_answer_was_lost(then: str) -> None:
    """It is brought back, no answer comes, and somebody else changes or deletes it: it is not brought back once more,
    and its return is no error."""
    service = MemoryService()
    store = await service.connect()
    others = ledgers_in(await service.connect())
    for ledger in (SEVEN, LedgerId(8)):
        await others.create(NEW, ledger)
    await others.delete(SEVEN, grace_s=100)

    class Meanwhile:
        asked = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def multi(self, operations: Any) -> Any:
            self.asked += 1
            await store.multi(operations)
            if then == "changed":
                found = await others.read(SEVEN)
                await others.write(SEVEN, NEW.begin_recovery(), found.version)
            elif then == "deleted again":
                await others.delete(SEVEN, grace_s=200)
            raise MetadataUnavailableError("no answer")

        async def exists(self, path: str) -> Version | None:
            if then == "deleted again between two looks" and self.asked and path == others.path(SEVEN):
                await others.delete(SEVEN, grace_s=200)
            return await store.exists(path)

    hand = Meanwhile()
    await ledgers_in(hand).restore(SEVEN)
    assert hand.asked == 1
    if then.startswith("deleted again"):
        with pytest.raises(NoSuchLedgerError):
            await others.read(SEVEN)
        assert (await others.restorable.read(SEVEN)).grace_s == 200
    else:
        assert await restorable(others) == []
        assert ((await others.read(SEVEN)).value.state is NEW.state) == (then == "nothing")


@pytest.mark.rule("G8", "M8")
async def test_a_ledger_of_the_same_metadata_beside_its_record_has_not_come_back() -> None:
    """As a program makes it that copies metadata: who brings the ledger back learns that somebody has made it."""
    service = MemoryService()
    store = await service.connect()
    others = ledgers_in(await service.connect())
    for ledger in (SEVEN, LedgerId(8)):
        await others.create(NEW, ledger)
    await others.delete(SEVEN, grace_s=100)
    value = (await others.restorable.read(SEVEN)).value

    class Meanwhile:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def multi(self, operations: Any) -> Any:
            await store.create(others.path(SEVEN), value)
            raise MetadataUnavailableError("no answer")

    with pytest.raises(LedgerExistsError, match="somebody has made another ledger"):
        await ledgers_in(Meanwhile()).restore(SEVEN)


@pytest.mark.rule("G8", "M9")
async def test_a_record_that_was_written_anew_meanwhile_is_the_one_that_counts() -> None:
    """A client that knows no marks has made the ledger anew, and it was deleted, between the look and the return."""
    service = MemoryService()
    store = await service.connect()
    others = ledgers_in(await service.connect())
    for ledger in (SEVEN, LedgerId(8)):
        await others.create(NEW, ledger)
    await others.delete(SEVEN, grace_s=100)
    path = others.restorable.path(SEVEN)
    newer = DeletedLedger(SEVEN, 100, b"newer", version=Version(3)).encode()

    class Meanwhile:
        asked = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def multi(self, operations: Any) -> Any:
            self.asked += 1
            if self.asked == 1:
                await store.set(path, newer, None)
            return await store.multi(operations)

    await ledgers_in(Meanwhile()).restore(SEVEN)
    assert (await store.get(others.path(SEVEN))).value == b"newer"
