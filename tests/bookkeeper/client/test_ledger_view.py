"""A ledger's metadata with the version a change must name."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.errors import MetadataConflictError, MetadataRolledBackError, NoSuchLedgerError
from tests.bookkeeper.client.scripted import ScriptedCluster


@pytest.mark.rule("M1")
def test_a_change_names_the_version_it_was_made_from_and_a_reread_never_goes_back() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = bk.metadata_store.ledgers
            writer = await bk.create_ledger()
            one, other = [LedgerView(ledgers, writer.id, await ledgers.read(writer.id)) for _ in range(2)]
            before = one.versioned
            await one.write(one.metadata.begin_recovery(), before)
            assert one.versioned.version == before.version + 1
            with pytest.raises(MetadataConflictError):
                await other.write(other.metadata.begin_recovery(), other.versioned)
            assert (await other.refresh()) == one.metadata
            reading = asyncio.create_task(other.refresh())
            await asyncio.sleep(0)
            other.versioned = type(before)(before.value, type(before.version)(99))
            await reading
            assert other.versioned.version == 99  # an answer that was overtaken

    ScriptedCluster().run(story)


@pytest.mark.rule("M10")
def test_metadata_of_a_lower_version_than_was_seen_are_not_taken_for_the_present_ones() -> None:
    """They were passed over as an answer that comes late; after a sync there are none, only a store that was put back
    to an older state and whose transactions have since come past what was seen."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            writer = await bk.create_ledger()
            ledgers = bk.metadata_store.ledgers
            record = LedgerView(ledgers, writer.id, await ledgers.read(writer.id))
            backup = cluster.store.snapshot()
            await record.write(record.metadata.begin_recovery(), record.versioned)
            cluster.store.restore(backup)
            cluster.store.transaction += 1000
            with pytest.raises(MetadataRolledBackError, match="version 1 was seen"):
                await record.refresh()
            assert bk.metadata_store.store.rolled_back is None, "the numbers of transactions do not tell it"

    ScriptedCluster().run(story)


@pytest.mark.rule("M10")
@pytest.mark.parametrize("writing", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_ledger_that_went_with_an_older_state_is_not_told_as_deleted(hidden: bool, writing: bool) -> None:
    """Whoever asked between the restoration and the next look of the process was told that there is no such ledger: the
    store knew better, and nobody asked it. ``hidden``: numbers of transactions do not tell it, the next id does."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = bk.metadata_store.ledgers
            backup = cluster.store.snapshot()
            writer = await bk.create_ledger()
            record = LedgerView(ledgers, writer.id, await ledgers.read(writer.id))
            cluster.store.restore(backup)
            if hidden:
                cluster.store.transaction += 1000
            with pytest.raises(MetadataRolledBackError):
                await (
                    record.write(record.metadata.begin_recovery(), record.versioned) if writing else record.refresh()
                )
            with pytest.raises(MetadataRolledBackError):
                await bk.metadata_store.present.check()

    ScriptedCluster().run(story)


@pytest.mark.rule("M6", "M10")
@pytest.mark.parametrize("marked", [True, False])
def test_a_ledger_that_was_deleted_is_told_as_deleted(marked: bool) -> None:
    """By a client that marks its id no id is spent on the question."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = bk.metadata_store.ledgers
            writer = await bk.create_ledger()
            record = LedgerView(ledgers, writer.id, await ledgers.read(writer.id))
            if marked:
                await ledgers.delete(writer.id)
            else:
                await bk.metadata_store.store.delete(ledgers.path(writer.id), None)
            for change in (record.refresh(), record.write(record.metadata.begin_recovery(), record.versioned)):
                with pytest.raises(NoSuchLedgerError):
                    await change
            assert await ledgers.next_id() == writer.id + (1 if marked else 3)

    ScriptedCluster().run(story)


@pytest.mark.rule("A2a")
def test_a_ledger_made_anew_under_the_same_id_is_another_one() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = bk.metadata_store.ledgers
            writer = await bk.create_ledger()
            record = LedgerView(ledgers, writer.id, await ledgers.read(writer.id))
            seen = await ledgers.read(writer.id)
            await record.write(record.metadata.begin_recovery(), seen, same_creation=True)
            assert record.versioned.created_txn == seen.created_txn > 0
            await bk.metadata_store.store.delete(ledgers.path(writer.id), None)  # by one who leaves no mark
            _, made = await ledgers.create(seen.value, writer.id)
            with pytest.raises(NoSuchLedgerError):
                await record.refresh()
            with pytest.raises(NoSuchLedgerError):
                await record.write(seen.value.begin_recovery(), seen, same_creation=True)
            assert (await ledgers.read(writer.id)).value == made.value

    ScriptedCluster().run(story)
