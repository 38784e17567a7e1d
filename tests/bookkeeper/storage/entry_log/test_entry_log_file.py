"""Entry logs: durable headers, maps that are believed only when they verify, scans that lose nothing."""

from __future__ import annotations

import errno

import pytest

from bookkeeper.codec import record
from bookkeeper.codec.shapes import Scan
from bookkeeper.errors import CorruptionError, UnsupportedFormatError
from bookkeeper.seams import Buffer, File
from bookkeeper.storage.base.durable_file import BLOCK, SyncFailedError, stamp
from bookkeeper.storage.entry_log.entry_log_file import (
    EntryLogWriter,
    LogPiece,
    QuarantinedStretch,
    Usage,
    check_header,
    create_log,
    finish_log,
    first_group_of,
    log_name,
    read_map,
    scan_log,
    scan_pieces,
    usage_of,
)
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import make_entry

Found = dict[tuple[int, int], int]
"""(ledger, entry) -> offset of its record in the log."""


def log_with(*chunks: bytes, disk: RecordingDisk | None = None) -> File:
    file = create_log(disk or RecordingDisk(), "/d", 1, 7, 3)
    file.pwrite(b"".join(chunks), BLOCK)
    return file


def walk(file: File, end: int | None = None, *, torn: bool = False) -> tuple[Found, list[QuarantinedStretch]]:
    found: Found = {}

    def note(data: Buffer, at: int, scan: Scan) -> None:
        for offset, ledger_id, entry_id in zip(scan.offsets, scan.ledger_ids, scan.entry_ids, strict=True):
            found[ledger_id, entry_id] = at + offset

    return found, scan_log(file, file.size() if end is None else end, note, tail_may_be_torn=torn)


def some_records(count: int = 5) -> list[bytes]:
    return [record(make_entry(1 + at % 2, at, size=50 + 10 * at)) for at in range(count)]


def places_of(records: list[bytes], begin: int = BLOCK) -> Found:
    places: Found = {}
    for at, data in enumerate(records):
        places[1 + at % 2, at] = begin
        begin += len(data)
    return places


@pytest.mark.rule("K1")
def test_a_new_log_is_durable_with_its_name_before_it_is_used() -> None:
    disk = RecordingDisk()
    file = create_log(disk, "/d", 0xAB, 7, 3)
    assert [(op.kind, op.path) for op in disk.ops] == [
        ("create", "/d/0000ab.log"),
        ("write", "/d/0000ab.log"),
        ("sync", "/d/0000ab.log"),
        ("sync_directory", "/d"),
    ]
    assert file.size() == BLOCK
    check_header(file, 0xAB)
    with pytest.raises(CorruptionError, match="another log's"):
        check_header(file, 0xAC)


def test_a_header_that_is_damaged_or_of_another_version_is_told_apart() -> None:
    file = log_with()
    file.pwrite(b"\xff", 20)
    with pytest.raises(CorruptionError, match="checksum"):
        check_header(file, 1)
    file.pwrite(stamp(b"BKEL", 2, b"?"), 0)
    with pytest.raises(UnsupportedFormatError, match="version 2"):
        check_header(file, 1)


@pytest.mark.rule("K33", "K20")
def test_a_log_says_with_which_group_it_begins_if_it_takes_whole_groups() -> None:
    disk = RecordingDisk()
    file = create_log(disk, "/d", 1, 7, 3, first_group=2**40)
    assert file.size() == BLOCK and first_group_of(file, 1) == 2**40
    check_header(file, 1)
    assert first_group_of(file, 2) == 0, "another log's"
    assert first_group_of(create_log(disk, "/d", 2, 7, 3), 2) == 0, "it does not say"
    for at in (20, 512, 530):
        hurt = create_log(RecordingDisk(), "/d", 1, 7, 3, first_group=5)
        hurt.pwrite(b"\xff", at)
        assert first_group_of(hurt, 1) == 0, "damaged"


