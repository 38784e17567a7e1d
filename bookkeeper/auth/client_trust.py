"""Whether a certificate that was good when its client was admitted is still good (X15). Pure.

OpenSSL judges certificates in a handshake. This judges those of open connections by the same file: the authorities that
sign clients' certificates, and revocation lists.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.auth.revocations import Revocations, issued_by

_AUTHORITY: Final = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")
_LIST: Final = re.compile(r"-----BEGIN X509 CRL-----([A-Za-z0-9+/=\s]*)-----END X509 CRL-----")


@dataclass(frozen=True, slots=True)
class ClientTrust:
    """What one reading of the file said."""

    authorities: frozenset[bytes] = frozenset()
    """Their certificates (DER)."""
    lists: frozenset[bytes] = frozenset()
    """The revocation lists (DER)."""
    revocations: Revocations | None = field(default_factory=Revocations)
    """What the lists say; None if they cannot be read here."""

    @classmethod
    def parse(cls, text: str) -> ClientTrust:
        """Read a file's text (PEM); skip everything else in it."""
        try:
            revocations: Revocations | None = Revocations.parse(text)
        except ModuleNotFoundError:  # cryptography
            revocations = None
        except ValueError:
            revocations = Revocations(unreadable=True)
        return cls(_blocks(_AUTHORITY, text), _blocks(_LIST, text), revocations)

    def why_refused(
        self, certificate: bytes, before: ClientTrust, now_s: float, chain: Sequence[bytes] = ()
    ) -> str | None:
        """Why a client with this certificate (DER) would be refused today; None if it would not.

        Args:
            before: what was read last when the client was admitted.
            now_s: seconds since 1970.
            chain: the authorities that the client has shown with its certificate, which a handshake has verified.

        What cannot be known here is left to a handshake: the connection ends, and OpenSSL judges the next one.
        """
        if self.revocations is None:
            if self.lists != before.lists:
                return "the revocation lists have changed, and cannot be read without the package cryptography"
        elif self._revokes(self.revocations, certificate, now_s):
            return "its certificate was revoked, or its authority's revocation list is missing or has ended"
        if before.authorities <= self.authorities or self._vouches(certificate, chain):
            return None
        return "the authority of its certificate was removed"

    @staticmethod
    def _revokes(revocations: Revocations, certificate: bytes, now_s: float) -> bool:
        try:
            return revocations.refuses(certificate, now_s)
        except ValueError:
            return True

    def _vouches(self, certificate: bytes, chain: Sequence[bytes]) -> bool:
        """Whether one of the authorities has signed it, or an authority of the chain that one of them has signed."""
        left = set(chain) - {certificate}
        try:
            while not issued_by(certificate, self.authorities):
                above = next((each for each in left if issued_by(certificate, {each})), None)
                if above is None:
                    return False
                left.remove(above)
                certificate = above
        except (ValueError, ModuleNotFoundError):
            return False
        return True


def _blocks(pattern: re.Pattern[str], text: str) -> frozenset[bytes]:
    found = set()
    for block in pattern.findall(text):
        try:
            found.add(b64decode(block))
        except Error:  # OpenSSL's affair
            continue
    return frozenset(found)
