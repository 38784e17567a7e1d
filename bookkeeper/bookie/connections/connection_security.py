"""The shell around :class:`~bookkeeper.bookie.connections.handshake.Handshake`: handshakes, providers, deadlines, and
who is refused.

A bookie that neither encrypts nor authenticates has none of this, and its connections cost nothing. With one, a
connection that was let in costs one look at a flag per chunk.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from bookkeeper import wire
from bookkeeper.auth.certificate import EXPIRES_SOON_S, Names, admitted, not_after
from bookkeeper.auth.provider import ExchangeResult, Peer, ServerExchange, ServerProvider
from bookkeeper.bookie.connections.handshake import (
    Admit,
    AskProvider,
    BeginTls,
    Handshake,
    HandshakeState,
    NeedBytes,
    Reject,
    refusal_of,
)
from bookkeeper.bookie.connections.server import Connections, ServerConnection
from bookkeeper.errors import AuthenticationError, ConfigError, MalformedFrameError
from bookkeeper.metrics import Metrics
from bookkeeper.net.tls import ServerTls
from bookkeeper.seams import Net, Rng, Tls, TlsFiles
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

NOT_YET_IN_PER_HOST_MAX: Final = 256
"""Connections from one address that are not let in yet; one more is closed."""

REFUSAL_DELAY_S: Final = 0.1
"""Seconds before a failed authentication is answered, and up to as many more by chance; twice as long with every
failure of that address, up to ``2**DOUBLINGS_MAX`` times."""

DOUBLINGS_MAX: Final = 5

FORGOTTEN_S: Final = 60.0
"""Seconds without a failure after which an address begins anew."""

ADDRESSES_MAX: Final = 10_000
"""Addresses whose failures are remembered; beyond, the one that failed first is forgotten."""


class ConnectionSecurity:
    """What all connections of one bookie share."""

    def __init__(
        self, net: Net, tls: ServerTls, provider: ServerProvider | None, metrics: Metrics, rng: Rng, *, asks_tls: bool
    ) -> None:
        """``asks_tls``: the certificate of the handshake is the authentication.

        Raises:
            ConfigError: a file that cannot be used, by name.
        """
        self.config = tls
        self.provider = provider
        self.net = net
        self.rng = rng
        self.asks_tls = asks_tls
        self.tls: Tls | None = None
        self.shaking: dict[SecuredConnection, None] = {}
        """Those in the TLS handshake, the oldest first."""
        self.not_in: Counter[str] = Counter()
        """Connections that are not let in yet, by address."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.encrypted_total = metrics.counter("tls_connections_total", "Connections that were encrypted.")
        self.refused_total = metrics.counter("refused_connections_total", "Connections that were not let in.")
        self._failures: dict[str, tuple[int, float]] = {}
        """How often authentication has failed from an address, and when it did last."""
        self._metrics = metrics
        self._end: float | None = None
        if tls.mode != "off":
            self.tls = net.tls(TlsFiles(server=True, cert=tls.cert, key=tls.key, ca=tls.client_ca))
            self._note_certificate()

    @property
    def mode(self) -> str:
        """``off`` also where streams never leave this process."""
        return "off" if self.tls is None else self.config.mode

    def connection(self, server: Connections) -> ServerConnection:
        """The protocol object of a connection that is being accepted."""
        return SecuredConnection(server, self)

    async def run(self, wall_ms: Callable[[], int]) -> None:
        """Look for changed files, until cancelled."""
        while True:
            self.tell(wall_ms() / 1000)
            await asyncio.sleep(self.config.reload_interval_s)
            self.refresh()

    def refresh(self) -> None:
        """Use changed files for new connections; bad ones are not, which is logged."""
        if self.tls is None:
            return
        try:
            if self.tls.refresh():
                self._note_certificate()
                log.info("the TLS files have changed and are used from now on")
        except ConfigError as error:
            self._metrics.counter("tls_reload_failures_total", "Changed TLS files that could not be used.").add()
            log.error("the changed TLS files cannot be used, the old ones are: %s", error)

    def tell(self, now: float) -> None:
        """Bring the numbers up to date; ``now`` in seconds since 1970."""
        if self._end is not None:
            soon = self._metrics.gauge("tls_certificate_ends_soon", "1 if the certificate ends within 14 days.")
            soon.value = 1 if self._end - now < EXPIRES_SOON_S else 0

    def may_shake(self, host: str) -> bool:
        """May one more handshake begin, from ``host``? Where there are too many, the oldest of the address that has
        most gives way to an address that has fewer: one that holds all of them keeps nobody else out."""
        if len(self.shaking) < self.config.handshakes_max:
            return True
        counts = Counter(connection.host for connection in self.shaking)
        [(busiest, most)] = counts.most_common(1)
        if counts[host] + 1 >= most:
            return False
        oldest = next(connection for connection in self.shaking if connection.host == busiest)
        del self.shaking[oldest]
        oldest._turn_away("a TLS handshake that gave way to one from another address")
        return True

    def penalty(self, host: str, now: float) -> float:
        """Note a failed authentication; seconds before its answer."""
        count, last = self._failures.pop(host, (0, now))
        count = count + 1 if now - last < FORGOTTEN_S else 1
        while len(self._failures) >= ADDRESSES_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[host] = (count, now)
        return REFUSAL_DELAY_S * (1 + self.rng.random()) * (1 << min(count - 1, DOUBLINGS_MAX))

    def refused(self, connection: SecuredConnection, reason: str) -> None:
        """Count a connection that was not let in, and say so, seldom."""
        self.refused_total.add()
        connection.server.complaints.warning("%s was not let in: %.200s", connection.host, reason)

    def close(self) -> None:
        """Give up every handshake and exchange."""
        for task in list(self.tasks):
            task.cancel()

    def _note_certificate(self) -> None:
        certificate = self.tls.certificate if self.tls is not None else None
        if certificate is not None:
            try:
                self._end = not_after(certificate)
            except ValueError as error:  # OpenSSL takes it: it serves, and nobody is told when it ends
                self._end = None
                log.warning("when the bookie's certificate ends cannot be told: %s", error)
                return
            text = "When the bookie's certificate ends, in seconds since 1970."
            self._metrics.gauge("tls_certificate_end_seconds", text).value = self._end


