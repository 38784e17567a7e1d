"""A key for each attempt to make a ledger; readers find it again, or hear why not."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.encryption import EncryptionConfig, WrappedKey, ledger_opener, new_ledger_key
from bookkeeper.errors import ConfigError, NoLedgerKeyError
from tests.bookkeeper.encryption.keys import NEW, OLD, encrypted, ring

MAX = 1_000_000


@pytest.mark.rule("X24")
async def test_every_ledger_has_a_key_of_its_own_that_its_readers_find() -> None:
    rng = Random(1)
    made = [await new_ledger_key(encrypted(compression="lz4"), rng) for _ in range(3)]
    assert len({each.key for each in made}) == 3 and {len(each.key) for each in made} == {32}
    assert all(repr(each.key) not in repr(each) for each in made)
    for ledger_id, each in enumerate(made):
        sealed = each.sealer(ledger_id).seal(0, [b"x" * 100])
        opener = await ledger_opener(encrypted(), ledger_id, each.custom_metadata, MAX)
        assert opener is not None and opener.open(0, sealed) == [b"x" * 100]
    assert await ledger_opener(encrypted(), 1, {"app": b"x"}, MAX) is None


@pytest.mark.rule("X24")
async def test_a_reader_without_the_key_is_told_which_one_it_is() -> None:
    key = await new_ledger_key(encrypted(), Random(1))
    for config, said in (
        (None, "ledger 7 are encrypted, their key is wrapped under key new, and this client has no keys"),
        (
            EncryptionConfig(provider=ring(old=OLD)),
            "ledger 7 .* cannot be read: key new is needed, and the test has old",
        ),
        (EncryptionConfig(provider=ring(new=OLD)), "cannot be read: key new of the test is not the one"),
    ):
        with pytest.raises(NoLedgerKeyError, match=said):
            await ledger_opener(config, 7, key.custom_metadata, MAX)


class Odd:
    """A provider that answers what cannot be kept."""

    def __init__(self, wrapped: WrappedKey, key: bytes = NEW) -> None:
        self.wrapped, self.key = wrapped, key

    async def wrap(self, key: bytes) -> WrappedKey:
        return self.wrapped

    async def unwrap(self, wrapped: WrappedKey) -> bytes:
        return self.key


@pytest.mark.parametrize(
    "wrapped", [WrappedKey("", b"x"), WrappedKey("k" * 257, b"x"), WrappedKey("k", b""), WrappedKey("k", bytes(4097))]
)
async def test_what_a_provider_makes_is_bounded(wrapped: WrappedKey) -> None:
    with pytest.raises(ConfigError, match="1 to 4096 bytes"):
        await new_ledger_key(EncryptionConfig(provider=Odd(wrapped)), Random(1))


async def test_a_key_of_another_size_is_refused() -> None:
    key = await new_ledger_key(encrypted(), Random(1))
    short = EncryptionConfig(provider=Odd(WrappedKey("k", b"x"), key=b"short"))
    with pytest.raises(ConfigError, match="a key of 5 bytes for ledger 7"):
        await ledger_opener(short, 7, key.custom_metadata, MAX)


@pytest.mark.rule("X24")
async def test_a_client_that_insists_on_encryption_opens_nothing_else() -> None:
    """Cause: who might write the metadata took the record of the key away, and readers with keys took his entries."""
    insists = encrypted(required=True)
    key = await new_ledger_key(insists, Random(1))
    assert await ledger_opener(insists, 7, key.custom_metadata, MAX) is not None
    with pytest.raises(NoLedgerKeyError, match=r"ledger 7 name no key, .* this client reads encrypted ledgers only"):
        await ledger_opener(insists, 7, {"app": b"x"}, MAX)
