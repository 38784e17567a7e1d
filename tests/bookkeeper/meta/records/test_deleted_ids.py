"""Marks of deleted ledgers: their ids are not given out again (M6)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from bookkeeper.errors import (
    LedgerExistsError,
    MetadataFormatError,
    MetadataUnavailableError,
    NoSuchLedgerError,
    SessionExpiredError,
)
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.meta.records.deleted_ids import IDS, MERGE_MIN, DeletedIds, decode, encode
from bookkeeper.meta.records.ledgers import Ledgers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import Delete, MetadataStore, Operation, Set, Version, Versioned
from bookkeeper.meta.stores.memory import Fate
from tests.bookkeeper.meta.records.test_ledgers import NEW, ledgers_in
from tests.bookkeeper.meta.services import REPLY_LOST, REQUEST_LOST, Losing, MemoryService, Recording


def marks_in(store: MetadataStore) -> DeletedIds:
    return DeletedIds(store, Paths(), random.Random(1))


@pytest.mark.rule("M6")
async def test_the_id_of_a_deleted_ledger_cannot_be_chosen_again(store: MetadataStore) -> None:
    """It could: before the bookies had collected the old ledger the new one recovered with its entries, and afterwards
    the first append was refused as fenced. On every kind of store."""
    ledgers = ledgers_in(store)
    for number in (7, 2**62):
        _, created = await ledgers.create(NEW, LedgerId(number))
        await ledgers.delete(LedgerId(number), created.version)
        with pytest.raises(LedgerExistsError, match="id cannot be used again"):
            await ledgers.create(NEW, LedgerId(number))
        with pytest.raises(NoSuchLedgerError):
            await ledgers.read(LedgerId(number))
    assert (await ledgers.create(NEW, LedgerId(8)))[0] == 8


@pytest.mark.rule("M6")
async def test_the_generator_passes_over_ids_that_were_chosen_and_deleted(memory_service: MemoryService) -> None:
    """It counts by itself, and comes to every id that somebody has chosen before."""
    ledgers = ledgers_in(await memory_service.connect())
    for number in (0, 2):
        await ledgers.create(NEW, LedgerId(number))
        await ledgers.delete(LedgerId(number))
    await ledgers.create(NEW, LedgerId(3))
    assert [(await ledgers.create(NEW))[0] for _ in range(3)] == [1, 4, 5]
    assert [ledger async for ledger in ledgers.list()] == [1, 3, 4, 5]


@pytest.mark.rule("M6")
async def test_a_session_that_lags_does_not_give_an_id_out_again(memory_service: MemoryService) -> None:
    store, other = await memory_service.connect(), ledgers_in(await memory_service.connect(), seed=2)
    ledgers = ledgers_in(store)
    await ledgers.create(NEW, LedgerId(9))
    store.lag()
    for number in (0, 5):
        await other.create(NEW, LedgerId(number))
        await other.delete(LedgerId(number))
    assert (await ledgers.create(NEW))[0] == 1, "of 0 it had seen neither the life nor the end"
    with pytest.raises(LedgerExistsError):
        await ledgers.create(NEW, LedgerId(5))


@pytest.mark.rule("M6", "M8")
@pytest.mark.parametrize("lost", [REPLY_LOST, REQUEST_LOST])
async def test_a_deletion_of_unknown_outcome_leaves_its_mark(memory_service: MemoryService, lost: object) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    await ledgers.create(NEW, LedgerId(5))
    memory_service.cluster.interference = Losing(multi=[lost, lost])  # type: ignore[list-item]
    await ledgers.delete(LedgerId(5))
    assert await ledgers.deleted.has(LedgerId(5))
    with pytest.raises(NoSuchLedgerError):
        await ledgers.read(LedgerId(5))


@pytest.mark.rule("M6", "M8")
async def test_a_deletion_that_was_lost_marks_what_another_has_deleted_meanwhile(memory_service: MemoryService) -> None:
    """Apache's client leaves no mark: whoever cannot tell which of the two deletions it was leaves it."""
    store, java = await memory_service.connect(), await memory_service.connect()
    ledgers = ledgers_in(store)
    await ledgers.create(NEW, LedgerId(5))
    await store.create(ledgers.deleted.place(LedgerId(5)), b"", parents=True)
    multi = store.multi

    async def lost(operations: Sequence[Operation]) -> list[Version | None]:
        store.multi = multi  # type: ignore[method-assign]
        await java.delete(ledgers.path(LedgerId(5)), None)
        raise MetadataUnavailableError("no answer")

    store.multi = lost  # type: ignore[method-assign]
    await ledgers.delete(LedgerId(5), Version(0))
    assert await ledgers.deleted.has(LedgerId(5))


