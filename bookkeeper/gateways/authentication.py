"""Who sends a request: known by a token, by a client certificate, or not at all if neither is required.

A token comes first. The subject of a certificate is its subject alternative name, or its common name (X5). How a
request carries its token is a matter of the gateway's protocol. Whoever serves a long request asks again: a credential
may end, be revoked or be taken away meanwhile (X15).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bookkeeper.auth.certificate import CertificateNames
from bookkeeper.gateways.allowed_names import AllowedNames
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.tokens import TokenBook
from bookkeeper.ids import counted_address
from bookkeeper.seams import Clock, Rng

DELAY_S: Final = 0.1
"""The least seconds that a failure takes; up to twice that with jitter, and more for repeated failures (X11)."""
DELAY_MAX_S: Final = 2.0
WINDOW_S: Final = 60.0
ADDRESSES_MAX: Final = 10_000


class UnauthenticatedError(Exception):
    """The request has no valid credentials. The text is for the user: one line of ASCII."""

    def __init__(self, text: str, *, why: str = "", claimed: str = "") -> None:
        """``why`` is for the audit log alone (X11), and so is ``claimed``: who the client says that it is."""
        super().__init__(text)
        self.why = why or text
        self.claimed = claimed


@dataclass(frozen=True, slots=True)
class RefusalTexts:
    """What a refused user reads. The texts never say what is wrong with a credential (X11)."""

    no_token: str = "This gateway wants a token and none came - bk gateway token makes one"
    bad_token: str = "The token is not valid, has expired or was revoked - make a new one with bk gateway token"
    no_certificate: str = "This gateway wants a client certificate and none came"
    bad_certificate: str = (
        "The client certificate is not accepted: it was revoked or has ended, or the list of revoked ones has ended"
    )


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """The credentials of a request."""

    certificate: Mapping[str, Any] | None = None
    """The client's verified certificate, as the ssl module shows it."""
    certificate_end_s: float | None = None
    """When it ends, in seconds since 1970; None: it is not known, or there is none."""
    revoked: bool = False
    """Whether the certificate is on a list of revoked ones, or its authority's list has ended."""
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
        allowed: AllowedNames | None = None,
    ) -> None:
        self._allowed = allowed or AllowedNames()
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
        if shown.certificate and self._certificates:
            self._require_current(shown, now_ms)
        if self._book is not None and (given := shown.token) is not None:
            book = self._book()
            owner = book.owner(given, now_ms)
            if owner is None:
                raise UnauthenticatedError(
                    self._texts.bad_token, why=book.why_refused(given, now_ms), claimed=book.claimed(given)
                )
            return _ending_first(owner, shown)
        if self._certificates and self._suffices and shown.certificate:
            caller = self._allowed.caller(certificate_name(shown.certificate), roles_of(shown.certificate))
            return _ending_first(caller, shown)
        raise UnauthenticatedError(self._texts.no_token if self._book is not None else self._texts.no_certificate)

    def _require_current(self, shown: RequestCredentials, now_ms: int) -> None:
        """Check that a certificate is still good: the handshake has looked, and may be long ago (X15)."""
        ended = shown.certificate_end_s is not None and shown.certificate_end_s * 1000 <= now_ms
        if not ended and not shown.revoked:
            return
        why = "the certificate has ended" if ended else "the certificate was revoked, or its list of revoked ones ended"
        claimed = CertificateNames.of(shown.certificate or {}).principal or ""
        raise UnauthenticatedError(self._texts.bad_certificate, why=why, claimed=claimed)


def _ending_first(caller: Caller, shown: RequestCredentials) -> Caller:
    """The caller with the end of the credential that ends first."""
    if shown.certificate_end_s is None:
        return caller
    ends_ms = int(shown.certificate_end_s * 1000)
    return replace(caller, ends_ms=ends_ms if caller.ends_ms is None else min(ends_ms, caller.ends_ms))


def certificate_name(certificate: Mapping[str, Any]) -> str:
    """The principal of a verified certificate: its first URI, mail, DNS name or address, then the common name (X5)."""
    name = CertificateNames.of(certificate).principal
    if name is None:
        raise UnauthenticatedError(
            "The client certificate names nobody: it has neither an alternative nor a common name"
        )
    return name


def roles_of(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """The roles in a verified certificate, as bookies read them."""
    return CertificateNames.of(certificate).roles


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
