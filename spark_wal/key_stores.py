"""Java's key stores, in its format JKS: a certificate authority for a trust store, a key and its chain for a key store.

Stock Hadoop reads neither PEM nor the PKCS#12 that OpenSSL makes without keys. JKS every Java reads; its own protection
of keys is weak, so a store with a key is a private file, whatever its password.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Sequence
from typing import Final

from spark_wal.der import octets, sequence
from spark_wal.secret import Secret

_MAGIC: Final = 0xFEEDFEED
_VERSION: Final = 2
_KEY_ENTRY: Final = 1
_CERTIFICATE_ENTRY: Final = 2
_WHITENER: Final = b"Mighty Aphrodite"
_KEY_PROTECTOR: Final = bytes.fromhex("300e060a2b060104012a021101010500")
"""The algorithm of a protected key: 1.3.6.1.4.1.42.2.17.1.1."""


def trust_store(certificates: Sequence[bytes], password: Secret, at_ms: int) -> bytes:
    """A store of authorities (DER)."""
    entries = [
        struct.pack(">I", _CERTIFICATE_ENTRY) + _text(f"ca-{number}") + struct.pack(">q", at_ms) + _certificate(data)
        for number, data in enumerate(certificates)
    ]
    return _store(entries, password)


def key_store(key: bytes, chain: Sequence[bytes], password: Secret, at_ms: int) -> bytes:
    """A store of one private key (PKCS#8 DER) and its certificates, the key's own first."""
    protected = _protect(key, password)
    entry = struct.pack(">I", _KEY_ENTRY) + _text("client") + struct.pack(">q", at_ms)
    entry += struct.pack(">I", len(protected)) + protected
    entry += struct.pack(">I", len(chain)) + b"".join(map(_certificate, chain))
    return _store([entry], password)


def _store(entries: Sequence[bytes], password: Secret) -> bytes:
    data = struct.pack(">III", _MAGIC, _VERSION, len(entries)) + b"".join(entries)
    return data + hashlib.sha1(_utf16(password) + _WHITENER + data, usedforsecurity=False).digest()


def _certificate(data: bytes) -> bytes:
    return _text("X.509") + struct.pack(">I", len(data)) + data


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def _utf16(password: Secret) -> bytes:
    return password.reveal().encode("utf-16-be")


def _protect(key: bytes, password: Secret) -> bytes:
    """The key, covered by a chain of hashes of the password; its own hash last."""
    word = _utf16(password)
    salt = secrets.token_bytes(20)
    stream, last = bytearray(), salt
    while len(stream) < len(key):
        last = hashlib.sha1(word + last, usedforsecurity=False).digest()
        stream += last
    covered = bytes(a ^ b for a, b in zip(key, stream, strict=False))
    check = hashlib.sha1(word + key, usedforsecurity=False).digest()
    return sequence(_KEY_PROTECTOR, octets(salt + covered + check))
