"""Closing a ledger of which something is lost, by order."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import pytest

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import (
    BookieError,
    IllegalOperationError,
    MetadataUnavailableError,
    NoSuchEntryError,
    RequestTimedOutError,
)
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata, LedgerState, QuorumSpec
from bookkeeper.meta.records.ledger_format import encode
from bookkeeper.meta.store import Version
from bookkeeper.replication.losses.accept_loss import LossPlan, accept_loss, plan_loss
from bookkeeper.replication.losses.closing_loss import KEY, ClosingLoss
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append

module: Final = import_module("bookkeeper.replication.losses.accept_loss")  # the room has a function of this name


def run(story: Story, bookies: int = 3, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


async def left_open(cluster: SimCluster, bk: BookKeeper, count: int) -> WriteHandle:
    """A striped ledger whose writer is gone: entry n is on the bookies n and n + 1, modulo 3."""
    ledger = await bk.create_ledger(password=b"pw", ensemble=3, write_quorum=2, ack_quorum=2)
    await append(cluster, ledger, count)
    await ledger.abandon()
    return ledger


async def lose(cluster: SimCluster, ledger: WriteHandle, *positions: int) -> list[str]:
    """Crash these bookies of the ensemble, and wait until they are registered no more."""
    names = [ledger.metadata.last_fragment.ensemble[position] for position in positions]
    for name in names:
        cluster.node(name).crash()
    await asyncio.sleep(5)
    return [str(name) for name in names]


async def planned(bk: BookKeeper, ledger_id: int) -> LossPlan:
    found = await plan_loss(bk, LedgerId(ledger_id))
    assert isinstance(found, LossPlan)
    return found


def payload_bytes(entries: range) -> int:
    return sum(len(b"%d " % entry * 50) for entry in entries)


@pytest.mark.rule("R6")
def test_an_ordinary_recovery_gives_nothing_up() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await left_open(cluster, bk, 10)
            await lose(cluster, ledger, 0)
            found = await plan_loss(bk, LedgerId(ledger.id))
            assert isinstance(found, LedgerMetadata) and found.is_closed and found.last_entry == 9
            assert KEY not in found.custom
            with pytest.raises(IllegalOperationError, match="is closed at entry 9, and that is final"):
                await plan_loss(bk, LedgerId(ledger.id))

    run(story, bookies=4)


@pytest.mark.rule("M2", "R6")
def test_gaps_are_named_with_their_bytes_and_the_ledger_is_closed_at_the_last_entry_that_can_be_read() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await left_open(cluster, bk, 12)  # entry 11 is on the bookies 2 and 0
            lost = await lose(cluster, ledger, 0, 1)
            plan = await planned(bk, ledger.id)
            given = plan.given_up
            gaps = [range(n, n + 1) for n in (0, 3, 6, 9)]
            assert given.entries == tuple(gaps) and given.last_entry == 11
            assert given.size == sum(map(payload_bytes, gaps)) and given.length == payload_bytes(range(12))
            assert set(given.silent) == set(lost) and given.why
            assert (await bk.metadata(ledger.id)).state is LedgerState.IN_RECOVERY, "nothing is closed yet"

            closed = await accept_loss(bk, plan)
            assert closed == await bk.metadata(ledger.id)
            assert (closed.state, closed.last_entry, closed.length) == (
                LedgerState.CLOSED,
                11,
                payload_bytes(range(12)),
            )
            note = json.loads(closed.custom[KEY])
            assert note["entries"] == ["0..0", "3..3", "6..6", "9..9"] and note["bytes"] == given.size
            mark = await bk.metadata_store.under_replication.read(LedgerId(ledger.id))
            assert mark is not None and set(mark.bookies) == set(lost)
            async with await bk.open_ledger(ledger.id, b"pw") as reader:
                assert [entry.entry_id async for entry in reader.read(1, 2)] == [1, 2]
                with pytest.raises(BookieError):
                    _ = [entry async for entry in reader.read(3, 3)]
            for name in lost:
                cluster.node(name).restart()
            await cluster.wait_until_up()
            await cluster.check_acked()  # what comes back can be read again, gaps included

    run(story)


def test_what_was_confirmed_after_the_last_readable_entry_is_named_and_a_later_one_cannot_be() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await left_open(cluster, bk, 13)  # entry 12 is on the bookies 0 and 1
            await lose(cluster, ledger, 0, 1)
            given = (await planned(bk, ledger.id)).given_up
            assert given.last_entry == 11 and all(some.stop <= 12 for some in given.entries)
            closed = await accept_loss(bk, await planned(bk, ledger.id))
            assert closed.last_entry == 11

    run(story)


def test_a_ledger_of_which_nothing_is_left_is_closed_empty() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await left_open(cluster, bk, 5)
            await lose(cluster, ledger, 0, 1, 2)
            plan = await planned(bk, ledger.id)
            assert (plan.given_up.last_entry, plan.given_up.length, plan.given_up.entries) == (-1, 0, ())
            closed = await accept_loss(bk, plan)
            assert closed.is_closed and closed.last_entry == -1

    run(story)


@pytest.mark.rule("M1")
def test_a_plan_holds_only_for_the_metadata_that_it_was_made_for() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await left_open(cluster, bk, 12)
            lost = await lose(cluster, ledger, 0, 1)
            plan = await planned(bk, ledger.id)
            for name in lost:
                cluster.node(name).restart()
            await cluster.wait_until_up()
            for name in lost:
                bk.services.pool.forgive(BookieId(name))
            async with await bk.open_ledger(ledger.id, b"pw") as reader:
                assert reader.last_add_confirmed == 11
            with pytest.raises(IllegalOperationError, match="were changed meanwhile, so nothing was given up"):
                await accept_loss(bk, plan)
            assert KEY not in (await bk.metadata(ledger.id)).custom
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A4")
@pytest.mark.rule("M8")
def test_a_close_without_an_answer_that_was_changed_since_is_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await left_open(cluster, bk, 5)
            await lose(cluster, ledger, 0, 1, 2)
            plan = await planned(bk, ledger.id)
            store = bk.metadata_store.store
            write = store.set

            async def unanswered(path: str, value: bytes, expected: Version | None, **options: int) -> Version:
                monkeypatch.undo()
                await write(path, value, expected, **options)
                await write(path, value, None)  # a repair, say
                raise MetadataUnavailableError("the reply was lost")

            monkeypatch.setattr(store, "set", unanswered)
            closed = await accept_loss(bk, plan)
            assert closed.is_closed and KEY in closed.custom

    run(story)


def test_a_bookie_that_cannot_list_its_entries_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def does_not_list(*args: object) -> object:
        raise RequestTimedOutError("it does not list its entries")

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await left_open(cluster, bk, 102)
            await lose(cluster, ledger, 0, 1)
            listed = (await planned(bk, ledger.id)).given_up
            monkeypatch.setattr(module, "held_by", does_not_list)
            read = (await planned(bk, ledger.id)).given_up
            assert replace(read, silent={}, why="") == replace(listed, silent={}, why="") and read.last_entry == 101

    run(story)


@pytest.mark.rule("A4")
def test_a_bookie_that_is_read_through_is_read_beyond_a_hole_and_notes_when_it_falls_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "READS_AT_ONCE", 2)

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await left_open(cluster, bk, 30)
            ledgers = bk.metadata_store.ledgers
            record = LedgerView(ledgers, LedgerId(ledger.id), await ledgers.read(LedgerId(ledger.id)))
            bookie = record.metadata.last_fragment.ensemble[1]
            survey = module._Survey(bk, record)
            read, lost = survey._read, {6, 7, 9, 10, 12, 13}
            silent_from = 28

            async def with_a_hole(asked: BookieId, entry: int | None) -> Any:
                if entry is not None and entry >= silent_from:
                    return RequestTimedOutError("it has fallen silent")
                return NoSuchEntryError("lost") if entry in lost else await read(asked, entry)

            monkeypatch.setattr(survey, "_read", with_a_hole)
            survey._confirmed = 27  # as another bookie has said
            found = await survey._read_through(bookie)
            await survey.tasks.close()
            held = {entry for entry in range(silent_from) if entry % 3 in (0, 1)}
            assert {entry for entry in range(30) if entry in found} == held - lost
            assert survey._silent == {bookie: "it has fallen silent"}

    run(story)


def test_the_oldest_format_has_its_record_beside_the_root() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger, ledgers = LedgerId(77), bk.metadata_store.ledgers
            spec = QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)
            made = LedgerMetadata.create(spec, [BookieId("b1")]).begin_recovery()
            old = replace(made, format_version=1, digest_type=None, password=None)
            await bk.metadata_store.store.create(ledgers.path(ledger), encode(old), parents=True)
            over = await ledgers.read(ledger)
            given = ClosingLoss(EntryId(2), 30, (), 0, "why")
            closed = await accept_loss(bk, LossPlan(ledger, over, given))
            assert closed.is_closed and closed.custom == {}
            (name,) = await bk.metadata_store.store.children("/ledgers-py/given-up")
            assert name.startswith(f"{ledger}-")

    run(story)
