"""Sectors: what a power cut may leave of a group, and what it cannot."""

from __future__ import annotations

import random
from itertools import product

import pytest

from bookkeeper.codec import chain_crcs, record
from bookkeeper.seams import File
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, GroupHeader, read_group
from bookkeeper.storage.journal.torn_tail import SECTOR, rot_in
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import make_entry

FILE, OFFSET, SEQUENCE = 5, 8192, 9


def group(sizes: list[int], *, ledger: int = 1, file_id: int = FILE, sequence: int = SEQUENCE) -> bytes:
    """A group as it is written, padded to whole sectors."""
    records = b"".join(record(make_entry(ledger, entry_id, size=size)) for entry_id, size in enumerate(sizes))
    chain = chain_crcs(records, 0, len(records))
    header = GroupHeader(0, file_id, sequence, OFFSET, sequence - 1, len(sizes), len(records), chain)
    data = header.encode() + records
    return data.ljust(-(-len(data) // SECTOR) * SECTOR, b"\0")


def file_with(data: bytes) -> File:
    return RecordingDisk({"/j": bytes(OFFSET) + data.ljust(8192, b"\0")}).open("/j", write=False)


def rot(data: bytes) -> str | None:
    file = file_with(data)
    assert read_group(file, FILE, OFFSET) is None, "it fails its checks"
    return rot_in(file, FILE, OFFSET, SEQUENCE)


def used(sizes: list[int]) -> int:
    return GROUP_HEADER + sum(48 + size for size in sizes)


@pytest.mark.rule("K9")
@pytest.mark.parametrize("sizes", [[60], [60] * 12, [200, 100, 300, 50, 60], [9]])
def test_every_flipped_bit_among_small_records_is_rot(sizes: list[int]) -> None:
    whole = group(sizes)
    rng = random.Random(1)
    for at in range(used(sizes)):
        broken = bytearray(whole)
        broken[at] ^= 1 << rng.randrange(8)
        assert rot(bytes(broken)) is not None, at


@pytest.mark.rule("K9")
@pytest.mark.parametrize("sizes", [[60] * 12, [200, 100, 300, 50, 420], [1500], [400] * 5, [1400, 30, 30]])
@pytest.mark.parametrize("before", ["zeros", "an earlier life's", "anything"])
def test_no_mixture_of_old_and_new_sectors_is_rot(sizes: list[int], before: str) -> None:
    whole = group(sizes)
    old = {
        "zeros": bytes(len(whole)),
        "an earlier life's": group(sizes, ledger=2, file_id=FILE - 2, sequence=SEQUENCE - 5),
        "anything": random.Random(7).randbytes(len(whole)),
    }[before]
    for kept in product([False, True], repeat=len(whole) // SECTOR):
        torn = b"".join((whole if new else old)[at * SECTOR : (at + 1) * SECTOR] for at, new in enumerate(kept))
        if torn[: used(sizes)] != whole[: used(sizes)]:
            assert rot(torn) is None, kept


@pytest.mark.rule("K9")
def test_a_record_with_a_sector_of_its_own_may_lack_it() -> None:
    whole = bytearray(group([1500]))
    whole[600] ^= 1
    assert rot(bytes(whole)) is None, "the sector may never have been written"


@pytest.mark.rule("K9", "K8")
def test_a_header_of_an_earlier_life_or_of_nothing_is_no_damaged_one() -> None:
    assert rot(group([60], file_id=FILE - 1, sequence=SEQUENCE - 3)) is None
    assert rot(bytes(512)) is None
    file = RecordingDisk({"/j": bytes(OFFSET + 20)}).open("/j", write=False)
    assert rot_in(file, FILE, OFFSET, SEQUENCE) is None, "the file ends there"


@pytest.mark.rule("K9", "K8")
def test_an_entry_of_an_earlier_life_with_the_same_small_numbers_is_no_damaged_header() -> None:
    """Behind the last group lies what the file held before. An entry with the id of the file, at the border of a block,
    whose LAC is the number of the next group, passed for a header; the bookie took a power cut for a loss."""
    stale = make_entry(65536, FILE, lac=SEQUENCE)
    assert rot(stale.ljust(SECTOR, b"\0")) is None
    assert rot(group([60])[:8] + stale[8:].ljust(SECTOR - 8, b"\0")) is not None, "with what no entry has it is one"


@pytest.mark.rule("K9", "K8")
def test_a_whole_header_of_an_earlier_life_is_none_though_its_number_is_the_next() -> None:
    """A group that a crash has left torn gives its number to the next one. When its file is used again, and nothing is
    written before the next crash, the torn group's header lies where one with that very number is expected."""
    assert rot(group([60], file_id=FILE - 2)) is None
