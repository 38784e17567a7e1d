"""What a crash may take, and what it may not."""

from __future__ import annotations

import errno
from random import Random

import pytest

from bookkeeper.testing import Fault, SimDisk


def disk(seed: int = 0) -> SimDisk:
    made = SimDisk(Random(seed))
    made.make_directories("/d")
    return made


def test_synced_bytes_in_synced_directories_survive_every_crash() -> None:
    for seed in range(50):
        d = disk(seed)
        file = d.open("/d/a", create=True)
        file.pwrite(b"one", 0)
        file.sync()
        d.sync_directory("/d")
        file.pwrite(b"two", 3)
        d.crash()
        assert d.read_file("/d/a")[:3] == b"one"


def test_unsynced_bytes_are_sometimes_kept_sometimes_lost_sometimes_torn() -> None:
    seen = set()
    for seed in range(300):
        d = disk(seed)
        file = d.open("/d/a", create=True)
        file.pwrite(b"\1" * 2048, 0)
        file.sync()
        d.sync_directory("/d")
        file.pwrite(b"\2" * 2048, 0)
        d.crash()
        content = d.read_file("/d/a")
        seen.add("kept" if content == b"\2" * 2048 else "lost" if content == b"\1" * 2048 else "torn")
        assert {content[at : at + 512] for at in range(0, 2048, 512)} <= {b"\1" * 512, b"\2" * 512}
    assert seen == {"kept", "lost", "torn"}


def test_names_are_pending_until_their_directory_is_synced() -> None:
    outcomes = set()
    for seed in range(100):
        d = disk(seed)
        file = d.open("/d/a.tmp", create=True)
        file.pwrite(b"x", 0)
        file.sync()
        d.rename("/d/a.tmp", "/d/a")
        d.crash()
        outcomes.add(tuple(d.list("/d")))
    assert () in outcomes
    assert ("a",) in outcomes
    d = disk()
    d.open("/d/a", create=True)
    d.sync_directory("/d")
    d.crash(keep=0.0)
    assert d.list("/d") == ["a"]


@pytest.mark.rule("K23")
def test_after_a_failed_sync_a_second_one_succeeds_and_proves_nothing() -> None:
    d = disk()
    file = d.open("/d/a", create=True)
    d.sync_directory("/d")
    file.pwrite(b"gone", 0)
    d.faults.append(Fault(operation="sync", code=errno.EIO, times=1))
    with pytest.raises(OSError, match="/d/a"):
        file.sync()
    file.sync()
    assert d.read_file("/d/a") == b"gone", "the page cache still shows it"
    d.crash(keep=1.0)
    assert d.read_file("/d/a") == b""


def test_direct_writes_are_durable_and_aligned() -> None:
    d = disk()
    file = d.open("/d/a", create=True, direct=True)
    d.sync_directory("/d")
    file.pwrite(b"x" * 4096, 0)
    with pytest.raises(OSError, match="unaligned"):
        file.pwrite(b"x", 0)
    d.crash(keep=0.0)
    assert d.read_file("/d/a") == b"x" * 4096


def test_a_full_disk_refuses_to_grow() -> None:
    d = disk()
    d.capacity = 10
    file = d.open("/d/a", create=True)
    file.pwrite(b"x" * 10, 0)
    with pytest.raises(OSError, match="No space") as caught:
        file.pwrite(b"x", 10)
    assert caught.value.errno == errno.ENOSPC
    file.pwrite(b"y" * 10, 0)
    assert d.space("/d").free == 0


def test_descriptors_and_locks_end_with_the_process() -> None:
    d = disk()
    file = d.open("/d/a", create=True)
    d.lock("/d/lock")
    with pytest.raises(BlockingIOError):
        d.lock("/d/lock")
    d.process_died()
    with pytest.raises(OSError, match="Bad file"):
        file.pread(1, 0)
    d.lock("/d/lock")


def test_a_file_system_without_direct_writes_says_so() -> None:
    disk = SimDisk(Random(1))
    disk.direct = False
    file = disk.open("/x", create=True, direct=True)
    assert not file.direct
    file.pwrite(b"unaligned", 3)
