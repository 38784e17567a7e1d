"""Bookies that really listen, on a loop of the test's own: what tests of encryption share."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import ClusterExistsError, LedgerExistsError
from bookkeeper.ids import Address, BookieId, LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta import Metadata, init_cluster
from bookkeeper.real import system_seams

T = TypeVar("T")

_QUORUM = QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)
_ALONE = LedgerMetadata.create(_QUORUM, [BookieId("b1")], password=b"")
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def run(main: Callable[[], Awaitable[T]], loop: str = "uvloop") -> T:
    """Run on a real loop of either kind."""

    async def limited() -> T:
        async with asyncio.timeout(60):
            return await main()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(limited())


@asynccontextmanager
async def bookie(directory: Path, **options: Any) -> AsyncIterator[BookieServer]:
    """A bookie of a cluster of its own; with ``ledger=`` there is that ledger, without a password."""
    ledger: LedgerId | None = options.pop("ledger", None)
    os.makedirs(directory, exist_ok=True)
    uri = f"sqlite://{directory}/metadata.db"
    seams = system_seams()
    with contextlib.suppress(ClusterExistsError):  # the same bookie again
        await init_cluster(uri, seams)
    metadata = await Metadata.connect(uri, seams)
    if ledger is not None:
        with contextlib.suppress(LedgerExistsError):
            await metadata.ledgers.create(_ALONE, ledger)
    storage = {"journal_file_bytes": 1 << 20, "journal_spares": 0, "entry_log_bytes": 1 << 22, "reserve_bytes": 0}
    given = {"metadata_uri": uri, "directory": str(directory / "b"), "bookie_id": "b1", "http_listen": ""}
    server = BookieServer(config_from({**given, "storage": storage, **options}), seams, metadata)
    try:
        await server.start()
        try:
            yield server
        finally:
            await server.stop()
    finally:
        await metadata.close()


class Raw:
    """A peer that says exactly what it is told to, in clear."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    @asynccontextmanager
    async def connect(cls, address: Address, source: str = "127.0.0.1") -> AsyncIterator[Raw]:
        reader, writer = await asyncio.open_connection(address.host, address.port, local_addr=(source, 0))
        try:
            yield cls(reader, writer)
        finally:
            writer.transport.abort()

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def frame(self) -> bytes | None:
        """The next frame, with its length; None if the connection ended instead."""
        try:
            length = await self.reader.readexactly(4)
            return length + await self.reader.readexactly(struct.unpack(">I", length)[0])
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def rest(self) -> bytes:
        """Everything up to the end of the connection."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""


def exchange(file: str, name: str) -> list[tuple[str, bytes | str]]:
    """A captured exchange of official programs: (request | response, the frame or what happened)."""
    vectors = Path(__file__).resolve().parents[2] / "vectors" / file
    for found in json.loads(vectors.read_text())["exchanges"]:
        if found["name"] == name:
            return [
                (frame["dir"], bytes.fromhex(frame["hex"]) if "hex" in frame else frame["event"])
                for frame in found["frames"]
            ]
    raise KeyError(name)
