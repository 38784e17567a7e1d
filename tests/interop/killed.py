"""Writers that are killed in the middle of their work, one in each language, each in a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.real import run
from tests.interop.clients import PASSWORD, Shape
from tests.interop.clusters import Bookies, Kind, Site
from tests.interop.java_client import Java, JavaWriter

ACKNOWLEDGED: Final = 60
"""Entries that are confirmed before the writer is killed, with more of them on their way."""
_ON_THEIR_WAY: Final = 40


def payload(entry_id: int) -> bytes:
    """What the killed writers append."""
    return b"entry %d " % entry_id + b"x" * (entry_id % 17)


def killed_writer(site: Site, kind: Kind, bookies: Bookies, protocol: str) -> int:
    """Have a writer of this language append until it is killed; the id of the ledger that it leaves open."""
    if kind == "ours":
        return _kill_ours(site.clusters[bookies].uri, protocol)
    return _kill_javas(site, bookies, protocol)


def _kill_javas(site: Site, bookies: Bookies, protocol: str) -> int:
    java = Java(site.directory / "killed-java-writer")
    try:
        writer = site.new_client("java", bookies, protocol, java=java).create(Shape())
        assert isinstance(writer, JavaWriter)
        writer.append_many([payload(i) for i in range(ACKNOWLEDGED)])
        writer.append_unawaited([payload(ACKNOWLEDGED + i) for i in range(_ON_THEIR_WAY)])
        return writer.id
    finally:
        java.kill()


def _kill_ours(uri: str, protocol: str) -> int:
    command = [sys.executable, "-m", "tests.interop.killed", uri, protocol]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=root) as program:
        try:
            assert program.stdout is not None
            return int(program.stdout.readline())
        finally:
            program.kill()


async def _write(uri: str, protocol: str) -> None:
    """The program that is killed: tells the ledger's id once so much is acknowledged, and goes on."""
    async with BookKeeper.connect(uri, config=ClientConfig(protocol=protocol)) as client:
        ledger = await client.create_ledger(password=PASSWORD)
        await ledger.append_many([payload(i) for i in range(ACKNOWLEDGED)])
        sys.stdout.write(f"{ledger.id}\n")
        sys.stdout.flush()
        entry_id = ACKNOWLEDGED
        while True:
            await asyncio.gather(*(ledger.append(payload(entry_id + i)) for i in range(_ON_THEIR_WAY)))
            entry_id += _ON_THEIR_WAY


if __name__ == "__main__":
    run(_write(*sys.argv[1:]))
