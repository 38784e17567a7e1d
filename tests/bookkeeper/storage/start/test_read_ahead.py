"""What the system is asked to read before it is needed."""

from __future__ import annotations

import pytest

from bookkeeper.storage.start.read_ahead import AHEAD, STEP, FileReadAhead
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import Life, open_engine


class LongFile:
    """A file of some length, without its bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.expected: list[tuple[int, int]] = []

    def size(self) -> int:
        return self._size

    def expect(self, offset: int, size: int) -> None:
        self.expected.append((offset, size))


def asked_of(size: int, *reached: int) -> list[tuple[int, int]]:
    file = LongFile(size)
    ahead = FileReadAhead(file)  # type: ignore[arg-type]
    for offset in reached:
        ahead.reached(offset)
    assert all(
        before + length <= after for (before, length), (after, _) in zip(file.expected, file.expected[1:], strict=False)
    )
    return file.expected


def test_it_stays_a_piece_ahead_and_asks_for_nothing_twice() -> None:
    begin = asked_of(10 * AHEAD)
    assert begin[0] == (0, STEP) and sum(begin[-1]) == AHEAD
    assert asked_of(10 * AHEAD, STEP - 1) == begin, "whole steps"
    assert asked_of(10 * AHEAD, STEP - 1, STEP, STEP + 9) == [*begin, (AHEAD, STEP)]


def test_it_ends_with_the_file() -> None:
    size = AHEAD + STEP + 77
    assert asked_of(0) == [] and asked_of(77) == [(0, 77)]
    asked = asked_of(size, *range(0, size, 4096), size)
    assert sum(length for _, length in asked) == size and sum(asked[-1]) == size


def test_what_was_passed_over_is_not_asked_for() -> None:
    assert asked_of(10 * AHEAD, 3 * AHEAD)[AHEAD // STEP] == (3 * AHEAD, STEP)


@pytest.mark.rule("K17")
def test_a_start_reads_the_journal_behind_the_mark_ahead() -> None:
    life = Life(RecordingDisk())
    for entry_id in range(9):
        life.add(1, entry_id, size=2000)
        life.pump()
    disk = RecordingDisk(life.disk.files())
    open_engine(disk)
    journals = {name: len(data) for name, data in life.disk.files().items() if name.endswith(".journal")}
    assert len(journals) > 1
    assert {(path, offset, size) for path, offset, size in disk.expected} == {
        (path, 0, size) for path, size in journals.items()
    }