class Meanwhile:
    """A store through which a client deletes; before, or after, chosen transactions something happens."""

    def __init__(self, store: MetadataStore, *steps: Callable[[Multi], Awaitable[None]]) -> None:
        self._steps = list(steps)
        self._multi = store.multi
        store.multi = self.multi  # type: ignore[method-assign]

    async def multi(self, operations: Sequence[Operation]) -> list[Version | None]:
        if self._steps:
            await self._steps.pop(0)(partial(self._multi, operations))
        return await self._multi(operations)


Multi = Callable[[], Awaitable[list[Version | None]]]
"""Does the transaction under way."""


async def unanswered(multi: Multi) -> None:
    raise MetadataUnavailableError("no answer")


@pytest.mark.rule("M8", "M6")
@pytest.mark.parametrize("grace_s", [0, 60])
@pytest.mark.parametrize("by", ["Apache's client", "an undeletion"])
async def test_a_deletion_whose_reply_was_lost_spares_what_has_come_since(
    memory_service: MemoryService, by: str, grace_s: int
) -> None:
    """It looked whether there is a ledger, and not which: one made anew, in the version that was to be deleted, went,
    too, and one that an operator had brought back was deleted a second time, or marked as deleted while it lived."""
    store, other = await memory_service.connect(), await memory_service.connect()
    ledgers, others = ledgers_in(store), ledgers_in(other, seed=2)
    await ledgers.create(NEW, LedgerId(5))
    path, value = ledgers.path(LedgerId(5)), await ledgers.stored(LedgerId(5))
    await store.create(ledgers.deleted.place(LedgerId(5)), b"", parents=True)
    await store.create(ledgers.restorable.place(LedgerId(5)), b"", parents=True)

    async def done_and_come_back(multi: Multi) -> None:
        await multi()
        if by == "an undeletion" and grace_s:
            await others.restore(LedgerId(5))
        else:
            await other.create(path, value, parents=True)
        raise MetadataUnavailableError("no answer")

    Meanwhile(store, done_and_come_back)
    await ledgers.delete(LedgerId(5), grace_s=grace_s)
    assert await others.stored(LedgerId(5)) == value
    assert await ledgers.deleted.has(LedgerId(5)) is not (by == "an undeletion" and grace_s > 0)


@pytest.mark.rule("M8", "M6")
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("marked", [False, True])
async def test_a_deletion_that_is_repeated_fails_where_the_ledger_was_made_anew_at_its_last_look(
    memory_service: MemoryService, merged: bool, marked: bool
) -> None:
    """Between its look at what is there and the transaction another client deletes the ledger, the mark goes into the
    ranges, and Apache's client makes a ledger of the same id and version. Only the transaction itself can tell."""
    store, other = await memory_service.connect(), await memory_service.connect()
    ledgers, others = ledgers_in(store), ledgers_in(other, seed=2)
    await ledgers.create(NEW, LedgerId(5))
    path, value = ledgers.path(LedgerId(5)), await ledgers.stored(LedgerId(5))
    if marked:
        await store.create(ledgers.deleted.mark(LedgerId(5)), b"", parents=True)
    else:
        await store.create(ledgers.deleted.place(LedgerId(5)), b"", parents=True)

    async def made_anew(multi: Multi) -> None:
        await others.delete(LedgerId(5))
        if merged:
            place = others.deleted.place(LedgerId(5))
            gone = Delete(others.deleted.mark(LedgerId(5)), None)
            await other.multi([Set(place, b"5", (await other.get(place)).version), gone])
        await other.create(path, value, parents=True)

    Meanwhile(store, unanswered, made_anew)
    await ledgers.delete(LedgerId(5))
    assert await others.stored(LedgerId(5)) == value
    assert await others.deleted.has(LedgerId(5))


