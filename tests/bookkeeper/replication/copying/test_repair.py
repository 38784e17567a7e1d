"""The shell that brings one copy to another bookie: what goes over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from bookkeeper import wire
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import (
    BookieFailedError,
    BookKeeperError,
    DigestMismatchError,
    LedgerFencedError,
    MalformedFrameError,
    MetadataUnavailableError,
    RequestTimedOutError,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.replication.config import CopyConfig
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.copying.fragment import CopyOutcome
from bookkeeper.replication.copying.repair import copy_fragment, digest_of, held_by
from bookkeeper.replication.copying.replace import replace_copy
from bookkeeper.wire import Status
from bookkeeper.wire.availability import GROUP, HEADER
from tests.bookkeeper.client.scripted import CONFIG, ScriptedBookie, ScriptedCluster, payload_of, written
from tests.bookkeeper.replication.clusters import copy_on, record_of

NEW = BookieId("b4")
SMALL = CopyConfig(run_entries_max=10, retry_ms=50)
V2 = ClientConfig(protocol="v2", add_timeout_ms=4_000, metadata_timeout_ms=2_000)


def context_of(bk: BookKeeper) -> RepairContext:
    return RepairContext(services=bk.services, config=SMALL)


async def on_three(cluster: ScriptedCluster, bk: BookKeeper, count: int = 40) -> int:
    """A closed ledger on b1, b2 and b3, of which b4 knows nothing."""
    ledger_id = await written(bk, count)
    assert sorted((await bk.metadata(ledger_id)).bookies) == ["b1", "b2", "b3"]
    await cluster.add(ScriptedBookie("b4"))
    return ledger_id


@pytest.mark.rule("A1", "L6")
@pytest.mark.parametrize("config", [CONFIG, V2], ids=["v3", "v2"])
def test_the_target_gets_the_same_bytes_as_recovery_adds_without_priority_and_is_asked_for_them(
    config: ClientConfig,
) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk:
            ledger_id = await on_three(cluster, bk)
            record = await record_of(bk, ledger_id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert (done.outcome, done.entries, done.found, done.error) == (CopyOutcome.SWAPPED, 40, 0, None)
            assert cluster["b4"].entries[ledger_id] == cluster["b1"].entries[ledger_id]
            adds = [r for r in cluster["b4"].requests if isinstance(r, wire.AddEntry)]
            assert len(adds) == 40 and all(add.recovery and not add.priority for add in adds)
            assert {add.master_key for add in adds} == {digest_of(record.metadata).master_key}
            first_read = next(i for i, r in enumerate(cluster["b4"].requests) if isinstance(r, wire.BatchRead))
            assert isinstance(cluster["b4"].requests[first_read - 1], wire.AddEntry)
            assert not [r for r in cluster["b2"].requests if isinstance(r, wire.BatchRead)], "the others have it all"

    ScriptedCluster().run(story)


@pytest.mark.rule("A3")
def test_the_open_end_of_a_ledger_is_not_touched() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            await cluster.add(ScriptedBookie("b4"))
            record = await record_of(bk, ledger.id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert done.outcome is CopyOutcome.FAILED and isinstance(done.error, LedgerFencedError)
            assert cluster["b4"].requests == []
            await ledger.close()

    ScriptedCluster().run(story)


@pytest.mark.rule("A1", "A4")
def test_a_target_that_acknowledges_and_forgets_is_not_swapped_in() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            cluster["b4"].store = lambda *_: None  # type: ignore[method-assign]
            record = await record_of(bk, ledger_id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert done.outcome is CopyOutcome.FAILED and done.target_at_fault
            assert NEW not in (await bk.metadata(ledger_id)).bookies

    ScriptedCluster().run(story)


@pytest.mark.rule("A1", "L5")
@pytest.mark.parametrize("batches", [True, False], ids=["batches", "singles"])
@pytest.mark.parametrize("damage", ["a byte", "another entry"])
def test_a_target_that_damages_what_it_keeps_is_not_swapped_in(damage: str, batches: bool) -> None:
    """What is read back counts only with the right digest and ids, one by one as well as in batches."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            keep = cluster["b4"].store
            wrong = cluster["b1"].entries[ledger_id][32]
            for bookie in cluster.bookies:
                bookie.batches = batches

            def damaged(ledger: int, entry_id: int, entry: bytes) -> None:
                kept = entry[:-1] + b"?" if damage == "a byte" else wrong
                keep(ledger, entry_id, kept if entry_id == 33 else entry)

            cluster["b4"].store = damaged  # type: ignore[method-assign, assignment]
            record = await record_of(bk, ledger_id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert done.outcome is CopyOutcome.FAILED and isinstance(done.error, DigestMismatchError)
            assert NEW not in (await bk.metadata(ledger_id)).bookies

    ScriptedCluster().run(story)


@pytest.mark.rule("A1")
def test_a_target_that_has_what_it_did_not_acknowledge_is_not_swapped_in() -> None:
    """What can be read back need not be durable: only the acknowledgement says so."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            handle = cluster["b4"].handle

            def unsynced(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
                if not isinstance(request, wire.AddEntry):
                    return handle(request, reply)
                cluster["b4"].store(request.ledger_id, request.entry_id, request.entry)
                return reply(wire.AddReply(Status.IO_ERROR, request.ledger_id, request.entry_id))

            cluster["b4"].handle = unsynced  # type: ignore[method-assign]
            record = await record_of(bk, ledger_id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert done.outcome is CopyOutcome.FAILED and done.target_at_fault
            assert "to b4: the bookie failed with an I/O error" in str(done.error)
            assert NEW not in (await bk.metadata(ledger_id)).bookies

    ScriptedCluster().run(story)


@pytest.mark.rule("A4")
def test_why_a_target_gives_nothing_back_is_told() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            cluster["b4"].refuse_reads = Status.IO_ERROR
            record = await record_of(bk, ledger_id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert done.outcome is CopyOutcome.FAILED and done.target_at_fault
            assert isinstance(done.error, BookieFailedError) and "on b4: the bookie failed with an I/O error" in str(
                done.error
            )
            adds = [r for r in cluster["b4"].requests if isinstance(r, wire.AddEntry)]
            assert len(adds) == 40, "silence on reading is no reason to write anew"

    ScriptedCluster().run(story)


def test_a_bookie_that_the_client_has_not_seen_yet_is_found_before_nobody_is_said_to_be_there() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            record = await record_of(bk, ledger_id)
            bk.services.watcher.writable = record.metadata.last_fragment.ensemble  # as before b4 came
            done = await replace_copy(context_of(bk), record, copy_on(record.metadata, "b2"))
            assert (done.outcome, done.target) == (CopyOutcome.SWAPPED, NEW)

    ScriptedCluster().run(story)


def test_a_target_without_batch_reads_is_read_back_entry_by_entry() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            for bookie in cluster.bookies:
                bookie.batches = False
            record = await record_of(bk, ledger_id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert done.outcome is CopyOutcome.SWAPPED
            stored = cluster["b4"].entries[ledger_id]
            assert [payload_of(stored[i]) for i in range(40)] == [b"%d" % i for i in range(40)]

    ScriptedCluster().run(story)


@pytest.mark.rule("A4", "A8")
def test_a_bookie_that_never_says_what_it_holds_is_waited_for_once_and_gets_all_of_its_share() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(bk, 40) for _ in range(2)]
            bookie, asked = cluster["b2"], 0
            handle = bookie.handle

            def mute(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
                nonlocal asked
                if isinstance(request, wire.ListEntries):
                    asked += 1
                else:
                    handle(request, reply)

            bookie.handle = mute  # type: ignore[method-assign]
            context = context_of(bk)
            for ledger_id in ledgers:
                whole = dict(bookie.entries[ledger_id])
                del bookie.entries[ledger_id][7]
                record = await record_of(bk, ledger_id)
                done = await copy_fragment(context, record, copy_on(record.metadata, "b2"), bookie.id)
                assert (done.outcome, done.entries) == (CopyOutcome.COMPLETED, 40)
                assert bookie.entries[ledger_id] == whole
            assert asked == 1

    ScriptedCluster().run(story)


@pytest.mark.rule("A2", "M8")
def test_a_swap_whose_reply_is_lost_is_known_when_the_store_answers_again() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            record = await record_of(bk, ledger_id)
            write = record.write

            async def lost(*args: object, **named: object) -> object:
                await write(*args, **named)  # type: ignore[arg-type]
                raise MetadataUnavailableError("the reply is lost")

            record.write = lost  # type: ignore[method-assign, assignment]
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert done.outcome is CopyOutcome.SWAPPED
            assert NEW in (await bk.metadata(ledger_id)).bookies

    ScriptedCluster().run(story)


@pytest.mark.rule("A2a")
def test_a_ledger_made_anew_under_the_same_id_meanwhile_is_left_alone() -> None:
    """Versions begin again: by its version alone the swap would put the old ledger in place of the new one."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            record = await record_of(bk, ledger_id)
            before, ledgers = record.versioned, bk.metadata_store.ledgers
            other = replace(before.value, last_entry=EntryId(5), length=55)
            making: list[asyncio.Future[None]] = []

            async def make_anew() -> None:
                await bk.metadata_store.store.delete(ledgers.path(record.ledger_id), None)  # by one who leaves no mark
                _, made = await ledgers.create(other, record.ledger_id)
                while made.version < before.version:
                    made = await ledgers.write(record.ledger_id, other, made.version)

            context = context_of(bk)
            context.on_copied = lambda *_: making.append(asyncio.ensure_future(make_anew())) if not making else None
            done = await copy_fragment(context, record, copy_on(record.metadata, "b2"), NEW)
            await making[0]
            assert (done.outcome, done.error) == (CopyOutcome.GONE, None)
            now = await ledgers.read(record.ledger_id)
            assert now.version == before.version and (now.value.last_entry, now.value.length) == (5, 55)
            assert NEW not in now.value.bookies

    ScriptedCluster().run(story)


def test_a_store_that_stays_away_leaves_it_open() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            record = await record_of(bk, ledger_id)

            async def away(*args: object, **named: object) -> object:
                raise MetadataUnavailableError("away")

            record.write = record.refresh = away  # type: ignore[method-assign, assignment]
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), NEW)
            assert isinstance(done.error, MetadataUnavailableError) and "whether b4 was swapped in" in str(done.error)

    ScriptedCluster().run(story)


