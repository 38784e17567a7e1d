"""What group commit, checkpoints and the engine may ask of a layout, of either."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.journal.entry_log_layout import EntryLogLayout
from bookkeeper.storage.journal.pending_group import PendingGroup
from bookkeeper.storage.ledger_logs.ledger_group import LedgerGroup
from bookkeeper.storage.shared_log.shared_layout import SharedLayout
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, PER_LEDGER, add, lid, open_engine

LAYOUTS = pytest.mark.parametrize("config", [CONFIG, PER_LEDGER], ids=["shared", "own"])


@LAYOUTS
def test_a_layout_knows_the_descriptors_of_a_checkpoint(config: StorageConfig) -> None:
    engine, workers = open_engine(RecordingDisk(), config)
    layout: EntryLogLayout = engine._layout
    add(engine, 1, 0)
    engine.when_durable(lambda error: None)
    workers.pump()
    told: list[BaseException | None] = []
    layout.write_out(told.append)
    workers.pump()
    assert told == [None] and layout.has_writer(1)
    end = engine._entry_logs.logs[1].end
    assert layout.unsynced({1: end}) == {1: layout.writer_of(1)} and layout.writer_of(1) is not None
    layout.synced({1: end})
    assert not layout.end_idle_logs() and list(layout.open_files()) == []


@LAYOUTS
def test_advice_and_a_look_are_welcome_everywhere(config: StorageConfig) -> None:
    engine, workers = open_engine(RecordingDisk(), config)
    add(engine, 1, 0)
    engine.ledger_closed(lid(1))
    engine.ledger_closed(lid(2))
    engine.finish_logs()
    add(engine, 1, 1)
    told: list[BaseException | None] = []
    engine.checkpoint(told.append)
    workers.pump()
    assert told == [None] and engine.last_entry(lid(1)) == 1


def test_in_the_shared_layout_nothing_is_added_to_the_way_of_a_run() -> None:
    engine, _ = open_engine(RecordingDisk(), CONFIG)
    layout = engine._layout
    assert isinstance(layout, SharedLayout) and layout.new_group is PendingGroup
    assert layout.next_place == engine._entry_logs.next_place and layout.copies_with_journal and layout.syncs_names
    assert layout.dead_logs(lambda ledger_id: True) == []
    add(engine, 1, 0)
    assert type(engine._commit.groups.collecting) is PendingGroup
    assert engine._reader.unwritten is engine._commit.groups
    assert engine._reader.source_of == engine._entry_logs.file


def test_with_a_log_per_ledger_a_group_has_no_place_of_its_own() -> None:
    engine, _ = open_engine(RecordingDisk(), replace(PER_LEDGER))
    layout = engine._layout
    assert layout.next_place() == (0, 0) and not layout.copies_with_journal and not layout.syncs_names
    add(engine, 1, 0)
    assert isinstance(engine._commit.groups.collecting, LedgerGroup)
