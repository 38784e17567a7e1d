"""A checkpoint service for a notebook or a script: ``with checkpoint_service(uri) as wal: ...``"""

from __future__ import annotations

import asyncio
import re
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bookkeeper.errors import ConfigError, in_words
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.ids import Address
from bookkeeper.real import run, system_seams
from spark_wal.gateway_location import SCHEMES, GatewayLocation, is_name
from spark_wal.spark_access import GatewayAccess, write_settings
from spark_wal.webhdfs.config import DEFAULT_LISTEN, GROWING, KEEP_S, GatewayConfig, OwnerConfig
from spark_wal.webhdfs.ownership.backing import DEFAULT_NAMESPACE
from spark_wal.webhdfs.service import ServingConfig, WebHdfsService

_REACH_S: Final = 10.0
"""Seconds that a gateway may take to accept a connection."""

_MANAGER: Final = "org.apache.spark.sql.execution.streaming{}.FileSystemBasedCheckpointFileManager"

_VERSION: Final = re.compile(r"(\d+)\.(\d+)(\D.*)?")

_kept: list[tempfile.TemporaryDirectory[str]] = []
"""The directories of :func:`spark_conf` that nobody has named. They are removed when the program ends."""


def spark_conf(
    location: str = "",
    *,
    spark_version: str | None = None,
    gateways: Sequence[str] = (),
    access: GatewayAccess | None = None,
    directory: str | None = None,
) -> dict[str, str]:
    """The settings that a Spark session needs for a checkpoint on a gateway. None of them is a jar.

    ``location`` is where the checkpoint will be (``webhdfs://HOST:PORT/...``); without protection the settings are the
    same for every gateway address. ``spark_version`` defaults to the installed PySpark. ``gateways`` are the URLs of
    several gateways of one namespace (or HOST:PORT each, with a location); then the location has one name for all of
    them instead of a host: ``webhdfs://NAME/...``, by default ``ckpt``. ``access`` is how to reach protected gateways;
    the files that this takes go into ``directory``, by default a temporary one that stays as long as this program.

    * The file manager that works on FileSystem needs 3 to 4 requests a file instead of 9. It is also the safer one,
      because the gateway's rename is atomic and never overwrites.
    * Retries with a pause (200 ms, 300 times): without them the restart of a gateway ends the query.
    * A host that no longer answers is noticed in 5 s.
    * Java keeps 5 idle connections to a host by default; many state partitions need more.
    * The write-ahead logs of DStreams close the file of each record: else a record that was acknowledged lies in an
      upload that is still open, and is lost with the driver.

    Raises:
        ConfigError: an address, a version or a file cannot be used, or this Spark does not support it.
        OSError: a file cannot be written.
    """
    access = access or GatewayAccess()
    protected = access != GatewayAccess() or directory is not None
    place = _place(location, gateways, protected=protected)
    if place is None and access != GatewayAccess():
        raise ConfigError("access needs to know for which gateway it is: give the location, or gateways=")
    options = "-Dhttp.maxConnections=64"
    conf = {
        "spark.sql.streaming.checkpointFileManagerClass": file_manager(spark_version),
        "spark.hadoop.dfs.http.client.retry.policy.enabled": "true",
        "spark.hadoop.dfs.http.client.retry.policy.spec": "200,300",
        "spark.hadoop.dfs.webhdfs.socket.connect-timeout": "5s",
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
        "spark.streaming.driver.writeAheadLog.closeFileAfterWrite": "true",
        "spark.streaming.receiver.writeAheadLog.closeFileAfterWrite": "true",
        **(place.conf() if place is not None else {}),
    }
    if place is None or (access == GatewayAccess() and (directory is None or not place.tls)):
        return conf
    if directory is None:
        _kept.append(tempfile.TemporaryDirectory(prefix="spark-wal-"))
        directory = _kept[-1].name
    version_of_spark = _version(_installed() if spark_version is None else spark_version)
    settings = write_settings(access, place, Path(directory).resolve(), spark_version=version_of_spark)
    conf |= settings.conf
    for kind, more in (("driver", settings.driver_options), ("executor", settings.executor_options)):
        name = f"spark.{kind}.extraJavaOptions"
        conf[name] = " ".join([conf[name], *more])
    return conf


