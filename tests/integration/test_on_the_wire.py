"""What somebody on the wire gets to see: with TLS required, START_TLS and noise."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from bookkeeper import BookKeeper, ClientConfig, wire
from bookkeeper.ids import Address
from bookkeeper.net.tls import TlsConfig
from bookkeeper.wire import Dialect
from examples.certificates import Authority
from tests.bookkeeper.bookie.listeners import bookie, run

PAYLOAD = b"planted payload"
PASSWORD = b"planted password"
SECRETS = {
    "payload": PAYLOAD,
    "password": PASSWORD,
    "master key": hashlib.sha1(b"ledger" + PASSWORD).digest(),
    "key of the digest": hashlib.sha1(b"mac" + PASSWORD).digest(),
}


class Tap:
    """A proxy that keeps every byte of every connection, each way apart."""

    def __init__(self) -> None:
        self.target = Address("", 0)
        self.seen: list[bytearray] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(*self.target)
        await asyncio.gather(self._copy(reader, ours), self._copy(theirs, writer))

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        seen = bytearray()
        self.seen.append(seen)
        with suppress(ConnectionError):
            while data := await source.read(65536):
                seen += data
                sink.write(data)
        sink.close()


async def use_it(uri: str, config: ClientConfig) -> None:
    """Everything a client says to bookies: adds, reads one by one and in batches, fences, recovery adds, LACs."""
    async with BookKeeper.connect(uri, config=config) as bk:
        ledger = await bk.create_ledger(
            ensemble=1, write_quorum=1, ack_quorum=1, password=PASSWORD, digest="hmac", custom_metadata={"k": PAYLOAD}
        )
        await ledger.append_many([PAYLOAD * 10] * 100)
        tail = await bk.open_ledger(ledger.id, PASSWORD, recovery=False)
        assert await tail.read_last_add_confirmed() == 99
        reader = await bk.open_ledger(ledger.id, PASSWORD)
        entries = [entry.payload async for entry in reader.read(0, 99)]
        assert entries == [PAYLOAD * 10] * 100
        assert await reader.read_entry(5) == PAYLOAD * 10


async def tapped(directory: Path, protocol: str, *, encrypted: bool) -> list[bytearray]:
    authority = Authority(directory / "ca")
    made = authority.server()
    tls = {"tls": {"cert": made.cert, "key": made.key}} if encrypted else {}
    tap = Tap()
    async with tap.listening() as address, bookie(directory / "b", advertise=str(address), **tls) as server:
        assert server.port.bound is not None
        tap.target = server.port.bound
        trusting = TlsConfig(ca=authority.ca) if encrypted else None
        config = ClientConfig(protocol=protocol, tls=trusting)
        await use_it(f"sqlite://{directory}/b/metadata.db", config)
    return tap.seen


@pytest.mark.rule("X2")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_with_tls_no_secret_crosses_in_clear(tmp_path: Path, protocol: str) -> None:
    seen = run(lambda: tapped(tmp_path, protocol, encrypted=True))
    assert len(seen) >= 4, "several connections, each two ways"
    for one_way in seen:
        assert [name for name, secret in SECRETS.items() if secret in one_way] == []
    hello = wire.encode_request(wire.StartTls(), Dialect.V3, 1)
    from_client = [bytes(one_way) for one_way in seen if one_way.startswith(hello)]
    assert len(from_client) == len(seen) // 2
    assert all(said[len(hello) : len(hello) + 2] == b"\x16\x03" for said in from_client), "and then TLS at once"


@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_without_it_they_do(tmp_path: Path, protocol: str) -> None:
    """The test above can fail."""
    seen = b"".join(run(lambda: tapped(tmp_path, protocol, encrypted=False)))
    assert [name for name, secret in SECRETS.items() if secret in seen] == ["payload", "master key"]
