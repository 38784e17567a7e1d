"""Digests, keys and explicit last-add-confirmed blobs, against captured bytes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import crcmod.predefined
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import DigestMismatchError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.ledger import digest
from bookkeeper.ledger.digest import DigestScheme, DigestType
from tests.bookkeeper.ledger.vectors import load

NAMES = {"MAC": DigestType.HMAC}


def scheme_of(row: dict[str, Any]) -> DigestScheme:
    name = row["digest_type"]
    return DigestScheme(NAMES.get(name) or DigestType[name], bytes.fromhex(row["password_hex"]))


def test_master_keys_are_those_of_the_official_client() -> None:
    for row in load("digests.json")["master_keys"]:
        assert digest.master_key(bytes.fromhex(row["password_hex"])).hex() == row["master_key"]


def test_entries_are_sealed_and_opened_like_the_official_ones() -> None:
    for row in load("digests.json")["packets"]:
        scheme, payload, packet = scheme_of(row), bytes.fromhex(row["payload_hex"]), bytes.fromhex(row["packet"])
        ids = row["ledger_id"], row["entry_id"]
        assert scheme.seal(*ids, row["lac"], row["length"], payload) == packet
        entry = scheme.unseal(packet, *ids)
        assert (entry.payload, entry.last_add_confirmed, entry.length) == (payload, row["lac"], row["length"])
        assert scheme.verify(memoryview(packet), row["ledger_id"], None) == payload


def test_explicit_last_add_confirmed_blobs_are_the_official_ones() -> None:
    for row in load("digests.json")["lac_packets"]:
        scheme, body = scheme_of(row), bytes.fromhex(row["body"])
        assert scheme.seal_lac(row["ledger_id"], row["lac"]) == body
        assert scheme.unseal_lac(body, row["ledger_id"]) == row["lac"]


@pytest.mark.rule("L5")
@pytest.mark.parametrize("kind", [DigestType.CRC32, DigestType.HMAC, DigestType.CRC32C])
def test_every_flipped_bit_is_noticed(kind: DigestType) -> None:
    scheme = DigestScheme(kind, b"pw")
    packet = scheme.seal(5, 6, 5, 100, b"payload")
    for bit in range(len(packet) * 8):
        damaged = bytearray(packet)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DigestMismatchError):
            scheme.unseal(damaged, 5, 6)


@pytest.mark.rule("L5")
@pytest.mark.parametrize("kind", list(DigestType))
def test_another_entry_or_ledger_is_refused_though_its_digest_is_right(kind: DigestType) -> None:
    scheme = DigestScheme(kind, b"")
    packet = scheme.seal(5, 6, 5, 7, b"payload")
    for ledger_id, entry_id in ((5, 7), (4, 6), (4, None)):
        with pytest.raises(DigestMismatchError):
            scheme.unseal(packet, ledger_id, entry_id)
    with pytest.raises(DigestMismatchError):
        scheme.unseal(packet[: scheme.overhead - 1], 5, 6)
    blob = scheme.seal_lac(5, 6)
    for broken, ledger_id in ((blob, 6), (blob[:-1], 5), (blob + b"x", 5)):
        with pytest.raises(DigestMismatchError):
            scheme.unseal_lac(broken, ledger_id)


def test_another_password_is_noticed_by_hmac_only() -> None:
    for kind in (DigestType.HMAC, DigestType.CRC32C):
        packet = DigestScheme(kind, b"one").seal(1, 1, 0, 1, b"x")
        other = DigestScheme(kind, b"two")
        if kind is DigestType.HMAC:
            with pytest.raises(DigestMismatchError):
                other.unseal(packet, 1, 1)
        else:
            assert other.verify(packet, 1, 1) == b"x"


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_fast_checksum_the_fallback_and_the_definition_agree(head: bytes, tail: bytes) -> None:
    slow = digest._crcmod_crc32c()
    whole = crcmod.predefined.mkPredefinedCrcFun("crc-32c")(head + tail)
    assert digest.crc32c(tail, digest.crc32c(head, 0)) == slow(tail, slow(head, 0)) == whole


def test_the_check_value_of_crc32c() -> None:
    assert digest.crc32c(b"123456789", 0) == 0xE3069283


def test_a_scheme_does_not_show_its_keys() -> None:
    assert repr(DigestScheme(DigestType.HMAC, b"secret")) == "DigestScheme(HMAC)"


def test_the_library_is_there_as_soon_as_somebody_has_a_scheme_that_needs_it() -> None:
    """It was loaded with the first checksum, on a loop in the background: a process that was forked in that moment had
    it half imported, and could compute none for as long as it lived."""
    program = (
        "import sys; from bookkeeper.ledger.digest import DigestScheme, DigestType\n"
        "DigestScheme(DigestType.HMAC, b''); assert 'crc32c' not in sys.modules, 'a bookie needs none'\n"
        "DigestScheme(DigestType.CRC32C, b''); assert 'crc32c' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60 * stretch(), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
