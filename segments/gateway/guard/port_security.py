"""Certificates for gRPC's port, and what gRPC knows of a client. One of the files that know gRPC.

gRPC makes its own TLS. Before each handshake it asks for the newest files, which the shared room has checked. It knows
no revocation lists, so a client's certificate is looked up in them with each call, by the rules of OpenSSL.
"""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import grpc

from bookkeeper.auth.certificate import not_after
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.gateways.access_control import AccessControl
from bookkeeper.gateways.authentication import RequestCredentials, UnauthenticatedError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.server_tls import PemFiles, ServerCertificates, ServerTlsFiles

logger = logging.getLogger(__name__)

_KINDS: Final = (("peer_uri", "URI"), ("peer_email", "email"), ("peer_dns", "DNS"), ("peer_ip", "IP Address"))
_UNIT: Final = "OU="
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*-----END CERTIFICATE-----")
_ESCAPED: Final = re.compile(r"\\([0-9A-Fa-f]{2}|.)")


def check_files(files: ServerTlsFiles | None) -> None:
    """Check what gRPC cannot do.

    Raises:
        ConfigError: client certificates are optional: gRPC asks all clients for one, or none.
    """
    if files is not None and files.client_ca is not None and files.client_certificates == "optional":
        raise ConfigError(
            "gRPC asks every client for a certificate, or none: leave out --client-certificates optional, or run a "
            "second gateway with tokens for clients without certificates"
        )


def server_credentials(certificates: ServerCertificates) -> Any:
    """Credentials of the port. New connections use the newest files that could be read."""
    used: list[PemFiles] = [certificates.pem()]

    def newest() -> Any:
        """gRPC calls this in its own threads, and takes None for "unchanged"."""
        try:
            found = certificates.pem()
        except (OSError, ConfigError) as error:
            logger.warning("the TLS files cannot be read, so new connections use the old ones: %s", in_words(error))
            return None
        if found == used[0]:
            return None
        used[0] = found
        return _configuration(found)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(used[0]), newest, require_client_authentication=used[0].client_ca is not None
    )


def _configuration(pem: PemFiles) -> Any:
    return grpc.ssl_server_certificate_configuration([(pem.key, pem.certificate)], root_certificates=pem.client_ca)


def certificate_of(known: Mapping[str, Sequence[bytes]]) -> Mapping[str, Any] | None:
    """A client's certificate as the ssl module shows it; None if it showed none. ``known`` is gRPC's auth context."""
    if not known.get("x509_pem_cert"):
        return None
    names = [(kind, value.decode("utf-8", "replace")) for key, kind in _KINDS for value in known.get(key, ())]
    subject = [(("commonName", value.decode("utf-8", "replace")),) for value in known.get("x509_common_name", ())]
    for value in known.get("x509_subject", ()):
        subject += [(("organizationalUnitName", unit),) for unit in units_of(value.decode("utf-8", "replace"))]
    return {"subjectAltName": tuple(names), "subject": tuple(subject)}


def units_of(subject: str) -> list[str]:
    """The organisational units in a subject as RFC 4514 writes it, which is last part first, in the certificate's
    order."""
    parts = re.split(r"(?<!\\)(?:\\\\)*[,+]", subject)
    found = [_ESCAPED.sub(_unescaped, part.removeprefix(_UNIT)) for part in parts if part.startswith(_UNIT)]
    return found[::-1]


def _unescaped(escape: re.Match[str]) -> str:
    return escape[1] if len(escape[1]) == 1 else chr(int(escape[1], 16))


@lru_cache(maxsize=1024)
def _der_and_end(pem: bytes) -> tuple[bytes, float]:
    """A client's certificate, which the handshake has verified, and its end."""
    der = ssl.PEM_cert_to_DER_cert(pem.decode("ascii", "replace"))
    return der, not_after(der)


@lru_cache(maxsize=1024)
def _chain_of(pem: bytes) -> tuple[bytes, ...]:
    """The certificates that a client has shown, its own among them."""
    return tuple(ssl.PEM_cert_to_DER_cert(each) for each in _CERTIFICATE.findall(pem.decode("ascii", "replace")))


def token_of(metadata: Sequence[tuple[str, str | bytes]]) -> str | None:
    """The token in a call's metadata: ``authorization: Bearer TOKEN``. Of two none counts: this side and a proxy in
    front of it could each believe another one."""
    found = [value for name, value in metadata if name == "authorization" and isinstance(value, str)]
    if len(found) != 1:
        return None
    kind, _, token = found[0].strip().partition(" ")
    return token.strip() or None if kind.lower() == "bearer" else None


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What gRPC tells of a call, taken at its begin: when the call has ended gRPC has freed what it would be read from,
    and reading it then ends the process."""

    peer: str
    metadata: tuple[tuple[str, str | bytes], ...] = field(repr=False)
    authentication: Mapping[str, Any] = field(repr=False)
    """The client's certificate and its names, as gRPC has them; empty without TLS."""

    @classmethod
    def of(cls, context: Any, *, asks: bool) -> CallFacts:
        """Those of a call that has just begun. Where nobody is asked who he is (``asks``), its peer is enough."""
        if not asks:
            return cls(context.peer(), (), {})
        return cls(context.peer(), tuple(context.invocation_metadata() or ()), dict(context.auth_context()))


class CallerCheck:
    """Says who calls, and whether its certificate is still good."""

    def __init__(self, access: AccessControl, now_ms: Callable[[], int]) -> None:
        self._access = access
        self._now_ms = now_ms

    @property
    def generation(self) -> int:
        """Another number whenever somebody's credentials may be good no more."""
        return self._access.generation

    def principal(self, facts: CallFacts) -> Caller | None:
        """Who sends a call; None if nobody is asked.

        Raises:
            UnauthenticatedError: the call has no valid credentials.
        """
        authenticator = self._access.authenticator
        if authenticator.is_open:
            return None
        shown = self._shown(facts)
        try:
            return authenticator.principal(shown, self._now_ms())
        except UnauthenticatedError:
            if not self._access.refresh_for_unknown_token():
                raise
            return authenticator.principal(shown, self._now_ms())

    def _shown(self, facts: CallFacts) -> RequestCredentials:
        """What a call brings. gRPC knows no lists of revoked certificates, and resumes sessions that an authority has
        signed which was removed since, so both are looked at here."""
        token = token_of(facts.metadata)
        certificates = self._access.certificates
        known = facts.authentication if certificates is not None else {}
        shown = [_der_and_end(pem) for pem in known.get("x509_pem_cert", ())]
        chain = [each for pem in known.get("x509_pem_cert_chain", ()) for each in _chain_of(pem)]
        if certificates is None or not shown:
            return RequestCredentials(token=token)
        now_s = self._now_ms() / 1000
        return RequestCredentials(
            certificate_of(known),
            min(end for _, end in shown),
            any(certificates.refuses(der, now_s, chain) for der, _ in shown),
            token,
        )
