"""Starts on a full disk: what is given up for them, and that they lose nothing."""

from __future__ import annotations

import errno
import random
from contextlib import suppress
from dataclasses import replace

import pytest

from bookkeeper.errors import DiskFullError
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.dirty_marker import is_marked
from bookkeeper.storage.base.manifest import read_manifest
from bookkeeper.storage.base.results import NOTHING_KNOWN, EngineState, ignore
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.entry_log.entry_log_file import log_name
from bookkeeper.storage.journal.group_writer import journal_ids, spare_names
from bookkeeper.storage.start.full_disk import cover_in_place, free_copies
from tests.bookkeeper.storage.recording_disk import BLOCK, QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, PER_LEDGER, add, close, lid, make_entry, open_engine, read

SMALL = replace(CONFIG, inflight_bytes=16384, entry_log_bytes=65536, checkpoint_bytes=131072, journal_spares=1)
"""What is taken fills the disk within some hundred entries."""

ENOUGH = replace(SMALL, reserve_bytes=SMALL.reserve_bytes_needed)


class Filled:
    """One life on a disk of a given size, until it was full, and then cut short."""

    def __init__(self, config: StorageConfig, capacity: int, seed: int) -> None:
        self.config, self.random, self.disk = config, random.Random(seed), RecordingDisk()
        self.disk.capacity = capacity
        self.acked: dict[tuple[int, int], bytes] = {}
        self.fenced: set[int] = set()
        self.dropped: set[int] = set()
        self.next = dict.fromkeys(range(1, 6), 0)
        self.engine, self.workers = open_engine(self.disk, config)

    def live(self) -> None:
        """Until no more is taken, and some time longer: fences, adds of recoveries, checkpoints, collections."""
        left = self.random.randrange(20, 500)
        while left:
            is_full = self.engine.state is not EngineState.WRITABLE
            left -= is_full
            with suppress(DiskFullError):
                self._step(full=is_full)
            for _ in range(self.random.randrange(4)):
                self.workers.step()
            if self.random.random() < 0.002:
                self.engine.check_space()

    def _step(self, *, full: bool) -> None:
        what = self.random.random()
        ledger = self.random.choice(sorted(self.next.keys() - self.dropped))
        if what < 0.01:
            self.engine.checkpoint(ignore)
        elif what < 0.09 and full:
            self.engine.fence(lid(ledger), KEY, lambda error: self.fenced.add(ledger) if error is None else None)
        else:
            self._add(ledger, recovery=self.engine.is_fenced(lid(ledger)) or (full and what < 0.8))

    def _add(self, ledger: int, *, recovery: bool) -> None:
        at, size = self.next[ledger], self.random.choice((60, 300, 1500))
        entry = make_entry(ledger, at, size=size)
        self.engine.append_entry(lid(ledger), KEY, entry, recovery=recovery)
        self.next[ledger] += 1

        def done(error: BaseException | None) -> None:
            if error is None:
                self.acked[ledger, at] = entry

        self.engine.when_durable(done)

    def again(self) -> tuple[Engine, QueueWorkers]:
        """The next start, on the same disk."""
        disk = RecordingDisk(self.disk.files())
        disk.capacity, self.disk = self.disk.capacity, disk
        self.engine, self.workers = open_engine(disk, self.config)
        return self.engine, self.workers

    def check(self) -> None:
        """Everything that was acknowledged is there."""
        assert self.engine.report.limbo_reason is None
        for (ledger, at), entry in self.acked.items():
            assert read(self.engine, self.workers, ledger, at) == entry, (ledger, at)
        assert all(self.engine.is_fenced(lid(ledger)) for ledger in self.fenced)


@pytest.mark.rule("K26")
@pytest.mark.parametrize("spares", [0, 1, 3])
@pytest.mark.parametrize("layout", [SMALL, replace(SMALL, entry_log_per_ledger=True, ledger_buffer_bytes=8192)])
def test_with_the_reserve_that_is_needed_a_killed_bookie_starts_on_its_full_disk(
    layout: StorageConfig, spares: int
) -> None:
    config = replace(layout, journal_spares=spares)
    config = replace(config, reserve_bytes=config.reserve_bytes_needed)
    for seed in range(4):
        life = Filled(config, 2 * config.reserve_bytes + BLOCK * (60 + seed), seed)
        life.live()
        for _ in range(3):
            life.again()
            life.check()


