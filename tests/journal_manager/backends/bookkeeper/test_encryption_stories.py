"""A journal on encrypted ledgers: with the keys it is as any other, without them nothing of it is shown or changed."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain as joined

import pytest

from bookkeeper.client.operators import Operator
from bookkeeper.testing.cluster import CLIENT, SimCluster
from journal_manager import EditLog, JournalConfigError, open_reader, open_snapshots
from journal_manager.backends.bookkeeper.journal_node import JournalNode
from tests.bookkeeper.encryption.keys import encrypted

SECRET = b"a secret that no bookie sees"


@pytest.mark.rule("X18", "X24")
def test_edits_and_snapshots_are_read_and_taken_over_with_the_keys_only() -> None:
    async def story(cluster: SimCluster) -> None:
        config = replace(CLIENT, encryption=encrypted())
        async with cluster.connect(config) as keeper, cluster.connect() as blind:
            log = await EditLog.open("bk:edits", owner="me", client=keeper)
            log.log(SECRET)
            at = await log.sync()

            await log.save_snapshot(at, [SECRET])
            await log.roll()
            reader = await open_reader("bk:edits", client=blind)
            segments = await reader.segments()
            with pytest.raises(JournalConfigError, match="are encrypted, their key is wrapped under key new"):
                async for _ in reader.read(segments[0], segments[0].first):
                    pass
            with pytest.raises(JournalConfigError, match=r"claiming journal edits: .* are encrypted"):
                await EditLog.open("bk:edits", owner="blind", client=blind)
            log.log(SECRET)
            await log.sync()
            await log.roll()  # nobody has claimed the journal
            operator = Operator(blind)
            passwords = set()
            async for ledger in keeper.list_ledgers():
                metadata = await operator.metadata(ledger)
                passwords.add(metadata.password)
                if metadata.last_entry >= 0:
                    stored = await operator.copy_on(metadata.last_fragment.ensemble[0], ledger, 0)
                    assert b"secret" not in stored.payload
            record, _ = await JournalNode(keeper.metadata_store, "edits").read()
            assert passwords == {record.password} and len(record.password) == 32
            await log.abort()
            again = await EditLog.open("bk:edits", owner="next", client=keeper)
            assert [op.body async for op in again.read(1)] == [SECRET, SECRET]
            snapshots = await open_snapshots("bk:edits", client=keeper)
            assert bytes(joined.from_iterable([piece async for piece in snapshots.read(at)])) == SECRET
            await again.close()

    SimCluster(seed=3).run(story)
