"""Free space: read-only in time, and a reserve for what must go on."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from bookkeeper.errors import DiskFullError
from bookkeeper.seams import Space
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.disk_space import give_up_reserve, give_up_space
from tests.bookkeeper.storage.checkpoint.test_checkpointer import fill, on_state
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, add, lid, make_entry, open_engine, read

WITH_RESERVE = replace(CONFIG, reserve_bytes=8192)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


@pytest.mark.rule("K26", "B10", "V8")
def test_a_start_without_space_for_the_reserve_is_read_only_until_there_is_some(disk: RecordingDisk) -> None:
    disk.free = 2 * WITH_RESERVE.reserve_bytes
    engine, workers = open_engine(disk, WITH_RESERVE)
    told = on_state(engine)
    assert engine.state is EngineState.READ_ONLY and not disk.exists("/ledgers/reserve")
    (said,) = engine.refusals()
    assert said.startswith("/ledgers takes no new entries: less than twice the reserve of 8192 bytes is free")
    with pytest.raises(DiskFullError):
        add(engine, 1, 0)
    engine.append_entry(lid(1), KEY, make_entry(1, 0), recovery=True)
    engine.check_space()
    workers.pump()
    assert told == [] and engine.state is EngineState.READ_ONLY
    disk.free += 1
    for _ in range(3):
        engine.check_space()
    assert sum(name == "checkpoint" for name, _, _ in workers.jobs) == 1, "the reserve is made once"
    assert engine.state is EngineState.READ_ONLY, "not before it is there"
    workers.pump()
    assert told == [(EngineState.WRITABLE, "the disk has enough free space")]
    assert engine.refusals() == ()
    assert len(disk.read_file("/ledgers/reserve")) == WITH_RESERVE.reserve_bytes
    add(engine, 1, 1)


@pytest.mark.rule("K26", "V8")
def test_a_reserve_that_could_not_be_made_is_tried_again() -> None:
    class Full(RecordingDisk):
        full = True

        def before(self, call: str, path: str) -> None:
            if self.full and call == "open" and path == "/ledgers/reserve":
                raise OSError(errno.ENOSPC, "no space left", path)

    disk = Full()
    engine, workers = open_engine(disk, WITH_RESERVE)
    assert engine.state is EngineState.READ_ONLY, "from the beginning"
    for full in (True, False):
        disk.full = full
        engine.check_space()
        workers.pump()
        assert (engine.state is EngineState.READ_ONLY) is full
        assert disk.exists("/ledgers/reserve") is not full


@pytest.mark.rule("K26", "V8")
def test_with_less_than_the_reserve_free_adds_stop_and_come_back(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, WITH_RESERVE)
    told = on_state(engine)
    fill(engine, workers, 0, 2)
    disk.free = WITH_RESERVE.reserve_bytes - 1
    engine.check_space()
    assert [state for state, _ in told] == [EngineState.READ_ONLY] and "8191 bytes" in told[0][1]
    assert disk.exists("/ledgers/reserve"), "it is kept for when a write finds no space"
    assert read(engine, workers, 1, 1) == make_entry(1, 1)
    disk.free = WITH_RESERVE.reserve_bytes
    engine.check_space()
    assert engine.state is EngineState.WRITABLE


@pytest.mark.rule("K26")
def test_a_write_without_space_gives_the_reserve_up_and_succeeds(disk: RecordingDisk) -> None:
    class Full(RecordingDisk):
        """Takes no new entry log as long as the reserve is there."""

        def before(self, call: str, path: str) -> None:
            if call == "open" and path.endswith(".log") and path not in self.names and "/ledgers/reserve" in self.names:
                raise OSError(errno.ENOSPC, "no space left", path)

    disk = Full()
    engine, workers = open_engine(disk, WITH_RESERVE)
    answers: list[BaseException | None] = []
    add(engine, 1, 0)
    engine.when_durable(answers.append)
    workers.pump()
    assert answers == [None] and not disk.exists("/ledgers/reserve")
    assert engine.state is EngineState.READ_ONLY
    with pytest.raises(DiskFullError):
        add(engine, 1, 1)


@pytest.mark.rule("K26", "V4")
def test_a_checkpoint_without_space_gives_the_reserve_up_and_succeeds(disk: RecordingDisk) -> None:
    """Nothing but a checkpoint frees journals and dead logs: it must not wait for space itself."""

    class Full(RecordingDisk):
        full = False

        def before(self, call: str, path: str) -> None:
            if self.full and call == "write" and path.endswith(".index") and "/ledgers/reserve" in self.names:
                raise OSError(errno.ENOSPC, "no space left", path)

    disk = Full()
    engine, workers = open_engine(disk, WITH_RESERVE)
    fill(engine, workers, 0, 12, size=1000)
    disk.full = True
    answers: list[BaseException | None] = []
    engine.collect([lid(1)], answers.append)
    workers.pump()
    assert answers == [None] and not disk.exists("/ledgers/reserve")
    assert engine.state is EngineState.READ_ONLY
    assert engine.stats.removed_logs > 0, "what the checkpoint was asked for is done by the one that succeeds"


@pytest.mark.rule("K26", "V8")
def test_space_that_cannot_be_told_is_taken_for_none(disk: RecordingDisk) -> None:
    class Mute(RecordingDisk):
        mute = False

        def space(self, path: str) -> Space:
            if self.mute:
                raise OSError(errno.EIO, "input/output error", path)
            return super().space(path)

    disk = Mute()
    engine, _ = open_engine(disk, WITH_RESERVE)
    told = on_state(engine)
    disk.mute = True
    engine.check_space()
    assert told[0][0] is EngineState.READ_ONLY and "cannot be read" in told[0][1]
    disk.mute = False
    engine.check_space()
    assert told[1][0] is EngineState.WRITABLE


def test_a_reserve_that_is_not_there_frees_nothing(disk: RecordingDisk) -> None:
    disk.make_directories("/ledgers")
    assert not give_up_reserve(WITH_RESERVE, disk)


@pytest.mark.rule("K26")
def test_a_start_is_given_the_reserve_and_then_all_spares_but_one(disk: RecordingDisk) -> None:
    for path in (
        "/ledgers/reserve",
        "/journal/01.spare",
        "/journal/02.spare",
        "/journal/03.spare",
        "/journal/04.journal",
    ):
        disk.open(path, create=True).truncate(WITH_RESERVE.journal_file_bytes)
    disk.open("/journal/05.spare", create=True).truncate(WITH_RESERVE.journal_file_bytes - 4096)
    assert give_up_space(WITH_RESERVE, disk)
    assert not disk.exists("/ledgers/reserve") and len(disk.list("/journal")) == 5
    assert give_up_space(WITH_RESERVE, disk)
    assert disk.list("/journal") == ["03.spare", "04.journal"], "one that is whole stays"
    assert not give_up_space(WITH_RESERVE, disk)
    disk.open("/journal/05.spare", create=True).close()
    disk.faults["unlink", ".spare"] = OSError(errno.EIO, "input/output error")
    assert not give_up_space(WITH_RESERVE, disk)
