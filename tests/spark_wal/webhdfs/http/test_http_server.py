from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import pytest

from bookkeeper.access import Principal, QuotaKind, QuotaRefusal
from bookkeeper.errors import DataMissingError
from bookkeeper.gateways.permissions import CallerRights
from bookkeeper.ids import Address
from bookkeeper.real import SystemClock
from spark_wal.webhdfs.config import GatewayConfig, OwnerConfig, UploadLimits
from spark_wal.webhdfs.contents.blob_store import _MemoryWriter
from spark_wal.webhdfs.http.http_server import KEEP_ALIVE_S, HttpServer
from tests.spark_wal.webhdfs.wire import Place, Wire, connected, served

JAVA = (("User-Agent", "Java/17.0.15"),)
CREATE = "op=CREATE&overwrite=true&namenoderpcaddress=x"
TEMP = ".0.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.tmp"


def v1(path: str, query: str) -> str:
    return f"/webhdfs/v1{path}?{query}"


async def test_no_reply_to_java_has_a_content_type() -> None:
    async with served() as server, connected(server.address) as wire:
        for method, target, body in (
            ("PUT", v1("/d", "op=MKDIRS"), None),
            ("PUT", v1("/d/f", "op=CREATE"), None),
            ("PUT", v1("/d/f", CREATE), b"hello"),
            ("PUT", v1("/d/big", CREATE), bytes(900_000)),
            ("PUT", v1("/d/f", "op=CREATE&namenoderpcaddress=x"), b"exists"),
            ("GET", v1("/d/f", "op=OPEN"), None),
            ("GET", v1("/d/f", "op=OPEN&namenoderpcaddress=x"), None),
            ("GET", v1("/d/big", "op=OPEN&namenoderpcaddress=x"), None),
            ("GET", v1("/d", "op=LISTSTATUS"), None),
            ("GET", v1("/none", "op=GETFILESTATUS"), None),
            ("GET", v1("/%zz", "op=GETFILESTATUS"), None),
            ("GET", "/elsewhere", None),
            ("PUT", v1("/d/f", "op=RENAME&destination=/d/g&renameoptions=NONE"), None),
            ("DELETE", v1("/d", "op=DELETE&recursive=true"), None),
        ):
            answer = await wire.request(method, target, headers=JAVA, body=body)
            assert answer.header("Content-Type") is None, target
            assert not answer.closed


async def test_everybody_else_is_told_that_it_is_json() -> None:
    async with served() as server, connected(server.address) as wire:
        answer = await wire.request("GET", v1("/", "op=GETFILESTATUS"))
        assert (answer.header("Content-Type") or "").startswith("application/json")


@pytest.mark.parametrize(
    ("method", "op"), [("PUT", "CREATE"), ("GET", "OPEN"), ("POST", "APPEND"), ("GET", "GETFILECHECKSUM")]
)
async def test_two_steps_lead_back_here_on_the_same_connection(method: str, op: str) -> None:
    async with served() as server, connected(server.address) as wire:
        await wire.request("PUT", v1("/f", CREATE), body=b"0123")
        first = await wire.request(method, v1("/f", f"op={op}&overwrite=true&user.name=a"))
        assert first.status == 307
        assert first.header("Content-Length") == "0"
        assert not first.closed
        location = first.header("Location") or ""
        assert location.startswith("http://gateway:1/webhdfs/v1/f?"), "the host that the client named"
        second = await wire.request(method, location.removeprefix("http://gateway:1"), body=None)
        assert second.status in (200, 201)


def test_connections_stay_longer_than_java_keeps_them() -> None:
    assert KEEP_ALIVE_S >= 60


