from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from spark_wal.webhdfs.contents.blob_store import BlobInfo
from spark_wal.webhdfs.files.inodes import FileNode
from spark_wal.webhdfs.files.records import SetAttributes, SetQuota
from spark_wal.webhdfs.http.operations import perform
from spark_wal.webhdfs.http.parameters import Query
from spark_wal.webhdfs.http.request import Request
from spark_wal.webhdfs.http.two_steps import LOOK_EVERY
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.file_system import CreateOptions
from tests.spark_wal.webhdfs.http.test_operations import ask, put
from tests.spark_wal.webhdfs.ownership.test_gateway import Hall
from tests.spark_wal.webhdfs.virtual import Switch, in_virtual_time

OPTIONS = CreateOptions(True, True, 0o644, "me", 1, 1 << 20)


@pytest.mark.rule("S4")
@pytest.mark.parametrize("end", ["whole", "broken off", "over the quota of its new place"])
def test_an_append_follows_its_file_to_its_end_and_no_longer(end: str) -> None:
    """A file that is renamed while bytes for it come used to lose them: they were looked up by the old name."""

    @in_virtual_time
    async def story() -> None:
        gateway = Hall().gateway()
        await gateway.start()
        owner = await gateway.owner()
        await owner.change(SetQuota("/d", LOOK_EVERY if "quota" in end else None, 1))
        await ask(gateway, "PUT", "/c/a", "op=CREATE&namenoderpcaddress=x")
        kept: list[list[BlobInfo]] = []

        async def body() -> AsyncIterator[bytes]:
            yield b"1"
            assert owner.namespace.following == 1
            await ask(gateway, "PUT", "/c/a", "op=RENAME&destination=/d/a")
            if end == "broken off":
                raise ConnectionResetError
            for _ in range(2):
                yield b"2" * (1 if end == "whole" else LOOK_EVERY)
                kept.append(await owner.blobs.list())

        request = Request("POST", "/c/a", Query("op=APPEND&namenoderpcaddress=x"), "h", body())
        if end == "broken off":
            with pytest.raises(ConnectionResetError):
                await perform(gateway, request)
        else:
            reply = await perform(gateway, request)
            assert reply.status == (200 if end == "whole" else 403)
            assert (b"quota of /d is exceeded" in reply.body) == (end != "whole")
        assert not any(kept), "what is over the quota is not kept while the rest of it comes"
        node = owner.namespace.find("/d/a").node
        assert isinstance(node, FileNode)
        assert node.length == (3 if end == "whole" else 0)
        assert (owner.namespace.following, owner.uploads.in_memory) == (0, 0)
        await gateway.close()

    story()


@pytest.mark.parametrize(
    ("query", "new", "old"),
    [
        ("", 201, 403),
        ("&overwrite=true", 201, 201),
        ("&createflag=CREATE", 201, 403),
        ("&createflag=CREATE,OVERWRITE", 201, 201),
        ("&createflag=CREATE&overwrite=true", 201, 201),
        ("&createflag=OVERWRITE", 404, 201),
        ("&createflag=APPEND", 404, 403),
        ("&createflag=SYNC_BLOCK,CREATE,NO_LOCAL_WRITE", 201, 403),
    ],
)
def test_flags_say_whether_a_file_may_be_new_and_whether_it_may_be_there(query: str, new: int, old: int) -> None:
    """They were ignored: Hadoop's ``createFile().overwrite(true)``, which says it in flags alone, was refused."""

    @in_virtual_time
    async def story() -> None:
        gateway = Hall().gateway()
        await gateway.start()
        await put(gateway, "/old", "", b"before")
        for path, status in (("/new", new), ("/old", old)):
            reply = await put(gateway, path, query, b"after")
            assert reply.status == status, path
            found = await ask(gateway, "GET", path, "op=GETFILESTATUS")
            if status == 201:
                assert b'"length":5' in found.body
            elif path == "/new":
                assert found.status == 404
                assert b"Can't overwrite non-existent /new" in reply.body
            else:
                assert b'"length":6' in found.body
        await gateway.close()

    story()


