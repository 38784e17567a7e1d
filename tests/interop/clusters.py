"""One ZooKeeper and three clusters in it: four bookies of ours, four of Java's, two of each. All real processes.

Four, because a cell that kills a bookie needs another to take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal

from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from bookkeeper.meta import init_cluster
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import run, system_seams
from examples.apache_servers import QUICK_ADDS, ApacheBookie
from examples.certificates import Authority, Certificate
from tests.integration.processes import Process, until
from tests.interop.apache_shell import apache_init
from tests.interop.clients import Client, OurClient
from tests.interop.java_client import Java, JavaClient

Kind = Literal["ours", "java"]
"""Of a bookie, and of a client."""
Bookies = Literal["ours", "java", "mixed"]

WHO_IS_IN: Final[Mapping[Bookies, tuple[Kind, ...]]] = {
    "ours": ("ours", "ours", "ours", "ours"),
    "java": ("java", "java", "java", "java"),
    "mixed": ("ours", "java", "ours", "java"),
}
ROOTS: Final[Mapping[Bookies, str]] = {"ours": "/ledgers", "java": "/java-ledgers", "mixed": "/mixed-ledgers"}
"""Ours has the default: Apache's benchmark knows no other."""
_JOURNAL_BYTES: Final = 8 * 1024 * 1024


class OurBookie:
    """``bk bookie`` as a process."""

    kind: Kind = "ours"

    def __init__(self, name: str, directory: Path, uri: str, certificate: Certificate) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        settings = directory / "bookie.toml"
        tls = f'[tls]\nmode = "offered"\ncert = "{certificate.cert}"\nkey = "{certificate.key}"\n'
        settings.write_text(f"[storage]\njournal_file_bytes = {_JOURNAL_BYTES}\nreserve_bytes = 1048576\n{tls}")
        where = ("--metadata", uri, "--dir", str(directory / "data"), "--config", str(settings))
        self.bookie_id = name if name.endswith("1") else f"127.0.0.1:{free_port()}"
        port = self.bookie_id.rpartition(":")[2] if ":" in self.bookie_id else str(free_port())
        self.process = Process(name, directory, "bookie", *where, "--bookie-id", self.bookie_id, "--port", port)

    def launch(self) -> None:
        self.process.start()

    def await_serving(self) -> None:
        self.process.until_said(r"serves at \S+")

    def kill(self) -> None:
        self.process.kill()

    @property
    def log(self) -> Path:
        return self.process._log


class JavaBookie:
    """Apache's bookie as a process."""

    kind: Kind = "java"

    def __init__(self, name: str, directory: Path, uri: str, certificate: Certificate) -> None:
        tls = {
            "tlsProvider": "JDK",
            "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
            "tlsKeyStoreType": "PKCS12",
            "tlsKeyStore": certificate.pkcs12,
            "tlsKeyStorePasswordPath": certificate.password_file,
        }
        self._bookie = ApacheBookie(directory, uri, settings={**QUICK_ADDS, **tls})
        self.bookie_id = self._bookie.bookie_id
        self.log = self._bookie.log

    def launch(self) -> None:
        self._bookie.launch()

    def await_serving(self) -> None:
        self._bookie.await_serving()

    def kill(self) -> None:
        self._bookie.kill()


Bookie = OurBookie | JavaBookie


class Cluster:
    """Four bookies. They are launched by the constructor, and all at once."""

    def __init__(self, bookies: Bookies, directory: Path, uri: str, certificate: Certificate) -> None:
        self.uri = uri
        self.coming_back: list[Bookie] = []
        """Launched again and not waited for."""
        if bookies == "ours":
            run(init_cluster(uri, system_seams()))
        else:
            apache_init(uri)
        self.bookies: list[Bookie] = []
        for number, kind in enumerate(WHO_IS_IN[bookies], 1):
            name = f"{kind}-{number}"
            make: Callable[..., Bookie] = OurBookie if kind == "ours" else JavaBookie
            self.bookies.append(make(name, directory / name, uri, certificate))
        for bookie in self.bookies:
            bookie.launch()

    def __getitem__(self, bookie_id: str) -> Bookie:
        return next(bookie for bookie in self.bookies if bookie.bookie_id == bookie_id)

    def await_serving(self) -> None:
        for bookie in self.bookies:
            bookie.await_serving()

    def stop(self) -> None:
        for bookie in self.bookies:
            bookie.kill()