@pytest.mark.rule("S2")
async def test_s2_an_upload_that_breaks_off_leaves_nothing() -> None:
    place = Place.empty()
    async with served(place) as server, connected(server.address) as looking:
        for name in ("direct", TEMP):
            wire = await Wire.connect(server.address)
            wire.send_head("PUT", v1(f"/{name}", CREATE), JAVA, None, chunked=True)
            for _ in range(50):
                wire.send_chunk(bytes(32 * 1024))  # large enough to be streamed out
            await wire.drain()
            listing = await looking.request("GET", v1("/", "op=LISTSTATUS"))
            assert listing.json()["FileStatuses"]["FileStatus"] == []
            await wire.close()
        await until(lambda: not place.blobs.blobs)
        listing = await looking.request("GET", v1("/", "op=LISTSTATUS"))
        assert listing.json()["FileStatuses"]["FileStatus"] == []
        health = (await looking.request("GET", "/health")).json()
        assert health["upload_bytes_in_memory"] == 0


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  the store has no event to wait for
            await asyncio.sleep(0.005)


@pytest.mark.rule("S4")
async def test_s4_an_atomic_file_is_two_records_in_the_journal_and_each_is_answered_when_it_is_durable() -> None:
    place = Place.empty()
    temp = f"/c/offsets/{TEMP}"
    target = v1(temp, "op=RENAME&destination=/c/offsets/0&renameoptions=NONE")
    async with served(place) as server, connected(server.address) as wire:
        await wire.request("PUT", v1("/c/offsets", "op=MKDIRS"))
        before = (await wire.request("GET", "/health")).json()["txid"]
        await wire.request("PUT", v1(temp, CREATE), headers=JAVA, chunks=[b"v1\n{", b"}"])
        health = (await wire.request("GET", "/health")).json()
        assert (health["txid"], health["temporary_files"]) == (before + 1, 1)
    async with served(place) as server, connected(server.address) as wire:  # ended, and replayed
        status = await wire.request("GET", v1(temp, "op=GETFILELINKSTATUS"))
        assert status.json()["FileStatus"]["length"] == 5
        assert (await wire.request("PUT", target)).status == 200
        assert (await wire.request("PUT", target)).status == 200, "asked again after a lost reply"
        health = (await wire.request("GET", "/health")).json()
        assert (health["txid"], health["temporary_files"]) == (before + 2, 0)
    async with served(place) as server, connected(server.address) as wire:
        assert (await wire.request("PUT", target)).status == 200, "asked again at the next gateway"
        opened = await wire.request("GET", v1("/c/offsets/0", "op=OPEN&namenoderpcaddress=x"))
        assert opened.body == b"v1\n{}"


@pytest.mark.rule("S4")
async def test_s4_every_other_file_is_durable_at_201() -> None:
    place = Place.empty()
    async with served(place) as server, connected(server.address) as wire:
        assert (await wire.request("PUT", v1("/c/1.zip", CREATE), body=b"sst" * 100_000)).status == 201
        assert (await wire.request("PUT", v1("/c/small", CREATE), body=b"s")).status == 201
    async with served(place) as server, connected(server.address) as wire:
        opened = await wire.request("GET", v1("/c/1.zip", "op=OPEN&namenoderpcaddress=x&offset=299999"))
        assert opened.body == b"t"


@pytest.mark.rule("S1")
async def test_s1_of_many_renames_onto_one_name_one_wins() -> None:
    async with served() as server:
        async with connected(server.address) as wire:
            await wire.request("PUT", v1("/c", "op=MKDIRS"))

        async def attempt(number: int) -> int:
            temp = f"/c/.7.{number:08x}-0000-0000-0000-000000000000.tmp"
            async with connected(server.address) as wire:
                await wire.request("PUT", v1(temp, CREATE), body=str(number).encode())
                target = v1(temp, "op=RENAME&destination=/c/7&renameoptions=NONE")
                return (await wire.request("PUT", target)).status

        statuses = await asyncio.gather(*(attempt(n) for n in range(20)))
        assert sorted(statuses) == [200, *[403] * 19]


