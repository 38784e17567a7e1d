"""A cluster whose bookies and autorecovery are of one kind, ours or Apache's. All of it blocks."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from benchmarks.apache.clusters import ApacheCluster, BenchmarkCluster, OurCluster
from benchmarks.apache.surroundings import PLAIN
from benchmarks.processes import ROOT
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import until
from bookkeeper.launchers.zookeeper import ZooKeeperServer, tied_to_parent
from examples.apache_servers import JavaProcess, client_settings, java_command
from examples.apache_servers.process import RELEASE
from examples.apache_servers.settings import write_settings

OURS: Final = "ours"
APACHE: Final = "apache"
SESSION_S: Final = 10
"""How long a bookie may be silent before ZooKeeper ends its session: our default, and Apache's."""
_MAIN: Final = "org.apache.bookkeeper.replication.AutoRecoveryMain"


def wait_until(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Poll. Raises TimeoutError, which says what did not come."""
    until(condition, what, quiet_s=deadline_s)


class HealedCluster(ABC):
    """Three bookies, one more when asked for, and autorecovery."""

    kind: str

    def __init__(
        self, directory: Path, zookeeper: ZooKeeperServer, name: str, settings: Mapping[str, object] | None = None
    ) -> None:
        self.zookeeper = zookeeper
        self.home = directory / name
        self.home.mkdir(parents=True)
        self.cluster = self._cluster(settings or {})
        self._healers: list[Callable[[], None]] = []

    @property
    def uri(self) -> str:
        return self.cluster.uri

    @abstractmethod
    def _cluster(self, settings: Mapping[str, object]) -> BenchmarkCluster: ...

    @abstractmethod
    def heal(self, *, delay_s: int = 0, bytes_per_s: int = 0) -> None:
        """Start autorecovery, and wait until it is the auditor."""

    def lose(self, number: int) -> tuple[str, float, float]:
        """Kill a bookie. Returns its id, when it was killed and when ZooKeeper had ended its session."""
        before, killed = set(self.cluster.registered()), time.monotonic()
        self.cluster.end(number, kill=True)
        self.cluster.await_registered(len(before) - 1)
        [bookie] = before - set(self.cluster.registered())
        return bookie, killed, time.monotonic()

    def is_audited(self) -> bool:
        """Whether there is an auditor."""
        return bool(self.cluster.children("underreplication/auditorelection"))

    def requests(self) -> int:
        """How many requests ZooKeeper has received."""
        with socket.create_connection(self.zookeeper.address, timeout=5.0 * stretch()) as connection:
            connection.sendall(b"srvr")
            answer = b""
            while chunk := connection.recv(4096):
                answer += chunk
        found = re.search(rb"Received: (\d+)", answer)
        assert found is not None, answer
        return int(found[1])

    def __enter__(self) -> Self:
        self.cluster.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stop in self._healers:
            stop()
        self.cluster.close()
        if kind is None:
            shutil.rmtree(self.home, ignore_errors=True)


class OurHealedCluster(HealedCluster):
    """All of ours."""

    kind = OURS

    def _cluster(self, settings: Mapping[str, object]) -> BenchmarkCluster:
        where = (OURS, self.home / OURS, self.zookeeper.address, PLAIN, self.home)
        return OurCluster(*where, spares=1, settings=settings)

    def heal(self, *, delay_s: int = 0, bytes_per_s: int = 0) -> None:
        command = [sys.executable, "-m", "bookkeeper.admin", "autorecovery", "run", "--metadata", self.uri]
        command += ["--lost-bookie-delay", str(delay_s)]
        command += ["--throttle", str(bytes_per_s)] if bytes_per_s else []
        with (self.home / "healer.log").open("ab") as log:
            process = subprocess.Popen(tied_to_parent(command), cwd=ROOT, stdout=log, stderr=log)

        def stop() -> None:
            process.send_signal(signal.SIGTERM)
            process.wait(20)

        self._healers.append(stop)
        wait_until(self.is_audited, 30, f"an auditor; see {self.home / 'healer.log'}")


class ApacheHealedCluster(HealedCluster):
    """All of Apache's, with the settings of its release."""

    kind = APACHE

    def _cluster(self, settings: Mapping[str, object]) -> BenchmarkCluster:
        where = (APACHE, self.home / APACHE, self.zookeeper.address, PLAIN, self.home)
        return ApacheCluster(*where, tuned=False, heap_mb=512, spares=1, settings=settings)

    def heal(self, *, delay_s: int = 0, bytes_per_s: int = 0) -> None:
        directory = self.home / "healer"
        settings: dict[str, object] = {
            "bookiePort": 1,
            "advertisedAddress": "127.0.0.1",
            "allowLoopback": True,
            "lostBookieRecoveryDelay": delay_s,
            "replicationRateByBytes": bytes_per_s or -1,
            "journalDirectories": directory,
            "ledgerDirectories": directory,
            "reppDnsResolverClass": "org.apache.bookkeeper.net.ScriptBasedMapping",
        }
        configuration = write_settings(directory / "conf", client_settings(self.uri, settings))
        command = java_command(
            directory, _MAIN, "-c", str(configuration), heap_mb=512, options=(*RELEASE, "-Xms512m"), level="ERROR"
        )
        process = JavaProcess("java-healer", directory, command)
        process.launch()
        self._healers.append(process.stop)
        wait_until(self.is_audited, 60, f"an auditor; see {process.log}")


@contextmanager
def zookeeper_in(directory: Path) -> Iterator[ZooKeeperServer]:
    """A ZooKeeper for all clusters of a run."""
    with ZooKeeperServer(directory / "zookeeper") as server:
        yield server
