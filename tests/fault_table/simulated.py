"""One cell on a simulated disk: a life of the storage engine into which the fault comes, its end, and what is left.

After a sync that failed the simulated disk does what kernels do: what was written reads back, is not on the disk, and
the next sync succeeds. So every life is ended twice: by a power cut soon after the fault was met; and late, by the end
of the process alone, a start, and then the power cut (K24).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from bookkeeper.errors import (
    BookieFailedError,
    BookKeeperError,
    DiskFullError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bookkeeper.ids import EntryId
from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine, EngineState
from bookkeeper.testing.world import Fault, SimDisk
from tests.bookkeeper.storage.recording_disk import QueueWorkers
from tests.bookkeeper.storage.workload import CONFIG, KEY, lid, make_entry
from tests.fault_table.table import Cell, Result, When

SETTINGS: Final = replace(
    CONFIG, reserve_bytes=8192, journal_spares=1, major_compaction_ratio=1.0, log_sync_bytes=4096, split_bytes=3000
)
PER_LEDGER: Final = replace(SETTINGS, entry_log_per_ledger=True, ledger_buffer_bytes=4096, open_logs_max=1)
"""A log per ledger, few of them open."""

PATHS: Final = {
    "journal": ".journal",
    "spare": ".spare",
    "log": ".log",
    "index": ".index",
    "manifest": "manifest",
    "dirty": "dirty",
    "reserve": "reserve",
    "journal directory": "/journal",
    "ledger directory": "/ledgers",
}


@dataclass
class Trial:
    """What came of one cell."""

    cell: Cell
    met: bool = False
    """Whether any call met the fault."""
    result: Result = Result.GOES_ON
    wrong: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.met or (not self.wrong and self.result in self.cell.allowed)

    def __str__(self) -> str:
        return f"{self.cell}: {self.result.value}; {self.wrong[:3] or 'nothing is wrong'}"


class _EnoughError(Exception):
    """The life ends here."""


class FaultyLife:
    """An engine on a simulated disk, and what it has acknowledged."""

    def __init__(self, disk: Disk, settings: StorageConfig = SETTINGS) -> None:
        self.disk, self.settings = disk, settings
        self.ends: Callable[[], bool] = lambda: False
        """Whether the life is over."""
        self.told: Callable[[str], None] = lambda line: None
        """Hears of each promise, at the moment at which it is made."""
        self.acked: dict[tuple[int, int], bytes] = {}
        self.fenced: set[int] = set()
        self.gone: set[int] = set()
        self.following = dict.fromkeys((1, 2, 3), 0)
        self.states: set[EngineState] = set()
        self.refused = 0
        self.wrong: list[str] = []

    def open(self) -> None:
        self.workers = QueueWorkers()
        self.engine = Engine.open(self.settings, self.disk, self.workers)
        self.states.add(self.engine.state)
        self.engine.on_state(lambda state, _reason: self.states.add(state))

    def pump(self) -> None:
        self.workers.pump()
        self.engine.check_space()
        self.engine.finish_logs()
        self.workers.pump()
        if self.ends():
            raise _EnoughError

    def add(self, ledger_id: int, count: int = 2, size: int = 900) -> None:
        first = self.following[ledger_id]
        entries = {(ledger_id, at): make_entry(ledger_id, at, size=size) for at in range(first, first + count)}
        failed = self.engine.state is EngineState.FAILED
        try:
            for entry in entries.values():
                self.engine.append_entry(lid(ledger_id), KEY, entry)
        except (DiskFullError, BookieFailedError):
            self.refused += 1
            return
        self.following[ledger_id] += count

        def done(error: BaseException | None) -> None:
            if error is None and failed:
                self.wrong.append("it acknowledges after it has failed")
            elif error is None:
                self.acked.update(entries)
                for _, at in entries:
                    self.told(f"acked {ledger_id} {at}")
            else:
                self.refused += 1

        self.engine.when_durable(done)

    def fence(self, ledger_id: int) -> None:
        def done(error: BaseException | None) -> None:
            if error is None:
                self.fenced.add(ledger_id)
                self.told(f"fenced {ledger_id}")

        with suppress(BookieFailedError, DiskFullError):
            self.engine.fence(lid(ledger_id), KEY, done)

    def collect(self, ledger_id: int) -> None:
        self.gone.add(ledger_id)
        self.told(f"gone {ledger_id}")
        del self.following[ledger_id]
        with suppress(BookieFailedError):
            self.engine.collect({lid(ledger_id)}, lambda error: None)

    def begin(self) -> None:
        """Something is there before a fault comes."""
        for ledger_id in self.following:
            self.add(ledger_id)
        self.pump()
        self.states.clear()

    def work(self) -> None:
        """A bit of everything: logs and journals roll, checkpoints, a collection, a compaction."""
        for _ in range(6):
            for ledger_id in self.following:
                self.add(ledger_id)
            self.pump()
        self.engine.checkpoint(lambda error: None)
        self.pump()
        self.fence(9)
        self.pump()
        self.collect(min(self.following))
        self.pump()
        self.engine.compact(lambda error: None, major=True)
        self.pump()
        for _ in range(4):
            for ledger_id in self.following:
                self.add(ledger_id)
            self.pump()
        self.read_all(strict=False)
        self.engine.checkpoint(lambda error: None)
        self.add(max(self.following))
        self.pump()

    def read_all(self, *, strict: bool) -> None:
        """What was acknowledged is there; while faults go on (``strict`` is false) it may be that nobody knows."""
        for (ledger_id, entry_id), entry in self.acked.items():
            if ledger_id in self.gone:
                continue
            got: list[bytes | BaseException] = []
            self.engine.read(lid(ledger_id), EntryId(entry_id), got.append)
            self.workers.pump()
            answer = got[0] if len(got) == 1 else BookieFailedError(f"{len(got)} replies")
            denied = isinstance(answer, (NoSuchEntryError, NoSuchLedgerError))
            if denied or (isinstance(answer, bytes) and answer != entry) or (strict and answer != entry):
                self.wrong.append(f"acknowledged entry {entry_id} of ledger {ledger_id}: {answer!r:.80}")

    def close(self) -> None:
        self.engine.close(lambda error: None)
        self.workers.pump()

    def check(self, after: str) -> None:
        """A start without faults."""
        before = len(self.wrong)
        try:
            self.open()
        except (BookKeeperError, OSError) as error:
            self.wrong.append(f"no start: {error!r}")
        else:
            self.read_all(strict=True)
            if self.engine.report.limbo_reason is not None:
                self.wrong.append(f"a false alarm: {self.engine.report.limbo_reason}")
            self.wrong += [
                f"the fence of {each} is gone" for each in self.fenced if not self.engine.is_fenced(lid(each))
            ]
        self.wrong[before:] = [f"after {after}: {each}" for each in self.wrong[before:]]


def fault_of(cell: Cell) -> Fault:
    call = "pwrite" if cell.call == "short pwrite" else cell.call
    return Fault(
        operation=call,
        code=cell.code,
        path=PATHS[cell.place],
        after=cell.when.passing,
        times=cell.when.failing,
        partial=cell.call == "short pwrite",
    )


def try_cell(cell: Cell, seed: int = 1, settings: StorageConfig = SETTINGS) -> Trial:
    """Live, meet the fault, end in both ways, and look."""
    trial = Trial(cell)
    ends = [(True, False), (False, False), *([(True, True)] if cell.place in ("journal", "spare") else [])]
    for soon, direct in ends:
        disk, fault = SimDisk(Random(seed)), fault_of(cell)
        disk.direct = direct
        for path in ("/journal", "/ledgers"):
            disk.make_directories(path)
        life = FaultyLife(disk, settings)
        life.open()
        (_starting if cell.starting else _serving)(life, disk, fault, trial, soon)
        trial.met |= fault.times < cell.when.failing
        life.ends = lambda: False
        disk.faults.clear()
        if not soon:
            disk.process_died()
            life.check("a restart of the process")
        disk.crash(keep=0.0)
        life.check("a power cut" if soon else "a restart and a power cut")
        trial.wrong += life.wrong
    return trial


def _serving(life: FaultyLife, disk: SimDisk, fault: Fault, trial: Trial, soon: bool) -> None:
    life.begin()
    disk.faults.append(fault)
    life.ends = lambda: soon and fault.times < trial.cell.when.failing
    guarded(life, life.work)
    life.ends = lambda: False
    if soon:
        return
    trial.result = result_of(life)
    if trial.cell.when in (When.FIRST, When.THIRD) and trial.result is not Result.FAILS and fault.times == 0:
        before = len(life.acked)  # it has passed: adds are taken again
        life.pump()
        life.add(max(life.following))
        life.pump()
        if len(life.acked) == before:
            life.wrong.append("it takes no adds after the fault has passed")
    if not trial.cell.when.passing:
        guarded(life, life.close)


def _starting(life: FaultyLife, disk: SimDisk, fault: Fault, trial: Trial, _soon: bool) -> None:
    life.work()
    life.begin()
    disk.process_died()
    disk.faults.append(fault)
    try:
        life.open()
    except (BookKeeperError, OSError):
        trial.result = Result.NO_START
    else:
        life.read_all(strict=False)
        trial.result = result_of(life)


def guarded(life: FaultyLife, work: Callable[[], object]) -> None:
    """Errors of the bookie's own kind are answers; any other is a bookie that falls over."""
    try:
        work()
    except (BookKeeperError, _EnoughError):
        pass
    except Exception as error:
        life.wrong.append(f"it falls over: {error!r}")


def result_of(life: FaultyLife) -> Result:
    if EngineState.FAILED in life.states:
        return Result.FAILS
    return Result.REFUSES if EngineState.READ_ONLY in life.states or life.refused else Result.GOES_ON