@pytest.mark.rule("M6")
@pytest.mark.parametrize("lost", [False, True])
async def test_a_ledger_that_comes_back_while_its_id_is_marked_stays_unmarked(
    memory_service: MemoryService, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bookie marks what others have deleted, and a deletion without an answer what it finds gone: neither looked
    whether the ledger had come back, and bookies drop what is marked."""
    store, other = await memory_service.connect(), await memory_service.connect()
    ledgers, path = ledgers_in(store), ledgers_in(store).path(LedgerId(5))
    create = store.create

    async def create_then(where: str, *args: Any, **options: Any) -> tuple[str, Version]:
        monkeypatch.setattr(store, "create", create)
        await other.create(path, b"back", parents=True)
        made = await create(where, *args, **options)
        if lost:
            raise MetadataUnavailableError("no answer")
        return made

    monkeypatch.setattr(store, "create", create_then)
    assert not await ledgers.deleted.add(LedgerId(5), path)
    if not lost:
        assert not await ledgers.deleted.has(LedgerId(5))
    assert not await ledgers.deleted.add(LedgerId(5), path)
    await other.delete(path, None)
    assert await ledgers.deleted.add(LedgerId(5), path)
    assert await ledgers.deleted.has(LedgerId(5))


@pytest.mark.rule("M6", "M8")
@pytest.mark.parametrize("error", [SessionExpiredError("it has ended"), MetadataFormatError("no ranges")])
async def test_a_deletion_that_was_done_is_no_error_though_nobody_could_tidy_up_after_it(
    memory_service: MemoryService, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of sixteen takes marks into ranges. What went wrong with that was raised to whoever deleted the ledger, who
    tried again and was told that there is none."""
    ledgers = ledgers_in(await memory_service.connect())
    tried: list[str] = []

    async def fails(place: str) -> None:
        tried.append(place)
        raise error

    monkeypatch.setattr(ledgers.deleted, "merge", fails)
    for number in range(64):
        await ledgers.create(NEW, LedgerId(number))
        await ledgers.delete(LedgerId(number), Version(0))
        assert await ledgers.deleted.has(LedgerId(number))
    assert tried


@pytest.mark.rule("M6")
async def test_a_ledger_made_anew_by_one_who_knows_no_marks_is_deleted_as_well(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    await ledgers.create(NEW, LedgerId(5))
    value = (await store.get(ledgers.path(LedgerId(5)))).value
    await ledgers.delete(LedgerId(5))
    await store.create(ledgers.path(LedgerId(5)), value, parents=True)
    await ledgers.delete(LedgerId(5), Version(0))
    with pytest.raises(NoSuchLedgerError):
        await ledgers.read(LedgerId(5))


@pytest.mark.rule("M6")
async def test_marks_become_ranges_and_are_found_before_during_and_after(store: MetadataStore) -> None:
    """On every kind of store; who deletes at the same time does not meet on one value."""
    ledgers = ledgers_in(store)
    ids = [LedgerId(number) for number in range(IDS - 60, IDS + 60)]
    await asyncio.gather(*(ledgers.create(NEW, number) for number in ids))
    await asyncio.gather(*(ledgers.delete(number) for number in ids))
    marks = marks_in(store)
    for number in (ids[0], ids[-1]):
        await marks.merge(marks.place(number))
        assert len(await store.children(marks.place(number))) < MERGE_MIN
    assert all(await asyncio.gather(*(marks.has(number) for number in ids)))
    assert not await marks.has(LedgerId(ids[0] - 1)) and not await marks.has(LedgerId(ids[-1] + 1))
    assert await marks.near(ids) == IdRanges([(ids[0], ids[-1])])


@pytest.mark.rule("M6")
async def test_a_mark_that_goes_into_the_ranges_while_it_is_looked_for_is_found(memory_service: MemoryService) -> None:
    """Between the look at the ranges and the look at the mark it is in neither, as seen from there."""
    store = await memory_service.connect()
    marks = marks_in(store)
    ids = [LedgerId(number) for number in range(MERGE_MIN)]
    for number in ids:
        await marks.add(number, f"/no/{number}")
    look = store.exists

    async def exists(path: str) -> Version | None:
        if path == marks.mark(ids[3]):
            await marks.merge(marks.place(ids[3]))
        return await look(path)

    store.exists = exists  # type: ignore[method-assign]
    assert await marks.has(ids[3])
    assert await store.children(marks.place(ids[3])) == []


@pytest.mark.rule("M6")
async def test_marks_that_go_into_the_ranges_between_two_looks_are_found(memory_service: MemoryService) -> None:
    """The marks are looked at before the ranges, for they move from there to here: in the other order a bookie that
    drops a ledger finds none, and remembers every id by itself for ever."""
    store = await memory_service.connect()
    marks, others = marks_in(store), marks_in(await memory_service.connect())
    ids = [LedgerId(number) for number in range(MERGE_MIN)]
    for number in ids:
        await marks.add(number, f"/no/{number}")
    get, children = store.get, store.children

    async def get_then(path: str) -> Versioned[bytes]:
        found = await get(path)
        await others.merge(marks.place(ids[0]))
        return found

    async def children_then(path: str) -> list[str]:
        found = await children(path)
        await others.merge(marks.place(ids[0]))
        return found

    store.get, store.children = get_then, children_then  # type: ignore[method-assign]
    assert await marks.near(ids[:1]) == IdRanges([(ids[0], ids[-1])])
    assert await children(marks.place(ids[0])) == []


async def test_a_new_ledger_where_none_was_deleted_costs_one_read(memory_service: MemoryService) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    await ledgers.create(NEW)
    memory_service.cluster.interference = seen = Recording()
    await ledgers.create(NEW)
    assert sorted(seen.kinds) == ["create", "create", "delete", "get"]


async def in_a_row(ledgers: Ledgers, count: int = 40) -> list[LedgerId]:
    """Made one after the other, until ids are taken ahead."""
    made = [(await ledgers.create(NEW))[0] for _ in range(count)]
    if ledgers._ids._taking is not None:
        await ledgers._ids._taking
    return made


@pytest.mark.rule("M6")
async def test_in_a_row_a_new_ledger_costs_one_transaction(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    ledgers = ledgers_in(store)
    await in_a_row(ledgers)
    memory_service.cluster.interference = seen = Recording()
    made = [await ledgers.create(NEW) for _ in range(10)]
    assert seen.kinds.count("multi") == 10
    assert "get" not in seen.kinds
    for ledger, stored in made:
        found = await ledgers.read(ledger)
        assert (found.value, found.version) == (stored.value, stored.version)
        assert not await ledgers.deleted.has(ledger)
    assert await store.children(ledgers.deleted.place(made[0][0])) == [], "the guard leaves nothing behind"


@pytest.mark.rule("M6")
@pytest.mark.parametrize("merged", [False, True])
async def test_an_id_that_was_taken_ahead_and_then_chosen_and_deleted_is_passed_over(
    memory_service: MemoryService, merged: bool
) -> None:
    ledgers, other = ledgers_in(await memory_service.connect()), ledgers_in(await memory_service.connect())
    await in_a_row(ledgers)
    ahead = list(ledgers._ids._ahead)[:4]  # the first ones are found out, and the others are known by then
    assert len(ahead) == 4
    for number in ahead:
        await other.create(NEW, number)
        await other.delete(number)
    if merged:
        await merge_by_hand(other, ahead)
    made = [(await ledgers.create(NEW))[0] for _ in range(7)]
    assert not set(made) & set(ahead)
    assert all([await other.deleted.has(number, fresh=True) for number in ahead])
    for number in ahead:
        with pytest.raises(NoSuchLedgerError):
            await ledgers.read(number, fresh=True)


async def merge_by_hand(ledgers: Ledgers, numbers: list[LedgerId]) -> None:
    """As a client does that deletes: the marks are taken into the ranges."""
    store, place = ledgers.deleted._store, ledgers.deleted.place(numbers[0])
    found = await store.get(place)
    ranges = encode((number % IDS, number % IDS) for number in numbers)
    marks = [Delete(ledgers.deleted.mark(number), None) for number in numbers]
    await store.multi([Set(place, ranges, found.version), *marks])


@pytest.mark.rule("M6", "M8")
@pytest.mark.parametrize("fate", [REPLY_LOST, REQUEST_LOST])
async def test_a_creation_in_a_row_whose_transaction_is_lost_makes_one_ledger(
    memory_service: MemoryService, fate: Fate
) -> None:
    ledgers = ledgers_in(await memory_service.connect())
    before = await in_a_row(ledgers)
    memory_service.cluster.interference = Losing(multi=[fate])
    new, stored = await ledgers.create(NEW)
    assert new not in before
    found = await ledgers.read(new, fresh=True)
    assert (found.value, found.version) == (stored.value, stored.version)
    assert [ledger async for ledger in ledgers.list()] == sorted([*before, new])


@pytest.mark.rule("M6")
async def test_a_ledger_that_exists_under_an_id_that_was_taken_ahead_stays(memory_service: MemoryService) -> None:
    ledgers, other = ledgers_in(await memory_service.connect()), ledgers_in(await memory_service.connect())
    await in_a_row(ledgers)
    taken = ledgers._ids._ahead[0]
    _, stored = await other.create(NEW, taken)
    new, _ = await ledgers.create(NEW)
    assert new != taken
    assert (await ledgers.read(taken)).value == stored.value


def test_a_value_has_at_most_20_kib() -> None:
    worst = encode((number, number) for number in range(0, IDS, 2))
    assert len(worst) < 20 * 1024
    assert len(decode(worst, "here")) == IDS // 2


@pytest.mark.parametrize("value", [b"x", b"5-4", b"1,,-", b"\xff"])
@pytest.mark.rule("X29")
def test_a_value_that_lists_no_ranges_is_refused_by_name(value: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="here"):
        decode(value, "here")
