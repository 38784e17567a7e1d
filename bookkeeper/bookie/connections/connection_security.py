"""The shell around :class:`~bookkeeper.bookie.connections.handshake.Handshake`: it performs TLS handshakes, asks the
provider of authentication, keeps deadlines and refuses clients.

A bookie that neither encrypts nor authenticates does not load this module. An admitted connection costs one check of a
flag per chunk.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final

from bookkeeper import wire
from bookkeeper.access.principal import Principal, PrincipalKind
from bookkeeper.auth.certificate import EXPIRES_SOON_S, CertificateNames, admitted, not_after
from bookkeeper.auth.client_trust import ClientTrust
from bookkeeper.auth.provider import ExchangeResult, Peer, ServerExchange, ServerProvider, WatchfulProvider
from bookkeeper.auth.sasl import PLUGIN
from bookkeeper.bookie.connections.connection_audit import ConnectionAudit
from bookkeeper.bookie.connections.credential_watch import Credential, CredentialWatch
from bookkeeper.bookie.connections.handshake import (
    Admit,
    AskProvider,
    AwaitEarly,
    AwaitTls,
    BeginTls,
    Handshake,
    HandshakeState,
    NeedBytes,
    Reject,
    refusal_of,
)
from bookkeeper.bookie.connections.server import CLOSE_GRACE_S, Connections
from bookkeeper.bookie.connections.server_connection import ServerConnection
from bookkeeper.errors import AuthenticationError, ConfigError, MalformedFrameError, in_words
from bookkeeper.ids import is_loopback
from bookkeeper.metrics import Metrics
from bookkeeper.net.tls import ServerTls
from bookkeeper.seams import Clock, Net, Rng, Tls, TlsFiles
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

UNADMITTED_PER_HOST_MAX: Final = 256
"""How many connections of one address may wait to be admitted. One more is closed."""

EARLY_S: Final = 0.2
"""Seconds for which the answer to START_TLS waits for a message in clear, where clients of Apache's send one."""

REFUSAL_DELAY_S: Final = 0.1
"""Seconds before a failed authentication is answered, plus up to as many at random. The time doubles with every failure
of that address, up to ``2**DOUBLINGS_MAX`` times."""

DOUBLINGS_MAX: Final = 5

FAILURES_KEPT_S: Final = 60.0
"""Seconds after which the failures of an address are forgotten."""

ADDRESSES_MAX: Final = 10_000
"""How many addresses' failures are remembered. Beyond that the oldest one is forgotten."""