class Clusters(Mapping[Bookies, Cluster]):
    """The clusters of one ZooKeeper: each is started when it is first asked for, so that a few cells cost little."""

    def __init__(self, directory: Path, zookeeper: str, certificate: Certificate) -> None:
        self._directory = directory
        self._zookeeper = zookeeper
        self._certificate = certificate
        self._started: dict[Bookies, Cluster] = {}

    def start(self, wanted: Sequence[Bookies]) -> None:
        """Start some at once; they serve when this returns."""
        begun = [self._launch(bookies) for bookies in wanted if bookies not in self._started]
        for cluster in begun:
            cluster.await_serving()

    def __getitem__(self, bookies: Bookies) -> Cluster:
        self.start((bookies,))
        return self._started[bookies]

    def __iter__(self) -> Iterator[Bookies]:
        return iter(self._started)

    def __len__(self) -> int:
        return len(self._started)

    def stop(self) -> None:
        for cluster in self._started.values():
            cluster.stop()

    def _launch(self, bookies: Bookies) -> Cluster:
        uri = f"zk://{self._zookeeper}{ROOTS[bookies]}"
        cluster = self._started[bookies] = Cluster(bookies, self._directory / bookies, uri, self._certificate)
        return cluster


class Site:
    """ZooKeeper, the clusters, a Java process for clients, and the clients that cells have asked for."""

    def __init__(self, directory: Path, wanted: Sequence[Bookies] = ()) -> None:
        self.directory = directory
        self._clients: dict[tuple[Kind, Bookies, str, bool], Client] = {}
        self._stack = ExitStack()
        with ExitStack() as starting:
            self.zookeeper = starting.enter_context(ZooKeeperServer(directory / "zookeeper"))
            self.authority = Authority(directory / "certificates")
            self.strangers = Authority(directory / "strangers")
            certificate = self.authority.server()
            self.clusters = Clusters(directory, str(self.zookeeper.address), certificate)
            starting.callback(self.clusters.stop)
            self.clusters.start(wanted)
            self.java = Java(directory / "java-client")
            starting.callback(self.java.stop)
            self._stack = starting.pop_all()

    def client(self, kind: Kind, bookies: Bookies, protocol: str, *, tls: bool = False) -> Client:
        """A client that cells share."""
        key = (kind, bookies, protocol, tls)
        if key not in self._clients:
            self._clients[key] = self.new_client(kind, bookies, protocol, tls=tls)
        return self._clients[key]

    def new_client(
        self,
        kind: Kind,
        bookies: Bookies,
        protocol: str,
        *,
        tls: bool = False,
        trusts: Authority | None = None,
        java: Java | None = None,
    ) -> Client:
        """A client of one's own, in the process ``java`` if it is Java's; ``trusts`` others than the bookies' own."""
        trusted = trusts or self.authority
        uri = self.clusters[bookies].uri
        if kind == "ours":
            return OurClient(uri, protocol, TlsConfig(ca=trusted.ca) if tls else None)
        settings = {
            "tlsProvider": "JDK",
            "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
            "tlsTrustStoreType": "PKCS12",
            "tlsTrustStore": trusted.truststore,
            "tlsTrustStorePasswordPath": trusted.password_file,
            "tlsHostnameVerificationEnabled": True,
        }
        return JavaClient(java or self.java, uri, protocol, settings if tls else None)

    def await_whole(self, bookies: Bookies) -> None:
        """Wait until bookies that a cell has killed are back, for both languages."""
        cluster = self.clusters[bookies]
        if not cluster.coming_back:
            return
        cluster.await_serving()
        until(lambda: set(self.registered(bookies)) == {each.bookie_id for each in cluster.bookies}, what="all back")
        cluster.coming_back.clear()

    def registered(self, bookies: Bookies) -> list[str]:
        """Ids of the writable bookies, as the metadata store has them now."""
        from bookkeeper.meta import Metadata

        async def ask() -> list[str]:
            metadata = await Metadata.connect(self.clusters[bookies].uri, system_seams())
            try:
                return [str(bookie) for bookie in await metadata.bookies.writable()]
            finally:
                await metadata.close()

        return run(ask())

    def stop(self) -> None:
        """End everything. Idempotent."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._stack.close()


@contextmanager
def site(directory: Path, wanted: Sequence[Bookies] = ()) -> Iterator[Site]:
    """Everything that the matrix needs, gone at the end; the clusters that are wanted run at once, others when they
    are first asked for."""
    running = Site(directory, wanted)
    try:
        yield running
    finally:
        running.stop()
