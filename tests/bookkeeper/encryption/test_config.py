"""The table ``[encryption]``, and the same in the environment."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bookkeeper.client.config import ClientConfig
from bookkeeper.encryption import EncryptionConfig, EnvironmentKeys, FileKeys
from bookkeeper.errors import ConfigError
from tests.bookkeeper.encryption.keys import NEW, encrypted, line, ring


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "from one place"),
        ({"key_file": "f", "key_variable": "V"}, "from one place"),
        ({"key_file": "f", "cipher": "aes-128-cbc"}, "cipher must be aes-256-gcm or chacha20-poly1305"),
        ({"key_file": "f", "compression": "zip"}, "compression must be one of none, lz4, zstd, not zip"),
        ({"provider": object()}, "must have wrap"),
        ({"key_file": "f", "required": True, "new_ledgers": False}, "required is for clients whose new ledgers"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        EncryptionConfig(**wrong)


def test_a_table_is_read_and_off_is_the_default() -> None:
    assert ClientConfig().encryption is None
    config = ClientConfig.from_mapping({"encryption": {"key_file": "/k", "compression": "zstd"}})
    assert config.encryption == EncryptionConfig(key_file="/k", compression="zstd")
    with pytest.raises(ConfigError, match=r"unknown option: encryption\.keyfile"):
        ClientConfig.from_mapping({"encryption": {"keyfile": "/k"}})


def test_the_environment_may_name_keys() -> None:
    read = EncryptionConfig.from_environment
    assert read({"BK_ENCRYPTION_CIPHER": "x"}) is None
    assert read({"BK_ENCRYPTION_KEY_FILE": "/k"}) == EncryptionConfig(key_file="/k")
    found = read({"BK_ENCRYPTION_KEYS": line("a", NEW), "BK_ENCRYPTION_NEW_LEDGERS": "0"})
    assert found is not None and not found.new_ledgers and isinstance(found.keys, EnvironmentKeys)
    assert isinstance(EncryptionConfig(key_file="/k").keys, FileKeys)
    assert not found.required
    insists = read({"BK_ENCRYPTION_KEY_FILE": "/k", "BK_ENCRYPTION_REQUIRED": "1"})
    assert insists == EncryptionConfig(key_file="/k", required=True)
    with pytest.raises(ConfigError, match="BK_ENCRYPTION_REQUIRED in the environment must be 0 or 1"):
        read({"BK_ENCRYPTION_KEY_FILE": "/k", "BK_ENCRYPTION_REQUIRED": "true"})
    with pytest.raises(ConfigError, match="must be 0 or 1"):
        read({"BK_ENCRYPTION_KEY_FILE": "/k", "BK_ENCRYPTION_NEW_LEDGERS": "yes"})
    with pytest.raises(ConfigError, match="from one place"):
        read({"BK_ENCRYPTION_KEY_FILE": "/k", "BK_ENCRYPTION_KEYS": line("a", NEW)})


@pytest.mark.rule("X59")
def test_a_provider_does_not_show() -> None:
    assert "ring" not in repr(encrypted()) and "provider" not in repr(EncryptionConfig(provider=ring(a=NEW)))


def test_a_missing_library_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    no_library: Any = None
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", no_library)
    with pytest.raises(ConfigError, match="encryption of entries needs the library cryptography"):
        EncryptionConfig(key_file="/k")
