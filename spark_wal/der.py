"""The little of DER and PEM that certificates and private keys need here."""

from __future__ import annotations

import base64
import binascii
import calendar
import re
from typing import Final

_PEM: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,64})-----([A-Za-z0-9+/=\s]*)-----END \1-----")

_SEQUENCE: Final = 0x30
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_RSA: Final = bytes.fromhex("300d06092a864886f70d0101010500")
_EC_PUBLIC_KEY: Final = bytes.fromhex("06072a8648ce3d0201")


class CertificateFormatError(ValueError):
    """Bytes that are no certificate, or no private key that can be used."""


def certificates_of(pem: bytes) -> list[bytes]:
    """The certificates in a PEM file, as DER, in order.

    Raises:
        CertificateFormatError: there is none.
    """
    found = [_decode(body) for kind, body in _PEM.findall(pem) if kind == b"CERTIFICATE"]
    if not found:
        raise CertificateFormatError("it has no -----BEGIN CERTIFICATE-----")
    return found


def private_key_of(pem: bytes) -> bytes:
    """The private key in a PEM file, as PKCS#8 DER.

    Raises:
        CertificateFormatError: there is none, it has a password, or it is of an unknown kind.
    """
    for kind, body in _PEM.findall(pem):
        if kind == b"PRIVATE KEY":
            return _decode(body)
        if kind == b"RSA PRIVATE KEY" and b"ENCRYPTED" not in body:
            return sequence(b"\x02\x01\x00", _RSA, _element(0x04, _decode(body)))
        if kind == b"EC PRIVATE KEY":
            key = _decode(body)
            return sequence(b"\x02\x01\x00", sequence(_EC_PUBLIC_KEY, _curve_of(key)), _element(0x04, key))
    raise CertificateFormatError("it has no private key without a password (openssl pkcs8 -topk8 -nocrypt makes one)")


def not_after_ms(certificate: bytes) -> int:
    """When a certificate (DER) ends, in milliseconds since 1970.

    Raises:
        CertificateFormatError: it is none.
    """
    _, fields, _ = element(certificate)
    _, fields, _ = element(fields)
    if fields[:1] == b"\xa0":  # the version, where there is one
        _, _, fields = element(fields)
    for _ in range(3):  # number, algorithm, issuer
        _, _, fields = element(fields)
    _, validity, _ = element(fields)
    _, _, rest = element(validity)
    kind, text, _ = element(rest)
    return _time_ms(kind, text)


def element(data: bytes) -> tuple[int, bytes, bytes]:
    """The first element: its tag, its content, and what follows it."""
    if len(data) < 2:
        raise CertificateFormatError("it ends early")
    length, start = data[1], 2
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or len(data) < 2 + size:
            raise CertificateFormatError("a length that cannot be")
        length, start = int.from_bytes(data[2 : 2 + size], "big"), 2 + size
    if len(data) < start + length:
        raise CertificateFormatError("it ends early")
    return data[0], data[start : start + length], data[start + length :]


def sequence(*parts: bytes) -> bytes:
    """A sequence of elements."""
    return _element(_SEQUENCE, b"".join(parts))


def octets(data: bytes) -> bytes:
    """An octet string."""
    return _element(0x04, data)


def _element(tag: int, data: bytes) -> bytes:
    size = len(data)
    if size < 0x80:
        return bytes([tag, size]) + data
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + data


def _curve_of(key: bytes) -> bytes:
    """The curve's name in an EC private key, whole: version, key, [0] curve."""
    _, fields, _ = element(key)
    while fields:
        tag, content, fields = element(fields)
        if tag == 0xA0:
            return content
    raise CertificateFormatError("the EC key does not name its curve")


def _decode(body: bytes) -> bytes:
    try:
        return base64.b64decode(b"".join(body.split()), validate=True)
    except binascii.Error as error:
        raise CertificateFormatError(str(error)) from None


def _time_ms(kind: int, text: bytes) -> int:
    digits = text.decode("ascii", "replace")
    if kind == _UTC_TIME and re.fullmatch(r"\d{12}Z", digits):
        digits = ("19" if digits >= "50" else "20") + digits
    elif kind != _GENERALIZED_TIME or not re.fullmatch(r"\d{14}Z", digits):
        raise CertificateFormatError("a time that cannot be read")
    parts = [int(digits[:4]), *(int(digits[at : at + 2]) for at in range(4, 14, 2))]
    return calendar.timegm((*parts, 0, 0, 0)) * 1000
