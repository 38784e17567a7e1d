"""A gateway in memory behind its real HTTP shell, and a client that sends exactly the bytes it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bookkeeper.gateways.permissions import CallerRights
from bookkeeper.ids import Address
from bookkeeper.leases.lease import Lease, SoleOwner
from bookkeeper.real import SystemClock
from journal_manager import EditLog, open_snapshots
from journal_manager.backends.memory import MemoryHub
from spark_wal.webhdfs.config import GatewayConfig
from spark_wal.webhdfs.contents.blob_store import MemoryBlobs
from spark_wal.webhdfs.http.http_server import HttpServer
from spark_wal.webhdfs.ownership.gateway import ClaimedNamespace, Gateway


@dataclass(slots=True)
class Place:
    """What outlives a gateway in these tests: journal and blobs."""

    hub: MemoryHub
    blobs: MemoryBlobs

    @classmethod
    def empty(cls) -> Place:
        return cls(MemoryHub(), MemoryBlobs())

    async def open(self) -> ClaimedNamespace:
        log = await EditLog.open("mem:test", owner="test", hub=self.hub)
        return ClaimedNamespace(log, await open_snapshots("mem:test", hub=self.hub), self.blobs)

    def gateway(self, lease: Lease | None = None, config: GatewayConfig | None = None) -> Gateway:
        return Gateway(self.open, lease or SoleOwner(), SystemClock(), config)


@asynccontextmanager
async def served(
    place: Place | None = None, config: GatewayConfig | None = None, permissions: CallerRights | None = None
) -> AsyncIterator[HttpServer]:
    """A gateway that answers on ``server.address``."""
    gateway = (place or Place.empty()).gateway(config=config)
    await gateway.start()
    server = HttpServer(gateway, SystemClock(), permissions=permissions)
    await server.start(Address("127.0.0.1", 0))
    try:
        yield server
    finally:
        gateway.events.close()
        await server.close()
        await gateway.close()


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as it was on the wire."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    closed: bool

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def exception(self) -> str:
        name: str = self.json()["RemoteException"]["exception"]
        return name


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, address: Address | None) -> Wire:
        assert address is not None
        return cls(*await asyncio.open_connection(address.host, address.port))

    async def request(
        self,
        method: str,
        target: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        chunks: Sequence[bytes] | None = None,
    ) -> Answer:
        self.send_head(method, target, headers, body, chunks is not None)
        if chunks is not None:
            for chunk in chunks:
                self.send_chunk(chunk)
            self.send_chunk(b"")
        return await self.answer(method)

    def send_head(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes | None, chunked: bool
    ) -> None:
        named = {name.lower() for name, _ in headers}
        lines = [f"{method} {target} HTTP/1.1", "Host: gateway:1"]
        lines += [f"{name}: {value}" for name, value in headers]
        if chunked:
            lines.append("Transfer-Encoding: chunked")
        elif "content-length" not in named and (body is not None or method in ("PUT", "POST")):
            lines.append(f"Content-Length: {len(body or b'')}")
        self._writer.write("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + (body or b""))

    def send_chunk(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n" % len(data) + data + b"\r\n")

    async def drain(self) -> None:
        await self._writer.drain()

    async def answer(self, method: str = "GET") -> Answer:
        while True:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(head[0].split(" ")[1])
            if status != 100:
                break
        pairs = [line.split(":", 1) for line in head[1:] if line]
        headers = [(name, value.strip()) for name, value in pairs]
        names = {name.lower(): value for name, value in headers}
        body = b"" if method == "HEAD" else await self._body(names)
        return Answer(status, headers, body, names.get("connection", "").lower() == "close")

    async def _body(self, names: dict[str, str]) -> bytes:
        if names.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(await self._reader.readline(), 16):
                parts.append(await self._reader.readexactly(size))
                await self._reader.readline()
            await self._reader.readline()
            return b"".join(parts)
        return await self._reader.readexactly(int(names.get("content-length", "0")))

    async def readline(self) -> bytes:
        return await self._reader.readline()

    async def close(self) -> None:
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return


@asynccontextmanager
async def connected(address: Address | None) -> AsyncIterator[Wire]:
    wire = await Wire.connect(address)
    try:
        yield wire
    finally:
        await wire.close()
