"""Crash-point enumeration: whatever a crash leaves, what was acknowledged is there and nothing else.

The second half plants the bugs that this is meant to find, and sees it find them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from bookkeeper.errors import BookKeeperError
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import remove_files
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.checkpoint import checkpoint
from bookkeeper.storage.checkpoint.checkpoint import CheckpointScope
from bookkeeper.storage.checkpoint.checkpointer import Checkpointer
from bookkeeper.storage.compaction.compaction_steps import CompactionSteps
from bookkeeper.storage.compaction.log_copy import CompactionFiles
from bookkeeper.storage.compaction.schedule import LogUse
from bookkeeper.storage.entry_log.entry_log_file import Usage, log_name
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind, state_record
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.start import evidence
from bookkeeper.storage.start.evidence import ReplayFindings
from bookkeeper.storage.updates import fencing
from tests.bookkeeper.storage.recording_disk import RecordingDisk, RecordingFile, crash_images
from tests.bookkeeper.storage.workload import (
    CONFIG,
    LEDGER_LOGS,
    PER_LEDGER,
    Truth,
    compacting_life,
    everything,
    ledger_logs_life,
    open_engine,
    random_life,
    random_loop_life,
    standard_life,
    violations,
)


def boot_and_check(
    truth: Truth, at: int, files: dict[str, bytes], config: StorageConfig = CONFIG
) -> tuple[list[str], RecordingDisk]:
    """Boot the real engine on an image, compare with the truth, crash at once and boot again, in the shared layout."""
    disk = RecordingDisk(files)
    try:
        engine, workers = open_engine(disk, config)
        bad = violations(truth, at, engine, workers)
        first = everything(engine, workers)
        after = disk.files()
        again, workers = open_engine(RecordingDisk(after))
        if everything(again, workers) != first:
            bad.append("the second start gives another state")
    except (BookKeeperError, OSError, AssertionError) as error:
        bad = [f"{type(error).__name__}: {error}"]
    return bad, disk


def enumerate_crashes(
    seed: int,
    per_point: int,
    direct: bool,
    life: Callable[[RecordingDisk], Truth] = standard_life,
    config: StorageConfig = CONFIG,
) -> Iterator[tuple[str, list[str]]]:
    """Every image, and what was wrong with it. A tenth crash again inside their start."""
    rng = random.Random(seed)
    disk = RecordingDisk(direct=direct)
    truth = life(disk)
    for at, kept, files in crash_images({}, disk.ops, rng, per_point):
        where = f"after {at} operations ({disk.ops[at - 1].kind} {disk.ops[at - 1].path}), kept {kept}"
        bad, booted = boot_and_check(truth, at, files, config)
        yield where, bad
        if rng.random() < 0.1 and booted.ops:
            images = list(crash_images(files, booted.ops[: rng.randrange(len(booted.ops)) + 1], rng, 4))
            again, kept_again, files_again = images[-1]
            bad, _ = boot_and_check(truth, at, files_again, config)
            yield f"{where}; in the start after {again}, kept {kept_again}", bad


@pytest.mark.rule("B1", "B2", "B3", "K1", "K2", "K3", "K7", "K8", "K9", "K10", "K12", "K13", "K14", "K16", "K17", "K31")
@pytest.mark.parametrize("direct", [False, True])
def test_every_crash_keeps_what_was_acknowledged(direct: bool) -> None:
    seen = 0
    for where, bad in enumerate_crashes(7, 10, direct):
        assert not bad, f"{where}: {bad}"
        seen += 1
    assert seen >= 1000
    print(f"{seen} images")


@pytest.mark.rule("B1", "B2", "B3", "K7", "K9", "K13", "K14", "K16", "K17", "G1")
@pytest.mark.parametrize("seed", range(6))
def test_every_crash_of_a_random_life(seed: int) -> None:
    def life(disk: RecordingDisk) -> Truth:
        return random_life(disk, random.Random(seed))

    for where, bad in enumerate_crashes(seed, 4, bool(seed % 2), life):
        assert not bad, f"{where}: {bad}"


@pytest.mark.rule("B1", "B2", "B3", "K7", "K9", "K13", "K14", "K16", "K17", "K26")
@pytest.mark.parametrize("seed", range(4))
def test_every_crash_of_a_life_with_groups_on_the_loop(seed: int) -> None:
    for where, bad in enumerate_crashes(seed, 3, bool(seed % 2), partial(loop_life, seed)):
        assert not bad, f"{where}: {bad}"


@pytest.mark.rule("G3", "B3", "K10", "K13", "K16", "K17", "K19", "M6")
@pytest.mark.parametrize("seed", range(3))
def test_every_crash_of_a_life_with_compactions(seed: int) -> None:
    def life(disk: RecordingDisk) -> Truth:
        return compacting_life(disk, random.Random(seed))

    seen = 0
    for where, bad in enumerate_crashes(seed, 2, bool(seed % 2), life):
        assert not bad, f"{where}: {bad}"
        seen += 1
    assert seen >= 200
    print(f"{seen} images")


@pytest.mark.rule("B1", "B2", "B3", "K1", "K5", "K9", "K13", "K15", "K33", "K34")
def test_every_crash_with_a_log_per_ledger() -> None:
    """One of everything, as in the shared layout; the next start has the one layout or the other."""
    seen = 0
    for config in (CONFIG, PER_LEDGER):
        life = partial(standard_life, config=PER_LEDGER)
        for where, bad in enumerate_crashes(8, 5, False, life, config):
            assert not bad, f"{where}: {bad}"
            seen += 1
    assert seen >= 1000
    print(f"{seen} images")


@pytest.mark.rule("B1", "K5", "K9", "K13", "K15", "K33", "K34", "G1")
@pytest.mark.parametrize("seed", range(6))
def test_every_crash_of_a_life_with_a_log_per_ledger(seed: int) -> None:
    def life(disk: RecordingDisk) -> Truth:
        return ledger_logs_life(disk, random.Random(seed))

    for where, bad in enumerate_crashes(seed, 4, bool(seed % 2), life, (CONFIG, PER_LEDGER)[seed % 3 == 0]):
        assert not bad, f"{where}: {bad}"


@pytest.mark.rule("B1", "K9", "K13", "K26", "K33", "G3")
@pytest.mark.parametrize("seed", range(2))
def test_every_crash_of_other_lives_with_a_log_per_ledger(seed: int) -> None:
    def loop(disk: RecordingDisk) -> Truth:
        return random_loop_life(disk, random.Random(seed), **LEDGER_LOGS)

    def compacting(disk: RecordingDisk) -> Truth:
        return compacting_life(disk, random.Random(seed), PER_LEDGER)

    for life in (loop, compacting):
        for where, bad in enumerate_crashes(seed, 3, bool(seed % 2), life):
            assert not bad, f"{life.__name__}, {where}: {bad}"


def loop_life(seed: int, disk: RecordingDisk) -> Truth:
    return random_loop_life(disk, random.Random(seed))


def test_the_life_that_is_cut_short_has_everything_in_it() -> None:
    disk = RecordingDisk()
    truth = standard_life(disk)
    done = {(op.kind, op.path.rpartition(".")[2], op.target.rpartition(".")[2]) for op in disk.ops}
    assert {("rename", "spare", "journal"), ("rename", "journal", "spare")} <= done
    assert ("rename", "tmp", "/ledgers/manifest") in done
    assert {("unlink", "log", ""), ("unlink", "index", ""), ("unlink", "/ledgers/dirty", "")} <= done
    assert len(truth.acked) >= 30 and len(truth.fenced) == 2 and truth.lacs and truth.gone


# -- planted bugs ---------------------------------------------------------------------------------------------


def ack_before_sync(patch: pytest.MonkeyPatch) -> None:
    original = RecordingFile.sync
    patch.setattr(RecordingFile, "sync", lambda self: None if ".journal" in self.path else original(self))


def ack_when_handed_over(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit.when_durable

    def early(self: GroupCommit, callback: Callable[[BaseException | None], None]) -> None:
        original(self, lambda error: None)
        callback(None)

    patch.setattr(GroupCommit, "when_durable", early)


def fence_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    def forced(ledger_id: int, kind: StateRecordKind, body: bytes = b"", lac: int = -1) -> bytes:
        return state_record(ledger_id, StateRecordKind.FORCED if kind is StateRecordKind.FENCED else kind, body, lac)

    patch.setattr(fencing, "state_record", forced)


def no_directory_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RecordingDisk, "sync_directory", lambda self, path: None)


def mark_ahead(patch: pytest.MonkeyPatch) -> None:
    original = Manifest.write

    def ahead(self: Manifest, disk: Disk, directory: str, before: Manifest | None) -> None:
        self.sequence += 1
        original(self, disk, directory, before)
        self.sequence -= 1

    patch.setattr(Manifest, "write", ahead)


def mark_moves_back(patch: pytest.MonkeyPatch) -> None:
    original = Manifest.write
    calls = [0]

    def back(self: Manifest, disk: Disk, directory: str, before: Manifest | None) -> None:
        calls[0] += 1
        if before is not None and before.file_id and calls[0] % 3 == 0:
            self.file_id, self.sequence = before.file_id - 1, before.sequence
        original(self, disk, directory, None)

    patch.setattr(Manifest, "write", back)


def journal_goes_before_the_manifest(patch: pytest.MonkeyPatch) -> None:
    original = Manifest.write

    def late(self: Manifest, disk: Disk, directory: str, before: Manifest | None) -> None:
        for name in disk.list("/journal"):
            if name.endswith(".journal") and int(name[:-8], 16) < self.file_id:
                disk.unlink(f"/journal/{name}")
        disk.sync_directory("/journal")
        original(self, disk, directory, before)

    patch.setattr(Manifest, "write", late)


def entry_logs_not_synced(patch: pytest.MonkeyPatch) -> None:
    original = RecordingFile.sync
    patch.setattr(RecordingFile, "sync", lambda self: None if ".log" in self.path else original(self))


def manifest_not_synced(patch: pytest.MonkeyPatch) -> None:
    original = RecordingFile.sync
    patch.setattr(RecordingFile, "sync", lambda self: None if ".tmp" in self.path else original(self))


def index_not_synced(patch: pytest.MonkeyPatch) -> None:
    original = RecordingFile.sync
    patch.setattr(RecordingFile, "sync", lambda self: None if ".index" in self.path else original(self))


def snapshot_covers_too_much(patch: pytest.MonkeyPatch) -> None:
    original = checkpoint.run_checkpoint

    def eager(disk: Disk, config: object, snap: CheckpointScope) -> object:
        snap.unsynced.clear()
        return original(disk, config, snap)  # type: ignore[arg-type]

    patch.setattr("bookkeeper.storage.checkpoint.checkpointer.run_checkpoint", eager)


def every_torn_group_is_rot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("bookkeeper.storage.start.replay.rot_in", lambda file, file_id, offset, sequence: "it is not whole")


def what_is_left_over_is_evidence(patch: pytest.MonkeyPatch) -> None:
    original = evidence.logged_only

    def eager(
        disk: Disk, directory: str, before: Manifest, replayed: ReplayFindings, made: Container[str]
    ) -> str | None:
        return original(disk, directory, replace(before, next_log=0, logs={}), replayed, made)

    patch.setattr("bookkeeper.storage.start.replay.logged_only", eager)


PLANTED = [
    ack_before_sync,
    ack_when_handed_over,
    fence_in_memory_only,
    no_directory_sync,
    mark_ahead,
    mark_moves_back,
    journal_goes_before_the_manifest,
    entry_logs_not_synced,
    manifest_not_synced,
    index_not_synced,
    snapshot_covers_too_much,
    every_torn_group_is_rot,
    what_is_left_over_is_evidence,
]


@pytest.mark.rule("K13")
def test_a_checkpoint_that_does_not_wait_for_the_entry_log_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a crash that shows it, or before that by the checkpoint itself, which finds no log that it could sync."""
    monkeypatch.setattr(GroupCommit, "when_logged", GroupCommit.when_durable)
    found: list[object] = []
    for seed in range(12):
        try:
            found += [bad for _, bad in enumerate_crashes(3, 3, False, partial(loop_life, seed)) if bad]
        except AssertionError as error:
            found.append(error)
        if found:
            return
    pytest.fail("no crash showed it")


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found = next((bad for _, bad in enumerate_crashes(7, 10, direct=False) if bad), None)
    assert found, "no crash showed it"


