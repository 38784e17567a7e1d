"""What a journal leaves behind is found by its owner, and nothing that is named or may still be named."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import BookKeeper
from bookkeeper.testing.cluster import SimCluster
from journal_manager import EditLog, JournalFencedError, JournalWriter, open_snapshots, open_writer
from journal_manager.backends.bookkeeper.ledgers import journal_tags, segment_tags, snapshot_tags
from journal_manager.edits import FencingToken
from journal_manager.journals.capabilities import OrphanSweep, capability


async def ledgers(client: BookKeeper) -> set[int]:
    return {ledger_id async for ledger_id in client.list_ledgers()}


async def left_behind(client: BookKeeper, tags: dict[str, bytes]) -> int:
    ledger = await client.create_ledger(custom_metadata=tags)
    await ledger.close()
    return ledger.id


def test_only_what_nobody_names_or_will_name_is_swept() -> None:
    async def story(cluster: SimCluster) -> None:
        clock = cluster.client.seams.clock
        async with cluster.connect() as client:
            log = await EditLog.open("bk:edits", client=client, clock=clock)
            await log.log(b"1")
            await log.roll()
            await log.log(b"2")
            await log.save_snapshot(2, [b"12"])
            store = await open_snapshots("bk:edits", client=client)
            await store.offer(2, [b"12"])
            kept = await ledgers(client)
            await log.abort()
            former = FencingToken(1, "me")
            orphans = [
                await left_behind(client, segment_tags("edits", 3, former)),
                await left_behind(client, snapshot_tags("edits", 2, 1)),
                await left_behind(client, snapshot_tags("edits", 2, None)),
            ]
            others = {
                await left_behind(client, segment_tags("edits", 3, FencingToken(2, "me"))),
                await left_behind(client, journal_tags("another")),
            }
            await asyncio.sleep(100)
            writer: JournalWriter = await open_writer("bk:edits", client=client, clock=clock)
            sweeper = capability(writer, OrphanSweep)  # type: ignore[type-abstract]
            assert await sweeper.find_orphans(older_than_s=1000) == ()
            found = await sweeper.find_orphans(older_than_s=60)
            assert [orphan.location for orphan in found] == [f"ledger {ledger}" for ledger in orphans]
            assert [orphan.purpose for orphan in found] == [
                "a segment from edit 3, epoch 1",
                "a snapshot at edit 2",
                "a snapshot at edit 2",
            ]
            assert await ledgers(client) == kept | others | set(orphans)
            assert len(await sweeper.sweep_orphans(older_than_s=60)) == 3
            assert await ledgers(client) == kept | others
            await open_writer("bk:edits", client=client)
            with pytest.raises(JournalFencedError):
                await sweeper.sweep_orphans(older_than_s=60)

    SimCluster(seed=1).run(story)
