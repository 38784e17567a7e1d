"""The only module that uses the library ``cryptography`` for entries: it seals and opens runs of them, and wraps keys.

    nonce             entry id, padded with zeros in front to 96 bits
    associated data   ledger id, entry id: 8 bytes each, big-endian; then how the payload was packed, if it was

So an entry opens in its own place only, and as what it was sealed. Nothing here remembers what was sealed:
:mod:`bookkeeper.encryption.entries` sees to it that an id is sealed once. The library is loaded with the first key, and
who encrypts nothing needs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from struct import Struct
from typing import Final, Protocol

from bookkeeper.errors import ConfigError, DecryptionError
from bookkeeper.install import how_to_install
from bookkeeper.seams import Buffer

KEY_BYTES: Final = 32
"""Of every key: of a ledger's data key, and of a key that wraps data keys."""

TAG_BYTES: Final = 16
"""By so much an entry is longer when it is sealed."""

_NONCE: Final = Struct(">4xq")
_PLACE: Final = Struct(">qq")


class Cipher(StrEnum):
    """How entries are sealed: authenticated encryption, with a nonce of 96 bits."""

    AES_256_GCM = "aes-256-gcm"
    CHACHA20_POLY1305 = "chacha20-poly1305"


class Aead(Protocol):
    """The part of the library's ciphers that is used."""

    def encrypt(self, nonce: bytes, data: Buffer, associated_data: bytes) -> bytes: ...
    def decrypt(self, nonce: bytes, data: Buffer, associated_data: bytes) -> bytes: ...


def require_library() -> None:
    """Make sure that this process can encrypt. Raises: ConfigError: names what to install."""
    try:
        import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "encryption of entries needs the library cryptography, which is not installed: "
            + how_to_install("encryption")
        ) from error


def new_aead(cipher: Cipher, key: bytes) -> Aead:
    """A cipher with this key of 32 bytes. Raises: ConfigError: the library is missing."""
    require_library()
    from cryptography.hazmat.primitives.ciphers import aead

    return aead.AESGCM(key) if cipher is Cipher.AES_256_GCM else aead.ChaCha20Poly1305(key)


def seal_run(aead: Aead, ledger_id: int, first: int, payloads: Sequence[Buffer], packed_by: bytes = b"") -> list[bytes]:
    """Consecutive entries, sealed. ``packed_by``: how the payloads were packed; empty if they are as they are."""
    encrypt, nonce, place = aead.encrypt, _NONCE.pack, _PLACE.pack
    return [
        encrypt(nonce(entry_id), payload, place(ledger_id, entry_id) + packed_by)
        for entry_id, payload in enumerate(payloads, first)
    ]


def open_run(aead: Aead, ledger_id: int, first: int, sealed: Sequence[Buffer], packed_by: bytes = b"") -> list[bytes]:
    """Consecutive entries, as they were before they were sealed.

    Raises:
        DecryptionError: one of them was not sealed by who has the key, or not for this place, or
            packed in another way.
    """
    from cryptography.exceptions import InvalidTag

    decrypt, nonce, place = aead.decrypt, _NONCE.pack, _PLACE.pack
    opened: list[bytes] = []
    try:
        for entry_id, data in enumerate(sealed, first):
            opened.append(decrypt(nonce(entry_id), data, place(ledger_id, entry_id) + packed_by))
    except InvalidTag:
        raise DecryptionError(
            f"entry {first + len(opened)} of ledger {ledger_id} does not open with the ledger's key: whoever wrote or "
            "changed it did not have the key; its digest is right, so a bookie, or somebody who knows the ledger's "
            "password, has replaced it"
        ) from None
    return opened


def wrap_key(wrapping: bytes, key: bytes) -> bytes:
    """A key as it may be stored: encrypted by AES key wrap (RFC 3394). Raises: ConfigError: the library is missing."""
    require_library()
    from cryptography.hazmat.primitives.keywrap import aes_key_wrap

    return aes_key_wrap(wrapping, key)


def unwrap_key(wrapping: bytes, wrapped: bytes) -> bytes | None:
    """The key that ``wrap_key`` wrapped; None: it was wrapped by another one, or is damaged.

    Raises: ConfigError: the library is missing.
    """
    require_library()
    from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap

    try:
        return aes_key_unwrap(wrapping, wrapped)
    except InvalidUnwrap:
        return None
