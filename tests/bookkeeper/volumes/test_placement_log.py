"""The file ``placements``: its bytes, what a crash or damage leaves of it, and when a record is durable."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

import pytest

from bookkeeper.errors import BookieFailedError, CorruptionError, DiskFullError, UnsupportedFormatError
from bookkeeper.storage.durable_file import STAMP_SIZE, stamp
from bookkeeper.testing.world import SimDisk
from bookkeeper.volumes.placement import PlacementKind, PlacementRecord
from bookkeeper.volumes.placement_log import (
    PlacementLog,
    decode_placements,
    encode_head,
    encode_record,
    refuse_damage,
    write_placements,
)
from tests.bookkeeper.storage.recording_disk import QueueWorker, QueueWorkers, RecordingDisk, crash_images

ID = 0x0123456789ABCDEF
RECORD = 24
HEAD = STAMP_SIZE + 8
PLACED, LOST, WHOLE, GONE, VOLUME_LOST = PlacementKind

Answers = list[BaseException | None]


def placed(ledger: int, volume: int = 1) -> PlacementRecord:
    return PlacementRecord(PLACED, ledger, volume)


RECORDS = [placed(5, 2), placed(2**63 - 1, 2**32 - 1), PlacementRecord(LOST, 5), PlacementRecord(VOLUME_LOST, volume=2)]


def content(records: list[PlacementRecord]) -> bytes:
    return encode_head(ID) + b"".join(encode_record(each, number, ID) for number, each in enumerate(records))


# -- bytes ------------------------------------------------------------------------------------------------


def test_the_bytes_of_the_head() -> None:
    assert encode_head(ID).hex() == "424b504c0001000000000008" + "8447f2ed" + "0123456789abcdef"
    assert len(encode_head(ID)) == HEAD


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


def test_what_was_written_is_read() -> None:
    found = decode_placements(content(RECORDS), ID, "x")
    assert (found.records, found.size, found.damage) == (RECORDS, HEAD + RECORD * len(RECORDS), None)
    empty = decode_placements(encode_head(ID), ID, "x")
    assert (empty.records, empty.size, empty.damage) == ([], HEAD, None)


def test_a_tail_cut_anywhere_leaves_the_records_before_it() -> None:
    data = content(RECORDS)
    for size in range(HEAD, len(data)):
        found = decode_placements(data[:size], ID, "x")
        whole = (size - HEAD) // RECORD
        assert (found.records, found.size, found.damage) == (RECORDS[:whole], HEAD + RECORD * whole, None)
    for size in range(HEAD):
        with pytest.raises(CorruptionError, match="/d/placements is damaged"):
            decode_placements(data[:size], ID, "/d/placements")


def test_a_flipped_bit_in_the_middle_is_damage_and_what_is_behind_it_is_read() -> None:
    data = content(RECORDS)
    for at in range(HEAD, len(data)):
        hurt = bytearray(data)
        hurt[at] ^= 1 << at % 8
        found = decode_placements(bytes(hurt), ID, "/d/placements")
        number = (at - HEAD) // RECORD
        assert found.records == RECORDS[:number] + RECORDS[number + 1 :]
        if number == len(RECORDS) - 1:  # as if a crash had left it
            assert found.damage is None and found.size == len(data) - RECORD
        else:
            assert found.damage == f"/d/placements is damaged at offset {HEAD + number * RECORD}"
            assert found.size == len(data)
            with pytest.raises(CorruptionError, match=f"is damaged at offset {HEAD + number * RECORD}"):
                refuse_damage(bytes(hurt), "/d/placements")
    refuse_damage(data, "x")


def test_a_record_counts_at_its_own_place_in_its_own_file_alone() -> None:
    data = content(RECORDS)
    moved = data[:HEAD] + data[HEAD + RECORD :]
    assert decode_placements(moved, ID, "x").records == []
    other = content(RECORDS[:1]) + encode_record(RECORDS[1], 1, ID + 1)
    assert decode_placements(other, ID, "x").records == RECORDS[:1]
    kind = bytearray(encode_record(RECORDS[0], 0, ID))
    kind[4] = 6
    assert decode_placements(encode_head(ID) + bytes(kind), ID, "x").records == []


def test_another_bookies_file_is_damage() -> None:
    found = decode_placements(content(RECORDS), ID + 1, "/d/placements")
    assert found.records == [] and found.damage == "/d/placements does not belong to the file volumes beside it"


@pytest.mark.parametrize("check", [lambda data, path: decode_placements(data, ID, path), refuse_damage])
def test_a_head_that_cannot_be_read_is_said(check: Callable[[bytes, str], object]) -> None:
    hurt = bytearray(content(RECORDS))
    hurt[20] ^= 1
    with pytest.raises(CorruptionError, match="/d/p is damaged"):
        check(bytes(hurt), "/d/p")
    with pytest.raises(UnsupportedFormatError, match="/d/p is of version 2"):
        check(stamp(b"BKPL", 2, bytes(8)), "/d/p")


class Finishing(QueueWorker):
    """Does what was submitted before it ends."""

    def __init__(self, owner: QueueWorkers, name: str) -> None:
        super().__init__(owner, name)
        self._workers = owner

    def close(self) -> None:
        self._workers.pump()


# -- writing ----------------------------------------------------------------------------------------------


class Written:
    """A log on a disk that remembers everything; its worker works when told."""

    def __init__(self, records: list[PlacementRecord] | None = None) -> None:
        self.disk, self.workers = RecordingDisk(), QueueWorkers()
        count = write_placements(self.disk, "/d", ID, records or [])
        self.failures: list[BaseException] = []
        self.before = self.disk.files()
        self.disk.ops.clear()
        self.log = PlacementLog(self.disk, "/d", ID, count, self.workers.worker("p"), self.failures.append)
        self.answers: Answers = []

    def wait(self) -> None:
        self.log.when_durable(self.answers.append)

    @property
    def stored(self) -> list[PlacementRecord]:
        found = decode_placements(self.disk.files()["/d/placements"], ID, "x")
        assert found.damage is None
        return found.records

    @property
    def writes(self) -> list[tuple[str, int]]:
        return [(op.kind, len(op.data)) for op in self.disk.ops]


def test_a_new_file_has_the_records_and_is_durable() -> None:
    disk = SimDisk(Random(3))
    disk.make_directories("/d")
    assert write_placements(disk, "/d", ID, iter(RECORDS)) == len(RECORDS)
    disk.crash(keep=0.0)
    assert decode_placements(disk.read_file("/d/placements"), ID, "x").records == RECORDS


def test_nothing_to_write_is_durable_at_once() -> None:
    it = Written([placed(1)])
    assert it.log.is_durable
    it.wait()
    assert it.answers == [None] and it.workers.jobs == []


def test_a_record_is_answered_after_the_sync() -> None:
    it = Written([placed(1)])
    it.log.append(placed(2))
    durable = it.log.is_durable
    assert not durable and it.workers.jobs == [], "nobody waits"
    it.wait()
    assert it.answers == []
    it.workers.step()
    assert it.answers == [None] and it.log.is_durable
    assert it.writes == [("write", RECORD), ("sync", 0)]
    assert it.stored == [placed(1), placed(2)]


def test_records_that_come_during_a_write_are_one_write() -> None:
    it = Written()
    it.log.append(placed(0))
    it.wait()
    for ledger in range(1, 20):
        it.log.append(placed(ledger))
        it.wait()
    assert len(it.workers.jobs) == 1
    it.workers.step()
    durable = it.log.is_durable
    assert it.answers == [None] and not durable
    it.workers.step()
    assert it.answers == [None] * 20 and it.log.is_durable
    assert it.writes == [("write", RECORD), ("sync", 0), ("write", 19 * RECORD), ("sync", 0)]
    assert it.stored == [placed(ledger) for ledger in range(20)]


def test_who_waits_during_a_write_waits_for_what_is_collected_too() -> None:
    it = Written()
    it.log.append(placed(0))
    it.wait()
    it.wait()
    it.workers.step()
    assert it.answers == [None]
    it.workers.step()
    assert it.answers == [None, None]


def test_every_crash_leaves_what_was_answered_and_nothing_wrong() -> None:
    it = Written([placed(1)])
    answered: list[tuple[int, int]] = []
    for group in range(3):
        for at in range(9):
            it.log.append(placed(10 * group + at + 2))
        expected = 1 + 9 * (group + 1)
        it.log.when_durable(lambda error, n=expected: answered.append((len(it.disk.ops), n)))  # type: ignore[misc]
        it.workers.pump()
    for done, name, files in crash_images(it.before, it.disk.ops, Random(1), 40):
        found = decode_placements(files["/d/placements"], ID, "x")
        least = max((count for at, count in answered if at < done), default=1)
        assert len(found.records) >= least, (done, name)
        assert found.records[:least] == it.stored[:least]
        assert set(found.records) <= set(it.stored)


def test_without_space_the_records_are_written_later_at_the_same_place() -> None:
    it = Written([placed(1)])
    it.disk.faults[("write", "placements")] = OSError(errno.ENOSPC, "full")
    it.log.append(placed(2))
    it.wait()
    it.log.append(placed(3))
    it.workers.step()
    (error,) = it.answers
    assert isinstance(error, DiskFullError) and "/d/placements cannot be written for now" in str(error)
    durable = it.log.is_durable
    assert it.failures == [] and it.log.failure is None and not durable
    it.log.append(placed(4))
    it.disk.faults.clear()
    it.wait()
    it.workers.pump()
    assert it.answers[1:] == [None] and it.log.is_durable and it.log.full is None
    assert it.stored == [placed(ledger) for ledger in (1, 2, 3, 4)]
    data = bytearray(it.disk.files()["/d/placements"])
    data[-3 * 24 + 20] ^= 1  # a power cut tore that write: its records are one group, whenever they came
    assert decode_placements(bytes(data), it.log.file_id, "placements").damage is None


def test_who_came_during_a_write_without_space_tries_again() -> None:
    it = Written()
    it.disk.faults[("write", "placements")] = OSError(errno.EDQUOT, "quota")
    it.log.append(placed(2))
    it.wait()
    it.log.append(placed(3))
    it.wait()
    it.workers.step()
    it.disk.faults.clear()
    it.workers.pump()
    assert isinstance(it.answers[0], DiskFullError) and it.answers[1:] == [None]
    assert it.stored == [placed(2), placed(3)]


@pytest.mark.parametrize(("call", "code"), [("sync", errno.EIO), ("sync", errno.ENOSPC), ("write", errno.EIO)])
def test_a_failure_is_final_and_told_once(call: str, code: int) -> None:
    """Also "no space" from a sync: what was written before it is lost (K23)."""
    it = Written()
    it.log.append(placed(2))
    it.wait()
    it.log.append(placed(3))
    it.wait()
    it.disk.faults[(call, "placements")] = OSError(code, "bad")
    it.workers.step()
    it.disk.faults.clear()
    assert it.workers.jobs == []
    assert len(it.failures) == 1 and isinstance(it.failures[0], BookieFailedError)
    assert "/d/placements could not be written" in str(it.failures[0])
    assert it.answers == [it.failures[0]] * 2
    it.log.append(placed(4))
    it.wait()
    it.workers.pump()
    assert it.answers == [it.failures[0]] * 3 and len(it.failures) == 1
    it.log.close()
    assert it.workers.jobs == []


def test_a_file_that_cannot_be_opened_is_final() -> None:
    it = Written()
    it.disk.faults[("open", "placements")] = OSError(errno.EIO, "bad")
    it.log.append(placed(2))
    it.wait()
    it.workers.pump()
    assert isinstance(it.answers[0], BookieFailedError) and len(it.failures) == 1


def test_closing_writes_what_is_collected() -> None:
    it = Written()
    it.log.append(placed(2))
    it.log.close()
    it.workers.pump()
    assert it.stored == [placed(2)]


def test_closing_an_idle_log_closes_its_file() -> None:
    it = Written()
    it.log.append(placed(2))
    it.wait()
    it.workers.pump()
    it.log.close()
    assert it.disk.left_open == []


def test_a_log_that_is_closed_during_a_write_lets_its_file_go() -> None:
    it = Written()
    it.log.worker = Finishing(it.workers, "p")
    it.log.append(placed(2))
    it.wait()
    it.log.append(placed(3))
    it.log.close()
    assert it.answers == [None] and it.disk.left_open == []
    assert it.stored[:1] == [placed(2)]


def test_of_the_last_group_any_part_may_be_missing_and_of_earlier_ones_none() -> None:
    groups = [RECORDS[:2], RECORDS]
    pieces = [encode_record(RECORDS[0], 0, ID, 0), encode_record(RECORDS[1], 1, ID, 1)]
    pieces += [encode_record(each, 2 + at, ID, at) for at, each in enumerate(RECORDS)]
    everything = [*groups[0], *groups[1]]
    for gone in range(len(pieces)):
        data = encode_head(ID) + b"".join(bytes(RECORD) if at == gone else each for at, each in enumerate(pieces))
        found = decode_placements(data, ID, "/d/p")
        assert found.records == everything[:gone] + everything[gone + 1 :]
        if gone < 2:
            assert found.damage == f"/d/p is damaged at offset {HEAD + gone * RECORD}"
        else:
            assert found.damage is None and found.size == HEAD + gone * RECORD, "the next start writes it anew"


def test_records_of_one_write_say_so() -> None:
    it = Written([placed(1)])
    for ledger in (2, 3, 4):
        it.log.append(placed(ledger))
    it.wait()
    it.workers.pump()
    data = it.disk.files()["/d/placements"]
    expected = [encode_record(placed(ledger), ledger - 1, ID, ledger - 2) for ledger in (2, 3, 4)]
    assert data[HEAD + RECORD :] == b"".join(expected)
