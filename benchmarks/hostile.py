"""What hostile sockets do to a bookie's memory: thousands of connections that never say anything useful.

``python -m benchmarks hostile`` starts a bookie, opens 5,000 connections to it from several addresses of this machine,
each of which does one of :data:`KINDS` and then stays, and prints the bookie's resident memory before, the most while
they are there, and ten seconds after they have gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes import BookieProcesses
from benchmarks.report import Aim, Figure, Report
from bookkeeper.ids import Address
from bookkeeper.real import run

CONNECTIONS: Final = 5000
PER_ADDRESS: Final = 900
"""Below the bookie's own limit for one address."""
STAY_S: Final = 15.0
"""How long they stay when all of them stand."""
AFTER_S: Final = 10.0

FRAME: Final = 5 * 1024 * 1024 - 4
HALF: Final = bytes(FRAME // 2)

KINDS: Final = {
    "nothing": b"",
    "a partial header": b"\0\0",
    "a huge length": struct.pack(">I", 0x7FFFFFFF),
    "a large length alone": struct.pack(">I", FRAME),
    "half a frame of 5 MB": struct.pack(">I", FRAME) + HALF,
    "garbage": bytes(range(256)) * 40,
    "a slow trickle": struct.pack(">I", FRAME) + bytes(20_000),
    "garbage of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
}


@dataclass(frozen=True)
class MemoryGrowth:
    """Megabytes of a bookie's resident memory."""

    before: float
    during: float
    after: float
    refused: int


def resident(pid: int) -> float:
    """Megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def attack(
    address: Address,
    pid: int,
    count: int,
    *,
    kinds: Sequence[bytes] = tuple(KINDS.values()),
    stay_s: float = STAY_S,
    after_s: float = AFTER_S,
) -> MemoryGrowth:
    """``count`` hostile connections at a time."""
    before = most = resident(pid)
    gate, opened, refused = asyncio.Semaphore(200), 0, 0
    leave = asyncio.Event()

    async def one(number: int, words: bytes) -> None:
        nonlocal opened, refused
        local = (f"127.0.1.{1 + number // PER_ADDRESS}", 0)
        async with gate:
            try:
                _, writer = await asyncio.open_connection(address.host, address.port, local_addr=local)
            except OSError:
                refused += 1
                return
            opened += 1
        with contextlib.suppress(OSError):
            writer.write(words)
            while not leave.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(leave.wait(), 1.0)
                if len(words) == 20_004 and not writer.transport.is_closing():
                    writer.write(b"\0")
        writer.transport.abort()

    tasks = [asyncio.create_task(one(number, kinds[number % len(kinds)])) for number in range(count)]
    while opened + refused < count:
        await asyncio.sleep(0.02)
        most = max(most, resident(pid))
    for _ in range(int(stay_s / 0.05)):
        await asyncio.sleep(0.05)
        most = max(most, resident(pid))
    leave.set()
    await asyncio.gather(*tasks)
    await asyncio.sleep(after_s)
    return MemoryGrowth(before, most, resident(pid), refused)


def address_of(cluster: BookieProcesses) -> Address:
    """Where its bookie listens."""
    [row] = cluster.bk("bookies", "--json")
    return Address.parse(row["address"])


@contextlib.contextmanager
def many_descriptors() -> Iterator[None]:
    """As many as there may be, for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def measure(report: Report, directory: Path) -> None:
    """The row."""
    with BookieProcesses(directory / "hostile", bookies=1) as cluster, many_descriptors():
        seen = run(attack(address_of(cluster), cluster.pids[0], CONNECTIONS))
    what = f"memory of a bookie, {CONNECTIONS} hostile connections"
    aims = Aim(goal=160, must=256, lower=True), Aim(goal=16, must=64, lower=True)
    report.add(Figure(what, seen.during, "MB", aims[0], f"{seen.before:.0f} MB before, {seen.refused} turned away"))
    report.add(Figure(f"{what}, {AFTER_S:.0f} s after", seen.after - seen.before, "MB more than before", aims[1]))
