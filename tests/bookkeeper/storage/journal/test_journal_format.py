"""The journal's bytes: whole groups come back, leftovers are not taken for groups, and what damage means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.codec import chain_crcs, record
from bookkeeper.errors import CorruptionError, UnsupportedFormatError
from bookkeeper.seams import File
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.journal.journal_format import (
    GROUP_HEADER,
    DamagedStretch,
    FileHeader,
    GroupHeader,
    JournalGroup,
    padded,
    read_group,
    read_groups,
)
from tests.bookkeeper.storage.recording_disk import RecordingDisk

FILE_ID = 3
HEADER = FileHeader(FILE_ID, first_sequence=11, directory_id=7, boot=2)


def group(sequence: int, offset: int, *sizes: int, file_id: int = FILE_ID, below: int = 0) -> bytes:
    """A whole group of records of these sizes, padded."""
    records = b"".join(record(bytes(32) + bytes([sequence]) * size) for size in sizes)
    chain = chain_crcs(bytes(GROUP_HEADER) + records, GROUP_HEADER, GROUP_HEADER + len(records))
    header = GroupHeader(0, file_id, sequence, offset, below, len(sizes), len(records), chain)
    return (header.encode() + records).ljust(header.padded, b"\0")


def journal(*groups: bytes) -> File:
    """A file with these groups behind its header."""
    file = RecordingDisk().open("/d/j", write=True, create=True)
    file.pwrite(HEADER.encode() + b"".join(groups) + bytes(2 * BLOCK), 0)
    return file


ONE = group(11, BLOCK, 10, 500, 20)
TWO = group(12, BLOCK + len(ONE), 3 * BLOCK, below=11)
THREE = group(13, BLOCK + len(ONE) + len(TWO), 1, below=12)


def damaged(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def seen(file: File) -> list[int | DamagedStretch]:
    return [found.header.sequence if isinstance(found, JournalGroup) else found for found in read_groups(file, FILE_ID)]


def test_a_file_s_header_fills_a_block_and_comes_back() -> None:
    data = HEADER.encode()
    assert len(data) == BLOCK
    assert FileHeader.decode(data, "x") == HEADER
    with pytest.raises((CorruptionError, UnsupportedFormatError), match="x"):
        FileHeader.decode(damaged(data, 20), "x")


def test_groups_begin_at_blocks_and_come_back_with_their_records() -> None:
    assert [padded(0), padded(BLOCK - GROUP_HEADER), padded(BLOCK - GROUP_HEADER + 1)] == [BLOCK, BLOCK, 2 * BLOCK]
    found = list(read_groups(journal(ONE, TWO, THREE), FILE_ID))
    groups = [each for each in found if isinstance(each, JournalGroup)]
    assert [(each.header.sequence, each.header.records, len(each.scan.offsets)) for each in groups] == [
        (11, 3, 3),
        (12, 1, 1),
        (13, 1, 1),
    ]


@pytest.mark.rule("K8")
@pytest.mark.parametrize("change", [{"file_id": 4}, {"offset": 2 * BLOCK}])
def test_a_group_of_another_file_or_place_is_none_of_this_life(change: dict[str, int]) -> None:
    header = GroupHeader.decode(ONE, FILE_ID, BLOCK)
    assert header is not None
    stranger = replace(header, **change).encode() + ONE[GROUP_HEADER:]
    assert read_group(journal(stranger), FILE_ID, BLOCK) is None
    assert read_group(journal(ONE), FILE_ID, BLOCK) is not None


def test_every_flipped_bit_of_a_header_or_a_record_is_seen() -> None:
    size = GROUP_HEADER + len(record(bytes(42)))
    for at in range(size):
        assert read_group(journal(damaged(ONE, at)), FILE_ID, BLOCK) is None, at


@pytest.mark.rule("K8")
def test_records_of_another_group_under_a_valid_header_are_not_taken() -> None:
    other = group(99, BLOCK, 10, 500, 20)
    assert read_group(journal(ONE[:GROUP_HEADER] + other[GROUP_HEADER:]), FILE_ID, BLOCK) is None


@pytest.mark.rule("K9")
def test_a_bad_last_group_is_a_tail_and_a_bad_one_before_a_valid_one_is_not() -> None:
    torn = seen(journal(ONE, damaged(TWO, len(TWO) // 2)))
    assert torn[0] == 11
    assert isinstance(torn[1], DamagedStretch)
    assert (torn[1].offset, torn[1].last, torn[1].begun, torn[1].claims) == (BLOCK + len(ONE), True, True, 11)
    rotten = seen(journal(ONE, damaged(TWO, len(TWO) // 2), THREE))
    assert [rotten[0], rotten[2]] == [11, 13]
    assert isinstance(rotten[1], DamagedStretch)
    assert (rotten[1].end, rotten[1].last, rotten[1].begun) == (BLOCK + len(ONE) + len(TWO), False, True)


@pytest.mark.rule("K9")
def test_a_torn_header_further_on_still_says_what_was_durable_before_it() -> None:
    torn = seen(journal(ONE, damaged(TWO, 5), damaged(THREE, GROUP_HEADER + 3)))
    assert isinstance(torn[-1], DamagedStretch)
    assert (torn[-1].last, torn[-1].begun, torn[-1].claims) == (True, False, 12)


def test_an_empty_file_holds_nothing_that_was_begun() -> None:
    (bad,) = seen(journal())
    assert isinstance(bad, DamagedStretch)
    assert (bad.last, bad.begun, bad.claims) == (True, False, 0)
