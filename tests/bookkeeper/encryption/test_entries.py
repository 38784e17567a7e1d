"""An id is sealed once, in order; what was sealed opens with its own key."""

from __future__ import annotations

import pytest

from bookkeeper.compression import Compression
from bookkeeper.encryption import EntryOpener, EntrySealer
from bookkeeper.encryption.ciphers import Cipher, new_aead
from bookkeeper.errors import DecryptionError, InvariantError
from tests.bookkeeper.encryption.keys import NEW


def pair(compression: Compression = Compression.NONE) -> tuple[EntrySealer, EntryOpener]:
    aead = new_aead(Cipher.AES_256_GCM, NEW)
    return EntrySealer(7, aead, compression), EntryOpener(7, aead, compression, 10_000)


@pytest.mark.rule("X24")
@pytest.mark.parametrize("again", [0, 1, 2, 4])
def test_no_id_is_sealed_twice_and_none_is_left_out(again: int) -> None:
    """Other bytes under an id that may have left this process would tell both apart to whoever has both."""
    sealer, opener = pair()
    sealed = sealer.seal(0, [b"a", b"b", b"c"])
    with pytest.raises(InvariantError, match="X24"):
        sealer.seal(again, [b"other"])
    assert opener.open(0, sealed + sealer.seal(3, [b"d"])) == [b"a", b"b", b"c", b"d"]


@pytest.mark.rule("X24")
@pytest.mark.parametrize("compression", Compression)
def test_what_was_sealed_opens(compression: Compression) -> None:
    sealer, opener = pair(compression)
    run = [b"", b"x" * 5000, b"short"]
    assert opener.open(0, sealer.seal(0, run)) == run
    assert opener.open(3, sealer.seal(3, run)) == run
    with pytest.raises(DecryptionError):
        opener.open(1, pair(compression)[0].seal(0, run))
