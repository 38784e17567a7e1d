"""Several ledger directories in one bookie: found again, lost, added, emptied, while writers write."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bookkeeper.errors import (
    CookieError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.manifest import read_manifest
from bookkeeper.storage.ledger_logs.ledger_log_layout import FINISH_WITHIN_S
from tests.bookkeeper.storage.workload import CONFIG
from tests.bookkeeper.volumes import doors
from tests.bookkeeper.volumes.stories import DISKS, DirectoriesCluster, Writers, directories_of, until


def test_a_directory_in_use_that_is_not_configured_any_more_ends_the_start() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        cluster.dirs_of["b1"] = DISKS[:2]
        cluster.node("b1").crash()
        cluster.node("b1").restart()
        main = cluster.node("b1").main
        assert main is not None
        with pytest.raises(CookieError, match=r"/disk3 holds ledgers of this bookie and is not among its ledger_dirs"):
            await main

    cluster = DirectoriesCluster(seed=7, bookies=1)
    cluster.run(lambda _: story(cluster))


def test_a_directory_that_is_empty_though_it_was_used_ends_the_start() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        cluster.node("b1").crash()
        cluster.put_back_empty("b1", "/disk3")
        cluster.node("b1").restart()
        main = cluster.node("b1").main
        assert main is not None
        with pytest.raises(CookieError, match="/disk3 is empty, but ledgers of this bookie were on it: mount its disk"):
            await main

    cluster = DirectoriesCluster(seed=8, bookies=1)
    cluster.run(lambda _: story(cluster))


def test_a_disk_that_does_not_work_at_the_start_is_lost() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 4)
            await asyncio.sleep(1)
            await writers.stop()
            lost = set(cluster.volumes("b1").placements.ledgers_on(3))
            cluster.node("b1").crash()
            cluster.pull_out("b1", "/disk3")
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            volumes = cluster.volumes("b1")
            assert directories_of(cluster.servers["b1"])["/disk3"] == "lost"
            assert lost
            await until(lambda: not volumes.suspects, within_s=300)
            assert lost <= set(volumes.ledgers())
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=9)
    cluster.run(lambda _: story(cluster), within_s=2000)


def test_a_bookie_with_one_directory_grows() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 3)
            await asyncio.sleep(1)
            await writers.stop()
            before = set(cluster.servers["b1"].engine.ledgers())
            cluster.node("b1").crash()
            cluster.grown["b1"] = {
                "ledger_dirs": ("/data/ledgers", "/disk2"),
                "journal_dirs": ("/data/journal", "/disk2"),
            }
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            volumes = cluster.volumes("b1")
            assert set(volumes.placements.ledgers_on(1)) == before
            writers = Writers(cluster, bk, 3)
            await asyncio.sleep(1)
            await writers.stop()
            assert volumes.placements.count(2) > 0
            cluster.node("b1").crash()
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            assert before <= set(cluster.volumes("b1").ledgers())
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=10, bookies=3, ledger_dirs=())
    cluster.run(lambda _: story(cluster))


def test_disks_that_were_exchanged_are_named() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        cluster.node("b1").crash()
        disk = cluster.node("b1").disk
        before = {path: data for path, data in disk.files().items() if path.startswith(("/disk1/", "/disk2/"))}
        other = {"/disk1": "/disk2", "/disk2": "/disk1"}
        after = {f"{other[path[:6]]}{path[6:]}": data for path, data in before.items()}
        disk.replace({**dict.fromkeys(before), **after})
        cluster.node("b1").restart()
        main = cluster.node("b1").main
        assert main is not None
        with pytest.raises(CookieError, match=r"/disk1/.* belongs to /disk2, another ledger directory of this bookie"):
            await main
        cluster.node("b1").crash()
        disk.replace({**dict.fromkeys(after), **before})
        cluster.node("b1").restart()
        await cluster.wait_until_up("b1")

    cluster = DirectoriesCluster(seed=8, bookies=1)
    cluster.run(lambda _: story(cluster))


def test_a_ledger_that_is_closed_has_its_log_finished_by_its_own_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "CONFIG", replace(CONFIG, entry_log_per_ledger=True))
    now = [100.0]
    door = doors.Door(monotonic=lambda: now[0])
    for ledger in (1, 2):
        door.acked(ledger, 0)
        assert door.volumes.placements.volume_of(ledger) == ledger
    door.volumes.ledger_closed(LedgerId(1))
    door.volumes.ledger_closed(LedgerId(99))
    for passed in (0.0, FINISH_WITHIN_S):
        now[0] += passed
        door.volumes.finish_logs()
        door.pump()
    finished = []
    for number in (1, 2):
        manifest = read_manifest(door.disk, f"/d{number}")
        assert manifest is not None
        finished.append([log.finished for log in manifest.logs.values()])
    assert finished[0] == [True] and not any(finished[1])
