"""What is known of a bookie's disk outside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.errors import KeyExistsError, MetadataConflictError, MetadataFormatError, NoSuchKeyError
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.disks import DiskProgress, Disks, PlacementsEnd, VolumeProgress
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore

BOOKIE = BookieId("a:1")
RECORD = DiskProgress(directory_id=2**64 - 3, starting=4, boot=3, sequence=99, file_id=7, highest=12)


def test_a_record_is_read_as_it_was_written() -> None:
    assert DiskProgress.decode(RECORD.encode(), "x") == RECORD
    assert DiskProgress.decode(RECORD.encode()[:-1] + b', "later": [1]}', "x") == RECORD


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"7", b'{"directory_id": 5}', RECORD.encode()[:-9]])
def test_what_is_no_record_is_said_with_its_place(data: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="/x cannot be read"):
        DiskProgress.decode(data, "/x")


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


VOLUMES = replace(
    RECORD,
    volumes=(
        VolumeProgress(number=1, directory_id=2**64 - 5, boot=3, sequence=2**40, file_id=7),
        VolumeProgress(number=4, directory_id=9),
    ),
)


def test_a_record_without_volumes_has_the_bytes_that_it_had() -> None:
    assert RECORD.encode() == (
        b'{"directory_id": "fffffffffffffffd", "starting": 4, "boot": 3, "sequence": 99, "file_id": 7, "highest": 12}'
    )


def test_a_record_with_volumes_is_read_as_it_was_written() -> None:
    assert DiskProgress.decode(VOLUMES.encode(), "x") == VOLUMES
    assert VOLUMES.encode().endswith(
        b'"highest": 12, "volumes": [{"number": 1, "directory_id": "fffffffffffffffb", "boot": 3, "sequence": '
        b'1099511627776, "file_id": 7}, {"number": 4, "directory_id": "0000000000000009", "boot": 0, "sequence": 0, '
        b'"file_id": 0}]}'
    )
    assert VOLUMES.directory_ids == {2**64 - 3, 2**64 - 5, 9} and RECORD.directory_ids == {2**64 - 3}


@pytest.mark.parametrize("volumes", ["5", "[5]", "[{}]", '[{"number": 1}]', '{"a": 1}', "null"])
def test_volumes_that_are_none_are_said(volumes: str) -> None:
    data = RECORD.encode()[:-1] + f', "volumes": {volumes}}}'.encode()
    with pytest.raises(MetadataFormatError, match="/x cannot be read"):
        DiskProgress.decode(data, "/x")


async def test_the_holder_of_any_directory_is_found(store: MetadataStore) -> None:
    disks = Disks(store, Paths())
    await disks.write(BOOKIE, VOLUMES, None)
    for directory_id in VOLUMES.directory_ids:
        assert await disks.holder_of(directory_id) == BOOKIE
    assert await disks.holder_of(1) is None


@pytest.mark.rule("K32", "K35")
def test_where_the_placements_end_is_read_as_it_was_written() -> None:
    record = replace(VOLUMES, placements=PlacementsEnd(3, 2**40))
    assert DiskProgress.decode(record.encode(), "x") == record
    assert record.encode().endswith(b', "placements": {"generation": 3, "count": 1099511627776}}')
    assert DiskProgress.decode(VOLUMES.encode(), "x").placements is None, "a version before did not publish it"
    assert PlacementsEnd(2, 99) < PlacementsEnd(3, 0) < PlacementsEnd(3, 1)
    with pytest.raises(MetadataFormatError, match="/x cannot be read"):
        DiskProgress.decode(VOLUMES.encode()[:-1] + b', "placements": 5}', "/x")
