"""Three bookies of one kind in a cluster of their own: started, killed, weighed. All of it blocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from benchmarks.apache.surroundings import Forwarder, Surroundings
from benchmarks.processes import ROOT
from bookkeeper.errors import BookieUnavailableError
from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import ProgressSource, StalledError, until
from bookkeeper.launchers.zookeeper import free_port, tied_to_parent
from bookkeeper.meta import init_cluster
from bookkeeper.meta.records import service_info
from bookkeeper.real import run, system_seams
from examples.apache_servers.bookie import ApacheBookie
from examples.apache_servers.process import RELEASE
from examples.apache_servers.settings import QUICK_ADDS, java_uri
from examples.certificates import Authority, Certificate

BOOKIES: Final = 3
_HOST: Final = "127.0.0.1"

AT_FULL_LOAD: Final = {
    "maxPendingAddRequestsPerThread": 0,
    "journalMaxBackups": 0,
    "zkTimeout": 10_000,
}
"""The first: Apache's client takes a bookie that refuses for a failed one, and over protocol v2 at full load closes the
ledger. The second saves space only: journals that are not needed any more go at once. The third is as shipped."""


class BenchmarkCluster(ABC):
    """Bookies of one kind. Everything it started ends with :meth:`close`, or with this process.

    ``spares`` more than ``BOOKIES`` may be launched after :meth:`open`. ``settings`` are the bookies' own, by the names
    of their kind.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        zookeeper: Address,
        surroundings: Surroundings,
        cache: Path,
        *,
        spares: int = 0,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.name = name
        self._all = BOOKIES + spares
        self._settings = dict(settings or {})
        self.directory = directory
        self.root = f"/{directory.parent.name}-{name}"
        self.uri = f"zk://{zookeeper}{self.root}"
        self._surroundings = surroundings
        self._ports = [free_port() for _ in range(self._all)]
        self._zookeeper = KazooClient(str(zookeeper), timeout=30.0 * stretch())
        self._forwarder: Forwarder | None = None
        self._far_ports = [free_port() for _ in range(self._all)] if surroundings.delay_us else self._ports
        self._cache = cache
        authority = Authority(directory / "certificates") if surroundings.encrypted else None
        self._certificate = authority.server(name) if authority else None
        self.trust = authority.ca if authority else None
        """PEM: who vouches for the bookies; None: they are spoken to in clear."""

    @property
    def pids(self) -> list[int]:
        """Of the bookies that run."""
        return [pid for number in range(self._all) if (pid := self.pid(number)) is not None]

    @abstractmethod
    def launch(self, number: int) -> None:
        """Start a bookie and do not wait."""

    @abstractmethod
    def end(self, number: int, *, kill: bool = False) -> None:
        """End a bookie, and wait."""

    @abstractmethod
    def pid(self, number: int) -> int | None:
        """None: it does not run."""

    def open(self) -> None:
        """Make the cluster and start its bookies."""
        self._zookeeper.start(timeout=30 * stretch())
        run(init_cluster(self.uri, system_seams()))
        if self._surroundings.delay_us:
            ports = list(zip(self._far_ports, self._ports, strict=True))
            self._forwarder = Forwarder(self._cache, self._surroundings.delay_us, ports)
        for number in range(BOOKIES):
            self.launch(number)
        self.await_registered(BOOKIES)
        self.advertise()

    @abstractmethod
    def advertise(self) -> None:
        """Have ZooKeeper say that bookies are reached through the forwarder."""

    def registered(self) -> list[str]:
        """The bookies that ZooKeeper knows to be writable."""
        return sorted(set(self.children("available")) - {"readonly"})

    def children(self, name: str) -> list[str]:
        """The names below a node of the cluster; none where there is no such node."""
        try:
            return list(self._zookeeper.get_children(f"{self.root}/{name}"))
        except NoNodeError:
            return []

    def await_registered(self, count: int) -> None:
        """Until exactly so many are. Raises: BookieUnavailableError."""
        try:
            until(lambda: len(self.registered()) == count, self.name, ProgressSource(files=[self.directory]))
        except StalledError as error:
            raise BookieUnavailableError(
                f"{self.name}: {self.registered()} are registered, {count} should be; see {self.directory}"
            ) from error

    def close(self) -> None:
        """End everything, at once: nobody needs the data any more. Idempotent."""
        for number in range(self._all):
            self.end(number, kill=True)
        if self._forwarder is not None:
            self._forwarder.stop()
        self._zookeeper.stop()
        self._zookeeper.close()

    def resident_mb(self) -> float:
        """The largest resident set among the bookies."""
        page = os.sysconf("SC_PAGE_SIZE")
        return max(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page / 1e6 for pid in self.pids)


