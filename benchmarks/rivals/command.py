"""``python -m benchmarks rivals``: the rounds, in which systems take turns."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.apache.drivers import DriverError, LoadDriver
from benchmarks.calibration import synced_write_us
from benchmarks.processes import ROOT, BookieProcesses
from benchmarks.rivals import drivers
from benchmarks.rivals.servers import KafkaServers, NatsServers, RivalServers
from benchmarks.rivals.table import OURS, OURS_ALONE, ROWS, RivalRow, placed, section
from bookkeeper.errors import BookKeeperError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from examples.apache_servers import jars

PAGE: Final = ROOT / "docs" / "benchmarks.md"
APART: Final = ("unshare", "--user", "--map-root-user", "--fork", "--pid", "--mount-proc", "--kill-child")
"""A gateway sees at once that another one on its machine was killed. One that is started by this command sees no other
process, as on another machine, and waits until the lease runs out."""
_ANSWER_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class RunningRival:
    """A system that is up, its load generator, and the process of a server by its name."""

    driver: LoadDriver
    pid: Callable[[str], int] | None
    """None: there is no server whose loss could be measured."""
    restart: Callable[[str], None]
    ours: bool = False


@contextmanager
def _bookies(directory: Path) -> Iterator[tuple[BookieProcesses, ZooKeeperServer]]:
    with ZooKeeperServer(directory / "zookeeper") as zookeeper:
        metadata = f"zk+hierarchical://{zookeeper.address}/ledgers"
        with BookieProcesses(directory, metadata=metadata) as cluster:
            yield cluster, zookeeper


@contextmanager
def _ours(directory: Path) -> Iterator[RunningRival]:
    with _bookies(directory) as (cluster, _):
        listen = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        owner, other = listen
        gateways = {
            owner: cluster.start("gateway", "grpc", "--listen", owner),
            other: cluster.start("gateway", "grpc", "--listen", other, inside=APART),
        }
        driver = drivers.our_driver(directory, cluster.metadata, ",".join(listen))
        try:
            yield RunningRival(driver, lambda name: gateways[name].pid, lambda name: None, ours=True)
        finally:
            driver.stop()


@contextmanager
def _distributedlog(directory: Path) -> Iterator[RunningRival]:
    jars()
    with _bookies(directory) as (_, zookeeper):
        driver = drivers.distributedlog_driver(directory, f"{zookeeper.address}/ledgers")
        try:
            yield RunningRival(driver, None, lambda name: None)
        finally:
            driver.stop()


@contextmanager
def _served(servers: RivalServers, load: Callable[[Path, str], LoadDriver]) -> Iterator[RunningRival]:
    with servers:
        driver = load(servers.directory, servers.address)
        try:
            yield RunningRival(driver, servers.pid, servers.launch)
        finally:
            driver.stop()


def _kafka(directory: Path) -> AbstractContextManager[RunningRival]:
    return _served(KafkaServers(directory, drivers.kafka_jars()), drivers.kafka_driver)


def _nats(directory: Path) -> AbstractContextManager[RunningRival]:
    return _served(NatsServers(directory, drivers.nats_programs()[0]), drivers.nats_driver)


SYSTEMS: Final[dict[str, Callable[[Path], AbstractContextManager[RunningRival]]]] = {
    OURS: _ours,
    "Kafka": _kafka,
    "NATS JetStream": _nats,
    "DistributedLog": _distributedlog,
}


def measure_round(running: RunningRival, number: int, seconds: float, wanted: Sequence[RivalRow]) -> dict[str, float]:
    """All rows of one system, once."""
    if running.pid is not None:
        _patiently(running.driver, f"ready-{number}")
    figures: dict[str, float] = {}
    answers: dict[str, dict[str, float]] = {}
    for row in wanted:
        topic = f"{row.key}-{number}"
        if row.op in OURS_ALONE and not running.ours:
            continue
        if row.op == "failover":
            if running.pid is None:
                continue
            leader = str(_patiently(running.driver, topic)["leader"])
            said = running.driver.tell("failover", _ANSWER_S, topic=topic, kill=running.pid(leader))
            running.restart(leader)
        elif (same := str((row.op, sorted(row.arguments.items())))) in answers:
            said = answers[same]
        else:
            said = running.driver.tell(row.op, _ANSWER_S, topic=topic, seconds=seconds, **row.arguments)
            answers[same] = said
        figures[row.key] = said[row.field]
        print(f"    {row.says}: {said[row.field]:,.2f} {row.unit}", flush=True)
    return figures


def _patiently(driver: LoadDriver, topic: str) -> dict[str, object]:
    """Ask for the owner of a new topic, until there is one."""
    deadline = time.monotonic() + 30 * stretch()
    while True:
        try:
            return driver.tell("leader", _ANSWER_S, topic=topic)
        except DriverError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def main(arguments: Sequence[str]) -> None:
    """Measure, print the table, and with ``--write`` put it into docs/benchmarks.md."""
    parser = argparse.ArgumentParser(prog="make bench-streams", description="Our streams beside other durable logs.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each load")
    parser.add_argument("--systems", nargs="*", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--rows", nargs="*", choices=[row.key for row in ROWS], default=[row.key for row in ROWS])
    parser.add_argument("--dir", type=Path, help="where data go: put it on the disk that matters")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md, too")
    options = parser.parse_args(arguments)
    wanted = [row for row in ROWS if row.key in options.rows]
    seen: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in options.systems}
    missing: dict[str, str] = {}
    syncs: list[float] = []
    with TemporaryDirectory(prefix="bk-rivals-", dir=options.dir) as name:
        for number in range(options.rounds):
            for system in options.systems:
                if system in missing:
                    continue
                directory = Path(name) / f"{system.split()[0]}-{number}"
                directory.mkdir()
                syncs.append(synced_write_us(directory))
                print(f"round {number + 1}, {system}; a synced write takes {syncs[-1]:.0f} µs", flush=True)
                try:
                    with SYSTEMS[system](directory) as running:
                        for key, figure in measure_round(running, number, options.seconds, wanted).items():
                            seen[system][key].append(figure)
                except (BookKeeperError, RuntimeError, OSError) as error:
                    missing[system] = str(error)
                    print(f"  LEFT OUT: {system}: {error}", flush=True)
    kept = {system: rows for system, rows in seen.items() if rows}
    text = section(kept, missing, syncs)
    print(f"\n{text}")
    if options.write:
        PAGE.write_text(placed(PAGE.read_text(), text))