@pytest.mark.rule("K20", "K13")
def test_the_map_is_written_behind_synced_records_and_read_back() -> None:
    disk, records = RecordingDisk(), some_records()
    file = log_with(*records, disk=disk)
    end = file.size()
    file.pwrite(b"left over from a group that was never covered" * 99, end)
    usage: Usage = {}
    scan_log(file, end, lambda _data, _at, scan: usage_of(scan, usage))
    assert usage == {1: [sum(map(len, records[::2])), 3], 2: [sum(map(len, records[1::2])), 2]}
    del disk.ops[:]
    finish_log(file, 1, end, usage)
    assert [op.kind for op in disk.ops] == ["sync", "truncate", "write", "sync"]
    assert read_map(file, 1) == (end, usage)
    assert walk(file, end) == (places_of(records), [])
    finish_log(file, 1, end, usage)
    assert read_map(file, 1) == (end, usage), "once more does no harm"
    with pytest.raises(CorruptionError, match="another log's"):
        read_map(file, 2)


@pytest.mark.rule("K20")
def test_a_map_is_not_believed_with_any_bit_of_it_flipped_nor_cut_short() -> None:
    disk = RecordingDisk()
    file = log_with(*some_records(), disk=disk)
    end = file.size()
    with pytest.raises(CorruptionError):
        read_map(file, 1)
    finish_log(file, 1, end, {1: [300, 3], 2: [200, 2]})
    whole = disk.read_file(file.path)
    for at in range(end, len(whole)):
        file.pwrite(bytes([whole[at] ^ 1 << at % 8]), at)
        with pytest.raises((CorruptionError, UnsupportedFormatError)):
            read_map(file, 1)
        file.pwrite(whole[at : at + 1], at)
    for size in (len(whole) - 1, end + 1, end, BLOCK, 0):
        file.truncate(size)
        with pytest.raises(CorruptionError):
            read_map(file, 1)


@pytest.mark.rule("K23")
def test_a_log_whose_records_cannot_be_synced_gets_no_map() -> None:
    disk = RecordingDisk()
    file = log_with(*some_records(), disk=disk)
    end = file.size()
    disk.faults["sync", ".log"] = OSError(errno.EIO, "input/output error")
    with pytest.raises(SyncFailedError, match="000001"):
        finish_log(file, 1, end, {})
    assert file.size() == end


@pytest.mark.rule("K19")
def test_a_scan_finds_every_record_and_where_it_begins() -> None:
    records = some_records(50)
    assert walk(log_with(*records)) == (places_of(records), [])
    assert walk(log_with()) == ({}, []), "a log that was only begun"


@pytest.mark.rule("K19")
def test_records_larger_than_what_is_read_at_a_time_are_found_too() -> None:
    records = [
        record(make_entry(1 + at % 2, at, size=size)) for at, size in enumerate((700_000, 3_000_000, 700_000, 9))
    ]
    assert walk(log_with(*records)) == (places_of(records), [])


@pytest.mark.rule("G4", "K19")
@pytest.mark.parametrize("hurt", range(5))
def test_one_damaged_record_is_named_and_all_others_are_found(hurt: int) -> None:
    records = some_records()
    places = places_of(records)
    begin = places.pop((1 + hurt % 2, hurt))
    for at in (0, 4, 8, 30, len(records[hurt]) - 1):
        file = log_with(*records)
        file.pwrite(bytes([file.pread(1, begin + at)[0] ^ 0x40]), begin + at)
        found, bad = walk(file)
        assert found == places
        assert bad == [QuarantinedStretch(file.path, begin, begin + len(records[hurt]))]
        assert str(bad[0]) == f"/d/000001.log: {len(records[hurt])} bytes from byte {begin} on"


@pytest.mark.rule("G4")
def test_a_log_of_rubbish_is_damaged_not_empty() -> None:
    file = log_with(b"\xa5" * 10_000)
    assert walk(file) == ({}, [QuarantinedStretch(file.path, BLOCK, BLOCK + 10_000)])


@pytest.mark.rule("G4")
def test_zeros_between_records_are_a_damaged_stretch_too() -> None:
    one, other = record(make_entry(1, 0)), record(make_entry(2, 1))
    file = log_with(one, bytes(777), other)
    hole = BLOCK + len(one)
    assert walk(file) == ({(1, 0): BLOCK, (2, 1): hole + 777}, [QuarantinedStretch(file.path, hole, hole + 777)])


