"""What this machine can do: the measures against which figures are ratios."""

from __future__ import annotations

import mmap
import os
import socket
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import bare_add


@dataclass(frozen=True, slots=True)
class Calibration:
    """Medians, in microseconds where the name says so."""

    synced_write_us: float
    """One O_DIRECT|O_DSYNC write of 4 KiB into a zero-filled file (or write + fdatasync)."""
    direct: bool
    """Whether the file system took O_DIRECT."""
    round_trip_us: float
    """One blocking ping-pong of 1 KiB over loopback."""
    bare_add_us: float
    """One add at E3/Qw3/Qa2 by processes that do nothing else (:mod:`benchmarks.bare_add`)."""
    crc_us_per_kb: float
    copy_gb_per_s: float

    @property
    def floor_us(self) -> float:
        """The least an add at window 1 can take: one synced write and one round trip."""
        return self.synced_write_us + self.round_trip_us

    def text(self) -> str:
        how = "O_DIRECT|O_DSYNC" if self.direct else "write + fdatasync"
        return (
            f"synced write of 4 KiB ({how}) {self.synced_write_us:.0f} µs, loopback round trip of 1 KiB "
            f"{self.round_trip_us:.0f} µs, a bare add of three processes {self.bare_add_us:.0f} µs, "
            f"CRC32C {self.crc_us_per_kb:.2f} µs a KB, memory copy {self.copy_gb_per_s:.1f} GB/s, "
            f"{os.cpu_count()} cores"
        )


def calibrate(directory: Path | None = None) -> Calibration:
    """Measure, for about four seconds, in ``directory`` (default: where temporary files go)."""
    directory = Path(directory or tempfile.gettempdir())
    write, direct = _synced_write(directory)
    return Calibration(
        synced_write_us=write,
        direct=direct,
        round_trip_us=_round_trip(),
        bare_add_us=bare_add.measure(directory),
        crc_us_per_kb=_crc(),
        copy_gb_per_s=_copy(),
    )


class Quiet:
    """Waits until the disk is as quick as it was: what a run before left to a disk, or to the disk behind it, must not
    be this one's business."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._best = min(self._look() for _ in range(5))

    def wait(self, limit_s: float = 10.0) -> float:
        """Until synced writes take no more than half as long again as the best ever seen; seconds waited."""
        began = time.monotonic()
        os.sync()
        while time.monotonic() - began < limit_s:
            took = self._look()
            self._best = min(self._best, took)
            if took <= 1.5 * self._best:
                break
            time.sleep(0.05)
        return time.monotonic() - began

    def _look(self) -> float:
        return _synced_write(self._directory, 100)[0]


def synced_write_us(directory: Path) -> float:
    """The median of 2,000 synced writes of 4 KiB, in microseconds."""
    return _synced_write(directory)[0]


def _synced_write(directory: Path, rounds: int = 2000) -> tuple[float, bool]:
    path = directory / f"calibration-{os.getpid()}"
    size = 1 << 20
    block = mmap.mmap(-1, 4096)
    block.write(b"x" * 4096)
    path.write_bytes(bytes(size))
    direct = True
    try:
        fd = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    except OSError:
        fd, direct = os.open(path, os.O_WRONLY), False
    try:
        os.fsync(fd)
        spans = []
        for number in range(rounds):
            began = time.perf_counter()
            os.pwrite(fd, block, number * 4096 % size)
            if not direct:
                os.fdatasync(fd)
            spans.append(time.perf_counter() - began)
    finally:
        os.close(fd)
        path.unlink()
    return median(spans) * 1e6, direct


def _round_trip(rounds: int = 5000) -> float:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
    for end in (client, peer):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def echo() -> None:
        while data := peer.recv(1024, socket.MSG_WAITALL):
            peer.sendall(data)

    thread = threading.Thread(target=echo)
    thread.start()
    message = bytes(1024)
    spans = []
    for _ in range(rounds):
        began = time.perf_counter()
        client.sendall(message)
        client.recv(1024, socket.MSG_WAITALL)
        spans.append(time.perf_counter() - began)
    client.close()
    thread.join()
    peer.close()
    return median(spans) * 1e6


def _crc(rounds: int = 200) -> float:
    from crc32c import crc32c

    block = os.urandom(64 * 1024)
    began = time.perf_counter()
    for _ in range(rounds):
        crc32c(block)
    return (time.perf_counter() - began) / rounds / 64 * 1e6


def _copy(rounds: int = 20) -> float:
    source = bytearray(os.urandom(1 << 20) * 16)
    target = bytearray(len(source))
    began = time.perf_counter()
    for _ in range(rounds):
        target[:] = source
    return rounds * len(source) / (time.perf_counter() - began) / 1e9
