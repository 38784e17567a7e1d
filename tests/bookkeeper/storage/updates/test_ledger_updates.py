"""What changes a ledger: adds, fences, keys, explicit LACs; admitted or refused, visible at once, durable later."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from bookkeeper import codec
from bookkeeper.errors import (
    BadRequestError,
    DuplicateEntryError,
    LedgerFencedError,
    NoSuchLedgerError,
    UnauthorizedError,
)
from bookkeeper.ids import EntryId
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.index import ledger_descriptor
from bookkeeper.storage.index.moved_entries import MovedEntries
from bookkeeper.storage.updates import fencing, ledger_updates
from bookkeeper.storage.updates.record_runs import one_record
from tests.bookkeeper.storage.recording_disk import RecordingDisk, crash_images
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    PER_LEDGER,
    add,
    landed,
    lid,
    make_adds,
    make_entry,
    open_engine,
    read,
)

Answers = list[BaseException | None]


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


@pytest.mark.rule("K9", "K31")
@pytest.mark.parametrize("config", [CONFIG, PER_LEDGER], ids=["one log", "a log for each ledger"])
def test_runs_that_were_built_in_the_journals_memory_are_stored_as_they_came(
    disk: RecordingDisk, config: StorageConfig
) -> None:
    engine, workers = open_engine(disk, config)
    stored: dict[tuple[int, int], bytes] = {}
    for step in range(40):  # ledgers whose key comes first, groups that have no room, state records in between
        ledger, ids = step % 3, list(range(step * 4, step * 4 + 1 + step % 4))
        adds = landed(engine, make_adds(ledger, ids, size=100 + 61 * (step % 5), lac=0))
        if step % 11 == 7:
            with pytest.raises(UnauthorizedError):  # what is refused leaves nothing behind
                engine.append(adds.runs[0]._replace(master_key=b"x" * 20), adds)
            continue
        engine.append(adds.runs[0], adds)
        stored |= {(ledger, each): make_entry(ledger, each, lac=0, size=100 + 61 * (step % 5)) for each in ids}
        if step % 7 == 3:
            engine.fence(lid(100 + step), KEY, lambda error: None)
        if step % 5 == 4:
            engine.when_durable(lambda error: None)
        assert read(engine, workers, ledger, ids[-1]) == stored[ledger, ids[-1]]
    workers.pump()
    engine.when_durable(lambda error: None)
    workers.pump()
    for _ in range(2):
        assert {key: read(engine, workers, *key) for key in stored} == stored
        engine, workers = open_engine(disk, config)


@pytest.mark.rule("K31")
@pytest.mark.parametrize("known", [False, True], ids=["a new ledger", "a key that is not known yet"])
def test_the_key_goes_ahead_of_entries_that_were_built_in_its_place(disk: RecordingDisk, known: bool) -> None:
    engine, workers = open_engine(disk)
    add(engine, 2, 0)
    if known:
        engine.append(*one_record(make_entry(1, 0), KEY))
        ledger = engine._ledgers.ledgers.get(lid(1))
        assert ledger is not None
        ledger.key = None
    adds = landed(engine, make_adds(1, [5, 6, 9], lac=0))
    engine.append(adds.runs[0], adds)
    engine.when_durable(lambda error: None)
    workers.pump()
    engine, workers = open_engine(disk)
    assert [read(engine, workers, 1, each) for each in (5, 6, 9)] == [make_entry(1, each, lac=0) for each in (5, 6, 9)]
    assert engine.master_key(lid(1)) == KEY


@pytest.mark.rule("B4")
def test_the_key_is_set_once(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    with pytest.raises(UnauthorizedError):
        engine.append_entry(lid(1), b"other" * 4, make_entry(1, 1))
    with pytest.raises(UnauthorizedError):
        engine.set_explicit_lac(lid(1), b"other" * 4, 0, b"", lambda error: None)
    engine.checkpoint(lambda error: None)
    workers.pump()
    engine, _ = open_engine(disk)
    with pytest.raises(UnauthorizedError):
        engine.append_entry(lid(1), b"other" * 4, make_entry(1, 1), recovery=True)


@pytest.mark.rule("B4", "K31")
def test_a_key_that_is_learnt_late_is_in_the_next_checkpoint(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    engine._ledgers.ledgers[lid(1)].key = None  # as after an index was rebuilt from logs that had lost the key's record
    for _ in range(2):
        engine.checkpoint(lambda error: None)
        workers.pump()
        add(engine, 1, 1)
    engine.checkpoint(lambda error: None)
    workers.pump()
    engine, _ = open_engine(disk)
    with pytest.raises(UnauthorizedError):
        engine.append_entry(lid(1), b"other" * 4, make_entry(1, 2))


Act = Callable[[Engine, bytes], None]


def fence(engine: Engine, key: bytes) -> None:
    engine.fence(lid(1), key, lambda error: None)


def write_lac(engine: Engine, key: bytes, body: bytes = b"opaque") -> None:
    engine.set_explicit_lac(lid(1), key, 4, body, lambda error: None)


def append(engine: Engine, key: bytes) -> None:
    engine.append_entry(lid(1), key, make_entry(1, 0))


def append_run(engine: Engine, key: bytes) -> None:
    adds = make_adds(1, [0, 1])
    engine.append(adds.runs[0]._replace(master_key=key), adds)


ACTS = pytest.mark.parametrize("act", [append, append_run, fence, write_lac])
SIZES = pytest.mark.parametrize("size", [0, 19, 21, 255, 256, 4 << 20])


@pytest.mark.rule("X21", "B4")
@ACTS
@SIZES
def test_a_key_of_another_length_changes_nothing(disk: RecordingDisk, act: Act, size: int) -> None:
    """Whoever calls: the index has one byte for a key's length, and no client makes such a key."""
    engine, workers = open_engine(disk)
    with pytest.raises(UnauthorizedError, match="a master key has 20 bytes"):
        act(engine, b"k" * size)
    assert not engine.has(lid(1)) and engine.journal_bytes_in_flight == 0
    answers: Answers = []
    engine.close(answers.append)
    workers.pump()
    assert answers == [None]


