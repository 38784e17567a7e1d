"""The engine against a dict: whatever is done in whatever order, with compactions, collections, crashes and restarts in
between. One seed is one life; ``make model LIVES=10000`` lives more of them.

The second half plants bugs, and sees that this finds them.
"""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkeeper.errors import BookKeeperError, LedgerFencedError, NoSuchEntryError, NoSuchLedgerError
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.checkpoint import checkpoint
from bookkeeper.storage.checkpoint.checkpoint import CheckpointScope
from bookkeeper.storage.compaction import chunk, compaction_steps
from bookkeeper.storage.compaction.chunk import LedgerRecords
from bookkeeper.storage.compaction.log_copy import CompactionFiles
from bookkeeper.storage.entry_log.entry_log_file import Usage
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.index.moved_entries import MovedEntries
from bookkeeper.storage.ledger_logs.ledger_log_layout import LedgerLogLayout
from bookkeeper.storage.ledger_logs.ledger_logs import GroupPart, LedgerLogs
from bookkeeper.storage.updates import ledger_updates
from tests.bookkeeper.storage.recording_disk import RecordingDisk, RecordingFile, image_of_a_crash
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    everything,
    lid,
    make_adds,
    make_entry,
    open_engine,
    read_batch,
)
from tests.examples_of import examples

SIZE = 400


def made(ledger: int, entry_id: int, write: int) -> bytes:
    return make_entry(ledger, entry_id, lac=write, size=SIZE)


@dataclass
class Model:
    """One ledger. What was asked for is visible at once, and durable when it was acknowledged."""

    maybe: dict[int, int] = field(default_factory=dict)
    """Entry -> which write of all, the newest that was accepted. Entries are made of these two numbers."""
    durable: dict[int, int] = field(default_factory=dict)
    lac: int = -1
    durable_lac: int = -1
    """Of the explicit LAC."""
    fenced: bool = False
    durable_fence: bool = False
    dropped: bool = False
    durable_drop: bool = False
    """After a drop that is not durable a crash may bring the rest back."""

    @property
    def seen(self) -> bool:
        """Anything of it has to be here. Its key may be alone: it goes ahead of the first entry."""
        return not self.dropped and bool(self.maybe or self.fenced or self.lac >= 0)


