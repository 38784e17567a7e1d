"""A bookie's port, from the start to the stop: it is bound first, served later, and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from bookkeeper.auth.config import TLS
from bookkeeper.auth.provider_loader import principal_kind, server_provider
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.connections.admission import Admission
from bookkeeper.bookie.connections.connection_audit import ConnectionAudit
from bookkeeper.bookie.connections.server import Connections
from bookkeeper.bookie.connections.server_connection import ServerConnection
from bookkeeper.bookie.ownership.ledger_permissions import LedgerPermissions
from bookkeeper.ids import Address
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Listener, Seams

if TYPE_CHECKING:
    from bookkeeper.bookie.connections.connection_security import ConnectionSecurity


class BookiePort:
    """The methods are called in the order in which they stand here; the last three at any time, and repeatedly."""

    def __init__(self, config: BookieConfig, seams: Seams, metrics: Metrics) -> None:
        self._config, self._seams, self._metrics = config, seams, metrics
        self.admission = Admission(config.in_progress_bytes, config.reserved_bytes)
        self.audit = ConnectionAudit()
        """Replaced before :meth:`secure` if there is an audit log."""
        self.connections: Connections | None = None
        """None before it serves."""
        self.security: ConnectionSecurity | None = None
        """None if connections are neither encrypted nor authenticated."""
        self.bound: Address | None = None
        """Where it listens; None before."""
        self._early_listener: EarlyListener | None = None

    @property
    def address(self) -> Address:
        """The address under which clients reach this bookie."""
        assert self.bound is not None, "not started"
        return Address.parse(self._config.advertise) if self._config.advertise else self.bound

    @property
    def encrypts(self) -> bool:
        """Whether clients may encrypt their connections."""
        return self.security is not None and self.security.mode != "off"

    def secure(self) -> None:
        """Read what encryption and authentication need.

        Raises: ConfigError: a file or a provider cannot be used; the text names it.
        """
        config, seams = self._config, self._seams
        provider = server_provider(config.auth, seams.rng, seams.clock)
        if config.tls.mode == "off" and provider is None:
            return
        from bookkeeper.bookie.connections.connection_security import (
            ConnectionSecurity,  # most bookies neither encrypt nor authenticate
        )

        self.security = ConnectionSecurity(
            seams.net,
            config.tls,
            provider,
            self._metrics,
            seams.rng,
            seams.clock,
            auth_by_certificate=config.auth_provider == TLS,
            kind=principal_kind(config.auth),
            audit=self.audit,
        )

    async def bind(self, port: int | None) -> int:
        """Bind the port and return it; ``port`` is used if the configuration names none. Until :meth:`serve`
        connections are closed at once.

        Raises: OSError: the port cannot be bound.
        """
        wanted = Address.parse(self._config.listen)
        if wanted.port == 0 and port is not None:
            wanted = Address(wanted.host, port)
        self._early_listener = early_listener = EarlyListener()
        early_listener.listener = await self._seams.net.listen(wanted, early_listener.accept)
        self.bound = early_listener.listener.address
        return self.bound.port

    def serve(
        self, bookie: Bookie, return_memory: Callable[[], object], access: LedgerPermissions | None = None
    ) -> None:
        """Accept connections. ``return_memory`` gives freed memory back to the system; ``access`` decides what clients
        may do; None: everything."""
        config = self._config
        self.connections = connections = Connections(
            bookie,
            self.admission,
            self._metrics,
            frame_max=config.frame_max,
            connections_max=config.connections_max,
            connections_per_host_max=config.connections_per_host_max,
            connections_per_principal_max=config.connections_per_principal_max,
            slow_frame_s=config.slow_frame_s,
            idle_s=config.connection_idle_s,
            receive_bytes=config.receive_bytes,
            return_memory=return_memory,
            audit=self.audit,
            access=access,
        )
        connections.start()
        assert self._early_listener is not None
        security = self.security
        self._early_listener.accepting = (
            partial(ServerConnection, connections) if security is None else lambda: security.connection(connections)
        )

    async def drain(self) -> None:
        """Wait for requests in progress, ``drain_s`` seconds at most."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._config.drain_s
        while self.admission.in_progress and loop.time() < end:  # noqa: ASYNC110  # seldom, and soon over
            await asyncio.sleep(0.01)

    def refresh(self) -> None:
        """Read changed files of TLS and authentication now, and end connections whose clients would be refused."""
        if self.security is not None:
            self.security.refresh()

    def close(self) -> None:
        """Accept no connection any more."""
        if self._early_listener is not None:
            self._early_listener.close()

    async def close_and_wait(self) -> None:
        """Accept no connection any more, close those that are open, and wait for their ends."""
        self.close()
        if self.connections is not None:
            await self.connections.close_and_wait()
        if self.security is not None:
            self.security.close()


class EarlyListener:
    """Listens before the bookie serves. Clients that connect early are disconnected, and try again."""

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.accepting: Callable[[], asyncio.BaseProtocol] | None = None

    def accept(self) -> asyncio.BaseProtocol:
        return self.accepting() if self.accepting is not None else _RefusingProtocol()

    def close(self) -> None:
        self.accepting = None
        if self.listener is not None:
            self.listener.close()
            self.listener = None


class _RefusingProtocol(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
