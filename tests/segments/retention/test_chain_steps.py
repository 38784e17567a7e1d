"""Changes by somebody who is not the writer: made again after every conflict, and together with what they depend on."""

from __future__ import annotations

from bookkeeper.meta.store import Check, Version
from bookkeeper.testing.cluster import SimCluster
from segments.chain import StreamChain, StreamHead
from segments.retention.chain_steps import change_chain, change_chain_if
from tests.segments.retention.chains import at, chain_of


def test_a_change_is_made_on_what_others_wrote_meanwhile() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            record = StreamHead(client.metadata_store, "id", "orders")
            await record.create_if_absent(chain_of(3))
            tries: list[int] = []

            async def overtaking(chain: StreamChain) -> tuple[StreamChain, list[Check]]:
                tries.append(chain.epoch)
                if len(tries) == 1:
                    await change_chain(record, lambda chain: chain.claim("another", "n"))
                return chain.truncate(at(2)), [Check(record.path, None)]

            found = await change_chain_if(record, overtaking)
            assert tries == [1, 2] and (found.epoch, found.start) == (2, at(2))
            assert (await record.read())[0] == found

    SimCluster(seed=1).run(story)


def test_a_change_waits_for_what_it_depends_on() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            record = StreamHead(client.metadata_store, "id", "orders")
            await record.create_if_absent(chain_of(3))
            path = record.path + "-holds"
            version = (await record.store.create(path, b"one"))[1]
            asked: list[Version] = []

            async def decide(chain: StreamChain) -> tuple[StreamChain, list[Check]]:
                nonlocal version
                seen = version
                if not asked:
                    version = await record.store.set(path, b"two", seen)
                asked.append(seen)
                return chain.truncate(at(2)), [Check(path, seen)]

            await change_chain_if(record, decide)
            assert asked == [0, 1] and (await record.read())[0].start == at(2)

    SimCluster(seed=1).run(story)


def test_no_change_writes_nothing() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            record = StreamHead(client.metadata_store, "id", "orders")
            await record.create_if_absent(chain_of(1))
            assert await change_chain(record, lambda chain: chain.truncate(at(1))) == chain_of(1)
            assert (await record.read())[1] == 0

    SimCluster(seed=1).run(story)
