"""What a ledger's metadata say about its key: kept whole, bounded, and understood or refused."""

from __future__ import annotations

import json

import pytest

from bookkeeper.compression import Compression
from bookkeeper.encryption.ciphers import Cipher
from bookkeeper.encryption.key_record import (
    KEY_ID_MAX,
    RECORD_MAX,
    RECORD_NAME,
    WRAPPED_MAX,
    KeyRecord,
    WrappedKey,
    key_record_in,
)
from bookkeeper.errors import MetadataFormatError

RECORD = KeyRecord(Cipher.CHACHA20_POLY1305, Compression.ZSTD, WrappedKey("2026-07", bytes(range(40))))


@pytest.mark.rule("X24")
def test_a_record_comes_back_and_the_largest_fits() -> None:
    assert key_record_in({RECORD_NAME: RECORD.encode()}, 7) == RECORD
    assert key_record_in({"other": b"x"}, 7) is None
    largest = KeyRecord(RECORD.cipher, RECORD.compression, WrappedKey("k" * KEY_ID_MAX, bytes(WRAPPED_MAX)))
    assert len(largest.encode()) <= RECORD_MAX
    assert key_record_in({RECORD_NAME: largest.encode()}, 7) == largest


@pytest.mark.rule("X29", "X40")
@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"cipher": "rot13"},
        {"compression": "zip"},
        {"compression": 7},
        {"wrapped_key": "not base64!"},
        {"wrapped_key": ""},
        {"wrapped_key": 5},
        {"key_id": 5},
        {"key_id": "k" * 257},
        {"key_id": None},
    ],
    ids=str,
)
def test_a_record_that_is_not_understood_names_its_ledger(change: dict[str, object]) -> None:
    """Otherwise sealed entries would be handed out as if they were the payloads."""
    wrong = json.dumps(json.loads(RECORD.encode()) | change).encode()
    with pytest.raises(MetadataFormatError, match="ledger 7 say that its entries are encrypted"):
        key_record_in({RECORD_NAME: wrong}, 7)


@pytest.mark.rule("X29", "X40")
@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b"7", b"[" * 9000, b" " * 9000])
def test_bytes_that_are_no_record_are_refused(data: bytes) -> None:
    with pytest.raises(MetadataFormatError):
        key_record_in({RECORD_NAME: data}, 7)


@pytest.mark.rule("X29")
def test_a_record_that_is_too_long_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(MetadataFormatError, match="it has 9000 bytes"):
        key_record_in({RECORD_NAME: RECORD.encode().ljust(9000)}, 7)


@pytest.mark.rule("X38")
def test_the_id_of_a_key_is_shown_on_one_line_whatever_the_metadata_say() -> None:
    assert WrappedKey("2026-07", b"x").shown_id == "2026-07"
    assert WrappedKey("a\n2026 ERROR \x1b[2Jforged", b"x").shown_id == "a\\n2026 ERROR \\x1b[2Jforged"
    record = json.loads(RECORD.encode()) | {"format": "2\nforged"}
    with pytest.raises(MetadataFormatError) as refused:
        key_record_in({RECORD_NAME: json.dumps(record).encode()}, 7)
    assert "\n" not in str(refused.value)
