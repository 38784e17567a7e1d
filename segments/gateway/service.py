"""A whole gateway: port, cluster, streams, health, and the end in good order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from bookkeeper.audit import NO_AUDIT, AuditLog, open_audit_log
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.bookie.page_address import require_page_address
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import in_words
from bookkeeper.gateways.access_control import AccessConfig, AccessControl
from bookkeeper.gateways.gateway_audit import GatewayAudit
from bookkeeper.gateways.gateway_policy import GatewayPolicy
from bookkeeper.ids import Address, is_loopback
from bookkeeper.leases.lease import Lease, StoreLease
from bookkeeper.leases.process_location import own_location
from bookkeeper.seams import Seams
from segments.gateway.calls.append_calls import AppendCalls
from segments.gateway.calls.cursor_calls import CursorCalls
from segments.gateway.calls.publish_calls import PublishCalls
from segments.gateway.calls.read_calls import ReadCalls
from segments.gateway.calls.segment_calls import SegmentCalls
from segments.gateway.calls.served_streams import ServedStreams
from segments.gateway.calls.stream_calls import StreamCalls
from segments.gateway.calls.transfer_calls import TransferCalls
from segments.gateway.config import DEFAULT_LISTEN, GrpcGatewayConfig, GrpcLimits
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.call_audit import CallAudit
from segments.gateway.guard.call_guard import CallGuard
from segments.gateway.guard.port_security import CallerCheck, check_files, server_credentials
from segments.gateway.metadata_watch import MetadataWatch
from segments.gateway.server import GrpcServer
from segments.names import names_path, stream_path
from segments.namespace import StreamNamespace, connect
from segments.stream import Stream

logger = logging.getLogger(__name__)

SWEEP_S = 5.0
"""Seconds between two sweeps of unused streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcServingConfig:
    """The settings of ``bk gateway grpc``."""

    uri: str
    listen: Address = DEFAULT_LISTEN
    advertise: str | None = None
    """HOST:PORT at which clients reach this gateway. Default: the address at which it listens."""
    http: Address | None = None
    """Where /healthz, /livez, /readyz and /metrics are shown; None: nowhere. A loopback address unless
    ``http_insecure``, or ``insecure`` in ``access``."""
    http_insecure: bool = False
    """Show these pages beyond loopback, unencrypted, to everyone who reaches them: they change nothing."""
    reflection: bool = False
    """Tell clients the protocol on request, as programs for trying gRPC out want it."""
    access: AccessConfig = field(default_factory=AccessConfig)
    limits: GrpcLimits = field(default_factory=GrpcLimits)
    gateway: GrpcGatewayConfig = field(default_factory=GrpcGatewayConfig)

    def __post_init__(self) -> None:
        self.access.require_safe(self.listen)
        if self.http is not None:
            allowed = self.access.insecure or self.http_insecure
            require_page_address("--http", self.http, allowed=allowed, option="--http-insecure")
        check_files(self.access.tls)


