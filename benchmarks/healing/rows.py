"""The figures of healing. Each row has a cluster of its own; nothing is asserted."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.healing.heal import ApacheHealedCluster, HealedCluster, OurHealedCluster, zookeeper_in
from benchmarks.healing.load import Pace, connect, fill, pace, pace_while, until_marked, until_whole
from benchmarks.processes import ROOT
from benchmarks.report import Aim, Figure, Report
from bookkeeper.bookie.control.bookie_control import SOCKET
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.real import run
from bookkeeper.real.unix_socket import request_unix
from examples.apache_servers import whats_missing

LEDGERS: Final = 30
LEDGER_BYTES: Final = 200_000_000 // LEDGERS
SET_RATE: Final = 20_000_000
"""Bytes a second that the row of a set rate allows."""
AUDITED: Final = 10_000
_AT_ONCE: Final = 64
_QUIET_S: Final = 6.0
_SCRUBBED_S: Final = 20.0
_MIB: Final = 1 << 20
_SMALL_LOGS: Final = {"entry_log_bytes": 16 * _MIB}
_EAGER: Final = {"garbage_interval_s": 2.0, "garbage_grace_s": 1.0, "garbage_shrink_max": 1.0}
"""Collects what was deleted seconds ago; by default that takes a quarter of an hour."""
_KEPT: Final = Aim(1.0, 0.8)
_DOUBLED: Final = Aim(1.0, 2.0, lower=True)


@dataclass(frozen=True, slots=True)
class Healed:
    """How long a repair took, in seconds."""

    since_kill: float
    since_loss: float
    """Since ZooKeeper had ended the bookie's session."""
    since_mark: float
    """Since the first ledger was marked."""


def measure(report: Report, directory: Path, wanted: Sequence[str] = ()) -> None:
    """All rows, or those named."""
    rows: dict[str, Callable[[Report, Path, ZooKeeperServer], None]] = {
        "repair": _repair,
        "rate": _rate,
        "beside-repair": _beside_repair,
        "beside-compaction": _beside_compaction,
        "beside-scrub": _beside_scrub,
        "beside-checkpoints": _beside_checkpoints,
        "audit": _audit,
        "space": _space,
    }
    report.heading("healing: bookies and autorecovery in processes of their own, metadata in ZooKeeper")
    with zookeeper_in(directory) as zookeeper:
        for name in wanted or rows:
            rows[name](report, directory, zookeeper)


# -- repair ------------------------------------------------------------------------------------------------


def _healed(cluster: HealedCluster, *, bytes_per_s: int = 0) -> Healed:
    """Write, start a spare bookie and autorecovery, lose a bookie, wait until everything is whole."""

    async def write() -> list[int]:
        async with await connect(cluster.uri) as bk:
            return await fill(bk, LEDGERS, LEDGER_BYTES)

    async def wait(lost: str) -> float:
        async with await connect(cluster.uri) as bk:
            await until_marked(bk, True)
            first = time.monotonic()
            await until_whole(bk, ledgers, lost)
            return first

    with cluster:
        ledgers = run(write())
        cluster.cluster.launch(3)
        cluster.cluster.await_registered(4)
        cluster.heal(bytes_per_s=bytes_per_s)
        lost, killed, gone = cluster.lose(0)
        first = run(wait(lost))
        ended = time.monotonic()
    return Healed(ended - killed, ended - gone, ended - first)


def _repair(report: Report, directory: Path, zookeeper: ZooKeeperServer) -> None:
    what = "a lost bookie with 200 MB in 30 ledgers is whole again"
    ours = _healed(OurHealedCluster(directory, zookeeper, "repair-ours"))
    report.add(Figure(f"{what}, since the kill", ours.since_kill, "s", None, "ours"))
    report.add(Figure(f"{what}, since its session ended", ours.since_loss, "s", None, "ours"))
    if (missing := whats_missing()) is not None:
        report.heading(f"  Apache's repair is left out: {missing}")
        return
    apache = _healed(ApacheHealedCluster(directory, zookeeper, "repair-apache"))
    report.add(Figure(f"{what}, since the kill", apache.since_kill, "s", None, "Apache's"))
    report.add(Figure(f"{what}, since its session ended", apache.since_loss, "s", None, "Apache's"))
    aim = Aim(0.2, 0.3, lower=True)
    report.add(Figure("repair, ours over Apache's, since the kill", ours.since_kill / apache.since_kill, "×", aim))
    report.add(Figure("repair, ours over Apache's, since the loss", ours.since_loss / apache.since_loss, "×", aim))


