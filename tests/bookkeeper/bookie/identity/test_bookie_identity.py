"""A directory belongs to one bookie of one cluster, and a lost disk is noticed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.identity.bookie_identity import (
    COOKIE,
    PENDING,
    BookieIdentity,
    read_identity,
    refuse_java,
    settle_cookie,
    settle_grown_cookie,
    write_identity,
)
from bookkeeper.errors import BookKeeperError, CookieError
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.records.cookies import Cookie, encode
from bookkeeper.meta.stores.memory import Fate, MemoryCluster
from bookkeeper.seams import Lock
from bookkeeper.storage.base.durable_file import replace_file
from bookkeeper.storage.start.start import LOCK
from bookkeeper.testing import Node, NodeCrashed, World
from bookkeeper.testing.world import SimDisk
from tests.bookkeeper.bookie.cluster import Cluster
from tests.bookkeeper.bookie.cluster import run as run_cluster

VECTORS = Path(__file__).parents[3] / "vectors"
DIRECTORIES = ["/data/journal", "/data/ledgers"]


def cookie(**changes: Any) -> Cookie:
    fields = {
        "bookie_id": BookieId("b:1"),
        "journal_dirs": ("/data/journal",),
        "ledger_dirs": ("/data/ledgers",),
        "instance_id": "one",
    }
    return Cookie(**{**fields, **changes})


def run(main: Any, seed: int = 0) -> Any:
    with World(seed) as world:
        node = world.node("b")
        for directory in DIRECTORIES:
            node.disk.make_directories(directory)

        async def program() -> Any:
            store = MemoryCluster().connect()
            await init_cluster_in(store, node.seams)
            return await main(node, await Metadata.over(store, node.seams))

        coroutine: Coroutine[Any, Any, Any] = program()
        return world.run(coroutine)


@pytest.mark.rule("K21")
def test_the_first_start_makes_a_cookie_and_later_ones_find_it() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        assert await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
        assert not await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
        assert (await metadata.cookies.read(BookieId("b:1"))).value == cookie()
        for directory in DIRECTORIES:
            assert sorted(node.disk.list(directory)) == [COOKIE, LOCK]

    run(main)


@pytest.mark.rule("K21", "B11")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"instance_id": "two"}, "its cluster is"),
        ({"bookie_id": BookieId("b:2")}, "its bookie id is"),
        ({"ledger_dirs": ("/elsewhere",)}, "its ledger directory is"),
    ],
)
def test_a_directory_of_another_bookie_or_cluster_is_refused(change: dict[str, Any], named: str) -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
        with pytest.raises(CookieError, match=named):
            await settle_cookie(node.disk, metadata.cookies, cookie(**change), DIRECTORIES)

    run(main)


@pytest.mark.rule("K21", "B9")
@pytest.mark.parametrize("lost", DIRECTORIES)
def test_a_wiped_directory_is_noticed(lost: str) -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
        node.disk.unlink(f"{lost}/{COOKIE}")
        with pytest.raises(CookieError, match="has joined the cluster before"):
            await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)

    run(main)


def test_a_bookie_the_cluster_has_forgotten_does_not_come_back_in_silence() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
        stored = await metadata.cookies.read(BookieId("b:1"))
        await metadata.cookies.delete(BookieId("b:1"), stored.version)
        with pytest.raises(CookieError, match="forgotten"):
            await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)

    run(main)


def test_a_directory_with_strangers_in_it_is_not_taken() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        node.disk.open("/data/ledgers/thesis.doc", create=True)
        with pytest.raises(CookieError, match=r"thesis\.doc"):
            await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
        assert node.disk.list("/data/journal") == []

    run(main)


@pytest.mark.rule("K21", "B11")
def test_a_first_start_that_was_left_half_done_is_not_finished_once_the_id_has_served_elsewhere() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        for directory in DIRECTORIES:  # a start here ended before it reached the metadata
            replace_file(node.disk, f"{directory}/{PENDING}", encode(cookie()))
        path = metadata.own("boot", "b:1")
        await metadata.store.create(path, b"7", parents=True)  # of the time before the id was given up
        before = (await metadata.store.get(path)).transaction
        await metadata.cookies.write(cookie(), None)  # one on another machine did reach it
        await metadata.store.set(path, b"8", None)  # and served
        after = (await metadata.store.get(path)).transaction
        with pytest.raises(CookieError, match="another disk"):
            await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES, last_start=after)
        assert not await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES, last_start=before)
        assert not await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES, last_start=after)

    run(main)


@pytest.mark.rule("K21", "K2")
@pytest.mark.parametrize("seed", range(3))
def test_a_crash_between_any_two_steps_is_finished_by_the_next_start(seed: int) -> None:
    crashes = 0
    for step in range(60):

        async def main(node: Node, metadata: Metadata, step: int = step) -> bool:
            node.disk.die_after(step)
            crashed = False
            try:
                await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
            except NodeCrashed:
                crashed = True
            node.disk.crash()
            for directory in DIRECTORIES:
                node.disk.make_directories(directory)
            await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
            assert not await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
            for directory in DIRECTORIES:
                assert PENDING not in node.disk.list(directory)
            return crashed

        crashes += run(main, seed)
    assert 10 < crashes < 60


def test_id_and_port_are_chosen_once() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        assert read_identity(node.disk, "/data") is None
        chosen = BookieIdentity(BookieId("b:1"), 3181)
        write_identity(node.disk, "/data", chosen)
        node.disk.crash(keep=0.0)
        assert read_identity(node.disk, "/data") == chosen
        file = node.disk.open("/data/identity.json")
        file.pwrite(b"?", 0)
        with pytest.raises(BookKeeperError, match="should name this bookie and cannot be read"):
            read_identity(node.disk, "/data")

    run(main)


@pytest.mark.rule("K21")
@pytest.mark.parametrize("where", ["", "/journal", "/ledgers"])
@pytest.mark.parametrize("name", ["VERSION", "1a1fdfc96a9.txn", "lastMark", "0.log", "DIRTY"])
def test_a_directory_of_javas_bookie_is_refused_before_anything_is_written(where: str, name: str) -> None:
    async def main(cluster: Cluster) -> None:
        await init_cluster_in(cluster.metadata.connect(), cluster.node.seams)
        disk = cluster.node.disk
        disk.make_directories(f"/data{where}/current")
        samples = json.loads((VECTORS / "cookies.json").read_text())["files"]
        cookie = next(item for item in samples if item["name"] == "VERSION.default")
        file = disk.open(f"/data{where}/current/{name}", create=True)
        file.pwrite(bytes.fromhex(cookie["hex"]) if name == "VERSION" else b"?", 0)
        file.close()
        whose = ", 127.0.0.1:31916 " if name == "VERSION" else " "
        with pytest.raises(
            CookieError, match=rf"^/data{where} belongs to a bookie of Apache BookKeeper in Java{whose}\("
        ):
            await cluster.node.start(cluster.bookie)
        assert not disk.exists("/data/identity.json") and not disk.exists("/data/bookie.lock")
        assert disk.list(f"/data{where}/current") == [name]

    run_cluster(main)


def test_an_empty_directory_named_current_is_nobodys() -> None:
    with World(1) as world:
        disk = world.node("b").disk
        disk.make_directories("/data/current/lost+found")
        refuse_java(disk, ["/data", "/elsewhere"])


@pytest.mark.rule("K21")
def test_a_cookie_with_a_path_as_it_was_typed_is_the_same_from_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--dir data`` was kept as typed: started from elsewhere the bookie made itself anew, or was refused."""
    monkeypatch.chdir(tmp_path)
    config = config_from({"metadata_uri": "sqlite:///m.db", "directory": "data", "storage": {"journal_dir": "fast"}})
    assert config.directory == f"{tmp_path}/data"
    assert (config.storage.journal_dir, config.storage.ledger_dir) == (f"{tmp_path}/fast", f"{tmp_path}/data/ledgers")
    directories = [f"{tmp_path}/data/journal", f"{tmp_path}/data/ledgers"]
    typed = cookie(journal_dirs=("data/journal",), ledger_dirs=("data/ledgers",))

    async def main(node: Node, metadata: Metadata) -> None:
        for directory in directories:
            node.disk.make_directories(directory)
            replace_file(node.disk, f"{directory}/VERSION", encode(typed))
        await metadata.cookies.write(typed, None)
        now = cookie(journal_dirs=(directories[0],), ledger_dirs=(directories[1],))
        assert not await settle_cookie(node.disk, metadata.cookies, now, directories)
        monkeypatch.chdir("/")
        with pytest.raises(CookieError, match="its journal directory is"):
            await settle_cookie(node.disk, metadata.cookies, now, directories)

    run(main)