class ConnectionSecurity:
    """What all connections of one bookie share."""

    def __init__(
        self,
        net: Net,
        tls: ServerTls,
        provider: ServerProvider | None,
        metrics: Metrics,
        rng: Rng,
        clock: Clock,
        *,
        auth_by_certificate: bool,
        kind: PrincipalKind = PrincipalKind.PROVIDER,
        audit: ConnectionAudit | None = None,
    ) -> None:
        """
        Args:
            auth_by_certificate: the client's TLS certificate is its authentication.
            kind: how the provider's clients show who they are.

        Raises:
            ConfigError: a file cannot be used; the error names it.
        """
        self.config = tls
        self.provider = provider
        self.net = net
        self.rng = rng
        self.auth_by_certificate = auth_by_certificate
        self.audit = audit or ConnectionAudit()
        self.kind = kind
        self.watch = CredentialWatch(provider)
        """The credentials of the admitted clients."""
        self.tls: Tls | None = None
        self.handshakes: dict[SecuredConnection, None] = {}
        """Connections in the TLS handshake, the oldest first."""
        self.unadmitted: Counter[str] = Counter()
        """How many connections of each address are not admitted yet."""
        self.tasks: set[asyncio.Task[None]] = set()
        self.encrypted_total = metrics.counter("tls_connections_total", "Connections that were encrypted.")
        self.refused_total = metrics.counter(
            "refused_connections_total", "Connections that were refused by TLS or authentication."
        )
        self.credentials_ended_total = metrics.counter(
            "ended_credentials_total", "Connections that were ended because the client would be refused now."
        )
        self._failures: dict[str, tuple[int, float]] = {}
        """For each address, as it counts: how often authentication has failed, and when it last failed."""
        self._clock = clock
        self._metrics = metrics
        self._certificate_end_s: float | None = None
        if tls.mode != "off":
            self.tls = net.tls(TlsFiles(server=True, cert=tls.cert, key=tls.key, ca=tls.client_ca))
            self._load_client_trust()

    @property
    def mode(self) -> str:
        """The mode of TLS. It is ``off`` also where streams never leave this process."""
        return "off" if self.tls is None else self.config.mode

    def connection(self, server: Connections) -> ServerConnection:
        """The protocol object of a connection that is being accepted."""
        return SecuredConnection(server, self)

    async def run(self) -> None:
        """Check for changed files, and for clients that would be refused now, until cancelled."""
        while True:
            self.update_metrics(self.now_s())
            await asyncio.sleep(self.config.reload_interval_s)
            self.refresh()

    def now_s(self) -> float:
        """Seconds since 1970: certificates and tokens end by wall-clock time."""
        return self._clock.wall_ms() / 1000

    def refresh(self) -> None:
        """Use changed files for new connections, and end those whose clients would be refused now. If files are bad,
        log that and keep the old ones."""
        if self.tls is not None:
            try:
                if self.tls.refresh():
                    self._load_client_trust()
                    log.info("the TLS files have changed: new connections use them")
            except ConfigError as error:
                self._metrics.counter("tls_reload_failures_total", "Changed TLS files that could not be used.").add()
                log.error(
                    "the changed TLS files cannot be used: %s; the bookie keeps the old ones, correct the files", error
                )
        if isinstance(self.provider, WatchfulProvider):
            try:
                self.provider.refresh()
            except ConfigError as error:
                self._metrics.counter(
                    "auth_reload_failures_total", "Changed files of authentication that could not be used."
                ).add()
                log.error("the changed file cannot be used: %s; the bookie keeps the old one, correct the file", error)
        self.watch.end_refused(self.now_s())

    def update_metrics(self, now: float) -> None:
        """Update the metrics; ``now`` in seconds since 1970."""
        if self._certificate_end_s is not None:
            soon = self._metrics.gauge("tls_certificate_ends_soon", "1 if the certificate ends within 14 days.")
            soon.value = 1 if self._certificate_end_s - now < EXPIRES_SOON_S else 0

    def admit_handshake(self, account: str) -> bool:
        """Whether one more TLS handshake of an address may begin.

        At the limit the oldest handshake of the busiest address is ended for an address with fewer. So no address can
        keep the others out.
        """
        if len(self.handshakes) < self.config.handshakes_max:
            return True
        counts = Counter(connection.account for connection in self.handshakes)
        [(busiest, most)] = counts.most_common(1)
        if counts[account] + 1 >= most:
            return False
        oldest = next(connection for connection in self.handshakes if connection.account == busiest)
        del self.handshakes[oldest]
        oldest._reject("too many TLS handshakes: another address had fewer")
        return True

    def refusal_delay_s(self, account: str, now: float) -> float:
        """Count a failed authentication of an address. Returns the seconds to wait before it is answered."""
        count, last = self._failures.pop(account, (0, now))
        count = count + 1 if now - last < FAILURES_KEPT_S else 1
        while len(self._failures) >= ADDRESSES_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[account] = (count, now)
        return REFUSAL_DELAY_S * (1 + self.rng.random()) * (1 << min(count - 1, DOUBLINGS_MAX))

    def on_refused(self, connection: SecuredConnection, reason: str, *, claimed: str = "") -> None:
        """Count a refused connection, note it, and log it at a limited rate. ``claimed`` is the name that it presented,
        if one is known. ``reason`` holds no secret."""
        self.refused_total.add()
        proven = connection.names.principal if connection.names is not None else None
        self.audit.note_refused(connection, reason, proven=proven or "", claimed=claimed)
        connection.server.warnings.warning("refused the connection from %s: %.200s", connection.host, reason)

    def close(self) -> None:
        """Cancel every handshake and exchange."""
        for task in list(self.tasks):
            task.cancel()

    def _load_client_trust(self) -> None:
        if self.tls is not None and self.config.client_ca is not None:
            self.watch.trust = trust = ClientTrust.parse(self.tls.trusted)
            if trust.revocations is None:
                log.warning(
                    "%s has revocation lists. New connections heed them; which open ones they name is known only with "
                    "the Python package cryptography, so without it a changed list ends all of them",
                    self.config.client_ca,
                )
        self._read_certificate_end()

    def _read_certificate_end(self) -> None:
        certificate = self.tls.certificate if self.tls is not None else None
        if certificate is not None:
            try:
                self._certificate_end_s = not_after(certificate)
            except ValueError as error:  # OpenSSL accepts it, so it is used without a warning before its end
                self._certificate_end_s = None
                log.warning(
                    "the end of the bookie's certificate cannot be read: %s; nothing will warn before it", error
                )
                return
            text = "When the bookie's certificate ends, in seconds since 1970."
            self._metrics.gauge("tls_certificate_end_seconds", text).value = self._certificate_end_s


