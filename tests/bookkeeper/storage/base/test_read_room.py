"""One reader's memory, used again."""

from __future__ import annotations

from bookkeeper.storage.base.read_room import ReadRoom
from tests.bookkeeper.storage.recording_disk import RecordingDisk

MIB = 1 << 20


def test_a_read_gives_what_is_there_and_the_next_one_uses_the_same_memory() -> None:
    file = RecordingDisk({"/f": b"0123456789"}).open("/f", write=False)
    room = ReadRoom()
    first = room.read(file, 4, 0)
    assert bytes(first) == b"0123"
    assert bytes(room.read(file, 4, 8)) == b"89", "the end of the file"
    assert bytes(first) == b"8923", "valid until the next read only"


def test_memory_grows_to_a_bound() -> None:
    room = ReadRoom()
    small, more = room.of(10), room.of(2 * MIB)
    assert small.obj is not more.obj and room.of(20).obj is more.obj
    assert len(huge := room.of(9 * MIB)) == 9 * MIB
    assert room.of(2 * MIB).obj is more.obj is not huge.obj, "what is longer is not kept"
