"""A bookie's disk with a log per ledger: what is written when, few descriptors, no space, and both layouts in turn."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bookkeeper.errors import DiskFullError
from bookkeeper.ids import EntryId
from bookkeeper.seams import File
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.base.manifest import Manifest, read_manifest
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.entry_log.entry_log_file import read_map
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind, state_record
from bookkeeper.storage.journal.pending_group import GroupBuffer
from bookkeeper.storage.ledger_logs.ledger_log_layout import FINISH_WITHIN_S, LedgerGroup, LedgerLogLayout
from bookkeeper.storage.ledger_logs.ledger_logs import GroupPart, LedgerLogs
from bookkeeper.storage.ledger_logs.log_writes import LogWrites
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    add,
    close,
    everything,
    lid,
    make_adds,
    make_entry,
    open_engine,
    read,
    read_batch,
)


def logs_of(ended: list[int] | None = None) -> LedgerLogs:
    ids = count(1)
    told = ended if ended is not None else []
    return LedgerLogs(
        lambda shared: next(ids), told.append, log_bytes=1 << 20, buffer_bytes=1 << 20, open_max=9, idle_s=0
    )


def add_run(group: LedgerGroup, ledger_id: int, ids: list[int]) -> list[int]:
    adds = make_adds(ledger_id, ids)
    return list(group.add_run(ledger_id, adds.records, 0, adds.record_ends, 0, len(ids)))


class _Descriptor:
    closed = False

    def close(self) -> None:
        self.closed = True


def bare_layout(workers: QueueWorkers, written: dict[int, _Descriptor]) -> LedgerLogLayout:
    """A layout whose other logs, which no ledger writes, have these descriptors."""
    entry_logs = SimpleNamespace(logs={log_id: SimpleNamespace(file=file) for log_id, file in written.items()})
    got = SimpleNamespace(get=workers.worker)
    nothing = cast(Any, None)
    return LedgerLogLayout(
        logs_of(), nothing, cast(Any, entry_logs), cast(Any, got), lambda: 0.0, lambda error: False, nothing
    )


@pytest.mark.rule("K13", "G3")
def test_a_checkpoint_syncs_what_a_compaction_has_written() -> None:
    """No ledger writes into that log, so no machine knows that it has unsynced bytes."""
    files = {7: _Descriptor(), 8: _Descriptor()}
    unsynced: dict[int, Any] = dict(bare_layout(QueueWorkers(), files).unsynced({8: BLOCK}))
    assert unsynced == {8: files[8]}


@pytest.mark.rule("P3")
def test_a_descriptor_is_closed_behind_every_worker_that_may_have_it_in_hand() -> None:
    workers, file = QueueWorkers(), _Descriptor()
    bare_layout(workers, {}).close([cast(Any, file)])
    passed = []
    while workers.jobs:
        assert not file.closed
        passed.append(workers.jobs[0][0])
        workers.step()
    assert file.closed and passed == ["log", "checkpoint", "read"]


def test_records_are_in_the_group_as_they_came_and_have_places_in_the_logs_of_their_ledgers() -> None:
    logs = logs_of()
    group = LedgerGroup(GroupBuffer(1 << 16), logs)
    size = len(make_adds(7, [0]).records)
    first, other, second = add_run(group, 7, [0, 1]), add_run(group, 8, [0]), add_run(group, 7, [2])
    assert first + second == [place(1, BLOCK + size * at) for at in range(3)]
    assert other == [place(2, BLOCK)]
    data = bytes(make_adds(7, [0, 1]).records) + bytes(make_adds(8, [0]).records) + bytes(make_adds(7, [2]).records)
    assert bytes(group.data) == data and group.records == 4
    assert group.parts == {
        1: GroupPart(BLOCK + 3 * size, {7: [3 * size, 3]}),
        2: GroupPart(BLOCK + size, {8: [size, 1]}),
    }
    memory = logs.holding(first[1])
    assert memory is not None and memory.record_from(BLOCK + size) == bytes(make_adds(7, [1]).records)


def test_what_outlives_its_ledger_goes_to_a_shared_log_and_ends_the_ledgers() -> None:
    ended: list[int] = []
    logs = logs_of(ended)
    group = LedgerGroup(GroupBuffer(1 << 16), logs)
    key = group.add_record(7, state_record(7, StateRecordKind.KEY, b"key"))
    gone = [group.add_record(at, state_record(at, StateRecordKind.DROPPED), outlives=True) for at in (7, 8)]
    assert key == place(1, BLOCK) and [each >> 40 for each in gone] == [2, 2]
    assert ended == [1] and list(group.parts[2].usage) == [7, 8]


def test_groups_follow_one_another_and_none_holds_what_the_logs_hold() -> None:
    logs = logs_of()
    before, after = (LedgerGroup(GroupBuffer(1 << 16), logs) for _ in range(2))
    (at,) = add_run(before, 7, [0])
    add_run(before, 8, [0])
    add_run(after, 7, [1])
    assert after.follows(before) and not before.follows(after)
    assert not before.holds(at >> 40, at % 2**40)


def test_a_run_may_begin_behind_others_of_the_same_bytes() -> None:
    logs = logs_of()
    group, adds = LedgerGroup(GroupBuffer(1 << 16), logs), make_adds(7, [0, 1, 2])
    begin = adds.record_ends[0]
    places = list(group.add_run(7, adds.records, begin, adds.record_ends, 1, 3))
    assert places == [place(1, BLOCK), place(1, BLOCK + adds.record_ends[1] - begin)]
    assert bytes(group.data) == bytes(adds.records)[begin:]
    size = adds.record_ends[2] - begin
    assert group.parts == {1: GroupPart(BLOCK + size, {7: [size, 2]})}


ROOMY = replace(
    CONFIG,
    entry_log_per_ledger=True,
    ledger_buffer_bytes=1 << 20,
    entry_log_bytes=1 << 20,
    journal_file_bytes=1 << 20,
    group_bytes=1 << 16,
    inflight_bytes=1 << 20,
    log_idle_s=60.0,
)
SMALL = replace(ROOMY, ledger_buffer_bytes=4096)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def layout_of(engine: Engine) -> LedgerLogLayout:
    assert isinstance(engine._layout, LedgerLogLayout)
    engine._layout.logs.validate_state()
    return engine._layout


def settle(engine: Engine, workers: QueueWorkers) -> None:
    answers: list[BaseException | None] = []
    engine.when_durable(answers.append)
    workers.pump()
    assert answers == [None]


def done(workers: QueueWorkers, act: Callable[[Callable[[BaseException | None], None]], None]) -> None:
    answers: list[BaseException | None] = []
    act(answers.append)
    workers.pump()
    assert answers == [None]


def collect(engine: Engine, workers: QueueWorkers, *ledgers: int) -> None:
    done(workers, lambda callback: engine.collect(set(map(lid, ledgers)), callback))


def logs(disk: RecordingDisk) -> list[str]:
    return sorted(name for name in disk.files() if name.endswith(".log"))


def log_ops(disk: RecordingDisk, kind: str) -> list[tuple[str, int, int]]:
    return [(op.path[-10:-4], op.offset, len(op.data)) for op in disk.ops if op.kind == kind and ".log" in op.path]


def manifest_of(disk: RecordingDisk) -> Manifest:
    found = read_manifest(disk, "/ledgers")
    assert found is not None
    return found


def at_hand(engine: Engine, ledger: int, entry_id: int) -> object:
    got: list[object] = []
    engine.read(lid(ledger), EntryId(entry_id), got.append)
    return got[0] if got else None


@pytest.mark.rule("B1", "K33", "K34")
def test_entries_are_acknowledged_by_the_journal_read_from_memory_and_written_late_in_one_piece(
    disk: RecordingDisk,
) -> None:
    engine, workers = open_engine(disk, ROOMY)
    for entry_id in range(5):
        for ledger in (1, 2):
            add(engine, ledger, entry_id)
        settle(engine, workers)
    assert log_ops(disk, "write") == [], "nothing is in a log"
    assert all(at_hand(engine, ledger, at) == make_entry(ledger, at) for ledger in (1, 2) for at in range(5))
    assert read_batch(engine, workers, 1, 1) == [make_entry(1, at) for at in range(1, 5)]
    done(workers, engine.checkpoint)
    assert [path for path, _, _ in log_ops(disk, "write")] == ["000001", "000002"], "one write a log"
    assert [path for path, _, _ in log_ops(disk, "sync")] == ["000001", "000002"]
    assert layout_of(engine).logs.buffered == 0
    assert read_batch(engine, workers, 2, 0) == [make_entry(2, at) for at in range(5)]
    assert engine.journal_bytes_in_flight == 0


def test_a_checkpoint_syncs_only_logs_with_new_bytes(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, ROOMY)
    for ledger in range(1, 6):
        add(engine, ledger, 0)
    done(workers, engine.checkpoint)
    begin = len(log_ops(disk, "sync"))
    add(engine, 3, 1)
    done(workers, engine.checkpoint)
    assert [path for path, _, _ in log_ops(disk, "sync")[begin:]] == ["000003"]
    begin = len(log_ops(disk, "sync"))
    done(workers, engine.checkpoint)
    assert log_ops(disk, "sync")[begin:] == []


@pytest.mark.rule("K13", "K16")
def test_the_journal_stays_until_the_logs_have_what_it_holds(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, ROOMY)
    add(engine, 1, 0)
    settle(engine, workers)
    answers: list[BaseException | None] = []
    before = manifest_of(disk).sequence
    disk.faults["write", ".log"] = OSError(errno.EMFILE, "for now")
    engine.checkpoint(answers.append)
    workers.pump()
    assert isinstance(answers[0], OSError) and manifest_of(disk).sequence == before
    disk.faults.clear()
    assert at_hand(engine, 1, 0) == make_entry(1, 0)
    done(workers, engine.checkpoint)
    assert manifest_of(disk).sequence > before


@pytest.mark.rule("K13")
def test_a_checkpoint_waits_for_what_is_being_written(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, SMALL)
    add(engine, 1, 0, size=3000)
    engine.when_durable(lambda error: None)
    while not layout_of(engine).logs.writing:
        assert workers.step()
    assert not layout_of(engine).logs.writable
    done(workers, engine.checkpoint)
    assert manifest_of(disk).logs[1].end == len(disk.files()["/ledgers/000001.log"])


@pytest.mark.rule("K13")
@pytest.mark.parametrize("fails", [False, True])
def test_who_asks_during_a_write_waits_for_the_next_one_unless_this_one_fails(disk: RecordingDisk, fails: bool) -> None:
    """What came while the first write was on its way is in the second one."""
    engine, workers = open_engine(disk, SMALL)
    layout, answers = layout_of(engine), list[BaseException | None]()

    def step(name: str) -> None:
        at = [who for who, _, _ in workers.jobs].index(name)
        workers.jobs.insert(0, workers.jobs.pop(at))
        assert workers.step()

    for entry_id, size in ((0, 3000), (1, 100)):
        add(engine, 1, entry_id, size=size)
        engine.when_durable(lambda error: None)
        step("journal")
    assert layout.logs.writing and layout.logs.writable
    layout.write_out(answers.append)
    if fails:
        disk.faults["write", ".log"] = OSError(errno.EIO, "broken")
    step("log")
    if fails:
        assert len(answers) == 1 and answers[0] is not None and "broken" in str(answers[0])
        return
    assert answers == [] and layout.logs.writing
    workers.pump()
    assert answers == [None] and not layout.logs.writable


@pytest.mark.rule("P12")
def test_when_the_buffer_is_full_the_journal_waits_and_goes_on(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, SMALL)
    answers: list[object] = []

    def one(entry_id: int) -> None:
        add(engine, 1, entry_id, size=3000)
        engine.when_durable(lambda error: answers.append(error or entry_id))

    def step(name: str) -> bool:
        names = [who for who, _, _ in workers.jobs]
        if name not in names:
            return False
        workers.jobs.insert(0, workers.jobs.pop(names.index(name)))
        return workers.step()

    for entry_id in range(6):
        one(entry_id)
        while step("journal"):
            pass
    assert answers == [0, 1, 2, 3], "one is being written, one fills the buffer, two are durable and wait"
    assert layout_of(engine).logs.buffered >= 2 * 3000
    workers.pump()
    assert answers == list(range(6)) and engine.journal_bytes_in_flight == 0
    assert read_batch(engine, workers, 1, 0) == [make_entry(1, at, size=3000) for at in range(6)]


@pytest.mark.rule("K5", "K28")
def test_few_descriptors_are_enough_for_many_ledgers(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(SMALL, open_logs_max=2))
    for entry_id in range(8):
        for ledger in range(1, 41):
            add(engine, ledger, entry_id, size=200)
        settle(engine, workers)
        assert len([path for path in disk.left_open if path.endswith(".log")]) <= 2 + 10 * 2
    for ledger in range(1, 41):
        assert read_batch(engine, workers, ledger, 0) == [make_entry(ledger, at, size=200) for at in range(8)]
    done(workers, engine.checkpoint)
    assert len(logs(disk)) == 40, "a log goes on after its descriptor was closed"
    done(workers, engine.close)
    assert disk.left_open == []
    again, workers = open_engine(disk, replace(SMALL, open_logs_max=2))
    assert again.report.clean and len([path for path in disk.left_open if path.endswith(".log")]) <= 2 + 10 * 2
    for ledger in range(1, 41):
        assert read_batch(again, workers, ledger, 0) == [make_entry(ledger, at, size=200) for at in range(8)]


def test_a_log_of_full_size_is_finished_and_the_ledger_goes_on_in_another(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(ROOMY, entry_log_bytes=8192))
    for entry_id in range(11):
        add(engine, 1, entry_id, size=900)
        add(engine, 2, entry_id)
    done(workers, engine.checkpoint)
    found = manifest_of(disk).logs
    assert [log.finished for log in found.values()] == [True, False, True, False]
    end, usage = read_map(disk.open(logs(disk)[0], write=False), 1)
    assert end == found[1].end and usage == found[1].usage == {1: found[1].usage[1]}
    assert read_batch(engine, workers, 1, 0) == [make_entry(1, at, size=900) for at in range(11)]


@pytest.mark.rule("G1", "K3")
def test_the_log_of_a_deleted_ledger_goes_without_a_copy_a_sync_or_a_map(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, ROOMY)
    for entry_id in range(5):
        for ledger in (1, 2, 3):
            add(engine, ledger, entry_id)
    done(workers, engine.checkpoint)
    add(engine, 1, 5)
    begin = len(log_ops(disk, "sync"))
    collect(engine, workers, 1, 3)
    assert logs(disk) == ["/ledgers/000002.log", "/ledgers/000004.log"], "and a shared one, with the deletions"
    assert [path for path, _, _ in log_ops(disk, "sync")[begin:]] == ["000004"]
    assert sorted(layout_of(engine)._files) == [2, 4], "nothing is kept of the others"
    assert engine.stats.removed_logs == 2 and engine.stats.compacted_logs == 0
    assert read_batch(engine, workers, 2, 0) == [make_entry(2, at) for at in range(5)]
    engine, workers = open_engine(RecordingDisk(disk.files()), ROOMY)
    assert engine.ledgers() == [2] and engine.is_fenced(lid(1)), "it does not come back"


@pytest.mark.rule("G1", "G4")
def test_a_full_log_of_a_deleted_ledger_goes_by_what_the_manifest_says_of_it(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(ROOMY, entry_log_bytes=8192))
    for entry_id in range(10):
        add(engine, 1, entry_id, size=900)
    add(engine, 2, 0)
    done(workers, engine.checkpoint)
    disk.faults["open", "000001"] = OSError(errno.EIO, "nobody has to look")
    collect(engine, workers, 1)
    assert "/ledgers/000001.log" not in logs(disk) and engine.state is EngineState.WRITABLE


def test_a_ledger_that_is_said_to_be_closed_is_finished_by_the_next_look_but_one(disk: RecordingDisk) -> None:
    now = [100.0]
    workers = QueueWorkers()
    engine = Engine.open(ROOMY, disk, workers, monotonic=lambda: now[0])
    add(engine, 1, 0)
    add(engine, 2, 0)
    settle(engine, workers)
    engine.ledger_closed(lid(1))
    engine.ledger_closed(lid(99))
    for passed in (0.0, FINISH_WITHIN_S):
        now[0] += passed
        engine.finish_logs()
        workers.pump()
    assert [log.finished for log in manifest_of(disk).logs.values()] == [True, False]
    assert [path for path in disk.left_open if path.endswith(".log")] == ["/ledgers/000002.log"]
    add(engine, 1, 1)
    settle(engine, workers)
    assert read_batch(engine, workers, 1, 0) == [make_entry(1, 0), make_entry(1, 1)], "an add that comes all the same"
    checkpoints = engine.stats.checkpoints
    for _look in range(2):
        now[0] += FINISH_WITHIN_S / 3
        engine.finish_logs()
        workers.pump()
    assert engine.stats.checkpoints == checkpoints, "nothing has ended"


def test_a_ledger_without_adds_is_finished_after_a_while(disk: RecordingDisk) -> None:
    now = [100.0]
    workers = QueueWorkers()
    engine = Engine.open(ROOMY, disk, workers, monotonic=lambda: now[0])
    add(engine, 1, 0)
    settle(engine, workers)
    for passed in (ROOMY.log_idle_s - 1, 1.0, FINISH_WITHIN_S):
        assert not layout_of(engine).logs.have_ended or passed
        now[0] += passed
        add(engine, 2, int(now[0]))
        settle(engine, workers)
        engine.finish_logs()
        workers.pump()
    assert [log.finished for log in manifest_of(disk).logs.values()] == [True, False]


@pytest.mark.rule("K26", "B1")
def test_on_a_full_disk_reads_go_on_and_nothing_is_lost(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, SMALL)
    disk.faults["write", ".log"] = OSError(errno.ENOSPC, "full")
    answers: list[object] = []
    for entry_id in range(4):
        entry = make_entry(1, entry_id, size=3000)
        engine.append_entry(lid(1), KEY, entry, recovery=True)
        engine.when_durable(lambda error, entry_id=entry_id: answers.append(error or entry_id))  # type: ignore[misc]
        workers.pump()
    assert (engine.state, answers[0]) == (EngineState.READ_ONLY, 0)
    assert all(answer == at or isinstance(answer, DiskFullError) for at, answer in enumerate(answers))
    assert all(at_hand(engine, 1, at) == make_entry(1, at, size=3000) for at in range(4))
    layout_of(engine)
    disk.faults.clear()
    for _look in range(3):
        engine.check_space()
        engine.finish_logs()
        workers.pump()
    done(workers, engine.when_durable)
    assert layout_of(engine).logs.writable < SMALL.ledger_buffer_bytes // 2
    assert engine.state.value == "writable"
    again, workers = open_engine(RecordingDisk(disk.files()), SMALL)
    assert read_batch(again, workers, 1, 0) == [make_entry(1, at, size=3000) for at in range(4)]


@pytest.mark.rule("K26")
def test_a_write_that_found_no_space_uses_the_reserve(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(SMALL, reserve_bytes=4096))

    def full(path: str) -> None:
        if "/ledgers/reserve" in disk.names:
            raise OSError(errno.ENOSPC, "full", path)

    before = disk.before
    disk.before = lambda call, path: full(path) if call == "write" and ".log" in path else before(call, path)  # type: ignore[method-assign]
    add(engine, 1, 0, size=3000)
    settle(engine, workers)
    assert "/ledgers/reserve" not in disk.names and layout_of(engine).logs.buffered == 0


@pytest.mark.rule("K23", "K5")
@pytest.mark.parametrize(
    ("fault", "few"), [(("write", ".log"), 9), (("sync", ".log"), 1)], ids=["a write", "a sync of one that gives way"]
)
def test_a_log_that_fails_is_final(disk: RecordingDisk, fault: tuple[str, str], few: int) -> None:
    engine, workers = open_engine(disk, replace(SMALL, open_logs_max=few))
    disk.faults[fault] = OSError(errno.EIO, "broken")
    for ledger in (1, 2) if few == 1 else (1,):
        add(engine, ledger, 0, size=3000)
        settle(engine, workers)
    assert engine.state is EngineState.FAILED
    assert at_hand(engine, 1, 0) == make_entry(1, 0, size=3000), "reads go on"


LAYOUTS: list[StorageConfig] = [CONFIG, replace(SMALL, entry_log_bytes=8192)]


@pytest.mark.rule("K17", "B3")
@pytest.mark.parametrize("clean", [False, True], ids=["kill", "stop"])
@pytest.mark.parametrize("first", [0, 1], ids=["shared first", "own first"])
def test_layouts_are_exchanged_from_start_to_start(disk: RecordingDisk, clean: bool, first: int) -> None:
    expected: dict[int, int] = {}
    for life in range(6):
        engine, workers = open_engine(disk, LAYOUTS[(first + life) % 2])
        assert {ledger: len(state[0]) for ledger, state in everything(engine, workers).items()} == expected
        for ledger in (1, 2, 3 + life):
            adds = make_adds(ledger, list(range(expected.get(ledger, 0), expected.get(ledger, 0) + 20)), 300)
            engine.append(adds.runs[0], adds)
            expected[ledger] = expected.get(ledger, 0) + 20
        engine.fence(lid(3 + life), KEY, lambda error: None)
        settle(engine, workers)
        if life == 3:
            collect(engine, workers, 3)
            del expected[3]
            done(workers, lambda callback, engine=engine: engine.compact(callback, major=True))  # type: ignore[misc]
        if clean:
            done(workers, engine.close)
        disk = RecordingDisk(disk.files())
    engine, workers = open_engine(disk, LAYOUTS[first])
    found = everything(engine, workers)
    assert {ledger: len(state[0]) for ledger, state in found.items()} == expected
    assert all(
        entry == make_entry(ledger, at, size=300) for ledger, state in found.items() for at, entry in state[0].items()
    )
    assert [engine.is_fenced(lid(ledger)) for ledger in (1, 4, 8)] == [False, True, True]


@pytest.mark.rule("K19", "B3", "M6")
def test_the_index_is_rebuilt_from_the_logs_of_ledgers(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, LAYOUTS[1])
    for ledger in (1, 2, 3):
        adds = make_adds(ledger, list(range(20)), 300)
        engine.append(adds.runs[0], adds)
    engine.fence(lid(2), KEY, lambda error: None)
    done(workers, engine.checkpoint)
    collect(engine, workers, 3)
    done(workers, engine.close)
    before = everything(*open_engine(RecordingDisk(disk.files()), LAYOUTS[1]))
    for name in [name for name in disk.files() if name.endswith(".index")]:
        disk.names[name].data[-1] ^= 1
    engine, workers = open_engine(disk, LAYOUTS[1])
    assert engine.report.rebuilt and everything(engine, workers) == before
    assert before[2][1] and 3 not in before and engine.is_fenced(lid(3))


@pytest.mark.rule("G3")
def test_the_log_of_a_replay_is_shared_and_is_compacted_when_its_ledgers_are_deleted(disk: RecordingDisk) -> None:
    config = replace(ROOMY, major_compaction_ratio=1.0)
    engine, workers = open_engine(disk, config)
    for entry_id in range(5):
        for ledger in (1, 2):
            add(engine, ledger, entry_id, size=300)
    settle(engine, workers)
    disk = RecordingDisk(disk.files())
    engine, workers = open_engine(disk, config)
    assert engine.report.replayed_groups and len(logs(disk)) == 1
    collect(engine, workers, 1)
    done(workers, lambda callback: engine.compact(callback, major=True))
    assert engine.stats.compacted_logs == 1
    assert read_batch(engine, workers, 2, 0) == [make_entry(2, at, size=300) for at in range(5)]


def test_reads_on_the_worker_keep_the_descriptor_that_they_have(disk: RecordingDisk) -> None:
    """A descriptor that gives way is closed behind the reads that have it in hand."""
    engine, workers = open_engine(disk, replace(SMALL, open_logs_max=1))
    disk.cached = False
    add(engine, 1, 0, size=3000)
    settle(engine, workers)
    got: list[Any] = []
    engine.read(lid(1), EntryId(0), got.append)
    assert got == []
    reading = workers.jobs.pop()
    add(engine, 2, 0, size=3000)
    engine.when_durable(lambda error: None)
    while any(name != "read" for name, _, _ in workers.jobs):
        at = next(at for at, (name, _, _) in enumerate(workers.jobs) if name != "read")
        workers.jobs.insert(0, workers.jobs.pop(at))
        workers.step()
    workers.jobs.insert(0, reading)
    workers.pump()
    assert got == [make_entry(1, 0, size=3000)]
    assert read(engine, workers, 1, 0) == make_entry(1, 0, size=3000)


@pytest.mark.rule("K13")
def test_a_worker_that_gives_no_result_has_written_nothing(disk: RecordingDisk, monkeypatch: Any) -> None:
    engine, workers = open_engine(disk, ROOMY)
    add(engine, 1, 0)
    settle(engine, workers)

    def mistake(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(LogWrites, "carry_out", mistake)
    answers: list[BaseException | None] = []
    engine.checkpoint(answers.append)
    workers.pump()
    assert len(answers) == 1 and answers[0] is not None and "a mistake" in str(answers[0])
    assert engine.state is EngineState.FAILED and layout_of(engine).logs.writable > 0


def test_a_descriptor_that_cannot_be_closed_holds_nobody_up(disk: RecordingDisk, caplog: Any) -> None:
    engine, workers = open_engine(disk, replace(SMALL, open_logs_max=1))
    add(engine, 1, 0, size=3000)
    settle(engine, workers)
    file: File = layout_of(engine)._files[1]

    def broken() -> None:
        raise OSError(errno.EIO, "broken")

    file.close = broken  # type: ignore[method-assign]
    add(engine, 2, 0, size=3000)
    settle(engine, workers)
    assert "could not be closed" in caplog.text and list(layout_of(engine).open_files()) == []
    assert read(engine, workers, 1, 0) == make_entry(1, 0, size=3000)


@pytest.mark.rule("K10")
def test_when_ids_run_out_ledgers_share_a_log_and_it_is_said_once(disk: RecordingDisk, caplog: Any) -> None:
    engine, workers = open_engine(disk, ROOMY)
    engine._entry_logs._next_log = 2**23 - 2**20
    for ledger in (1, 2):
        add(engine, ledger, 0)
    for _look in range(3):
        engine.finish_logs()
    done(workers, engine.checkpoint)
    assert len(logs(disk)) == 1 and caplog.text.count("ledgers share a log from now on") == 1
    assert [read(engine, workers, ledger, 0) for ledger in (1, 2)] == [make_entry(ledger, 0) for ledger in (1, 2)]


@pytest.mark.rule("P3", "K22")
def test_a_stop_closes_every_log_when_the_writes_in_hand_have_ended(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, SMALL)
    add(engine, 1, 0, size=3000)
    engine.when_durable(lambda error: None)
    workers.step()
    add(engine, 1, 1, size=300)
    add(engine, 2, 0, size=300)
    close(engine, workers)
    assert disk.left_open == []
    engine, workers = open_engine(disk, SMALL)
    assert engine.report.clean and read_batch(engine, workers, 1, 1) == [make_entry(1, 1, size=300)]
