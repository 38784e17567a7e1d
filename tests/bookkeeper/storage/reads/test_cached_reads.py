"""Runs of reads of what is at hand: verified, in order, and silent about everything else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.codec import Reads, encode_reads, read_record, record, split_read_replies, split_reads
from bookkeeper.codec.shapes import FRAME_MAX, Dialect
from bookkeeper.errors import CorruptionError
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.reads.cached_reads import RUN_BYTES, RUN_MAX
from tests.bookkeeper.storage.reads.test_entry_reader import ROOMY, hurt, log_paths, settle
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import add, lid, make_adds, open_engine, read


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def reads_of(*wanted: tuple[int, int]) -> Reads:
    frames = b"".join(encode_reads(Dialect.V3, ledger, [entry], txn) for txn, (ledger, entry) in enumerate(wanted))
    return split_reads(frames, 0, len(frames))


def answered(engine: Engine, reads: Reads, i0: int = 0, frame_max: int = FRAME_MAX) -> list[tuple[int, bytes, int]]:
    """(entry id, entry, LAC) of the replies."""
    answers = engine.try_read_cached(reads, i0, frame_max)
    if answers is None:
        return []
    frames = answers.frames
    found = split_read_replies(frames, 0, len(frames))
    assert len(found.ends) == answers.n
    assert list(found.txns) == list(reads.txns[i0 : i0 + answers.n])
    assert list(found.ledger_ids) == list(reads.ledger_ids[i0 : i0 + answers.n])
    return [
        (entry_id, frames[begin:end], lac)
        for entry_id, begin, end, lac in zip(found.entry_ids, found.begins, found.ends, found.lacs, strict=True)
    ]


@pytest.mark.rule("B5", "B7")
@pytest.mark.parametrize("checkpoint", [False, True])
def test_entries_at_hand_are_verified_and_whatever_else_is_left_to_the_general_way(
    disk: RecordingDisk, checkpoint: bool
) -> None:
    engine, workers = open_engine(disk, ROOMY)
    for entry_id in range(3):
        add(engine, 1, entry_id)
    assert answered(engine, reads_of((1, 1))) == [], "on its way to the log"
    settle(engine, workers)
    if checkpoint:
        settle(engine, workers, checkpoint=True)
    lac = engine.lac(lid(1))
    inline = engine.stats.reads_inline
    reads = reads_of((1, 0), (1, 2), (1, 1), (1, 3), (1, 0), (2, 0))
    entries = [(entry_id, read(engine, workers, 1, entry_id), lac) for entry_id in (0, 2, 1)]
    assert answered(engine, reads) == entries
    assert engine.stats.reads_inline == inline + 6
    assert answered(engine, reads, 3) == [], "not here"
    assert answered(engine, reads, 4) == entries[:1], "another ledger's is another run"
    assert answered(engine, reads, 5) == []
    assert answered(engine, reads, 0, 40) == [], "larger than a frame may be"
    if not checkpoint:
        settle(engine, workers, checkpoint=True)
    entry = entries[1][1]
    assert isinstance(entry, bytes)
    hurt(disk, entry)
    assert answered(engine, reads) == entries[:1]
    assert isinstance(read(engine, workers, 1, 2), CorruptionError)
    assert answered(engine, reads, 2) == entries[2:]


def test_what_would_wait_for_the_disk_is_not_at_hand(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, ROOMY)
    add(engine, 1, 0)
    settle(engine, workers)
    assert len(answered(engine, reads_of((1, 0)))) == 1
    disk.cached = False
    assert answered(engine, reads_of((1, 0))) == []


@pytest.mark.rule("B7")
def test_wherever_places_are_kept_the_same_entries_are_found(disk: RecordingDisk) -> None:
    """In memory, in index segments, in both; with holes, before the first and behind the last."""
    engine, workers = open_engine(disk, replace(ROOMY, group_bytes=1 << 20, inflight_bytes=1 << 22))
    wanted = [*range(0, 3100, 7), 1040, 1041, 2999, 3001]

    def found() -> list[int]:
        reads = reads_of(*((1, entry) for entry in wanted))
        got: list[int] = []
        at = 0
        while at < len(wanted):
            some = answered(engine, reads, at)
            assert [entry for entry, _, _ in some] == wanted[at : at + len(some)]
            assert [entry for _, entry, _ in some] == [read(engine, workers, 1, entry) for entry, _, _ in some]
            got += [entry for entry, _, _ in some]
            at += len(some) or 1
        for entry in (*wanted[::40], *wanted[-4:]):
            alone = answered(engine, reads_of((1, entry)))
            assert [one for one, _, _ in alone] == ([entry] if entry in got else []), "alone"
            assert [one for _, one, _ in alone] == [read(engine, workers, 1, entry) for _ in alone]
        return got

    def put(ids: list[int], *, checkpoint: bool) -> None:
        adds = make_adds(1, ids)
        engine.append(adds.runs[0], adds)
        settle(engine, workers)
        if checkpoint:
            settle(engine, workers, checkpoint=True)

    assert found() == []
    stored: set[int] = set()
    for ids, checkpoint in (
        (list(range(20, 1200, 2)), False),
        (list(range(1200, 1900)), True),
        (list(range(2000, 3000)), True),
        (list(range(3000, 3050)), False),
        (list(range(21, 300, 2)), True),
    ):
        put(ids, checkpoint=checkpoint)
        stored.update(ids)
        assert found() == [entry for entry in wanted if entry in stored]
        assert len(found()) > 10


@pytest.mark.rule("B7")
@pytest.mark.parametrize("times", [1, 2])
def test_what_an_earlier_read_left_in_memory_is_no_part_of_a_record(disk: RecordingDisk, times: int) -> None:
    """The log ends in the middle of a record that was read whole before, alone or in a run."""
    engine, workers = open_engine(disk, ROOMY)
    add(engine, 1, 0)
    settle(engine, workers)
    wanted = reads_of(*[(1, 0)] * times)
    entry = answered(engine, wanted)[0][1]
    path, at = next((path, at) for path in log_paths(disk) if (at := disk.read_file(path).find(record(entry))) > 0)
    del disk.names[path].data[at + len(entry) :]
    assert read_record(disk.read_file(path), at, 1, 0) is None
    assert answered(engine, wanted) == []


def test_runs_are_bounded_and_any_size_of_entry_is_learned(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(ROOMY, group_bytes=1 << 20, inflight_bytes=1 << 22))
    adds = make_adds(1, list(range(RUN_MAX + 2)))
    engine.append(adds.runs[0], adds)
    settle(engine, workers)
    reads = reads_of(*((1, entry) for entry in range(RUN_MAX + 2)))
    first = answered(engine, reads)
    assert 1 < len(first) < RUN_MAX, "nothing is known of their size yet"
    assert len(answered(engine, reads)) == RUN_MAX
    add(engine, 2, 0, size=RUN_BYTES)
    add(engine, 2, 1, size=3000)
    settle(engine, workers)
    assert answered(engine, reads_of((2, 0))) == [], "larger than was thought"
    assert isinstance(read(engine, workers, 2, 0), bytes)
    assert [entry for entry, _, _ in answered(engine, reads_of((2, 0), (2, 1)))] == [0]
    assert [entry for entry, _, _ in answered(engine, reads_of((2, 1), (2, 0)))] == [1]
