"""Spare journal files: kept by checkpoints, made in advance where there are none."""

from __future__ import annotations

import errno

import pytest

from bookkeeper.storage.base.durable_file import BLOCK, SyncFailedError
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.journal.group_writer import GroupWriter, spare_names
from bookkeeper.storage.journal.spare_files import SpareFiles
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk


class Shelf:
    def __init__(self, *names: str, wanted: int = 1) -> None:
        self.disk, self.threads, self.failed = RecordingDisk(), QueueWorkers(), list[BaseException]()
        self.short = list[str]()
        self.workers = StorageWorkers(self.threads)
        journal = GroupWriter(self.disk, "/journal", 4 * BLOCK, 1, 1)
        self.spares = SpareFiles(
            names, journal, self.workers, wanted, self.failed.append, lambda: self.short.append("no space")
        )


@pytest.mark.rule("K11")
def test_where_there_is_none_one_is_made_by_the_checkpoints_thread() -> None:
    shelf = Shelf()
    shelf.spares.prepare(5)
    assert [name for name, _, _ in shelf.threads.jobs] == ["checkpoint"] and not shelf.spares.names
    shelf.threads.pump()
    assert list(shelf.spares.names) == spare_names(shelf.disk, "/journal") != []
    assert len(shelf.disk.read_file(f"/journal/{shelf.spares.names[0]}")) == 4 * BLOCK
    shelf.spares.prepare(5)
    assert not shelf.threads.jobs, "one is enough"


@pytest.mark.rule("K12")
def test_one_that_is_made_in_advance_has_no_number_of_a_recycled_file() -> None:
    shelf = Shelf()
    shelf.spares.prepare(5)
    shelf.threads.pump()
    assert shelf.spares.names[0] != f"{5:016x}.spare"


def test_the_oldest_is_used_first() -> None:
    shelf = Shelf("a.spare")
    shelf.spares.add(["b.spare", "c.spare"])
    shelf.spares.used()
    assert list(shelf.spares.names) == ["b.spare", "c.spare"]


def test_none_is_made_where_none_is_wanted() -> None:
    shelf = Shelf(wanted=0)
    shelf.spares.prepare(5)
    assert not shelf.threads.jobs and spare_names(shelf.disk, "/journal") == []


@pytest.mark.rule("K23", "K28")
@pytest.mark.parametrize(("call", "final"), [("sync", True), ("write", False)])
def test_only_a_failed_sync_ends_everything(call: str, final: bool) -> None:
    shelf = Shelf()
    shelf.disk.faults[call, ".spare"] = OSError(errno.EIO if final else errno.ENOSPC, "no")
    shelf.spares.prepare(5)
    shelf.threads.pump()
    assert [isinstance(error, SyncFailedError) for error in shelf.failed] == [True] * final
    assert not shelf.spares.names
    assert shelf.short == ([] if final else ["no space"])
    assert final or spare_names(shelf.disk, "/journal") == [], "a part of one takes space, and is none"