# -- planted bugs of compaction -------------------------------------------------------------------------------


def source_goes_first(patch: pytest.MonkeyPatch) -> None:
    original = Checkpointer.cover_moves

    def early(self: Checkpointer, emptied: Iterable[int], callback: Callable[[BaseException | None], None]) -> None:
        names = [log_name(log_id) for log_id in emptied]
        self.workers.get("checkpoint").submit(
            lambda: remove_files(self.disk, self.config.ledger_dir, names), lambda _result, _error: None
        )
        original(self, emptied, callback)

    patch.setattr(Checkpointer, "cover_moves", early)


def copies_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompactionFiles, "sync", lambda self: None)
    original = EntryLogs.written_aside

    def clean(self: EntryLogs, log_id: int, file: File, end: int, usage: Usage) -> None:
        original(self, log_id, file, end, usage)
        self.logs[log_id].dirty = False
        self.logs[log_id].written = False

    patch.setattr(EntryLogs, "written_aside", clean)


def reservation_not_covered(patch: pytest.MonkeyPatch) -> None:
    original = CompactionSteps._surveyed

    def at_once(self: CompactionSteps, uses: list[LogUse] | BaseException) -> None:
        kept = self.checkpointer
        self.checkpointer = SimpleNamespace(  # type: ignore[assignment]
            commit=kept.commit, checkpoint=lambda done, collect: done(None)
        )
        try:
            original(self, uses)
        finally:
            self.checkpointer = kept

    patch.setattr(CompactionSteps, "_surveyed", at_once)


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    "plant", [source_goes_first, copies_not_synced, reservation_not_covered], ids=lambda plant: plant.__name__
)
def test_a_planted_bug_of_compaction_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for seed in range(3):

        def life(disk: RecordingDisk, seed: int = seed) -> Truth:
            return compacting_life(disk, random.Random(seed))

        if any(bad for _, bad in enumerate_crashes(seed, 3, False, life)):
            return
    pytest.fail("no crash showed it")
