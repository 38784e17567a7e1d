"""The commands of a running bookie, in a simulated world. (By the socket: admin/bookie/test_bookie.py.)"""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.bookie.control.bookie_commands import commands_of
from bookkeeper.errors import IllegalOperationError
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import written


async def unheard(what: str) -> None:
    """Nobody listens."""


def test_a_collection_drops_what_was_deleted_and_compacts() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            commands = commands_of(cluster.servers["b1"])
            ledgers = [await written(cluster, bk, 20) for _ in range(4)]
            status = await commands["status"]({}, unheard)
            assert status["status"] == "ok"
            gone = ledgers[:3]
            for ledger in gone:
                await bk.delete_ledger(ledger)
                cluster._passwords.pop(ledger)
            says: list[str] = []

            async def heard(what: str) -> None:
                says.append(what)

            first: Any = await commands["gc"]({"major": True}, heard)
            assert first["dropped"] == [] and says[0] == "looks for ledgers that were deleted"
            grace_s = cluster.servers["b1"].config.garbage_grace_s
            assert first["waiting"] == 3 and first["restorable"] == 0 and grace_s - 1 < first["waiting_s"] < grace_s + 1
            dry: Any = await commands["gc"]({"dry_run": True}, unheard)
            assert set(dry) == {"logs"}
            await cluster.check_acked()

    SimCluster().run(story)


def test_compaction_is_suspended_and_resumed() -> None:
    async def story(cluster: SimCluster) -> None:
        server = cluster.servers["b1"]
        commands = commands_of(server)
        await commands["suspend"]({}, unheard)
        assert "compaction is suspended" in server.health()["sentences"]
        await commands["resume"]({}, unheard)
        assert "compaction is suspended" not in server.health().get("sentences", ())

    SimCluster().run(story)


def test_the_one_directory_is_a_row_with_its_ledgers() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            server = cluster.servers["b1"]
            for _ in range(3):
                await written(cluster, bk, 2)
            held = len(list(server.engine.ledgers()))
            assert held
            told: Any = await commands_of(server)["directories"]({}, unheard)
            storage, space = server.config.storage, server.engine.space()
            assert told["directories"] == [
                {
                    "number": None,
                    "ledger_dir": storage.ledger_dir,
                    "journal_dir": storage.journal_dir,
                    "state": "used",
                    "reason": None,
                    "ledgers": held,
                    "disk": "writable",
                    "free_bytes": space.free,
                    "total_bytes": space.total,
                }
            ]

    SimCluster().run(story)


def test_a_flag_that_is_none_is_refused() -> None:
    async def story(cluster: SimCluster) -> None:
        with pytest.raises(IllegalOperationError, match="major is 'yes'"):
            await commands_of(cluster.servers["b1"])["gc"]({"major": "yes"}, unheard)

    SimCluster().run(story)
