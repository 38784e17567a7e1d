from __future__ import annotations

import os
import random
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.errors import ClusterExistsError, ConfigError, NoClusterError
from bookkeeper.ids import Address, BookieId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta.cluster import Metadata, init_cluster, init_cluster_in
from bookkeeper.meta.records import layout as layouts
from bookkeeper.meta.records.cookies import Cookie
from bookkeeper.meta.records.layout import BY_URI_NAME
from bookkeeper.meta.records.service_info import ServiceInfo
from bookkeeper.meta.store import MetadataStore
from tests.bookkeeper.meta.services import REPLY_LOST, REQUEST_LOST, Losing, MemoryService, load, seams


async def tree(store: MetadataStore, path: str, below: str = "/") -> dict[str, tuple[bytes, int]]:
    found = await store.get(path)
    nodes = {below: (found.value, int(found.version))}
    for name in await store.children(path):
        nodes |= await tree(store, f"{path}/{name}", f"{below.rstrip('/')}/{name}")
    return nodes


@pytest.mark.parametrize("name", ["flat", "hierarchical", "longhierarchical"])
async def test_a_new_cluster_is_javas_tree(store: MetadataStore, name: str) -> None:
    """On every kind of store."""
    instance_id = await init_cluster_in(store, seams(), layout=BY_URI_NAME[name])
    java = {
        node["path"]: (bytes.fromhex(node["data"]), node["version"])
        for node in load(f"zookeeper/initnewcluster-{name}.json")["nodes"]
    }
    assert len(java.pop("/INSTANCEID")[0]) == len(instance_id)
    ours = await tree(store, "/ledgers")
    assert ours.pop("/INSTANCEID") == (instance_id.encode(), 0)
    assert ours == java


@pytest.mark.parametrize("name", ["flat", "hierarchical", "longhierarchical"])
async def test_even_the_counts_of_children_made_are_javas(memory_service: MemoryService, name: str) -> None:
    store = await memory_service.connect()
    await init_cluster_in(store, seams(), layout=BY_URI_NAME[name])
    dump = memory_service.cluster.dump()
    for node in load(f"zookeeper/initnewcluster-{name}.json")["nodes"]:
        path = f"/ledgers{node['path']}".rstrip("/")
        assert 2 * dump[path].children_made - len(await store.children(path)) == node["cversion"], path