async def test_hundreds_of_uploads_may_stay_open_and_none_waits_for_another() -> None:
    limits = UploadLimits(inline_size=1024, spill_size=64 * 1024, budget=256 * 1024)
    config = GatewayConfig(owner=OwnerConfig(limits=limits))
    place = Place.empty()
    async with served(place, config) as server:
        wires = [await Wire.connect(server.address) for _ in range(200)]
        for number, wire in enumerate(wires):
            wire.send_head("PUT", v1(f"/u/{number}", CREATE), JAVA, None, chunked=True)
            wire.send_chunk(bytes([number]) * 20_000)  # 4 MB together: sixteen times the budget
        for wire in wires:
            await wire.drain()
        async with connected(server.address) as looking:
            health = (await looking.request("GET", "/health")).json()
            assert health["upload_bytes_in_memory"] <= limits.budget + 20_000
        for wire in reversed(wires):  # the one that began last ends first
            wire.send_chunk(b"end")
            wire.send_chunk(b"")
            assert (await wire.answer()).status == 201
            await wire.close()
        async with connected(server.address) as wire:
            for number in (0, 99, 199):
                opened = await wire.request("GET", v1(f"/u/{number}", "op=OPEN&namenoderpcaddress=x"))
                assert opened.body == bytes([number]) * 20_000 + b"end"


async def test_100_continue_comes_where_a_body_is_wanted() -> None:
    async with served() as server, connected(server.address) as wire:
        expect = (("Expect", "100-continue"), ("Content-Length", "3"))
        wire.send_head("PUT", v1("/f", CREATE), expect, None, chunked=False)
        assert await wire.readline() == b"HTTP/1.1 100 Continue\r\n"
        await wire.readline()
        wire._writer.write(b"abc")
        assert (await wire.answer()).status == 201


async def test_the_feed_tells_each_durable_change_in_order() -> None:
    async with served() as server, connected(server.address) as feed, connected(server.address) as wire:
        feed.send_head("GET", "/events?prefix=/c/", (), None, chunked=False)
        head = (await feed._reader.readuntil(b"\r\n\r\n")).decode()
        assert "application/x-ndjson" in head

        async def event() -> dict[str, object]:
            size = int(await feed.readline(), 16)
            data = await feed._reader.readexactly(size + 2)
            fields: dict[str, object] = json.loads(data)
            return fields

        assert await event() == {"op": "subscribed"}
        await wire.request("PUT", v1("/elsewhere", "op=MKDIRS"))
        await wire.request("PUT", v1(f"/c/offsets/{TEMP}", CREATE), body=b"plan")
        await wire.request("PUT", v1(f"/c/offsets/{TEMP}", "op=RENAME&destination=/c/offsets/0"))
        await wire.request("DELETE", v1("/c/offsets/0", "op=DELETE"))
        created = await event()
        assert (created["op"], created["path"], created["length"]) == ("create", f"/c/offsets/{TEMP}", 4)
        renamed = await event()
        assert (renamed["op"], renamed["path"], renamed["length"]) == ("rename", "/c/offsets/0", 4)
        assert renamed["source"] == f"/c/offsets/{TEMP}"
        assert (await event())["op"] == "delete"


async def test_metrics_count_by_operation() -> None:
    async with served() as server, connected(server.address) as wire:
        await wire.request("PUT", v1("/d", "op=MKDIRS"))
        await wire.request("GET", v1("/none", "op=GETFILESTATUS"))
        await wire.request("GET", v1("/none", "op=INVENTED"))
        answer = await wire.request("GET", "/metrics")
        assert dict(answer.headers)["Content-Type"].startswith("text/plain; version=")
        text = answer.body.decode()
        assert "# TYPE gateway_requests_total counter" in text
        assert 'gateway_request_duration_seconds_count{op="MKDIRS"} 1.0' in text
        assert 'gateway_requests_total{op="MKDIRS"} 1.0' in text
        assert 'gateway_requests_refused_total{op="GETFILESTATUS"} 1.0' in text
        assert "INVENTED" not in text


@pytest.mark.rule("S9")
async def test_s9_bytes_that_are_gone_are_an_error_and_not_a_missing_file() -> None:
    place = Place.empty()
    async with served(place) as server, connected(server.address) as wire:
        await wire.request("PUT", v1("/metadata", CREATE), body=bytes(200_000))
        place.blobs.blobs.clear()
        answer = await wire.request("GET", v1("/metadata", "op=OPEN&namenoderpcaddress=x"))
        assert (answer.status, answer.exception) == (403, "IOException")


