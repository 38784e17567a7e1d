"""Reads: the right bytes or an error that is honest, one reply each, and no waiting on the loop's thread."""

from __future__ import annotations

import errno
import random
from array import array
from collections.abc import Callable
from dataclasses import replace

import pytest

from bookkeeper.codec import record
from bookkeeper.errors import BookieFailedError, CorruptionError, DataUnknownError, NoSuchEntryError
from bookkeeper.ids import EntryId
from bookkeeper.seams import File
from bookkeeper.storage.base.results import AvailabilityRun, PackedEntries
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.reads.entry_reader import _Stretch, absent, fetch, fetch_batch
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk, RecordingFile
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    add,
    lid,
    make_adds,
    make_entry,
    open_engine,
    read,
    read_batch,
)

Pread = Callable[[RecordingFile, int, int], bytes]
ROOMY = replace(CONFIG, entry_log_bytes=1 << 20, journal_file_bytes=1 << 20, group_bytes=1 << 16)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def settle(engine: Engine, workers: QueueWorkers, *, checkpoint: bool = False) -> None:
    if checkpoint:
        engine.checkpoint(lambda error: None)
    else:
        engine.when_durable(lambda error: None)
    workers.pump()


def log_paths(disk: RecordingDisk) -> list[str]:
    return [name for name in disk.files() if name.endswith(".log")]


def hurt(disk: RecordingDisk, entry: bytes) -> tuple[str, int]:
    """Flip a bit of an entry where it lies in a log; path and offset of its record."""
    for path in log_paths(disk):
        if (at := disk.read_file(path).find(entry)) >= 0:
            disk.names[path].data[at + len(entry) - 1] ^= 4
            return path, at - 8
    raise AssertionError("not there")


# -- one entry --------------------------------------------------------------------------------------------


@pytest.mark.rule("B7")
@pytest.mark.parametrize("hint", [0, 8, 9, 40, 75, 512, 1 << 20])
def test_one_record_is_read_whole_whatever_was_guessed_of_its_size(hint: int) -> None:
    disk = RecordingDisk()
    file = disk.open("/d/x.log", create=True)
    entries = [make_entry(1, 0), make_entry(1, 1, size=3000)]
    file.pwrite(b"".join(map(record, entries)), 100)

    def plain(source: File, size: int, offset: int) -> bytes:
        return source.pread(size, offset)

    at = 100
    for entry_id, entry in enumerate(entries):
        assert fetch(file, at, hint, 1, entry_id, plain) == entry
        for ledger_id, other in ((2, entry_id), (1, entry_id + 1)):
            what = f"/d/x.log is damaged at byte {at}: it should hold entry {other} of ledger {ledger_id}"
            with pytest.raises(CorruptionError, match=what):
                fetch(file, at, hint, ledger_id, other, plain)
        at += len(record(entry))
    for beyond in (101, at, at - 1, 1 << 30):
        with pytest.raises(CorruptionError, match=f"at byte {beyond}"):
            fetch(file, beyond, hint, 1, 1, plain)


@pytest.mark.rule("B13")
def test_what_would_wait_goes_to_the_read_worker_and_is_answered_once(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, ROOMY)
    wanted = add(engine, 1, 0)
    got: list[object] = []
    engine.read(lid(1), EntryId(0), got.append)
    assert got == [wanted] and not workers.jobs, "in memory: at once"
    settle(engine, workers)
    engine.read(lid(1), EntryId(0), got.append)
    assert got == [wanted] * 2 and not workers.jobs, "in the page cache: at once"
    disk.cached = False
    engine.read(lid(1), EntryId(0), got.append)
    engine.read_batch(lid(1), EntryId(0), 0, 1000, got.append)
    assert len(got) == 2 and [name for name, _, _ in workers.jobs] == ["read", "read"]
    workers.pump()
    assert got[2] == wanted and isinstance(got[3], PackedEntries) and len(got) == 4
    assert (engine.stats.reads_inline, engine.stats.reads_waited) == (2, 2)


@pytest.mark.rule("B7", "B5")
@pytest.mark.parametrize("cached", [True, False])
def test_a_damaged_entry_is_an_error_with_its_place_and_hurts_no_other(disk: RecordingDisk, cached: bool) -> None:
    engine, workers = open_engine(disk, ROOMY)
    entries = [add(engine, 1, entry_id) for entry_id in range(5)]
    settle(engine, workers, checkpoint=True)
    path, offset = hurt(disk, entries[2])
    disk.cached = cached
    answer = read(engine, workers, 1, 2)
    assert isinstance(answer, CorruptionError) and f"{path} is damaged at byte {offset}:" in str(answer)
    for entry_id in (0, 1, 3, 4):
        assert read(engine, workers, 1, entry_id) == entries[entry_id]
    assert engine.stats.corruptions == 1
    assert read_batch(engine, workers, 1, 0) == entries[:2], "a batch ends before it"
    assert read_batch(engine, workers, 1, 3) == entries[3:]
    with pytest.raises(
        CorruptionError, match=f"{path} is damaged at byte {offset}: it should hold entry 2 of ledger 1"
    ):
        read_batch(engine, workers, 1, 2)