class EngineAgainstADict:
    """Does what it is told to the engine and to the model, and compares."""

    def __init__(self, rng: random.Random, layouts: Callable[[], dict[str, Any]] = dict) -> None:
        """
        Args:
            layouts: the settings in which the next start differs.
        """
        self.rng, self.cached, self.layouts = rng, rng.random() < 0.5, layouts
        self.disk = RecordingDisk()
        self.before: dict[str, bytes] = {}
        """The files when ``disk`` was new."""
        self.config = replace(CONFIG, page_cache_pages=2, resident_ledgers_max=2, major_compaction_ratio=1.0)
        self.models = {number: Model() for number in range(1, 5)}
        self.writes = 0
        self.open()

    def open(self) -> None:
        self.engine, self.workers = open_engine(self.disk, replace(self.config, **self.layouts()))
        self.disk.cached = self.cached

    def append(self, ledger: int, ids: list[int], recovery: bool) -> None:
        model = self.models[ledger]
        self.writes += 1
        adds = make_adds(ledger, ids, SIZE, lac=self.writes)  # LACs may differ when an entry comes again
        if model.dropped or (model.fenced and not recovery):
            with pytest.raises(LedgerFencedError):
                self.engine.append(adds.runs[0], adds, recovery=recovery)
            return
        self.engine.append(adds.runs[0], adds, recovery=recovery)
        news = dict.fromkeys(ids, self.writes)
        model.maybe.update(news)
        self.engine.when_durable(lambda error: model.durable.update(news) if error is None else None)

    def fence(self, ledger: int) -> None:
        model = self.models[ledger]

        def durable(error: BaseException | None) -> None:
            model.durable_fence |= error is None

        self.engine.fence(lid(ledger), KEY, durable)
        model.fenced |= not model.dropped

    def explicit_lac(self, ledger: int, lac: int) -> None:
        model, blob = self.models[ledger], b"%d" % lac

        def durable(error: BaseException | None) -> None:
            if error is None:
                model.durable_lac = max(model.durable_lac, lac)

        if model.dropped:
            with pytest.raises(LedgerFencedError):
                self.engine.set_explicit_lac(lid(ledger), KEY, lac, blob, durable)
            return
        self.engine.set_explicit_lac(lid(ledger), KEY, lac, blob, durable)
        model.lac = max(model.lac, lac)

    def step(self, jobs: int) -> None:
        for _ in range(jobs):
            self.workers.step()

    def compact(self, jobs: int) -> None:
        """A compaction begins. Some way into it entries that it may have copied come again, or live no more."""
        self.workers.pump()
        self.engine.compact(lambda error: None, major=True)
        self.step(jobs)
        for _ in range(self.rng.randrange(3)):
            ledger = self.some_ledger()
            if (here := sorted(self.models[ledger].maybe)) and not self.models[ledger].dropped:
                first = self.rng.choice(here)
                self.append(ledger, [each for each in here if first <= each < first + 20], recovery=True)
        if self.rng.random() < 0.2:
            self.collect(self.some_ledger(), at_once=False)

    def collect(self, ledger: int, at_once: bool) -> None:
        model = self.models[ledger]

        def durable(error: BaseException | None) -> None:
            model.durable_drop |= error is None and model.dropped

        if lid(ledger) in self.engine.ledgers():
            model.dropped = True
            self.models[len(self.models) + 1] = Model()  # another one begins
        self.engine.collect([lid(ledger)], durable)
        if at_once:
            self.workers.pump()

    def restart(self, clean: bool) -> None:
        self.workers.pump()
        if clean:
            self.engine.close(lambda error: None)
            self.workers.pump()
        self.open()
        assert self.engine.report.clean is clean and self.engine.report.limbo_reason is None
        for model in self.models.values():
            assert model.dropped or (model.durable, model.durable_lac) == (model.maybe, model.lac)
            assert model.durable_fence or not model.fenced
            assert model.durable_drop or not model.dropped

    def crash(self) -> None:
        """The power fails: what was acknowledged is there, and of the rest nothing that was not asked for."""
        self.before = image_of_a_crash(self.before, self.disk.ops, self.rng)
        self.disk = RecordingDisk(self.before)
        self.open()
        assert self.engine.report.limbo_reason is None, "a false alarm"
        found = everything(self.engine, self.workers)
        assert found.keys() <= self.models.keys()
        for ledger, model in self.models.items():
            entries, fenced, _, explicit = found.get(ledger, ({}, False, -1, None))
            if model.dropped and lid(ledger) in self.engine.dropped:
                model.durable_drop = True
                continue
            assert not model.durable_drop, f"ledger {ledger} is back"
            assert model.durable.keys() <= entries.keys() <= model.maybe.keys(), f"ledger {ledger}"
            writes = {at: int.from_bytes(entry[16:24], "big") for at, entry in entries.items()}
            assert all(model.durable.get(at, 0) <= write <= model.maybe[at] for at, write in writes.items())
            assert entries == {at: made(ledger, at, write) for at, write in writes.items()}
            assert model.durable_fence <= fenced <= model.fenced, f"the fence of ledger {ledger}"
            lac = -1 if explicit is None else explicit[0]
            assert model.durable_lac <= lac <= model.lac and (explicit is None or explicit[1] == b"%d" % lac)
            self.models[ledger] = Model(writes, dict(writes), lac, lac, fenced, fenced)

    def batch(self, ledger: int, entry_id: int, count: int) -> None:
        wanted: list[bytes] = []
        model = self.models[ledger]
        while len(wanted) < count and entry_id + len(wanted) in model.maybe and not model.dropped:
            wanted.append(made(ledger, entry_id + len(wanted), model.maybe[entry_id + len(wanted)]))
        if wanted:
            got = read_batch(self.engine, self.workers, ledger, entry_id, count=count)
            assert got and got == wanted[: len(got)]
        else:
            with pytest.raises((NoSuchEntryError, NoSuchLedgerError)):
                read_batch(self.engine, self.workers, ledger, entry_id, count=count)

    def everything_accepted_can_be_read(self) -> None:
        for ledger, model in self.models.items():
            assert self.engine.is_fenced(lid(ledger)) == (model.fenced or model.dropped)
            here = lid(ledger) in self.engine.ledgers()
            assert here >= model.seen and not (here and model.dropped), f"ledger {ledger}"
            if not here:
                continue
            runs = self.engine.entries(lid(ledger))
            assert [run.first + at for run in runs for at in range(run.count)] == sorted(model.maybe)
            assert self.engine.last_entry(lid(ledger)) == max(model.maybe, default=-1)
            assert self.engine.lac(lid(ledger)) == max(model.lac, *model.maybe.values(), -1)

    def compare(self) -> None:
        self.workers.pump()
        found = everything(self.engine, self.workers)
        for ledger, model in self.models.items():
            if not model.dropped:
                entries = found[ledger][0] if ledger in found else {}
                assert entries == {at: made(ledger, at, write) for at, write in model.maybe.items()}

    def validate(self) -> None:
        """The machines derive their state again."""
        self.engine._commit.groups.validate_state()
        if isinstance(layout := self.engine._layout, LedgerLogLayout):
            layout.logs.validate_state()

    def some_ledger(self) -> int:
        """Seldom one that was dropped."""
        living = [ledger for ledger, model in self.models.items() if not model.dropped]
        return self.rng.choice(living if self.rng.random() < 0.95 else list(self.models))

    def any_step(self) -> None:
        """Something, in the shares in which it does most harm."""
        rng, ledger = self.rng, self.some_ledger()
        model, recovery = self.models[ledger], rng.random() < 0.3
        following = max((each for each in model.maybe if each < 400), default=-1) + 1
        chance = rng.randrange(100)
        if chance < 26:
            first = rng.choice([following, following, rng.randrange(0, 40), 500, 5000, 2**50])
            steps = [rng.choice([1, 1, 1, 1, 2, 3, 700]) for _ in range(rng.randrange(12))]
            self.append(ledger, [*accumulate([first, *steps])], recovery)
        elif chance < 40:  # so much that an entry log is full
            self.append(ledger, list(range(following, following + 20)), recovery)
            self.workers.pump()
        elif chance < 55:
            self.compact(rng.choice([0, 1000, *range(1, 25)]))
            if recovery:
                self.compare()
        elif chance < 67:
            self.step(rng.randrange(1, 8))
        elif chance < 73:
            self.engine.checkpoint(lambda error: None)
        elif chance < 79:
            self.collect(ledger, at_once=recovery)
        elif chance < 82:
            self.fence(ledger)
        elif chance < 85:
            self.explicit_lac(ledger, rng.randrange(60))
        elif chance < 90:
            self.batch(ledger, rng.randrange(60), rng.randrange(1, 9))
        elif chance < 96:
            self.crash()
        else:
            self.restart(clean=recovery)


