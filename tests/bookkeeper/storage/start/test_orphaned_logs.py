"""After a loss nothing is thrown away: the entry logs may hold the last copy of what the journal has lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.codec import record, scan_records
from bookkeeper.errors import DataUnknownError
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.manifest import read_manifest
from bookkeeper.storage.entry_log.entry_log_file import log_name
from bookkeeper.storage.start.orphaned_logs import behind
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.test_damage import flipped, groups_of, journal_of
from tests.bookkeeper.storage.workload import CONFIG, Life, Truth, lid, make_entry, open_engine, read

ROOMY = replace(CONFIG, journal_file_bytes=65536)
ONE_LOG = replace(ROOMY, entry_log_bytes=1 << 20)


def lost_groups(config: StorageConfig, *, checkpoint: bool) -> tuple[dict[str, bytes], Truth]:
    """A life whose journal has lost all groups but the last; what they held is in the entry logs only."""
    disk = RecordingDisk()
    life = Life(disk, config)
    if checkpoint:
        life.add(1, 0)
        life.pump()
        life.checkpoint()
        life.pump()
    for entry_id in range(1, 7):
        life.add(1, entry_id, size=700)
        life.add(2, entry_id)
        life.pump()
    life.fence(2)
    life.pump()
    life.add(3, 0)
    life.pump()
    files = disk.files()
    name = journal_of(files)
    for group in groups_of(files[name])[:-1]:
        files[name] = flipped(files[name], group.offset + 70, 1)
    return files, life.truth


@pytest.mark.rule("G4", "K18", "B3")
@pytest.mark.parametrize(("config", "checkpoint"), [(ROOMY, False), (ROOMY, True), (ONE_LOG, True)])
def test_what_the_journal_has_lost_is_read_from_logs_that_no_manifest_names(
    config: StorageConfig, checkpoint: bool
) -> None:
    files, truth = lost_groups(config, checkpoint=checkpoint)
    disk = RecordingDisk(files)
    aside: list[list[str]] = []
    for _ in range(3):
        engine, workers = open_engine(disk, config)
        assert engine.in_limbo
        assert {key: read(engine, workers, *key) for key in truth.sent} == truth.sent
        assert isinstance(read(engine, workers, 5, 0), DataUnknownError)
        engine.checkpoint(lambda error: None)
        workers.pump()
        engine.append_entry(lid(1), b"k" * 20, make_entry(1, 7), recovery=True)
        engine.when_durable(lambda error: None)
        workers.pump()
        aside.append([name for name in disk.files() if name.endswith(".lost")])
    assert aside[0] and aside[1:] == aside[:1] * 2, "a limbo that is known puts nothing more aside"
    engine.end_limbo()
    assert engine.is_fenced(lid(2))
    engine.checkpoint(lambda error: None)
    workers.pump()
    assert not [name for name in disk.files() if name.endswith(".lost")], "nothing is missing any more"
    engine.close(lambda error: None)
    workers.pump()
    engine, workers = open_engine(disk, config)
    assert not engine.in_limbo
    assert {key: read(engine, workers, *key) for key in truth.sent} == truth.sent


@pytest.mark.rule("G4", "K18", "K19")
@pytest.mark.parametrize("config", [ROOMY, ONE_LOG])
def test_what_the_logs_hold_stays_readable_though_the_journal_gave_nothing(config: StorageConfig) -> None:
    """With every journal file gone nothing is replayed, and that was taken for "nothing new": what had just been taken
    in from the entry logs was kept out of the index segment, and forgotten with the checkpoint that ends the start."""
    disk = RecordingDisk()
    life = Life(disk, config)
    life.add(1, 0)
    life.pump()
    life.checkpoint()
    life.pump()
    life.add(1, *range(1, 13), size=200)
    life.add(2, 0)
    life.fence(2)
    life.pump()
    disk = RecordingDisk({name: data for name, data in disk.files().items() if not name.endswith(".journal")})
    for _ in range(3):
        engine, workers = open_engine(disk, config)
        assert engine.in_limbo and engine.report.replayed_records == 0
        assert {key: read(engine, workers, *key) for key in life.truth.sent} == life.truth.sent
        assert engine.last_entry(lid(1)) == 12
    engine.end_limbo()
    assert engine.is_fenced(lid(2)), "a fence is taken in, too"
    engine.close(lambda error: None)
    workers.pump()
    engine, workers = open_engine(disk, config)
    assert {key: read(engine, workers, *key) for key in life.truth.sent} == life.truth.sent


@pytest.mark.rule("G4", "K18")
@pytest.mark.parametrize("suffix", ["journal", "manifest", ".index"])
def test_a_start_that_found_damage_removes_and_overwrites_nothing(suffix: str) -> None:
    files, _ = lost_groups(ROOMY, checkpoint=True)
    if suffix != "journal":
        name = next(name for name in files if name.endswith(suffix))
        files[name] = flipped(files[name], 30, 1)
    disk = RecordingDisk(files)
    open_engine(disk, ROOMY)
    after = disk.files()
    for name, data in files.items():
        if name.endswith((".log", ".index")):
            assert after[name].startswith(data.rstrip(b"\0")), name
        elif name.endswith(".journal"):
            assert after[name + ".lost"] == data, "put aside, not recycled"
    aside = [at for at, op in enumerate(disk.ops) if op.target.endswith(".lost")]
    assert not aside or ("sync_directory", "/journal") in {(op.kind, op.path) for op in disk.ops[aside[-1] :]}


@pytest.mark.rule("G4", "K5")
@pytest.mark.parametrize("config", [ROOMY, ONE_LOG])
def test_a_log_that_is_taken_in_is_not_cut_and_the_log_of_the_start_is_finished(config: StorageConfig) -> None:
    """Behind the last record that can be read may lie one that somebody can still mend."""
    files, _ = lost_groups(config, checkpoint=True)
    newest = max(name for name in files if name.endswith(".log"))
    rotten = record(make_entry(1, 77))[:-1] + b"!"
    files[newest] += rotten
    disk = RecordingDisk(files)
    open_engine(disk, config)
    assert disk.files()[newest] == files[newest]
    manifest = read_manifest(disk, "/ledgers")
    assert manifest is not None
    finished = {f"/ledgers/{log_name(log_id)}": entry.finished for log_id, entry in manifest.logs.items()}
    assert finished[newest] is False and any(finished[name] for name in finished.keys() - files.keys())


@pytest.mark.rule("G4")
def test_a_start_that_found_none_clears_away_what_was_left_over() -> None:
    disk = RecordingDisk()
    life = Life(disk, ROOMY)
    life.add(1, 0)
    life.pump()
    left = [name for name in disk.files() if name.endswith(".log")]
    engine, workers = open_engine(disk, ROOMY)
    assert read(engine, workers, 1, 0) == life.truth.sent[1, 0]
    assert left and not any(disk.exists(name) for name in left)


def test_records_behind_a_place() -> None:
    data = record(make_entry(1, 0)) + record(make_entry(1, 1)) + record(make_entry(2, 5))
    scan = scan_records(data, 0, len(data))
    assert behind(scan, 0) is scan
    assert list(behind(scan, 1).entry_ids) == [1, 5]
    assert list(behind(scan, scan.offsets[2]).ledger_ids) == [2]
    assert not behind(scan, len(data)).offsets


@pytest.mark.rule("G4", "K9", "K13", "K28")
@pytest.mark.parametrize("few", [1, 100])
def test_the_logs_of_many_ledgers_are_taken_in_with_few_descriptors(few: int) -> None:
    """The journal is lost; what the ledgers' own logs had by then is there, and the others are not denied."""
    config = replace(ROOMY, entry_log_per_ledger=True, ledger_buffer_bytes=4096, open_logs_max=few)
    disk = RecordingDisk()
    life = Life(disk, config)
    for entry_id in range(3):
        for ledger_id in range(1, 31):
            life.add(ledger_id, entry_id, size=200)
        life.pump()
    files = {name: data for name, data in disk.files().items() if not name.endswith(".journal")}
    held = sum(name.endswith(".log") for name in files)
    disk = RecordingDisk(files)
    engine, workers = open_engine(disk, config)
    assert engine.report.limbo_reason is not None and held == 30
    published = next(at for at, op in enumerate(disk.ops) if op.kind == "rename" and op.target.endswith("/manifest"))
    synced = {op.path for op in disk.ops[:published] if op.kind == "sync"}
    assert {name for name in files if name.endswith(".log")} <= synced, "before a manifest names what is in them"
    assert sum(path.endswith(".log") for path in disk.left_open) <= max(few, 1) + (30 if few > 1 else 0)
    for ledger_id in range(1, 31):
        for entry_id in range(3):
            found = read(engine, workers, ledger_id, entry_id)
            assert found == life.truth.sent[ledger_id, entry_id] or isinstance(found, DataUnknownError)
        assert read(engine, workers, ledger_id, 0) == life.truth.sent[ledger_id, 0]
