"""What damage has taken comes back from the other bookies, in a simulated world."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.bookie.control.bookie_commands import commands_of
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import CorruptionError, MetadataUnavailableError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import until, written


async def unheard(what: str) -> None:
    """Nobody listens."""


async def covered(server: BookieServer) -> None:
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    server.engine.checkpoint(done.set_result)
    assert await done is None


def rot(cluster: SimCluster, bookie: str, ledger: int, entry_id: int) -> None:
    """A byte of an entry turns over on a bookie's disk."""
    server, disk = cluster.servers[bookie], cluster.node(bookie).disk
    directory = server.config.storage.ledger_dir
    begin = ledger.to_bytes(8, "big") + entry_id.to_bytes(8, "big")
    for name in disk.list(directory):
        if name.endswith(".log") and (at := disk.read_file(f"{directory}/{name}").find(begin)) >= 0:
            file = disk.open(f"{directory}/{name}")
            file.pwrite(bytes([file.pread(1, at + 40)[0] ^ 1]), at + 40)
            file.sync()
            file.close()
            return
    raise AssertionError("it is in no log")


async def read(server: BookieServer, ledger: int, entry_id: int) -> bytes | BaseException:
    got: asyncio.Future[bytes | BaseException] = asyncio.get_running_loop().create_future()
    server.engine.read(LedgerId(ledger), EntryId(entry_id), got.set_result)
    return await got


@pytest.mark.rule("K30", "B9")
def test_a_scrub_finds_rot_and_the_entries_are_copied_back() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = int(await written(cluster, bk, 50))
            other = int(await written(cluster, bk, 20))
            server = cluster.servers["b1"]
            await covered(server)
            rot(cluster, "b1", ledger, 7)
            found: Any = await commands_of(server)["scrub"]({"now": True}, unheard)
            assert [each["ledgers"] for each in found["damaged"]] == [[ledger]]
            await until(lambda: not server.engine.suspects)
            assert isinstance(await read(server, ledger, 7), bytes)
            assert server.metrics.counter("scrub_repaired_ledgers_total", "").value == 1
            assert server.metrics.counter("completion_entries_total", "").value >= 1
            later: Any = await commands_of(server)["scrub"]({}, unheard)
            assert later["suspects"] == [] and "whole here again" in " ".join(later["sentences"])
            assert any("damaged:" in said for said in server.health()["sentences"])
            assert isinstance(await read(server, other, 7), bytes)
            await cluster.check_acked()

    SimCluster().run(story)


@pytest.mark.rule("K30")
def test_a_reader_that_meets_rot_is_enough() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = int(await written(cluster, bk, 50))
            server = cluster.servers["b2"]
            await covered(server)
            rot(cluster, "b2", ledger, 3)
            assert isinstance(await read(server, ledger, 3), CorruptionError)
            await until(lambda: server.engine.stats.scrub_damages == 1 and not server.engine.suspects)
            assert isinstance(await read(server, ledger, 3), bytes)

    SimCluster().run(story)


@pytest.mark.rule("K30", "B5")
def test_an_open_ledger_goes_on_and_is_repaired_when_it_is_closed() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            handle = await bk.create_ledger(password=b"pw")
            await handle.append_many([b"x" * 50] * 30)
            server = cluster.servers["b3"]
            await covered(server)
            rot(cluster, "b3", int(handle.id), 4)
            await commands_of(server)["scrub"]({"now": True}, unheard)
            assert server.engine.suspects == {handle.id}
            await handle.append_many([b"y"] * 10)
            assert "b3" in handle.metadata.last_fragment.ensemble, "its writer has not replaced it"
            await asyncio.sleep(200)
            assert server.engine.suspects == {handle.id} and server.health()["sentences"]
            await handle.close()
            await until(lambda: not server.engine.suspects)
            assert isinstance(await read(server, int(handle.id), 4), bytes)

    SimCluster().run(story)