@pytest.mark.rule("K21", "K2")
def test_a_power_cut_right_after_the_cookie_was_made_leaves_a_bookie_that_knows_its_name() -> None:
    """The identity is on disk before the cookie is in metadata. In the other order such a bookie chose another port,
    and with it another name: its directories belonged to somebody else then, and it never started again."""

    async def main(cluster: Cluster) -> None:
        cut: list[str] = []

        class Cuts:
            def fate(self, session: int, kind: str, path: str) -> Fate:
                if cut or kind != "create" or "/cookies/" not in path:
                    return Fate()
                cut.append(path)
                asyncio.get_running_loop().call_later(0.5, lambda: cluster.node.crash(power=True))
                return Fate(delay_after_s=1)

        cluster.metadata.interference = Cuts()
        starting = asyncio.ensure_future(cluster.up())
        await asyncio.sleep(10)
        starting.cancel()
        cluster.client = await Metadata.over(cluster.metadata.connect(), cluster.world.node("client").seams)
        [bookie] = await cluster.client.cookies.known()
        assert cut[0].endswith(bookie)
        await cluster.again()
        assert cluster.server is not None and cluster.server.bookie_id == bookie

    run_cluster(main, listen="b:0")


def test_no_flipped_bit_of_an_identity_is_believed_and_one_of_earlier_versions_is() -> None:
    disk = SimDisk(Random(1))
    disk.make_directories("/data")
    chosen = BookieIdentity(BookieId("b:3181"), 3181)
    write_identity(disk, "/data", chosen)
    whole = disk.read_file("/data/identity.json")
    for bit in range(8 * (len(whole) - 1)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        disk.replace({"/data/identity.json": bytes(damaged)})
        try:
            found = read_identity(disk, "/data")
        except CookieError:
            continue
        assert found == chosen, "white space"
    disk.replace({"/data/identity.json": b'{"bookie_id": "b:3181", "port": 3181}\n'})
    assert read_identity(disk, "/data") == chosen


# -- more directories than before -------------------------------------------------------------------------

GROWN = [*DIRECTORIES, "/disk2"]


def grown(**changes: Any) -> Cookie:
    more = {"journal_dirs": ("/data/journal", "/disk2"), "ledger_dirs": ("/data/ledgers", "/disk2")}
    return cookie(**{**more, **changes})


@pytest.mark.rule("K21")
def test_a_cookie_grows_with_the_directories() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        node.disk.make_directories("/disk2")
        await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
        for _ in range(2):
            await settle_grown_cookie(node.disk, metadata.cookies, grown(), GROWN, ["/disk2"])
            assert (await metadata.cookies.read(BookieId("b:1"))).value == grown()
            assert {node.disk.read_file(f"{place}/{COOKIE}") for place in GROWN} == {encode(grown())}
        await settle_grown_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES, [])
        assert (await metadata.cookies.read(BookieId("b:1"))).value == cookie(), "one may leave again"

    run(main)


