"""A whole gateway: it opens and closes backing, ownership and HTTP in order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Final

from bookkeeper.audit import NO_AUDIT, AuditLog, open_audit_log
from bookkeeper.gateways.access_control import AccessConfig, AccessControl
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.gateway_audit import GatewayAudit
from bookkeeper.gateways.gateway_policy import GatewayPolicy
from bookkeeper.gateways.listener import BoundSockets, bind
from bookkeeper.ids import Address, is_loopback
from bookkeeper.leases.process_location import own_location
from bookkeeper.metrics import Metrics
from bookkeeper.real import memory_limit
from bookkeeper.seams import Seams
from spark_wal.webhdfs.access.authentication import TEXTS
from spark_wal.webhdfs.config import DEFAULT_LISTEN, GatewayConfig
from spark_wal.webhdfs.contents.upload_log import UploadLog
from spark_wal.webhdfs.http.http_server import HttpServer
from spark_wal.webhdfs.ownership.backing import DEFAULT_NAMESPACE, Backing
from spark_wal.webhdfs.ownership.gateway import Gateway, GatewayRole
from spark_wal.webhdfs.ownership.open_backing import open_backing

SHARE: Final = 3
"""The tree may take this part of the memory, if nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingConfig:
    """The settings of ``bk gateway webhdfs``."""

    uri: str
    namespace: str = DEFAULT_NAMESPACE
    listen: Address = DEFAULT_LISTEN
    advertise: str | None = None
    """HOST:PORT for people, and for clients that send no Host header. Default: the address at which it listens."""
    access: AccessConfig = field(default_factory=AccessConfig)
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    upload_log: str | None = None
    """A file that records what happens to each upload."""
    take_over: bool = False
    """Take the namespace also from a living owner."""
    stand_by: bool = True
    """Stand by while another gateway owns the namespace. Otherwise that is an error."""

    def __post_init__(self) -> None:
        self.access.require_safe(self.listen)

    @property
    def scheme(self) -> str:
        """The scheme of locations at this gateway."""
        return "webhdfs" if self.access.tls is None else "swebhdfs"

    @property
    def hosts(self) -> frozenset[str] | None:
        """The names that a request may have as its host, without authentication; None for any name.

        This is for loopback. Otherwise a page in a browser on this machine could give its own name this machine's
        address, and use the gateway as if it were its own server.
        """
        asks = self.access.token_file is not None or (self.access.tls is not None and self.access.tls.client_ca)
        if asks or not is_loopback(self.listen.host):
            return None
        advertised = () if self.advertise is None else (self.advertise.rpartition(":")[0] or self.advertise,)
        return frozenset(("localhost", self.listen.host, *advertised))


def _bounded(config: GatewayConfig) -> GatewayConfig:
    """The settings with a limit of the tree's memory: a third of what the process may use, unless they have one. A
    snapshot has all of it once more while it is taken."""
    memory = memory_limit()
    if config.owner.memory_max is not None or memory is None:
        return config
    return replace(config, owner=replace(config.owner, memory_max=memory // SHARE))


class WebHdfsService:
    """``async with WebHdfsService(config, seams) as service: service.address``"""

    def __init__(self, config: ServingConfig, seams: Seams) -> None:
        self._config = config
        self._seams = seams
        self._backing: Backing | None = None
        self._bound: BoundSockets | None = None
        self._http: HttpServer | None = None
        self._watching: asyncio.Task[None] | None = None
        self._upload_log: UploadLog | None = None
        self._policy: GatewayPolicy | None = None
        self.access: AccessControl | None = None
        self.gateway: Gateway | None = None
        self.address: Address | None = None
        self._audit: AuditLog = NO_AUDIT

    async def __aenter__(self) -> WebHdfsService:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> Address:
        """Take the port, then the namespace; return the address. After a failure nothing is left open.

        The port comes first: a gateway that cannot serve must not take the namespace from one that can. Clients that
        come meanwhile wait, instead of being refused.

        Raises:
            CannotListenError, ConfigError, BookKeeperError, JournalError, RecordFormatError.
        """
        config, seams = self._config, self._seams
        try:
            self.access = access = AccessControl(config.access, seams.clock, seams.rng, TEXTS)
            access.insecure = config.access.insecure and not is_loopback(config.listen.host)
            counts = Metrics("gateway_")
            self._audit = open_audit_log(config.access.audit, seams.clock, seams.disk, seams.workers, counts)
            self._bound = bound = await bind(config.listen)
            self._backing = await open_backing(
                config.uri,
                seams,
                namespace=config.namespace,
                owner=f"{seams.rng.getrandbits(64):016x}",
                address=config.advertise or str(bound.address),
                here=own_location(str(bound.address)),
                config=config.gateway,
            )
            bounded = _bounded(config.gateway)
            self.gateway = Gateway(self._backing.open_namespace, self._backing.lease, seams.clock, bounded)
            if config.upload_log is not None:
                self._upload_log = UploadLog(config.upload_log, seams.disk, seams.clock)
            self._policy = policy = GatewayPolicy(
                self._backing.metadata,
                seams,
                counts,
                kind="webhdfs gateway",
                name=config.advertise or str(bound.address),
            )
            await policy.start()
            self._http = HttpServer(
                self.gateway,
                seams.clock,
                permissions=policy.permissions,
                advertise=config.advertise,
                access=access,
                limits=config.limits,
                hosts=config.hosts,
                upload_log=self._upload_log,
                audit=GatewayAudit(seams.clock, self._audit, f"webhdfs gateway {config.advertise or bound.address}"),
            )
            self._http.metrics.include(counts)
            self.address = await self._http.start(bound)
            await self.gateway.start(take_over=config.take_over, stand_by=config.stand_by)
            self._watching = asyncio.get_running_loop().create_task(access.watch(), name="gateway access")
        except BaseException:
            await self.close()
            raise
        return self.address

    @property
    def description(self) -> str:
        """What the gateway is doing, for people."""
        assert self._backing is not None and self.gateway is not None
        if self.gateway.role is GatewayRole.STANDBY:
            owner = self._backing.lease.other or "an unknown address"
            return f"stands by to serve namespace {self._config.namespace}, which the gateway at {owner} owns"
        return f"serves namespace {self._config.namespace}"

    async def close(self) -> None:
        """End uploads, close the journal, give up the lease. Idempotent."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        if self.gateway is not None:
            self.gateway.events.close()
            self.gateway.park_no_more()
        if self._http is not None:
            await self._http.close()
        if self._bound is not None:
            self._bound.close()
        try:
            if self.gateway is not None:
                await self.gateway.close()
        finally:
            if self._policy is not None:
                await self._policy.close()
            if self._backing is not None:
                backing, self._backing = self._backing, None
                await backing.close()
            if self._upload_log is not None:
                self._upload_log.close()
            self._audit.close()
