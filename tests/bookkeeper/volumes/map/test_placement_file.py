"""The bytes of the file ``placements``, and what a cut, a crash or damage leaves of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bookkeeper.errors import CorruptionError, UnsupportedFormatError
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.storage.base.durable_file import STAMP_SIZE, stamp
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord
from bookkeeper.volumes.map.placement_file import (
    ROOM,
    decode_placements,
    encode_file,
    encode_group,
    encode_head,
    encode_record,
    judged,
    offset_of,
    refuse_damage,
)

ID = 0x0123456789ABCDEF
RECORD = 24
HEAD = STAMP_SIZE + 24
PLACED, LOST, WHOLE, GONE, VOLUME_LOST = PlacementKind


def placed(ledger: int, volume: int = 1) -> PlacementRecord:
    return PlacementRecord(PLACED, ledger, volume)


RECORDS = [placed(5, 2), placed(2**63 - 1, 2**32 - 1), PlacementRecord(LOST, 5), PlacementRecord(VOLUME_LOST, volume=2)]


def content(records: list[PlacementRecord]) -> bytes:
    """A file that was written empty, and got each record by itself."""
    pieces = [encode_record(each, number, ID) for number, each in enumerate(records)]
    return encode_head(ID, 3, 0) + b"".join(pieces) + encode_group((), len(records), ID) + bytes(ROOM)


def first_version(records: list[PlacementRecord]) -> bytes:
    pieces = [encode_record(each, number, ID) for number, each in enumerate(records)]
    return stamp(b"BKPL", 1, ID.to_bytes(8, "big")) + b"".join(pieces)


def test_the_bytes_of_the_head() -> None:
    head = encode_head(ID, 3, 4)
    assert head[:12].hex() == "424b504c0002000000000018"
    assert head[16:].hex() == "0123456789abcdef" + "0000000000000003" + "0000000000000004"
    assert len(head) == HEAD == offset_of(0)


@pytest.mark.parametrize(
    ("record", "number", "expected"),
    [
        (placed(7, 3), 0, "67a43443" + "01000000" + "00000003" + "00000000" + "0000000000000007"),
        (
            PlacementRecord(VOLUME_LOST, volume=2),
            258,
            "bc3beeb0" + "05000000" + "0000000200000102" + "f" * 16,
        ),
        (PlacementRecord(WHOLE, 2**63 - 1), 1, "88ef4e1c" + "03000000" + "00000000" + "00000001" + "7fffffffffffffff"),
    ],
)
def test_the_bytes_of_a_record(record: PlacementRecord, number: int, expected: str) -> None:
    assert encode_record(record, number, ID).hex() == expected
    assert len(encode_record(record, number, ID)) == RECORD


def test_the_bytes_of_a_group() -> None:
    group = encode_group(RECORDS[:2], 5, ID)
    assert group[:RECORD] == encode_record(RECORDS[0], 5, ID, 0)
    assert group[RECORD : 2 * RECORD] == encode_record(RECORDS[1], 6, ID, 1)
    assert group[2 * RECORD + 4 :].hex() == "06000002" + "00000000" + "00000007" + "f" * 16


def test_the_bytes_of_a_whole_file() -> None:
    data, end = encode_file(iter(RECORDS), ID, 9)
    assert end == PlacementsEnd(9, len(RECORDS))
    assert data == encode_head(ID, 9, 4) + content(RECORDS)[HEAD:]
    assert len(data) == offset_of(5) + ROOM


def test_what_was_written_is_read() -> None:
    found = decode_placements(content(RECORDS), ID, "x")
    assert (found.records, found.end, found.damage) == (RECORDS, PlacementsEnd(3, 4), None)
    assert found.tidy and found.ended and found.least == 0
    empty = decode_placements(encode_file((), ID, 7)[0], ID, "x")
    assert (empty.records, empty.end, empty.damage, empty.tidy) == ([], PlacementsEnd(7, 0), None, True)


def test_the_first_version_is_read() -> None:
    found = decode_placements(first_version(RECORDS), ID, "x")
    assert (found.records, found.end, found.damage) == (RECORDS, PlacementsEnd(0, 4), None)
    assert found.ended and not found.tidy
    refuse_damage(first_version(RECORDS), "x")


def test_a_tail_cut_anywhere_leaves_the_records_before_it() -> None:
    data = content(RECORDS)
    for size in range(HEAD, offset_of(5)):
        found = decode_placements(data[:size], ID, "x")
        whole = min((size - HEAD) // RECORD, 4)
        assert (found.records, found.end.count, found.damage) == (RECORDS[:whole], whole, None)
        assert found.ended is found.tidy is False
    for size in range(HEAD):
        with pytest.raises(CorruptionError, match="/d/placements is damaged"):
            decode_placements(data[:size], ID, "/d/placements")


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"


def test_a_file_has_at_least_the_records_with_which_it_was_written() -> None:
    data, _ = encode_file(RECORDS, ID, 9)
    for count in range(4):
        cut = data[: offset_of(count)]
        text = f"/d/p has {_records(count)}, and had 4 when it was written: it was cut"
        assert decode_placements(cut, ID, "/d/p").damage == text
        with pytest.raises(CorruptionError, match=text):
            refuse_damage(cut, "/d/p")
    longer = data[: offset_of(4)] + encode_group([placed(9)], 4, ID)
    for size in range(offset_of(4), len(longer)):
        assert decode_placements(longer[:size], ID, "x").damage is None


@pytest.mark.rule("K32", "K35")
def test_a_file_that_ends_before_what_was_published_is_damaged() -> None:
    """Cause: each of its prefixes is a good file, and so is each older copy."""
    for count in range(5):
        for data in (content(RECORDS[:count]), content(RECORDS)[: offset_of(count)]):
            read = decode_placements(data, ID, "/d/p")
            for published in (PlacementsEnd(3, count), PlacementsEnd(3, 0), PlacementsEnd(2, 99), PlacementsEnd(0, 0)):
                assert judged(read, published, "/d/p") == read
            for published in (PlacementsEnd(3, count + 1), PlacementsEnd(4, 0)):
                assert judged(read, published, "/d/p").damage == (
                    f"/d/p was cut, or put back from an older copy: it has {_records(count)} of start 3, and had "
                    f"{_records(published.count)} of start {published.generation}"
                )
    old = decode_placements(first_version(RECORDS), ID, "/d/p")
    assert judged(old, None, "/d/p") == old and judged(old, PlacementsEnd(1, 0), "/d/p").damage is not None


@pytest.mark.rule("K32")
def test_where_nothing_was_published_the_end_must_be_there() -> None:
    assert judged(decode_placements(content(RECORDS), ID, "x"), None, "x").damage is None
    for count in range(5):
        read = decode_placements(content(RECORDS)[: offset_of(count)], ID, "/d/p")
        assert judged(read, None, "/d/p").damage == "/d/p was cut: its end is missing"


def test_damage_is_told_as_it_is() -> None:
    hurt = decode_placements(content(RECORDS)[: HEAD + 3] + b"?" + content(RECORDS)[HEAD + 4 :], ID, "x")
    assert hurt.damage and judged(hurt, PlacementsEnd(9, 9), "x") == hurt


def test_a_flipped_bit_in_the_middle_is_damage_and_what_is_behind_it_is_read() -> None:
    data = content(RECORDS)
    for at in range(HEAD, offset_of(5)):
        hurt = bytearray(data)
        hurt[at] ^= 1 << at % 8
        found = decode_placements(bytes(hurt), ID, "/d/placements")
        number = (at - HEAD) // RECORD
        assert found.records == RECORDS[:number] + RECORDS[number + 1 :]
        if number == len(RECORDS):  # as if a crash had left it
            assert found.damage is None and found.end.count == len(RECORDS) and not found.ended
        else:
            assert found.damage == f"/d/placements is damaged at offset {HEAD + number * RECORD}"
            with pytest.raises(CorruptionError, match=f"is damaged at offset {HEAD + number * RECORD}"):
                refuse_damage(bytes(hurt), "/d/placements")
    refuse_damage(data, "x")


def test_a_record_counts_at_its_own_place_in_its_own_file_alone() -> None:
    data = content(RECORDS)
    moved = data[:HEAD] + data[HEAD + RECORD :]
    assert decode_placements(moved, ID, "x").records == []
    other = content(RECORDS[:1])[: offset_of(1)] + encode_record(RECORDS[1], 1, ID + 1)
    assert decode_placements(other, ID, "x").records == RECORDS[:1]
    kind = bytearray(encode_record(RECORDS[0], 0, ID))
    kind[4] = 7
    assert decode_placements(encode_head(ID, 3, 0) + bytes(kind), ID, "x").records == []


def test_another_bookies_file_is_damage() -> None:
    found = decode_placements(content(RECORDS), ID + 1, "/d/placements")
    assert found.records == [] and found.damage == "/d/placements does not belong to the file volumes beside it"


@pytest.mark.parametrize("check", [lambda data, path: decode_placements(data, ID, path), refuse_damage])
def test_a_head_that_cannot_be_read_is_said(check: Callable[[bytes, str], object]) -> None:
    hurt = bytearray(content(RECORDS))
    hurt[20] ^= 1
    with pytest.raises(CorruptionError, match="/d/p is damaged"):
        check(bytes(hurt), "/d/p")
    with pytest.raises(CorruptionError, match="/d/p is damaged: its head has 8 bytes"):
        check(stamp(b"BKPL", 2, bytes(8)), "/d/p")
    with pytest.raises(UnsupportedFormatError, match="/d/p is of version 3"):
        check(stamp(b"BKPL", 3, bytes(24)), "/d/p")


def test_of_the_last_group_any_part_may_be_missing_and_of_earlier_ones_none() -> None:
    groups = encode_group(RECORDS[:2], 0, ID)[: 2 * RECORD] + encode_group(RECORDS, 2, ID)
    everything = [*RECORDS[:2], *RECORDS]
    for gone in range(6):
        hurt = groups[: gone * RECORD] + bytes(RECORD) + groups[(gone + 1) * RECORD :]
        found = decode_placements(encode_head(ID, 3, 0) + hurt, ID, "/d/p")
        assert found.records == everything[:gone] + everything[gone + 1 :]
        if gone < 2:
            assert found.damage == f"/d/p is damaged at offset {HEAD + gone * RECORD}"
        else:
            assert found.damage is None and found.end.count == gone and not found.tidy, "the next start writes it anew"


def test_an_end_whose_place_was_to_be_taken_is_none() -> None:
    """A crash left the later sectors of a group and not its first one."""
    before = encode_group(RECORDS[:2], 0, ID)
    group = encode_group(RECORDS, 2, ID)
    for gone in range(1, 4):
        data = encode_head(ID, 3, 0) + before + bytes((gone - 1) * RECORD) + group[gone * RECORD :]
        found = decode_placements(data, ID, "/d/p")
        assert found.damage is None and found.end.count == 2 and not found.tidy
        assert found.records == [*RECORDS[:2], *RECORDS[gone:]]
