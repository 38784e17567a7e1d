"""What a client does before it uses a connection: START_TLS, the TLS handshake, and authentication.

With TLS configured the client sends nothing but START_TLS unencrypted. If the bookie has no TLS, or the wrong
certificate, the client closes the connection at once.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from bookkeeper import wire
from bookkeeper.auth.certificate import CertificateNames
from bookkeeper.auth.config import SASL, AuthConfig
from bookkeeper.auth.provider import DISABLED, TOKEN_MAX, ClientExchange, ClientProvider, Peer
from bookkeeper.auth.provider_loader import client_provider
from bookkeeper.codec import FRAME_MAX
from bookkeeper.errors import (
    AuthenticationError,
    BookieUnavailableError,
    ConfigError,
    MalformedFrameError,
    SecureConnectionError,
    in_words,
    require,
)
from bookkeeper.ids import Address, BookieId, is_loopback
from bookkeeper.net.connection import BookieConnection, connect_bookie
from bookkeeper.net.tls import HANDSHAKE_S, TlsConfig
from bookkeeper.seams import Net, Rng, Tls, TlsFiles
from bookkeeper.wire import Dialect, Status

log = logging.getLogger(__name__)

ROUNDS_MAX: Final = 16
"""How many AUTH messages the client sends on one connection. An exchange that needs more fails."""


class ClientSecurity:
    """How one client secures its connections."""

    def __init__(self, net: Net, rng: Rng, tls: TlsConfig | None, auth: AuthConfig) -> None:
        """Raises: ConfigError: a file or a provider cannot be used; the error names it."""
        require(
            auth.provider != SASL or tls is not None or auth.insecure,
            'auth.provider "sasl" needs TLS (tls.ca, --tls-ca or BK_TLS_CA): DIGEST-MD5 alone protects neither the '
            "password nor the connection; auth.insecure = true speaks it in clear",
        )
        self._net = net
        self._config = tls
        self._tls: Tls | None = None
        self._provider: ClientProvider | None = client_provider(auth, rng)
        self._must_authenticate = auth.required
        self._asks_nobody: set[BookieId] = set()
        """Bookies that do not authenticate clients, and of which the log says so."""
        self._timeout_s = HANDSHAKE_S
        self._looked = float("-inf")
        if tls is not None:
            by_host = not tls.insecure_any_host and tls.identity is None
            files = TlsFiles(server=False, cert=tls.cert, key=tls.key, ca=tls.ca, verify_host=by_host)
            self._tls = net.tls(files)
            self._timeout_s = tls.handshake_timeout_s

    async def connect(
        self, address: Address, bookie: BookieId, dialect: Dialect, *, timeout_s: float, frame_max: int = FRAME_MAX
    ) -> BookieConnection:
        """Open a connection that is ready for requests.

        Raises:
            BookieUnavailableError: nobody answers there, or the connection was lost.
            SecureConnectionError: the bookie does not encrypt, is not the right one, or refuses this client.
        """
        first = dialect if self._tls is None else Dialect.V3  # START_TLS exists only in v3
        connection = await connect_bookie(self._net, address, first, timeout_s=timeout_s, frame_max=frame_max)
        if self._tls is None and self._provider is None:
            return connection
        try:
            async with asyncio.timeout(self._timeout_s):
                names = None if self._tls is None else await self._encrypt(connection, bookie, self._tls)
                if self._provider is not None:  # behind TLS in v3: Apache's bookie says something in v3 in between
                    await self._authenticate(connection, self._provider, names, bookie)
                connection.speak(dialect)
        except BaseException as error:
            connection.abort()
            if isinstance(error, TimeoutError):
                raise SecureConnectionError(
                    f"{address} did not finish the TLS handshake and authentication within {self._timeout_s:g} s"
                ) from error
            raise
        return connection

    # -- encryption ---------------------------------------------------------------------------------------

    async def _encrypt(self, connection: BookieConnection, bookie: BookieId, tls: Tls) -> CertificateNames:
        config, address = self._config, connection.address
        assert config is not None
        self._refresh(tls, config)
        reply = await connection.request(wire.StartTls(), self._timeout_s)
        if reply.status is not Status.OK:
            raise SecureConnectionError(
                f"{address} refuses TLS ({reply.status.name}), and this client requires it: switch TLS on in the "
                "bookie ([tls]; in Apache's bookie tlsProviderFactoryClass)"
            )
        server_name = address.host if not config.insecure_any_host and config.identity is None else None
        try:
            encrypted = await connection.upgrade(
                lambda transport: self._net.upgrade(
                    transport, connection, tls, server_name=server_name, timeout_s=self._timeout_s
                )
            )
        except ssl.SSLCertVerificationError as error:
            raise SecureConnectionError(
                f"the certificate of {address} is not valid for this client: {error.verify_message}"
            ) from error
        except MalformedFrameError as error:
            raise SecureConnectionError(f"{address}: {error}; somebody in between may have inserted them") from error
        except ssl.SSLError as error:
            raise SecureConnectionError(f"the TLS handshake with {address} failed: {in_words(error)}") from error
        except OSError as error:
            reason = f" ({in_words(error)})" if str(error) else ""
            raise SecureConnectionError(
                f"{address} gave up the TLS handshake{reason}: it may require a client certificate, or refuse this one"
            ) from error
        names = CertificateNames.of(encrypted.get_extra_info("peercert") or {})
        self._check_identity(address, bookie, names)
        return names

    def _check_identity(self, address: Address, bookie: BookieId, names: CertificateNames) -> None:
        """Check that the certificate has the name that the configuration expects for the bookie's id."""
        assert self._config is not None
        if self._config.identity is None:
            return
        expected = self._config.identity.replace("{bookie_id}", bookie)
        if expected not in (*names.uris, *names.hosts):
            shown = ", ".join((*names.uris, *names.hosts)) or "no name"
            raise SecureConnectionError(
                f"the certificate of {address} is for {shown}, not for {expected}: it is not {bookie}"
            )

    def _refresh(self, tls: Tls, config: TlsConfig) -> None:
        """Use changed files for new connections. If they are bad, log that and keep the old ones."""
        now = asyncio.get_running_loop().time()
        if now - self._looked < config.reload_interval_s:
            return
        self._looked = now
        try:
            if tls.refresh():
                log.info("the TLS files have changed: new connections use them")
        except ConfigError as error:
            log.warning(
                "the changed TLS files cannot be used: %s; the client keeps the old ones, correct the files", error
            )

    # -- authentication -----------------------------------------------------------------------------------

    async def _authenticate(
        self, connection: BookieConnection, provider: ClientProvider, names: CertificateNames | None, bookie: BookieId
    ) -> None:
        local = is_loopback(connection.address.host)
        peer = Peer(str(connection.address), encrypted=connection.encrypted, names=names, local=local)
        try:
            exchange = provider.exchange(peer)
        except (AuthenticationError, ConfigError) as error:
            raise SecureConnectionError(f"no authentication with {connection.address}: {error}") from error
        try:
            if not await self._exchange(connection, provider.plugin, exchange):
                self._on_disabled(connection.address, bookie, provider.plugin)
        except AuthenticationError as error:
            raise SecureConnectionError(f"{connection.address} did not authenticate itself: {error}") from error
        except BookieUnavailableError as error:  # v2 has no reply for a refusal
            raise SecureConnectionError(
                f"{connection.address} closed the connection during authentication ({provider.plugin}): "
                "it has another provider, or refuses this client"
            ) from error

    def _on_disabled(self, address: Address, bookie: BookieId, plugin: str) -> None:
        """Refuse or accept a bookie without authentication. Its answer proves nothing about who it is."""
        said = f"{address} ({bookie}) does not authenticate clients ({DISABLED}) and has not authenticated itself"
        if self._must_authenticate:
            raise SecureConnectionError(
                f"{said}, and this client requires {plugin} (auth.required): configure the provider in the bookie; "
                "while you introduce it bookie by bookie, leave auth.required out"
            )
        if bookie not in self._asks_nobody:
            self._asks_nobody.add(bookie)
            log.warning("%s; this client uses it, because auth.required is not set", said)

    async def _exchange(self, connection: BookieConnection, plugin: str, exchange: ClientExchange) -> bool:
        """Exchange AUTH messages. Returns False if the bookie does not authenticate clients."""
        token: bytes | None = await exchange.first()
        for _ in range(ROUNDS_MAX):
            if token is None:
                return True
            reply = await connection.request(wire.Auth(plugin, token), self._timeout_s)
            if not isinstance(reply, wire.AuthReply) or reply.status is not Status.OK:
                raise SecureConnectionError(f"{connection.address} refuses this client's authentication ({plugin})")
            if reply.plugin == DISABLED:
                return False
            if reply.plugin != plugin or len(reply.payload) > TOKEN_MAX:
                raise AuthenticationError(
                    f"it answered {plugin!r} with {len(reply.payload)} bytes for the provider {reply.plugin[:100]!r}"
                )
            token = await exchange.answer(reply.payload)
        raise AuthenticationError(f"authentication did not end after {ROUNDS_MAX} messages")
