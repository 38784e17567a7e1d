"""What of a ledger is missing here, and what is said while it is brought back.

(How it is brought back, on whole clusters: tests/bookkeeper/replication/repairs/test_peer_completer.py.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import pytest

from bookkeeper.bookie.identity import completion
from bookkeeper.bookie.identity.completion import Completion, MissingEntries, gaps_of
from bookkeeper.errors import BookieUnavailableError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Metadata
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, Follower, run
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import OTHERS, add, change, named, status


def closed(metadata: LedgerMetadata, last: int) -> LedgerMetadata:
    return metadata.begin_recovery().close_recovered(last, 9 * (last + 1), metadata.fragments)


@pytest.mark.rule("B9")
def test_what_is_missing_is_found_by_reading_and_told_in_runs() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        assert cluster.server is not None
        ledger, striped = LedgerId(3), LedgerId(4)
        for entry_id in (0, 1, 4, 9):
            assert await status(cluster, add(ledger, entry_id)) is Status.OK
        for entry_id in (0, 4):  # of 0, 3, 4, 7, 8: position 0 of four, two copies
            assert await status(cluster, add(striped, entry_id)) is Status.OK
        engine = cluster.server.engine

        async def gaps(of: LedgerId, metadata: LedgerMetadata) -> list[MissingEntries]:
            return await gaps_of(engine, BOOKIE, of, metadata)

        assert await gaps(ledger, closed(named(BOOKIE), 1)) == []
        [gap] = await gaps(ledger, closed(named(BOOKIE, *OTHERS[:1]), 11))
        assert gap == MissingEntries(EntryId(0), 0, (range(2, 4), range(5, 9), range(10, 12)))
        assert gap.count == 8
        [gap] = await gaps(striped, closed(named(BOOKIE, *OTHERS, write_quorum=2), 8))
        assert [entry for some in gap.entries for entry in some] == [3, 7, 8]
        assert await gaps(LedgerId(99), closed(named(*OTHERS), 8)) == []

    run(main)


@pytest.mark.rule("B9")
def test_holes_without_number_are_looked_for_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "GAPS_MAX", 2)

    async def main(cluster: Cluster) -> None:
        await cluster.up()
        assert cluster.server is not None
        for entry_id in (1, 3, 5):
            await status(cluster, add(LedgerId(3), entry_id))
        [gap] = await gaps_of(cluster.server.engine, BOOKIE, LedgerId(3), closed(named(BOOKIE), 6))
        assert gap.entries == (range(1), range(2, 3))

    run(main)


class Broken:
    """Stands in for the repair, and fails at what it is told to."""

    fail_at: ClassVar[dict[LedgerId, Exception]] = {}
    asked: ClassVar[list[LedgerId]] = []

    def __init__(self, *parts: Any) -> None:
        pass

    async def complete(
        self, ledger_id: LedgerId, gaps: Sequence[MissingEntries], on_copied: Callable[[int, int], None]
    ) -> None:
        self.asked.append(ledger_id)
        on_copied(1, 100)
        if ledger_id in self.fail_at:
            raise self.fail_at[ledger_id]

    async def close(self) -> None:
        pass


@pytest.mark.rule("A8", "B9")
def test_whatever_goes_wrong_is_one_ledgers_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "COMPLETER", f"{__name__}:Broken")

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        server = cluster.server
        assert server is not None
        ids = []
        for last in (1, 1, None, 1, 1):
            ledger, _ = await metadata.ledgers.create(named(BOOKIE))
            ids.append(ledger)
            if last is not None:
                await change(metadata, ledger, last)
        Broken.asked.clear()
        Broken.fail_at = {
            ids[0]: BookieUnavailableError("c is away"),
            ids[1]: ZeroDivisionError(),
            ids[3]: OSError("full"),
        }
        made = Completion(server.engine, server._metadata, BOOKIE, server.config, cluster.node.seams, server.metrics)
        for ledger in ids:
            assert not await cluster.node.run(made.is_whole(ledger))
        assert Broken.asked == [ids[0], ids[1], ids[3], ids[4]]
        counted = [server.metrics.counter(f"completion_{name}_total").value for name in ("entries", "bytes")]
        assert counted == [4, 400], "also what was copied before something went wrong"
        said = "\n".join(made.sentences())
        assert f"ledger {ids[0]}: not whole yet: c is away; the bookie tries again" in said
        assert f"ledger {ids[1]}: not whole yet: copying failed, and the log says why" in said
        assert f"ledger {ids[2]}: entries that were lost here are copied from other bookies once it is closed" in said
        assert f"ledger {ids[3]}: not whole yet: full" in said
        assert f"ledger {ids[4]}: not whole yet: 2 entries that were copied cannot be read here" in said
        for ledger in (ids[0], ids[3]):
            for entry_id in (0, 1):
                await status(cluster, add(ledger, entry_id, recovery=True))
            assert await cluster.node.run(made.is_whole(ledger))
        assert not any(str(ids[0]) in text.partition(":")[0].split() for text in made.sentences())
        await made.close()
        await asyncio.sleep(0)

    run(main)


@pytest.mark.rule("Z6", "B9", "B5")
def test_a_store_that_is_behind_proves_nothing_of_a_copy() -> None:
    """Read without a sync, a ledger that a follower of the store does not have yet looks deleted, and of a deleted
    ledger nothing is missing here: the bookie would deny what it has lost of it."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        server = cluster.server
        assert server is not None
        follower = Follower(cluster.metadata.connect())
        behind = await Metadata.over(cast(Any, follower), cluster.node.seams)
        follower.falls_behind(cluster.metadata.snapshot())
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        server.parts.completion._metadata = behind
        assert not await cluster.node.run(server.parts.completion.is_whole(ledger))
        await metadata.ledgers.delete(ledger)
        assert await cluster.node.run(server.parts.completion.is_whole(ledger))

    run(main)
