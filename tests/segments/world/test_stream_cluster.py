from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.testing.cluster import SimCluster
from tests.segments.chain.pages import fold, make_pages_small
from tests.segments.retention.streams import make_stream
from tests.segments.world.chain_witness import ChainWitness
from tests.segments.world.stream_cluster import StreamCluster


def test_pages_and_deleted_ledgers_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    make_pages_small(monkeypatch)
    witness = ChainWitness()

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            record = await make_stream(client, segments=7)
            chain = await fold(record)
            assert witness.last is not None and tuple(witness.last.segments) == tuple(chain.segments)
            assert witness.problems == [] and witness.pages == 2
            await client.delete_ledger(chain.segments[0].ledger_id)
            assert witness.problems == [
                f"C6: ledger {chain.segments[0].ledger_id} was deleted while the record lists it"
            ]
            broken = replace(chain, pages=(replace(chain.pages[0], epoch=9), *chain.pages[1:]))
            await record.write(broken, (await record.recent.read())[1])
            assert witness.problems[1].startswith("C4: the record names a page that cannot be read")

    StreamCluster(1, witness).run(story)