@pytest.mark.rule("A4")
def test_what_a_bookie_holds_nothing_and_unknown_are_three_answers() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await on_three(cluster, bk)
            record, tasks = await record_of(bk, ledger_id), Tasks("test")
            answers: dict[str, wire.Reply | None] = {
                "b1": wire.ListReply(Status.OK, record.ledger_id, HEADER.pack(0, 1) + GROUP.pack(2, 2, 5, 0)),
                "b2": wire.ListReply(Status.NO_LEDGER, record.ledger_id),
                "b3": wire.ListReply(Status.IO_ERROR, record.ledger_id),
                "b4": None,
            }

            def answering(answer: wire.Reply | None) -> Callable[[wire.Request, Callable[[wire.Reply], None]], None]:
                return lambda request, reply: reply(answer) if answer is not None else None

            for name, answer in answers.items():
                cluster[name].handle = answering(answer)  # type: ignore[method-assign, assignment]
            assert list((await held_by(bk.services, tasks, BookieId("b1"), record)).runs()) == [(2, 6)]
            assert not await held_by(bk.services, tasks, BookieId("b2"), record)
            with pytest.raises(BookKeeperError, match="on b3: the bookie failed with an I/O error"):
                await held_by(bk.services, tasks, BookieId("b3"), record)
            with pytest.raises(RequestTimedOutError):
                await held_by(bk.services, tasks, NEW, record)
            cluster["b1"].handle = answering(  # type: ignore[method-assign, assignment]
                wire.ListReply(Status.OK, record.ledger_id, None)
            )
            with pytest.raises(MalformedFrameError, match="the bookie answered OK, but sent no list"):
                await held_by(bk.services, tasks, BookieId("b1"), record)
            await tasks.close()

    ScriptedCluster().run(story)


