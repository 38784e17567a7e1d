"""Certificates for gRPC's port, and what gRPC knows of a client. One of the files that know gRPC.

gRPC makes its own TLS. Before each handshake it asks for the newest files, which the shared room has checked. It knows
no revocation lists, so a client's certificate is looked up in them with each call, by the rules of OpenSSL.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import grpc

from bookkeeper.errors import ConfigError, in_words
from bookkeeper.gateways.access_control import AccessControl
from bookkeeper.gateways.authentication import RequestCredentials, UnauthenticatedError, certificate_name
from bookkeeper.gateways.server_tls import PemFiles, ServerCertificates, ServerTlsFiles

logger = logging.getLogger(__name__)

_KINDS: Final = (("x509_uri", "URI"), ("x509_email", "email"), ("x509_dns", "DNS"), ("x509_ip", "IP Address"))
REVOKED: Final = "The client certificate is not accepted: it was revoked, or the list of revoked ones has ended"


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
    common = [(("commonName", value.decode("utf-8", "replace")),) for value in known.get("x509_common_name", ())]
    return {"subjectAltName": tuple(names), "subject": tuple(common)}


def token_of(metadata: Sequence[tuple[str, str | bytes]]) -> str | None:
    """The token in a call's metadata: ``authorization: Bearer TOKEN``."""
    for name, value in metadata:
        if name == "authorization" and isinstance(value, str):
            kind, _, token = value.strip().partition(" ")
            if kind.lower() == "bearer" and token:
                return token.strip()
    return None


def _name_of(certificate: Mapping[str, Any] | None) -> str:
    try:
        return "" if certificate is None else certificate_name(certificate)
    except UnauthenticatedError:
        return ""


class CallerCheck:
    """Says who calls, and whether its certificate is still good."""

    def __init__(self, access: AccessControl, now_ms: Callable[[], int]) -> None:
        self._access = access
        self._now_ms = now_ms

    def principal(self, context: Any) -> Any:
        """The principal of a call; None if nobody is asked.

        Raises:
            UnauthenticatedError: the call has no valid credentials.
        """
        authenticator = self._access.authenticator
        if authenticator.is_open:
            return None
        known = context.auth_context() if self._access.certificates is not None else {}
        if self._is_revoked(known):
            refusal = UnauthenticatedError(REVOKED)
            refusal.claimed = _name_of(certificate_of(known))
            raise refusal
        shown = RequestCredentials(certificate_of(known), token_of(context.invocation_metadata() or ()))
        try:
            return authenticator.principal(shown, self._now_ms())
        except UnauthenticatedError:
            if not self._access.look_for_new_token():
                raise
            return authenticator.principal(shown, self._now_ms())

    def _is_revoked(self, known: Mapping[str, Sequence[bytes]]) -> bool:
        certificates = self._access.certificates
        if certificates is None:
            return False
        now_s = self._now_ms() / 1000
        return any(
            certificates.revocations.refuses(ssl.PEM_cert_to_DER_cert(pem.decode("ascii", "replace")), now_s)
            for pem in known.get("x509_pem_cert", ())
        )