@pytest.mark.rule("B4", "B3", "K31")
@ACTS
@SIZES
@pytest.mark.parametrize("covered", [False, True])
def test_a_disk_that_has_such_a_key_starts_and_its_ledgers_have_none(
    disk: RecordingDisk, monkeypatch: pytest.MonkeyPatch, act: Act, size: int, covered: bool
) -> None:
    """A former version took it: its journal has the record, and its index the row, if the key fits into one. Then
    every start ended where it writes what it has replayed."""
    with monkeypatch.context() as former:
        former.setattr(fencing, "_check_form", lambda ledger_id, key: None)
        engine, workers = open_engine(disk)
        if act is write_lac and size > 255:
            return  # it was refused there, too
        act(engine, b"k" * size)
        add(engine, 2, 0)
        engine.when_durable(lambda error: None)
        workers.pump()
        if covered and size <= 255:
            engine.checkpoint(lambda error: None)
            workers.pump()
    for _ in range(2):
        engine, workers = open_engine(disk)
        assert engine.report.limbo_reason is None and sorted(engine.ledgers()) == [1, 2]
        assert engine.is_fenced(lid(1)) is (act is fence)
        if act in (append, append_run):
            assert read(engine, workers, 1, 0) == make_entry(1, 0)
        if act is write_lac:
            assert engine.explicit_lac(lid(1)) == (4, b"opaque")
    assert engine.master_key(lid(1)) is None
    engine.append_entry(lid(1), KEY, make_entry(1, 1), recovery=True)
    assert engine.master_key(lid(1)) == KEY, "the next request brings one"