class GrpcGatewayService:
    """``async with GrpcGatewayService(config, seams) as service: service.address``"""

    def __init__(self, config: GrpcServingConfig, seams: Seams) -> None:
        self._config = config
        self._seams = seams
        self._tasks = Tasks("gateway of streams")
        self._server: GrpcServer | None = None
        self._namespace: StreamNamespace | None = None
        self._table: ServedStreams | None = None
        self._pages: HealthServer | None = None
        self._watch: MetadataWatch | None = None
        self._policy: GatewayPolicy | None = None
        self._draining = asyncio.Event()
        self.metrics = GatewayMetrics()
        self.access: AccessControl | None = None
        self.address: Address | None = None
        self._audit: AuditLog = NO_AUDIT

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> Address:
        """Take the port, then connect to the cluster, then serve; return the address. After a failure nothing is left
        open.

        Raises:
            CannotListenError, ConfigError, StreamError.
        """
        config, clock = self._config, self._seams.clock
        try:
            self.access = access = AccessControl(config.access, clock, self._seams.rng)
            access.insecure = config.access.insecure and not is_loopback(config.listen.host)
            shown, seams = self.metrics.metrics, self._seams
            self._audit = open_audit_log(config.access.audit, clock, seams.disk, seams.workers, shown)
            self._server = server = GrpcServer(config.limits)
            tls = None if access.certificates is None else server_credentials(access.certificates)
            self.address = bound = server.bind(config.listen, tls)
            advertised = config.advertise or str(bound)
            client = ClientConfig(metadata_session_ms=int(config.gateway.metadata_session_s * 1000))
            self._namespace = namespace = await connect(config.uri, config=client)
            self.metrics.metrics.include(namespace.client.metrics)
            self._table = table = ServedStreams(
                namespace, self._lease_maker(namespace, advertised), advertised, clock, config.gateway, self.metrics
            )
            self._policy = policy = GatewayPolicy(
                namespace.client.metadata_store,
                self._seams,
                self.metrics.metrics,
                kind="grpc gateway",
                name=advertised,
            )
            await policy.start()
            caller = CallerCheck(access, clock.wall_ms)
            audit = CallAudit(GatewayAudit(clock, self._audit, f"grpc gateway {advertised}"))
            guard = CallGuard(caller, access.failures, self.metrics, clock, config.limits, audit, policy.permissions)
            self.metrics.budget = guard.budget
            behaviours = {
                **StreamCalls(table, advertised).behaviours,
                **AppendCalls(table, config.limits, self.metrics, clock).behaviours,
                **PublishCalls(table).behaviours,
                **ReadCalls(table, self.metrics, self._draining).behaviours,
                **SegmentCalls(table).behaviours,
                **CursorCalls(table).behaviours,
                **TransferCalls(table, self.metrics, self._draining).behaviours,
            }
            await server.start(guard.handlers(behaviours), guard, reflects=config.reflection)
            self._watch = watch = self._metadata_watch(namespace)
            self._start(watch.run(), "probe the metadata store")
            self._start(access.watch(), "reload changed files")
            self._start(self._sweep(table), "give up unused streams")
            if config.http is not None:
                self._pages = self._show_pages(config.http)
        except BaseException:
            await self.close()
            raise
        return bound

    def _start(self, work: Coroutine[Any, Any, None], what: str) -> None:
        self._tasks.start(work, what)

    def _lease_maker(self, namespace: StreamNamespace, advertised: str) -> Callable[[Stream], Lease]:
        owner = f"{self._seams.rng.getrandbits(64):016x}"
        here = own_location(str(self.address))
        metadata, clock, lease_s = namespace.client.metadata_store, self._seams.clock, self._config.gateway.lease_s

        def make(stream: Stream) -> Lease:
            path = stream_path(metadata, stream.id, "lease")
            return StoreLease(metadata.store, path, clock, owner=owner, address=advertised, lease_s=lease_s, here=here)

        return make

    def _metadata_watch(self, namespace: StreamNamespace) -> MetadataWatch:
        metadata = namespace.client.metadata_store
        server = self._server
        assert server is not None

        async def on_reachable(reachable: bool) -> None:
            self.metrics.serving.value = int(reachable)
            if reachable:
                logger.info("the metadata store answers: this gateway serves")
            else:
                logger.warning("the metadata store does not answer: this gateway is not healthy")
            server.set_health(serving=reachable)

        path = names_path(metadata)
        return MetadataWatch(lambda: metadata.store.exists(path), on_reachable, self._seams.clock, self._config.gateway)

    async def _sweep(self, table: ServedStreams) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            await table.sweep()

    def _show_pages(self, http: Address) -> HealthServer:
        def readiness() -> dict[str, Any]:
            if self._draining.is_set():
                return {"status": "the gateway is being stopped"}
            reachable = self._watch is not None and self._watch.is_reachable
            return {"status": "ok" if reachable else "the metadata store does not answer"}

        def whole() -> dict[str, Any]:
            return {**readiness(), "address": str(self.address), "owned": self._table.owned if self._table else 0}

        def refresh() -> None:
            if self._table is not None:
                self.metrics.owned.value = self._table.owned
            self.metrics.update_budget()
            if self.access is not None:
                self.access.update_metrics(self.metrics.metrics)

        shown: dict[str, Callable[[], dict[str, Any]]] = {
            "/healthz": whole,
            "/livez": lambda: {"status": "ok"},
            "/readyz": readiness,
        }
        worker = self._seams.workers.worker("gateway http")
        try:
            return HealthServer.start(http, shown, self.metrics.metrics, refresh, worker)
        except OSError as error:
            text = f"cannot listen at {http} for health and metrics: {in_words(error)}; choose another --http"
            raise OSError(error.errno, text) from error

    async def close(self) -> None:
        """Report NOT_SERVING, close the writers, release the leases, let calls end. Idempotent."""
        server, self._server = self._server, None
        self._draining.set()
        await self._tasks.close()
        self.metrics.serving.value = 0
        if server is not None:
            server.drain()
        if self._table is not None:
            await self._table.close()
        if server is not None:
            await server.stop(self._config.gateway.drain_s)
        if self._policy is not None:
            await self._policy.close()
        if self._pages is not None:
            self._pages.close()
            self._pages = None
        if self._namespace is not None:
            namespace, self._namespace = self._namespace, None
            await namespace.close()
        self._audit.close()