@pytest.mark.rule("S9")
async def test_s9_a_download_that_fails_half_way_is_no_short_file() -> None:
    place = Place.empty()
    async with served(place) as server, connected(server.address) as wire:
        await wire.request("PUT", v1("/f", CREATE), body=bytes(1_000_000))
        read = place.blobs.read

        async def fails(blob: str, offset: int, length: int) -> AsyncIterator[bytes]:
            async for data in read(blob, offset, length):
                yield data
                raise DataMissingError("the second entry is on none of its bookies")

        place.blobs.read = fails  # type: ignore[method-assign]
        with pytest.raises(asyncio.IncompleteReadError):
            await wire.request("GET", v1("/f", "op=OPEN&namenoderpcaddress=x"))


# -- what no client of ours sends ----------------------------------------------------------------------


@pytest.mark.rule("X30")
async def test_an_upload_is_stored_as_it_comes_and_never_unpacked() -> None:
    bomb = gzip.compress(bytes(10_000_000))
    async with served() as server, connected(server.address) as wire:
        packed = (("Content-Encoding", "gzip"),)
        assert (await wire.request("PUT", v1("/f", CREATE), headers=packed, body=bomb)).status == 201
        assert (await wire.request("GET", v1("/f", "op=OPEN&namenoderpcaddress=x"))).body == bomb


