"""Lists of revoked certificates (RFC 5280, 5): who is on them, and how long they hold. Pure.

OpenSSL refuses a revoked certificate in a handshake. What is read here is for connections that stand when a list comes
(X15), and for a warning before a list ends: from then on nobody can show that they are not revoked, and all are
refused.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_BLOCK: Final = re.compile(r"-----BEGIN X509 CRL-----([A-Za-z0-9+/=\s]+)-----END X509 CRL-----")

_INTEGER: Final = 0x02
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_TIMES: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}


@dataclass(frozen=True, slots=True)
class Revocations:
    """What all lists of a file say."""

    revoked: frozenset[tuple[bytes, bytes]] = frozenset()
    """Issuer and serial number, as they are encoded."""
    end: float | None = None
    """When the first of the lists ends, in seconds since 1970; None: none of them says."""

    @classmethod
    def parse(cls, text: str) -> Revocations:
        """Those in ``text`` (PEM), whatever else is there.

        Raises:
            ValueError: one of them cannot be read.
        """
        revoked: set[tuple[bytes, bytes]] = set()
        ends: list[float] = []
        for block in _BLOCK.finditer(text):
            try:
                end = _read(b64decode(block[1]), revoked)
            except IndexError as error:
                raise ValueError("not a revocation list: it ends early") from error
            if end is not None:
                ends.append(end)
        return cls(frozenset(revoked), min(ends, default=None))

    def name(self, certificate: bytes) -> bool:
        """Whether this certificate (DER) is on one of the lists.

        Raises:
            ValueError: it is no certificate.
        """
        if not self.revoked:
            return False
        try:
            [outer] = _elements(certificate, 0, len(certificate))
            fields = list(_inside(certificate, next(_inside(certificate, outer))))
            if fields[0].tag == _VERSION:
                del fields[0]
            serial, _, issuer = fields[:3]
        except (IndexError, StopIteration) as error:
            raise ValueError("not a certificate") from error
        return (issuer.bytes(certificate), serial.bytes(certificate)) in self.revoked


@dataclass(frozen=True, slots=True)
class _Element:
    tag: int
    start: int
    begin: int
    """Of the content."""
    end: int

    def bytes(self, data: bytes) -> bytes:
        return data[self.start : self.end]


def _read(der: bytes, revoked: set[tuple[bytes, bytes]]) -> float | None:
    """Add what one list revokes; when it ends."""
    [outer] = _elements(der, 0, len(der))
    fields = list(_inside(der, next(_inside(der, outer))))
    if fields and fields[0].tag == _INTEGER:
        del fields[0]
    if len(fields) < 3 or fields[1].tag != _SEQUENCE or fields[2].tag not in _TIMES:
        raise ValueError("not a revocation list")
    issuer, rest = fields[1].bytes(der), fields[3:]
    end = None
    if rest and rest[0].tag in _TIMES:
        end = _time(der, rest.pop(0))
    if rest and rest[0].tag == _SEQUENCE:
        for entry in _inside(der, rest[0]):
            revoked.add((issuer, next(_inside(der, entry)).bytes(der)))
    return end


def _inside(der: bytes, element: _Element) -> Iterator[_Element]:
    if element.tag != _SEQUENCE:
        raise ValueError(f"not a revocation list or certificate: tag {element.tag:#x} at {element.start}")
    return _elements(der, element.begin, element.end)


def _elements(der: bytes, at: int, end: int) -> Iterator[_Element]:
    while at < end:
        size, begin = der[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            size, begin = int.from_bytes(der[begin : begin + count], "big"), begin + count
        if begin + size > end:
            raise ValueError("not a revocation list or certificate: it ends early")
        yield _Element(der[at], at, begin, begin + size)
        at = begin + size


def _time(der: bytes, element: _Element) -> float:
    text = der[element.begin : element.end].decode("ascii", "replace")
    moment = datetime.strptime(text, _TIMES[element.tag]).replace(tzinfo=UTC)
    if element.tag == 0x17 and moment.year >= 2050:  # two digits mean 1950 to 2049
        moment = moment.replace(year=moment.year - 100)
    return moment.timestamp()
