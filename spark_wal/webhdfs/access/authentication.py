"""Who sends a request: known by a token, a client certificate, or, if neither is required, by ``user.name``.

=========================  ====================================================================
``Authorization: Bearer``  a token, or an access token from the OAuth2 endpoint
``delegation=``            a token, plain or inside one of Hadoop's (``HADOOP_TOKEN``)
client certificate         its subject alternative name, or its common name (X5)
``user.name=``             counts only if neither tokens nor certificates are required (X54)
=========================  ====================================================================

The text of a refusal goes into the status line, because Hadoop's client shows its user nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bookkeeper.gateways.tokens import Principal, TokenBook
from bookkeeper.seams import Clock, Rng
from spark_wal.hadoop_tokens import TokenFormatError, password_of
from spark_wal.webhdfs.errors import AccessDeniedError

NO_TOKEN: Final = (
    "This gateway wants a token and none came - give Spark HADOOP_TOKEN or dfs.webhdfs.oauth2 settings, "
    "driver and executors, see wal.spark_conf() in docs/spark.md"
)
BAD_TOKEN: Final = (
    "The token is not valid, has expired or was revoked - make a new one with bk gateway token, and give it to "
    "driver and executors"
)
NO_CERTIFICATE: Final = (
    "This gateway wants a client certificate and none came - see ssl.client.keystore in docs/spark.md"
)

DELAY_S: Final = 0.1
"""The least seconds that a failure takes; up to twice that with jitter, and more for repeated failures (X11)."""
DELAY_MAX_S: Final = 2.0
WINDOW_S: Final = 60.0
ADDRESSES_MAX: Final = 10_000


class UnauthenticatedError(Exception):
    """The request is answered with 401. The text is for the user: one line of ASCII."""


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """The credentials of a request."""

    certificate: Mapping[str, Any] | None = None
    """The client's verified certificate, as the ssl module shows it."""
    authorization: str | None = None
    """The header ``Authorization``."""
    delegation: str | None = None
    """The parameter ``delegation``."""


class Authenticator:
    """Authenticates the requests of one gateway. ``book`` returns the current tokens; None if the gateway has none."""

    def __init__(
        self,
        *,
        book: Callable[[], TokenBook] | None = None,
        certificates: bool = False,
        certificate_suffices: bool = False,
    ) -> None:
        self._book = book
        self._certificates = certificates
        self._suffices = certificate_suffices or book is None

    @property
    def is_open(self) -> bool:
        """Whether the gateway requires neither tokens nor certificates."""
        return self._book is None and not self._certificates

    def principal(self, shown: RequestCredentials, now_ms: int) -> Principal | None:
        """Return who sends the request; None if the gateway does not authenticate.

        Raises:
            UnauthenticatedError: the request has no valid credentials. The text never says what is wrong (X11).
        """
        if self.is_open:
            return None
        if self._book is not None and (given := _token_of(shown)) is not None:
            owner = self._book().owner(given, now_ms)
            if owner is None:
                raise UnauthenticatedError(BAD_TOKEN)
            return owner
        if self._certificates and self._suffices and shown.certificate:
            return Principal(certificate_name(shown.certificate))
        raise UnauthenticatedError(NO_TOKEN if self._book is not None else NO_CERTIFICATE)


def _token_of(shown: RequestCredentials) -> str | None:
    """The token of the request, if it has one. The header comes first."""
    if shown.authorization is not None:
        kind, _, value = shown.authorization.strip().partition(" ")
        if kind.lower() == "bearer" and value:
            return value.strip()
    if shown.delegation:
        try:
            return password_of(shown.delegation)
        except TokenFormatError:
            return shown.delegation
    return None


def certificate_name(certificate: Mapping[str, Any]) -> str:
    """The principal of a verified certificate: its first URI, mail, DNS name or address, then the common name (X5)."""
    names = certificate.get("subjectAltName", ())
    for wanted in ("URI", "email", "DNS", "IP Address"):
        for kind, value in names:
            if kind == wanted:
                return str(value)
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return str(value)
    raise UnauthenticatedError("The client certificate names nobody: it has neither an alternative nor a common name")


def authorize(principal: Principal | None, path: str, operation: str) -> None:
    """Check that this principal may perform the operation on the path (X57).

    Above its roots it may check whether a directory exists, and read the server's defaults, because clients do that.

    Raises:
        AccessDeniedError: the principal may not.
    """
    if principal is None or principal.holds(path):
        return
    if operation in LOOKING and principal.leads_to(path):
        return
    raise AccessDeniedError(f"Permission denied: user={principal.name}, access={operation}, path={path!r}")


LOOKING: Final = frozenset(
    ("GETFILESTATUS", "GETFILELINKSTATUS", "GETSERVERDEFAULTS", "GETHOMEDIRECTORY", "GETTRASHROOT", "CHECKACCESS",
     "GETDELEGATIONTOKEN")
)  # fmt: skip
"""Operations that are allowed above a principal's roots."""


class AuthenticationFailures:
    """How long the answer to a failure waits: with jitter, and longer after repeated failures of an address (X11)."""

    def __init__(self, clock: Clock, rng: Rng) -> None:
        self._clock = clock
        self._rng = rng
        self._recent: dict[str, list[float]] = {}
        self.count = 0
        """The number of failures so far."""

    def delay_s(self, address: str) -> float:
        """Note a failure of ``address``. Returns the seconds to wait before the answer."""
        self.count += 1
        now = self._clock.monotonic()
        if address not in self._recent and len(self._recent) >= ADDRESSES_MAX:
            self._recent.pop(next(iter(self._recent)))
        recent = [at for at in self._recent.pop(address, ()) if now - at < WINDOW_S][-100:]
        recent.append(now)
        self._recent[address] = recent
        return min(DELAY_S * (1 + self._rng.random()) * math.sqrt(len(recent)), DELAY_MAX_S)