@pytest.mark.parametrize(
    "host",
    ["evil.example/webhdfs", "a@evil.example", "evil.example?", "evil.example#", "a b", "evil.example:99999999", "%41"],
)
async def test_a_host_that_is_none_leads_nowhere(host: str) -> None:
    """It would become the beginning of a redirect, which carries the token."""
    async with served() as server, connected(server.address) as wire:
        wire._writer.write(f"PUT {v1('/f', 'op=CREATE')} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        answer = await wire.answer()
    assert answer.status == 400
    assert answer.header("Location") is None
    assert answer.closed


async def test_a_page_of_somebody_else_changes_nothing() -> None:
    """POST is what a browser sends for any page without asking first, with the reader's certificate."""
    async with served() as server:
        async with connected(server.address) as wire:
            await wire.request("PUT", v1("/f", CREATE), body=b"mine")
        for origin, status in (("http://evil.example", 403), ("null", 403), ("http://gateway:1", 200)):
            async with connected(server.address) as wire:
                target = v1("/f", "op=APPEND&namenoderpcaddress=x")
                answer = await wire.request("POST", target, headers=(("Origin", origin),), body=b"+")
                assert answer.status == status
        async with connected(server.address) as wire:
            assert (await wire.request("GET", v1("/f", "op=OPEN&namenoderpcaddress=x"))).body == b"mine+"


@pytest.mark.rule("X49")
async def test_no_browser_takes_a_reply_for_a_page() -> None:
    """Cause: a file whose writer gave it markup came without the header that keeps a browser from guessing its type."""
    page = b"<script>alert(1)</script>"
    async with served() as server, connected(server.address) as wire:
        for path, data in (("/x.html", page), ("/large.html", page * 40_000)):
            await wire.request("PUT", v1(path, CREATE), body=data)
        for target in (
            *(v1(path, "op=OPEN&namenoderpcaddress=x") for path in ("/x.html", "/large.html", "/<b>none")),
            *(v1("/", f"op={op}") for op in ("LISTSTATUS", "NONE", "GETFILESTATUS")),
            *(v1("/%zz", "op=LISTSTATUS"), "/<script>", "/health", "/metrics"),
        ):
            answer = await wire.request("GET", target)
            assert answer.header("X-Content-Type-Options") == "nosniff", target
            assert b"<script>" not in answer.body or answer.header("Content-Type") == "application/octet-stream"
        wire._writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"nosniff" in await wire._reader.readuntil(b"\r\n\r\n")


async def test_where_nobody_is_asked_a_name_that_is_not_ours_is_refused() -> None:
    """A page's server can give its own name this machine's address: the browser then believes it is the same server."""
    gateway = Place.empty().gateway()
    await gateway.start()
    server = HttpServer(gateway, SystemClock(), hosts={"localhost", "Gateway.example"})
    address = await server.start(Address("127.0.0.1", 0))
    for host, status in (
        ("evil.example", 421),
        ("evil.example:9870", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost", 200),
        ("LOCALHOST:9870", 200),
        ("localhost.:1", 200),
        ("gateway.example:1", 200),
        ("127.0.0.1:9870", 200),
        ("[::1]:9870", 200),
    ):
        async with connected(address) as wire:
            wire._writer.write(f"GET {v1('/', 'op=LISTSTATUS')} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert (await wire.answer()).status == status, host
    await server.close()
    await gateway.close()


@pytest.mark.rule("X30")
@pytest.mark.parametrize("chunked", [True, False])
async def test_what_a_quota_does_not_take_is_not_stored_first(chunked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = UploadLimits(file_bytes_max=40 << 20)
    config = GatewayConfig(owner=OwnerConfig(limits=limits), quotas={"/q": 5 << 20})
    place = Place.empty()
    stored: list[int] = []
    write = _MemoryWriter.write

    async def counted(self: _MemoryWriter, data: bytes) -> None:
        stored.append(len(data))
        await write(self, data)

    monkeypatch.setattr(_MemoryWriter, "write", counted)
    large = bytes(1 << 20)
    async with served(place, config) as server:
        for path, pieces, says in (("/q/f", 16, b"quota"), ("/f", 41, b"at most")):
            async with connected(server.address) as wire:
                length = () if chunked else (("Content-Length", str(pieces * len(large))),)
                wire.send_head("PUT", v1(path, CREATE), length, None, chunked=chunked)
                for _ in range(pieces):
                    wire.send_chunk(large) if chunked else wire._writer.write(large)
                    await wire.drain()
                if chunked:
                    wire.send_chunk(b"")
                answer = await wire.answer()
                assert (answer.status, says in answer.body) == (403, True), answer.body
            assert sum(stored) <= (10 << 20 if path == "/q/f" else 50 << 20)
        async with connected(server.address) as wire:
            health = (await wire.request("GET", "/health")).json()
            assert health["upload_bytes_in_memory"] == 0
    assert not place.blobs.blobs, "S2"


@pytest.mark.rule("X38")
async def test_a_name_in_the_log_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    place = Place.empty()
    path = "/a%0A2026-01-01%20INFO%20all%20is%20well"
    async with served(place) as server, connected(server.address) as wire:
        await wire.request("PUT", v1(path, CREATE), body=bytes(1_000_000))

        async def fails(blob: str, offset: int, length: int) -> AsyncIterator[bytes]:
            if blob:
                raise DataMissingError("gone")
            yield b""

        place.blobs.read = fails  # type: ignore[method-assign]
        await wire.request("GET", v1(path, "op=OPEN&namenoderpcaddress=x"))
    assert "all is well" in caplog.text
    assert not [line for line in caplog.text.splitlines() if line.startswith("2026")]


@pytest.mark.rule("X32")
async def test_what_is_beyond_its_callers_rates_says_when_to_come_back_and_the_connection_stays() -> None:
    def take(who: Principal, entries: int, size: int) -> QuotaRefusal | None:
        return QuotaRefusal("principal etl", QuotaKind.ADDS_PER_S, 1, 41.5) if entries else None

    async with served(permissions=CallerRights(take=take)) as server, connected(server.address) as wire:
        for target, body in ((v1("/d", "op=MKDIRS"), None), (v1("/d/f", CREATE), b"bytes that are not kept")):
            answer = await wire.request("PUT", target, body=body)
            assert (answer.status, answer.header("Retry-After"), answer.exception) == (429, "42", "RetriableException")
            assert not answer.closed
        answer = await wire.request("GET", v1("/d", "op=GETFILESTATUS"))
        assert (answer.status, answer.header("Retry-After")) == (404, None)
