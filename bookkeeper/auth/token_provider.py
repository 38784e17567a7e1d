"""The provider ``token`` of bookies and of clients: one message with a signed token, and an empty answer.

A token is shown over TLS, or on a connection that does not leave the machine, and never otherwise: whoever hears it
can use it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from bookkeeper.auth.provider import ExchangeResult, Peer
from bookkeeper.auth.provider_options import Freshness, file_option
from bookkeeper.auth.signed_tokens import TOKEN_MAX, SignedToken, verified, why_ended
from bookkeeper.auth.token_file import TokenFile
from bookkeeper.errors import AuthenticationError, ConfigError
from bookkeeper.real import WatchedFile
from bookkeeper.seams import Clock
from bookkeeper.secret import Secret

PLUGIN: Final = "bk-token"
"""The name in AUTH messages; Apache's programs have nothing of this kind."""
VARIABLE: Final = "BK_TOKEN"

_IN_CLEAR: Final = "a token is shown over TLS, or on this machine only: switch TLS on"


class TokenServerProvider:
    """A bookie's. Option ``file``: the file of signing keys (:mod:`bookkeeper.auth.token_file`).

    Raises:
        ConfigError: there is no such option, or the file cannot be used.
    """

    plugin = PLUGIN

    def __init__(self, options: Mapping[str, Any], clock: Clock) -> None:
        path = file_option(options, "token", "bk credentials signing-key makes it")
        self._file = WatchedFile(path, TokenFile.parse)
        self._freshness = Freshness(clock)
        self._clock = clock

    @property
    def book(self) -> TokenFile:
        """Keys and revocations, as the file has them now."""
        return self._file.value

    def refresh(self) -> None:
        """Read the file again if it has changed. Raises: ConfigError: it cannot be used."""
        self._file.refresh()

    def exchange(self, peer: Peer) -> TokenServerExchange:
        """A new connection's."""
        if not (peer.encrypted or peer.local):
            raise AuthenticationError(_IN_CLEAR)
        self._freshness.refresh(self._file)
        return TokenServerExchange(self)

    def now_s(self) -> float:
        """Seconds since 1970: a token's end is a moment of everybody's."""
        return self._clock.wall_ms() / 1000

    def ended(self, credential: object) -> str | None:
        """Why a token that was good is good no more; None if it still is."""
        assert isinstance(credential, SignedToken)
        return why_ended(self.book, credential, self.now_s())


class TokenServerExchange:
    """The bookie's side on one connection."""

    def __init__(self, provider: TokenServerProvider) -> None:
        self._provider = provider

    async def answer(self, payload: bytes) -> ExchangeResult:
        """See :class:`bookkeeper.auth.provider.ServerExchange`."""
        provider = self._provider
        token = verified(provider.book, payload.decode("ascii", "replace"), provider.now_s())
        if token is None:
            raise AuthenticationError("its token is not good, has ended, or was revoked")
        return ExchangeResult(principal=token.name, roles=token.roles, ends_at=float(token.end), credential=token)


class TokenClientProvider:
    """A client's. Option ``file``: a private file with the token; without it the token is ``BK_TOKEN``.

    Raises:
        ConfigError: there is neither, or it holds no token.
    """

    plugin = PLUGIN

    def __init__(self, options: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._file: WatchedFile[Secret] | None = None
        given = environment.get(VARIABLE)
        if options or not given:
            self._file = WatchedFile(file_option(options, "token", f"a token; or set {VARIABLE}"), _token_in)
        else:
            self._given = _token_in(given, f"{VARIABLE} in the environment")

    def exchange(self, peer: Peer) -> TokenClientExchange:
        """A new connection's. The file is read again if it has changed: a new token is used without a restart."""
        if not (peer.encrypted or peer.local):
            raise AuthenticationError(_IN_CLEAR)
        if self._file is not None:
            self._file.refresh()
        return TokenClientExchange(self._given if self._file is None else self._file.value)


class TokenClientExchange:
    """The client's side on one connection."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    async def first(self) -> bytes:
        """The token."""
        return self._token.reveal().encode()

    async def answer(self, payload: bytes) -> bytes | None:
        """The bookie has taken the token; who the bookie is, TLS has shown."""
        if payload:
            raise AuthenticationError("it answered a token with a message of its own")
        return None


def _token_in(text: str, source: str) -> Secret:
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token or not 0 < len(token) <= TOKEN_MAX:
        raise ConfigError(f"{source} must be one token, as bk credentials token prints it")
    return Secret(token)
