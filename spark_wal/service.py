"""A checkpoint service for a notebook or a script: ``with checkpoint_service(uri) as wal: ...``"""

from __future__ import annotations

import asyncio
import re
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bookkeeper.errors import ConfigError, in_words
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.ids import Address
from bookkeeper.real import run, system_seams
from spark_wal.spark_access import GatewayAccess, write_settings
from spark_wal.webhdfs.config import DEFAULT_LISTEN, KEEP_S, GatewayConfig, OwnerConfig
from spark_wal.webhdfs.ownership.backing import DEFAULT_NAMESPACE
from spark_wal.webhdfs.service import ServingConfig, WebHdfsService

_SCHEMES: Final = ("http", "https", "webhdfs", "swebhdfs")
"""The schemes of a running gateway's URL."""

_REACH_S: Final = 10.0
"""Seconds that a gateway may take to accept a connection."""

_MANAGER: Final = "org.apache.spark.sql.execution.streaming{}.FileSystemBasedCheckpointFileManager"

_FAILOVER: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


def spark_conf(location: str = "", *, spark_version: str | None = None, gateways: Sequence[str] = ()) -> dict[str, str]:
    """The settings that a Spark session needs for a checkpoint on a gateway. None of them is a jar.

    ``location`` is where the checkpoint will be; the settings are the same for every gateway address.
    ``spark_version`` defaults to the installed PySpark. ``gateways`` are the addresses (HOST:PORT) of several gateways
    of one namespace; then ``location`` has one name for all of them instead of a host: ``webhdfs://NAME/...``.

    * The file manager that works on FileSystem needs 3 to 4 requests a file instead of 9. It is also the safer one,
      because the gateway's rename is atomic and never overwrites.
    * Retries with a pause (200 ms, 300 times): without them the restart of a gateway ends the query.
    * A host that no longer answers is noticed in 5 s.
    * Java keeps 5 idle connections to a host by default; many state partitions need more.
    * The write-ahead logs of DStreams close the file of each record: else a record that was acknowledged lies in an
      upload that is still open, and is lost with the driver.
    """
    if location and urlsplit(location).scheme not in ("webhdfs", "swebhdfs"):
        raise ConfigError(f"expected webhdfs://HOST:PORT/NAME, got {location!r}")
    named = _named(location, gateways) if gateways else {}
    options = "-Dhttp.maxConnections=64"
    return {
        "spark.sql.streaming.checkpointFileManagerClass": file_manager(spark_version),
        "spark.hadoop.dfs.http.client.retry.policy.enabled": "true",
        "spark.hadoop.dfs.http.client.retry.policy.spec": "200,300",
        "spark.hadoop.dfs.webhdfs.socket.connect-timeout": "5s",
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
        "spark.streaming.driver.writeAheadLog.closeFileAfterWrite": "true",
        "spark.streaming.receiver.writeAheadLog.closeFileAfterWrite": "true",
        **named,
    }


def _named(location: str, gateways: Sequence[str]) -> dict[str, str]:
    """Settings that give several gateways one name. Hadoop's client asks them in this order, and asks the next one when
    a gateway stands by or cannot be reached.
    """
    parts = urlsplit(location)
    name = parts.netloc
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"with gateways= the location must name all of them together, like webhdfs://NAME/PATH; got {location!r}"
        )
    each = {f"g{number}": str(Address.parse(gateway)) for number, gateway in enumerate(gateways, 1)}
    protocol = "https" if parts.scheme == "swebhdfs" else "http"
    hadoop = "spark.hadoop.dfs"
    return {
        f"{hadoop}.nameservices": name,
        f"{hadoop}.ha.namenodes.{name}": ",".join(each),
        **{f"{hadoop}.namenode.{protocol}-address.{name}.{key}": address for key, address in each.items()},
        f"{hadoop}.client.failover.proxy.provider.{name}": _FAILOVER,
    }


def file_manager(spark_version: str | None = None) -> str:
    """The class name of the FileSystem-based checkpoint file manager: its package changed in Spark 4.1."""
    spark_version = spark_version or _installed()
    return _MANAGER.format(".checkpointing" if _version(spark_version) >= (4, 1) else "")


def _installed() -> str:
    """The version of the installed PySpark, for callers that give none."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "4.3.0"


def _version(text: str) -> tuple[int, int]:
    major, minor = (int(part) for part in text.split(".")[:2])
    return major, minor


class CheckpointService:
    """A gateway that Spark can reach."""

    def __init__(self, address: str, *, tls: bool = False, access: GatewayAccess | None = None) -> None:
        self.address = address
        """host:port"""
        self._tls = tls
        self._access = access or GatewayAccess()
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def at(cls, url: str, *, access: GatewayAccess | None = None) -> CheckpointService:
        """The gateway at ``http://HOST:PORT`` (or ``https``, ``webhdfs``, ``swebhdfs``). This sends no request to it.

        Raises:
            ConfigError: the address cannot be used.
        """
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise ConfigError(f"expected http://HOST:PORT, got {url!r}")
        return cls(parts.netloc, tls=parts.scheme in ("https", "swebhdfs"), access=access)

    @property
    def url(self) -> str:
        """The gateway's URL for browsers, curl and fsspec."""
        return f"{'https' if self._tls else 'http'}://{self.address}"

    def location(self, name: str) -> str:
        """The ``checkpointLocation`` of a checkpoint called ``name`` (a path below the root)."""
        return f"{'swebhdfs' if self._tls else 'webhdfs'}://{self.address}/{name.strip('/')}"

    def spark_conf(self, directory: str | None = None, *, spark_version: str | None = None) -> dict[str, str]:
        """Settings for ``SparkSession.builder.config(map=...)``; see :func:`spark_conf`.

        For a protected gateway this includes what TLS and tokens need. Their files (trust store, key store,
        ``ssl-client.xml``) go into ``directory``, by default a temporary one that is removed when the service is
        closed. Executors get their files through ``spark.files``.

        Raises:
            ConfigError: a file cannot be used, or this Spark does not support it. OSError: a file cannot be written.
        """
        conf = spark_conf(spark_version=spark_version)
        if not self._tls and self._access == GatewayAccess():
            return conf
        if directory is None:
            self._directory = self._directory or tempfile.TemporaryDirectory(prefix="spark-wal-")
            directory = self._directory.name
        settings = write_settings(
            self._access,
            Address.parse(self.address),
            Path(directory).resolve(),
            tls=self._tls,
            spark_version=_version(spark_version or _installed()),
        )
        conf |= settings.conf
        for kind, options in (("driver", settings.driver_options), ("executor", settings.executor_options)):
            name = f"spark.{kind}.extraJavaOptions"
            conf[name] = " ".join([conf[name], *options])
        return conf

    def close(self) -> None:
        """Remove the files of :meth:`spark_conf`. Idempotent."""
        directory, self._directory = self._directory, None
        if directory is not None:
            directory.cleanup()


