"""Starts: locked, looked at, replayed, covered, in this order; and again after one that did not get through."""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import replace

import pytest

from bookkeeper.errors import BookKeeperError, DirectoryLockedError, LedgerFencedError, UnsupportedFormatError
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import stamp
from bookkeeper.storage.base.results import NOTHING_KNOWN, EngineState
from bookkeeper.storage.start.start import start
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.start.crashed_life import a_life, manifest_of
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    PER_LEDGER,
    Life,
    add,
    close,
    everything,
    lid,
    make_entry,
    open_engine,
    read,
)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


@pytest.mark.rule("B11")
@pytest.mark.parametrize("taken", ["/journal/lock", "/ledgers/lock"])
def test_a_directory_in_use_is_left_alone_and_the_other_one_let_go(disk: RecordingDisk, taken: str) -> None:
    disk.locks.add(taken)
    with pytest.raises(DirectoryLockedError, match=taken.removesuffix("/lock")):
        start(CONFIG, disk, 0, NOTHING_KNOWN)
    assert disk.locks == {taken} and disk.ops == []


def test_new_directories_are_told_from_old_ones(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    assert engine.report.fresh and engine.report.clean and list(engine.ledgers()) == []
    close(engine, workers)
    engine, workers = open_engine(disk)
    assert not engine.report.fresh and engine.report.clean and not engine.report.rebuilt
    assert not workers.jobs, "no worker has anything to do yet"


@pytest.mark.rule("K17", "K14", "K10")
def test_any_number_of_starts_and_crashes_ends_with_the_same() -> None:
    files, wanted = a_life()
    disk = RecordingDisk(files)
    marks: list[tuple[int, int, int]] = []
    for _ in range(6):
        engine, workers = open_engine(disk)
        assert everything(engine, workers) == wanted
        mark = manifest_of(disk)
        marks.append((mark.file_id, mark.sequence, mark.next_log))
    assert marks == sorted(marks) and len({file_id for file_id, _, _ in marks}) == 6
    assert len(disk.list("/journal")) <= CONFIG.journal_spares + 3
    with pytest.raises(LedgerFencedError):
        add(engine, 1, 99)


class Stop(BaseException):
    """The process ends here."""


class Interrupted(RecordingDisk):
    """Ends, or fails, at one call."""

    def __init__(self, files: dict[str, bytes], at: int, error: BaseException) -> None:
        super().__init__(files)
        self.at, self.error = at, error

    def before(self, call: str, path: str) -> None:
        self.at -= 1
        if self.at == 0 or (self.at < 0 and isinstance(self.error, Stop)):
            raise self.error


@pytest.mark.rule("K17", "K28", "K3")
@pytest.mark.parametrize("error", [Stop(), OSError(errno.EIO, "input/output error"), OSError(errno.EMFILE, "too many")])
def test_a_start_that_ends_anywhere_is_made_good_by_the_next(error: BaseException) -> None:
    files, wanted = a_life()
    through = False
    at = 0
    while not through:
        at += 1
        assert at < 500
        disk = Interrupted(files, at, error)
        before = manifest_of(disk)
        try:
            open_engine(disk)
        except (Stop, OSError, BookKeeperError) as failure:
            assert not disk.locks, "whoever tries again can"
            if isinstance(failure, OSError) and manifest_of(disk) == before:
                left = set(disk.list("/ledgers")) - {path.rpartition("/")[2] for path in files}
                begun = any(name.endswith(".index") for name in left)  # whether the checkpoint stands is not known
                assert begun or not any(name.endswith(".log") for name in left), (at, left)
        else:
            through = disk.at > 0
        engine, workers = open_engine(RecordingDisk(disk.files()))
        assert everything(engine, workers) == wanted, at
        assert engine.report.limbo_reason is None and engine.report.quarantined == []
    assert at > 40


def cut_short(config: StorageConfig, *, damaged: bool) -> dict[str, bytes]:
    """The files of a life with several unfinished logs; perhaps the journal has lost its beginning."""
    life = Life(RecordingDisk(), config)
    for entry_id in range(3):
        life.add(1, entry_id)
        life.add(2, entry_id)
        life.pump()
    life.checkpoint()
    life.pump()
    for entry_id in range(3, 6):
        life.add(1, entry_id)
        life.add(3, entry_id)
        life.pump()
    files = life.disk.files()
    return {name: data for name, data in files.items() if not (damaged and name.endswith(".journal"))}


@pytest.mark.rule("K26", "K28")
@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "without its journal"])
@pytest.mark.parametrize("error", [Stop(), OSError(errno.ENOSPC, "no space left")], ids=["killed", "no space"])
def test_a_start_that_ends_anywhere_leaves_no_file_open(error: BaseException, damaged: bool) -> None:
    """What is unlinked and open keeps its space, which the next try on a full disk needs; and a bookie that goes on
    without this directory needs the descriptors."""
    config = replace(PER_LEDGER, open_logs_max=1)
    files, at, disk = cut_short(config, damaged=damaged), 0, Interrupted({}, 0, error)
    while at == 0 or disk.at <= 0:
        at += 1
        assert at < 500
        disk = Interrupted(files, at, error)
        with suppress(Stop, OSError, BookKeeperError):
            start(config, disk, 0, NOTHING_KNOWN)
            continue
        assert disk.left_open == [], at
    assert at > 30


def test_a_start_that_refuses_a_file_leaves_none_open() -> None:
    files = cut_short(PER_LEDGER, damaged=False)
    name = max(name for name in files if name.endswith(".log"))
    header = bytearray(files[name][:4096])
    header[:512] = stamp(b"BKEL", 99, bytes(24), pad_to=512)
    for few in (1, 9):
        disk = RecordingDisk({**files, name: bytes(header) + files[name][4096:]})
        with pytest.raises(UnsupportedFormatError):
            start(replace(PER_LEDGER, open_logs_max=few), disk, 0, NOTHING_KNOWN)
        assert disk.left_open == [] and not disk.locks


@pytest.mark.rule("K26", "V8")
def test_a_full_disk_is_started_read_only_and_serves(disk: RecordingDisk) -> None:
    config: StorageConfig = replace(CONFIG, reserve_bytes=8192)
    engine, workers = open_engine(disk, config)
    entry = add(engine, 1, 0)
    engine.when_durable(lambda error: None)
    workers.pump()

    class Full(RecordingDisk):
        """Has room for nothing new until the reserve is given up."""

        def before(self, call: str, path: str) -> None:
            if call == "write" and "/ledgers/reserve" in self.names:
                raise OSError(errno.ENOSPC, "no space left", path)

    full = Full(disk.files())
    full.free = 0
    engine, workers = open_engine(full, config)
    assert engine.state is EngineState.READ_ONLY and not full.exists("/ledgers/reserve")
    assert read(engine, workers, 1, 0) == entry == make_entry(1, 0)
    answers: list[BaseException | None] = []
    engine.fence(lid(1), KEY, answers.append)
    workers.pump()
    assert answers == [None]
