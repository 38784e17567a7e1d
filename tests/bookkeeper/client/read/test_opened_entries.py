"""Entries are opened for who reads; a copy that does not open is as a damaged one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from bookkeeper.client.read.opened_entries import OpenedEntries
from bookkeeper.compression import Compression
from bookkeeper.encryption import EntryOpener, EntrySealer
from bookkeeper.encryption.ciphers import Cipher, new_aead
from bookkeeper.errors import DecryptionError
from bookkeeper.ledger import DigestScheme, DigestType
from bookkeeper.testing.cluster import CLIENT, SimCluster
from tests.bookkeeper.client.scripted import CONFIG, ScriptedCluster
from tests.bookkeeper.encryption.keys import NEW, encrypted

NO_SOURCE: Any = cast(Any, None)
"""Nothing is read."""


@pytest.mark.rule("X24")
async def test_what_is_at_hand_is_opened_or_left_to_be_read() -> None:
    aead = new_aead(Cipher.AES_256_GCM, NEW)
    entries = OpenedEntries(NO_SOURCE, EntryOpener(7, aead, Compression.NONE, 100))
    sealed = EntrySealer(7, aead, Compression.NONE).seal(0, [b"a", b"b"])
    assert entries.open_if_valid(0, sealed) == [b"a", b"b"] == await entries.open(0, sealed)
    assert entries.open_if_valid(0, [sealed[0], b"forged, and long enough"]) == ()
    assert entries.open_if_valid(0, ()) == ()
    plain = OpenedEntries(NO_SOURCE, None)
    assert plain.open_if_valid(0, [b"x"]) == [b"x"] == await plain.open(0, [b"x"])


@pytest.mark.rule("X24")
def test_of_a_striped_ledger_the_write_set_is_asked_and_bookies_that_are_away_are_passed_over() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        config = replace(CONFIG, encryption=encrypted())
        async with cluster.connect(config) as bk:
            async with await bk.create_ledger(ensemble=4, write_quorum=2, ack_quorum=2) as ledger:
                for number in range(8):
                    await ledger.append(b"%d" % number)
            forged = DigestScheme(DigestType.CRC32C, b"").seal(ledger.id, 5, 4, 99, b"forged, with a good checksum")
            first, second = ledger.metadata.write_set(5)
            cluster[first].entries[ledger.id][5] = forged
            async with await bk.open_ledger(ledger.id) as reader:
                for _ in range(4):
                    assert await reader.read_entry(5) == b"5"
                cluster[second].silent = True
                with pytest.raises(DecryptionError, match="entry 5 "):
                    for _ in range(4):
                        await reader.read_entry(5)

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("X24")
def test_a_tail_goes_on_behind_a_copy_that_does_not_open() -> None:
    async def story(cluster: SimCluster) -> None:
        config = replace(CLIENT, encryption=encrypted())
        async with cluster.connect(config) as bk, cluster.connect(config) as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"0")
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                opener = reader._opened._opener
                assert opener is not None
                opened = EntryOpener.open
                failed: list[int] = []

                def once(self: EntryOpener, first: int, sealed: Any) -> list[bytes]:
                    if first == 1 and self is opener and len(failed) < 2:
                        failed.append(first)
                        raise DecryptionError("a bookie has made entry 1")
                    return opened(self, first, sealed)

                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(EntryOpener, "open", once)
                    tail = reader.tail()
                    assert (await anext(tail)).payload == b"0"
                    await ledger.append(b"1")
                    assert (await anext(tail)).payload == b"1"
                    assert failed == [1, 1]
            await ledger.close()

    SimCluster(seed=2).run(story)
