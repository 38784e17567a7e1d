from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from bookkeeper.gateways.caller import Caller
from spark_wal.webhdfs.http.operations import (
    OPERATIONS,
    UNSUPPORTED,
    operation_name,
    perform,
)
from spark_wal.webhdfs.http.parameters import Query
from spark_wal.webhdfs.http.request import Reply, Request
from spark_wal.webhdfs.ownership.gateway import Gateway
from tests.spark_wal.webhdfs.ownership.test_gateway import Hall
from tests.spark_wal.webhdfs.virtual import Switch, in_virtual_time


async def no_body() -> AsyncIterator[bytes]:
    for data in list[bytes]():
        yield data


async def ask(gateway: Gateway, method: str, path: str, query: str) -> Reply:
    return await perform(gateway, Request(method, path, Query(query), "host:1", no_body()))


def test_nothing_is_both_done_and_not() -> None:
    assert not UNSUPPORTED & OPERATIONS.keys()


def test_metrics_have_a_fixed_set_of_names() -> None:
    def name(method: str, query: str) -> str:
        return operation_name(Request(method, "/", Query(query), "h", no_body()))

    assert name("GET", "op=open") == "OPEN"
    assert name("GET", "op=CREATE") == name("GET", "op=X1") == name("GET", "") == "OTHER"


@pytest.mark.parametrize(
    ("method", "query", "status", "says"),
    [
        ("GET", "", 400, b"op=NULL is not supported"),
        ("GET", "op=MKDIRS", 400, b"MKDIRS is not a valid GET operation."),
        ("POST", "op=TRUNCATE", 400, b"TRUNCATE is not supported"),
        ("PATCH", "op=OPEN", 500, b"WebApplicationException"),
        ("GET", "op=GETFILESTATUS", 404, b"File does not exist: /none"),
    ],
)
def test_refusals(method: str, query: str, status: int, says: bytes) -> None:
    @in_virtual_time
    async def story() -> None:
        gateway = Hall().gateway()
        await gateway.start()
        reply = await ask(gateway, method, "/none", query)
        assert reply.status == status
        assert says in reply.body
        await gateway.close()

    story()


GOOD: dict[str, str] = {
    "CREATE": "&overwrite=true",
    "DELETENUMBERED": "&limits=offsets:1&listing=00",
    "RENAME": "&destination=/b",
    "SETOWNER": "&owner=somebody",
    "CHECKACCESS": "&fsaction=r--",
}
"""What an operation needs besides its name to be a good request."""

STATELESS = {("GET", "GETHOMEDIRECTORY"), ("GET", "GETTRASHROOT")}
"""They say what follows from the user's name."""


@pytest.mark.rule("S3")
@pytest.mark.parametrize("step", ["", "&namenoderpcaddress=host:1"])
@pytest.mark.parametrize(("method", "name"), sorted(OPERATIONS.keys() - STATELESS))
def test_one_that_stands_by_says_so_whatever_it_is_asked_and_in_each_step(method: str, name: str, step: str) -> None:
    """CREATE's first step was answered by a redirect before the gateway asked itself whether it is the owner: Hadoop's
    client that knows a pair took that for the owner's answer, sent the bytes there, and no file was ever made."""

    @in_virtual_time
    async def story() -> None:
        lease = Switch()
        gateway = Hall().gateway(lease)
        await gateway.start()
        await ask(gateway, "PUT", "/a", "op=MKDIRS")
        lease.is_held = False
        asyncio.get_running_loop().call_later(0.3, lease.seen_with, "other:1")
        reply = await ask(gateway, method, "/a", f"op={name}{GOOD.get(name, '')}{step}")
        assert (reply.status, reply.location) == (403, None)
        assert b"org.apache.hadoop.ipc.StandbyException" in reply.body
        await gateway.close()

    story()


@in_virtual_time
async def test_a_long_listing_comes_in_pages() -> None:
    gateway = Hall().gateway()
    await gateway.start()
    for number in range(1100):
        await ask(gateway, "PUT", f"/d/{number:05}", "op=MKDIRS")
    first = await ask(gateway, "GET", "/d", "op=LISTSTATUS_BATCH")
    assert first.body.endswith(b'"remainingEntries":100}}')
    second = await ask(gateway, "GET", "/d", "op=LISTSTATUS_BATCH&startafter=00999")
    assert second.body.endswith(b'"remainingEntries":0}}')
    assert second.body.count(b"pathSuffix") == 100
    await gateway.close()


