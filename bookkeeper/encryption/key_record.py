"""What a ledger's metadata say about the encryption of its entries: JSON in the custom metadata (X24).

    {"format": 1, "cipher": "aes-256-gcm", "compression": "none", "key_id": "2026-07", "wrapped_key": "<base64>"}

The key in it is wrapped, so nothing here is secret. Programs that do not know of it read the entries as they are
stored: sealed.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bookkeeper.encryption.ciphers import Cipher
from bookkeeper.encryption.compression import Compression
from bookkeeper.errors import MetadataFormatError, check

RECORD_NAME: Final = "bookkeeper-py.encryption"
"""The name among a ledger's custom metadata."""

FORMAT: Final = 1

KEY_ID_MAX: Final = 256
WRAPPED_MAX: Final = 4096
"""Characters of a key's id and bytes of a wrapped key at most."""

RECORD_MAX: Final = 8192
"""Bytes of the whole at most."""


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key that only who has the wrapping key can use."""

    key_id: str
    """Which wrapping key."""
    data: bytes
    """As the provider made it."""

    @property
    def shown_id(self) -> str:
        """The id as a message may have it, whatever the metadata say: on one line, and nothing for a terminal."""
        return self.key_id if self.key_id.isprintable() else repr(self.key_id)[1:-1]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """How the entries of one ledger are encrypted."""

    cipher: Cipher
    compression: Compression
    key: WrappedKey

    def encode(self) -> bytes:
        """The bytes of the record. The provider's part of it was checked before."""
        value = {
            "format": FORMAT,
            "cipher": self.cipher.value,
            "compression": self.compression.name.lower(),
            "key_id": self.key.key_id,
            "wrapped_key": b64encode(self.key.data).decode(),
        }
        data = json.dumps(value, separators=(",", ":")).encode()
        check(len(data) <= RECORD_MAX, "X24", f"the record of a ledger's key has {len(data)} bytes")
        return data


def key_record_in(custom: Mapping[str, bytes], ledger_id: int) -> KeyRecord | None:
    """The record among a ledger's custom metadata; None: its entries are not encrypted.

    Raises:
        MetadataFormatError: it cannot be understood, or is of a newer program.
    """
    data = custom.get(RECORD_NAME)
    if data is None:
        return None
    try:
        if len(data) > RECORD_MAX:
            raise ValueError(f"it has {len(data)} bytes")
        value = json.loads(data)
        if value["format"] != FORMAT:
            raise ValueError(f"it has format {value['format']!r}, and this program reads format {FORMAT}")
        key_id, wrapped = value["key_id"], b64decode(value["wrapped_key"], validate=True)
        if not isinstance(key_id, str) or len(key_id) > KEY_ID_MAX or not 0 < len(wrapped) <= WRAPPED_MAX:
            raise ValueError("its key cannot be one")
        cipher, compression = Cipher(value["cipher"]), Compression.named(value["compression"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MetadataFormatError(
            f"the metadata of ledger {ledger_id} say that its entries are encrypted, in a way that this program does "
            f"not understand: {error}"
        ) from error
    return KeyRecord(cipher, compression, WrappedKey(key_id, wrapped))
