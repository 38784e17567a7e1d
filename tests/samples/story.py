"""What the samples hold: the same story is written once and read for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import requests

from bookkeeper import BookKeeper, embedded
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.ids import Address, LedgerId
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.real import system_seams
from spark_wal.webhdfs.config import GatewayConfig, OwnerConfig
from spark_wal.webhdfs.service import ServingConfig, WebHdfsService

HOME: Final = Path("/tmp/bookkeeper-py-samples")
"""Where the samples were written. A cookie holds the absolute names of its bookie's directories, so that is where they
are unpacked."""

SAMPLES: Final = (
    "embedded-stopped",
    "embedded-killed",
    "directories-killed",
    "gateway-directory",
    "streams-killed",
    "streams-stopped",
    "pages-killed",
    "growing-killed",
)

EARLIER: Final = {"0.1.0": ("directories-placements-1",)}
"""Written in the course of a version, by a form that it had before its release."""

PASSWORD: Final = b"secret"
DIGESTS: Final = ("crc32c", "crc32", "hmac", "dummy")
DELETED: Final = LedgerId(4)
OPEN: Final = LedgerId(5)
DEFERRED: Final = LedgerId(6)
CHOSEN_ID: Final = LedgerId(70_000)
LARGE: Final = bytes(range(256)) * 640
"""Above what a gateway keeps in its journal: a ledger of its own."""


@contextmanager
def several_directories() -> Iterator[None]:
    """Each embedded bookie has three ledger directories."""
    config_of = embedded._config

    def with_three(directory: str, name: str, index: int) -> BookieConfig:
        made = config_of(directory, name, index)
        return replace(made, ledger_dirs=tuple(f"{directory}/{name}-disk{number}" for number in (1, 2, 3)))

    embedded._config = with_three
    try:
        yield
    finally:
        embedded._config = config_of


def payload(ledger: int, entry: int) -> bytes:
    return b"%d/%d " % (ledger, entry) * (1 + entry % 40)


@contextmanager
def small_disks() -> Iterator[None]:
    """Journal files of 64 KiB: a sample shall be small. Their size is no part of the format."""
    before = dict(embedded.STORAGE)
    embedded.STORAGE.update(journal_file_bytes=65_536, reserve_bytes=65_536)
    try:
        yield
    finally:
        embedded.STORAGE.update(before)


async def write_ledgers(bk: BookKeeper) -> Any:
    """Closed ones with each digest, a deleted one, an open one (returned), one with deferred sync, one whose id and
    entry ids were chosen."""
    for number, digest in enumerate(DIGESTS):
        async with await bk.create_ledger(
            digest=digest, password=PASSWORD, unsafe_without_digest=digest == "dummy"
        ) as ledger:
            assert ledger.id == number
            await ledger.append_many([payload(number, entry) for entry in range(50)])
    deleted = await bk.create_ledger(password=PASSWORD)
    await deleted.append(b"to be deleted")
    await deleted.close()
    await bk.delete_ledger(deleted.id)
    left_open = await bk.create_ledger(password=PASSWORD)
    await left_open.append_many([payload(OPEN, entry) for entry in range(20)])
    async with await bk.create_ledger(password=PASSWORD, deferred_sync=True) as deferred:
        await deferred.append_many([payload(DEFERRED, entry) for entry in range(10)])
    async with await bk.create_ledger(password=PASSWORD, advanced=True, ledger_id=CHOSEN_ID) as chosen:
        await asyncio.gather(*(chosen.append_at(entry, payload(CHOSEN_ID, entry)) for entry in (2, 0, 1)))
    assert (deleted.id, left_open.id, deferred.id, chosen.id) == (DELETED, OPEN, DEFERRED, CHOSEN_ID)
    return left_open


async def read_ledgers(bk: BookKeeper) -> None:
    """Everything is as it was written; the open ledger is recovered; no id of a deleted ledger is given out again."""
    counts = {**{LedgerId(i): 50 for i in range(len(DIGESTS))}, OPEN: 20, DEFERRED: 10, CHOSEN_ID: 3}
    for ledger_id, count in counts.items():
        async with await bk.open_ledger(ledger_id, PASSWORD) as reader:
            assert reader.closed and reader.last_add_confirmed == count - 1, ledger_id
            found = [entry.payload async for entry in reader.read(0, count - 1)]
            assert found == [payload(ledger_id, entry) for entry in range(count)]
    listed = {ledger_id async for ledger_id in bk.list_ledgers()}
    assert set(counts) <= listed and DELETED not in listed
    async with await bk.create_ledger(password=PASSWORD) as fresh:
        assert fresh.id > max(DEFERRED, DELETED) and fresh.id not in listed
        await fresh.append(b"goes on")


@asynccontextmanager
async def gateway(uri: str, snapshot_records: int = 6) -> AsyncIterator[Address]:
    """A gateway over ``uri``, with a snapshot after few records."""
    owner = GatewayConfig(owner=OwnerConfig(snapshot_records=snapshot_records))
    config = ServingConfig(uri=uri, gateway=owner, listen=Address("127.0.0.1", 0))
    async with WebHdfsService(config, system_seams()) as service:
        assert service.address is not None
        yield service.address


def _ask(address: Address, method: str, path: str, query: str, data: bytes | None = None) -> requests.Response:
    url = f"http://{address}/webhdfs/v1{path}?op={query}&user.name=spark"
    reply = requests.request(method, url, data=data, timeout=60 * stretch())
    reply.raise_for_status()
    return reply


@dataclass(frozen=True, slots=True)
class Files:
    """The files of the gateway's namespace, path -> bytes."""

    found: dict[str, bytes]


