"""The watch over what is sealed sees every cipher that clients make, and tells other bytes from the same ones."""

from __future__ import annotations

from typing import Any

import pytest

import bookkeeper.encryption.ledger_keys as ledger_keys
from bookkeeper.encryption import ledger_opener, new_ledger_key
from bookkeeper.encryption.ciphers import Cipher, new_aead, seal_run
from bookkeeper.real import system_seams
from tests.bookkeeper.encryption.keys import NEW, OLD, encrypted
from tests.simulation.watch.seals import watched_seals


def _made(cipher: Cipher, key: bytes) -> Any:
    """A cipher as a client makes it now."""
    return vars(ledger_keys)["new_aead"](cipher, key)


@pytest.mark.rule("X24")
async def test_other_bytes_under_a_key_and_nonce_are_a_problem_and_the_same_ones_are_none() -> None:
    problems: list[str] = []
    counts: list[str] = []
    before = vars(ledger_keys)["new_aead"]
    with watched_seals(lambda rule, what: problems.append(f"{rule}: {what}"), counts.append):
        key = await new_ledger_key(encrypted(), system_seams().rng)
        for _ in range(2):
            sealed = key.sealer(7).seal(0, [b"a", b"b"])  # two writers with one key, and the same bytes
        opener = await ledger_opener(encrypted(), 7, key.custom_metadata, 100)
        assert opener is not None and opener.open(0, sealed) == [b"a", b"b"] and problems == []
        key.sealer(7).seal(0, [b"a", b"other"])
        assert problems == ["X24: another payload is sealed under the key and nonce of entry 1"]
        key.sealer(8).seal(0, [b"a"])
        assert len(problems) == 2  # the key of another ledger
        watched = _made(Cipher.AES_256_GCM, OLD)
        seal_run(watched, 7, 0, [b"x"])
        seal_run(_made(Cipher.AES_256_GCM, NEW), 7, 0, [b"y"])
        assert len(problems) == 2 and len(counts) == 9
    assert vars(ledger_keys)["new_aead"] is before is new_aead