@pytest.mark.rule("G4", "K18")
def test_a_log_that_is_shorter_than_it_was_is_damage_of_what_is_missing() -> None:
    records = some_records()
    file = log_with(*records)
    end, places = file.size(), places_of(records)
    file.truncate(end - 1)
    begin = places.pop((1, 4))
    assert walk(file, end) == (places, [QuarantinedStretch(file.path, begin, end)])


def test_what_no_mark_covered_may_be_torn_at_the_end_but_not_in_the_middle() -> None:
    records = some_records()
    file = log_with(*records, records[0][:30])
    end = file.size()
    assert walk(file, torn=True) == (places_of(records), [])
    assert walk(file) == (places_of(records), [QuarantinedStretch(file.path, end - 30, end)])
    hurt = BLOCK + len(records[0])
    file.pwrite(b"\xff\xff", hurt + 20)
    assert walk(file, torn=True)[1] == [QuarantinedStretch(file.path, hurt, hurt + len(records[1]))]


def test_groups_are_written_without_a_sync_and_a_log_is_announced_once() -> None:
    disk = RecordingDisk()
    logs = EntryLogWriter(disk, "/d", 7, 3)
    created = logs.write(1, b"abc", BLOCK, 12)
    assert created is not None and first_group_of(created, 1) == 12
    assert created.path == "/d/" + log_name(1)
    check_header(created, 1)
    del disk.ops[:]
    assert logs.write(1, b"def", BLOCK + 3, 13) is None
    assert [op.kind for op in disk.ops] == ["write"] and first_group_of(created, 1) == 12
    assert created.pread(6, BLOCK) == b"abcdef"
    assert logs.write(2, b"x", BLOCK) is not None


@pytest.mark.rule("K26")
@pytest.mark.parametrize("call", ["write", "open", "sync_directory"])
def test_a_log_whose_first_try_found_no_space_is_announced_by_the_one_that_did(call: str) -> None:
    disk = RecordingDisk()
    logs = EntryLogWriter(disk, "/d", 7, 3)
    disk.faults[call, "/d"] = OSError(errno.ENOSPC, "no space left")
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            logs.write(1, b"abc", BLOCK)
    disk.faults.clear()
    created = logs.write(1, b"abc", BLOCK)
    assert created is not None and created.pread(3, BLOCK) == b"abc"
    check_header(created, 1)
    assert logs.write(1, b"def", BLOCK + 3) is None


@pytest.mark.rule("K26", "K5")
def test_a_log_that_was_made_before_the_space_ran_out_is_announced_with_its_first_records() -> None:
    class FullForRecords(RecordingDisk):
        full = True

        def before(self, call: str, path: str) -> None:
            if call == "write" and self.full and any(op.kind == "sync_directory" for op in self.ops):
                raise OSError(errno.ENOSPC, "no space left", path)

    disk = FullForRecords()
    logs = EntryLogWriter(disk, "/d", 7, 3)
    with pytest.raises(OSError, match="no space"):
        logs.write(1, b"abc", BLOCK)
    disk.full = False
    created = logs.write(1, b"abc", BLOCK)
    assert created is not None and created.pread(3, BLOCK) == b"abc"
    assert sum(op.kind == "create" for op in disk.ops) == 1, "the header is durable already"


@pytest.mark.rule("G4")
def test_pieces_and_damage_come_in_the_order_of_the_log() -> None:
    records = some_records()
    file = log_with(*records)
    begin = BLOCK + len(records[0])
    file.pwrite(b"\xff", begin + 40)
    pieces = list(scan_pieces(file, file.size()))
    assert [type(piece) for piece in pieces] == [LogPiece, QuarantinedStretch, LogPiece]
    _, bad, rest = pieces
    assert isinstance(bad, QuarantinedStretch) and isinstance(rest, LogPiece)
    assert (bad.offset, bad.end, rest.at) == (begin, begin + len(records[1]), begin + len(records[1]))
    assert len(rest.scan.offsets) == 3