class SecuredConnection(ServerConnection):
    """A client's connection that must pass the handshake before it may send requests."""

    def __init__(self, server: Connections, security: ConnectionSecurity) -> None:
        super().__init__(server)
        self.security = security
        self.credential = Credential()
        """What the client has shown. It does not change after the handshake."""
        self.names: CertificateNames | None = None
        self._admitted = False
        early = PLUGIN if security.kind is PrincipalKind.SASL else None
        self._handshake = Handshake(security.mode, authenticates=security.provider is not None, early=early)
        self._early_deadline: asyncio.TimerHandle | None = None
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
        security.unadmitted[self.account] += 1
        self._counted = True
        if security.unadmitted[self.account] > UNADMITTED_PER_HOST_MAX:
            self._reject("too many connections from that address wait for TLS or authentication")
            return
        self._deadline = self._loop.call_later(security.config.handshake_timeout_s, self._on_handshake_timeout)

    def on_closed(self, error: BaseException | None) -> None:
        self._end_admission()
        self.security.handshakes.pop(self, None)  # a task cancelled before its first step does not remove it
        self.security.watch.remove(self)
        self._handshake.shut()
        if self._busy and self._task is not None:
            self._task.cancel()
        super().on_closed(error)

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        if self._admitted:
            return super().on_bytes(buffer, start, end)
        at = start
        while at < end and not self._busy and self._handshake.state is not HandshakeState.SHUT:
            match self._handshake.next_step(buffer, at, end):
                case NeedBytes():
                    break
                case Admit():
                    self._admit()
                    return at - start + super().on_bytes(buffer, at, end)
                case BeginTls(reply, used):
                    at += used
                    self._begin_tls(reply, end - at)
                case AwaitEarly(used):
                    at += used
                    assert self._loop is not None
                    self._early_deadline = self._loop.call_later(EARLY_S, self._on_early_timeout)
                case AwaitTls(used):
                    at += used
                case AskProvider(header, plugin, payload, used):
                    at += used
                    self._run_step(self._authenticate(header, plugin, payload))
                case Reject(refusal, reason):
                    self._refuse(refusal, reason)
        return end - start if self._handshake.state is HandshakeState.SHUT else at - start

    # -- steps --------------------------------------------------------------------------------------------

    def credential_ended(self, reason: str) -> None:
        """Accept nothing more, send the answers that are written, and close. A client that does not read them is cut
        off."""
        assert self._loop is not None
        self._admitted = False
        self._handshake.shut()
        self.security.credentials_ended_total.add()
        self.server.warnings.warning("ended the connection from %s (%s): %s", self.host, self.principal, reason)
        self._loop.call_later(CLOSE_GRACE_S, self.abort)
        self.close()

    def _admit(self) -> None:
        if not self.server.on_admitted(self, self.principal):
            self._reject("its principal has too many connections open")
            return
        self._admitted = True
        self.security.watch.add(self)
        self._end_admission()

    def _end_admission(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._early_deadline is not None:
            self._early_deadline.cancel()
            self._early_deadline = None
        if self._counted:
            self._counted = False
            self.security.unadmitted[self.account] -= 1
            if not self.security.unadmitted[self.account]:
                del self.security.unadmitted[self.account]

    def _on_early_timeout(self) -> None:
        """No message has followed START_TLS in clear: begin TLS."""
        if self._handshake.state is HandshakeState.EARLY:
            self._begin_tls(self._handshake.on_no_early_message().reply, 0)

    def _on_handshake_timeout(self) -> None:
        self._deadline = None
        self._reject("the handshake or authentication took too long")

    def _reject(self, reason: str) -> None:
        self._handshake.shut()
        self.security.on_refused(self, reason)
        self.abort(TimeoutError(reason))

    def _run_step(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` in a task. Until it ends, received bytes are kept and not decoded."""
        self._busy = True
        self._task = task = asyncio.create_task(work)
        self.security.tasks.add(task)
        task.add_done_callback(self.security.tasks.discard)

    def _begin_tls(self, reply: bytes, rest: int) -> None:
        security = self.security
        if self._early_deadline is not None:
            self._early_deadline.cancel()
            self._early_deadline = None
        if rest:
            self._reject(f"{rest} unencrypted bytes came after START_TLS, where TLS must begin")
        elif not security.admit_handshake(self.account):
            self._reject("too many TLS handshakes are in progress")
        else:
            security.handshakes[self] = None
            self._run_step(self._perform_tls(reply))

    async def _perform_tls(self, reply: bytes) -> None:
        security = self.security
        assert security.tls is not None
        tls, timeout_s = security.tls, security.config.handshake_timeout_s
        trust = security.watch.trust  # of this handshake, also if the files change meanwhile
        try:
            self.write(reply)  # the upgrade sends this unencrypted as its first step
            transport = await self.upgrade(
                lambda clear: security.net.upgrade(clear, self, tls, server_name=None, timeout_s=timeout_s)
            )
        except (OSError, MalformedFrameError) as error:
            self._handshake.shut()
            reason = in_words(error) if str(error) else "the client ended the connection"
            security.on_refused(self, f"the TLS handshake failed: {reason}")
            return
        finally:
            security.handshakes.pop(self, None)
            self._busy = False
        security.encrypted_total.add()
        self._keep_certificate(transport, trust)
        name = self.names.principal if self.names is not None else None
        if security.auth_by_certificate:
            name = admitted(self.names, allow=security.config.allow, roles=security.config.roles)
        if name is not None and self.names is not None:
            self.principal = Principal(PrincipalKind.CERTIFICATE, name, self.names.roles)
        if self._handshake.on_encrypted(admitted=not security.auth_by_certificate or name is not None):
            if security.auth_by_certificate:
                security.audit.note_admitted(self, "certificate")
            self._admit()
        elif (early := self._handshake.early) is not None and self._handshake.state is HandshakeState.AUTHENTICATING:
            self._run_step(self._authenticate(early, PLUGIN, b""))

    def _keep_certificate(self, transport: asyncio.Transport, trust: ClientTrust) -> None:
        """Keep the client's certificate, its names and its end."""
        certificate = transport.get_extra_info("peercert")
        if not certificate:
            return
        self.names = CertificateNames.of(certificate)
        self.credential.trust = trust
        self.credential.certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        self.credential.ends_at = ssl.cert_time_to_seconds(certificate["notAfter"])

    async def _authenticate(self, header: wire.RequestHeader, plugin: str, payload: bytes) -> None:
        self.pause_reading()
        try:
            answer = await self._exchange_result(plugin, payload)
        except Exception as error:  # the client is refused whatever it is, and is not told why
            known = isinstance(error, AuthenticationError)
            reason = str(error) if known else f"the provider raised {type(error).__name__}"
            claimed = error.claimed if isinstance(error, AuthenticationError) else ""
            await asyncio.sleep(self.security.refusal_delay_s(self.account, self._time()))
            self._refuse(refusal_of(header), f"authentication failed: {reason}", claimed=claimed)
            return
        finally:
            self._busy = False
            if not self.closed:
                self.resume_reading()
        self.write(wire.encode_reply(header, wire.AuthReply(Status.OK, plugin, answer.payload)))
        if answer.principal is not None and self._handshake.state is HandshakeState.AUTHENTICATING:
            held = self.credential
            self.principal = Principal(self.security.kind, answer.principal, answer.roles)
            held.ends_at = min(held.ends_at, answer.ends_at)
            held.shown = answer.credential
            self._handshake.on_authenticated()
            self.security.audit.note_admitted(self, f"provider {plugin[:100]}")
            self._admit()

    async def _exchange_result(self, plugin: str, payload: bytes) -> ExchangeResult:
        provider = self.security.provider
        assert provider is not None
        if plugin != provider.plugin:
            raise AuthenticationError(f"the client uses the provider {plugin[:100]!r}, the bookie {provider.plugin!r}")
        if self._exchange is None:
            local = is_loopback(self.host)
            peer = Peer(self.peer, encrypted=self.encrypted, names=self.names, local=local)
            self._exchange = provider.exchange(peer)
        return await self._exchange.answer(payload)

    def _refuse(self, reply: bytes | None, reason: str, *, claimed: str = "") -> None:
        """Send ``reply``, if there is one, and close the connection."""
        self._handshake.shut()
        if reply is not None:
            self.write(reply)
        self.security.on_refused(self, reason, claimed=claimed)
        self.close()