def live(seed: int, steps: int = 60) -> None:
    """One life; an error says which, and at which step."""
    subject = EngineAgainstADict(random.Random(seed))
    for step in range(steps):
        try:
            subject.any_step()
            subject.everything_accepted_can_be_read()
        except BaseException as error:
            error.add_note(f"life {seed}, step {step}")
            raise
    subject.compare()


@pytest.mark.rule("B1", "B3", "B5", "G3", "K9", "K13", "K17", "M6")
def test_the_engine_against_a_dict() -> None:
    for seed in range(int(os.environ.get("LIVES", "40"))):
        live(seed)


def live_with_a_log_per_ledger(seed: int, steps: int = 60) -> None:
    """One life; of every three lives one changes its layout with every other start."""
    rng = random.Random(f"layouts/{seed}")
    switching = seed % 3 == 0
    buffer, few = rng.choice([4096, 16384, 1 << 20]), rng.choice([1, 2, 100])

    def layouts() -> dict[str, Any]:
        per_ledger = not switching or rng.random() < 0.5
        return {"entry_log_per_ledger": per_ledger, "ledger_buffer_bytes": buffer, "open_logs_max": few}

    subject = EngineAgainstADict(random.Random(seed), layouts)
    for step in range(steps):
        try:
            if rng.random() < 0.1:
                subject.engine.ledger_closed(lid(subject.some_ledger()))
            if rng.random() < 0.1:
                subject.engine.check_space()
                subject.engine.finish_logs()
            subject.any_step()
            subject.validate()
            subject.everything_accepted_can_be_read()
        except BaseException as error:
            error.add_note(f"life {seed} with a log per ledger, step {step}")
            raise
    subject.compare()


@pytest.mark.rule("B1", "B3", "B5", "G1", "G3", "K5", "K9", "K13", "K17", "K33", "K34", "M6")
def test_a_log_per_ledger_against_a_dict() -> None:
    for seed in range(int(os.environ.get("LIVES", "40"))):
        live_with_a_log_per_ledger(seed)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), min_size=1, max_size=12), st.data())