@pytest.mark.rule("P12")
@pytest.mark.parametrize("batches", [True, False])
def test_a_run_of_entries_that_are_larger_than_was_thought_is_brought_in_parts(batches: bool) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(batch_read_bytes=4096)) as bk:
            async with await bk.create_ledger() as ledger:
                await ledger.append_many([b"small" for _ in range(1000)] + [b"large" * 400 for _ in range(200)])
            await cluster.add(ScriptedBookie("b4"))
            for bookie in cluster.bookies:
                bookie.batches = batches
            told: list[tuple[int, int]] = []
            config = CopyConfig(run_bytes=40_000)
            context = RepairContext(services=bk.services, config=config, on_copied=lambda *run: told.append(run))
            record = await record_of(bk, ledger.id)
            done = await copy_fragment(context, record, copy_on(record.metadata, "b2"), NEW)
            assert (done.outcome, done.entries) == (CopyOutcome.SWAPPED, 1200)
            assert cluster["b4"].entries[ledger.id] == cluster["b1"].entries[ledger.id]
            one_reply = 4096 if batches else 64 * 2100
            assert max(size for _, size in told) < 2 * config.run_bytes + one_reply

    ScriptedCluster().run(story)


@pytest.mark.rule("A1")
@pytest.mark.parametrize("forces", [True, False])
def test_what_a_bookie_in_place_lists_counts_when_it_is_forced(forces: bool) -> None:
    """Cause: that entries are listed and can be read back was taken for "durable". A bookie of Apache's lists and reads
    what is still on its way to the disk; a power cut took it, and the mark was gone."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 40)
            bookie = cluster["b2"]
            del bookie.entries[ledger_id][7]
            bookie.lists = True
            bookie.requests.clear()
            bookie.refuse_forces = None if forces else Status.IO_ERROR
            record = await record_of(bk, ledger_id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), bookie.id)
            assert (done.outcome, done.entries) == (CopyOutcome.COMPLETED, 10 if forces else 40)
            asked = [type(r) for r in bookie.requests if isinstance(r, wire.ListEntries | wire.ForceLedger)]
            assert asked == [wire.ListEntries, wire.ForceLedger], "what is listed before is forced"

    ScriptedCluster().run(story)


@pytest.mark.rule("A1", "A2b")
def test_a_bookie_in_place_that_was_started_meanwhile_is_asked_anew() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 40)
            bookie, metadata = cluster["b2"], bk.services.metadata
            handle, read_back, bookie.lists = bookie.handle, False, True

            def starts_again(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
                nonlocal read_back
                handle(request, reply)
                if isinstance(request, wire.BatchRead) and not read_back:
                    read_back = True  # and then it starts, and has lost what was on its way to its disk
                    del bookie.entries[ledger_id][33]
                    counted = metadata.own("boot", bookie.id)
                    asyncio.get_running_loop().create_task(metadata.store.create(counted, b"2", parents=True))

            bookie.handle = starts_again  # type: ignore[method-assign]
            record = await record_of(bk, ledger_id)
            done = await copy_fragment(context_of(bk), record, copy_on(record.metadata, "b2"), bookie.id)
            assert done.outcome is CopyOutcome.COMPLETED and 33 in bookie.entries[ledger_id]
            assert len([r for r in bookie.requests if isinstance(r, wire.ListEntries)]) == 2

    ScriptedCluster().run(story)
