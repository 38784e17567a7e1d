"""An id is sealed once, in order; what was sealed opens with its own key."""

from __future__ import annotations

import pytest

from bookkeeper.compression import Compression
from bookkeeper.encryption import RECORD_NAME, EntryOpener, EntrySealer, ledger_opener
from bookkeeper.encryption.ciphers import Cipher, new_aead
from bookkeeper.errors import DecryptionError, InvariantError
from tests.bookkeeper.encryption.keys import NEW, encrypted


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


@pytest.mark.rule("X40")
@pytest.mark.parametrize("compression", [each for each in Compression if each is not Compression.NONE])
def test_nothing_larger_than_an_entry_is_unpacked(compression: Compression) -> None:
    """Whoever has the key could have a few sealed bytes unpacked into all of a reader's memory."""
    sealer, opener = pair(compression)
    sealed = sealer.seal(0, [bytes(10_000), bytes(10_001)])
    assert opener.open(0, sealed[:1]) == [bytes(10_000)]
    with pytest.raises(DecryptionError, match="10001 bytes, and an entry has at most 10000"):
        opener.open(1, sealed[1:])


@pytest.mark.rule("X24")
@pytest.mark.parametrize(
    ("cipher", "compression", "stored"),
    [
        (
            "aes-256-gcm",
            "none",
            "d2c30a269a7b3f71d642e8a74a4a46160a3cc325fb3586c6bfaa30266c81491eea102a0fe7021f58740c696ab9e4d38429e9ec534a80d2e7e4d555f82153685b144d0d7b21149dc87c101bbe7745cf7f8d5f5b72ed0952f7ebe42e4024ee6d8873b5b2cb",
        ),
        (
            "chacha20-poly1305",
            "none",
            "01ced14b0a44ba237e321e5fc4dd14e2b9645138aa4bf7f5040f47fc1d5d8936d1d69ec36b27e6fa9aa119bbe0ae784dd2590c1d1b9d3a50607a4b9f5a6235370e0dc3d6bc029048c0d644e8fac9553a380f3a430228a98419453ae33e89d84a3a903092",
        ),
        (
            "aes-256-gcm",
            "zstd",
            "a0b76554ab37aa3c5242c8d22e6ac00c0c20c560e97096ccf6b136633f934f1efc002a1bfb5018597e422f02cb63684d5b08323eef16e58cd4df09a5dac6f4dc54",
        ),
    ],
)
async def test_what_this_version_has_stored_is_read_by_every_later_one(
    cipher: str, compression: str, stored: str
) -> None:
    """The record in a ledger's metadata, and its entry 5."""
    record = (
        f'{{"format":1,"cipher":"{cipher}","compression":"{compression}","key_id":"new","wrapped_key":'
        '"kzJzmn/bYYFtKrdgJEfuR2svTtrTQ/wdI6CidnEie9Vor9B5NXenbA=="}'
    )
    opener = await ledger_opener(encrypted(), 7, {RECORD_NAME: record.encode()}, 10_000)
    assert opener is not None
    assert opener.open(5, [bytes.fromhex(stored)]) == [b"stored by the first version " * 3]


@pytest.mark.rule("X24")
@pytest.mark.parametrize("sealed_as", list(Compression))
@pytest.mark.parametrize("read_as", list(Compression))
def test_an_entry_opens_only_as_it_was_packed(sealed_as: Compression, read_as: Compression) -> None:
    """Cause: the metadata name the compression, and nothing vouched for it: another one took a byte off a payload."""
    aead = new_aead(Cipher.AES_256_GCM, b"k" * 32)
    payload = b"\0" + b"a payload that can be packed " * 20
    sealed = EntrySealer(7, aead, sealed_as).seal(0, [payload])
    opener = EntryOpener(7, aead, read_as, 10_000)
    if sealed_as is read_as:
        assert opener.open(0, sealed) == [payload]
    else:
        with pytest.raises(DecryptionError):
            opener.open(0, sealed)