@pytest.mark.rule("K21", "K2")
@pytest.mark.parametrize("after", range(40))
def test_growing_goes_on_after_a_crash_in_the_middle(after: int) -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        node.disk.make_directories("/disk2")
        await settle_cookie(node.disk, metadata.cookies, cookie(), DIRECTORIES)
        node.disk.die_after(after)
        try:
            await settle_grown_cookie(node.disk, metadata.cookies, grown(), GROWN, ["/disk2"])
        except NodeCrashed:
            node.disk.crash()
        await settle_grown_cookie(node.disk, metadata.cookies, grown(), GROWN, ["/disk2"])
        assert (await metadata.cookies.read(BookieId("b:1"))).value == grown()
        assert {node.disk.read_file(f"{place}/{COOKIE}") for place in GROWN} == {encode(grown())}

    run(main, seed=after)


@pytest.mark.rule("K21", "B11")
@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        ("forget", "the cluster has forgotten b:1"),
        ("unlink", "/data/ledgers has no cookie, but b:1 has used it before: mount its disk"),
        ("fill", "/disk2 is not empty and has no cookie: it holds photo.jpg"),
        ("other bookie", "/disk2 does not belong to this bookie"),
        ("other cluster", "/disk2 does not belong to this bookie"),
        ("other metadata", "the cookie of b:1 in the metadata is another"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_grows(spoil: str, named: str) -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        disk, cookies = node.disk, metadata.cookies
        disk.make_directories("/disk2")
        await settle_cookie(disk, cookies, cookie(), DIRECTORIES)
        found = await cookies.read(BookieId("b:1"))
        if spoil == "forget":
            await cookies.delete(BookieId("b:1"), found.version)
        elif spoil == "unlink":
            disk.unlink(f"/data/ledgers/{COOKIE}")
        elif spoil == "fill":
            disk.open("/disk2/photo.jpg", create=True).close()
        elif spoil == "other metadata":
            await cookies.write(cookie(instance_id="two"), found.version)
        else:
            changes = {"bookie_id": BookieId("b:2")} if spoil == "other bookie" else {"instance_id": "two"}
            replace_file(disk, f"/disk2/{COOKIE}", encode(cookie(**changes)))
        with pytest.raises(CookieError, match=named):
            await settle_grown_cookie(disk, cookies, grown(), GROWN, ["/disk2"])
        assert disk.read_file(f"/data/journal/{COOKIE}") == encode(cookie())

    run(main)


def other() -> Cookie:
    return cookie(bookie_id=BookieId("b:2"), journal_dirs=("/other", "/disk2"), ledger_dirs=("/other", "/disk2"))


@pytest.mark.rule("K21", "B11")
def test_of_two_bookies_that_get_one_directory_at_the_same_time_one_has_it() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        disk, cookies = node.disk, metadata.cookies
        for place in ("/other", "/disk2"):
            disk.make_directories(place)
        await settle_cookie(disk, cookies, cookie(), DIRECTORIES)
        await settle_cookie(disk, cookies, cookie(bookie_id=BookieId("b:2")), ["/other"])
        told = await asyncio.gather(
            settle_grown_cookie(disk, cookies, grown(), GROWN, ["/disk2"]),
            settle_grown_cookie(disk, cookies, other(), ["/other", "/disk2"], ["/disk2"]),
            return_exceptions=True,
        )
        (refusal,) = [each for each in told if each is not None]
        assert isinstance(refusal, CookieError) and "/disk2 does not belong to this bookie" in str(refusal)
        winner, loser = (grown(), "b:2") if told[0] is None else (other(), "b:1")
        assert disk.read_file(f"/disk2/{COOKIE}") == encode(winner)
        assert "/disk2" not in (await cookies.read(BookieId(loser))).value.ledger_dirs

    run(main)


@pytest.mark.rule("K21", "B11")
def test_of_two_first_starts_in_one_directory_one_has_it() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        disk, cookies = node.disk, metadata.cookies
        second = cookie(bookie_id=BookieId("b:2"))
        told = await asyncio.gather(
            settle_cookie(disk, cookies, cookie(), DIRECTORIES),
            settle_cookie(disk, cookies, second, DIRECTORIES),
            return_exceptions=True,
        )
        (refusal,) = [each for each in told if each is not True]
        assert isinstance(refusal, CookieError)
        winner = cookie() if told[0] is True else second
        assert {disk.read_file(f"{place}/{COOKIE}") for place in DIRECTORIES} == {encode(winner)}
        assert await cookies.known() == [winner.bookie_id], "the other one has joined nothing"

    run(main)


@pytest.mark.rule("K21", "B11")
def test_a_directory_that_another_process_has_in_hand_gets_no_cookie() -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        disk, cookies = node.disk, metadata.cookies
        disk.make_directories("/disk2")
        held = disk.lock(f"/data/ledgers/{LOCK}")
        with pytest.raises(CookieError, match="/data/ledgers is in use by another bookie, or is just being given"):
            await settle_cookie(disk, cookies, cookie(), DIRECTORIES)
        assert not disk.exists(f"/data/journal/{PENDING}") and await cookies.known() == []
        held.release()
        assert await settle_cookie(disk, cookies, cookie(), DIRECTORIES), "the locks of the failed try are gone"
        held = disk.lock(f"/disk2/{LOCK}")
        with pytest.raises(CookieError, match="/disk2 is in use by another bookie"):
            await settle_grown_cookie(disk, cookies, grown(), GROWN, ["/disk2"])
        assert disk.read_file(f"/data/journal/{COOKIE}") == encode(cookie()) and not disk.exists(f"/disk2/{COOKIE}")
        held.release()
        await settle_grown_cookie(disk, cookies, grown(), GROWN, ["/disk2"])
        disk.lock(f"/disk2/{LOCK}").release()

    run(main)


@pytest.mark.rule("K21", "B11")
@pytest.mark.parametrize("growing", [False, True])
def test_a_bookie_that_is_overtaken_just_before_it_has_the_lock_finds_the_cookie(
    growing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(node: Node, metadata: Metadata) -> None:
        disk, cookies = node.disk, metadata.cookies
        disk.make_directories("/disk2")
        place = "/disk2" if growing else "/data/ledgers"
        if growing:
            await settle_cookie(disk, cookies, cookie(), DIRECTORIES)
        lock = disk.lock

        def overtaken(path: str) -> Lock:
            if path == f"{place}/{LOCK}":
                replace_file(disk, f"{place}/{COOKIE}", encode(other()))
            return lock(path)

        monkeypatch.setattr(disk, "lock", overtaken)
        with pytest.raises(CookieError, match=f"{place} does not belong to this bookie"):
            if growing:
                await settle_grown_cookie(disk, cookies, grown(), GROWN, ["/disk2"])
            else:
                await settle_cookie(disk, cookies, cookie(), DIRECTORIES)
        assert disk.read_file(f"{place}/{COOKIE}") == encode(other())

    run(main)
