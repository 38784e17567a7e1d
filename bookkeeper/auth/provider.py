"""The interface of providers of authentication, for both sides.

A provider of your own is named ``MODULE:ATTRIBUTE`` in the configuration; the attribute is called once with the table
``options`` and returns a :class:`ServerProvider` or a :class:`ClientProvider`. For every connection the provider makes
an exchange: the client speaks first, then tokens go to and fro in AUTH messages until the server says that it knows
who is there. Tokens are bytes that nobody else looks at.

An exchange may wait (it is awaited), but not for long: the whole of it has 10 s. What it raises other than
:exc:`~bookkeeper.errors.AuthenticationError` counts as the same refusal, and is logged on the server's side only:
a client never learns why it was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from bookkeeper.auth.certificate import Names

DISABLED: Final = "AuthDisabledPlugin"
"""The plugin a server without authentication answers as: whoever asked is served."""

TOKEN_MAX: Final = 64 * 1024
"""Bytes of an AUTH message, at most."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, as far as the connection itself tells."""

    address: str
    """host:port, for messages to people; never a reason to trust anyone."""
    encrypted: bool = False
    names: Names | None = None
    """What the certificate says that it showed in the TLS handshake; None without one."""


@dataclass(frozen=True, slots=True)
class ExchangeResult:
    """What a server's exchange says to a token."""

    payload: bytes = b""
    """The next token for the client."""
    principal: str | None = None
    """Who the client is: the exchange is over, the client is served. None: another token is awaited."""


class ServerExchange(Protocol):
    """The server's side of one connection's exchange."""

    async def answer(self, payload: bytes) -> ExchangeResult:
        """The answer to the client's token.

        Raises:
            AuthenticationError: this client is not served; the connection ends.
        """


class ServerProvider(Protocol):
    """A bookie's provider of authentication."""

    @property
    def plugin(self) -> str:
        """The name in AUTH messages; a client that names another is refused."""

    def exchange(self, peer: Peer) -> ServerExchange:
        """A new connection's."""


class ClientExchange(Protocol):
    """The client's side of one connection's exchange."""

    async def first(self) -> bytes:
        """The token that begins it; may be empty."""

    async def answer(self, payload: bytes) -> bytes | None:
        """The next token after the server's; None: we are content and go on.

        Raises:
            AuthenticationError: this server is not believed; the connection ends.
        """


class ClientProvider(Protocol):
    """A client's provider of authentication."""

    @property
    def plugin(self) -> str:
        """The name in AUTH messages."""

    def exchange(self, peer: Peer) -> ClientExchange:
        """A new connection's."""


ServerFactory = Callable[[Mapping[str, Any]], ServerProvider]
ClientFactory = Callable[[Mapping[str, Any]], ClientProvider]