def _rate(report: Report, directory: Path, zookeeper: ZooKeeperServer) -> None:
    seen = _healed(OurHealedCluster(directory, zookeeper, "rate"), bytes_per_s=SET_RATE)
    share = LEDGERS * LEDGER_BYTES / seen.since_mark / SET_RATE
    note = f"{seen.since_mark:.1f} s from the first mark to the end; 0.9 to 1.1 is asked for"
    report.add(Figure(f"repair at {SET_RATE // 1_000_000} MB/s, speed over what is set", share, "×", None, note))


# -- appends beside something else -------------------------------------------------------------------------


def _beside(report: Report, what: str, quiet: Pace, busy: Pace) -> None:
    def told(each: Pace) -> str:
        return f"{each.per_s:,.0f}/s, p99 {each.p99_ms:.2f} ms"

    report.add(Figure(f"adds/s beside {what}", busy.per_s / quiet.per_s, "×", _KEPT, f"{told(busy)}; {told(quiet)}"))
    report.add(Figure(f"p99 of an add beside {what}", busy.p99_ms / quiet.p99_ms, "×", _DOUBLED))


def _beside_repair(report: Report, directory: Path, zookeeper: ZooKeeperServer) -> None:
    for name, rate in (("a repair at 20 MB/s", SET_RATE), ("a repair without a limit", 0)):
        with OurHealedCluster(directory, zookeeper, f"beside-repair-{rate}") as cluster:
            quiet, busy = run(_repaired_while_appending(cluster, rate))
        _beside(report, name, quiet, busy)


async def _repaired_while_appending(cluster: HealedCluster, rate: int) -> tuple[Pace, Pace]:
    async with await connect(cluster.uri) as bk:
        ledgers = await fill(bk, LEDGERS, LEDGER_BYTES)
        cluster.cluster.launch(3)
        await asyncio.to_thread(cluster.cluster.await_registered, 4)
        lost, _, _ = await asyncio.to_thread(cluster.lose, 0)
        quiet = await pace(bk, _QUIET_S)

        async def whole() -> None:
            await asyncio.to_thread(cluster.heal, bytes_per_s=rate)
            await until_marked(bk, True)
            await until_whole(bk, ledgers, lost)

        return quiet, await pace_while(bk, whole)


def _beside_compaction(report: Report, directory: Path, zookeeper: ZooKeeperServer) -> None:
    settings = {**_EAGER, "storage": _SMALL_LOGS}
    with OurHealedCluster(directory, zookeeper, "beside-compaction", settings) as cluster:
        quiet, busy = run(_compacted_while_appending(cluster))
    _beside(report, "a major compaction of 200 MB, half of it deleted", quiet, busy)


async def _compacted_while_appending(cluster: HealedCluster) -> tuple[Pace, Pace]:
    home = cluster.cluster.directory
    async with await connect(cluster.uri) as bk:
        ledgers = await fill(bk, 100, 2_000_000)
        quiet = await pace(bk, _QUIET_S)
        for ledger_id in ledgers[::2]:
            await bk.delete_ledger(ledger_id)

        async def compact() -> None:
            for _ in range(2):  # a ledger is dropped when two passes have found it deleted
                await asyncio.gather(*(_bookie("gc", "--major", home / f"b{number}") for number in (1, 2, 3)))
                await asyncio.sleep(2.5)

        busy = await pace_while(bk, compact)
        return quiet, busy


async def _bookie(verb: str, option: str, directory: Path) -> None:
    command = (sys.executable, "-m", "bookkeeper.admin", "bookie", verb, option, "--json", "--dir", str(directory))
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        if await process.wait():
            raise RuntimeError(f"bk bookie {verb} of {directory} has failed")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _beside_scrub(
    report: Report, directory: Path, zookeeper: ZooKeeperServer, *, size: int = LEDGERS * LEDGER_BYTES
) -> None:
    settings = {"storage": {"scrub_period_s": 0.0}}  # it begins when it is asked to, and goes at its limit
    with OurHealedCluster(directory, zookeeper, "beside-scrub", settings) as cluster:
        quiet, busy = run(_scrubbed_while_appending(cluster, size))
    _beside(report, "a scrub at its limit", quiet, busy)


