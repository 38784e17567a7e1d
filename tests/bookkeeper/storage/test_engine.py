"""The engine as a whole: from an add to its entry log, over checkpoints, full disks, stops and starts."""

from __future__ import annotations

import errno
from dataclasses import replace
from random import Random

import pytest

from bookkeeper.errors import (
    BookieFailedError,
    DataUnknownError,
    DirectoryLockedError,
    DiskFullError,
    LedgerFencedError,
    NoSuchEntryError,
    NoSuchLedgerError,
    UnsupportedFormatError,
)
from bookkeeper.ids import EntryId
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.index.entry_index import PageCache
from bookkeeper.testing.world import SimDisk
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    add,
    close,
    everything,
    lid,
    make_entry,
    open_engine,
    read,
    read_batch,
)

Answers = list[BaseException | None]


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def state(engine: Engine) -> str:
    return engine.state.value


def test_an_entry_is_readable_at_once_and_durable_later(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    entry = add(engine, 1, 0)
    assert read(engine, workers, 1, 0) == entry
    assert read(engine, workers, 1, -1) == entry
    answers: Answers = []
    engine.when_durable(answers.append)
    assert answers == [], "not before the sync (B1)"
    assert engine.journal_bytes_in_flight > 0
    workers.pump()
    assert answers == [None] and engine.journal_bytes_in_flight == 0
    assert read(engine, workers, 1, 0) == entry


@pytest.mark.rule("K7", "B1")
def test_no_answer_before_the_sync_that_covers_it(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    order: list[str] = []
    add(engine, 1, 0)
    engine.when_durable(lambda error: order.append("first"))
    add(engine, 1, 1)
    engine.when_durable(lambda error: order.append("second"))
    before = len(disk.ops)
    workers.step()
    assert order == ["first"], "the second is in the next group"
    assert ("sync", True) in [(op.kind, "journal" in op.path) for op in disk.ops[before:]]
    workers.pump()
    assert order == ["first", "second"]


def test_while_one_group_is_written_the_next_collects(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    answers: Answers = []
    for entry_id in range(20):
        add(engine, 1, entry_id)
        engine.when_durable(answers.append)
    workers.pump()
    assert answers == [None] * 20
    assert engine.stats.groups == 2
    assert engine.stats.records == 21, "20 entries and the ledger's key"


def test_nothing_pending_answers_at_once(disk: RecordingDisk) -> None:
    engine, _ = open_engine(disk)
    answers: Answers = []
    engine.when_durable(answers.append)
    engine.force(lid(1), answers.append)
    assert answers == [None, None]


@pytest.mark.rule("B11")
def test_one_process_per_directory(disk: RecordingDisk) -> None:
    open_engine(disk)
    with pytest.raises(DirectoryLockedError, match="/ledgers is in use"):
        Engine.open(CONFIG, disk, QueueWorkers())


@pytest.mark.rule("K22")
def test_a_clean_stop_is_told_from_a_crash(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    assert engine.report.fresh and engine.report.clean
    assert disk.exists("/ledgers/dirty") and disk.exists("/journal/dirty")
    add(engine, 1, 0)
    answers: Answers = []
    engine.close(answers.append)
    assert not disk.ops[-1].path.endswith("dirty")
    with pytest.raises(BookieFailedError):
        add(engine, 1, 1)
    workers.pump()
    assert answers == [None] and engine.state is EngineState.CLOSED and not disk.locks
    assert not disk.exists("/ledgers/dirty") and not disk.exists("/journal/dirty")
    engine, workers = open_engine(disk)
    assert engine.report.clean and not engine.report.fresh and not engine.report.replayed_records
    assert read(engine, workers, 1, 0) == make_entry(1, 0)
    engine, workers = open_engine(disk)
    assert not engine.report.clean


@pytest.mark.rule("P3")
def test_a_close_waits_for_what_workers_have_in_hand(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    durable: Answers = []
    ended: Answers = []
    add(engine, 1, 0)
    engine.when_durable(durable.append)
    engine.close(ended.append)
    assert workers.jobs and not ended and disk.locks, "a worker has the group"
    workers.pump()
    assert durable == ended == [None] and engine.state is EngineState.CLOSED and not disk.locks
    engine, workers = open_engine(disk)
    assert engine.report.clean and read(engine, workers, 1, 0) == make_entry(1, 0)


@pytest.mark.rule("K23")
def test_a_failed_sync_of_an_entry_log_is_final_too(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    entry = add(engine, 1, 0)
    engine.when_durable(lambda error: None)
    workers.pump()
    disk.faults["sync", ".log"] = OSError(errno.ENOSPC, "no space: still final")
    answers: Answers = []
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[0] is not None and engine.state is EngineState.FAILED
    disk.faults.clear()
    engine, workers = open_engine(disk)
    assert read(engine, workers, 1, 0) == entry, "the journal has it (K16)"


@pytest.mark.rule("K26", "B10", "V8")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_refuses_adds_and_keeps_fences_going(disk: RecordingDisk, number: int) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, reserve_bytes=65536))
    assert disk.exists("/ledgers/reserve") and state(engine) == "writable"
    answers: Answers = []
    entry = add(engine, 1, 0)
    engine.when_durable(answers.append)
    full = OSError(number, "no space")
    disk.faults["write", ".log"] = full
    original = disk.unlink

    def freeing(path: str) -> None:
        original(path)
        if path.endswith("reserve"):
            disk.faults.clear()

    disk.unlink = freeing  # type: ignore[method-assign]
    disk.free = 10
    workers.pump()
    assert answers == [None], "the reserve was given up for it"
    assert state(engine) == "read-only" and not disk.exists("/ledgers/reserve")
    with pytest.raises(DiskFullError):
        add(engine, 1, 1)
    assert read(engine, workers, 1, 0) == entry
    engine.append_entry(lid(1), KEY, make_entry(1, 1), recovery=True)
    engine.fence(lid(1), KEY, answers.append)
    workers.pump()
    assert answers == [None, None]
    engine, workers = open_engine(disk, replace(CONFIG, reserve_bytes=65536))
    assert state(engine) == "read-only", "also across a restart"
    disk.free = 1 << 30
    engine.check_space()
    workers.pump()
    assert state(engine) == "writable" and disk.exists("/ledgers/reserve")
    add(engine, 2, 0)


@pytest.mark.rule("K26", "K5")
def test_a_new_entry_log_whose_first_records_found_no_space_is_used_and_synced_by_its_own_file(
    disk: RecordingDisk,
) -> None:
    engine, workers = open_engine(disk)
    before, writes = disk.before, 0

    def full_behind_the_header(call: str, path: str) -> None:
        nonlocal writes
        if call == "write" and path.endswith(".log"):
            writes += 1
            if writes == 2:
                raise OSError(errno.ENOSPC, "no space")
        before(call, path)

    disk.before = full_behind_the_header  # type: ignore[method-assign]
    answers: Answers = []
    add(engine, 1, 0)
    engine.when_durable(answers.append)
    workers.pump()
    assert answers == [None] and engine.state is EngineState.READ_ONLY
    engine.check_space()
    workers.pump()
    engine.checkpoint(answers.append)
    workers.pump()
    assert read(engine, workers, 1, 0) == make_entry(1, 0)
    engine.close(answers.append)
    workers.pump()
    assert answers[1:] == [None, None] and state(engine) == "closed"


@pytest.mark.rule("K26", "V8", "K11")
def test_a_full_disk_starts_read_only_on_its_reserve(disk: RecordingDisk) -> None:
    config = replace(CONFIG, reserve_bytes=65536, journal_spares=0)
    engine, workers = open_engine(disk, config)
    entry = add(engine, 1, 0)
    engine.when_durable(lambda error: None)
    workers.pump()
    disk.faults["write", ".spare"] = OSError(errno.ENOSPC, "no space")
    original = disk.unlink

    def freeing(path: str) -> None:
        original(path)
        if path.endswith("reserve"):
            disk.faults.clear()

    disk.unlink = freeing  # type: ignore[method-assign]
    disk.free = 10
    engine, workers = open_engine(disk, config)
    assert state(engine) == "read-only"
    assert read(engine, workers, 1, 0) == entry


@pytest.mark.rule("K26", "V8", "K11")
def test_a_disk_that_is_full_after_its_reserve_was_used_starts_with_the_room_of_its_spares() -> None:
    config, disk = replace(CONFIG, reserve_bytes=8192, journal_spares=3), SimDisk(Random(1))
    workers = QueueWorkers()
    engine = Engine.open(config, disk, workers)
    for at in range(60):
        add(engine, 1, at, size=900)
        engine.when_durable(lambda error: None)
        workers.pump()
    engine.checkpoint(lambda error: None)
    workers.pump()
    entries = [add(engine, 2, at, size=900) for at in range(6)]
    engine.when_durable(lambda error: None)
    workers.pump()
    disk.unlink("/ledgers/reserve")
    disk.capacity = disk.used()
    disk.process_died()
    spares = [path for path in disk.files() if path.endswith(".spare")]
    assert len(spares) >= 2
    workers = QueueWorkers()
    engine = Engine.open(config, disk, workers)
    assert state(engine) == "read-only"
    assert [read(engine, workers, 2, at) for at in range(6)] == entries


@pytest.mark.rule("K16")
def test_a_checkpoint_without_space_loses_nothing(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    entries = [add(engine, 1, entry_id) for entry_id in range(4)]
    disk.faults["write", ".index"] = OSError(errno.ENOSPC, "no space")
    answers: Answers = []
    engine.checkpoint(answers.append)
    workers.pump()
    assert [type(answer) for answer in answers] == [DiskFullError]
    assert read_batch(engine, workers, 1, 0) == entries
    disk.faults.clear()
    engine.check_space()
    entries.append(add(engine, 1, 4))
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[1:] == [None]
    assert read_batch(engine, workers, 1, 0) == entries
    engine, workers = open_engine(disk)
    assert read_batch(engine, workers, 1, 0) == entries


@pytest.mark.rule("K16", "K28")
@pytest.mark.parametrize("fault", [("unlink", ".index"), ("sync_directory", "/journal")])
def test_what_cannot_be_removed_for_now_behind_a_new_manifest_stops_nobody(
    disk: RecordingDisk, fault: tuple[str, str]
) -> None:
    engine, workers = open_engine(disk)
    answers: Answers = []
    entries = []
    before, calls = disk.before, 0

    def every_second_fails(call: str, path: str) -> None:
        nonlocal calls
        if call == fault[0] and fault[1] in path:
            calls += 1
            if calls % 2 == 0:
                raise OSError(errno.EMFILE, "no descriptor")
        before(call, path)

    disk.before = every_second_fails  # type: ignore[method-assign]
    for entry_id in range(12):  # index segments get merged, journal files passed
        entries.append(add(engine, 1, entry_id, size=3000))
        engine.checkpoint(answers.append)
        workers.pump()
    assert calls > 3 and engine.state is EngineState.WRITABLE
    disk.before = before  # type: ignore[method-assign]
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[-1] is None
    assert read_batch(engine, workers, 1, 0) == entries
    engine, workers = open_engine(disk)
    assert engine.report.limbo_reason is None and not engine.report.rebuilt
    assert read_batch(engine, workers, 1, 0) == entries


@pytest.mark.rule("K3", "K2")
def test_a_checkpoint_that_is_tried_again_leaves_alone_what_the_manifest_on_disk_may_name(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    answers: Answers = []
    entries = [add(engine, 1, entry_id) for entry_id in range(4)]
    synced = disk.sync_directory

    def fails_behind_the_rename(path: str) -> None:
        if path == "/ledgers" and disk.ops[-1].kind == "rename":
            raise OSError(errno.EMFILE, "no descriptor")
        synced(path)

    disk.sync_directory = fails_behind_the_rename  # type: ignore[method-assign]
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[0] is not None
    named = [name for name in disk.files() if name.endswith(".index")]
    assert named
    disk.sync_directory = synced  # type: ignore[method-assign]
    before = len(disk.ops)
    entries.append(add(engine, 1, 4))
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[1:] == [None]
    assert not [op for op in disk.ops[before:] if op.kind in ("unlink", "write") and op.path in named]
    engine, workers = open_engine(disk)
    assert read_batch(engine, workers, 1, 0) == entries


@pytest.mark.rule("G1", "B3")
def test_collecting_drops_ledgers_and_removes_their_logs(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    for entry_id in range(6):
        add(engine, 1, entry_id, size=1000)
        engine.when_durable(lambda error: None)
        workers.pump()
    add(engine, 2, 0, size=6000)
    add(engine, 2, 1, size=6000)
    engine.when_durable(lambda error: None)
    workers.pump()
    answers: Answers = []
    engine.collect([lid(1)], answers.append)
    assert isinstance(read(engine, workers, 1, 0), NoSuchLedgerError)
    engine.collect(lambda ledger_id: False, answers.append)
    workers.pump()
    assert answers == [None, None]
    assert engine.stats.removed_logs == 1 and not disk.exists("/ledgers/000001.log")
    assert 6000 < engine.stats.removed_bytes < 12_000, "the six entries of ledger 1, and nothing of ledger 2"
    for _ in range(2):
        with pytest.raises(LedgerFencedError):
            add(engine, 1, 6)
        with pytest.raises(LedgerFencedError):
            engine.append_entry(lid(1), KEY, make_entry(1, 6), recovery=True)
        assert engine.is_fenced(lid(1)) and list(engine.ledgers()) == [2]
        engine.fence(lid(1), KEY, answers.append)
        assert read(engine, workers, 2, 1) == make_entry(2, 1, size=6000)
        engine, workers = open_engine(disk)


def test_segments_are_merged_and_nothing_is_lost(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    wanted = {}
    for round_number in range(12):
        for ledger_id in (1, 2, 3):
            for at in range(7):
                entry_id = round_number * 7 + at if ledger_id != 3 else round_number * 3 + at * 40
                wanted[ledger_id, entry_id] = add(engine, ledger_id, entry_id, lac=0)
        engine.checkpoint(lambda error: None)
        workers.pump()
    assert engine.stats.merges >= 2
    assert len([name for name in disk.list("/ledgers") if name.endswith(".index")]) <= CONFIG.index_segments
    for _ in range(2):
        for key, entry in wanted.items():
            assert read(engine, workers, *key) == entry
        assert {key: len(found[0]) for key, found in everything(engine, workers).items()} == {
            ledger_id: len([key for key in wanted if key[0] == ledger_id]) for ledger_id in (1, 2, 3)
        }
        engine, workers = open_engine(disk)


def test_journal_files_are_recycled_and_their_number_is_bounded(disk: RecordingDisk) -> None:
    config = replace(CONFIG, checkpoint_bytes=20000)
    engine, workers = open_engine(disk, config)
    for entry_id in range(200):
        add(engine, 1, entry_id, size=1000)
        engine.when_durable(lambda error: None)
        workers.pump()
    assert engine.stats.checkpoints >= 5
    assert len(disk.list("/journal")) <= 10
    engine, workers = open_engine(disk, config)
    for entry_id in range(200):
        assert read(engine, workers, 1, entry_id) == make_entry(1, entry_id, size=1000)


@pytest.mark.rule("K9")
def test_files_of_another_version_are_refused_with_a_sentence(disk: RecordingDisk) -> None:
    from bookkeeper.storage.base.durable_file import stamp

    close(*open_engine(disk))
    files = disk.files()
    files["/ledgers/manifest"] = stamp(b"BKMF", 2, b"{}")
    with pytest.raises(UnsupportedFormatError, match="is of version 2; this program reads version 1"):
        open_engine(RecordingDisk(files))


def test_a_gap_between_syncs_collects_more(disk: RecordingDisk) -> None:
    now = [0.0]
    timers = []
    workers = QueueWorkers()
    engine = Engine.open(
        replace(CONFIG, journal_gap_ms=10.0),
        disk,
        workers,
        monotonic=lambda: now[0],
        call_later=lambda delay, call: timers.append((delay, call)),
    )
    now[0] = 1.0
    answers: Answers = []
    add(engine, 1, 0)
    engine.when_durable(answers.append)
    workers.pump()
    assert answers == [None]
    now[0] = 1.002
    for entry_id in (1, 2, 3):
        add(engine, 1, entry_id)
        engine.when_durable(answers.append)
    workers.pump()
    assert answers == [None] and len(timers) == 1 and timers[0][0] == pytest.approx(0.008)
    now[0] = 1.010
    timers[0][1]()
    workers.pump()
    assert answers == [None] * 4 and engine.stats.groups == 2


@pytest.mark.rule("B5", "B3", "K18")
def test_a_missing_journal_file_is_limbo_not_an_end(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    engine.checkpoint(lambda error: None)
    workers.pump()
    for entry_id in range(1, 12):
        add(engine, 1, entry_id, size=3000)
        engine.when_durable(lambda error: None)
        workers.pump()
    files = disk.files()
    names = sorted(name for name in files if name.endswith(".journal"))
    assert len(names) >= 3
    for missing in names[:-1]:
        kept = {name: data for name, data in files.items() if name != missing}
        engine, workers = open_engine(broken := RecordingDisk(kept))
        assert engine.report.limbo_reason is not None
        assert isinstance(read(engine, workers, 5, 0), DataUnknownError)
        assert isinstance(read(engine, workers, 1, 99), DataUnknownError)
        assert engine.is_fenced(lid(1)) and engine.is_fenced(lid(5))
        with pytest.raises(LedgerFencedError):
            add(engine, 5, 0)
        with pytest.raises(DataUnknownError):
            engine.entries(lid(1))
        engine, workers = open_engine(broken)
        assert engine.report.limbo_reason is not None, "it does not pass by itself"
        engine.end_limbo(lid(5))
        add(engine, 5, 0)
        engine.end_limbo()
        assert isinstance(read(engine, workers, 1, 99), NoSuchEntryError)
        engine.checkpoint(lambda error: None)
        workers.pump()
        assert open_engine(broken)[0].report.limbo_reason is None


@pytest.mark.rule("L1", "K3")
def test_merged_segments_can_be_read_until_the_loop_knows_the_new_one(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    wanted = {entry_id: add(engine, 1, entry_id) for entry_id in range(5)}
    engine.checkpoint(lambda error: None)
    workers.pump()
    while engine.stats.merges < 2:
        entry_id = len(wanted)
        wanted[entry_id] = add(engine, 1, entry_id)
        engine.checkpoint(lambda error: None)
        while workers.jobs:
            name, job, done = workers.jobs.pop(0)
            result = job()
            if name == "checkpoint":  # the worker has done its part, the loop has not heard of it yet
                engine._reader.places.pages = PageCache(1)
                engine._reader.places.segments.clear()
                answers: list[bytes | BaseException] = []
                for entry_id in wanted:
                    engine.read(lid(1), EntryId(entry_id), answers.append)
                assert answers == list(wanted.values())
            done(result, None)
    assert len([name for name in disk.list("/ledgers") if name.endswith(".index")]) <= CONFIG.index_segments


@pytest.mark.rule("K23", "K26")
def test_a_start_that_fails_for_another_reason_than_space_is_not_tried_again_behind_ones_back() -> None:
    class Once(RecordingDisk):
        failed = False

        def before(self, call: str, path: str) -> None:
            if not self.failed and call == "open" and path.endswith("/dirty"):
                self.failed = True
                raise OSError(errno.EIO, "bad sector", path)

    with pytest.raises(OSError, match="bad sector"):
        open_engine(Once())
