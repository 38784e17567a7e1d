"""The interface of providers of authentication, for both sides.

A provider of your own is named ``MODULE:ATTRIBUTE`` in the configuration; the attribute is called once with the table
``options`` and returns a :class:`ServerProvider` or a :class:`ClientProvider`. For every connection the provider makes
an exchange: the client speaks first, then tokens go to and fro in AUTH messages until the server says that it knows
who is there. Tokens are bytes that nobody else looks at.

An exchange may wait (it is awaited), but all of it together has 10 s. Any exception other than
:exc:`~bookkeeper.errors.AuthenticationError` counts as a refusal, too. The reason is logged on the server's side only:
a client never learns why it was refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from bookkeeper.auth.certificate import CertificateNames

DISABLED: Final = "AuthDisabledPlugin"
"""The plugin name with which a server without authentication answers; it serves every client."""

TOKEN_MAX: Final = 64 * 1024
"""Bytes of an AUTH message at most."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection, as far as the connection itself tells."""

    address: str
    """host:port, for messages only; it proves nothing about the peer."""
    encrypted: bool = False
    names: CertificateNames | None = None
    """The names in the certificate of the TLS handshake; None if the peer showed none."""
    local: bool = False
    """The connection does not leave this machine."""


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """The answer of a server's exchange to a token."""

    payload: bytes = b""
    """The next token for the client."""
    principal: str | None = None
    """Who the client is: the exchange is over, the client is served. None: another token is awaited."""
    roles: tuple[str, ...] = ()
    """The client's roles."""
    ends_at: float = math.inf
    """When the connection ends at the latest, in seconds since 1970, because what the client has shown is no longer
    good."""
    credential: object = field(default=None, repr=False)
    """What :meth:`WatchfulProvider.ended` is asked about while the connection is open. Nobody else looks at it."""


class ServerExchange(Protocol):
    """The server's side of the exchange on one connection."""

    async def answer(self, payload: bytes) -> ExchangeResult:
        """The answer to the client's token.

        Raises:
            AuthenticationError: the client is refused, and the connection is closed.
        """


class ServerProvider(Protocol):
    """A bookie's provider of authentication."""

    @property
    def plugin(self) -> str:
        """The name in AUTH messages; a client that names another is refused."""

    def exchange(self, peer: Peer) -> ServerExchange:
        """A new connection's.

        Raises:
            AuthenticationError: no client is known over such a connection.
        """


@runtime_checkable
class WatchfulProvider(ServerProvider, Protocol):
    """A bookie's provider whose clients can lose what they have shown, while they are connected.

    Both methods are called at regular intervals (``tls.reload_interval_s``) and on SIGHUP; a connection whose
    credential has ended is closed.
    """

    def refresh(self) -> None:
        """Look at changed files.

        Raises:
            ConfigError: they cannot be used, and the provider keeps what it had.
        """

    def ended(self, credential: object) -> str | None:
        """Why a credential that an exchange has returned is no longer good; None if it is."""


class ClientExchange(Protocol):
    """The client's side of the exchange on one connection."""

    async def first(self) -> bytes:
        """The first token; may be empty."""

    async def answer(self, payload: bytes) -> bytes | None:
        """The next token after the server's. None: the server is accepted, and the connection is used.

        Raises:
            AuthenticationError: the server is refused, and the connection is closed.
        """


class ClientProvider(Protocol):
    """A client's provider of authentication."""

    @property
    def plugin(self) -> str:
        """The name in AUTH messages."""

    def exchange(self, peer: Peer) -> ClientExchange:
        """A new connection's.

        Raises:
            AuthenticationError: nothing is shown over such a connection.
            ConfigError: what it would show cannot be had any more, such as a file.
        """