async def _scrubbed_while_appending(cluster: HealedCluster, size: int) -> tuple[Pace, Pace]:
    """The scrub is not waited for: until it is through, adds fill a disk. The first adds fill journal files with zeros,
    and are not counted."""
    home = cluster.cluster.directory
    async with await connect(cluster.uri) as bk:
        await fill(bk, LEDGERS, size // LEDGERS)
        await pace(bk, _QUIET_S)
        quiet = await pace(bk, _SCRUBBED_S)
        scrubs = [asyncio.ensure_future(_bookie("scrub", "--now", home / f"b{number}")) for number in (1, 2, 3)]
        busy = await pace_while(bk, lambda: asyncio.sleep(_SCRUBBED_S))
        if any(scrub.done() for scrub in scrubs):
            raise RuntimeError("a scrub was through before the measurement was")
        read = [await _scrubbed_bytes(home / f"b{number}") for number in (1, 2, 3)]
        if min(read) < _MIB * _SCRUBBED_S:
            raise RuntimeError(f"the scrubs have read {read} bytes, and were to read 4 MiB a second")
        for scrub in scrubs:
            scrub.cancel()
        await asyncio.gather(*scrubs, return_exceptions=True)
        return quiet, busy


async def _scrubbed_bytes(directory: Path) -> int:
    """How much a bookie's scrub has read."""
    lines = [line async for line in request_unix(str(directory / SOCKET), b'{"command": "scrub"}')]
    return int(json.loads(lines[-1])["result"]["read_bytes"])


def log_bytes(home: Path) -> int:
    """Of all entry logs of a cluster's bookies."""
    return sum(path.stat().st_size for path in home.glob("b*/**/*.log") if path.parent.name != home.name)


def _beside_checkpoints(report: Report, directory: Path, zookeeper: ZooKeeperServer) -> None:
    paces = []
    for name, size in (("rare", 4096 * _MIB), ("often", 16 * _MIB)):
        settings = {"storage": {"checkpoint_bytes": size, "journal_spares": 16}}
        with OurHealedCluster(directory, zookeeper, f"checkpoints-{name}", settings) as cluster:
            paces.append(run(_paced(cluster.uri)))
    _beside(report, "checkpoints at every 16 MiB", *paces)


async def _paced(uri: str) -> Pace:
    async with await connect(uri) as bk:
        return await pace(bk, _QUIET_S)


# -- the audit ---------------------------------------------------------------------------------------------


def _audit(report: Report, directory: Path, zookeeper: ZooKeeperServer) -> None:
    what = f"requests to ZooKeeper, {AUDITED:,} ledgers audited and their copies checked"
    ours = _audited(OurHealedCluster(directory, zookeeper, "audit-ours"))
    report.add(Figure(what, ours, "requests", None, "ours"))
    if whats_missing() is not None:
        return
    apache = _audited(ApacheHealedCluster(directory, zookeeper, "audit-apache"))
    report.add(Figure(what, apache, "requests", None, "Apache's"))
    report.add(Figure("requests of an audit, ours over Apache's", ours / apache, "×", Aim(0.5, 1.0, lower=True)))


def _audited(cluster: HealedCluster) -> int:
    """Requests from the start of autorecovery until ZooKeeper hears only heartbeats for ten seconds."""

    async def write() -> None:
        async with await connect(cluster.uri) as bk:
            gate = asyncio.Semaphore(_AT_ONCE)

            async def one() -> None:
                async with gate, await bk.create_ledger() as writer:
                    await writer.append(bytes(100))

            await asyncio.gather(*(one() for _ in range(AUDITED)))

    with cluster:
        run(write())
        before = cluster.requests()
        cluster.heal()
        seen, quiet = cluster.requests(), 0
        while quiet < 10:
            time.sleep(1.0)
            now = cluster.requests()
            quiet = quiet + 1 if now - seen < 30 else 0
            seen = now
        return seen - before


# -- space -------------------------------------------------------------------------------------------------


def _space(report: Report, directory: Path, zookeeper: ZooKeeperServer) -> None:
    storage: dict[str, object] = {**_SMALL_LOGS, "compaction_bytes_per_s": 0}
    storage |= {"minor_compaction_interval_s": 3.0, "major_compaction_interval_s": 6.0, "checkpoint_bytes": 8 * _MIB}
    settings = {**_EAGER, "storage": storage}
    with OurHealedCluster(directory, zookeeper, "space", settings) as cluster:
        live, used = run(_churned(cluster))
    note = f"{used / 3e6:,.0f} MB of entry logs for {live / 1e6:,.0f} MB that live, on each of three bookies"
    report.add(
        Figure("space amplification after random deletes", used / 3 / live, "×", Aim(1.15, 1.25, lower=True), note)
    )


async def _churned(cluster: HealedCluster) -> tuple[int, int]:
    """600 MB are written and all but 100 MB deleted, at random; bytes that live, and bytes of logs when they settle."""
    dice = random.Random(7)
    home = cluster.cluster.directory
    alive: dict[int, int] = {}
    written = 0
    async with await connect(cluster.uri) as bk:
        while written < 600_000_000:
            size = dice.randrange(200_000, 2_000_000)
            [ledger_id] = await fill(bk, 1, size)
            alive[ledger_id] = size // 1000 * 1000
            written += size
            while sum(alive.values()) > 100_000_000:
                gone = dice.choice(list(alive))
                await bk.delete_ledger(gone)
                del alive[gone]
        used, since = log_bytes(home), time.monotonic()
        while time.monotonic() - since < 20:
            await asyncio.sleep(1.0)
            now = log_bytes(home)
            if now != used:
                used, since = now, time.monotonic()
    return sum(alive.values()), used
