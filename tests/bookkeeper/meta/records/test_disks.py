"""What is known of a bookie's disk outside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.errors import KeyExistsError, MetadataConflictError, MetadataFormatError, NoSuchKeyError
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.disks import DiskRecord, Disks
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore

BOOKIE = BookieId("a:1")
RECORD = DiskRecord(directory_id=2**64 - 3, starting=4, boot=3, sequence=99, file_id=7, highest=12)


def test_a_record_is_read_as_it_was_written() -> None:
    assert DiskRecord.decode(RECORD.encode(), "x") == RECORD
    assert DiskRecord.decode(RECORD.encode()[:-1] + b', "later": [1]}', "x") == RECORD


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"7", b'{"directory_id": 5}', RECORD.encode()[:-9]])
def test_what_is_no_record_is_said_with_its_place(data: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="/x cannot be read"):
        DiskRecord.decode(data, "/x")


@pytest.mark.rule("K32", "M1")
async def test_records_change_by_compare_and_set_in_the_life_they_were_read_in(store: MetadataStore) -> None:
    disks = Disks(store, Paths())
    assert await disks.read(BOOKIE) is None and await disks.version(BOOKIE) is None
    assert await disks.holder_of(RECORD.directory_id) is None
    made = await disks.write(BOOKIE, RECORD, None)
    assert await disks.read(BOOKIE) == made and await disks.holder_of(RECORD.directory_id) == BOOKIE
    assert disks.path(BOOKIE) == "/ledgers-py/disks/a:1", "beside the root: Java lists what is below it"
    with pytest.raises(KeyExistsError):
        await disks.write(BOOKIE, replace(RECORD, starting=9), None)
    newer = await disks.write(BOOKIE, replace(RECORD, sequence=100), made)
    with pytest.raises(MetadataConflictError):
        await disks.write(BOOKIE, replace(RECORD, sequence=98), made)
    await disks.forget(BOOKIE, newer.version)
    again = await disks.write(BOOKIE, replace(RECORD, directory_id=1), None)
    await disks.write(BOOKIE, replace(RECORD, directory_id=1, sequence=5), again)
    with pytest.raises(NoSuchKeyError):
        await disks.write(BOOKIE, RECORD, newer)  # the same version, of a life before
