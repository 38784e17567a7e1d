"""A ledger that lacks copies is entered into the list of under-replicated ledgers, however its writer ends."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.repair_marks import RepairMarks
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.under_replication import UnderReplication
from tests.bookkeeper.client.scripted import ScriptedCluster

B1, B2 = BookieId("b1"), BookieId("b2")
LEDGER = LedgerId(7)


@pytest.mark.rule("V1")
def test_one_mark_names_all_that_was_missing_until_it_was_made_and_the_next_what_came_then() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            tasks, listed = Tasks("marks"), bk.metadata_store.under_replication
            marks = RepairMarks(bk.services, LEDGER, tasks)
            marks.missing.note(B1, 0, 9)
            marks.mark_soon()
            marks.missing.note(B2, 3, 4)
            marks.mark_soon()
            await asyncio.sleep(0.1)
            mark = await listed.read(LEDGER)
            assert mark is not None and sorted(mark.bookies) == [B1, B2]
            assert mark.version == 0, "one write made it"
            await listed.remove(mark)
            marks.mark_soon()
            await asyncio.sleep(0.1)
            assert await listed.read(LEDGER) is not None, "a mark that was removed is made again"
            await tasks.close()

    ScriptedCluster().run(story)


@pytest.mark.rule("V1")
def test_a_mark_that_cannot_be_made_is_logged_and_ends_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise MetadataUnavailableError("the store is away")

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            marks = RepairMarks(bk.services, LEDGER, Tasks("marks"))
            marks.missing.note(B1, 0, 9)
            with monkeypatch.context() as patch:
                patch.setattr(UnderReplication, "mark", away)
                await marks.mark()
            assert "ledger 7 could not be entered" in caplog.text and "the store is away" in caplog.text
            await marks.mark()
            assert await bk.metadata_store.under_replication.read(LEDGER) is not None

    ScriptedCluster().run(story)
