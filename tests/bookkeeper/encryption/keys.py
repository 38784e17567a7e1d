"""Keys of the tests."""

from __future__ import annotations

from base64 import b64encode

from bookkeeper.encryption import CallableKeys, EncryptionConfig, KeyRing

OLD, NEW = bytes(range(32)), bytes(range(32, 64))


def ring(**keys: bytes) -> CallableKeys:
    """Keys that are always the same, the newest first."""
    return CallableKeys(lambda: KeyRing(keys), "the test")


def encrypted(**changes: str | bool) -> EncryptionConfig:
    """A client that encrypts under ``NEW``."""
    return EncryptionConfig(provider=ring(new=NEW), **changes)  # type: ignore[arg-type]


def line(key_id: str, key: bytes) -> str:
    """A key as it stands in a file."""
    return f"{key_id}:{b64encode(key).decode()}\n"
