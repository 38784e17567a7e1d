"""One ledger directory beside three, each on a disk that writes as many bytes a second: how much faster are adds?

The disks are loop devices with a limit, because three real disks that do not share anything are seldom at hand. The
limit holds for the journals, which are written past the page cache; entry logs go through it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks.loop_disks import LoopDisks, NoLoopDisksError
from benchmarks.processes import BookieProcesses
from benchmarks.report import Aim, Figure, Report
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.real import run

_DISKS: Final = 3
_DISK_MB: Final = 3000
_BYTES_PER_S: Final = 20 << 20
_ENTRY: Final = bytes(16 * 1024)
_WRITERS: Final = 12
_RUN: Final = 16
"""Entries of one ``append_many``."""
_WARM_UP_S: Final = 5.0
_SECONDS: Final = 15.0


def measure(report: Report, directory: Path) -> None:
    """Add the rows, or say why there are none."""
    report.heading(f"ledger directories: 16 KB, E1, {_WRITERS} ledgers at a time, disks of {_BYTES_PER_S >> 20} MiB/s")
    rates: dict[int, float] = {}
    for count in (1, _DISKS):
        try:
            rates[count] = _rate(directory / f"directories{count}", count)
        except NoLoopDisksError as error:
            report.heading(f"  not measured: {error}")
            return
    report.add(Figure("adds, one ledger directory", rates[1] / 1e6, "MB/s"))
    says = f"{rates[_DISKS] / 1e6:.1f} MB/s"
    report.add(Figure("adds, three directories over one", rates[_DISKS] / rates[1], "×", Aim(2.5, 2.0), says))


def _rate(directory: Path, count: int) -> float:
    """Bytes a second that are acknowledged with so many ledger directories."""
    directory.mkdir(parents=True)
    with (
        LoopDisks(directory, count, megabytes=_DISK_MB, bytes_per_s=_BYTES_PER_S) as disks,
        BookieProcesses(directory / "cluster", bookies=0) as cluster,
    ):
        places = [part for path in disks.paths for part in ("--ledger-dir", str(path / "bk"))]
        bookie = cluster.start("bookie", "--dir", str(directory / "b1"), "--bookie-id", "b1", *places)
        cluster.until_serving(bookie, [Path(place) for place in places if not place.startswith("-")])
        disks.limit(bookie.pid)
        return run(_load(cluster.metadata))


async def _load(metadata: str) -> float:
    done = 0

    async def write(bk: BookKeeper) -> None:
        nonlocal done
        async with await bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as writer:
            while True:
                await writer.append_many([_ENTRY] * _RUN)
                done += _RUN * len(_ENTRY)

    async with BookKeeper.connect(metadata) as bk:
        tasks = [asyncio.create_task(write(bk)) for _ in range(_WRITERS)]
        await asyncio.sleep(_WARM_UP_S)
        before, began = done, time.monotonic()
        await asyncio.sleep(_SECONDS)
        rate = (done - before) / (time.monotonic() - began)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
    return rate