def killed(config: StorageConfig, groups: int, size: int = 6000) -> tuple[RecordingDisk, dict[int, bytes]]:
    """A disk on which so many groups of one entry are durable, and nothing is covered; and the entries."""
    disk, entries = RecordingDisk(), dict[int, bytes]()
    engine, workers = open_engine(disk, config)
    for at in range(groups):
        entries[at] = add(engine, 1, at, size=size)
        answers: list[BaseException | None] = []
        engine.when_durable(answers.append)
        workers.pump()
        assert answers == [None]
    return RecordingDisk(disk.files()), entries


def check_start(disk: RecordingDisk, config: StorageConfig, entries: dict[int, bytes]) -> Engine:
    engine, workers = open_engine(disk, config)
    assert engine.report.limbo_reason is None
    assert {at: read(engine, workers, 1, at) for at in entries} == entries
    return engine


NO_RESERVE = replace(SMALL, reserve_bytes=0)


@pytest.mark.rule("K26", "K16")
def test_second_copies_make_room_for_a_start_where_nothing_is_free() -> None:
    disk, entries = killed(NO_RESERVE, 12)
    for name in spare_names(disk, "/journal"):  # all but one are given up first, and here are none to give up
        disk.unlink(f"/journal/{name}")
    disk.capacity = disk.used() + 10 * BLOCK  # a journal file, and small ones: the copies have 18
    check_start(disk, NO_RESERVE, entries)


@pytest.mark.rule("K26", "G4")
@pytest.mark.parametrize("lost", [".journal", "manifest"])
def test_after_a_loss_no_second_copy_is_given_up(lost: str) -> None:
    disk, _ = killed(NO_RESERVE, 12)
    name = min(path for path in disk.names if path.endswith(lost))
    if lost == "manifest":
        disk.unlink(name)
    else:
        disk.names[name].data[6000] ^= 1
    before = disk.files()
    assert not free_copies(NO_RESERVE, disk, 1, NOTHING_KNOWN)
    assert {path: data for path, data in disk.files().items() if path in before} == before
    assert not cover_in_place(NO_RESERVE, disk, 1, NOTHING_KNOWN)
    assert {path: data for path, data in disk.files().items() if path in before} == before


def everything(disk: RecordingDisk) -> dict[str, bytes]:
    """All files but the markers that say "in use"."""
    return {path: data for path, data in disk.files().items() if not path.endswith("/dirty")}


@pytest.mark.rule("K26", "K19")
def test_where_the_index_is_rebuilt_no_second_copy_is_given_up() -> None:
    disk, entries = killed(NO_RESERVE, 12)
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    manifest.rebuild = True
    disk.names["/ledgers/manifest"].data[:] = manifest.encode()
    before = everything(disk)
    assert not free_copies(NO_RESERVE, disk, 1, NOTHING_KNOWN)
    assert not cover_in_place(NO_RESERVE, disk, 1, NOTHING_KNOWN)
    assert before.items() <= everything(disk).items()
    disk.locks.clear()
    check_start(disk, NO_RESERVE, entries)


@pytest.mark.rule("K26", "G4")
def test_index_segments_alone_are_not_taken_for_second_copies() -> None:
    """Nothing else is left in the directory: they are all that anybody can still look at."""
    disk, _ = killed(NO_RESERVE, 12)
    check_start(disk, NO_RESERVE, {})
    for path in list(disk.names):
        if not path.endswith(".index"):
            disk.unlink(path)
    disk.locks.clear()
    before = everything(disk)
    assert before
    assert not free_copies(NO_RESERVE, disk, 2, NOTHING_KNOWN)
    assert everything(disk) == before


@pytest.mark.rule("K26", "K15")
def test_a_log_that_is_finished_keeps_its_map() -> None:
    """Behind the end that the manifest gives stands which ledgers the log has."""
    disk = RecordingDisk()
    engine, workers = open_engine(disk, NO_RESERVE)
    entries = {}
    for at in range(30):  # two logs
        entries[at] = add(engine, 1, at, size=6000)
        engine.when_durable(ignore)
        workers.pump()
        if at == 20:
            engine.checkpoint(ignore)
            workers.pump()
    disk = RecordingDisk(disk.files())
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    finished = {f"/ledgers/{log_name(log)}": entry.end for log, entry in manifest.logs.items() if entry.finished}
    before = {path: data for path, data in disk.files().items() if path in finished}
    assert before and all(len(data) > finished[path] for path, data in before.items())
    assert free_copies(NO_RESERVE, disk, 1, NOTHING_KNOWN)
    assert before.items() <= disk.files().items()
    cut = [op for op in disk.ops if op.kind == "truncate"]
    assert cut and all(any(op.kind == "sync" and op.inode == each.inode for op in disk.ops) for each in cut), (
        "what is cut off is free only when that is durable"
    )
    disk.locks.clear()
    check_start(disk, NO_RESERVE, entries)


