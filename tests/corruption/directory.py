"""A bookie's life whose files are damaged, and which of their bytes something depends on.

The life leaves every kind of file that a bookie writes: logs full and not full, before and after a compaction, index
segments, journal and spare, reserve and notes. It is ended twice: by kill, and by a clean stop.
"""

from __future__ import annotations

import asyncio
import posixpath
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from bookkeeper import wire
from bookkeeper.codec import record
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.meta.stores.memory import MemorySnapshot
from bookkeeper.storage.base.durable_file import BLOCK, STAMP_SIZE
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.index.entry_index import Extent
from bookkeeper.storage.index.index_segment import read_segment
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, JournalGroup, read_groups
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import Cluster
from tests.bookkeeper.bookie.garbage.test_garbage_collector import KEY, ledger
from tests.bookkeeper.bookie.garbage.test_model import packet
from tests.bookkeeper.storage.recording_disk import RecordingDisk

Files = dict[str, bytes]
OPTIONS: Final[dict[str, Any]] = {
    "garbage_interval_s": 10**6,
    "garbage_grace_s": 1.0,
    "garbage_shrink_max": 1.0,
    "storage": {
        "journal_file_bytes": 64 * 1024,
        "journal_spares": 1,
        "entry_log_bytes": 24 * 1024,
        "checkpoint_bytes": 1 << 20,
        "reserve_bytes": 8 * 1024,
        "major_compaction_ratio": 1.0,
        "compaction_bytes_per_s": 0,
    },
}
LEDGERS: Final = "/data/ledgers/"
JOURNALS: Final = "/data/journal/"
MANIFEST: Final = LEDGERS + "manifest"
IDLE: Final = ("lock", "dirty", "reserve", ".spare")
"""Files of which only the name says something."""


@dataclass
class Life:
    """What a bookie was told, and has acknowledged."""

    living: dict[LedgerId, int] = field(default_factory=dict)
    """Ledger -> how many entries."""
    fenced: set[LedgerId] = field(default_factory=set)
    gone: set[LedgerId] = field(default_factory=set)


@dataclass(frozen=True)
class Stopped:
    """A bookie that does not run: its files, and the metadata at that moment."""

    how: str
    files: Files
    older: Files
    """The files some time before, in the same life."""
    metadata: MemorySnapshot
    life: Life

    def needed(self, path: str) -> set[int]:
        """The bytes of a file on which an answer depends: damage to them has to be noticed."""
        return _needed(self, path)


def kind_of(path: str) -> str:
    """The kinds of files that the table has."""
    name = posixpath.basename(path)
    ending = posixpath.splitext(name)[1]
    known = {".log": "entry log", ".index": "index segment", ".journal": "journal", ".spare": "spare journal"}
    return known.get(ending) or ("lock" if ending == ".lock" else "cookie" if name == "VERSION" else name)


def files_of(cluster: Cluster) -> Files:
    return {path: data for path, data in cluster.node.disk.files().items() if path.startswith("/data/")}


async def live(cluster: Cluster, *, clean: bool) -> Stopped:
    """Live, and end."""
    life, metadata = Life(), await cluster.up()
    rng = Random(1)
    numbers = [(await metadata.ledgers.create(ledger()))[0] for _ in range(6)]
    life.living = dict.fromkeys(numbers, 0)

    async def write(rounds: int) -> None:
        for _ in range(rounds):
            requests = []
            for number in rng.sample(sorted(life.living.keys() - life.fenced), 2):
                for _ in range(rng.randrange(1, 4)):
                    entry_id = life.living[number]
                    requests.append(wire.AddEntry(number, EntryId(entry_id), KEY, packet(number, entry_id)))
                    life.living[number] += 1
            assert {reply.status for reply in await cluster.ask_all(requests)} == {Status.OK}

    async def checkpoint() -> None:
        assert cluster.server is not None
        cluster.server.engine.checkpoint(lambda error: None)
        await asyncio.sleep(1)

    await write(10)
    await checkpoint()
    fence = wire.ReadEntry(numbers[5], EntryId(0), master_key=KEY, fence=True)
    await cluster.ask(fence)
    life.fenced.add(numbers[5])
    await write(10)
    await checkpoint()
    for gone in numbers[:2]:
        await metadata.ledgers.delete(gone)
        del life.living[gone]
        life.gone.add(gone)
    server = cluster.server
    assert server is not None
    for _ in range(2):
        await server.collect_garbage()
        await asyncio.sleep(2)
    older = files_of(cluster)
    server.engine.compact(lambda error: None, major=True)
    await asyncio.sleep(5)
    assert server.engine.stats.compacted_logs
    await write(6)
    await checkpoint()
    await asyncio.sleep(10)  # what is published has been published
    await write(4)
    if clean:
        await cluster.node.run(server.stop())
        cluster.node.crash(power=False)
    else:
        await asyncio.sleep(10)
        cluster.node.crash(power=False)
    return Stopped("stopped" if clean else "killed", files_of(cluster), older, cluster.metadata.snapshot(), life)


