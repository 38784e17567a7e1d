"""Settings of a disk: impossible ones are refused with the rule, and the sizes are kept to."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.storage.base.config import StorageConfig
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, add, open_engine, read, read_batch


def test_two_directories_are_enough_and_nothing_changes_later() -> None:
    config = StorageConfig(journal_dir="/j", ledger_dir="/l")
    with pytest.raises(FrozenInstanceError):
        config.journal_spares = 0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("setting", "refused", "least"),
    [
        ("journal_dir", "", "/j"),
        ("ledger_dir", "", "/l"),
        ("journal_file_bytes", 12288, 16384),
        ("journal_file_bytes", 16384 + 512, 20480),
        ("journal_spares", -1, 0),
        ("journal_gap_ms", -0.1, 0.0),
        ("inline_sync_us", -1.0, 0.0),
        ("group_bytes", 4095, 4096),
        ("group_bytes", 65 << 20, 8 << 20),
        ("split_bytes", -1, 0),
        ("inflight_bytes", (2 << 20) - 1, 2 << 20),
        ("entry_log_bytes", 8191, 8192),
        ("entry_log_bytes", 1 << 38, (1 << 38) - 1),
        ("checkpoint_bytes", 4095, 4096),
        ("log_sync_bytes", -1, 0),
        ("cached_bytes", -1, 0),
        ("ledger_buffer_bytes", 4095, 4096),
        ("open_logs_max", 0, 1),
        ("log_idle_s", -1.0, 0.0),
        ("index_segments", 1, 2),
        ("page_cache_pages", 0, 1),
        ("resident_ledgers_max", 0, 1),
        ("reserve_bytes", -1, 0),
        ("batch_read_bytes", 4095, 4096),
        ("minor_compaction_ratio", 1.1, -1.0),
        ("major_compaction_ratio", 1.1, 1.0),
        ("compaction_bytes_per_s", -1, 0),
        ("compaction_run_s", -1.0, 0.0),
    ],
)
def test_what_cannot_work_is_refused_by_name(setting: str, refused: Any, least: Any) -> None:
    good: dict[str, Any] = {"journal_dir": "/j", "ledger_dir": "/l"}
    StorageConfig(**(good | {setting: least}))
    with pytest.raises(ConfigError, match=setting):
        StorageConfig(**(good | {setting: refused}))


def test_a_group_has_at_most_64_mib_however_much_may_be_in_flight() -> None:
    good: dict[str, Any] = {"journal_dir": "/j", "ledger_dir": "/l", "inflight_bytes": 1 << 30}
    StorageConfig(**good, group_bytes=64 << 20)
    with pytest.raises(ConfigError, match="group_bytes"):
        StorageConfig(**good, group_bytes=(64 << 20) + 1)


def test_both_may_be_one_directory() -> None:
    disk, config = RecordingDisk(), replace(CONFIG, journal_dir="/one", ledger_dir="/one")
    for number in range(3):
        engine, workers = open_engine(disk, config)
        wanted = add(engine, 1, number)
        engine.checkpoint(lambda error: None)
        workers.pump()
        assert read(engine, workers, 1, number) == wanted
        assert isinstance(read(engine, workers, 1, 0), bytes)
        engine.close(lambda error: None)
        workers.pump()
        assert not disk.exists("/one/dirty") and not disk.locks


@pytest.mark.rule("K11")
def test_a_journal_file_has_its_size_from_the_beginning() -> None:
    disk = RecordingDisk()
    open_engine(disk, replace(CONFIG, journal_file_bytes=40960))
    (name,) = [name for name in disk.files() if name.endswith(".journal")]
    assert len(disk.read_file(name)) == 40960


def test_a_batch_read_gathers_no_more_than_it_may_whatever_is_asked_for() -> None:
    engine, workers = open_engine(RecordingDisk(), replace(CONFIG, batch_read_bytes=4096))
    for entry_id in range(10):
        add(engine, 1, entry_id, size=1000)
    got = read_batch(engine, workers, 1, 0, size=1 << 30)
    assert 0 < sum(4 + len(entry) for entry in got) <= 4096
    assert len(got) == 3, "and as many as fit"
