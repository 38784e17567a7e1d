"""Reads look into the memory of a log and into its file, wherever a record is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.errors import CorruptionError
from bookkeeper.ids import EntryId
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.ledger_logs.ledger_log_layout import LedgerLogLayout
from tests.bookkeeper.storage.reads.test_cached_reads import answered, reads_of
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import PER_LEDGER, add, lid, make_entry, open_engine, read_batch

CONFIG = replace(PER_LEDGER, ledger_buffer_bytes=4096, entry_log_bytes=1 << 20, group_bytes=1 << 16)


def in_all_places(disk: RecordingDisk) -> tuple[Engine, QueueWorkers]:
    """Entries 0 and 1 of ledger 1 are in the file, 2 is being written, 3 is durable, 4 is not."""
    engine, workers = open_engine(disk, CONFIG)
    for entry_id in range(5):
        add(engine, 1, entry_id, size=3000 if entry_id == 2 else 900)
        engine.when_durable(lambda error: None)
        if entry_id < 2:
            workers.pump()
            engine.checkpoint(lambda error: None)
            workers.pump()
        elif entry_id < 4:
            while journal := [job for job in workers.jobs if job[0] == "journal"]:
                workers.jobs.remove(journal[0])
                workers.jobs.insert(0, journal[0])
                workers.step()
    assert isinstance(engine._layout, LedgerLogLayout)
    log = engine._layout.logs.log(1)
    assert log is not None and log.writing is not None and log.written < log.writing.end < log.journalled < log.end
    return engine, workers


@pytest.mark.rule("K34", "B7")
def test_each_is_read_at_once() -> None:
    engine, _ = in_all_places(RecordingDisk())
    for entry_id in range(5):
        got: list[object] = []
        engine.read(lid(1), EntryId(entry_id), got.append)
        assert got == [make_entry(1, entry_id, size=3000 if entry_id == 2 else 900)]


@pytest.mark.rule("K34", "B7")
def test_a_batch_goes_from_the_file_into_memory() -> None:
    for first in range(5):
        engine, workers = in_all_places(RecordingDisk())
        got: list[object] = []
        engine.read_batch(lid(1), EntryId(first), 0, 1 << 20, got.append)
        assert len(got) == 1, "nothing had to be waited for"
        entries = read_batch(engine, workers, 1, first)
        assert entries == [make_entry(1, at, size=3000 if at == 2 else 900) for at in range(first, 5)]


@pytest.mark.rule("K34", "B7")
@pytest.mark.parametrize("hint", [512, 4096, 1 << 16])
def test_a_run_of_reads_finds_them_all(hint: int) -> None:
    engine, _ = in_all_places(RecordingDisk())
    engine._ledgers.ledgers[1].read_hint = hint
    reads = reads_of((1, 4), (1, 0), (1, 3), (1, 2), (1, 1), (1, 5))
    got: list[tuple[int, bytes]] = []
    while len(got) < 5 and (more := answered(engine, reads, len(got))):
        got += [(entry_id, entry) for entry_id, entry, _ in more]
    expected = [(at, make_entry(1, at, size=3000 if at == 2 else 900)) for at in (4, 0, 3, 2, 1)]
    assert got == expected[: len(got)] and (len(got) == 5 or hint == 512), "what is larger than expected ends a run"


def test_where_records_of_a_log_are_read_without_waiting() -> None:
    engine, _ = in_all_places(RecordingDisk())
    source = engine._reader.source_of(1)
    buffer = bytearray(16)
    assert source.pread_cached_into(buffer, 4096) == 16
    assert isinstance(engine._layout, LedgerLogLayout)
    log = engine._layout.logs.log(1)
    assert log is not None
    assert source.pread_cached_into(buffer, log.end - 4) == 4, "as much as there is"
    add(engine, 2, 0)
    assert engine._reader.source_of(2).pread_cached_into(buffer, 4096) == 16, "it has no file yet"
    with pytest.raises(CorruptionError, match="000099"):
        engine._reader.source_of(0x99)
