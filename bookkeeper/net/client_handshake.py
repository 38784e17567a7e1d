"""The client's first words on a connection: START_TLS, the handshake, who are you, who am I. Then it may be used.

With TLS configured nothing but START_TLS leaves in clear, and a bookie that has no TLS, or whose certificate is not
the right one, is not spoken to at all: the connection is closed at once.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Final

from bookkeeper import wire
from bookkeeper.auth.certificate import Names
from bookkeeper.auth.config import AuthConfig
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
)
from bookkeeper.ids import Address, BookieId
from bookkeeper.net.connection import BookieConnection, connect_bookie
from bookkeeper.net.tls import HANDSHAKE_S, TlsConfig
from bookkeeper.seams import Net, Tls, TlsFiles
from bookkeeper.wire import Dialect, Status

log = logging.getLogger(__name__)

ROUNDS_MAX: Final = 16
"""AUTH messages of ours on one connection; an exchange that wants more is given up."""


class ClientSecurity:
    """How one client secures its connections."""

    def __init__(self, net: Net, tls: TlsConfig | None, auth: AuthConfig) -> None:
        """Raises: ConfigError: a file or a provider that cannot be used, by name."""
        self._net = net
        self._config = tls
        self._tls: Tls | None = None
        self._provider: ClientProvider | None = client_provider(auth)
        self._must_authenticate = auth.required
        self._asks_nobody: set[BookieId] = set()
        """Bookies of which it was said that they do not authenticate."""
        self._timeout_s = HANDSHAKE_S
        self._looked = float("-inf")
        if tls is not None:
            by_host = tls.verify_host and tls.identity is None
            files = TlsFiles(server=False, cert=tls.cert, key=tls.key, ca=tls.ca, verify_host=by_host)
            self._tls = net.tls(files)
            self._timeout_s = tls.handshake_timeout_s

    async def connect(
        self, address: Address, bookie: BookieId, dialect: Dialect, *, timeout_s: float, frame_max: int = FRAME_MAX
    ) -> BookieConnection:
        """A connection that is ready for requests.

        Raises:
            BookieUnavailableError: nobody answers there, or the connection was lost.
            SecureConnectionError: somebody does, but not encrypted, not who it should be, or it does not want us.
        """
        first = dialect if self._tls is None else Dialect.V3  # START_TLS is v3, also before a v2 conversation
        connection = await connect_bookie(self._net, address, first, timeout_s=timeout_s, frame_max=frame_max)
        if self._tls is None and self._provider is None:
            return connection
        try:
            async with asyncio.timeout(self._timeout_s):
                names = None if self._tls is None else await self._encrypt(connection, bookie, self._tls)
                connection.speak(dialect)
                if self._provider is not None:
                    await self._authenticate(connection, self._provider, names, bookie)
        except BaseException as error:
            connection.abort()
            if isinstance(error, TimeoutError):
                raise SecureConnectionError(
                    f"{address}: no TLS handshake and authentication within {self._timeout_s:g} s"
                ) from error
            raise
        return connection

    # -- encryption ---------------------------------------------------------------------------------------

    async def _encrypt(self, connection: BookieConnection, bookie: BookieId, tls: Tls) -> Names:
        config, address = self._config, connection.address
        assert config is not None
        self._refresh(tls, config)
        reply = await connection.request(wire.StartTls(), self._timeout_s)
        if reply.status is not Status.OK:
            raise SecureConnectionError(
                f"{address} refuses TLS, and this client may not go on without it: switch TLS on there ([tls] in the "
                "bookie's settings; tlsProviderFactoryClass of an Apache bookie)"
            )
        server_name = address.host if config.verify_host and config.identity is None else None
        try:
            encrypted = await connection.upgrade(
                lambda transport: self._net.upgrade(
                    transport, connection, tls, server_name=server_name, timeout_s=self._timeout_s
                )
            )
        except ssl.SSLCertVerificationError as error:
            raise SecureConnectionError(f"the certificate of {address} is not good: {error.verify_message}") from error
        except MalformedFrameError as error:
            raise SecureConnectionError(f"{address}: {error}: somebody in between may have put them there") from error
        except ssl.SSLError as error:
            raise SecureConnectionError(f"no TLS with {address}: {in_words(error)}") from error
        except OSError as error:
            raise SecureConnectionError(
                f"{address} gave up the TLS handshake: {error or type(error).__name__} (a certificate of ours that it "
                "does not take, or none)"
            ) from error
        names = Names.of(encrypted.get_extra_info("peercert") or {})
        self._check_identity(address, bookie, names)
        return names

    def _check_identity(self, address: Address, bookie: BookieId, names: Names) -> None:
        """The name that the configuration binds to the bookie's id."""
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
        """Changed files are used for new connections; bad ones are not."""
        now = asyncio.get_running_loop().time()
        if now - self._looked < config.reload_interval_s:
            return
        self._looked = now
        try:
            if tls.refresh():
                log.info("the TLS files have changed and are used from now on")
        except ConfigError as error:
            log.warning("the changed TLS files cannot be used, the old ones are: %s", error)

    # -- authentication -----------------------------------------------------------------------------------

    async def _authenticate(
        self, connection: BookieConnection, provider: ClientProvider, names: Names | None, bookie: BookieId
    ) -> None:
        peer = Peer(str(connection.address), encrypted=connection.encrypted, names=names)
        try:
            if not await self._exchange(connection, provider.plugin, provider.exchange(peer)):
                self._on_disabled(connection.address, bookie, provider.plugin)
        except AuthenticationError as error:
            raise SecureConnectionError(f"{connection.address} is not who it should be: {error}") from error
        except BookieUnavailableError as error:  # v2 has no words for a refusal
            raise SecureConnectionError(
                f"{connection.address} closed the connection during authentication ({provider.plugin}): "
                "it has another provider, or does not accept us"
            ) from error

    def _on_disabled(self, address: Address, bookie: BookieId, plugin: str) -> None:
        """A bookie that asks nobody. Anybody can say that of himself: it proves nothing about who is there."""
        said = f"{address} ({bookie}) asks nobody who he is ({DISABLED}), and has not shown us who it is"
        if self._must_authenticate:
            raise SecureConnectionError(
                f"{said}; this client was told not to go on without {plugin} (auth.required): set the provider up "
                "there, or, while bookies are being moved to it, leave auth.required out"
            )
        if bookie not in self._asks_nobody:
            self._asks_nobody.add(bookie)
            log.warning("%s; it is used as it is, since auth.required is not set", said)

    async def _exchange(self, connection: BookieConnection, plugin: str, exchange: ClientExchange) -> bool:
        """The words to and fro; False: the bookie says that it asks nobody."""
        token: bytes | None = await exchange.first()
        for _ in range(ROUNDS_MAX):
            if token is None:
                return True
            reply = await connection.request(wire.Auth(plugin, token), self._timeout_s)
            if not isinstance(reply, wire.AuthReply) or reply.status is not Status.OK:
                raise SecureConnectionError(f"{connection.address} does not accept us ({plugin})")
            if reply.plugin == DISABLED:
                return False
            if reply.plugin != plugin or len(reply.payload) > TOKEN_MAX:
                raise AuthenticationError(f"it answered as {reply.plugin[:100]!r} to {plugin!r}")
            token = await exchange.answer(reply.payload)
        raise AuthenticationError(f"no end after {ROUNDS_MAX} messages")