@pytest.mark.rule("K27", "B5")
@pytest.mark.parametrize("fault", [("read", ".log"), ("read", ".index"), ("open", ".index")])
@pytest.mark.parametrize("cached", [True, False])
def test_a_disk_that_does_not_answer_is_no_negative(disk: RecordingDisk, fault: tuple[str, str], cached: bool) -> None:
    engine, workers = open_engine(disk, ROOMY)
    add(engine, 1, 0)
    settle(engine, workers, checkpoint=True)
    engine, workers = open_engine(disk, ROOMY)
    disk.cached = cached
    disk.faults[fault] = OSError(errno.EIO, "input/output error")
    assert isinstance(read(engine, workers, 1, 0), BookieFailedError)
    with pytest.raises(BookieFailedError):
        read_batch(engine, workers, 1, 0)
    disk.faults.clear()
    assert read(engine, workers, 1, 0) == make_entry(1, 0), "and nothing sticks"


def test_a_negative_is_honest_or_says_that_it_is_not_known() -> None:
    assert isinstance(absent(1, 2, unknown=False), NoSuchEntryError)
    assert isinstance(absent(1, 2, unknown=True), DataUnknownError)


@pytest.mark.rule("B6", "L6")
def test_of_two_copies_of_an_entry_the_newer_is_read(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, ROOMY)
    for entry_id in range(4):
        add(engine, 1, entry_id, lac=-1)
    settle(engine, workers, checkpoint=True)
    newer = make_entry(1, 2, lac=1)
    engine.append_entry(lid(1), KEY, newer, recovery=True)
    for checkpoint in (False, True):
        assert read(engine, workers, 1, 2) == newer
        wanted = [make_entry(1, entry_id, lac=-1) for entry_id in range(4)]
        wanted[2] = newer
        assert read_batch(engine, workers, 1, 0) == wanted
        settle(engine, workers, checkpoint=checkpoint)
    engine, workers = open_engine(disk, ROOMY)
    assert read(engine, workers, 1, 2) == newer and read_batch(engine, workers, 1, 0)[2] == newer


# -- many -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_a_batch_is_what_single_reads_give_up_to_the_first_hole(seed: int, cached: bool) -> None:
    """Entries of two ledgers in runs, holes and far places, over logs, segments, a frozen tail and memory."""
    rng, disk = random.Random(seed), RecordingDisk()
    disk.cached = cached
    engine, workers = open_engine(disk, replace(CONFIG, group_bytes=4096))
    stored: dict[tuple[int, int], bytes] = {}
    at = {1: 0, 2: 0}
    for _ in range(40):
        ledger_id, kind = rng.choice((1, 2)), rng.randrange(8)
        first = at[ledger_id] + rng.choice((0, 0, 0, 1, 3))
        ids = list(range(first, first + rng.randrange(1, 5)))
        if kind == 0:
            ids = ids[::2]
        size = rng.choice((9, 60, 1500))
        adds = make_adds(ledger_id, ids, size=size)
        engine.append(adds.runs[0], adds)
        stored.update({(ledger_id, entry_id): make_entry(ledger_id, entry_id, size=size) for entry_id in ids})
        at[ledger_id] = ids[-1] + 1
        if kind in (1, 2):
            engine.when_durable(lambda error: None)
            workers.pump()
        elif kind == 3:
            engine.checkpoint(lambda error: None)
            for _ in range(rng.randrange(4)):
                workers.step()
    for ledger_id, end in at.items():
        for first in range(end):
            run: list[bytes] = []
            while (entry := stored.get((ledger_id, first + len(run)))) is not None:
                run.append(entry)
            if not run:
                with pytest.raises(NoSuchEntryError):
                    read_batch(engine, workers, ledger_id, first)
                continue
            assert read(engine, workers, ledger_id, first) == run[0]
            got = read_batch(engine, workers, ledger_id, first)
            assert got == run[: len(got)] and got
            assert read_batch(engine, workers, ledger_id, first, count=2) == run[: min(2, len(got))]
        here = [AvailabilityRun(EntryId(first), count) for first, count in runs_of(stored, ledger_id)]
        assert list(engine.entries(lid(ledger_id))) == here