@in_virtual_time
async def test_a_file_that_is_to_be_there_and_goes_while_its_new_bytes_come_is_not_made() -> None:
    gateway = Hall().gateway()
    await gateway.start()
    await put(gateway, "/f", "", b"before")

    async def body() -> AsyncIterator[bytes]:
        yield b"after"
        await ask(gateway, "DELETE", "/f", "op=DELETE")

    asked = Query("op=CREATE&namenoderpcaddress=x&createflag=OVERWRITE")
    assert (await perform(gateway, Request("PUT", "/f", asked, "h", body()))).status == 404
    assert (await ask(gateway, "GET", "/f", "op=GETFILESTATUS")).status == 404
    await gateway.close()


@in_virtual_time
async def test_the_first_step_hands_the_flags_on_and_refuses_what_is_none() -> None:
    gateway = Hall().gateway()
    await gateway.start()
    first = await ask(gateway, "PUT", "/f", "op=CREATE&createflag=overwrite,%20create")
    assert "&createflag=CREATE%2COVERWRITE&" in str(first.location)
    for step in ("", "&namenoderpcaddress=x"):
        refused = await ask(gateway, "PUT", "/f", f"op=CREATE&createflag=CREATE,REPLACE{step}")
        assert refused.status == 400
        assert b"CreateFlag.REPLACE" in refused.body
    await gateway.close()


@pytest.mark.rule("S2")
@in_virtual_time
async def test_a_file_has_attributes_while_its_bytes_come_and_is_there_with_its_last_one() -> None:
    """The cause: a file was known from its last byte on. ``FileSystem.create(fs, path, permission)`` sets a permission
    before its first, and was answered 404."""
    gateway = Hall().gateway()
    await gateway.start()
    statuses: list[dict[str, object]] = []

    async def status() -> dict[str, object]:
        reply = await ask(gateway, "GET", "/d/f", "op=GETFILESTATUS")
        assert reply.status == 200
        return dict(json.loads(reply.body)["FileStatus"])

    async def body() -> AsyncIterator[bytes]:
        yield b"12"
        statuses.append(await status())
        for query in (
            "op=SETPERMISSION&permission=770",
            "op=SETOWNER&owner=me&group=us",
            "op=SETTIMES&modificationtime=7&accesstime=9",
            "op=SETREPLICATION&replication=3",
        ):
            assert (await ask(gateway, "PUT", "/d/f", query)).status == 200
        statuses.append(await status())
        assert (await ask(gateway, "GET", "/d/f", "op=CHECKACCESS&fsaction=r--")).status == 200
        assert (await ask(gateway, "GET", "/d/f", "op=OPEN&namenoderpcaddress=x")).status == 404
        assert (await ask(gateway, "GET", "/d", "op=LISTSTATUS")).status == 404
        yield b"345"

    query = Query("op=CREATE&namenoderpcaddress=x&permission=640&user.name=you")
    assert (await perform(gateway, Request("PUT", "/d/f", query, "h", body()))).status == 201
    statuses.append(await status())
    names = ("length", "permission", "owner", "group", "replication", "accessTime")
    before, given, after = (tuple(each[name] for name in names) for each in statuses)
    assert before[:5] == (0, "640", "you", "supergroup", 1)
    assert given == (0, "770", "me", "us", 3, 9)
    assert after == (5, "770", "me", "us", 3, 9)
    assert statuses[1]["modificationTime"] == 7
    assert statuses[2]["modificationTime"] not in (7, 0), "as in HDFS: the time of its last byte"
    await gateway.close()


@pytest.mark.rule("S2")
@in_virtual_time
async def test_an_upload_that_breaks_off_leaves_no_attributes() -> None:
    gateway = Hall().gateway()
    await gateway.start()

    async def body() -> AsyncIterator[bytes]:
        yield b"12"
        assert (await ask(gateway, "GET", "/f", "op=GETFILESTATUS")).status == 200
        raise ConnectionResetError

    query = Query("op=CREATE&namenoderpcaddress=x")
    with pytest.raises(ConnectionResetError):
        await perform(gateway, Request("PUT", "/f", query, "h", body()))
    for method, name in (("GET", "GETFILESTATUS"), ("PUT", "SETPERMISSION"), ("PUT", "SETTIMES")):
        assert (await ask(gateway, method, "/f", f"op={name}")).status == 404
    assert len((await gateway.owner()).incoming) == 0
    await gateway.close()


