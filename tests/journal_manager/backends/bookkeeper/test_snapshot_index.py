"""The record of snapshots: its bytes, and the condition of each write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.errors import MetadataConflictError
from bookkeeper.meta.store import Check, Version
from journal_manager import UNKNOWN_EPOCH, JournalCorruptionError, NamespaceInfo, UnsupportedLayoutError
from journal_manager.backends.bookkeeper.journal_node import JournalNode
from journal_manager.backends.bookkeeper.snapshot_index import SnapshotIndex, SnapshotLine, decode_index, encode_index
from journal_manager.journals.chain import Chain
from tests.journal_manager.backends.bookkeeper.fake import Cluster

ONE, TWO = SnapshotLine(5, 1, 10, "ab"), SnapshotLine(9, 2, 20, "cd")


async def a_record() -> JournalNode:
    record = JournalNode(Cluster().client().metadata_store, "edits")  # type: ignore[arg-type]
    await record.create_if_absent(Chain(NamespaceInfo()))
    return record


def test_the_list() -> None:
    assert decode_index(encode_index((TWO, ONE))) == (ONE, TWO)
    for data in (b"", b"{}", b'{"format":1,"snapshots":[1]}'):
        with pytest.raises(JournalCorruptionError):
            decode_index(data)
    with pytest.raises(UnsupportedLayoutError):
        decode_index(b'{"format":3,"snapshots":[]}')


def test_only_a_list_with_an_epoch_is_kept_from_earlier_programs() -> None:
    plain = encode_index((ONE,))
    assert plain == b'{"format": 1, "snapshots": [{"at": 5, "ledger": 1, "size": 10, "sha256": "ab"}]}'
    later = replace(TWO, epoch=4)
    assert b'"format": 2' in encode_index((ONE, later))
    assert decode_index(encode_index((ONE, later))) == (ONE, later)
    assert later.info().epoch == 4 and ONE.info().epoch == UNKNOWN_EPOCH


@pytest.mark.rule("J9")
async def test_a_write_needs_its_condition_and_the_version_that_was_read() -> None:
    record = await a_record()
    index = SnapshotIndex(record)
    good, bad = Check(record.path, Version(0)), Check(record.path, Version(7))
    assert await index.read() == ((), None)
    with pytest.raises(MetadataConflictError):
        await index.write([ONE], None, bad)
    _, version = await index.read()
    await index.write([ONE], version, good)
    assert (await index.read())[0] == (ONE,)
    for expected in (None, version):
        with pytest.raises(MetadataConflictError):
            await index.write([TWO], expected, good)
    assert (await index.read())[0] == (ONE,)


async def test_offers_come_and_go() -> None:
    index = SnapshotIndex(await a_record())
    assert await index.offers() == ()
    await index.offer(ONE)
    await index.offer(TWO)
    assert set(await index.offers()) == {ONE, TWO}
    await index.forget_offer(ONE)
    await index.forget_offer(ONE)
    assert await index.offers() == (TWO,)
