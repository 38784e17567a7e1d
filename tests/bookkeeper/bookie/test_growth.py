"""Nothing in the metadata and nothing in a bookie's tables grows for ever: ledgers come and go, some at once and some
after a grace time, and every value and every table that is left is looked at. A hundred thousand ledgers on a disk:
tests/bookkeeper/storage/test_growth.py."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from bookkeeper.ids import LedgerId
from bookkeeper.meta.store_steps import walk
from tests.bookkeeper.bookie.cluster import Cluster, run
from tests.bookkeeper.bookie.garbage.test_garbage_collector import ledger
from tests.bookkeeper.tables import tables_of

ROUNDS: Final = 3
ROUND: Final = 500
"""Ledgers that are there at the same time."""
GRACE_S: Final = 40


@pytest.mark.rule("G8", "M6", "G1")
def test_what_is_left_of_ledgers_that_came_and_went_does_not_depend_on_their_number() -> None:
    async def main(cluster: Cluster) -> None:
        cluster.metadata._wall_ms = cluster.world.node("client").seams.clock.wall_ms
        metadata = await cluster.up()
        server = cluster.server
        assert server is not None
        ledgers, kept = metadata.ledgers, list[LedgerId]()
        left: list[tuple[int, int]] = []
        for _ in range(ROUNDS):
            made = sorted(n for n, _ in await asyncio.gather(*(ledgers.create(ledger()) for _ in range(ROUND))))
            for number in made:
                server.engine.append_entry(number, b"k" * 20, number.to_bytes(8, "big") + bytes(40))
            durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            server.engine.when_durable(lambda error, durable=durable: durable.set_result(None))  # type: ignore[misc]
            await durable
            kept.append(made.pop(0))
            await asyncio.gather(*(ledgers.delete(each, grace_s=GRACE_S if each % 4 else 0) for each in made))
            assert len([each async for each in ledgers.restorable.all()]) > ROUND // 2
            for _ in range(5):  # a grace, a proof, and one more pass, after which the proof forgets them
                await server.collect_garbage()
                await asyncio.sleep(61)
            await asyncio.sleep(1)
            assert sorted(server.engine.ledgers()) == kept
            assert [each async for each in ledgers.restorable.all()] == []
            await ledgers.deleted.merge(ledgers.deleted.place(0))
            values = [(await metadata.store.get(path)).value async for path in walk(metadata.store, ("/ledgers-py",))]
            left.append((len(values), sum(map(len, values))))
        assert max(count for count, _ in left) < 64 and max(size for _, size in left) < 2048, left
        assert len(server.engine.dropped) <= ROUNDS + 1
        tables = {name: size for name, size in tables_of(server, metadata.ledgers).items() if size > 200}
        assert set(tables) <= {"EntryLogState.usage", "ManifestLog.usage", *SIMULATED}, tables
        assert all(size < ROUND * 2 for name, size in tables.items() if name not in SIMULATED), tables

    run(main, garbage_interval_s=10**6, garbage_grace_s=30.0, garbage_shrink_max=1.0)


SIMULATED: Final = ("MemoryTree.nodes", "MemoryTree._names")
"""Tables of the store itself, which here is in memory."""
