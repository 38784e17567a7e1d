"""A ledger's metadata with the version a change must name."""

from __future__ import annotations

import pytest

from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.errors import MetadataConflictError, NoSuchLedgerError
from tests.bookkeeper.client.scripted import ScriptedCluster


@pytest.mark.rule("M1")
def test_a_change_names_the_version_it_was_made_from_and_a_reread_never_goes_back() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = bk.metadata_store.ledgers
            writer = await bk.create_ledger()
            one, other = [LedgerRecord(ledgers, writer.id, await ledgers.read(writer.id)) for _ in range(2)]
            before = one.stored
            await one.write(one.metadata.begin_recovery(), before)
            assert one.stored.version == before.version + 1
            with pytest.raises(MetadataConflictError):
                await other.write(other.metadata.begin_recovery(), other.stored)
            assert (await other.refresh()) == one.metadata
            other.stored = type(before)(before.value, type(before.version)(99))
            await other.refresh()
            assert other.stored.version == 99  # an answer that was overtaken

    ScriptedCluster().run(story)


@pytest.mark.rule("A2a")
def test_a_ledger_made_anew_under_the_same_id_is_another_one() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = bk.metadata_store.ledgers
            writer = await bk.create_ledger()
            record = LedgerRecord(ledgers, writer.id, await ledgers.read(writer.id))
            seen = await ledgers.read(writer.id)
            await record.write(record.metadata.begin_recovery(), seen, same_life=True)
            assert record.stored.born == seen.born > 0
            await ledgers.delete(writer.id)
            _, made = await ledgers.create(seen.value, writer.id)
            with pytest.raises(NoSuchLedgerError):
                await record.refresh()
            with pytest.raises(NoSuchLedgerError):
                await record.write(seen.value.begin_recovery(), seen, same_life=True)
            assert (await ledgers.read(writer.id)).value == made.value

    ScriptedCluster().run(story)
