"""What an operator does with ledger directories of a bookie that runs, and what is refused."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.bookie.control.ledger_directories import LedgerDirectories
from bookkeeper.errors import CookieError, IllegalOperationError
from bookkeeper.ids import LedgerId, bookie_id
from bookkeeper.meta.records import cookies
from bookkeeper.metrics import Gauge
from bookkeeper.testing.world import Fault
from bookkeeper.volumes.after_all import wait_until_done
from bookkeeper.volumes.disks.volume_list import VolumeState
from tests.bookkeeper.volumes.stories import DISKS, DirectoriesCluster, Writers, directories_of, until

KEY = b"k" * 20


def run(story: Any, *, seed: int = 1, bookies: int = 1) -> None:
    cluster = DirectoriesCluster(seed=seed, bookies=bookies)
    cluster.run(lambda _: story(cluster), within_s=2000)


def directories(cluster: DirectoriesCluster) -> LedgerDirectories:
    return cluster.servers["b1"].ledger_directories


async def says(text: str) -> None:
    pass


async def some_ledgers(cluster: DirectoriesCluster, count: int = 9) -> None:
    done: list[BaseException | None] = []
    for ledger in range(count):
        cluster.volumes("b1").fence(LedgerId(ledger), KEY, done.append)
    await until(lambda: len(done) == count)
    assert done == [None] * count


def test_each_directory_has_its_row() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        await some_ledgers(cluster)
        rows = directories(cluster).rows()
        assert [row["ledger_dir"] for row in rows] == list(DISKS)
        space = cluster.node("b1").disk.space("/disk1")
        for number, row in enumerate(rows, 1):
            assert row["number"] == number and row["journal_dir"] == row["ledger_dir"]
            assert (row["state"], row["disk"], row["reason"], row["ledgers"]) == ("used", "writable", None, 3)
            assert row["total_bytes"] == space.total and 0 < row["free_bytes"] <= space.total
        assert directories(cluster).sentences() == ()
        assert directories(cluster).in_use == list(DISKS)
        assert cluster.servers["b1"].data_directories == list(DISKS)

    run(story)


def test_a_lost_directory_is_shown_and_said_until_it_is_used_again() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        await some_ledgers(cluster)
        assert await directories(cluster).lose("/disk2") == 3
        row = directories(cluster).rows()[1]
        assert (row["state"], row["reason"], row["ledgers"]) == ("lost", "an operator has given it up", 0)
        assert (row["disk"], row["free_bytes"], row["total_bytes"]) == (None, None, None)
        said = directories(cluster).sentences()
        assert said[0].startswith("ledger directory /disk2 is lost (an operator has given it up)")
        server = cluster.servers["b1"]
        server.refresh_metrics()
        shown = {(name, *labels.values()): metric for name, _, labels, metric in server.metrics}
        assert shown["bookie_lost_directories",] == Gauge(1)
        assert shown["bookie_ledger_num_dirs",] == Gauge(3)
        assert said[1] == "ledgers that were on a lost disk, and are not whole here again yet: 3"
        assert cluster.servers["b1"].directory_sentences() == said
        assert directories(cluster).in_use == ["/disk1", "/disk3"]
        await asyncio.sleep(1)
        cluster.put_back_empty("b1", "/disk2")
        assert await directories(cluster).add("/disk2", "/disk2") == 4
        assert [row["number"] for row in directories(cluster).rows()] == [1, 3, 4]
        assert not any("/disk2" in text for text in directories(cluster).sentences())

    run(story)


def test_a_directory_that_is_added_remembers_what_was_dropped_before() -> None:
    """It may be the only one that is left one day, and a ledger that was deleted must not come back on it."""

    async def story(cluster: DirectoriesCluster) -> None:
        await some_ledgers(cluster)
        volumes = cluster.volumes("b1")
        ledger = next(iter(volumes.ledgers()))
        await wait_until_done(lambda done: volumes.collect([ledger], done))
        cluster.node("b1").disk.make_directories("/disk4")
        assert await directories(cluster).add("/disk4", "/disk4") == 4
        assert all(ledger in each.engine.dropped for each in volumes.serving)

    run(story)


@pytest.mark.parametrize(
    ("ledger_dir", "journal_dir", "error", "text"),
    [
        ("/disk1", "/disk1", IllegalOperationError, "/disk1 is a ledger directory of this bookie already"),
        ("/disk9", "/disk9", IllegalOperationError, "/disk9 does not exist: make the directory"),
        ("/disk4", "/disk9", IllegalOperationError, "/disk9 does not exist: make the directory"),
        ("disk4", "disk4", IllegalOperationError, "disk4 does not exist"),
        ("/disk4", "/disk2", IllegalOperationError, "/disk2 is in use by this bookie already"),
        ("/data", "/data", IllegalOperationError, "/data is in use by this bookie already"),
        ("/disk2/sub", "/disk2/sub", IllegalOperationError, "/disk2/sub lies in /disk2, which this bookie uses"),
        ("/disk4", "/disk2/sub", IllegalOperationError, "/disk2/sub lies in /disk2, which this bookie uses"),
        ("/full", "/full", CookieError, "/full .* is not empty, and a new ledger directory must be"),
        ("/theirs", "/theirs", CookieError, "/theirs does not belong to this bookie: its bookie id is b2"),
        ("/strange", "/strange", CookieError, "/strange is not empty and has no cookie: it holds photo.jpg"),
    ],
)
def test_what_cannot_be_added_is_refused(ledger_dir: str, journal_dir: str, error: type[Exception], text: str) -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        disk = cluster.node("b1").disk
        for place in ("/disk4", "/full", "/strange", *({"/disk2/sub"} & {ledger_dir, journal_dir})):
            disk.make_directories(place)
        disk.open("/strange/photo.jpg", create=True).close()
        disk.open("/full/0000000000000001.journal", create=True).close()
        disk.make_directories("/theirs")
        cookie = cookies.decode(disk.read_file("/disk1/VERSION"))
        theirs = cookies.encode(replace(cookie, bookie_id=bookie_id("b2")))
        for path, data in (("/theirs/VERSION", theirs), ("/theirs/0000000000000001.journal", b"")):
            file = disk.open(path, create=True)
            file.pwrite(data, 0)
            file.close()
        before = directories(cluster).rows()
        with pytest.raises(error, match=text):
            await directories(cluster).add(ledger_dir, journal_dir)
        assert [row["number"] for row in directories(cluster).rows()] == [row["number"] for row in before]
        await directories(cluster).add("/disk4", "/disk4")
        assert directories_of(cluster.servers["b1"])["/disk4"] == "used", "what was refused is no obstacle"
        await some_ledgers(cluster)
        cluster.dirs_of["b1"] = (*DISKS, "/disk4")
        cluster.node("b1").crash()
        cluster.node("b1").restart()
        await cluster.wait_until_up("b1")

    run(story)


@pytest.mark.parametrize("after", range(0, 60, 3))
def test_an_addition_that_fails_can_be_made_again_or_be_left(after: int) -> None:
    """Whatever operation fails: the others serve on, and so does the next start without the directory."""

    async def story(cluster: DirectoriesCluster) -> None:
        disk = cluster.node("b1").disk
        disk.make_directories("/disk4")
        fault = Fault(operation="*", code=errno.EIO, path="/disk4", after=after)
        disk.faults.append(fault)
        try:
            await directories(cluster).add("/disk4", "/disk4")
        except Exception:
            assert directories_of(cluster.servers["b1"]).get("/disk4", "lost") == "lost"
        await some_ledgers(cluster)
        await until(lambda: cluster.servers["b1"].health()["status"] == "ok")
        disk.faults.clear()
        state = directories_of(cluster.servers["b1"]).get("/disk4")
        if state == "used":
            cluster.dirs_of["b1"] = (*DISKS, "/disk4")
        cluster.node("b1").crash()
        cluster.node("b1").restart()
        await cluster.wait_until_up("b1")
        assert set(cluster.volumes("b1").placements.lost) | set(cluster.volumes("b1").ledgers()) == set(range(9))

    run(story, seed=after)


def test_what_cannot_be_drained_or_given_up_is_refused() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        found = directories(cluster)
        for act in (lambda place: found.drain(place, says), found.lose):
            with pytest.raises(IllegalOperationError, match="/elsewhere is not a ledger directory of this bookie"):
                await act("/elsewhere")
        await found.lose("/disk1")
        for act in (lambda place: found.drain(place, says), found.lose):
            with pytest.raises(IllegalOperationError, match="/disk1 is lost already"):
                await act("/disk1")
        await found.drain("/disk2", says)
        for act in (lambda place: found.drain(place, says), found.lose):
            with pytest.raises(IllegalOperationError, match="/disk2 is drained already"):
                await act("/disk2")
            with pytest.raises(IllegalOperationError, match="/disk3 is the last ledger directory that takes new"):
                await act("/disk3")
        assert directories_of(cluster.servers["b1"]) == {"/disk1": "lost", "/disk2": "drained", "/disk3": "used"}

    run(story)


def test_a_directory_that_is_emptied_says_how_far_it_is() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        await some_ledgers(cluster)
        found, heard = directories(cluster), list[str]()
        stays = LedgerId(1)
        volumes = cluster.volumes("b1")
        source = next(each.engine for each in volumes.serving if each.number == 2)
        source.scrubber.suspect([stays])

        async def hear(text: str) -> None:
            heard.append(text)

        task = asyncio.get_running_loop().create_task(found.drain("/disk2", hear))
        await until(lambda: volumes.placements.count(2) <= 1)
        if volumes.placements.count(2):
            assert "ledger directory /disk2 is being emptied; ledgers moved: 2, left: 1" in found.sentences()
            assert any(
                text.startswith("ledger 1 stays on /disk2: some of its entries may be missing here")
                for text in found.sentences()
            )
        assert found.rows()[1]["state"] == VolumeState.DRAINING.value
        assert heard[0] == "ledgers moved: 0, left: 3"
        source.end_suspicion(stays, source.suspicion(stays))
        assert await task == 3
        assert found.sentences() == ()

    run(story)


def test_a_directory_that_cannot_be_emptied_yet_keeps_no_other_waiting() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        await some_ledgers(cluster)
        found, volumes = directories(cluster), cluster.volumes("b1")
        held = volumes.placements.ledgers_on(2)[0]
        source = next(each.engine for each in volumes.serving if each.number == 2)
        source.scrubber.suspect([held])
        first = asyncio.get_running_loop().create_task(found.drain("/disk2", says))
        await until(lambda: volumes.placements.count(2) == 1)
        async with asyncio.timeout(60):
            assert await found.drain("/disk3", says) >= 3
        assert not first.done() and volumes.placements.ledgers_on(2) == [held]
        source.end_suspicion(held, source.suspicion(held))
        assert await first == 3
        assert directories_of(cluster.servers["b1"]) == {"/disk1": "used", "/disk2": "drained", "/disk3": "drained"}

    run(story)


def test_who_waits_for_a_drain_of_a_directory_that_is_lost_is_told() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 3)
            await asyncio.sleep(1)
            task = asyncio.get_running_loop().create_task(directories(cluster).drain("/disk2", says))
            await asyncio.sleep(0)
            cluster.pull_out("b1", "/disk2")
            with pytest.raises(IllegalOperationError, match="/disk2 is lost now"):
                await task
            await writers.stop()
        await cluster.check_acked()

    run(story, bookies=4)


@pytest.mark.rule("B12")
def test_the_log_says_which_directory_was_lost(caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        await some_ledgers(cluster)
        cluster.pull_out("b1", "/disk2")
        await until(lambda: directories_of(cluster.servers["b1"])["/disk2"] == "lost")

    run(story)
    said = [line for line in caplog.messages if "ledger directory /disk2 is lost" in line]
    assert len(said) == 1 and "Ledgers that were on it: 3." in said[0]
