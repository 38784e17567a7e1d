"""Who sends a request: known by a token, by a client certificate, or not at all if neither is required.

A token comes first. The subject of a certificate is its subject alternative name, or its common name (X5). How a
request carries its token is a matter of the gateway's protocol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.gateways.tokens import Caller, TokenBook
from bookkeeper.ids import counted_address
from bookkeeper.seams import Clock, Rng

DELAY_S: Final = 0.1
"""The least seconds that a failure takes; up to twice that with jitter, and more for repeated failures (X11)."""
DELAY_MAX_S: Final = 2.0
WINDOW_S: Final = 60.0
ADDRESSES_MAX: Final = 10_000


class UnauthenticatedError(Exception):
    """The request has no valid credentials. The text is for the user: one line of ASCII."""

    claimed: str = ""
    """The name in the credentials, where one can be told; for the audit log, never for the user."""


@dataclass(frozen=True, slots=True)
class RefusalTexts:
    """What a refused user reads. The texts never say what is wrong with a credential (X11)."""

    no_token: str = "This gateway wants a token and none came - bk gateway token makes one"
    bad_token: str = "The token is not valid, has expired or was revoked - make a new one with bk gateway token"
    no_certificate: str = "This gateway wants a client certificate and none came"


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """The credentials of a request."""

    certificate: Mapping[str, Any] | None = None
    """The client's verified certificate, as the ssl module shows it."""
    token: str | None = field(default=None, repr=False)
    """A token, or an access token made from one."""


class Authenticator:
    """Authenticates the requests of one gateway. ``book`` returns the current tokens; None if the gateway has none."""

    def __init__(
        self,
        *,
        book: Callable[[], TokenBook] | None = None,
        certificates: bool = False,
        certificate_suffices: bool = False,
        texts: RefusalTexts | None = None,
    ) -> None:
        self._book = book
        self._certificates = certificates
        self._suffices = certificate_suffices or book is None
        self._texts = texts or RefusalTexts()

    @property
    def is_open(self) -> bool:
        """Whether the gateway requires neither tokens nor certificates."""
        return self._book is None and not self._certificates

    def principal(self, shown: RequestCredentials, now_ms: int) -> Caller | None:
        """Return who sends the request; None if the gateway does not authenticate.

        Raises:
            UnauthenticatedError: the request has no valid credentials. The text never says what is wrong (X11).
        """
        if self.is_open:
            return None
        if self._book is not None and (given := shown.token) is not None:
            owner = self._book().owner(given, now_ms)
            if owner is None:
                refusal = UnauthenticatedError(self._texts.bad_token)
                refusal.claimed = self._book().claimed(given)
                raise refusal
            return owner
        if self._certificates and self._suffices and shown.certificate:
            return Caller(certificate_name(shown.certificate))
        raise UnauthenticatedError(self._texts.no_token if self._book is not None else self._texts.no_certificate)


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
        address = counted_address(address)
        now = self._clock.monotonic()
        if address not in self._recent and len(self._recent) >= ADDRESSES_MAX:
            self._recent.pop(next(iter(self._recent)))
        recent = [at for at in self._recent.pop(address, ()) if now - at < WINDOW_S][-100:]
        recent.append(now)
        self._recent[address] = recent
        return min(DELAY_S * (1 + self._rng.random()) * math.sqrt(len(recent)), DELAY_MAX_S)
