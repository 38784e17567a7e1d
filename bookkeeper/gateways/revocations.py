"""Lists of revoked certificates (RFC 5280, 5): which certificates are on them, and until when they are valid. Pure.

OpenSSL refuses revoked certificates in a handshake. This module is for connections that are open when a list comes
(X15), and for a warning before a list ends. After that no client can show that its certificate is not revoked, so all
are refused.

The library ``cryptography`` reads the lists. It is loaded for the first list, so a gateway without one does not need
it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509

_BLOCK: Final = re.compile(r"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Revocations:
    """The content of all revocation lists of a file."""

    revoked: Mapping[x509.Name, Set[int]] = field(default_factory=dict)
    """The revoked serial numbers, by issuer."""
    end: float | None = None
    """When the first of the lists ends, in seconds since 1970; None if no list has an end."""

    @classmethod
    def parse(cls, text: str) -> Revocations:
        """Read the lists in ``text`` (PEM), and skip everything else in it.

        Raises:
            ValueError: a list cannot be read.
            ModuleNotFoundError: there is a list, and the library is not installed.
        """
        revoked: dict[x509.Name, set[int]] = {}
        ends: list[float] = []
        for block in _BLOCK.finditer(text):
            end = _read(block[0].encode("ascii", "replace"), revoked)
            if end is not None:
                ends.append(end)
        return cls(revoked, min(ends, default=None))

    def name(self, certificate: bytes) -> bool:
        """Whether one of the lists revokes this certificate (DER).

        Raises:
            ValueError: the bytes are not a certificate.
        """
        if not self.revoked:
            return False
        from cryptography import x509  # as above

        try:
            shown = x509.load_der_x509_certificate(certificate)
            return shown.serial_number in self.revoked.get(shown.issuer, ())
        except (ValueError, x509.InvalidVersion) as error:
            raise ValueError(f"not a certificate: {error}") from error


def _read(pem: bytes, revoked: dict[x509.Name, set[int]]) -> float | None:
    """Add what one list revokes; return when the list ends."""
    from cryptography import x509  # as above

    try:
        found = x509.load_pem_x509_crl(pem)
        revoked.setdefault(found.issuer, set()).update(entry.serial_number for entry in found)
        return None if found.next_update_utc is None else found.next_update_utc.timestamp()
    except (ValueError, x509.InvalidVersion) as error:
        raise ValueError(f"not a revocation list: {error}") from error
