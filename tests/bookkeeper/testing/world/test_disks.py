"""Disks of one machine fill up, and lose what was not synced, each by itself."""

from __future__ import annotations

import errno
from random import Random

import pytest

from bookkeeper.testing.world import SimDisks


def machine(seed: int = 1) -> SimDisks:
    disks = SimDisks(Random(seed), ("/disk1", "/disk2"))
    disks.make_directories("/home")
    return disks


def test_one_disk_is_full_and_the_others_are_not() -> None:
    disks = machine()
    disks.open("/disk1/a", create=True).pwrite(bytes(1000), 0)
    disks.limit("/disk1", 10)
    with pytest.raises(OSError) as caught:
        disks.open("/disk1/b", create=True).pwrite(bytes(11), 0)
    assert caught.value.errno == errno.ENOSPC
    disks.open("/disk2/b", create=True).pwrite(bytes(11), 0)
    disks.open("/home/b", create=True).pwrite(bytes(11), 0)
    assert disks.space("/disk1").free == 10 and disks.space("/disk2").free > 1 << 30
    disks.limit("/disk1", None)
    disks.open("/disk1/c", create=True).pwrite(bytes(11), 0)


def test_a_power_cut_takes_other_shares_of_every_disk() -> None:
    shares = set()
    for seed in range(60):
        disks = machine(seed)
        for mount in ("/disk1", "/disk2"):
            disks.make_directories(mount)
            for number in range(20):
                disks.open(f"{mount}/{number}", create=True)
        disks.crash()
        shares.add((bool(disks.list("/disk1")), bool(disks.list("/disk2"))))
    assert shares == {(False, False), (False, True), (True, False), (True, True)}


def test_a_name_that_begins_like_a_mount_is_not_on_it() -> None:
    disks = machine()
    assert [disks.mount_of(path) for path in ("/disk1", "/disk1/a/b", "/disk11/a", "/home/disk1")] == [
        "/disk1",
        "/disk1",
        "",
        "",
    ]


def test_an_exchanged_disk_is_empty_and_the_others_are_not() -> None:
    disks = machine()
    for mount in ("/disk1", "/disk2"):
        disks.open(f"{mount}/a", create=True).pwrite(b"x", 0)
        disks.sync_directory(mount)
    disks.lock("/disk1/lock")
    disks.exchange("/disk1")
    assert disks.list("/disk1") == [] and disks.list("/disk2") == ["a"]
    disks.lock("/disk1/lock").release()
    disks.crash(keep=0.0)
    assert disks.list("/disk2") == ["a"], "the name was durable"


def test_what_survives_for_certain_is_what_was_synced() -> None:
    disks = machine()
    file = disks.open("/home/a", create=True)
    file.pwrite(b"one", 0)
    assert disks.surviving("/home/a") is None, "the name is not durable"
    disks.sync_directory("/home")
    assert disks.surviving("/home/a") == b""
    file.sync()
    file.pwrite(b"two", 3)
    assert disks.surviving("/home/a") == b"one"
