"""Nothing on a disk or in its engine grows for ever: a hundred thousand ledgers come and go, and every file and every
table that is left is looked at. What the metadata keep: tests/bookkeeper/bookie/test_growth.py."""

from __future__ import annotations

from typing import Final

import pytest

from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import add, lid, open_engine
from tests.bookkeeper.tables import tables_of

KIB: Final = 1024
LEDGERS: Final = 100_000
ROUND: Final = 10_000
"""Ledgers that are there at the same time."""
CHUNK: Final = 500
"""Ledgers whose entries are made durable together."""
CONFIG: Final = StorageConfig(
    journal_dir="/journal",
    ledger_dir="/ledgers",
    journal_file_bytes=512 * KIB,
    group_bytes=256 * KIB,
    inflight_bytes=1024 * KIB,
    entry_log_bytes=512 * KIB,
    checkpoint_bytes=1024 * KIB,
    reserve_bytes=0,
    index_segments=4,
)


def fill(engine: Engine, workers: QueueWorkers, first: int) -> None:
    """One entry in each ledger of a round; one in ten is fenced, too."""
    for begin in range(first, first + ROUND, CHUNK):
        for number in range(begin, begin + CHUNK):
            add(engine, number, 0)
        engine.when_durable(lambda error: None)
        workers.pump()
        for number in range(begin, begin + CHUNK, 10):
            engine.fence(lid(number), b"k" * 20, lambda *_: None)
        workers.pump()


def collect(engine: Engine, workers: QueueWorkers, kept: set[LedgerId], end: int) -> None:
    """All ledgers but ``kept`` are deleted, and every id below ``end`` was given out."""
    ended: list[BaseException | None] = []
    engine.collect(lambda ledger: ledger not in kept, ended.append, never_again=[(0, end - 1)])
    workers.pump()
    engine.checkpoint(ended.append)
    workers.pump()
    assert ended == [None, None]


@pytest.mark.rule("M6", "G1")
def test_a_hundred_thousand_ledgers_come_and_go_and_leave_next_to_nothing() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, CONFIG)
    kept: set[LedgerId] = set()
    most = 0
    for first in range(0, LEDGERS, ROUND):
        fill(engine, workers, first)
        if first == 0:
            kept.add(lid(ROUND // 2))
        collect(engine, workers, kept, first + ROUND)
        most = max(most, sum(map(len, disk.files().values())))
    assert most < 16 * 1024 * KIB
    written = tables_of(engine)
    assert max(written.values()) == ROUND, "whose records are in the log that is written, until it is full"
    assert written == written | {"EntryLogState.usage": ROUND, "ManifestLog.usage": ROUND}
    for life in range(2):
        disk.locks.clear()
        engine.close(lambda error: None)
        workers.pump()
        engine, workers = open_engine(disk, CONFIG)
        collect(engine, workers, kept, LEDGERS)
        assert engine.ledgers() == sorted(kept)
        assert len(engine.dropped) == 2, "all but one id, in two ranges"
        sizes = {name: len(data) for name, data in disk.files().items()}
        files = [name for name in sizes if name.endswith((".journal", ".spare", ".log"))]
        assert sum(size for name, size in sizes.items() if name not in files) < 16 * KIB, sizes
        assert len([name for name in sizes if name.endswith(".index")]) <= CONFIG.index_segments + 1
        assert len([name for name in files if not name.endswith(".log")]) <= CONFIG.journal_spares + 2
        assert sum(sizes[name] for name in files) <= (CONFIG.journal_spares + 4) * 640 * KIB, sizes
        assert {name: size for name, size in tables_of(engine).items() if size > 200} == {}, life