@in_virtual_time
async def test_attributes_of_a_file_that_is_being_replaced_are_those_of_both() -> None:
    gateway = Hall().gateway()
    await gateway.start()
    await put(gateway, "/f", "", b"before")

    async def body() -> AsyncIterator[bytes]:
        yield b"after"
        assert (await ask(gateway, "PUT", "/f", "op=SETPERMISSION&permission=600")).status == 200
        found = await ask(gateway, "GET", "/f", "op=GETFILESTATUS")
        assert b'"length":6' in found.body and b'"permission":"600"' in found.body

    query = Query("op=CREATE&namenoderpcaddress=x&overwrite=true")
    assert (await perform(gateway, Request("PUT", "/f", query, "h", body()))).status == 201
    found = await ask(gateway, "GET", "/f", "op=GETFILESTATUS")
    assert b'"length":5' in found.body and b'"permission":"600"' in found.body
    await gateway.close()


@pytest.mark.rule("S13")
@pytest.mark.parametrize("end", ["whole", "broken off", "removed"])
@pytest.mark.parametrize("name", ["CREATE", "APPEND"])
def test_s13_an_upload_to_a_growing_path_is_there_while_it_comes(name: str, end: str) -> None:
    @in_virtual_time
    async def story() -> None:
        hall = Hall()
        gateway = hall.gateway()
        await gateway.start()
        path, unhurried = "/logs/eventlog_v2_a/events_1_a", list[bool]()
        if name == "APPEND":
            await put(gateway, path, "", b"")

        async def length() -> bytes:
            return (await ask(gateway, "GET", "/logs/eventlog_v2_a", "op=LISTSTATUS")).body

        async def body() -> AsyncIterator[bytes]:
            assert unhurried == [True]
            assert (await ask(gateway, "PUT", path, "op=SETPERMISSION&permission=770")).status == 200
            yield b"12"
            await asyncio.sleep(1.01)
            assert b'"length":2' in await length()
            opened = await ask(gateway, "GET", path, "op=OPEN&namenoderpcaddress=x")
            assert opened.content is not None
            assert b"".join([data async for data in opened.content]) == b"12"
            if end == "removed":
                await ask(gateway, "DELETE", path, "op=DELETE")
            yield b"345"
            if end == "broken off":
                raise ConnectionResetError

        method = "PUT" if name == "CREATE" else "POST"
        query = Query(f"op={name}&namenoderpcaddress=x")
        request = Request(method, path, query, "h", body(), take_any_time=lambda: unhurried.append(True))
        if end == "broken off":
            with pytest.raises(ConnectionResetError):
                await perform(gateway, request)
        else:
            done = {"whole": 201 if name == "CREATE" else 200, "removed": 404}[end]
            assert (await perform(gateway, request)).status == done
        listed = await length()
        assert (b'"length":5' in listed) == (end != "removed")
        assert (b'"permission":"770"' in listed) == (end != "removed")
        owner = await gateway.owner()
        assert (owner.namespace.following, len(owner.growing)) == (0, 0)
        await gateway.close()

    story()


@in_virtual_time
async def test_a_growing_file_has_attributes_also_while_its_making_waits_for_the_lease() -> None:
    """Both requests wait for a late renewal; whichever goes on first, the permission is there."""
    lease = Switch()
    gateway = Hall().gateway(lease)
    await gateway.start()
    owner = await gateway.owner()
    lease.is_held = False
    upload = asyncio.ensure_future(file_system.begin_growing(owner, "/a.inprogress", OPTIONS))
    await asyncio.sleep(0.001)
    record = SetAttributes("/a.inprogress", permission=0o770)
    setting = asyncio.ensure_future(file_system.set_attributes(owner, record))
    await asyncio.sleep(0.1)
    assert not upload.done() and not setting.done()
    lease.is_held = True
    growing = await upload
    await setting
    assert (await file_system.status(owner, "/a.inprogress")).permission == 0o770
    await growing.cut()
    await gateway.close()
