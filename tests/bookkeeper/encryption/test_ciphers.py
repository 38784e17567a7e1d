"""What is sealed opens at its own place with its own key, and nowhere else."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bookkeeper.encryption.ciphers import TAG_BYTES, Cipher, new_aead, open_run, seal_run, unwrap_key, wrap_key
from bookkeeper.errors import ConfigError, DecryptionError
from tests.bookkeeper.encryption.keys import NEW, OLD

RUN = [b"", b"a", b"payload" * 100]


@pytest.mark.rule("X24")
@pytest.mark.parametrize("cipher", Cipher)
def test_a_run_comes_back_and_shows_nothing_of_itself(cipher: Cipher) -> None:
    aead = new_aead(cipher, NEW)
    sealed = seal_run(aead, 7, 3, RUN)
    assert [len(each) for each in sealed] == [len(each) + TAG_BYTES for each in RUN]
    assert b"payload" not in sealed[2]
    assert open_run(aead, 7, 3, sealed) == RUN
    assert open_run(aead, 7, 4, [memoryview(sealed[1])]) == [b"a"]


@pytest.mark.rule("X24")
@pytest.mark.parametrize("cipher", Cipher)
def test_an_entry_that_was_changed_moved_or_sealed_by_others_does_not_open(cipher: Cipher) -> None:
    aead = new_aead(cipher, NEW)
    sealed = seal_run(aead, 7, 3, RUN)
    changed = bytes([sealed[2][0] ^ 1]) + sealed[2][1:]
    for ledger, first, run, named in (
        (8, 3, sealed, "entry 3 of ledger 8"),
        (7, 4, sealed, "entry 4 of ledger 7"),
        (7, 3, [sealed[0], sealed[2]], "entry 4 of ledger 7"),
        (7, 3, [*sealed[:2], changed], "entry 5 of ledger 7"),
        (7, 3, [sealed[0][:-1]], "entry 3"),
        (7, 3, [b""], "entry 3"),
        (7, 3, [b"clear text as it was before"], "entry 3"),
    ):
        with pytest.raises(DecryptionError, match=named):
            open_run(aead, ledger, first, run)
    with pytest.raises(DecryptionError):
        open_run(new_aead(cipher, OLD), 7, 3, sealed)


def test_the_nonce_is_the_entry_id_and_the_place_is_authenticated() -> None:
    """So that another program can read it: AES-256-GCM, 96 bits of nonce, both ids as associated data."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    (sealed,) = seal_run(new_aead(Cipher.AES_256_GCM, NEW), 7, 258, [b"x"])
    place = (7).to_bytes(8, "big") + (258).to_bytes(8, "big")
    assert AESGCM(NEW).decrypt((258).to_bytes(12, "big"), sealed, place) == b"x"


def test_a_wrapped_key_opens_with_its_wrapping_key_only() -> None:
    wrapped = wrap_key(OLD, NEW)
    assert unwrap_key(OLD, wrapped) == NEW and NEW not in wrapped
    assert unwrap_key(NEW, wrapped) is None
    assert unwrap_key(OLD, wrapped[:-1] + bytes([wrapped[-1] ^ 1])) is None
    assert unwrap_key(OLD, b"short") is None


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    no_library: Any = None
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", no_library)
    with pytest.raises(ConfigError, match=r"needs the library cryptography.*pip install '\.\[encryption\]'"):
        new_aead(Cipher.AES_256_GCM, NEW)