@contextmanager
def checkpoint_service(
    uri: str,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    listen: Address | str = DEFAULT_LISTEN,
    protection: AccessConfig | None = None,
    access: GatewayAccess | None = None,
    temporary_keep_s: float = KEEP_S,
    take_over: bool = False,
) -> Iterator[CheckpointService]:
    """Use the gateway at ``http://host:port``, or start one in this process, in a thread of its own.

    ``uri`` is a cluster's metadata URI (``embedded:///DIR?bookies=3`` has its bookies in this process too),
    ``file:///DIR`` for a namespace without replication, or the URL of a running gateway. The gateway listens on
    ``listen``; keep the port from run to run, because Spark writes full addresses into sink metadata. ``access`` is how
    Spark reaches a protected gateway (TLS, certificates, tokens). ``protection`` is how a gateway that this starts
    protects itself. ``temporary_keep_s`` is how long a gateway that this starts keeps a temporary file of Spark's that
    nobody touches; 0: for ever.

    If another gateway owns the namespace on that cluster, an error names that gateway. With ``take_over`` this gateway
    takes the namespace, and the other one stands by; both log it. The owner of a ``file:///DIR`` keeps it until it
    ends.

    Raises:
        ConfigError: the address cannot be used, or settings contradict each other.
        ConnectionError: nobody listens at the URL of a running gateway.
        NamespaceOwnedError: another gateway owns the namespace.
        BookKeeperError, JournalError, OSError: the gateway cannot be started.
    """
    parts = urlsplit(uri)
    if parts.scheme in _SCHEMES:
        running = CheckpointService.at(uri, access=access)
        if protection is not None:
            raise ConfigError(
                f"protection is for a gateway that is started here, and the one at {uri} runs already with its "
                "own: leave it out"
            )
        if temporary_keep_s != KEEP_S:
            raise ConfigError(
                f"temporary_keep_s is for a gateway that is started here, and the one at {uri} runs already "
                "with its own: leave it out"
            )
        if take_over:
            raise ConfigError(
                f"take_over is for a gateway that is started here, and the one at {uri} runs already: leave it out"
            )
        _require_listening(uri)
        try:
            yield running
        finally:
            running.close()
        return
    where = Address.parse(listen) if isinstance(listen, str) else listen
    protection = protection or AccessConfig()
    config = ServingConfig(
        uri=uri,
        namespace=namespace,
        listen=where,
        access=protection,
        gateway=GatewayConfig(owner=OwnerConfig(temporary_keep_s=temporary_keep_s)),
        take_over=take_over,
        stand_by=False,
    )
    thread = _GatewayThread(config)
    address = thread.start()
    service = CheckpointService(str(address), tls=protection.tls is not None, access=access)
    try:
        yield service
    finally:
        service.close()
        thread.stop()


def _require_listening(uri: str) -> None:
    """Check that the gateway accepts connections. Otherwise a query would fail minutes later, with a long trace.

    Raises: ConnectionError, ConfigError.
    """
    parts = urlsplit(uri)
    try:
        port = parts.port
    except ValueError:
        port = None
    if port is None:
        raise ConfigError(
            f"expected http://HOST:PORT, got {uri!r}: the port is missing, for instance {DEFAULT_LISTEN.port}"
        )
    try:
        socket.create_connection((parts.hostname, port), timeout=_REACH_S).close()
    except OSError as error:
        raise ConnectionError(
            f"no gateway answers at {uri} ({in_words(error)}): start one (bk gateway webhdfs, or bk "
            "standalone), or give a cluster's address, and a gateway is started here"
        ) from error


class _GatewayThread:
    """A gateway on an event loop in a thread."""

    def __init__(self, config: ServingConfig) -> None:
        self._config = config
        self._started = threading.Event()
        self._address: Address | None = None
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="spark_wal gateway", daemon=True)

    def start(self) -> Address:
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        assert self._address is not None
        return self._address

    def stop(self) -> None:
        assert self._loop is not None and self._stop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            run(self._serve())
        except BaseException as error:  # the thread that started this one raises it
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with WebHdfsService(self._config, system_seams()) as service:
            self._address = service.address
            self._started.set()
            await self._stop.wait()