@pytest.mark.rule("K30")
def test_while_the_store_is_away_ledgers_stay_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = int(await written(cluster, bk, 50))
            server = cluster.servers["b1"]
            await covered(server)
            rot(cluster, "b1", ledger, 7)
            is_whole, failing = server.parts.completion.is_whole, [MetadataUnavailableError("away"), ValueError("odd")]

            async def fails(ledger_id: LedgerId, **how: int) -> bool:
                if failing:
                    raise failing.pop(0)
                return await is_whole(ledger_id, **how)

            monkeypatch.setattr(server.parts.completion, "is_whole", fails)
            await commands_of(server)["scrub"]({"now": True}, unheard)
            await asyncio.sleep(90)
            assert server.engine.suspects == {ledger}
            await until(lambda: not server.engine.suspects)
            assert failing == []

    SimCluster().run(story)


@pytest.mark.rule("K30")
def test_suspects_of_an_earlier_life_are_repaired() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            handle = await bk.create_ledger(password=b"pw")
            await handle.append_many([b"x" * 50] * 30)
            server = cluster.servers["b1"]
            await covered(server)
            rot(cluster, "b1", int(handle.id), 4)
            await commands_of(server)["scrub"]({"now": True}, unheard)
            await asyncio.sleep(5)
            await handle.close()
            cluster.node("b1").crash()
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            again = cluster.servers["b1"]
            assert again is not server
            await until(lambda: again.parts.damaged.whole == 1)
            assert isinstance(await read(again, int(handle.id), 4), bytes)

    SimCluster().run(story)


@pytest.mark.rule("K30", "B5")
def test_damage_that_is_found_while_the_copies_are_read_is_repaired_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = int(await written(cluster, bk, 50))
            server = cluster.servers["b1"]
            await covered(server)
            rot(cluster, "b1", ledger, 7)
            is_whole, meanwhile = server.parts.completion.is_whole, [True]

            async def slow(ledger_id: LedgerId, **how: int) -> bool:
                whole = await is_whole(ledger_id, **how)
                if meanwhile:
                    meanwhile.clear()
                    rot(cluster, "b1", ledger, 20)
                    await commands_of(server)["scrub"]({"now": True}, unheard)
                return whole

            monkeypatch.setattr(server.parts.completion, "is_whole", slow)
            await commands_of(server)["scrub"]({"now": True}, unheard)
            await until(lambda: not server.engine.suspects and not meanwhile)
            assert isinstance(await read(server, ledger, 20), bytes)

    SimCluster().run(story)


@pytest.mark.rule("K30")
def test_what_is_to_be_whole_is_read_at_the_scrubs_rate_and_others_need_not_wait() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger, other = await written(cluster, bk, 200), await written(cluster, bk, 20)
            server, loop = cluster.servers["b1"], asyncio.get_running_loop()
            began = loop.time()
            slow = loop.create_task(server.parts.completion.is_whole(ledger, read_bytes_per_s=1000))
            await asyncio.sleep(0.01)
            assert await server.parts.completion.is_whole(other) and loop.time() - began < 1.0
            assert await slow and loop.time() - began > 5.0

    SimCluster().run(story)


@pytest.mark.rule("K30", "V2")
def test_a_ledger_whose_writer_is_gone_is_recovered_though_one_copy_rots_and_another_bookie_is_away() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            handle = await bk.create_ledger(password=b"pw", ensemble=3, write_quorum=3, ack_quorum=2)
            await handle.append_many([b"x" * 50] * 30)
            server = cluster.servers["b1"]
            await covered(server)
            rot(cluster, "b1", int(handle.id), 4)
            await commands_of(server)["scrub"]({"now": True}, unheard)
            assert server.engine.suspects == {handle.id}
            cluster.node("b2").crash()
            async with await bk.open_ledger(handle.id, b"pw") as reader:
                assert reader.last_add_confirmed == 29
            cluster.node("b2").restart()
            await until(lambda: not server.engine.suspects)
            assert isinstance(await read(server, int(handle.id), 4), bytes)

    SimCluster().run(story)
