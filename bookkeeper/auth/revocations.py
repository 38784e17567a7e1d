"""Lists of revoked certificates (RFC 5280, 5): which certificates are on them, and until when they are valid. Pure.

OpenSSL refuses revoked certificates in a handshake. This module is for connections that are open when a list comes
(X15), for a library of TLS that knows no lists, and for a warning before a list ends. After that no client can show
that its certificate is not revoked, so all are refused; so are those of an authority without a list if others have one.

The library ``cryptography`` reads the lists. It is loaded for the first list, so a gateway without one does not need
it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509

_BLOCK: Final = re.compile(r"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)
_AUTHORITY: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Revocations:
    """The content of all revocation lists of a file."""

    revoked: Mapping[x509.Name, Set[int]] = field(default_factory=dict)
    """The revoked serial numbers, by issuer."""
    end: float | None = None
    """When the first of the lists ends, in seconds since 1970; None if no list has an end."""

    valid_until: Mapping[x509.Name, float] = field(default_factory=dict)
    """For each issuer, the end of its newest list that it has signed; infinite if the list has no end."""
    unreadable: bool = False
    """There are lists, and what they revoke is not known."""

    @classmethod
    def parse(cls, text: str) -> Revocations:
        """Read the lists in ``text`` (PEM), and who has signed them; skip everything else in it.

        Raises:
            ValueError: a list cannot be read.
            ModuleNotFoundError: there is a list, and the library is not installed.
        """
        revoked: dict[x509.Name, set[int]] = {}
        valid_until: dict[x509.Name, float] = {}
        ends: list[float] = []
        blocks = _BLOCK.findall(text)
        authorities = _authorities(text) if blocks else []
        for block in blocks:
            found = _read(block.encode("ascii", "replace"))
            revoked.setdefault(found.issuer, set()).update(entry.serial_number for entry in found)
            end = math.inf if found.next_update_utc is None else found.next_update_utc.timestamp()
            ends.append(end)
            if any(_has_signed(each, found) for each in authorities):
                valid_until[found.issuer] = max(end, valid_until.get(found.issuer, -math.inf))
        first = min(ends, default=math.inf)
        return cls(revoked, None if first == math.inf else first, valid_until)

    def refuses(self, certificate: bytes, now_s: float) -> bool:
        """Whether a client with this certificate (DER) must be refused, as OpenSSL refuses it in a handshake: a list
        names it, or no list of its authority is signed and in date, though there are lists.

        Raises:
            ValueError: the bytes are not a certificate.
        """
        if self.unreadable:
            return True
        if not self.revoked:
            return False
        shown = _certificate(certificate)
        ended = self.valid_until.get(shown.issuer, -math.inf) <= now_s
        return ended or shown.serial_number in self.revoked.get(shown.issuer, ())


def issued_by(certificate: bytes, authorities: Set[bytes]) -> bool:
    """Whether one of these authorities (DER) has signed a certificate (DER) itself.

    Raises:
        ValueError: the certificate is none.
        ModuleNotFoundError: the library is not installed.
    """
    from cryptography import x509  # as above
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    shown = _certificate(certificate)
    for each in authorities:
        with suppress(ValueError, TypeError, x509.InvalidVersion, InvalidSignature, UnsupportedAlgorithm):
            shown.verify_directly_issued_by(x509.load_der_x509_certificate(each))
            return True
    return False


def _certificate(certificate: bytes) -> x509.Certificate:
    from cryptography import x509  # as above

    try:
        return x509.load_der_x509_certificate(certificate)
    except (ValueError, x509.InvalidVersion) as error:
        raise ValueError(f"not a certificate: {error}") from error


def _read(pem: bytes) -> x509.CertificateRevocationList:
    from cryptography import x509  # as above

    try:
        return x509.load_pem_x509_crl(pem)
    except (ValueError, x509.InvalidVersion) as error:
        raise ValueError(f"not a revocation list: {error}") from error


def _authorities(text: str) -> list[x509.Certificate]:
    from cryptography import x509  # as above

    found = []
    for block in _AUTHORITY.findall(text):
        with suppress(ValueError, x509.InvalidVersion):  # whether it is any good is OpenSSL's affair
            found.append(x509.load_pem_x509_certificate(block.encode("ascii", "replace")))
    return found


def _has_signed(authority: x509.Certificate, revocations: x509.CertificateRevocationList) -> bool:
    from cryptography.exceptions import UnsupportedAlgorithm  # as above

    if authority.subject != revocations.issuer:
        return False
    try:
        return revocations.is_signature_valid(authority.public_key())  # type: ignore[arg-type]  # of a kind that signs
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return False