@pytest.mark.rule("K26")
@pytest.mark.parametrize("call, path", [("open", "manifest.tmp"), ("write", ".log")])
def test_a_cover_without_success_leaves_nothing_behind(call: str, path: str) -> None:
    disk, entries = killed(NO_RESERVE, 12)
    free_copies(NO_RESERVE, disk, 1, NOTHING_KNOWN)
    before = everything(disk)
    disk.faults[call, path] = OSError(errno.ENOSPC, "no space left")
    with pytest.raises(OSError, match="no space left"):
        cover_in_place(NO_RESERVE, disk, 1, NOTHING_KNOWN)
    assert everything(disk) == before
    disk.faults.clear()
    check_start(disk, NO_RESERVE, entries)


@pytest.mark.rule("K26", "K12")
def test_a_directory_is_marked_before_anything_in_it_is_covered() -> None:
    """It was stopped cleanly; whatever becomes of this start, the next one knows that it was begun."""
    disk, _ = killed(NO_RESERVE, 12)
    close(*open_engine(disk, NO_RESERVE))
    assert not is_marked(disk, "/ledgers") and not is_marked(disk, "/journal")
    disk.locks.clear()
    cover_in_place(NO_RESERVE, disk, 2, NOTHING_KNOWN)
    assert is_marked(disk, "/ledgers") and is_marked(disk, "/journal")


@pytest.mark.rule("K26", "K12")
def test_without_room_for_a_journal_file_the_start_takes_one_that_is_covered() -> None:
    """As on a journal's disk that the journal fills alone."""
    disk, entries = killed(NO_RESERVE, 12)
    for name in spare_names(disk, "/journal"):
        disk.unlink(f"/journal/{name}")

    class Filled(RecordingDisk):
        """The journal's disk has room for as many whole files as are there."""

        def before(self, call: str, path: str) -> None:
            files = [len(inode.data) for name, inode in self.names.items() if name.endswith((".journal", ".spare"))]
            if call == "write" and path.endswith(".spare") and len(files) > most and min(files) == 0:
                raise OSError(errno.ENOSPC, "no space left", path)

    most = len(journal_ids(disk, "/journal"))
    assert most > 2
    check_start(Filled(disk.files()), NO_RESERVE, entries)


@pytest.mark.rule("K26")
def test_what_cannot_be_started_says_where_room_is_needed_and_loses_nothing() -> None:
    disk, entries = killed(NO_RESERVE, 2)
    for name in spare_names(disk, "/journal"):
        disk.unlink(f"/journal/{name}")
    disk.capacity = disk.used()
    for _ in range(2):
        with pytest.raises(DiskFullError, match=r"nothing is lost; make room on the disk of /ledgers or /journal"):
            open_engine(disk, NO_RESERVE)
    disk.capacity += 16 * BLOCK
    check_start(disk, NO_RESERVE, entries)


@pytest.mark.rule("K26")
def test_tries_without_success_take_no_room_from_the_next() -> None:
    disk, entries = killed(NO_RESERVE, 12)
    disk.capacity = disk.used() + 16 * BLOCK
    disk.faults["write", "manifest"] = OSError(errno.ENOSPC, "no space left")
    disk.faults["open", "manifest.tmp"] = OSError(errno.ENOSPC, "no space left")
    used = []
    for _ in range(3):
        with pytest.raises(DiskFullError):
            open_engine(disk, NO_RESERVE)
        used.append(disk.used())
    assert used[1] <= used[0] and used[2] <= used[0]
    disk.faults.clear()
    check_start(disk, NO_RESERVE, entries)


def test_a_reserve_that_cannot_suffice_is_told() -> None:
    assert ENOUGH.reserve_problem() is None and StorageConfig(journal_dir="a", ledger_dir="b").reserve_problem() is None
    problem = replace(ENOUGH, reserve_bytes=ENOUGH.reserve_bytes - 1).reserve_problem()
    assert problem is not None and f"{ENOUGH.reserve_bytes} may be needed" in problem
    assert PER_LEDGER.reserve_bytes_needed > 2 * PER_LEDGER.ledger_buffer_bytes
