"""Somebody between a client and its bookie, who sees and changes every byte: with TLS he can end connections, no more.

Clear text where TLS must begin, and a bookie with another certificate, are in test_client_handshake.py; the same
against a bookie in tests/bookkeeper/bookie/connections/test_connection_security.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from bookkeeper import wire
from bookkeeper.auth.config import AuthConfig
from bookkeeper.errors import BookieUnavailableError, SecureConnectionError
from bookkeeper.ids import Address, BookieId, EntryId, LedgerId
from bookkeeper.ledger import DigestScheme, DigestType
from bookkeeper.net.client_handshake import ClientSecurity
from bookkeeper.net.connection import BookieConnection
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import system_seams
from bookkeeper.wire import Dialect, Status
from examples.certificates import Authority
from tests.bookkeeper.bookie.listeners import bookie, run

LEDGER = LedgerId(1)
READ = wire.ReadEntry(LEDGER, EntryId(0))
DIGEST = DigestScheme(DigestType.CRC32C, b"")
ENTRY = DIGEST.seal(LEDGER, EntryId(0), -1, 7, b"payload")
REPLY = wire.encode_reply(
    wire.RequestHeader(Dialect.V3, wire.Operation.READ, 1), wire.ReadReply(Status.OK, LEDGER, EntryId(0), b"forged")
)

Change = Callable[[bytes, int], bytes]
"""Gets a chunk and how many bytes came before it in its direction; returns what goes on. If that is the chunk without
its end, the connection is cut there."""


def unchanged(chunk: bytes, before: int) -> bytes:
    return chunk


class Middle:
    """Carries bytes both ways."""

    def __init__(self, bookie: Address) -> None:
        self.bookie = bookie
        self.to_bookie: Change = unchanged
        self.to_client: Change = unchanged
        self.clients: list[asyncio.StreamWriter] = []
        """The sides of connections that face clients, in the order in which they came."""
        self.sent: list[bytearray] = []
        """What each client has sent."""
        self.received = 0
        """Bytes that went to the last client."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.bookie.host, self.bookie.port)
        sent = bytearray()
        self.sent.append(sent)
        self.clients.append(writer)
        index = len(self.clients) - 1
        try:
            await asyncio.gather(
                self._carry(reader, lambda: far_writer, lambda: self.to_bookie, sent),
                self._carry(far_reader, lambda: self.clients[index], lambda: self.to_client, None),
            )
        except ConnectionError:
            pass
        finally:
            for each in (writer, far_writer):
                each.close()

    async def _carry(
        self,
        source: asyncio.StreamReader,
        sink: Callable[[], asyncio.StreamWriter],
        change: Callable[[], Change],
        kept: bytearray | None,
    ) -> None:
        before = 0
        while chunk := await source.read(65536):
            if kept is not None:
                kept += chunk
            passed = change()(chunk, before)
            before += len(chunk)
            sink().write(passed)
            if kept is None:
                self.received = before
            if len(passed) < len(chunk) and chunk.startswith(passed):
                raise ConnectionResetError
        raise ConnectionResetError

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Address]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()


@asynccontextmanager
async def attacked(directory: Path) -> AsyncIterator[tuple[Middle, Callable[[], asyncio.Future[BookieConnection]]]]:
    """A bookie with one entry, a man in the middle, and what makes a connection through him."""
    authority = Authority(directory / "ca")
    made = authority.server()
    security = ClientSecurity(system_seams().net, Random(1), TlsConfig(ca=authority.ca), AuthConfig())
    async with bookie(directory / "b", tls={"cert": made.cert, "key": made.key}, ledger=LEDGER) as server:
        direct = await security.connect(server.address, BookieId("b1"), Dialect.V3, timeout_s=30)
        added = await direct.request(wire.AddEntry(LEDGER, EntryId(0), DIGEST.master_key, ENTRY), 30)
        assert added.status is Status.OK
        direct.close()
        middle = Middle(server.address)
        async with middle.listening() as address:
            yield (
                middle,
                lambda: asyncio.ensure_future(
                    security.connect(address, BookieId("b1"), Dialect.V3, timeout_s=30),
                ),
            )


async def asked(connection: BookieConnection) -> bytes | None:
    """The entry, or None if the connection was lost."""
    try:
        reply = await connection.request(READ, 30)
    except BookieUnavailableError:
        return None
    assert isinstance(reply, wire.ReadReply) and reply.status is Status.OK
    return reply.entry


@pytest.mark.rule("X2", "X4")
def test_bytes_that_are_changed_put_in_or_taken_out_end_the_connection(tmp_path: Path) -> None:
    changes: list[Change] = [
        lambda chunk, before: REPLY + chunk,
        lambda chunk, before: chunk + REPLY,
        lambda chunk, before: bytes([*chunk[:-1], chunk[-1] ^ 1]),
        lambda chunk, before: bytes([chunk[0] ^ 1, *chunk[1:]]),
        lambda chunk, before: chunk[:-1] + chunk[-1:] * 2,
        lambda chunk, before: chunk + chunk,
        lambda chunk, before: chunk[1:],
    ]

    async def main() -> None:
        async with attacked(tmp_path) as (middle, connect):
            for change in changes:
                middle.to_client = unchanged
                connection = await connect()
                assert await asked(connection) == ENTRY
                middle.to_client = change
                first = await asked(connection)
                assert first in (None, ENTRY), "what comes behind a good reply is not one"
                middle.to_client = unchanged
                assert await asked(connection) is None, "and the connection is over"
                assert connection.closed

    run(main)


@pytest.mark.rule("X2")
def test_a_connection_that_is_cut_anywhere_ends_in_an_error_or_the_right_bytes(tmp_path: Path) -> None:
    async def main() -> None:
        async with attacked(tmp_path) as (middle, connect):
            connection = await connect()
            assert await asked(connection) == ENTRY
            whole = middle.received
            connection.close()
            kinds = set()
            for cut in [*range(0, whole - 30, 151), *range(whole - 30, whole)]:

                def cut_there(chunk: bytes, before: int, cut: int = cut) -> bytes:
                    return chunk[: max(0, cut - before)]

                middle.to_client = cut_there
                try:
                    connection = await connect()
                except (SecureConnectionError, BookieUnavailableError):
                    kinds.add("no connection")
                else:
                    reply = await asked(connection)
                    assert reply in (None, ENTRY), "the length of a handshake varies by some bytes"
                    kinds.add("no reply" if reply is None else "reply")
                    connection.close()
            assert {"no connection", "no reply"} <= kinds

    run(main)


@pytest.mark.rule("X2")
def test_replies_to_one_client_are_none_for_another(tmp_path: Path) -> None:
    async def main() -> None:
        async with attacked(tmp_path) as (middle, connect):
            one, other = await connect(), await connect()
            assert await asked(one) == await asked(other) == ENTRY
            middle.clients.reverse()
            assert [*await asyncio.gather(asked(one), asked(other))] == [None, None]
            assert one.closed and other.closed

    run(main)


@pytest.mark.rule("X2")
def test_a_session_that_was_recorded_says_nothing_when_it_is_played_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with attacked(tmp_path) as (middle, connect):
            connection = await connect()
            assert await asked(connection) == ENTRY
            connection.close()
            reader, writer = await asyncio.open_connection(middle.bookie.host, middle.bookie.port)
            writer.write(bytes(middle.sent[0]))
            heard = await reader.read()
            writer.transport.abort()
            assert b"payload" not in heard

    run(main)