FILES: Final = Files(
    {
        "/query/metadata": b'{"id":"5f3c"}',
        "/query/offsets/0": b"v1\n{}\n",
        "/query/offsets/1": b"v1\n{}\nappended",
        "/query/state/0/1/large.zip": LARGE,
        "/query/name with blanks/\u00e4": b"",
        "/query/commits/.0.tmp": b"a temporary file that nobody renamed",
    }
)


def write_files(address: Address) -> None:
    """Files that are small, large, appended to, renamed, removed; directories; attributes; a quota."""
    for path, data in FILES.found.items():
        temporary = path if path.endswith(".tmp") else f"/query/.{path.rpartition('/')[2]}.tmp"
        _ask(address, "PUT", temporary, "CREATE&overwrite=true", data.removesuffix(b"appended"))
        if temporary != path:
            _ask(address, "PUT", path.rpartition("/")[0], "MKDIRS")
            moved = _ask(address, "PUT", temporary, f"RENAME&destination={path}")
            assert moved.json() == {"boolean": True}
    _ask(address, "POST", "/query/offsets/1", "APPEND", b"appended")
    _ask(address, "PUT", "/query/offsets/gone", "CREATE", b"x")
    _ask(address, "DELETE", "/query/offsets/gone", "DELETE")
    _ask(address, "PUT", "/query/metadata", "SETPERMISSION&permission=600")
    _ask(address, "PUT", "/query/empty", "MKDIRS")


def read_files(address: Address) -> None:
    """Every file has its bytes, nothing else is there, and the namespace takes new files."""
    for path, data in FILES.found.items():
        assert _ask(address, "GET", path, "OPEN").content == data, path
    names = _ask(address, "GET", "/query/offsets", "LISTSTATUS").json()["FileStatuses"]["FileStatus"]
    assert sorted(status["pathSuffix"] for status in names) == ["0", "1"]
    status = _ask(address, "GET", "/query/metadata", "GETFILESTATUS").json()["FileStatus"]
    assert (status["permission"], status["length"], status["owner"]) == ("600", 13, "spark")
    assert _ask(address, "GET", "/query/empty", "GETFILESTATUS").json()["FileStatus"]["type"] == "DIRECTORY"
    _ask(address, "PUT", "/query/offsets/2", "CREATE&overwrite=true", b"goes on")
    assert _ask(address, "GET", "/query/offsets/2", "OPEN").content == b"goes on"
    _ask(address, "DELETE", "/query/offsets/2", "DELETE")