@pytest.mark.rule("X30")
def test_a_path_that_is_made_has_hdfs_limits() -> None:
    """One MKDIRS of 32 000 names would make a snapshot of a gigabyte: it has the whole path of each directory."""

    @in_virtual_time
    async def story() -> None:
        gateway = Hall().gateway()
        await gateway.start()
        for deep in ("/a" * 1001, "/" + "/".join(["x" * 200] * 50)):
            for method, path, query in (
                ("PUT", deep, "op=MKDIRS"),
                ("PUT", deep, "op=CREATE&overwrite=true"),
                ("PUT", deep, "op=CREATE&namenoderpcaddress=x"),
                ("PUT", "/a", f"op=RENAME&destination={deep}"),
            ):
                reply = await ask(gateway, method, path, query)
                assert reply.status == 403
                assert b"Pathname too long" in reply.body
        assert (await ask(gateway, "GET", "/a" * 1001, "op=GETFILESTATUS")).status == 404
        assert (await ask(gateway, "PUT", "/a" * 1000, "op=MKDIRS")).status == 200
        await gateway.close()

    story()


@pytest.mark.rule("X57")
def test_how_much_others_have_is_not_told() -> None:
    @in_virtual_time
    async def story() -> None:
        gateway = Hall().gateway()
        await gateway.start()

        async def used(roots: tuple[str, ...]) -> object:
            asked = Request("GET", "/mine", Query("op=GETSTATUS"), "h", no_body(), principal=Caller("me", roots))
            return json.loads((await perform(gateway, asked)).body)["FsStatus"]["used"]

        for path, data in (("/mine/f", b"12"), ("/theirs/f", b"34567")):

            async def body(data: bytes = data) -> AsyncIterator[bytes]:
                yield data

            query = Query("op=CREATE&namenoderpcaddress=x")
            assert (await perform(gateway, Request("PUT", path, query, "h", body()))).status == 201
        assert await used(("/mine",)) == 2
        assert await used(("/",)) == 7
        await gateway.close()

    story()


async def put(gateway: Gateway, path: str, query: str, data: bytes) -> Reply:
    async def body() -> AsyncIterator[bytes]:
        yield data

    asked = Query(f"op=CREATE&namenoderpcaddress=x{query}")
    return await perform(gateway, Request("PUT", path, asked, "h", body()))


@in_virtual_time
async def test_where_the_blocks_of_a_file_lie() -> None:
    """It was not supported, and Spark read no file: its reader asks this first."""
    gateway = Hall().gateway()
    await gateway.start()
    await put(gateway, "/f", f"&blocksize={1 << 20}", bytes((1 << 20) + 1))
    await put(gateway, "/empty", "", b"")
    await ask(gateway, "PUT", "/d", "op=MKDIRS")

    async def locations(path: str, query: str = "") -> list[tuple[int, int, list[str]]]:
        reply = await ask(gateway, "GET", path, f"op=GETFILEBLOCKLOCATIONS{query}")
        found = json.loads(reply.body)["BlockLocations"]["BlockLocation"]
        return [(each["offset"], each["length"], each["hosts"]) for each in found]

    first, second = (0, 1 << 20, ["localhost"]), (1 << 20, 1, ["localhost"])
    assert await locations("/f") == [first, second]
    assert await locations("/f", "&offset=0&length=5") == [first]
    assert await locations("/f", f"&offset={1 << 20}") == [second]
    assert await locations("/empty") == []
    located = json.loads((await ask(gateway, "GET", "/f", "op=GET_BLOCK_LOCATIONS&length=1")).body)["LocatedBlocks"]
    assert [block["startOffset"] for block in located["locatedBlocks"]] == [0]
    assert located["lastLocatedBlock"]["startOffset"] == 1 << 20
    assert located["fileLength"] == (1 << 20) + 1
    for name in ("GETFILEBLOCKLOCATIONS", "GET_BLOCK_LOCATIONS"):
        for path, says in (("/none", b"File does not exist: /none"), ("/d", b"Path is not a file: /d")):
            refused = await ask(gateway, "GET", path, f"op={name}")
            assert refused.status == 404
            assert says in refused.body
        assert (await ask(gateway, "GET", "/f", f"op={name}&offset=-1")).status == 400
    await gateway.close()