def _place(location: str, gateways: Sequence[str], *, protected: bool) -> GatewayLocation | None:
    """Where the gateways are. None: this was not said, or need not be known (a location may lack the port then)."""
    parts = urlsplit(location)
    if location and parts.scheme not in ("webhdfs", "swebhdfs"):
        raise ConfigError(f"expected webhdfs://HOST:PORT/NAME, got {location!r}")
    if isinstance(gateways, str):
        raise ConfigError(f"gateways= is a list of addresses, not {gateways!r}")
    if not gateways:
        return GatewayLocation.of(f"{parts.scheme}://{parts.netloc}") if location and protected else None
    if location and not is_name(parts.netloc):
        raise ConfigError(
            f"with gateways= the location must name all of them together, like webhdfs://NAME/PATH; got {location!r}"
        )
    if not location and not all("://" in gateway for gateway in gateways):
        raise ConfigError(
            "give the URLs of the gateways (https://HOST:PORT), or a location like webhdfs://NAME/PATH besides"
        )
    urls = [gateway if "://" in gateway else f"{parts.scheme}://{gateway}" for gateway in gateways]
    place = GatewayLocation.of(urls, parts.netloc or None)
    if location and place.scheme != parts.scheme:
        raise ConfigError(f"the location {location!r} and the addresses of the gateways differ in TLS")
    return place


def file_manager(spark_version: str | None = None) -> str:
    """The class name of the FileSystem-based checkpoint file manager: its package changed in Spark 4.1."""
    spark_version = _installed() if spark_version is None else spark_version
    return _MANAGER.format(".checkpointing" if _version(spark_version) >= (4, 1) else "")