class SecuredConnection(ServerConnection):
    """A client's connection whose handshake is not done yet."""

    def __init__(self, server: Connections, security: ConnectionSecurity) -> None:
        super().__init__(server)
        self.security = security
        self.principal: str | None = None
        """Who the client is, as far as anybody asked; for life."""
        self.names: Names | None = None
        self._in = False
        self._handshake = Handshake(security.mode, asks=security.provider is not None)
        self._exchange: ServerExchange | None = None
        self._busy = False
        self._task: asyncio.Task[None] | None = None
        self._counted = False
        self._deadline: asyncio.TimerHandle | None = None

    # -- the connection's life ----------------------------------------------------------------------------

    def on_open(self) -> None:
        super().on_open()
        security = self.security
        assert self._loop is not None
        security.not_in[self.host] += 1
        self._counted = True
        if security.not_in[self.host] > NOT_YET_IN_PER_HOST_MAX:
            self._turn_away("too many connections from there that are not let in yet")
            return
        self._deadline = self._loop.call_later(security.config.handshake_timeout_s, self._too_late)

    def on_closed(self, error: BaseException | None) -> None:
        self._no_longer_outside()
        self.security.shaking.pop(self, None)  # a task that is cancelled before its first step does not do it
        self._handshake.shut()
        if self._busy and self._task is not None:
            self._task.cancel()
        super().on_closed(error)

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        if self._in:
            return super().on_bytes(buffer, start, end)
        at = start
        while at < end and not self._busy and self._handshake.state is not HandshakeState.SHUT:
            match self._handshake.look(buffer, at, end):
                case NeedBytes():
                    break
                case Admit():
                    self._enter()
                    return at - start + super().on_bytes(buffer, at, end)
                case BeginTls(reply, used):
                    at += used
                    self._encrypt(reply, end - at)
                case AskProvider(header, plugin, payload, used):
                    at += used
                    self._await(self._ask(header, plugin, payload))
                case Reject(refusal, reason):
                    self._refuse(refusal, reason)
        return end - start if self._handshake.state is HandshakeState.SHUT else at - start

    # -- steps --------------------------------------------------------------------------------------------

    def _enter(self) -> None:
        self._in = True
        self._no_longer_outside()

    def _no_longer_outside(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._counted:
            self._counted = False
            self.security.not_in[self.host] -= 1
            if not self.security.not_in[self.host]:
                del self.security.not_in[self.host]

    def _too_late(self) -> None:
        self._deadline = None
        self._turn_away("the handshake or authentication takes too long")

    def _turn_away(self, reason: str) -> None:
        self._handshake.shut()
        self.security.refused(self, reason)
        self.abort(TimeoutError(reason))

    def _await(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on when something has been awaited; until then nothing that arrives is looked at."""
        self._busy = True
        self._task = task = asyncio.create_task(work)
        self.security.tasks.add(task)
        task.add_done_callback(self.security.tasks.discard)

    def _encrypt(self, reply: bytes, rest: int) -> None:
        security = self.security
        if rest:
            self._turn_away(f"{rest} bytes in clear behind START_TLS")
        elif not security.may_shake(self.host):
            self._turn_away("too many TLS handshakes at a time")
        else:
            security.shaking[self] = None
            self._await(self._shake(reply))

    async def _shake(self, reply: bytes) -> None:
        security = self.security
        assert security.tls is not None
        tls, timeout_s = security.tls, security.config.handshake_timeout_s
        try:
            self.write(reply)  # leaves in clear, as the first step of the upgrade
            transport = await self.upgrade(
                lambda clear: security.net.upgrade(clear, self, tls, server_name=None, timeout_s=timeout_s)
            )
        except (OSError, MalformedFrameError) as error:
            self._handshake.shut()
            security.refused(self, f"TLS: {error or type(error).__name__}")
            return
        finally:
            security.shaking.pop(self, None)
            self._busy = False
        security.encrypted_total.add()
        certificate = transport.get_extra_info("peercert")
        self.names = Names.of(certificate) if certificate else None
        if security.asks_tls:
            self.principal = admitted(self.names, allow=security.config.allow, roles=security.config.roles)
        elif self.names is not None:
            self.principal = self.names.principal
        if self._handshake.encrypted(admitted=not security.asks_tls or self.principal is not None):
            self._enter()

    async def _ask(self, header: wire.RequestHeader, plugin: str, payload: bytes) -> None:
        self.pause_reading()
        try:
            answer = await self._answer_of(plugin, payload)
        except Exception as error:  # whatever it is: the client is not known, and does not learn why
            reason = str(error) if isinstance(error, AuthenticationError) else repr(error)
            await asyncio.sleep(self.security.penalty(self.host, self._now()))
            self._refuse(refusal_of(header), f"authentication: {reason}")
            return
        finally:
            self._busy = False
            if not self.closed:
                self.resume_reading()
        self.write(wire.encode_reply(header, wire.AuthReply(Status.OK, plugin, answer.payload)))
        if answer.principal is not None and self._handshake.state is HandshakeState.ASKING:
            self.principal = answer.principal
            self._handshake.known()
            self._enter()

    async def _answer_of(self, plugin: str, payload: bytes) -> ExchangeResult:
        provider = self.security.provider
        assert provider is not None
        if plugin != provider.plugin:
            raise AuthenticationError(f"the client's provider is {plugin[:100]!r}, ours is {provider.plugin!r}")
        if self._exchange is None:
            self._exchange = provider.exchange(Peer(self.peer, encrypted=self.encrypted, names=self.names))
        return await self._exchange.answer(payload)

    def _refuse(self, reply: bytes | None, reason: str) -> None:
        """One answer, and the end."""
        self._handshake.shut()
        if reply is not None:
            self.write(reply)
        self.security.refused(self, reason)
        self.close()