@pytest.mark.rule("X36", "K9")
def test_a_disk_that_has_a_long_body_of_an_explicit_lac_starts_and_keeps_nothing_of_it(
    disk: RecordingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither kept in memory nor missed: that a record of it is in the entry log, and its LAC in no ledger, is
    no sign that the journal has lost anything."""
    config = replace(CONFIG, journal_file_bytes=1 << 20, entry_log_bytes=1 << 20)
    with monkeypatch.context() as former:
        former.setattr(ledger_updates, "LAC_BODY_MAX", 1 << 20)
        engine, workers = open_engine(disk, config)
        write_lac(engine, KEY, b"x" * 100_000)
        workers.pump()
        former.setattr(ledger_descriptor, "LAC_BODY_MAX", 1 << 20)
        crashed = RecordingDisk(disk.files())
        engine.checkpoint(lambda error: None)
        workers.pump()
    for found in (disk, crashed):
        for _ in range(2):
            engine, workers = open_engine(found, config)
            assert engine.report.limbo_reason is None and engine.explicit_lac(lid(1)) is None
        write_lac(engine, KEY)
        assert engine.explicit_lac(lid(1)) == (4, b"opaque")


@pytest.mark.rule("X36", "X21")
def test_the_body_of_an_explicit_lac_is_judged_before_anything_is_made(disk: RecordingDisk) -> None:
    engine, _ = open_engine(disk)
    with pytest.raises(BadRequestError, match="has 37 bytes"):
        write_lac(engine, KEY, bytes(37))
    assert not engine.has(lid(1)) and engine.journal_bytes_in_flight == 0
    write_lac(engine, KEY, bytes(36))


@pytest.mark.rule("X21", "B4")
def test_a_request_that_is_refused_brings_no_key(disk: RecordingDisk) -> None:
    """The key was learnt before the request was judged: whoever was refused as fenced had the ledger all the same, and
    its recovery was unauthorized."""
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    add(engine, 2, 0)
    fence(engine, KEY)
    workers.pump()
    for ledger_id in (1, 2):  # as after an index was rebuilt from logs that had lost the key's record
        engine._ledgers.ledgers[lid(ledger_id)].key = None
    other = b"other" * 4
    with pytest.raises(LedgerFencedError):
        engine.append_entry(lid(1), other, make_entry(1, 1))
    with pytest.raises(DuplicateEntryError):
        engine.append_entry(lid(2), other, make_entry(2, 0)[:-1] + b"!")
    assert engine.master_key(lid(1)) is None and engine.master_key(lid(2)) is None
    fence(engine, KEY)
    workers.pump()
    engine, _ = open_engine(disk)
    assert engine.master_key(lid(1)) == KEY, "a fence that is known already brings the key, if none was known"


@pytest.mark.rule("B6")
def test_a_repeat_must_carry_the_same_payload(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    entry = add(engine, 1, 0, lac=-1)
    add(engine, 1, 1)
    add(engine, 1, 0, lac=-1)
    engine.append_entry(lid(1), KEY, make_entry(1, 0, lac=5))
    other = entry[:-1] + b"!"
    for _ in range(2):
        with pytest.raises(DuplicateEntryError):
            engine.append_entry(lid(1), KEY, other)
        engine.checkpoint(lambda error: None)
        workers.pump()
    assert read(engine, workers, 1, 0) == make_entry(1, 0, lac=5)
    assert read(engine, workers, 1, 1) == make_entry(1, 1)


@pytest.mark.rule("B6")
@pytest.mark.parametrize("count", [1, 2])
def test_the_last_entry_must_not_come_again_with_another_payload_either(disk: RecordingDisk, count: int) -> None:
    """Alone, and as the first of a run that goes on behind it: the very id that a writer and a recovery meet at."""
    engine, workers = open_engine(disk)
    add(engine, 1, 0, lac=-1)
    add(engine, 1, 1)
    adds = make_adds(1, [1, 2][:count], size=61)
    with pytest.raises(DuplicateEntryError, match="entry 1 of ledger 1"):
        engine.append(adds.runs[0], adds)
    assert read(engine, workers, 1, 1) == make_entry(1, 1)
    assert engine.last_entry(lid(1)) == 1


@pytest.mark.rule("B8")
def test_the_lac_is_the_greatest_of_entries_and_explicit(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 3, lac=2)
    assert engine.lac(lid(1)) == 2 and engine.explicit_lac(lid(1)) is None
    answers: Answers = []
    engine.set_explicit_lac(lid(1), KEY, 3, b"three", answers.append)
    assert answers == []
    engine.set_explicit_lac(lid(1), KEY, 1, b"one", answers.append)
    workers.pump()
    assert answers == [None, None]
    for _ in range(3):
        assert engine.lac(lid(1)) == 3 and engine.explicit_lac(lid(1)) == (3, b"three")
        engine, workers = open_engine(disk)


def test_entries_that_are_none_are_refused(disk: RecordingDisk) -> None:
    engine, _ = open_engine(disk)
    for entry in (b"", make_entry(1, 0)[:31], make_entry(2, 0), make_entry(1, -5)):
        with pytest.raises(BadRequestError):
            engine.append_entry(lid(1), KEY, entry)
    engine.append_entry(lid(1), KEY, make_entry(1, 0)[:32])  # no digest, no payload


def test_ids_are_read_from_the_handle(disk: RecordingDisk) -> None:
    engine, _ = open_engine(disk)
    got: list[object] = []
    engine.read(lid(1), EntryId(-1), got.append)
    assert isinstance(got[0], NoSuchLedgerError)
    assert engine.space().free > 0


@pytest.mark.rule("B1", "B7")
def test_each_run_of_what_came_together_is_kept_as_its_own(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    each = [
        bytes(codec.encode_adds(3, ledger, 0, [b"%d/%d" % (ledger, n) for n in range(3)], -1, 0, KEY, 3)[0])
        for ledger in (1, 2, 3)
    ]
    frames = b"".join(each)
    adds = codec.split_adds(frames, 0, len(frames))
    assert [(run.ledger_id, run.i0, run.i1) for run in adds.runs] == [(1, 0, 3), (2, 3, 6), (3, 6, 9)]
    for run in adds.runs:
        engine.append(run, adds)
    alone, _ = open_engine(RecordingDisk())
    for frame in each:
        one = codec.split_adds(frame, 0, len(frame))
        alone.append(one.runs[0], one)
    assert engine.journal_bytes_in_flight == alone.journal_bytes_in_flight, "nothing of its neighbours"
    engine.when_durable(lambda error: None)
    workers.pump()
    assert engine.journal_bytes_in_flight == 0
    for checkpoint in (False, True):
        for ledger in (1, 2, 3):
            for n in range(3):
                entry = read(engine, workers, ledger, n)
                assert isinstance(entry, bytes) and entry.endswith(b"%d/%d" % (ledger, n))
        if not checkpoint:
            engine.checkpoint(lambda error: None)
            workers.pump()


@pytest.mark.rule("M6", "G1")
def test_ids_that_are_never_given_out_again_are_remembered_in_runs_and_take_no_ledger_with_them() -> None:
    """A ledger that is here has its own proof to wait for, whatever is known of its id."""
    disk = RecordingDisk()
    engine, workers = open_engine(disk)
    for ledger_id in (3, 5, 9):
        add(engine, ledger_id, 0)
    workers.pump()
    answers: Answers = []
    for _ in range(2):
        engine.collect([lid(3)], answers.append, never_again=[(0, 7), (9, 9)])
        workers.pump()
    assert answers == [None, None]
    for _ in range(2):
        assert list(engine.dropped) == [(0, 4), (6, 7)]
        assert sorted(engine.ledgers()) == [5, 9]
        assert not engine.is_fenced(lid(5)) and engine.is_fenced(lid(6))
        engine, workers = open_engine(disk)


@pytest.mark.rule("G3")
def test_a_place_is_moved_only_if_it_is_still_the_one_that_was_copied(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    for entry_id in range(4):
        add(engine, 1, entry_id)
    engine.checkpoint(lambda error: None)
    workers.pump()
    ledger = engine._ledgers.ledgers[1]
    places = engine._reader.places
    old = places.whole_page(ledger, 0)[:4]
    again = add(engine, 1, 2)
    newer = ledger.index.get_recent(2)
    moved = MovedEntries(1, array("q", range(4)), old, array("q", [found + (1 << 40) for found in old]))
    assert engine._updates.move(moved, {}) == 3
    assert list(places.whole_page(ledger, 0)[:4]) == [moved.new[0], moved.new[1], newer, moved.new[3]]
    assert engine._updates.move(moved, {}) == 0, "none is where it was"
    assert read(engine, workers, 1, 2) == again
    assert engine._updates.move(MovedEntries(9, moved.entry_ids, moved.old, moved.new), {}) == 0
    assert 9 not in engine._ledgers.ledgers, "a ledger that was deleted does not come back"


@pytest.mark.rule("B2", "B3", "M6")
@pytest.mark.parametrize("was_here", [True, False])
def test_a_fence_of_a_dropped_ledger_is_answered_when_the_drop_is_durable(was_here: bool) -> None:
    """Cause: that an id is never given out again is in memory until a checkpoint ends, and the journal has no record of
    it; the fence was answered at once, and the next life took regular adds to the ledger."""
    disk = RecordingDisk()
    engine, workers = open_engine(disk)
    add(engine, 3, 0)
    workers.pump()
    ledger, begun = (3 if was_here else 7), len(disk.ops)
    answers: list[int] = []
    engine.collect([lid(3)], lambda error: None, never_again=[(0, 9)])
    engine.fence(lid(ledger), KEY, lambda error: answers.append(len(disk.ops) + 1))
    assert answers == [], "nothing is durable yet"
    workers.pump()
    assert len(answers) == 1
    for done, name, files in crash_images({}, disk.ops, Random(4), 6):
        if done < begun:
            continue
        life, jobs = open_engine(RecordingDisk(files))
        assert life.is_fenced(lid(ledger)) or done < answers[0], (done, name)
        jobs.pump()
