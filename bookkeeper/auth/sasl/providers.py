"""The provider ``sasl`` of bookies and of clients: the machines of one exchange, and the files that they need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from bookkeeper.auth.provider import ExchangeResult, Peer
from bookkeeper.auth.provider_options import Freshness, file_option
from bookkeeper.auth.sasl import PLUGIN
from bookkeeper.auth.sasl.digest_md5 import DigestClient, DigestServer, require_name
from bookkeeper.auth.sasl.users import SaslUser, parse_users
from bookkeeper.errors import AuthenticationError, ConfigError
from bookkeeper.real import WatchedFile
from bookkeeper.seams import Clock, Rng
from bookkeeper.secret import Secret

USER_VARIABLE: Final = "BK_SASL_USER"
PASSWORD_VARIABLE: Final = "BK_SASL_PASSWORD"

_IN_CLEAR: Final = (
    "DIGEST-MD5 is not spoken over an unencrypted connection, because whoever listens can try passwords: switch TLS on"
)


class SaslServerProvider:
    """A bookie's. Option ``file``: its users (:mod:`bookkeeper.auth.sasl.users`).

    Raises:
        ConfigError: there is no such option, or the file cannot be used.
    """

    plugin = PLUGIN

    def __init__(self, options: Mapping[str, Any], rng: Rng, clock: Clock, *, insecure: bool) -> None:
        path = file_option(options, "sasl", "bk credentials sasl-user makes it")
        self._users = WatchedFile(path, parse_users)
        self._freshness = Freshness(clock)
        self._rng = rng
        self._clock = clock
        self._insecure = insecure

    def refresh(self) -> None:
        """Read the file of users again if it has changed. Raises: ConfigError: it cannot be used."""
        self._users.refresh()

    def exchange(self, peer: Peer) -> SaslServerExchange:
        """A new connection's."""
        if not (peer.encrypted or self._insecure):
            raise AuthenticationError(_IN_CLEAR)
        self._freshness.refresh(self._users)
        return SaslServerExchange(self, DigestServer(nonce(self._rng)))

    def user(self, name: str) -> SaslUser | None:
        """A user, as the file has him now."""
        return self._users.value.get(name)

    def now(self) -> float:
        """Monotonic seconds."""
        return self._clock.monotonic()

    def ended(self, credential: object) -> str | None:
        """Why a user who was known is known no more; None if he still is."""
        assert isinstance(credential, SaslUser)
        found = self._users.value.get(credential.name)
        if found is None:
            return "its user was removed"
        return None if found == credential else "its user has another password or other roles"


class SaslServerExchange:
    """The bookie's side on one connection."""

    def __init__(self, provider: SaslServerProvider, machine: DigestServer) -> None:
        self._provider = provider
        self._machine = machine
        self._challenged = False

    async def answer(self, payload: bytes) -> ExchangeResult:
        """See :class:`bookkeeper.auth.provider.ServerExchange`."""
        provider, machine = self._provider, self._machine
        if not self._challenged:
            self._challenged = True
            return ExchangeResult(machine.challenge(payload, provider.now()))
        found: list[SaslUser] = []

        def hash_of(name: str) -> bytes | None:
            user = provider.user(name)
            found[:] = [] if user is None else [user]
            return None if user is None else user.hash

        verified = machine.verify(payload, hash_of, provider.now())
        (user,) = found
        return ExchangeResult(verified.reply, principal=user.name, roles=user.roles, credential=user)


class SaslClientProvider:
    """A client's. Option ``file``: a private file of two lines, the user's name and the password; without it both come
    from ``BK_SASL_USER`` and ``BK_SASL_PASSWORD``. Option ``realm``, if a bookie offers several.

    Raises:
        ConfigError: there is neither, or it cannot be used.
    """

    plugin = PLUGIN

    def __init__(
        self, options: Mapping[str, Any], rng: Rng, environment: Mapping[str, str] | None = None, *, insecure: bool
    ) -> None:
        realm = options.get("realm")
        if realm is not None and not isinstance(realm, str):
            raise ConfigError("auth.options.realm must be a text")
        self._realm = realm
        self._rng = rng
        self._insecure = insecure
        self._file: WatchedFile[tuple[str, Secret]] | None = None
        environment = os.environ if environment is None else environment
        name, password = environment.get(USER_VARIABLE), environment.get(PASSWORD_VARIABLE)
        rest = {key: value for key, value in options.items() if key != "realm"}
        if rest or not (name and password):
            place = f"or set {USER_VARIABLE} and {PASSWORD_VARIABLE}"
            self._file = WatchedFile(file_option(rest, "sasl", f"user and password, a line each; {place}"), _user_in)
        else:
            self._given = _checked(name, password, f"{USER_VARIABLE} in the environment")

    def exchange(self, peer: Peer) -> SaslClientExchange:
        """A new connection's. The file is read again if it has changed."""
        if not (peer.encrypted or self._insecure):
            raise AuthenticationError(_IN_CLEAR)
        if self._file is not None:
            self._file.refresh()
        user, password = self._given if self._file is None else self._file.value
        return SaslClientExchange(DigestClient(user, password, nonce(self._rng), realm=self._realm))


class SaslClientExchange:
    """The client's side on one connection."""

    def __init__(self, machine: DigestClient) -> None:
        self._machine = machine
        self._responded = False

    async def first(self) -> bytes:
        """Nothing: the bookie begins."""
        return b""

    async def answer(self, payload: bytes) -> bytes | None:
        """See :class:`bookkeeper.auth.provider.ClientExchange`."""
        if not self._responded:
            self._responded = True
            return self._machine.respond(payload)
        self._machine.accept(payload)
        return None


def _user_in(text: str, source: str) -> tuple[str, Secret]:
    lines = text.splitlines()
    if len(lines) != 2 or not all(lines):
        raise ConfigError(f"{source} must have two lines, the user's name and the password")
    return _checked(lines[0], lines[1], source)


def _checked(name: str, password: str, source: str) -> tuple[str, Secret]:
    try:
        require_name(name)
    except ValueError as error:
        raise ConfigError(f"{source}: {error}") from error
    return name, Secret(password)


def nonce(rng: Rng) -> bytes:
    """256 bits of chance, as text."""
    return b"%064x" % rng.getrandbits(256)
