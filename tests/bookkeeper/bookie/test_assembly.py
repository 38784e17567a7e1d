"""The parts of a bookie know each other as soon as its disk is open."""

from __future__ import annotations

from bookkeeper.ids import LedgerId
from bookkeeper.storage.engine import EngineState
from tests.bookkeeper.bookie.cluster import Cluster, run


def test_what_the_disk_and_an_operator_say_reaches_the_bookie() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server = cluster.server
        assert server is not None
        parts = server.parts
        assert parts.bookie.stale_adds is None and parts.bookie.ledger_keys is None, "a new disk, and no roles"
        parts.reports.on_order(True)
        before = parts.bookie.read_only
        parts.order.by = "an operator"
        parts.reports.on_order(True)
        assert (before, parts.bookie.read_only) == (False, True), "the order says so, not whoever tells of it"
        parts.reports.on_state(EngineState.FAILED, "sync failed")
        assert await server.run_until_failure() == "sync failed"

    run(main)


def test_a_loss_that_is_found_later_is_published() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server = cluster.server
        assert server is not None
        server.parts.stale_adds.cover(LedgerId(7))
        await cluster.node.run(server.stop())
        assert server.parts.publisher.record is not None and server.parts.publisher.record.highest == 7

    run(main)
