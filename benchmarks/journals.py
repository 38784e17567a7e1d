"""What an edit log costs over the appends beneath it, how long a take-over lasts, and how fast HDFS's edits replay.

One process is the application; three bookies are processes of their own, with metadata in SQLite. The log and the bare
ledgers beside it are written by the same client, and they take turns, so that the ratio is the journal's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import replay
from benchmarks.processes import BookieProcesses
from benchmarks.report import Aim, Figure, Report
from bookkeeper import BookKeeper
from bookkeeper.real import run
from journal_manager import Batch, EditLog, Op, open_reader, read_ops, replicated
from journal_manager.edits.ops import encode_op

LOGGERS: Final = 64
OP_BYTES: Final = 100
BEHIND: Final = 1_000_000
"""Edits that the replica which takes over has not applied."""
_ROUNDS: Final = 3
_ROUND_S: Final = 3.0
_LONE: Final = 3000
_GROUP: Final = 1000
_IN_FLIGHT: Final = 8
_QUORUMS: Final[dict[str, Any]] = {"ensemble": 3, "write_quorum": 3, "ack_quorum": 2}


def measure(report: Report, directory: Path) -> None:
    """All rows of journals; two minutes."""
    report.heading("journals: E3/Qw3/Qa2, edits of 100 bytes, batches and bare appends by the same client")
    with BookieProcesses(directory / "journals") as cluster:
        run(_on_a_cluster(report, cluster.metadata))
    replay.measure(report)


async def _on_a_cluster(report: Report, metadata: str) -> None:
    async with BookKeeper.connect(metadata) as bk:
        grouped = [await grouped_edits(bk, f"grouped-{number}", _ROUND_S) for number in range(_ROUNDS)]
        lone = await lone_edits(bk, "lone", _LONE)
        taken_over = await take_over(bk, "behind", BEHIND)
    middle = sorted(grouped, key=lambda each: each.ratio)[len(grouped) // 2]
    report.add(
        Figure(
            f"edit log, {LOGGERS} loggers, over raw appends of the same batches",
            middle.ratio,
            "×",
            Aim(0.5, 0.5),
            f"{middle.logged_per_s:,.0f} over {middle.raw_per_s:,.0f} edits/s, {middle.edits_a_batch:.0f} a batch",
        )
    )
    report.add(
        Figure(
            "sync of one edit, p50, over a raw append's",
            lone.sync_us / lone.append_us,
            "×",
            Aim(1.3, 1.3, lower=True),
            f"{lone.sync_us:.0f} over {lone.append_us:.0f} µs",
        )
    )
    report.add(Figure(f"take-over with {BEHIND:,} edits behind", taken_over.seconds, "s", None, taken_over.note))
    report.add(Figure("… edits applied a second meanwhile", taken_over.applied_per_s, "/s"))
    report.add(Figure("… the same edits read, not applied", taken_over.edits_read_per_s, "/s"))
    report.add(Figure("… their entries read by a bare reader, in edits", taken_over.entries_read_per_s, "/s"))


# -- the edit log ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupedEdits:
    """Many loggers, each waiting for its own edit, and the same batches appended to a bare ledger."""

    logged_per_s: float
    raw_per_s: float
    edits_a_batch: float

    @property
    def ratio(self) -> float:
        return self.logged_per_s / self.raw_per_s


async def grouped_edits(bk: BookKeeper, name: str, seconds: float) -> GroupedEdits:
    """Log for so long; then append what became one entry as one entry again, one at a time as the log does."""
    log = await EditLog.open(f"bk:{name}", client=bk, **_QUORUMS)
    deadline = time.perf_counter() + seconds
    body = bytes(OP_BYTES)

    async def logger() -> int:
        logged = 0
        while time.perf_counter() < deadline:
            await log.log(body)
            logged += 1
        return logged

    began = time.perf_counter()
    logged = sum(await asyncio.gather(*(logger() for _ in range(LOGGERS))))
    logging_s = time.perf_counter() - began
    await log.close()
    batches = await _batches(bk, name)
    async with await bk.create_ledger(**_QUORUMS) as ledger:
        began = time.perf_counter()
        for batch in batches:
            await ledger.append(batch.frames)
        raw_s = time.perf_counter() - began
    return GroupedEdits(logged / logging_s, logged / raw_s, logged / len(batches))


async def _batches(bk: BookKeeper, name: str) -> list[Batch]:
    """Everything in a journal, as it was written."""
    async with await open_reader(f"bk:{name}", client=bk) as reader:
        found: list[Batch] = []
        for segment in await reader.segments():
            async with aclosing(reader.read(segment, segment.first)) as batches:
                found += [batch async for batch in batches]
        return found


@dataclass(frozen=True, slots=True)
class LoneEdits:
    """One edit at a time, and one append at a time of as many bytes; medians in microseconds."""

    sync_us: float
    append_us: float


async def lone_edits(bk: BookKeeper, name: str, count: int) -> LoneEdits:
    """An edit and an append in turns, each when the one before is durable."""
    log = await EditLog.open(f"bk:{name}", client=bk, **_QUORUMS)
    ledger = await bk.create_ledger(**_QUORUMS)
    body = bytes(OP_BYTES)
    frame = encode_op(0, await log.log(body), body)
    sync, append = list[float](), list[float]()
    for _ in range(count):
        began = time.perf_counter()
        await log.log(body)
        logged = time.perf_counter()
        await ledger.append(frame)
        sync.append(logged - began)
        append.append(time.perf_counter() - logged)
    await ledger.close()
    await log.close()
    return LoneEdits(median(sync) * 1e6, median(append) * 1e6)


# -- taking over -------------------------------------------------------------------------------------------


class Tally:
    """The least a program can do with an edit: what it costs is the journal's."""

    def __init__(self) -> None:
        self.edits = self.bytes = 0

    def apply(self, op: Op) -> None:
        self.edits += 1
        self.bytes += len(op.body)

    def snapshot(self) -> Iterable[bytes]:
        return [f"{self.edits} {self.bytes}".encode()]

    async def restore(self, chunks: AsyncIterator[bytes]) -> None:
        content = b"".join([chunk async for chunk in chunks])
        self.edits, self.bytes = map(int, content.split()) if content else (0, 0)