def test_newer_places_win_through_freezing_and_merging(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    from bookkeeper.storage.index.entry_index import LedgerIndex

    index, model, value = LedgerIndex(), dict[int, int](), 1 << 40
    for first, count in runs:
        places = array("q", range(value, value + count))
        index.tail.extend(first, places)
        model.update(zip(range(first, first + count), places, strict=True))
        value += count
        action = data.draw(st.sampled_from(["go on", "freeze", "thaw"]))
        if action == "freeze" and index.frozen is None:
            index.freeze()
        elif action == "thaw":
            index.thaw()
    assert {entry_id: index.get_recent(entry_id) for entry_id in model} == model
    assert index.get_recent(10**6) == 0


# -- planted bugs ---------------------------------------------------------------------------------------------


def ack_before_sync(patch: pytest.MonkeyPatch) -> None:
    original = RecordingFile.sync
    patch.setattr(RecordingFile, "sync", lambda self: None if ".journal" in self.path else original(self))


def copies_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompactionFiles, "sync", lambda self: None)
    original = EntryLogs.written_aside

    def clean(self: EntryLogs, log_id: int, file: File, end: int, usage: Usage) -> None:
        original(self, log_id, file, end, usage)
        self.logs[log_id].dirty = False
        self.logs[log_id].written = False

    patch.setattr(EntryLogs, "written_aside", clean)


def what_has_changed_is_moved(patch: pytest.MonkeyPatch) -> None:
    def moved_all(page: array[int], origin: int, moved: MovedEntries, i0: int, i1: int) -> int:
        for at in range(i0, i1):
            page[moved.entry_ids[at] - origin] = moved.new[at]
        return i1 - i0

    patch.setattr(ledger_updates, "put_moved", moved_all)


def the_last_living_entry_is_left_behind(patch: pytest.MonkeyPatch) -> None:
    original = chunk.living

    def short(part: LedgerRecords, page_of: Callable[[int], array[int]]) -> LedgerRecords | None:
        found = original(part, page_of)
        return found.only(range(len(found.entry_ids) - 1)) if found is not None and len(found.entry_ids) > 1 else found

    patch.setattr(compaction_steps, "living", short)


def the_index_does_not_know_who_was_dropped(patch: pytest.MonkeyPatch) -> None:
    original = checkpoint.run_checkpoint

    def forgetful(disk: Disk, config: StorageConfig, snap: CheckpointScope) -> object:
        snap.newly_dropped.clear()
        return original(disk, config, snap)

    patch.setattr("bookkeeper.storage.checkpoint.checkpointer.run_checkpoint", forgetful)


def logs_of_the_living_are_removed(patch: pytest.MonkeyPatch) -> None:
    original = checkpoint._dead_logs

    def eager(disk: Disk, directory: str, snap: CheckpointScope) -> list[int]:
        finished = [log_id for log_id, entry in snap.logs.items() if entry.finished and log_id not in snap.keep]
        return finished[:1] or original(disk, directory, snap)

    patch.setattr(checkpoint, "_dead_logs", eager)


PLANTED = [
    ack_before_sync,
    copies_not_synced,
    what_has_changed_is_moved,
    the_last_living_entry_is_left_behind,
    the_index_does_not_know_who_was_dropped,
    logs_of_the_living_are_removed,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, BookKeeperError)):
        for seed in range(60):
            live(seed)


# -- planted bugs of a log per ledger -------------------------------------------------------------------------


def memory_is_not_looked_into(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LedgerLogs, "holding", lambda self, found: None)


def what_is_not_durable_is_written(patch: pytest.MonkeyPatch) -> None:
    """A start then finds what the journal never had."""

    def ahead(self: LedgerLogs, parts: dict[int, GroupPart], now: float) -> None:
        for log_id in parts:
            log = self._logs[log_id]
            self.writable += log.end - log.journalled
            log.journalled = max(log.end, log.journalled)
            self._ready[log_id] = log

    patch.setattr(LedgerLogs, "made_durable", ahead)


def a_checkpoint_does_not_wait_for_the_logs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LedgerLogLayout, "write_out", lambda self, callback: callback(None))
    patch.setattr(LedgerLogs, "must_sync", lambda self, ends: [])
    patch.setattr(LedgerLogs, "finished", lambda self, log_ids: [])


def descriptors_are_closed_unsynced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("bookkeeper.storage.ledger_logs.log_writes.sync", lambda file: None)


def every_log_that_has_ended_is_a_deleted_ledgers(patch: pytest.MonkeyPatch) -> None:
    original = LedgerLogs.ended_of
    patch.setattr(LedgerLogs, "ended_of", lambda self, owners: original(self, lambda owner: True))


PLANTED_IN_LEDGER_LOGS = [
    memory_is_not_looked_into,
    what_is_not_durable_is_written,
    a_checkpoint_does_not_wait_for_the_logs,
    descriptors_are_closed_unsynced,
    every_log_that_has_ended_is_a_deleted_ledgers,
]


@pytest.mark.rule("K5", "K13", "K33", "K34")
@pytest.mark.parametrize("plant", PLANTED_IN_LEDGER_LOGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_a_log_per_ledger_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, BookKeeperError, OSError)):
        for seed in range(60):
            live_with_a_log_per_ledger(seed)
