"""A ledger directory is emptied while writers write: every ledger moves, whole, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import IllegalOperationError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.base.results import Done
from bookkeeper.volumes.after_all import wait_until_done
from bookkeeper.volumes.disks.volume_list import VolumeState
from bookkeeper.volumes.routing.ledger_moves import LedgerMove
from bookkeeper.volumes.volume_drain import VolumeDrain
from tests.bookkeeper.volumes.stories import DISKS, DirectoriesCluster, Writers, directories_of, until

KEY = b"k" * 20


async def _says(text: str) -> None:
    pass


@pytest.mark.parametrize("seed", range(3))
def test_everything_moves_while_writers_write(seed: int) -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 6)
            await asyncio.sleep(2)
            volumes, directories = cluster.volumes("b1"), cluster.servers["b1"].ledger_directories
            assert directories is not None
            held = volumes.placements.ledgers_on(2)
            assert await directories.drain("/disk2", _says) >= len(held) > 0
            assert directories_of(cluster.servers["b1"])["/disk2"] == "drained"
            assert volumes.placements.count(2) == 0
            assert not volumes.suspects
            await asyncio.sleep(0.5)
            await writers.stop()
            assert set(held) <= set(volumes.ledgers())
            cluster.node("b1").disk.replace(
                {path: None for path in cluster.node("b1").disk.files() if path.startswith("/disk2/")}
            )
            cluster.dirs_of["b1"] = ("/disk1", "/disk3")
            cluster.node("b1").crash()
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            assert directories_of(cluster.servers["b1"]) == {"/disk1": "used", "/disk3": "used"}
            assert set(held) <= set(cluster.volumes("b1").ledgers())
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=seed)
    cluster.run(lambda _: story(cluster), within_s=2000)


@pytest.mark.parametrize("milliseconds", [0, 1, 3, 10, 30, 100, 300, 1000])
def test_a_crash_leaves_each_ledger_on_one_side_whole(milliseconds: int) -> None:
    """The next start goes on with the drain."""

    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 5)
            await asyncio.sleep(1)
            directories = cluster.servers["b1"].ledger_directories
            assert directories is not None
            drain = asyncio.get_running_loop().create_task(directories.drain("/disk2", _says))
            await asyncio.sleep(milliseconds / 1000)
            cluster.node("b1").crash()
            drain.cancel()
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            again = cluster.volumes("b1")
            assert not again.suspects
            if directories_of(cluster.servers["b1"])["/disk2"] != "used":  # else the crash came before it was noted
                await until(lambda: directories_of(cluster.servers["b1"])["/disk2"] == "drained")
                assert again.placements.count(2) == 0
            await writers.stop()
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=milliseconds)
    cluster.run(lambda _: story(cluster), within_s=2000)


@pytest.mark.parametrize(("lost", "seed"), [("/disk1", 1), ("/disk2", 2), ("/disk3", 3)])
def test_a_disk_that_fails_meanwhile_costs_nothing_that_was_acknowledged(lost: str, seed: int) -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 5)
            await asyncio.sleep(2)
            volumes, directories = cluster.volumes("b1"), cluster.servers["b1"].ledger_directories
            assert directories is not None
            drain = asyncio.get_running_loop().create_task(directories.drain("/disk2", _says))
            await asyncio.sleep(0.002)
            cluster.pull_out("b1", lost)
            if lost == "/disk2":
                with pytest.raises(IllegalOperationError, match="/disk2 is lost now"):
                    await drain
            else:
                await drain
                assert directories_of(cluster.servers["b1"])["/disk2"] == "drained"
                await until(lambda: directories_of(cluster.servers["b1"])[lost] == "lost")
            await writers.stop()
            await until(lambda: not volumes.suspects, within_s=300)
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=seed)
    cluster.run(lambda _: story(cluster), within_s=2000)


def test_what_a_ledger_is_moves_with_it() -> None:
    """Its fence, its explicit LAC, its key and its entries with gaps."""

    async def story(cluster: DirectoriesCluster) -> None:
        volumes, directories = cluster.volumes("b1"), cluster.servers["b1"].ledger_directories
        assert directories is not None
        ledger, bare = LedgerId(7), LedgerId(8)
        for entry_id in (0, 1, 5, 9):
            head = b"".join(
                number.to_bytes(8, "big", signed=True) for number in (ledger, entry_id, entry_id - 1, entry_id)
            )
            volumes.append_entry(ledger, KEY, head + b"digest" + b"%d" % entry_id)
        done: list[BaseException | None] = []
        volumes.set_explicit_lac(ledger, KEY, 40, b"explicit", done.append)
        volumes.fence(ledger, KEY, done.append)
        volumes.fence(bare, KEY, done.append)
        await until(lambda: len(done) == 3)
        assert done == [None, None, None]
        runs = list(volumes.entries(ledger))
        for place in DISKS[:2]:  # both are now on /disk3, or were
            await directories.drain(place, _says)
        assert volumes.placements.volume_of(ledger) == volumes.placements.volume_of(bare) == 3
        assert list(volumes.entries(ledger)) == runs
        assert volumes.explicit_lac(ledger) == (40, b"explicit")
        assert volumes.lac(ledger) == 40
        assert volumes.is_fenced(ledger)
        assert volumes.is_fenced(bare)
        engine = volumes.serving[0].engine
        assert engine.master_key(ledger) == KEY
        with pytest.raises(IllegalOperationError, match="/disk3 is the last ledger directory"):
            await directories.drain("/disk3", _says)
        read: list[bytes | BaseException] = []
        volumes.read(ledger, EntryId(9), read.append)
        await until(lambda: read)
        assert isinstance(read[0], bytes)
        assert read[0].endswith(b"digest9")

    cluster = DirectoriesCluster(seed=4, bookies=1)
    cluster.run(lambda _: story(cluster))


@pytest.mark.parametrize("seed", range(2))
def test_adds_that_come_while_their_ledger_moves_are_where_it_went(seed: int) -> None:
    """There is one copy: what is missing on the other disk is missing."""

    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1, password=b"") for _ in range(3)]
            volumes, going = cluster.volumes("b1"), True

            async def append(writer: WriteHandle) -> None:
                for number in itertools.count():
                    payload = b"%d" % number
                    cluster.acked(writer.id, await writer.append(payload), payload)
                    if not going:
                        return

            tasks = [asyncio.get_running_loop().create_task(append(writer)) for writer in ledgers]
            await until(lambda: all(volumes.placements.volume_of(each.id) for each in ledgers))
            moves = 0
            while moves < 12:
                await asyncio.sleep(0.01)
                number = volumes.placements.volume_of(ledgers[moves % 3].id)
                assert number is not None
                drain = VolumeDrain(volumes, number, 0)
                await drain.one_pass()
                moves += drain.moved
                assert not drain.waits_for
            going = False
            await asyncio.gather(*tasks)
            cluster.node("b1").crash(power=True)
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=seed, bookies=1)
    cluster.run(lambda _: story(cluster))


def test_a_copy_that_lacks_the_fence_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """B2: were it served, a writer that was fenced could go on. The ledger stays, and moves with the next pass."""

    async def story(cluster: DirectoriesCluster) -> None:
        volumes, ledger = cluster.volumes("b1"), LedgerId(7)
        head = b"".join(number.to_bytes(8, "big", signed=True) for number in (ledger, 0, -1, 1))
        volumes.append_entry(ledger, KEY, head + b"digest")
        await wait_until_done(volumes.when_durable)
        number = volumes.placements.volume_of(ledger)
        assert number is not None
        source = next(each.engine for each in volumes.serving if each.number == number)
        wait_for_both = volumes.moves.wait_for_both

        def fenced_late(move: LedgerMove, callback: Done) -> None:
            source.fence(ledger, KEY, lambda _: wait_for_both(move, callback))

        drain = VolumeDrain(volumes, number, 0)
        with monkeypatch.context() as patched:
            patched.setattr(volumes.moves, "wait_for_both", fenced_late)
            assert not await drain.one_pass()
        assert drain.waits_for == {ledger: "it was changed while it was copied"}
        assert volumes.placements.volume_of(ledger) == number
        assert volumes.is_fenced(ledger)
        assert await drain.one_pass()
        assert volumes.placements.volume_of(ledger) != number
        assert volumes.is_fenced(ledger)

    cluster = DirectoriesCluster(seed=6, bookies=1)
    cluster.run(lambda _: story(cluster))


def test_a_ledger_that_is_not_whole_stays_until_it_is() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 3)
            await asyncio.sleep(1)
            await writers.stop()
            server = cluster.servers["b1"]
            volumes, directories = cluster.volumes("b1"), server.ledger_directories
            assert directories is not None
            source = next(each.engine for each in volumes.serving if each.number == 2)
            hurt = volumes.placements.ledgers_on(2)[0]
            source.scrubber.suspect([hurt])
            drain = asyncio.get_running_loop().create_task(directories.drain("/disk2", _says))
            await until(lambda: volumes.placements.count(2) <= 1)
            await drain  # the ledger is closed: it is read, found whole, and moves
            assert not volumes.suspects
            assert volumes.volume_list.at("/disk2").state is VolumeState.DRAINED  # type: ignore[union-attr]
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=5)
    cluster.run(lambda _: story(cluster))


def test_entries_are_copied_no_faster_than_the_limit() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writer = await bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1, password=b"")
            for _ in range(40):
                await writer.append(bytes(50_000))
            await writer.close()
            volumes = cluster.volumes("b1")
            number = volumes.placements.volume_of(writer.id)
            assert number is not None
            loop = asyncio.get_running_loop()
            began = loop.time()
            assert await VolumeDrain(volumes, number, 1_000_000).one_pass()
            assert 1.8 < loop.time() - began < 3.5, "two megabytes at one a second"
            number = volumes.placements.volume_of(writer.id)
            assert number is not None
            began = loop.time()
            assert await VolumeDrain(volumes, number, 0).one_pass()
            assert loop.time() - began < 0.5, "no limit"

    cluster = DirectoriesCluster(seed=12, bookies=1)
    cluster.run(lambda _: story(cluster))
