"""``python -m tests.samples VERSION``: write the samples of a version that is about to be released, as far as there are
none yet."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tarfile
from pathlib import Path

from bookkeeper import BookKeeper
from bookkeeper.real import run
from tests.samples.growing_story import write_growing
from tests.samples.journal_story import JOURNALS, TAKEN_BACK, write_discarded, write_journal
from tests.samples.story import HOME, gateway, several_directories, small_disks, write_files, write_ledgers
from tests.samples.stream_story import small_pages, write_long_stream, write_stream

HERE = Path(__file__).parent


async def _embedded(version: Path) -> None:
    """A cluster in one directory with a gateway's namespace on it: while everything runs (as a kill leaves it), and
    after a clean stop."""
    uri = f"embedded://{HOME}/embedded"
    async with BookKeeper.connect(uri) as bk:
        left_open = await write_ledgers(bk)
        async with gateway(uri) as address:
            await asyncio.to_thread(write_files, address)
            _pack(version, "embedded-killed", HOME / "embedded")
        await left_open.abandon()
    _pack(version, "embedded-stopped", HOME / "embedded")


async def _directories(version: Path) -> None:
    """A cluster whose bookies have three ledger directories each, as a kill leaves it."""
    with several_directories():
        async with BookKeeper.connect(f"embedded://{HOME}/directories") as bk:
            left_open = await write_ledgers(bk)
            _pack(version, "directories-killed", HOME / "directories")
            await left_open.abandon()


async def _directory(version: Path) -> None:
    async with gateway(f"file://{HOME}/gateway") as address:
        await asyncio.to_thread(write_files, address)
        _pack(version, "gateway-directory", HOME / "gateway")


async def _streams(version: Path) -> None:
    """A cluster in one directory with a stream: while its writer is open, and after a clean stop."""
    async with BookKeeper.connect(f"embedded://{HOME}/streams") as bk:
        alive = await write_stream(bk)
        _pack(version, "streams-killed", HOME / "streams")
        await alive.aclose()
    _pack(version, "streams-stopped", HOME / "streams")


async def _pages(version: Path) -> None:
    """A cluster in one directory with a stream whose old segments are in pages, while its writer is open."""
    async with BookKeeper.connect(f"embedded://{HOME}/pages") as bk:
        with small_pages():
            alive = await write_long_stream(bk)
            _pack(version, "pages-killed", HOME / "pages")
            await alive.aclose()


async def _growing(version: Path) -> None:
    """A gateway's namespace in a directory with a file that grows, while its upload is open. All records are there."""
    async with gateway(f"file://{HOME}/growing", 1000) as address:
        await write_growing(address, lambda: _pack(version, "growing-killed", HOME / "growing"))


async def _journal(version: Path, name: str) -> None:
    """As a kill leaves it: the writer has a segment open."""
    uri, directory = (JOURNALS | TAKEN_BACK)[name]
    log = await (write_journal(uri) if name in JOURNALS else write_discarded(uri))
    _pack(version, name, directory)
    await log.abort()


def _lacks(version: Path, *names: str) -> bool:
    """What was written once is never written again."""
    return not any((version / f"{name}.tar.gz").exists() for name in names)


def _pack(version: Path, name: str, directory: Path) -> None:
    with tarfile.open(version / f"{name}.tar.gz", "x:gz", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(directory.rglob("*")):
            if not path.name.endswith("-shm"):  # memory that SQLite shares between processes
                tar.add(path, path.relative_to(HOME), recursive=False, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def main(name: str) -> None:
    version = HERE / name
    version.mkdir(exist_ok=True)
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(mode=0o700)
    try:
        with small_disks():
            if _lacks(version, "embedded-killed", "embedded-stopped"):
                run(_embedded(version))
            if _lacks(version, "directories-killed"):
                run(_directories(version))
            if _lacks(version, "gateway-directory"):
                run(_directory(version))
            if _lacks(version, "streams-killed", "streams-stopped"):
                run(_streams(version))
            if _lacks(version, "pages-killed"):
                run(_pages(version))
            if _lacks(version, "growing-killed"):
                run(_growing(version))
            for journal in (*JOURNALS, *TAKEN_BACK):
                if _lacks(version, journal):
                    run(_journal(version, journal))
    finally:
        shutil.rmtree(HOME)


if __name__ == "__main__":
    main(sys.argv[1])
