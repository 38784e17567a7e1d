from __future__ import annotations

import pytest

from bookkeeper.errors import MetadataForbiddenError
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta.cluster import Metadata, init_cluster_in
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.stores.access_list import AclDeviation, AclEntry, audit
from bookkeeper.meta.stores.credentials import Credentials
from bookkeeper.meta.stores.zookeeper import ZooKeeperStore
from bookkeeper.secret import Secret
from tests.bookkeeper.meta.services import ZooKeeperService, seams

PATHS = Paths()


def test_the_worst_of_a_list_is_named() -> None:
    ours = AclEntry("digest", "bk:hash", "cdrwa")
    assert AclDeviation("/a", ()).problem == "does not let us look at it"
    assert AclDeviation("/a", (ours, AclEntry("world", "anyone", "r"))).problem == "everybody may read it"
    assert AclDeviation("/a", (ours, AclEntry("world", "anyone", "rw"))).problem == "everybody may change it"
    assert AclDeviation("/a", (ours,)).problem == "its access list is digest:bk:hash:cdrwa"


async def connect(server: ZooKeeperServer, chroot: str, user: str | None) -> ZooKeeperStore:
    credentials = Credentials() if user is None else Credentials(user=user, password=Secret("pw"))
    return await ZooKeeperStore.open(str(server.address), seams(), chroot=chroot, credentials=credentials)


@pytest.mark.zookeeper
@pytest.mark.rule("X26")
async def test_what_is_open_or_another_users_is_found_and_taken(zookeeper_service: ZooKeeperService) -> None:
    server, chroot = zookeeper_service.server, zookeeper_service.chroot
    us, nobody, other = [await connect(server, chroot, user) for user in ("bk", None, "other")]
    await nobody.create("/ledgers-py/boot", parents=True)
    await nobody.create("/ledgers-py/boot/b1", b"7")
    await init_cluster_in(us, seams())
    found = {deviation.path: deviation.problem async for deviation in audit(us, PATHS)}
    assert found == dict.fromkeys(["/ledgers-py", "/ledgers-py/boot", "/ledgers-py/boot/b1"], "everybody may change it")
    for path in found:
        await us.take(path)
    assert [deviation async for deviation in audit(us, PATHS)] == []
    assert (await us.get("/ledgers-py/boot/b1")).value == b"7"
    with pytest.raises(MetadataForbiddenError):
        await nobody.set("/ledgers-py/boot/b1", b"8", None)
    with pytest.raises(MetadataForbiddenError):
        [deviation async for deviation in audit(other, PATHS)]
    with pytest.raises(MetadataForbiddenError):
        await other.take("/ledgers")
    for store in (us, nobody, other):
        await store.close()


@pytest.mark.zookeeper
async def test_without_an_identity_there_is_nothing_to_compare_with(zookeeper_service: ZooKeeperService) -> None:
    nobody = await zookeeper_service.connect()
    await init_cluster_in(nobody, seams())
    assert [deviation async for deviation in audit(nobody, PATHS)] == []


@pytest.mark.zookeeper
@pytest.mark.rule("X26")
async def test_a_root_that_everybody_may_change_is_told_at_every_start(
    zookeeper_service: ZooKeeperService, caplog: pytest.LogCaptureFixture
) -> None:
    server, chroot = zookeeper_service.server, zookeeper_service.chroot
    us, nobody = await connect(server, chroot, "bk"), await connect(server, chroot, None)
    await init_cluster_in(nobody, seams())
    await Metadata.over(nobody, seams())
    assert "everybody may change it" not in caplog.text
    await Metadata.over(us, seams())
    assert "/ledgers: everybody may change it; `bk metadata audit-acls --fix`" in caplog.text
    caplog.clear()
    await us.take("/ledgers")
    await Metadata.over(us, seams())
    assert "everybody may change it" not in caplog.text
    for store in (us, nobody):
        await store.close()