@dataclass(frozen=True, slots=True)
class TakeOver:
    """A replica that was started when the active one had died, and how fast the same edits are only read."""

    edits: int
    seconds: float
    """From its start until it is active: election, claim, fencing, recovery, replay."""
    edits_read_per_s: float
    entries_read_per_s: float
    """Of a reader of ledgers, which looks into no entry; in the edits that the entries hold."""

    @property
    def applied_per_s(self) -> float:
        return self.edits / self.seconds

    @property
    def note(self) -> str:
        """What the seconds are made of."""
        return f"reading them alone takes {self.edits / self.edits_read_per_s:.2f} s"


async def take_over(bk: BookKeeper, name: str, edits: int) -> TakeOver:
    """Write ``edits``, end without closing, and start a replica that has applied none."""
    uri = f"bk:{name}"
    await _write(bk, uri, edits)
    machine = Tally()
    began = time.perf_counter()
    async with replicated(uri, machine, name="successor", client=bk, **_QUORUMS) as replica:
        await replica.wait_until_active()
        seconds = time.perf_counter() - began
    if machine.edits != edits:
        raise RuntimeError(f"the replica has applied {machine.edits} edits of {edits}")
    return TakeOver(edits, seconds, edits / await _reading_s(bk, uri, edits), edits / await _entries_s(bk, uri))


async def _write(bk: BookKeeper, uri: str, edits: int) -> None:
    """In groups, as a busy program's are; the last segment stays open, as a dead writer leaves it."""
    log = await EditLog.open(uri, client=bk, **_QUORUMS)
    group = [(0, bytes(OP_BYTES))] * _GROUP
    waiting: list[asyncio.Future[int]] = []
    for left in range(edits, 0, -_GROUP):
        waiting.append(log.log_group(group[:left]))
        if len(waiting) >= _IN_FLIGHT:
            await waiting.pop(0)
    await asyncio.gather(*waiting)
    await log.abort()


async def _reading_s(bk: BookKeeper, uri: str, edits: int) -> float:
    began, seen = time.perf_counter(), 0
    async with await open_reader(uri, client=bk) as reader, aclosing(read_ops(reader, 1)) as ops:
        async for _ in ops:
            seen += 1
    if seen != edits:
        raise RuntimeError(f"a reader sees {seen} edits of {edits}")
    return time.perf_counter() - began


async def _entries_s(bk: BookKeeper, uri: str) -> float:
    async with await open_reader(uri, client=bk) as reader:
        ledgers = [int(segment.location) for segment in await reader.segments()]
    began = time.perf_counter()
    for ledger in ledgers:
        async with await bk.open_ledger(ledger, None, recovery=False) as handle:
            async for _ in handle.read_batches(0, handle.last_add_confirmed):
                pass
    return time.perf_counter() - began
