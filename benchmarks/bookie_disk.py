"""A bookie's disk alone: a restart after kill -9, the memory of the index, one ledger read from end to end.

Each is compared with what the same bytes cost without a bookie: the journal's files read, a file sent by ``sendfile``.
The journal comes from the disk, both times; the ledger that is read comes from the page cache.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.layouts import LayoutRun, ended
from benchmarks.report import Aim, Figure, Report
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.real import keep_freed_memory, run
from bookkeeper.storage.base.config import MIB
from bookkeeper.storage.base.results import PackedEntries
from bookkeeper.storage.engine import Engine

_WARM_TURNS: Final = 64
"""Megabytes that are written before memory is measured: buffers have their size then."""
_LEDGERS: Final = 100
_NEVER: Final = 1 << 50
"""No checkpoint: the journal is replayed, and every entry is in memory's part of the index."""


async def _fill(directory: Path, megabytes: int) -> None:
    """Write without a checkpoint, say how memory grew, and die."""
    filled = _crashing(directory, megabytes)
    engine = filled.open()
    await filled.write(engine, _WARM_TURNS)
    before, count = _resident(), sum(filled.written.values())
    await filled.write(engine)
    grown = {"bytes": _resident() - before, "entries": sum(filled.written.values()) - count}
    print(json.dumps(grown), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _crashing(directory: Path, megabytes: int) -> LayoutRun:
    return LayoutRun(directory, _LEDGERS, megabytes, own=False, checkpoint_bytes=_NEVER)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _forget(directory: Path) -> None:
    """What is on the disk need not stay in the page cache."""
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _read_files(directory: Path) -> tuple[int, float]:
    """Bytes of the files, and the seconds that it takes to read them."""
    buffer, size, began = bytearray(MIB), 0, time.monotonic()
    for path in sorted(directory.rglob("*.journal")):
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                size += count
    return size, time.monotonic() - began


def _fill_and_kill(report: Report, directory: Path, megabytes: int) -> None:
    child = [sys.executable, "-m", "benchmarks.bookie_disk", str(directory), str(megabytes)]
    said = subprocess.run(child, stdout=subprocess.PIPE, check=False)
    if said.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the process that fills a bookie's disk ended with {said.returncode}")
    grown = json.loads(said.stdout)
    per_entry = grown["bytes"] / grown["entries"]
    note = f"{grown['entries']:,} entries since the last checkpoint, 1 KB each"
    report.add(Figure("memory of the index, an entry not in a segment", per_entry, "B", Aim(10, 20, lower=True), note))


async def _restart(report: Report, directory: Path, megabytes: int) -> None:
    _forget(directory)
    size, reading = _read_files(directory / "journal")
    _forget(directory)
    began = time.monotonic()
    crashed = _crashing(directory, megabytes)
    engine = crashed.open()
    seconds = time.monotonic() - began
    note = f"{size / MIB:.0f} MB of journal files in {seconds:.1f} s; read alone in {reading:.2f} s"
    report.add(
        Figure("restart after kill -9: speed over reading the journal", reading / seconds, "", Aim(0.5, 0.5), note)
    )
    report.add(Figure("restart after kill -9", size / MIB / seconds, "MB/s"))
    await ended(engine.close)


async def _long_read(report: Report, directory: Path, megabytes: int) -> None:
    one = LayoutRun(directory, 1, megabytes, own=False, entry_log_bytes=_NEVER >> 13)
    engine = one.open()
    await one.write(engine)
    await ended(engine.checkpoint)
    log = next((directory / "ledgers").glob("*.log"))
    for warm in (True, False):
        with _Sink() as sink:
            size, sending = sink.send_file(log)
        with _Sink() as sink:
            seconds = await _send_ledger(engine, one.written[0], sink.socket)
        if not warm:
            note = f"{size / MIB / seconds:,.0f} MB/s over a socket; sendfile {size / MIB / sending:,.0f} MB/s"
            report.add(Figure("batch reads of one ledger, over sendfile", sending / seconds, "", Aim(0.5, 0.5), note))
    await ended(engine.close)


async def _send_ledger(engine: Engine, entries: int, sink: socket.socket) -> float:
    """Every entry, a batch of 1 MB after the other; the next is read while one is sent."""
    loop = asyncio.get_running_loop()

    def ask(at: int) -> asyncio.Future[PackedEntries | BaseException]:
        waiter: asyncio.Future[PackedEntries | BaseException] = loop.create_future()
        engine.read_batch(LedgerId(0), EntryId(at), 10_000, MIB, waiter.set_result)
        return waiter

    sink.setblocking(False)
    began, at = time.monotonic(), 0
    following = ask(0)
    while at < entries:
        packed = await following
        if isinstance(packed, BaseException):
            raise packed
        at += packed.count
        if at < entries:
            following = ask(at)
        await loop.sock_sendall(sink, packed.body)
    return time.monotonic() - began


class _Sink:
    """A socket whose other end another process throws away."""

    def __enter__(self) -> _Sink:
        self.socket, other = socket.socketpair()
        self._reader = subprocess.Popen(["cat"], stdin=other.fileno(), stdout=subprocess.DEVNULL)
        other.close()
        return self

    def send_file(self, path: Path) -> tuple[int, float]:
        """Bytes and seconds."""
        began, size = time.monotonic(), path.stat().st_size
        with path.open("rb") as file:
            sent = 0
            while sent < size:
                sent += os.sendfile(self.socket.fileno(), file.fileno(), sent, size - sent)
        return size, time.monotonic() - began

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self._reader.wait()


def measure(report: Report, directory: Path, megabytes: int) -> None:
    """A restart, the index, a long read."""
    keep_freed_memory()  # as a bookie's process does
    restart, long_read = directory / "restart", directory / "long-read"
    restart.mkdir()
    _fill_and_kill(report, restart, megabytes)
    run(_restart(report, restart, megabytes))
    long_read.mkdir()
    run(_long_read(report, long_read, megabytes))


if __name__ == "__main__":
    run(_fill(Path(sys.argv[1]), int(sys.argv[2])))