class OurCluster(BenchmarkCluster):
    """Bookies of ours, each a process of its own, as ``bk bookie`` starts them."""

    def __init__(
        self,
        name: str,
        directory: Path,
        zookeeper: Address,
        surroundings: Surroundings,
        cache: Path,
        *,
        spares: int = 0,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(name, directory, zookeeper, surroundings, cache, spares=spares, settings=settings)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def launch(self, number: int) -> None:
        name = f"b{number + 1}"
        command = [sys.executable, "-m", "bookkeeper.admin", "bookie", "--metadata", self.uri, "--bookie-id", name]
        command += ["--dir", str(self.directory / name), "--listen", f"{_HOST}:{self._ports[number]}"]
        if self._far_ports is not self._ports:
            command += ["--advertise", f"{_HOST}:{self._far_ports[number]}"]
        if self._certificate is not None:
            command += ["--tls-cert", self._certificate.cert, "--tls-key", self._certificate.key]
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._settings:
            command += ["--config", str(self._config())]
        with (self.directory / f"{name}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                tied_to_parent(command),
                env={**_installed(), **self._surroundings.environment},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _config(self) -> Path:
        path = self.directory / "bookie.toml"
        storage = self._settings.get("storage", {})
        assert isinstance(storage, Mapping)
        lines = [f"{name} = {value}" for name, value in self._settings.items() if name != "storage"]
        lines += ["[storage]", *(f"{name} = {value}" for name, value in storage.items())]
        path.write_text("\n".join(lines) + "\n")
        return path

    def advertise(self) -> None:
        pass  # they said so when they registered: --advertise

    def end(self, number: int, *, kill: bool = False) -> None:
        process = self._processes.pop(number, None)
        if process is None:
            return
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def pid(self, number: int) -> int | None:
        process = self._processes.get(number)
        return process.pid if process is not None and process.poll() is None else None


class ApacheCluster(BenchmarkCluster):
    """Bookies of Apache's, with the JVM settings of its release."""

    def __init__(
        self,
        name: str,
        directory: Path,
        zookeeper: Address,
        surroundings: Surroundings,
        cache: Path,
        *,
        tuned: bool,
        heap_mb: int,
        spares: int = 0,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(name, directory, zookeeper, surroundings, cache, spares=spares, settings=settings)
        self._tuned = tuned
        self._heap_mb = heap_mb
        self._bookies: list[ApacheBookie] = []

    def open(self) -> None:
        self._bookies = [self._bookie(number) for number in range(self._all)]
        super().open()

    def launch(self, number: int) -> None:
        with _environment(self._surroundings.environment):
            self._bookies[number].launch()

    def end(self, number: int, *, kill: bool = False) -> None:
        if number < len(self._bookies):
            (self._bookies[number].kill if kill else self._bookies[number].stop)()

    def pid(self, number: int) -> int | None:
        return self._bookies[number].pid if number < len(self._bookies) else None

    def advertise(self) -> None:
        if self._far_ports is self._ports:
            return
        for number, port in enumerate(self._far_ports):
            path = f"{self.root}/available/b{number + 1}"
            info = service_info.decode(self._zookeeper.get(path)[0])
            far = [replace(endpoint, port=port) for endpoint in info.endpoints if endpoint.protocol == "bookie-rpc"]
            self._zookeeper.set(path, service_info.encode(replace(info, endpoints=tuple(far))))

    def _bookie(self, number: int) -> ApacheBookie:
        settings: dict[str, object] = {**AT_FULL_LOAD, "bookieId": f"b{number + 1}"}
        if self._tuned:
            settings |= QUICK_ADDS
        if self._certificate is not None:
            settings |= self._tls(self._certificate)
        settings |= self._settings
        return ApacheBookie(
            self.directory / f"b{number + 1}",
            self.uri,
            port=self._ports[number],
            settings=settings,
            small=False,
            heap_mb=self._heap_mb,
            options=(*RELEASE, f"-Xms{self._heap_mb}m", f"-XX:MaxDirectMemorySize={2 * self._heap_mb}m"),
            level="ERROR",
        )

    def _tls(self, certificate: Certificate) -> Mapping[str, object]:
        return {
            "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
            "tlsProvider": "OpenSSL",
            "tlsClientAuthentication": False,
            "tlsKeyStoreType": "PKCS12",
            "tlsKeyStore": certificate.pkcs12,
            "tlsKeyStorePasswordPath": certificate.password_file,
        }


def as_java_reads(uri: str) -> str:
    """A cluster's address for a Java client."""
    return java_uri(uri)


def _installed() -> dict[str, str]:
    """Our environment, but modules are compiled once, as those of an installed package are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    """Children started meanwhile get these variables."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
