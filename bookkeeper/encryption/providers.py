"""Where the keys are that wrap the data keys of ledgers: a file, the environment, a function, or a service of your own.

A provider wraps a new ledger's data key under its newest key, and unwraps those of all ledgers that it has ever had a
key for. To rotate, put a new key in front: what was wrapped under the others stays readable for as long as these are
there. A data key whose wrapping key is lost is lost, and the ledger's entries with it.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from bookkeeper.encryption.ciphers import KEY_BYTES, unwrap_key, wrap_key
from bookkeeper.encryption.key_record import WrappedKey
from bookkeeper.errors import ConfigError, NoLedgerKeyError, in_words
from bookkeeper.real.private import read_private

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


@runtime_checkable
class KeyProvider(Protocol):
    """Wraps and unwraps data keys. Calls may come at the same time."""

    async def wrap(self, key: bytes) -> WrappedKey:
        """Wrap a new ledger's data key of 32 bytes, under the newest key.

        Returns: its id (256 characters at most) and what ``unwrap`` needs (4096 bytes at most).

        Raises: ConfigError: there is no usable key. Any other error fails the creation of the ledger.
        """

    async def unwrap(self, wrapped: WrappedKey) -> bytes:
        """The data key again.

        Raises: NoLedgerKeyError: this provider does not have the key. ConfigError: it cannot be used.
        """


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys by id, of 32 bytes each. The first one wraps new data keys."""

    keys: Mapping[str, bytes] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.keys:
            raise ConfigError("there is no key: give one line ID:BASE64 for each, the newest first")
        for key_id, key in self.keys.items():
            if _ID.fullmatch(key_id) is None:
                raise ConfigError("the id of a key has up to 64 letters, digits, dots, dashes and underscores")
            if not isinstance(key, bytes) or len(key) != KEY_BYTES:
                raise ConfigError(f"key {key_id} must have {KEY_BYTES} bytes: openssl rand -base64 32 makes one")

    @classmethod
    def parse(cls, text: str) -> KeyRing:
        """Keys as a file or the environment has them: ``ID:BASE64``, one a line or with commas between, the newest
        first. Lines that begin with ``#`` say nothing.

        Raises: ConfigError: this is no list of keys. No key is shown.
        """
        keys: dict[str, bytes] = {}
        for number, line in enumerate(text.replace(",", "\n").splitlines(), 1):
            if not (line := line.strip()) or line.startswith("#"):
                continue
            key_id, colon, encoded = line.partition(":")
            try:
                key = b64decode(encoded.strip(), validate=True)
            except NotBase64:
                key = b""
            if not colon or len(key) != KEY_BYTES:
                raise ConfigError(
                    f"key {number} is not ID:BASE64 with {KEY_BYTES} bytes: openssl rand -base64 32 makes a key"
                )
            if key_id in keys:
                raise ConfigError(f"there are two keys {key_id}")
            keys[key_id] = key
        return cls(keys)

    def wrap(self, key: bytes) -> WrappedKey:
        """Wrap under the first key."""
        key_id, wrapping = next(iter(self.keys.items()))
        return WrappedKey(key_id, wrap_key(wrapping, key))

    def unwrap(self, wrapped: WrappedKey, where: str) -> bytes:
        """Unwrap by the key with this id. Raises: NoLedgerKeyError."""
        wrapping = self.keys.get(wrapped.key_id)
        if wrapping is None:
            raise NoLedgerKeyError(
                f"key {wrapped.shown_id} is needed, and {where} has {', '.join(self.keys)}: add it behind the others"
            )
        key = unwrap_key(wrapping, wrapped.data)
        if key is None:
            raise NoLedgerKeyError(
                f"key {wrapped.key_id} of {where} is not the one under which the ledger's key was wrapped, although "
                "it has its id"
            )
        return key


class CallableKeys:
    """Keys that a function returns, which is called each time: so it may return newer ones."""

    def __init__(self, ring: Callable[[], KeyRing], where: str = "the function that gives the keys") -> None:
        self._ring, self._where = ring, where

    def __repr__(self) -> str:
        return f"<keys of {self._where}>"

    async def wrap(self, key: bytes) -> WrappedKey:
        return self._ring().wrap(key)

    async def unwrap(self, wrapped: WrappedKey) -> bytes:
        return self._ring().unwrap(wrapped, self._where)


class FileKeys(CallableKeys):
    """Keys in a file that only its owner may read. It is read each time: a key that is added counts at once."""

    def __init__(self, path: str) -> None:
        def ring() -> KeyRing:
            try:
                return KeyRing.parse(read_private(path).decode("utf-8", "replace"))
            except OSError as error:
                raise ConfigError(f"the file of keys cannot be read: {in_words(error)}") from error
            except ConfigError as error:
                raise ConfigError(f"the file of keys {path} cannot be used: {error}") from error

        super().__init__(ring, path)


class EnvironmentKeys(CallableKeys):
    """Keys in a variable of the environment."""

    def __init__(self, variable: str, environment: Mapping[str, str]) -> None:
        def ring() -> KeyRing:
            try:
                return KeyRing.parse(environment.get(variable, ""))
            except ConfigError as error:
                raise ConfigError(f"{variable} in the environment cannot be used: {error}") from error

        super().__init__(ring, f"{variable} in the environment")
