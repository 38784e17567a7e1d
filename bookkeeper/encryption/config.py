"""The table ``[encryption]`` of a client: where keys are, and whether and how new ledgers are encrypted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.encryption.ciphers import Cipher, require_library
from bookkeeper.encryption.compression import Compression
from bookkeeper.encryption.compression import require_library as require_compression
from bookkeeper.encryption.providers import EnvironmentKeys, FileKeys, KeyProvider
from bookkeeper.errors import ConfigError, require

KEYS_VARIABLE: Final = "BK_ENCRYPTION_KEYS"
"""The variable of the environment that holds keys, unless another one is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionConfig:
    """Entries are encrypted by this client, and bookies see none of them in clear. One of the first three is given.

    Raises:
        ConfigError: a value is not allowed, or a library is missing; the message names what to install.
    """

    key_file: str | None = None
    """A file of keys that wrap the keys of ledgers, ``ID:BASE64`` in each line, the newest first. Only its owner may
    read it."""

    key_variable: str | None = None
    """The variable of the environment that holds the same."""

    provider: KeyProvider | None = field(default=None, repr=False)
    """Whoever else wraps them: :class:`bookkeeper.encryption.CallableKeys`, or a service of your own."""

    new_ledgers: bool = True
    """Whether a ledger that this client makes is encrypted, unless ``create_ledger(encrypted=...)`` says it. False:
    encrypted ledgers are only read."""

    required: bool = False
    """Whether this client refuses ledgers that are not encrypted, to read and to make. Otherwise the metadata say it,
    and whoever may change them could take the record of a key away and write entries of his own."""

    cipher: str = Cipher.AES_256_GCM.value
    """``"aes-256-gcm"``, or ``"chacha20-poly1305"`` for processors without AES."""

    compression: str = "none"
    """``"none"``, ``"lz4"`` or ``"zstd"``: before the encryption, because nothing can be compressed after it. How well
    an entry compresses shows in its length."""

    def __post_init__(self) -> None:
        given = [each for each in (self.key_file, self.key_variable, self.provider) if each is not None]
        require(
            len(given) == 1, "encryption needs its keys from one place: key_file, key_variable or provider, and no two"
        )
        require(
            self.provider is None or isinstance(self.provider, KeyProvider),
            f"encryption.provider must have wrap() and unwrap(), and {type(self.provider).__name__} has not",
        )
        require(
            self.new_ledgers or not self.required,
            "encryption.required is for clients whose new ledgers are encrypted, too: leave new_ledgers as it is",
        )
        known = [cipher.value for cipher in Cipher]
        require(self.cipher in known, f"encryption.cipher must be {' or '.join(known)}, not {self.cipher}")
        packed = [each.name.lower() for each in Compression]
        require(
            self.compression in packed,
            f"encryption.compression must be one of {', '.join(packed)}, not {self.compression}",
        )
        require_library()
        require_compression(Compression.named(self.compression))

    @property
    def keys(self) -> KeyProvider:
        """Whoever wraps and unwraps."""
        if self.provider is not None:
            return self.provider
        if self.key_file is not None:
            return FileKeys(self.key_file)
        assert self.key_variable is not None
        return EnvironmentKeys(self.key_variable, os.environ)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> EncryptionConfig | None:
        """Settings from ``BK_ENCRYPTION_KEY_FILE`` or ``BK_ENCRYPTION_KEYS``, with ``BK_ENCRYPTION_NEW_LEDGERS`` and
        ``BK_ENCRYPTION_REQUIRED`` (1 or 0), ``BK_ENCRYPTION_CIPHER`` and ``BK_ENCRYPTION_COMPRESSION``. None if no
        keys are named.

        Raises:
            ConfigError: a value is not allowed.
        """
        file, keys = environment.get("BK_ENCRYPTION_KEY_FILE"), environment.get(KEYS_VARIABLE)
        if not file and not keys:
            return None
        return cls(
            key_file=file or None,
            key_variable=KEYS_VARIABLE if keys else None,
            new_ledgers=_yes_or_no(environment, "BK_ENCRYPTION_NEW_LEDGERS", "1"),
            required=_yes_or_no(environment, "BK_ENCRYPTION_REQUIRED", "0"),
            cipher=environment.get("BK_ENCRYPTION_CIPHER") or Cipher.AES_256_GCM.value,
            compression=environment.get("BK_ENCRYPTION_COMPRESSION") or "none",
        )


def _yes_or_no(environment: Mapping[str, str], name: str, otherwise: str) -> bool:
    given = environment.get(name, otherwise)
    if given not in ("0", "1"):
        raise ConfigError(f'{name} in the environment must be 0 or 1, not "{given}"')
    return given == "1"
