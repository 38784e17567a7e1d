"""Reading through a read handle, against bookies that do as they are told."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import wire
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import (
    IllegalOperationError,
    NoSuchEntryError,
)
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedCluster, written


def test_a_closed_ledger_is_read_in_batches() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(batch_read_bytes=4096)) as bk:
            ledger_id = await written(bk, 300, 20)
            async with await bk.open_ledger(ledger_id) as reader:
                assert [e async for e in reader.read(0, 299)] == [(i, b"%d" % i * 20) for i in range(300)]
                assert [e async for e in reader.read(0, -1)] == []
                assert [e.entry_id async for e in reader.read(299, 299)] == [299]
                assert await reader.read_entry(7) == b"7" * 20
        asked = [r for b in cluster.bookies for r in b.requests if isinstance(r, wire.BatchRead)]
        assert 4 < len(asked) < 60

    ScriptedCluster().run(story)


def test_what_was_not_confirmed_is_refused_by_read_and_available_under_its_own_name() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"confirmed")
            for bookie in cluster.bookies[:2]:
                bookie.refuse_adds = Status.IO_ERROR
            pending = ledger.append_nowait(b"unconfirmed")
            await asyncio.sleep(0.5)
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                assert reader.last_add_confirmed == 0 and not reader.closed
                with pytest.raises(IllegalOperationError, match="the last add confirmed is 0"):
                    await reader.read_entry(1)
                for bookie in cluster.bookies:
                    bookie.refuse_adds = None
                assert await reader.read_unconfirmed(1) == b"unconfirmed"
                with pytest.raises(NoSuchEntryError):
                    await reader.read_unconfirmed(2)
            await ledger.abandon()
            pending.exception()

    ScriptedCluster().run(story)


def test_a_striped_ledger_is_read_entry_by_entry_from_those_who_hold_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 200, ensemble=4, write_quorum=2, ack_quorum=2)
            async with await bk.open_ledger(ledger_id) as reader:
                assert [int(e.payload) async for e in reader.read(0, 199)] == list(range(200))
        assert not [r for b in cluster.bookies for r in b.requests if isinstance(r, wire.BatchRead)]

    ScriptedCluster(bookies=4).run(story)


def test_reading_goes_across_fragments() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as ledger:
                for _ in range(3):
                    await ledger.append_many([b"x"] * 7)
                    victim = cluster[ledger.metadata.last_fragment.ensemble[0]]
                    victim.refuse_adds = Status.READ_ONLY
                    await ledger.append(b"y")
                    await asyncio.sleep(0.2)
                    victim.refuse_adds = None
            assert len(ledger.metadata.fragments) >= 3
            async with await bk.open_ledger(ledger.id) as reader:
                assert b"".join([e.payload async for e in reader.read(0, 23)]) == (b"x" * 7 + b"y") * 3

    ScriptedCluster(bookies=5).run(story)


def test_leaving_a_read_early_forgets_what_was_read_ahead() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        config = ClientConfig(batch_read_bytes=4096)
        async with cluster.connect(config) as bk, await bk.open_ledger(await written(bk, 300, 20)) as reader:
            entries = reader.read(0, 299)
            async for entry in entries:
                if entry.entry_id == 3:
                    break
            await entries.aclose()  # type: ignore[attr-defined]
            await asyncio.sleep(1)

    ScriptedCluster().run(story)
