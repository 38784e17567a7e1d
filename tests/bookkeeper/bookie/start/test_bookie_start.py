"""What a start settles before it serves, and what one that fails leaves behind."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.bookie.start.bookie_start import BookieStart
from bookkeeper.errors import (
    CookieError,
    KeyExistsError,
)
from bookkeeper.ids import Address, EntryId
from bookkeeper.meta.records.bookies import Bookies
from bookkeeper.meta.store import Version
from bookkeeper.meta.stores.memory import Fate
from bookkeeper.net.connection import connect_bookie
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run
from tests.bookkeeper.bookie.test_lifecycle import KEY, L, entry


def files_of(cluster: Cluster) -> set[str]:
    disk = cluster.node.disk
    places = ("/data", "/data/journal", "/data/ledgers")
    return {name for place in places if disk.exists(place) for name in disk.list(place)}


EMPTY = {"bookie.lock", "journal", "ledgers"}


@pytest.mark.rule("K21")
def test_a_lost_disk_is_not_taken_for_a_new_one() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        cluster.node.crash(power=False)
        disk = cluster.node.disk
        for directory in ("/data/ledgers", "/data/journal"):
            for name in disk.list(directory):
                if name != "VERSION":
                    disk.unlink(f"{directory}/{name}")
        with pytest.raises(CookieError, match="has served before"):
            await cluster.again()

    run(main)


def test_each_start_has_a_higher_boot_number_and_the_port_stays() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        seen = []
        for _ in range(3):
            assert cluster.server is not None
            seen.append((cluster.server.boot, cluster.server.bookie_id, cluster.server.address.port))
            cluster.node.crash()
            await cluster.again()
        assert [boot for boot, _, _ in seen] == [1, 2, 3]
        assert len({(name, port) for _, name, port in seen}) == 1

    run(main, listen="b:0")


@pytest.mark.rule("A2b", "M8")
def test_a_start_whose_count_got_no_answer_takes_no_number_that_another_process_has_counted() -> None:
    class Rival:
        """Another process of this bookie counts at the same moment; of ours no answer comes."""

        counted = b""

        def fate(self, session: int, kind: str, path: str) -> Fate:
            if kind != "set" or not path.endswith("/boot/b:3181") or self.counted:
                return Fate()
            metadata = clusters[0].metadata
            node = metadata.dump()[path]
            self.counted = b"%d" % (int(node.value) + 1)
            metadata.write(0, lambda transaction: transaction.set(path, self.counted, Version(node.version)))
            return Fate(request_lost=True)

    async def main(cluster: Cluster) -> None:
        clusters.append(cluster)
        cluster.metadata.interference = rival = Rival()
        await cluster.up()
        assert cluster.server is not None
        assert rival.counted == b"1" and cluster.server.boot == 2

    clusters: list[Cluster] = []
    run(main)


@pytest.mark.rule("K21")
def test_a_first_start_that_is_refused_chooses_no_identity() -> None:
    """It was written down before anything was checked: the right --bookie-id was then refused on that directory."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        node = cluster.world.node("c")
        other = {**cluster.options, "listen": "c:1", "directory": "/data"}
        with pytest.raises(CookieError, match="has joined the cluster before"):
            await node.run(BookieServer(config_from({**other, "bookie_id": BOOKIE}), node.seams, metadata).start())
        assert not node.disk.exists("/data/identity.json")
        right = BookieServer(config_from({**other, "bookie_id": "c"}), node.seams, metadata)
        await node.run(right.start())
        assert sorted(await metadata.bookies.writable()) == [BOOKIE, "c"]
        await node.run(right.stop())

    run(main, storage={"journal_dir": "/data/journal", "ledger_dir": "/data/ledgers", "reserve_bytes": 0})


@pytest.mark.rule("K21")
@pytest.mark.parametrize(
    ("of", "fails"),
    [
        (BookieStart, "settle_disk_identity"),
        (BookieStart, "count"),
        (BookieStart, "open_volumes"),
        (BookieServer, "_start_http"),
    ],
)
def test_a_first_start_that_fails_leaves_no_bookie_behind(of: type[Any], fails: str) -> None:
    """The cookie stayed in the metadata: a bookie that had never served was listed as absent for good."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        node = cluster.world.node("c")
        config = config_from({**cluster.options, "listen": "c:1", "bookie_id": "c"})

        def fail(self: object, *_: object, **__: object) -> Any:
            raise OSError(errno.ENOSPC, "No space left on device")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(of, fails, fail)
            with pytest.raises(OSError, match="No space left"):
                await node.run(BookieServer(config, node.seams, metadata).start())
        assert await metadata.cookies.known() == [BOOKIE]
        places = ("/data", "/data/journal", "/data/ledgers")
        assert {name for place in places for name in node.disk.list(place)} == EMPTY
        again = BookieServer(config, node.seams, metadata)
        await node.run(again.start())
        assert again.first_start
        await node.run(again.stop())

    run(main)


@pytest.mark.rule("K21", "K1")
def test_a_first_start_that_fails_after_it_served_keeps_what_it_has_acknowledged() -> None:
    """Who knows its address may have written before it was registered: nothing of it is undone then."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        node, client = cluster.world.node("c"), cluster.world.node("client")
        config = config_from({**cluster.options, "listen": "c:1", "bookie_id": "c"})

        async def ask(request: wire.Request) -> wire.Reply:
            connection = await client.run(connect_bookie(client.seams.net, Address("c", 1), timeout_s=5))
            try:
                return await client.run(connection.request(request, 10))
            finally:
                connection.close()

        async def refused(*_: object, **__: object) -> None:
            assert (await ask(wire.AddEntry(L, EntryId(0), KEY, entry(0, b"x")))).status is Status.OK
            raise KeyExistsError("another one is registered")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Bookies, "register", refused)
            with pytest.raises(KeyExistsError):
                await node.run(BookieServer(config, node.seams, metadata).start())
        again = BookieServer(config, node.seams, metadata)
        await node.run(again.start())
        assert (await ask(wire.ReadEntry(L, EntryId(0)))).status is Status.OK
        await node.run(again.stop())

    run(main)


@pytest.mark.rule("K21", "K3")
def test_a_later_start_that_fails_leaves_everything_as_it_is() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        cluster.node.crash()

        def fail(self: BookieServer) -> Any:
            raise OSError(errno.EADDRINUSE, "taken")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BookieServer, "_start_http", fail)
            with pytest.raises(OSError, match="taken"):
                await cluster.again()
        assert await metadata.cookies.known() == [BOOKIE]
        assert {"VERSION", "identity.json", "boot", "manifest"} <= files_of(cluster)
        cluster.node.crash()
        await cluster.again()

    run(main)
