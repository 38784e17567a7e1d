"""Every file of a bookie's disk: missing, damaged, of an earlier time, another bookie's. Nothing is denied.

The bookie here has lost a disk before (so that it has a ``birth.json``), has been started again since, and was killed
with adds in its journal that no checkpoint covers. What happens to its files then is what careless hands, backups and
worn disks do; what it answers is pinned.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from bookkeeper import wire
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.testing.world import SimDisk
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import KEY, add, change, named, status

Files = dict[str, bytes]
DIRECTORIES = ("/data", "/data/journal", "/data/ledgers")


def files_of(disk: SimDisk) -> Files:
    found: Files = {}
    for directory in DIRECTORIES:
        for name in disk.list(directory):
            if f"{directory}/{name}" not in DIRECTORIES:
                found[f"{directory}/{name}"] = disk.read_file(f"{directory}/{name}")
    return found


def put(disk: SimDisk, files: Files) -> None:
    """Exactly these files are on the disk from now on."""
    for path in files_of(disk):
        disk.unlink(path)
    for path, data in files.items():
        file = disk.open(path, create=True)
        file.pwrite(data, 0)
        file.sync()
        file.close()
    for directory in DIRECTORIES:
        disk.sync_directory(directory)


@dataclass
class Past:
    """What the bookie has lived through, and must never deny."""

    entries: list[tuple[LedgerId, int]] = field(default_factory=list)
    fenced: list[LedgerId] = field(default_factory=list)
    earlier: Files = field(default_factory=dict)
    files: Files = field(default_factory=dict)


async def live(cluster: Cluster) -> Past:
    past = Past()
    metadata = await cluster.up()

    async def make(count: int) -> list[LedgerId]:
        return [(await metadata.ledgers.create(one()))[0] for _ in range(count)]

    def one() -> LedgerMetadata:
        return named(BOOKIE)

    async def fill(ledger: LedgerId, first: int, count: int, size: int = 3000) -> None:
        for entry_id in range(first, first + count):
            data = bytes(add(ledger, entry_id).entry) + bytes(size)
            assert await status(cluster, wire.AddEntry(ledger, EntryId(entry_id), KEY, data)) is Status.OK
            past.entries.append((ledger, entry_id))

    async def checkpoint() -> None:
        assert cluster.server is not None
        done: list[object] = []
        cluster.server.engine.checkpoint(done.append)
        await asyncio.sleep(1)
        assert done == [None]

    (lost,) = await make(1)
    assert await status(cluster, add(lost, 0)) is Status.OK
    await change(metadata, lost, 0)
    await cluster.wiped()
    past.fenced.append(lost)  # its fence went with the disk
    assert await status(cluster, add(lost, 0, recovery=True)) is Status.OK
    await asyncio.sleep(100)
    one_, two, three = await make(3)
    await fill(one_, 0, 10)
    await checkpoint()
    await fill(one_, 10, 10)
    past.earlier = files_of(cluster.node.disk)
    cluster.node.crash(power=False)
    await cluster.again()
    await fill(two, 0, 12)
    await checkpoint()
    await fill(two, 12, 3)
    fence = wire.ReadEntry(three, EntryId(0), KEY, fence=True)
    assert await status(cluster, fence) in (Status.NO_ENTRY, Status.NO_LEDGER)
    past.fenced.append(three)
    await fill(one_, 20, 1)
    assert cluster.server is not None
    await cluster.server.collect_garbage()
    await asyncio.sleep(60)
    cluster.node.crash(power=False)
    past.files = files_of(cluster.node.disk)
    return past


def ending(*endings: str) -> Callable[[str], bool]:
    return lambda path: path.endswith(endings)


KINDS: dict[str, Callable[[str], bool]] = {
    "everything": lambda path: True,
    "all data": ending("manifest", ".log", ".index", ".journal", ".spare", "dirty"),
    "the ledger directory's data": ending("manifest", ".log", ".index", "ledgers/dirty"),
    "the journal directory's data": ending(".journal", ".spare", "journal/dirty"),
    "manifest": ending("manifest"),
    "manifest and logs": ending("manifest", ".log"),
    "manifest and the first log": ending("manifest", "000001.log"),
    "logs": ending(".log"),
    "the first log": ending("000001.log"),
    "index": ending(".index"),
    "index and manifest": ending(".index", "manifest"),
    "journal": ending(".journal"),
    "dirty markers": ending("dirty"),
    "dirty markers and journal": ending("dirty", ".journal"),
    "spares": ending(".spare"),
    "disk_identity": ending("birth.json"),
    "boot": ending("/boot"),
    "boot and birth": ending("/boot", "birth.json"),
    "seen transaction": ending("metadata-transaction"),
    "counted in metadata": ending("metadata-beacon"),
    "identity": ending("identity.json"),
    "cookies": ending("VERSION"),
}

NORMAL, LIMBO, DOUBT, REFUSED = "a normal start", "limbo", "a look at all ledgers", "refused"
BOTH = f"{LIMBO}, {DOUBT}"

MISSING = {
    "everything": REFUSED,
    "all data": REFUSED,
    "the ledger directory's data": LIMBO,
    "the journal directory's data": LIMBO,
    "manifest": LIMBO,
    "manifest and logs": LIMBO,
    "manifest and the first log": LIMBO,
    "logs": LIMBO,
    "the first log": LIMBO,
    "index": NORMAL,
    "index and manifest": LIMBO,
    "journal": LIMBO,
    "dirty markers": NORMAL,
    "dirty markers and journal": LIMBO,
    "spares": NORMAL,
    "disk_identity": DOUBT,
    "boot": DOUBT,
    "boot and birth": DOUBT,
    "seen transaction": NORMAL,
    "counted in metadata": NORMAL,
    "identity": NORMAL,
    "cookies": REFUSED,
}

EARLIER = {
    "everything": BOTH,
    "all data": LIMBO,
    "the ledger directory's data": LIMBO,
    "the journal directory's data": LIMBO,
    "manifest": LIMBO,
    "manifest and logs": LIMBO,
    "manifest and the first log": LIMBO,
    "logs": LIMBO,
    "the first log": NORMAL,
    "index": NORMAL,
    "index and manifest": LIMBO,
    "journal": LIMBO,
    "dirty markers": NORMAL,
    "dirty markers and journal": LIMBO,
    "spares": NORMAL,
    "disk_identity": NORMAL,
    "boot": DOUBT,
    "boot and birth": DOUBT,
    "seen transaction": NORMAL,
    "counted in metadata": NORMAL,
    "identity": NORMAL,
    "cookies": NORMAL,
}

FOREIGN = {
    "everything": REFUSED,
    "all data": REFUSED,
    "the ledger directory's data": REFUSED,
    "the journal directory's data": REFUSED,
    "manifest": REFUSED,
    "manifest and logs": REFUSED,
    "manifest and the first log": REFUSED,
    "logs": REFUSED,
    "the first log": REFUSED,
    "index": REFUSED,
    "index and manifest": REFUSED,
    "journal": REFUSED,
    "dirty markers": NORMAL,
    "dirty markers and journal": REFUSED,
    "spares": NORMAL,
    "disk_identity": DOUBT,
    "boot": NORMAL,
    "boot and birth": DOUBT,
    "seen transaction": NORMAL,
    "counted in metadata": NORMAL,
    "identity": REFUSED,
    "cookies": REFUSED,
}

DAMAGED = {
    "manifest": LIMBO,
    "logs": NORMAL,  # who reads a damaged record is told so
    "index": NORMAL,
    "journal": LIMBO,
    "dirty markers": NORMAL,
    "disk_identity": DOUBT,
    "boot": DOUBT,
    "seen transaction": REFUSED,
    "counted in metadata": REFUSED,
    "identity": REFUSED,
    "cookies": REFUSED,
}


async def reaction(cluster: Cluster, past: Past, files: Files, *, may_fail: bool = False) -> str:
    """Start on these files; what came of it. Fails if anything that was acknowledged is denied."""
    put(cluster.node.disk, files)
    try:
        await cluster.again()
    except (BookKeeperError, ValueError) as error:
        assert re.search("/data|-py/seen/c:3181", str(error)), f"it does not say where: {error}"
        cluster.node.crash(power=False)
        return REFUSED
    server = cluster.server
    assert server is not None
    await asyncio.sleep(1)
    found = []
    if server.engine.in_limbo:
        found.append(LIMBO)
    if server.health()["ledgers_in_doubt"]:
        found.append(DOUBT)
    for ledger, entry_id in past.entries:
        for fence in (False, True):
            answer = await status(cluster, wire.ReadEntry(ledger, EntryId(entry_id), KEY, fence=fence))
            assert answer not in (Status.NO_ENTRY, Status.NO_LEDGER), f"{ledger}/{entry_id} is denied"
            if not found:
                assert answer is Status.OK or (may_fail and answer is Status.IO_ERROR)
    for ledger in past.fenced:
        assert await status(cluster, add(ledger, 50)) is Status.FENCED, f"ledger {ledger} has lost its fence"
    return ", ".join(found) or NORMAL


def check(change: Callable[[Past, Files], Files], expected: str, *, may_fail: bool = False) -> None:
    async def main(cluster: Cluster) -> None:
        past = await live(cluster)
        files = change(past, dict(past.files))
        assert files != past.files
        assert await reaction(cluster, past, files, may_fail=may_fail) == expected
        if expected == REFUSED:
            assert await reaction(cluster, past, files) == REFUSED, "also the second time"
            after = files_of(cluster.node.disk)
            for path, data in files.items():
                if path.endswith((".log", ".index", ".journal", "manifest")):
                    assert after[path] == data, f"{path} was changed"
            return
        cluster.node.crash(power=False)
        again = await reaction(cluster, past, files_of(cluster.node.disk), may_fail=may_fail)
        assert again == expected, "and in its next life"

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("K32", "B5", "B3", "B9", "K18", "K19", "F8")
@pytest.mark.parametrize("kind", list(MISSING))
def test_files_that_are_missing(kind: str) -> None:
    check(lambda past, files: {path: data for path, data in files.items() if not KINDS[kind](path)}, MISSING[kind])


@pytest.mark.rule("K32", "B5", "B3", "B9", "K18", "K9", "F8")
@pytest.mark.parametrize("kind", list(EARLIER))
def test_files_of_an_earlier_time(kind: str) -> None:
    def change(past: Past, files: Files) -> Files:
        kept = {path: data for path, data in files.items() if not KINDS[kind](path)}
        earlier = {path: data for path, data in past.earlier.items() if KINDS[kind](path)}
        changed = {**kept, **earlier}
        if changed == files:  # it does not change with time
            changed["/data/lost+found"] = b""
        return changed

    check(change, EARLIER[kind])


_strangers: Files = {}


def strangers() -> Files:
    """The files of another bookie, of the same age."""

    async def main(cluster: Cluster) -> None:
        past = await live(cluster)
        for path, data in past.files.items():
            _strangers[path] = data.replace(b"b:3181", b"c:3181")

    if not _strangers:
        with suppress(KeyError):
            run(main, seed=77, garbage_interval_s=10**6)
    return _strangers


@pytest.mark.rule("K32", "B5", "B3", "B11", "F8")
@pytest.mark.parametrize("kind", list(FOREIGN))
def test_files_of_another_bookie(kind: str) -> None:
    theirs = {path: data for path, data in strangers().items() if KINDS[kind](path)}

    def change(past: Past, files: Files) -> Files:
        kept = {path: data for path, data in files.items() if not KINDS[kind](path)}
        return {**kept, **theirs, "/data/lost+found": b""}

    check(change, FOREIGN[kind])


@pytest.mark.rule("B5", "B3", "B9", "K9", "K19", "F8")
@pytest.mark.parametrize("kind", list(DAMAGED))
def test_files_that_are_damaged(kind: str) -> None:
    def change(past: Past, files: Files) -> Files:
        for path in files:
            if KINDS[kind](path) and files[path]:
                group = files[path].rfind(b"BKJG")
                at = group + 70 if group >= 0 else len(files[path].rstrip(b"\0")) // 2
                files[path] = files[path][:at] + b"\x93" + files[path][at + 1 :]
        return files

    check(change, DAMAGED[kind], may_fail=kind == "logs")