def _installed() -> str:
    """The version of the installed PySpark, for callers that give none."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "4.3.0"


def _version(text: str) -> tuple[int, int]:
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ConfigError(f"expected a version of Spark such as 4.0 or 4.0.1, got {text!r}")
    return int(found[1]), int(found[2])


class CheckpointService:
    """A gateway, or several of one namespace, that Spark can reach."""

    def __init__(self, place: GatewayLocation, *, access: GatewayAccess | None = None) -> None:
        self.place = place
        self._access = access or GatewayAccess()
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def at(
        cls, urls: str | Sequence[str], *, access: GatewayAccess | None = None, name: str | None = None
    ) -> CheckpointService:
        """The gateway at ``http://HOST:PORT`` (or ``https``, ``webhdfs``, ``swebhdfs``), or several of one namespace,
        which then have a ``name`` (by default ``ckpt``). This sends no request to them.

        Raises:
            ConfigError: an address cannot be used.
        """
        return cls(GatewayLocation.of(urls, name), access=access)

    @property
    def address(self) -> str:
        """HOST:PORT, or the name of several gateways."""
        return self.place.authority

    @property
    def url(self) -> str:
        """The gateway's URL for browsers, curl and fsspec; of several, the first one's."""
        return self.place.url

    def location(self, name: str) -> str:
        """The ``checkpointLocation`` of a checkpoint called ``name`` (a path below the root)."""
        return f"{self.place.scheme}://{self.address}/{name.strip('/')}"

    def spark_conf(self, directory: str | None = None, *, spark_version: str | None = None) -> dict[str, str]:
        """Settings for ``SparkSession.builder.config(map=...)``; see :func:`spark_conf`.

        For a protected gateway this includes what TLS and tokens need. Their files (trust store, key store,
        ``ssl-client.xml``) go into ``directory``, by default a temporary one that is removed when the service is
        closed. Executors get their files through ``spark.files``.

        Raises:
            ConfigError: a file cannot be used, or this Spark does not support it. OSError: a file cannot be written.
        """
        if directory is None and (self.place.tls or self._access != GatewayAccess()):
            self._directory = self._directory or tempfile.TemporaryDirectory(prefix="spark-wal-")
            directory = self._directory.name
        gateways = [f"{self.place.scheme}://{each}" for each in self.place.addresses] if self.place.name else []
        return spark_conf(
            self.location(""),
            spark_version=spark_version,
            gateways=gateways,
            access=self._access,
            directory=directory,
        )

    def close(self) -> None:
        """Remove the files of :meth:`spark_conf`. Idempotent."""
        directory, self._directory = self._directory, None
        if directory is not None:
            directory.cleanup()


@contextmanager
def checkpoint_service(
    uri: str | Sequence[str],
    *,
    name: str | None = None,
    namespace: str = DEFAULT_NAMESPACE,
    listen: Address | str = DEFAULT_LISTEN,
    protection: AccessConfig | None = None,
    access: GatewayAccess | None = None,
    temporary_keep_s: float = KEEP_S,
    growing: Sequence[str] = GROWING,
    take_over: bool = False,
) -> Iterator[CheckpointService]:
    """Use the gateway at ``http://host:port``, or several, or start one in this process, in a thread of its own.

    ``uri`` is a cluster's metadata URI (``embedded:///DIR?bookies=3`` has its bookies in this process too),
    ``file:///DIR`` for a namespace without replication, or the URL of a running gateway. It may also be a list of URLs:
    several gateways of one namespace, of which one serves and the others stand by. They have one ``name`` in locations
    (``webhdfs://ckpt/...``); keep it from run to run, too. The gateway listens on
    ``listen``; keep the port from run to run, because Spark writes full addresses into sink metadata. ``access`` is how
    Spark reaches a protected gateway (TLS, certificates, tokens). ``protection`` is how a gateway that this starts
    protects itself. ``temporary_keep_s`` is how long a gateway that this starts keeps a temporary file of Spark's that
    nobody touches; 0: for ever. ``growing`` are patterns of paths whose files are read while they are written, as
    Spark's event logs are (see ``bk gateway webhdfs --growing``).

    If another gateway owns the namespace on that cluster, an error names that gateway. With ``take_over`` this gateway
    takes the namespace, and the other one stands by; both log it. The owner of a ``file:///DIR`` keeps it until it
    ends.

    Raises:
        ConfigError: the address cannot be used, or settings contradict each other.
        ConnectionError: nobody listens at the URL of a running gateway, or at any of several.
        NamespaceOwnedError: another gateway owns the namespace.
        BookKeeperError, JournalError, OSError: the gateway cannot be started.
    """
    if not isinstance(uri, str) or urlsplit(uri).scheme in SCHEMES:
        given = {
            "protection": protection is not None,
            "temporary_keep_s": temporary_keep_s != KEEP_S,
            "growing": tuple(growing) != GROWING,
            "take_over": take_over,
        }
        service = CheckpointService.at(uri, access=access, name=name)
        _refuse_settings_of_its_own(service, [setting for setting, is_given in given.items() if is_given])
        _require_listening(service.place)
        with closing(service):
            yield service
        return
    if name is not None:
        raise ConfigError(f"the name {name!r} is for several gateways that run already, and one is started here")
    config = ServingConfig(
        uri=uri,
        namespace=namespace,
        listen=_listening_address(listen),
        access=protection or AccessConfig(),
        gateway=GatewayConfig(owner=OwnerConfig(temporary_keep_s=temporary_keep_s, growing=tuple(growing))),
        take_over=take_over,
        stand_by=False,
    )
    with _started_here(config) as place, closing(CheckpointService(place, access=access)) as service:
        yield service


@contextmanager
def _started_here(config: ServingConfig) -> Iterator[GatewayLocation]:
    """A gateway in a thread of this process. Raises: what its start raises."""
    thread = _GatewayThread(config)
    address = thread.start()
    try:
        yield GatewayLocation((address,), config.access.tls is not None)
    finally:
        thread.stop()


def _refuse_settings_of_its_own(running: CheckpointService, given: Sequence[str]) -> None:
    """Refuse settings that a running gateway has been started with, or without."""
    if given:
        raise ConfigError(
            f"{given[0]} is for a gateway that is started here, and the one at {running.url} runs already with its "
            "own settings: leave it out"
        )


def _listening_address(listen: Address | str) -> Address:
    try:
        return Address.parse(listen) if isinstance(listen, str) else listen
    except ValueError as error:
        raise ConfigError(f"listen=: {error}") from error


def _require_listening(place: GatewayLocation) -> None:
    """Check that a gateway accepts connections. Otherwise a query would fail minutes later, with a long trace.

    Raises: ConnectionError.
    """
    failures: list[str] = []
    for address in place.addresses:
        try:
            socket.create_connection(address, timeout=_REACH_S).close()
        except OSError as error:
            url = f"{place.url.partition('://')[0]}://{address}"
            failures.append(f"no gateway answers at {url} ({in_words(error)})")
        else:
            return
    raise ConnectionError(
        f"{', and '.join(failures)}: start one (bk gateway webhdfs, or bk standalone), or give a cluster's address, "
        "and a gateway is started here"
    )


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
