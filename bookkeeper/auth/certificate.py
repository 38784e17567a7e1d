"""Reads certificates: names and roles of their owner, and their end. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

EXPIRES_SOON_S: Final = 14 * 24 * 3600.0
"""Seconds before its end when a certificate begins to count as ending soon (X6)."""

_UNIT_PART: Final = re.compile(r"([0-9]+):(.*)")
_ROLES: Final = "0"

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """The names in a certificate; each kind in the certificate's order."""

    uris: tuple[str, ...] = ()
    mails: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """DNS names."""
    addresses: tuple[str, ...] = ()
    common_name: str | None = None
    units: tuple[str, ...] = ()
    """Organisational units."""

    @classmethod
    def of(cls, certificate: Mapping[str, Any]) -> CertificateNames:
        """The names of a verified certificate, as ``ssl.SSLSocket.getpeercert()`` returns it."""
        alternative: dict[str, list[str]] = {}
        for kind, value in certificate.get("subjectAltName", ()):
            alternative.setdefault(kind, []).append(value)
        subject: dict[str, list[str]] = {}
        for part in certificate.get("subject", ()):
            for kind, value in part:
                subject.setdefault(kind, []).append(value)
        common = subject.get("commonName", ())
        return cls(
            uris=tuple(alternative.get("URI", ())),
            mails=tuple(alternative.get("email", ())),
            hosts=tuple(alternative.get("DNS", ())),
            addresses=tuple(alternative.get("IP Address", ())),
            common_name=common[0] if common else None,
            units=tuple(subject.get("organizationalUnitName", ())),
        )

    @property
    def principal(self) -> str | None:
        """The owner's name: the first alternative name (URI, mail, DNS name, address), else the common name (X5)."""
        for names in (self.uris, self.mails, self.hosts, self.addresses):
            if names:
                return names[0]
        return self.common_name

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles ``0:ROLE,ROLE;1:CLUSTER`` in the first organisational unit, as Apache's BookieAuthZFactory."""
        found: tuple[str, ...] = ()
        for part in self.units[0].split(";") if self.units else ():
            match = _UNIT_PART.match(part)
            if match is not None and match[1] == _ROLES:
                found = tuple(role.strip() for role in match[2].split(","))
        return found


def admitted(names: CertificateNames | None, *, allow: Sequence[str], roles: Sequence[str]) -> str | None:
    """The principal, if the rules admit it; None if not (X5). Empty rules admit every name.

    With ``roles`` the first role of the certificate must be one of them, as with BookieAuthZFactory.
    """
    if names is None or (principal := names.principal) is None:
        return None
    if allow and principal not in allow:
        return None
    if roles and (not names.roles or names.roles[0] not in roles):
        return None
    return principal


def not_after(der: bytes) -> float:
    """When the certificate ends, in seconds since 1970.

    Raises:
        ValueError: these bytes are no certificate.
    """
    try:
        outer = _inside(der, 0, _SEQUENCE)
        body = _inside(der, outer[0], _SEQUENCE)
        at = body[0]
        if der[at] == _VERSION:
            at = _skip(der, at)
        for _ in range(3):  # serial number, algorithm, issuer
            at = _skip(der, at)
        validity = _inside(der, at, _SEQUENCE)
        at = _skip(der, validity[0])
        return _time(der[at], der[slice(*_content(der, at))].decode("ascii"))
    except (IndexError, UnicodeDecodeError) as error:
        raise ValueError("not a certificate") from error


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at ``at`` begins and ends."""
    size, begin = der[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, begin = int.from_bytes(der[begin : begin + count], "big"), begin + count
    if begin + size > len(der):
        raise ValueError("not a certificate: it ends early")
    return begin, begin + size


def _inside(der: bytes, at: int, tag: int) -> tuple[int, int]:
    if der[at] != tag:
        raise ValueError(f"not a certificate: tag {der[at]:#x} at {at}")
    return _content(der, at)


def _skip(der: bytes, at: int) -> int:
    return _content(der, at)[1]


def _time(tag: int, text: str) -> float:
    form = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}.get(tag)
    if form is None:
        raise ValueError(f"not a certificate: tag {tag:#x} is no time")
    moment = datetime.strptime(text, form).replace(tzinfo=UTC)
    if tag == _UTC_TIME and moment.year >= 2050:  # two digits mean 1950 to 2049
        moment = moment.replace(year=moment.year - 100)
    return moment.timestamp()