def _needed(stopped: Stopped, path: str) -> set[int]:
    data, name = stopped.files[path], posixpath.basename(path)
    if name.endswith(IDLE):
        return set()
    if path == MANIFEST:
        return set(range(len(data)))
    manifest = Manifest.decode(stopped.files[MANIFEST], MANIFEST)
    if name.endswith(".journal"):
        return _groups_behind(manifest, path, data)
    if name.endswith(".log"):
        return _living(stopped, data) if int(name[:-4], 16) in manifest.logs else set()
    if name.endswith(".index"):
        return _index_of_living(stopped, manifest, path) if int(name[:-6], 16) in manifest.segments else set()
    return set(range(len(data.partition(b"\n")[0] if name != "VERSION" else data.rstrip())))


def _groups_behind(manifest: Manifest, path: str, data: bytes) -> set[int]:
    """Groups that no checkpoint covers."""
    file = RecordingDisk({path: data}).open(path, write=False)
    needed: set[int] = set()
    for group in read_groups(file, int(posixpath.basename(path)[:-8], 16)):
        if isinstance(group, JournalGroup) and group.header.sequence > manifest.sequence:
            at = group.header.offset
            needed.update(range(at, at + GROUP_HEADER + group.header.size))
    return needed


def _covered(stopped: Stopped) -> list[tuple[LedgerId, int, bytes]]:
    """The acknowledged entries that a start does not replay, and their records."""
    journals = [path for path in stopped.files if path.endswith(".journal")]
    behind = b"".join(bytes(stopped.files[path][at] for at in sorted(stopped.needed(path))) for path in journals)
    every = [(number, entry_id) for number, count in stopped.life.living.items() for entry_id in range(count)]
    found = [(number, entry_id, record(packet(number, entry_id))) for number, entry_id in every]
    return [row for row in found if row[2] not in behind]


def _living(stopped: Stopped, data: bytes) -> set[int]:
    """Records of covered entries."""
    needed: set[int] = set()
    for _, _, wanted in _covered(stopped):
        at = data.find(wanted)
        if at >= 0:
            needed.update(range(at, at + len(wanted)))
    return needed


def _index_of_living(stopped: Stopped, manifest: Manifest, path: str) -> set[int]:
    """All that a start reads of a segment, and the pages that hold the newest place of a covered entry."""
    segments: list[tuple[str, list[Extent]]] = []
    for number in manifest.segments:
        name = f"{LEDGERS}{number:016x}.index"
        file = RecordingDisk({name: stopped.files[name]}).open(name, write=False)
        segments.append((name, list(read_segment(file, number).all_extents())))
    pages_end = max((extent.offset + 8 * extent.count for extent in dict(segments)[path]), default=BLOCK)
    needed = {*range(STAMP_SIZE + 16), *range(pages_end, len(stopped.files[path]))}
    for ledger_id, entry_id, _ in _covered(stopped):
        for name, extents in reversed(segments):
            holds = [each for each in extents if each.ledger_id == ledger_id and each.first <= entry_id < each.end]
            at = [each.offset + 8 * (entry_id - each.first) for each in holds]
            if any(stopped.files[name][place : place + 8] != bytes(8) for place in at):
                if name == path:
                    needed.update(*(range(each.offset, each.offset + 8 * each.count) for each in holds))
                break
    return needed
