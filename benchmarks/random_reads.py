"""Random reads of a bookie's disk when its data are not in memory.

A disk alone, without a network: entries of 1 KB of a thousand ledgers, all behind a checkpoint, are read in random
order: after the page cache of everything was dropped, and after that of the entry logs was, while the index, one
percent of the data, stays in memory. Beside them, as many random reads of 1 KB of the same entry logs by ``pread``. It
is repeated with four times as many data: the rate should stay what it was.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.layouts import LayoutRun, ended
from benchmarks.report import Aim, Figure, Report
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.real import run
from bookkeeper.storage.engine import Engine

_LEDGERS: Final = 1000
_READS: Final = 4000
_TOGETHER: Final = 16
"""Reads on their way at a time, where they are not one after the other."""
_SIZE: Final = 1024


@dataclass(frozen=True, slots=True)
class Seen:
    """What some random reads cost."""

    seconds: float
    p50_s: float
    p99_s: float
    disk_bytes: float
    """Read from the device for each of them."""

    @property
    def rate(self) -> float:
        return _READS / self.seconds

    def __str__(self) -> str:
        times = f"p50 {self.p50_s * 1e3:.2f} ms, p99 {self.p99_s * 1e3:.2f} ms"
        return f"{self.rate:,.0f}/s, {times}, {self.disk_bytes / 1024:.1f} KiB from the device for each"


def forget(paths: Iterable[Path]) -> None:
    """Drop the page cache of these files. They are synced first: what is dirty is not dropped."""
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _device_bytes() -> int:
    """Bytes that this process has made devices read."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


class _Timed:
    """Counts and times reads."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._device = _device_bytes()
        self._began = time.monotonic()

    @contextmanager
    def one(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._times.append(time.monotonic() - began)

    def seen(self) -> Seen:
        seconds, times = time.monotonic() - self._began, sorted(self._times)
        p99 = times[len(times) * 99 // 100]
        return Seen(seconds, statistics.median(times), p99, (_device_bytes() - self._device) / len(times))


async def _entries(engine: Engine, wanted: Sequence[tuple[int, int]], together: int) -> Seen:
    timed, left = _Timed(), iter(wanted)

    async def reader() -> None:
        for ledger, entry in left:
            answer: asyncio.Future[bytes | BaseException] = asyncio.get_running_loop().create_future()
            with timed.one():
                engine.read(LedgerId(ledger), EntryId(entry), answer.set_result)
                found = await answer
            if isinstance(found, BaseException):
                raise found

    await asyncio.gather(*(reader() for _ in range(together)))
    return timed.seen()


def _preads(logs: Sequence[Path], seed: int, together: int) -> Seen:
    """Random reads of the logs' bytes by so many threads, without a bookie."""
    rng, files = random.Random(seed), [path.open("rb", buffering=0) for path in logs]
    sizes = [path.stat().st_size for path in logs]
    picks = rng.choices(range(len(files)), sizes, k=_READS)
    wanted = [(files[at].fileno(), rng.randrange(max(1, sizes[at] - _SIZE))) for at in picks]
    timed = _Timed()

    def one(where: tuple[int, int]) -> None:
        with timed.one():
            os.pread(where[0], _SIZE, where[1])

    with ThreadPoolExecutor(together) as threads:
        for _ in threads.map(one, wanted):
            pass
    for file in files:
        file.close()
    return timed.seen()


def _files(ledgers: Path) -> tuple[list[Path], list[Path]]:
    """The entry logs, and the files of the index."""
    return sorted(ledgers.rglob("*.log")), sorted(ledgers.rglob("*.index"))


async def _sized(directory: Path, megabytes: int) -> dict[tuple[str, int], Seen]:
    filled = LayoutRun(directory, _LEDGERS, megabytes, own=False)
    engine = filled.open()
    await filled.write(engine)
    await ended(engine.checkpoint)
    await ended(engine.close)
    rng, (logs, indexes) = random.Random(megabytes), _files(directory / "ledgers")
    ledgers = rng.choices(range(_LEDGERS), [filled.written[at] for at in range(_LEDGERS)], k=_READS)
    wanted = [(ledger, rng.randrange(filled.written[ledger])) for ledger in ledgers]
    forget([*logs, *indexes])
    engine = filled.open()
    seen = {("everything", 1): await _entries(engine, wanted, 1)}
    for path in indexes:
        path.read_bytes()
    for together in (1, _TOGETHER):
        forget(logs)
        seen["entry logs", together] = await _entries(engine, wanted, together)
        forget(logs)
        seen["bare", together] = await asyncio.to_thread(_preads, logs, megabytes, together)
    await ended(engine.close)
    return seen


def measure(report: Report, directory: Path, megabytes: int) -> None:
    """Random reads of a quarter of so many megabytes, and of all of them. With few megabytes pages are read twice."""
    rates: dict[tuple[str, int], float] = {}
    for size in (max(2, megabytes // 4), megabytes):
        inside = directory / f"random-{size}"
        inside.mkdir(exist_ok=True)
        seen = run(_sized(inside, size))
        shutil.rmtree(inside)
        for (dropped, together), ours in seen.items():
            if dropped == "bare":
                continue
            bare = seen["bare", together]
            what = f"{size} MB, {dropped} dropped, {together} at a time"
            report.add(Figure(f"random reads, {what}", ours.rate, "/s", None, f"{ours}; pread alone {bare}"))
            report.add(Figure("… over pread alone", ours.rate / bare.rate, ""))
            before = rates.setdefault((dropped, together), ours.rate)
            if size == megabytes:
                aim = Aim(0.8, 0.5) if dropped == "entry logs" else None
                report.add(Figure("… over that of a quarter of the data", ours.rate / before, "", aim))