async def test_the_instance_id_is_a_random_uuid(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    first = await init_cluster_in(store, seams(), root="/a/ledgers")
    assert uuid.UUID(first).version == 4
    assert str(uuid.UUID(first)) == first


async def test_a_second_cluster_in_the_same_place_is_refused(store: MetadataStore) -> None:
    assert await store.exists("/ledgers/INSTANCEID") is None
    first = await init_cluster_in(store, seams())
    with pytest.raises(ClusterExistsError):
        await init_cluster_in(store, seams())
    assert (await store.get("/ledgers/INSTANCEID")).value.decode() == first
    await init_cluster_in(store, seams(), root="/other")


@pytest.mark.rule("M8", "Z4")
@pytest.mark.parametrize("lost", [REPLY_LOST, REQUEST_LOST])
async def test_a_cluster_whose_making_got_no_answer_is_made_once(memory_service: MemoryService, lost: Any) -> None:
    store = await memory_service.connect()
    memory_service.cluster.interference = Losing(multi=[lost])
    instance_id = await init_cluster_in(store, seams())
    assert (await store.get("/ledgers/INSTANCEID")).value.decode() == instance_id


@pytest.mark.rule("M8")
async def test_a_cluster_that_another_made_meanwhile_is_not_taken_for_ours(memory_service: MemoryService) -> None:
    store, other = await memory_service.connect(), await memory_service.connect()
    memory_service.cluster.interference = Losing(multi=[REQUEST_LOST])
    synced = store.sync

    async def sync(path: str) -> None:
        await init_cluster_in(other, replace(seams(), rng=random.Random(8)))
        await synced(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "sync", sync)
        with pytest.raises(ClusterExistsError):
            await init_cluster_in(store, seams())


async def test_where_no_cluster_was_made_is_none(tmp_path: Path) -> None:
    with pytest.raises(NoClusterError):
        await Metadata.connect(f"sqlite://{tmp_path}/m.db", seams())


async def test_the_bundle(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/m.db"
    instance_id = await init_cluster(uri, seams())
    with pytest.raises(ClusterExistsError):
        await init_cluster(uri, seams())
    metadata = await Metadata.connect(uri, seams())
    assert metadata.instance_id == instance_id
    assert metadata.own("boot", "a:1") == "/ledgers-py/boot/a:1"
    assert await metadata.bookies.writable() == []
    assert await metadata.cookies.known() == []
    assert [ledger async for ledger in metadata.ledgers.list()] == []
    await metadata.close()
    await metadata.close()


async def test_a_missing_layout_is_made_up_for(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    await init_cluster_in(store, seams())
    await store.delete("/ledgers/LAYOUT", None)
    metadata = await Metadata.over(store, seams(), layout=layouts.Layout.FLAT)
    assert metadata.layout is layouts.Layout.FLAT
    assert layouts.decode((await store.get("/ledgers/LAYOUT")).value) is layouts.Layout.FLAT


async def test_another_layout_than_the_clusters_is_refused(memory_service: MemoryService) -> None:
    store = await memory_service.connect()
    await init_cluster_in(store, seams())
    with pytest.raises(ConfigError, match="flat"):
        await Metadata.over(store, seams(), layout=layouts.Layout.FLAT)


async def test_looking_for_a_cluster_in_a_file_that_is_not_there_makes_none_and_names_the_address(
    tmp_path: Path,
) -> None:
    uri = f"sqlite://{tmp_path}/typo.db"
    with pytest.raises(NoClusterError, match=f"no cluster at {uri}: `bk init --metadata {uri}` makes one"):
        await Metadata.connect(uri, seams())
    assert os.listdir(tmp_path) == []


# -- Java's autorecovery beside us --------------------------------------------------------------------------


NEW = LedgerMetadata.create(QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1), [BookieId("b1")], password=b"")


async def planted(store: MetadataStore, java: MetadataStore, dump: str) -> dict[str, bytes]:
    """A captured tree, ephemeral values in a session of their own; the part of it that is autorecovery's."""
    theirs = {}
    for node in load(f"zookeeper/{dump}.json")["nodes"]:
        path = f"/ledgers{node['path']}".rstrip("/")
        value = bytes.fromhex(node["data"])
        await (java if node["ephemeral"] else store).create(path, value, ephemeral=node["ephemeral"], parents=True)
        if path.startswith("/ledgers/underreplication"):
            theirs[path] = value
    return theirs


@pytest.mark.parametrize("dump", ["auditor-elected", "bookie-lost", "worker-holds-lock", "replication-disabled"])
async def test_the_tree_of_javas_autorecovery_is_left_as_it_is(memory_service: MemoryService, dump: str) -> None:
    """Locks, votes, delays, check times and marks survive all that we do to ledgers, bookies and cookies."""
    store, java = await memory_service.connect(), await memory_service.connect()
    theirs = await planted(store, java, dump)
    with pytest.raises(ClusterExistsError):
        await init_cluster_in(store, seams())
    metadata = await Metadata.over(store, seams())
    ledgers = [ledger async for ledger in metadata.ledgers.list()]
    assert ledgers
    for ledger in ledgers:
        found = await metadata.ledgers.read(ledger)
        if not found.value.is_closed:
            await metadata.ledgers.write(ledger, found.value.begin_recovery(), found.version)
    cookie = Cookie(bookie_id=BookieId("b1"), journal_dirs=("/j",), ledger_dirs=("/l",), instance_id="x")
    version = await metadata.cookies.write(cookie, None)
    registration = await metadata.bookies.register(BookieId("b1"), ServiceInfo.bookie(Address("127.0.0.1", 1)))
    await registration.set_read_only(True)
    await registration.unregister()
    await metadata.cookies.delete(BookieId("b1"), version)
    created, _ = await metadata.ledgers.create(NEW)
    for ledger in [*ledgers, created]:
        await metadata.ledgers.delete(ledger)
    left = await tree(store, "/ledgers/underreplication", "/ledgers/underreplication")
    assert {path: value for path, (value, _) in left.items()} == theirs
    assert {version for _, version in left.values()} == {0}
