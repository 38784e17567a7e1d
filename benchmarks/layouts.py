"""Which layout of entry logs wins when: one log for all ledgers, or one for each.

A bookie's disk alone, without a network: runs of entries of 1 KB go to a hundred or five thousand ledgers in turn, each
turn as one group; a checkpoint is made after every so many bytes. Then one ledger is read from its beginning to its
end, with the page cache and without, half of the ledgers are deleted, and the disk is compacted.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from struct import Struct
from typing import Any, Final, cast

from benchmarks.report import Figure, Report
from bookkeeper.codec import Adds, Run, record
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.real import SystemClock, run
from bookkeeper.real.disk import PosixDisk
from bookkeeper.real.workers import ThreadWorkers
from bookkeeper.seams import File
from bookkeeper.storage.base.config import MIB, StorageConfig
from bookkeeper.storage.base.results import Done, PackedEntries
from bookkeeper.storage.engine import Engine

LEDGERS: Final = (100, 5000)
MEGABYTES: Final = 1024
"""What is written for each figure."""
_SIZE: Final = 1024
_RUN: Final = 10
"""Entries of one ledger that come together."""
_TURN_BYTES: Final = 1 * MIB
"""What comes together of all ledgers."""
_WAITING: Final = 4
"""Turns that may wait for the journal."""
_HEADER: Final = Struct(">qqqq")
_KEY: Final = b"k" * 20


@dataclass
class CountingDisk(PosixDisk):
    """Counts the syncs of entry logs."""

    log_syncs: int = 0
    logs: set[str] = field(default_factory=set)

    def open(self, path: str, **how: Any) -> File:
        """See :class:`bookkeeper.seams.Disk`."""
        file = super().open(path, **how)
        if path.endswith(".log") and how.get("write", True):
            self.logs.add(path)
            return cast(File, _CountedFile(file, self))
        return file


class _CountedFile:
    """A file whose syncs are counted."""

    def __init__(self, file: File, disk: CountingDisk) -> None:
        self._file, self._disk = file, disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def sync(self) -> None:
        self._disk.log_syncs += 1
        self._file.sync()


def run_of(ledger_id: int, first: int) -> Adds:
    """A run as the codec would cut it."""
    entries = [_HEADER.pack(ledger_id, first + at, first + at - 1, 0) + bytes(_SIZE) for at in range(_RUN)]
    records = [record(entry) for entry in entries]
    ends, ids = array("q", accumulate(map(len, records))), array("q", range(first, first + _RUN))
    run_ = Run(ledger_id, _KEY, 0, _RUN, True, first + _RUN - 2)
    return Adds(0, b"".join(records), 0, ends, b"", array("q"), ids, [run_], [], [], False, False, None)


async def ended(act: Callable[[Done], object]) -> None:
    """Wait for what has a callback."""
    waiter: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    act(waiter.set_result)
    if (error := await waiter) is not None:
        raise error


class LayoutRun:
    """One layout with so many ledgers, in a directory of its own."""

    def __init__(self, directory: Path, ledgers: int, megabytes: int, *, own: bool, **storage: Any) -> None:
        self.ledgers, self.disk = ledgers, CountingDisk()
        self.turns = max(2, megabytes * MIB // _TURN_BYTES)
        several = min(128 * MIB, megabytes * MIB // 8)  # so that there is something to compact
        self.config = StorageConfig(
            journal_dir=str(directory / "journal"),
            ledger_dir=str(directory / "ledgers"),
            entry_log_per_ledger=own,
            reserve_bytes=0,
            major_compaction_ratio=1.0,
            compaction_bytes_per_s=0,
            **{"entry_log_bytes": several} | storage,
        )
        self.written: dict[int, int] = dict.fromkeys(range(ledgers), 0)

    async def measure(self, report: Report) -> None:
        """Write, read, delete, compact."""
        layout = "a log per ledger" if self.config.entry_log_per_ledger else "one log for all"
        what = f"{self.ledgers} ledgers, {layout}"
        engine = self.open()
        seconds = await self.write(engine)
        await ended(engine.checkpoint)
        count, checkpoints = sum(self.written.values()), max(1, engine.stats.checkpoints)
        report.add(Figure(f"{what}: entries written", count / seconds, "/s", None, f"{seconds:.1f} s in all"))
        syncs = self.disk.log_syncs / checkpoints
        report.add(Figure(f"{what}: syncs of logs a checkpoint", syncs, "", None, f"{checkpoints} checkpoints"))
        for name, cold in (("in the page cache", False), ("from the disk", True)):
            rate = await self._read(engine, cold=cold)
            report.add(Figure(f"{what}: one ledger read, {name}", rate, "/s"))
        await ended(lambda done: engine.collect([LedgerId(at) for at in range(0, self.ledgers, 2)], done))
        began = time.monotonic()
        await ended(lambda done: engine.compact(done, major=True))
        copied = engine.stats.compaction_copied_bytes / MIB
        note = f"{time.monotonic() - began:.1f} s, {engine.stats.removed_logs} logs removed"
        report.add(Figure(f"{what}: rewritten after half were deleted", copied, "MB", None, note))
        await ended(engine.close)

    def open(self) -> Engine:
        """Start on what is there."""
        clock, loop = SystemClock(), asyncio.get_running_loop()
        return Engine.open(
            self.config, self.disk, ThreadWorkers(), monotonic=clock.monotonic, call_later=loop.call_later
        )

    async def write(self, engine: Engine, turns: int = 0) -> float:
        """Write all of it, or so many turns of 1 MB. Seconds until everything is durable."""
        began, at, waiting = time.monotonic(), 0, asyncio.Semaphore(_WAITING)
        runs = max(1, _TURN_BYTES // (_RUN * _SIZE))
        failed: list[BaseException] = []

        def durable(error: BaseException | None) -> None:
            waiting.release()
            if error is not None:
                failed.append(error)

        for _turn in range(turns or self.turns):
            for _run in range(runs):
                ledger_id, at = at % self.ledgers, at + 1
                adds = run_of(ledger_id, self.written[ledger_id])
                engine.append(adds.runs[0], adds)
                self.written[ledger_id] += _RUN
            await waiting.acquire()
            engine.when_durable(durable)
        for _left in range(_WAITING):
            await waiting.acquire()
        if failed:
            raise failed[0]
        return time.monotonic() - began

    async def _read(self, engine: Engine, *, cold: bool) -> float:
        """Entries a second of one ledger."""
        if cold:
            for path in sorted(self.disk.logs):
                if self.disk.exists(path):
                    file = self.disk.open(path, write=False)
                    file.forget(0, 0)
                    file.close()
        ledger_id, at = LedgerId(1), 0
        began = time.monotonic()
        while at < self.written[ledger_id]:
            waiter: asyncio.Future[PackedEntries | BaseException] = asyncio.get_running_loop().create_future()
            engine.read_batch(ledger_id, EntryId(at), 1000, MIB, waiter.set_result)
            packed = await waiter
            if isinstance(packed, BaseException):
                raise packed
            at += packed.count
        return at / (time.monotonic() - began)


def measure(report: Report, directory: Path, megabytes: int = MEGABYTES, ledgers: tuple[int, ...] = LEDGERS) -> None:
    """Both layouts, with few ledgers and with many."""
    for count in ledgers:
        for own in (False, True):
            home = directory / f"layout-{count}-{'own' if own else 'shared'}"
            home.mkdir()
            run(LayoutRun(home, count, megabytes, own=own).measure(report))