def runs_of(stored: dict[tuple[int, int], bytes], ledger_id: int) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for entry_id in sorted(entry_id for owner, entry_id in stored if owner == ledger_id):
        if runs and entry_id == sum(runs[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((entry_id, 1))
    return runs


def test_a_batch_from_memory_holds_its_last_entry_whole_however_large_it_is(disk: RecordingDisk) -> None:
    """The reader guesses the size of the last entry from those before it."""
    engine, workers = open_engine(disk, ROOMY)
    for entry_id in range(3):
        add(engine, 2, entry_id, size=60)
    assert len(read_batch(engine, workers, 2, 0)) == 3, "from now on small entries are expected"
    entries = [add(engine, 2, 3, size=60), add(engine, 2, 4, size=20_000), add(engine, 3, 0, size=60)]
    assert read_batch(engine, workers, 2, 3) == entries[:2]


@pytest.mark.parametrize("stage", ["memory", "log", "index", "cold"])
def test_a_batch_has_at_least_one_entry_and_no_more_bytes_than_asked_for(disk: RecordingDisk, stage: str) -> None:
    engine, workers = open_engine(disk, ROOMY)
    entries = [add(engine, 1, entry_id, size=1000) for entry_id in range(20)]
    if stage != "memory":
        settle(engine, workers, checkpoint=stage != "log")
    disk.cached = stage != "cold"
    one = 4 + len(entries[0])
    for size, count in ((0, 1), (1, 1), (one, 1), (2 * one - 1, 1), (2 * one, 2), (7 * one, 7), (1 << 20, 20)):
        assert read_batch(engine, workers, 1, 0, size=size) == entries[:count]
    for _ in range(2):
        assert read_batch(engine, workers, 1, 18, size=1 << 20) == entries[18:]
    with pytest.raises(NoSuchEntryError):
        read_batch(engine, workers, 1, 20)


def test_a_batch_goes_on_from_log_to_log(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    entries = []
    for entry_id in range(30):
        entries.append(add(engine, 1, entry_id, size=1000))
        settle(engine, workers)
    assert len(log_paths(disk)) > 3
    for cached in (True, False):
        disk.cached = cached
        assert read_batch(engine, workers, 1, 0) == entries
        one = 4 + len(entries[0])
        for count in range(1, 30):
            assert read_batch(engine, workers, 1, 0, size=(count + 1) * one - 1) == entries[:count]


def test_entries_of_other_ledgers_between_them_do_not_come_along(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, ROOMY)
    for entry_id in range(30):
        for ledger_id in (1, 2, 3):
            add(engine, ledger_id, entry_id)
    settle(engine, workers)
    for ledger_id in (1, 2, 3):
        assert read_batch(engine, workers, ledger_id, 0) == [make_entry(ledger_id, at) for at in range(30)]


# -- guesses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("cached", [True, False])
def test_after_a_large_entry_the_next_one_is_read_in_one_piece(disk: RecordingDisk, cached: bool, batch: bool) -> None:
    engine, workers = open_engine(disk, ROOMY)
    entries = [add(engine, 1, entry_id, size=20_000) for entry_id in range(3)]
    settle(engine, workers, checkpoint=True)
    engine, workers = open_engine(disk, ROOMY)
    disk.cached = cached
    pieces: list[int] = []

    def log_read(file: RecordingFile, size: int, offset: int, whole: Pread = RecordingFile.pread) -> bytes:
        if file.path.endswith(".log"):
            pieces.append(size)
        return whole(file, size, offset)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordingFile, "pread", log_read)
        for entry_id in range(3):
            pieces.clear()
            if batch:
                assert read_batch(engine, workers, 1, entry_id, count=1) == [entries[entry_id]]
            else:
                assert read(engine, workers, 1, entry_id) == entries[entry_id]
            if entry_id:
                assert len(pieces) == 1


def test_a_stretch_of_bytes_that_are_in_no_log_yet_is_read_from_where_it_begins() -> None:
    records = [record(make_entry(1, entry)) for entry in range(4)]
    source = b"before" + b"".join(records)
    offsets = array("q", [len(records[0]), len(records[0]) + len(records[1])])
    stretch = _Stretch(source, len(b"before"), len(source) - len(b"before"), 1, offsets, "the group", 0)

    def unread(file: File, size: int, offset: int) -> bytes:
        raise AssertionError("nothing of it is in a file")

    packed = fetch_batch([stretch], 1, 1 << 20, unread)
    assert packed.count == 2 and make_entry(1, 1) in packed.body and make_entry(1, 2) in packed.body
    assert make_entry(1, 0) not in packed.body and make_entry(1, 3) not in packed.body
