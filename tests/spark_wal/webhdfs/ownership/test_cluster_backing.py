"""Gateways on ledgers, in a simulated world: bookies, clients and gateways are the production code."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from bookkeeper import ClientConfig
from bookkeeper.client.operators import Operator
from bookkeeper.errors import BookKeeperError
from bookkeeper.testing.cluster import CLIENT, SimCluster
from bookkeeper.testing.world import Node
from journal_manager import JournalError
from spark_wal.webhdfs.config import GatewayConfig, OwnerConfig, UploadLimits
from spark_wal.webhdfs.errors import NoSuchFileError, PathExistsError, WebHdfsError
from spark_wal.webhdfs.files.records import RenameMode
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.cluster_backing import backing_on
from spark_wal.webhdfs.ownership.file_system import CreateOptions
from spark_wal.webhdfs.ownership.gateway import Gateway, GatewayRole
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner, NotOwnerError
from tests.bookkeeper.encryption.keys import encrypted

OPTIONS = CreateOptions(
    overwrite=True, create_parent=True, permission=0o644, owner="a", replication=1, block_size=1 << 20
)
LIMITS = UploadLimits(inline_size=1024, spill_size=8 * 1024, budget=64 * 1024)
CONFIG = GatewayConfig(owner=OwnerConfig(limits=LIMITS, snapshot_records=40), park_s=2.0)


async def gateway_on(
    cluster: SimCluster, node: Node, config: GatewayConfig = CONFIG, client_config: ClientConfig = CLIENT
) -> Gateway:
    client = await cluster.new_client(client_config, node)
    owner = f"{node.seams.rng.getrandbits(64):016x}"
    backing = backing_on(client, node.seams.clock, namespace="n", owner=owner, address=f"{node.name}:1")
    return Gateway(backing.open_namespace, backing.lease, node.seams.clock, config)


async def put(owner: NamespaceOwner, path: str, data: bytes) -> None:
    upload = owner.uploads.begin()
    await upload.write(data)
    await file_system.finish_create(owner, path, upload, OPTIONS)


def temporary(path: str, number: int) -> str:
    parent, name = path.rsplit("/", 1)
    return f"{parent}/.{name}.{number:08x}-0000-0000-0000-000000000000.tmp"


async def atomic(owner: NamespaceOwner, path: str, data: bytes, number: int) -> None:
    """What Spark does for one file of its logs."""
    temp = temporary(path, number)
    await put(owner, temp, data)
    await file_system.rename(owner, temp, path, RenameMode.NONE)


async def content(owner: NamespaceOwner, path: str) -> bytes:
    return b"".join([data async for data in await file_system.open_file(owner, path, 0, None)])


@pytest.mark.rule("S1", "S3", "S4")
def test_a_successor_has_everything_that_was_acknowledged() -> None:
    async def story(cluster: SimCluster) -> None:
        node = cluster.client
        first = await gateway_on(cluster, node)
        await first.start()
        owner = await first.owner()
        for number in range(100):
            await atomic(owner, f"/c/offsets/{number}", b"%d" % number * 100, number)
        await put(owner, "/c/large", bytes(range(256)) * 200)
        second = await gateway_on(cluster, node)
        await second.start(take_over=True)
        assert second.session is not None
        assert second.session.epoch > owner.epoch
        with pytest.raises(NotOwnerError):
            await put(owner, "/late", b"x")
        successor = await second.owner()
        assert len(await file_system.listing(successor, "/c/offsets")) == 100
        assert await content(successor, "/c/offsets/42") == b"42" * 100
        assert await content(successor, "/c/large") == bytes(range(256)) * 200
        with pytest.raises(PathExistsError):
            await atomic(successor, "/c/offsets/42", b"another", 1)
        await file_system.delete(successor, temporary("/c/offsets/42", 1), recursive=False)
        await asyncio.sleep(5)
        assert (first.role, second.role) == (GatewayRole.STANDBY, GatewayRole.OWNER)
        await second.close()
        await asyncio.sleep(5)
        assert first.role is GatewayRole.OWNER, "one that stands by takes over when the owner goes"
        assert len(await file_system.listing(await first.owner(), "/c/offsets")) == 100
        await first.close()

    SimCluster(seed=3).run(story)


@pytest.mark.rule("S3")
@pytest.mark.parametrize("seed", range(6))
def test_s3_a_gateway_that_was_frozen_shows_nothing_old(seed: int) -> None:
    """Two gateways, each frozen now and then; every answered look shows every file acknowledged before it began."""

    async def story(cluster: SimCluster) -> None:
        nodes = [cluster.world.node("g1"), cluster.world.node("g2")]
        acknowledged: set[str] = set()
        gateways: list[Gateway] = []
        for node in nodes:
            gateways.append(await node.run(started(cluster, node)))

        async def write(number: int) -> None:
            path = f"/c/{number}"
            for _ in range(200):
                for gateway, node in zip(gateways, nodes, strict=True):
                    if node is frozen:  # a write in progress there would hold back its looks
                        continue
                    try:
                        await asyncio.wait_for(asyncio.shield(node.run(one(gateway, path, number))), 3)
                    except (NotOwnerError, WebHdfsError, TimeoutError):
                        continue
                    acknowledged.add(path)
                    return
                await asyncio.sleep(0.1)

        async def one(gateway: Gateway, path: str, number: int) -> None:
            owner = gateway.session
            if owner is None:
                raise NotOwnerError
            await atomic(owner, path, b"x", number)

        async def look(gateway: Gateway, node: Node) -> None:
            before = set(acknowledged)
            owner = gateway.session
            if owner is None:
                return
            try:
                shown = {f"/c/{s.name}" for s in await node.run(file_system.listing(owner, "/c"))}
            except (NotOwnerError, NoSuchFileError):
                return
            assert before <= shown, f"{node.name} does not show {sorted(before - shown)}"

        looks: list[asyncio.Task[None]] = []
        frozen: Node | None = None

        def thaw() -> None:
            nonlocal frozen
            assert frozen is not None
            frozen.thaw()
            frozen = None

        async def keep_looking() -> None:
            while True:  # on a frozen node they wait, and are the first thing it does when it wakes
                looks.extend(asyncio.ensure_future(look(*pair)) for pair in zip(gateways, nodes, strict=True))
                await asyncio.sleep(0.2)

        looking = asyncio.ensure_future(keep_looking())
        for number in range(24):
            if number % 6 == 2 and frozen is None:
                frozen = next(n for g, n in zip(gateways, nodes, strict=True) if g.role is GatewayRole.OWNER)
                frozen.freeze()
                cluster.world.loop.call_later(7.0 + seed * 0.3, thaw)
            await write(number)
            await asyncio.sleep(0.5)
        await asyncio.sleep(10)
        looking.cancel()
        await asyncio.gather(*looks)
        assert len(acknowledged) == 24

    async def started(cluster: SimCluster, node: Node) -> Gateway:
        gateway = await gateway_on(cluster, node)
        await gateway.start()
        return gateway

    SimCluster(seed=seed).run(story)


def test_a_gateway_goes_on_when_a_bookie_is_lost() -> None:
    async def story(cluster: SimCluster) -> None:
        gateway = await gateway_on(cluster, cluster.client)
        await gateway.start()
        owner = await gateway.owner()
        await atomic(owner, "/c/0", b"x", 0)
        cluster.node("b2").crash()
        for number in range(1, 60):
            await atomic(owner, f"/c/{number}", b"x", number)
        await put(owner, "/c/large", bytes(50_000))
        await owner.begin_snapshot()
        assert len(await content(owner, "/c/large")) == 50_000
        await gateway.close()
        again = await gateway_on(cluster, cluster.client)
        await again.start()
        assert len(await file_system.listing(await again.owner(), "/c")) == 61
        await again.close()

    SimCluster(seed=5).run(story)


def test_orphans_of_a_crashed_gateway_are_collected() -> None:
    async def story(cluster: SimCluster) -> None:
        node = cluster.world.node("g1")
        gateway = await node.run(begun(cluster, node))
        assert gateway.session is not None
        node.crash()
        successor = await gateway_on(cluster, cluster.client)
        await successor.start()
        owner = await successor.owner()
        await asyncio.sleep(5)
        blobs = {info.blob for info in await owner.blobs.list()}
        assert blobs == owner.namespace.blobs()
        assert len(blobs) == 1
        await successor.close()

    async def begun(cluster: SimCluster, node: Node) -> Gateway:
        gateway = await gateway_on(cluster, node)
        await gateway.start()
        owner = await gateway.owner()
        await put(owner, "/kept", bytes(20_000))
        unfinished = owner.uploads.begin()
        await unfinished.write(bytes(300_000))
        return gateway

    SimCluster(seed=6).run(story)


@pytest.mark.rule("S2", "S4")
@pytest.mark.parametrize("seed", range(3))
def test_s4_what_was_uploaded_to_a_gateway_that_died_is_renamed_at_the_next(seed: int) -> None:
    """Temporary files lived in the memory of the gateway that had acknowledged them, and died with it.

    Writers upload and rename while the gateway's machine loses its power at a random moment. At the next gateway every
    file whose upload was answered has one of its names, whole; and the rename, asked for again as clients do, works.
    """
    uploaded: dict[int, bytes] = {}
    renamed: set[int] = set()

    async def write(owner: NamespaceOwner, lane: int) -> None:
        for number in range(lane, 10_000, 4):
            data = b"%d" % number * (20 if number % 5 else 3000)  # inline, or a blob of its own
            await put(owner, temporary(f"/c/{number}", number), data)
            uploaded[number] = data
            await file_system.rename(owner, temporary(f"/c/{number}", number), f"/c/{number}", RenameMode.NONE)
            renamed.add(number)

    async def serve(cluster: SimCluster, node: Node) -> None:
        gateway = await gateway_on(cluster, node, GatewayConfig(owner=OwnerConfig(limits=LIMITS)))
        await gateway.start()
        owner = await gateway.owner()
        await asyncio.gather(*(write(owner, lane) for lane in range(4)))

    async def story(cluster: SimCluster) -> None:
        node = cluster.world.node("g1")
        serving = node.run(serve(cluster, node))
        while len(renamed) < 10:  # noqa: ASYNC110  virtual time
            await asyncio.sleep(0.01)
        await asyncio.sleep(Random(seed).uniform(0, 0.5))
        node.crash(power=True)
        serving.cancel()
        before = len(uploaded)
        successor = await gateway_on(cluster, cluster.client)
        await successor.start()
        owner = await successor.owner()
        assert before == len(uploaded) >= len(renamed) >= 10
        for number, data in uploaded.items():
            path = f"/c/{number}"
            if number in renamed:
                assert await content(owner, path) == data
            assert await file_system.rename(owner, temporary(path, number), path, RenameMode.NONE)
            assert await content(owner, path) == data
        left = {status.name for status in await file_system.listing(owner, "/c")} - {str(n) for n in uploaded}
        assert len(left) <= 4, "what was not answered, of each writer one at most"
        await successor.close()

    SimCluster(seed=seed).run(story)


def test_a_stop_while_the_store_is_away_takes_less_than_what_is_waited_for_and_loses_nothing() -> None:
    """The end of the journal's ledger is a write to the metadata store, which was waited for as long as a change is:
    ten seconds, after which the error left the lease and the session as they were."""

    async def story(cluster: SimCluster) -> None:
        loop = asyncio.get_running_loop()
        first = await gateway_on(cluster, cluster.client)
        await first.start()
        await atomic(await first.owner(), "/c/offsets/0", b"kept", 0)
        cluster.store.begin_outage()
        began = loop.time()
        await first.close()
        assert loop.time() - began < 6
        cluster.store.end_outage()
        second = await gateway_on(cluster, cluster.client)
        await second.start(stand_by=True)
        assert await content(await until_owner(second), "/c/offsets/0") == b"kept"
        await second.close()

    SimCluster(5).run(story)


async def until_owner(gateway: Gateway) -> NamespaceOwner:
    for _ in range(300):
        if gateway.role is GatewayRole.OWNER:
            break
        await asyncio.sleep(0.1)
    return await gateway.owner()


@pytest.mark.rule("F1", "F9")
@pytest.mark.parametrize("ends", ["the process", "its session"])
def test_a_first_start_that_is_cut_short_anywhere_is_repeated_until_the_namespace_is_whole(ends: str) -> None:
    served = []

    async def story(cluster: SimCluster, turns: int) -> None:
        node = cluster.world.node("first")
        gateway = await node.run(gateway_on(cluster, node))
        starting = node.run(gateway.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        served.append(starting.done())
        if ends == "the process":
            node.crash()
        else:
            cluster.store.expire(gateway._lease._store)  # type: ignore[attr-defined]
            with suppress(BookKeeperError, JournalError):
                await starting
            await gateway.close()
        node = cluster.world.node("last")
        last = await node.run(gateway_on(cluster, node))
        await node.run(last.start(take_over=True))
        owner = await node.run(last.owner())
        await node.run(atomic(owner, "/c/offsets/0", b"x", 0))
        assert await node.run(content(owner, "/c/offsets/0")) == b"x"
        await node.run(last.close())

    for turns in range(200):
        SimCluster(seed=turns).run(partial(story, turns=turns))
        if served[-1]:
            break
    assert served[-1] and len(served) > 10, served


@pytest.mark.rule("X18", "X24")
def test_a_checkpoint_is_encrypted_whole_and_its_ledgers_have_passwords() -> None:
    """Journal, snapshots and files with a ledger of their own: a successor with the keys has all of it."""
    secret = b"a secret that no bookie sees"

    async def story(cluster: SimCluster) -> None:
        node, config = cluster.client, replace(CLIENT, encryption=encrypted())
        first = await gateway_on(cluster, node, client_config=config)
        await first.start()
        owner = await first.owner()
        await put(owner, "/c/small", secret)
        await put(owner, "/c/large", secret * 2000)
        second = await gateway_on(cluster, node, client_config=config)
        await second.start(take_over=True)
        successor = await second.owner()
        assert await content(successor, "/c/small") == secret
        assert await content(successor, "/c/large") == secret * 2000
        async with cluster.connect() as blind:
            operator, seen = Operator(blind), 0
            async for ledger in blind.list_ledgers():
                metadata = await operator.metadata(ledger)
                assert len(metadata.password or b"") == 32
                for entry in range(metadata.last_entry + 1):
                    stored = await operator.copy_on(metadata.last_fragment.ensemble[0], ledger, entry)
                    assert b"secret" not in stored.payload
                    seen += 1
            assert seen > 2
        await second.close()
        await first.close()

    SimCluster(seed=9).run(story)
