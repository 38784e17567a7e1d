"""The scrub of a disk that is in use: everything is read, what rots is found, and what follows depends on the file."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from bookkeeper.errors import CorruptionError, DataUnknownError, NoSuchEntryError
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.base.manifest import read_manifest
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.entry_log.entry_log_file import log_name
from bookkeeper.storage.scrub import file_checks
from bookkeeper.storage.scrub.damage import DamagedPlace, FileKind
from bookkeeper.storage.scrub.scrub_notes import ScrubNotes
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, add, lid, open_engine, read

UNLIMITED = replace(CONFIG, scrub_bytes_per_s=0)


class Lived:
    """A bookie's disk that is in use, with ledgers 1 and 2 in several logs."""

    def __init__(self, disk: RecordingDisk | None = None, *, entries: int = 60) -> None:
        self.disk = disk or RecordingDisk()
        self.engine, self.workers = open_engine(self.disk, UNLIMITED)
        self.problems: list[str] = []
        self.engine.scrubber.report_problem = lambda text, error: self.problems.append(text)
        for entry_id in range(entries):
            for ledger in (1, 2):
                add(self.engine, ledger, entry_id, size=200)
            self.engine.when_durable(ignore)
            self.workers.pump()
        self.covered()

    def covered(self) -> None:
        self.engine.checkpoint(ignore)
        self.workers.pump()

    def scrubbed(self) -> list[str]:
        """The damage that a scrub finds."""
        ended: list[BaseException | None] = []
        self.engine.scrubber.run_now(ended.append)
        self.workers.pump()
        assert ended == [None]
        return [str(each) for each in self.engine.scrubber.damages]

    def place_of(self, ledger: int, entry_id: int) -> tuple[str, int]:
        """The file of an entry, and where its payload begins there."""
        for log_id in self.engine._entry_logs.logs:
            path = f"/ledgers/{log_name(log_id)}"
            if (at := self.disk.read_file(path).find(b"%d/%d ." % (ledger, entry_id))) >= 0:
                return path, at
        raise AssertionError("it is in no log")

    def flip(self, path: str, offset: int) -> None:
        file = self.disk.open(path)
        byte = file.pread(1, offset)[0]
        file.pwrite(bytes([byte ^ 0x40]), offset)
        file.close()


def ignore(error: BaseException | None) -> None:
    assert error is None


@pytest.mark.rule("K30")
def test_every_byte_is_read_and_whole_files_pass() -> None:
    lived = Lived()
    assert lived.scrubbed() == [] and not lived.engine.suspects
    stats = lived.engine.stats
    assert stats.scrub_passes == 1 and stats.scrub_damages == 0
    assert stats.scrubbed_bytes >= sum(log.end - BLOCK for log in lived.engine._entry_logs.logs.values())
    assert lived.problems == [] and lived.engine.scrubber.sentences() == ()


@pytest.mark.rule("K30", "B5")
def test_the_ledger_of_a_rotten_record_is_suspect_at_once_until_it_is_whole_again() -> None:
    lived = Lived()
    told: list[frozenset[int]] = []
    engine = lived.engine
    engine.scrubber.on_suspects(lambda: told.append(engine.suspects))
    path, at = lived.place_of(2, 5)
    lived.flip(path, at)
    (damage,) = lived.scrubbed()
    assert path in damage and told == [frozenset({2})] and engine.suspects == {2}
    with pytest.raises(DataUnknownError):
        engine.entries(lid(2))
    assert engine.entries(lid(1)), "the other ledger is whole"
    assert isinstance(read(engine, lived.workers, 2, 99), NoSuchEntryError), "the index knows what was here"
    assert isinstance(read(engine, lived.workers, 2, 5), CorruptionError)
    assert engine.stats.scrub_damages == 1 and len(lived.problems) == 1
    add(engine, 2, 60)  # its writer goes on
    assert lived.engine.compactor.schedule.left, "the log is not compacted"

    engine.append_entry(lid(2), b"k" * 20, _entry_of(lived, 2, 5), recovery=True)
    engine.when_durable(ignore)
    lived.workers.pump()
    assert engine.end_suspicion(lid(2), engine.suspicion(lid(2)))
    assert not engine.suspects and engine.entries(lid(2))
    assert isinstance(read(engine, lived.workers, 2, 5), bytes)
    assert lived.scrubbed() == [damage] and engine.stats.scrub_damages == 1, "the place is known, and counted once"


def _entry_of(lived: Lived, ledger: int, entry_id: int) -> bytes:
    from tests.bookkeeper.storage.workload import make_entry

    return make_entry(ledger, entry_id, size=200)


@pytest.mark.rule("K30", "B5")
def test_suspects_outlive_a_restart_and_what_was_deleted_is_none() -> None:
    lived = Lived()
    for ledger in (1, 2):
        lived.flip(*lived.place_of(ledger, 5))
    lived.scrubbed()
    assert lived.engine.suspects == {1, 2}
    lived.engine.collect({lid(1)}, ignore)
    lived.workers.pump()
    lived.engine.close(ignore)
    lived.workers.pump()
    engine, _ = open_engine(lived.disk, UNLIMITED)
    assert engine.suspects == {2} and engine.report.limbo_reason is None
    with pytest.raises(DataUnknownError):
        engine.entries(lid(2))
    told: list[bool] = []
    engine.scrubber.on_suspects(lambda: told.append(True))
    assert told, "whoever repairs them is told"


@pytest.mark.rule("K30", "K27", "B7")
def test_a_reader_that_meets_damage_has_the_log_looked_at_at_once() -> None:
    lived = Lived()
    lived.flip(*lived.place_of(2, 5))
    assert isinstance(read(lived.engine, lived.workers, 2, 5), CorruptionError)
    lived.workers.pump()
    assert lived.engine.suspects == {2} and lived.engine.stats.scrub_passes == 0
    assert isinstance(read(lived.engine, lived.workers, 2, 5), CorruptionError)
    lived.workers.pump()
    assert lived.engine.stats.scrub_damages == 1


@pytest.mark.rule("K30", "G4")
def test_a_log_that_cannot_be_compacted_makes_its_ledgers_suspect() -> None:
    lived = Lived()
    lived.flip(*lived.place_of(2, 5))
    lived.engine.collect({lid(1)}, ignore)
    lived.workers.pump()
    ended: list[BaseException | None] = []
    lived.engine.compact(ended.append, major=True)
    lived.workers.pump()
    assert ended == [None] and lived.engine.suspects == {2}


@pytest.mark.rule("K30", "K19")
def test_a_damaged_page_of_the_index_makes_every_negative_unknown_until_it_is_rebuilt() -> None:
    lived = Lived()
    segment = next(name for name in lived.disk.list("/ledgers") if name.endswith(".index"))
    for segment in (name for name in lived.disk.list("/ledgers") if name.endswith(".index")):
        if len(lived.disk.read_file(f"/ledgers/{segment}")) > BLOCK + 300:
            lived.flip(f"/ledgers/{segment}", BLOCK + 1)
            break
    assert "index page" in lived.scrubbed()[0]
    assert isinstance(read(lived.engine, lived.workers, 1, 99), DataUnknownError)
    lived.engine.close(ignore)
    lived.workers.pump()
    engine, _ = open_engine(lived.disk, UNLIMITED)
    assert engine.report.rebuilt


@pytest.mark.rule("K30")
def test_a_damaged_manifest_is_written_anew() -> None:
    lived = Lived()
    lived.flip("/ledgers/manifest", 30)
    assert "manifest" in lived.scrubbed()[0]
    lived.workers.pump()
    assert read_manifest(lived.disk, "/ledgers") is not None


@pytest.mark.rule("K30")
def test_a_damaged_group_of_the_journal_is_made_needless_by_a_checkpoint() -> None:
    lived = Lived(entries=4)
    for entry_id in range(4, 8):
        add(lived.engine, 1, entry_id, size=200)
        lived.engine.when_durable(ignore)
        lived.workers.pump()
    path = next(
        f"/journal/{name}"
        for name in lived.disk.list("/journal")
        if name.endswith(".journal") and b"1/4 ." in lived.disk.read_file(f"/journal/{name}")
    )
    lived.flip(path, lived.disk.read_file(path).index(b"1/4 ."))
    before = lived.engine.stats.checkpoints
    assert "group" in lived.scrubbed()[0]
    lived.workers.pump()
    assert lived.engine.stats.checkpoints > before and not lived.engine.suspects
    lived.engine._let_go(None)
    engine, workers = open_engine(lived.disk, UNLIMITED)
    assert engine.report.limbo_reason is None
    assert all(isinstance(read(engine, workers, 1, entry_id), bytes) for entry_id in range(8))


@pytest.mark.rule("K30")
def test_files_that_are_replaced_while_they_are_read_are_no_damage() -> None:
    """Compaction and checkpoints go on beside a scrub: step by step, in every order that the queue gives."""
    lived = Lived()
    for round_ in range(6):
        ended: list[BaseException | None] = []
        lived.engine.scrubber.run_now(ended.append)
        for entry_id in range(60 + 10 * round_, 70 + 10 * round_):
            add(lived.engine, 3, entry_id, size=300)
            lived.engine.when_durable(ignore)
            lived.workers.step()
        if round_ == 3:
            lived.engine.collect({lid(1)}, ignore)
        if round_ == 4:
            lived.engine.compact(lambda error: None, major=True)
        lived.engine.checkpoint(ignore)
        lived.workers.pump()
        assert ended == [None], round_
    assert lived.engine.scrubber.damages == [] and not lived.engine.suspects


def test_what_passes_by_itself_is_tried_again_and_other_errors_cost_one_file() -> None:
    lived, later = Lived(), Later()
    scrubber = lived.engine.scrubber
    scrubber.call_later = later.call
    opened = lived.disk.open

    def fails(path: str, **how: bool) -> object:
        if path.endswith("000001.log"):
            raise OSError(errno.EMFILE, "too many open files", path)
        return opened(path, **how)

    lived.disk.open = fails  # type: ignore[method-assign, assignment]
    ended: list[BaseException | None] = []
    scrubber.run_now(ended.append)
    later.run(lived.workers, 20)
    assert ended == [] and "tries again" in " ".join(scrubber.sentences())
    lived.disk.open = opened  # type: ignore[method-assign]
    later.run(lived.workers, 50)
    assert ended == [None] and scrubber.damages == [] and scrubber.sentences() == ()

    scrubber.state_files = lambda: map(_breaks, [1])
    scrubber.run_now(ended.append)
    later.run(lived.workers, 50)
    assert ended == [None, None] and "ended unexpectedly" in lived.problems[-1]


def test_a_check_of_many_small_pieces_is_gone_through_to_its_end() -> None:
    lived, read_pieces = Lived(), list[int]()

    def pieces() -> Iterator[int | DamagedPlace]:
        for at in range(200):
            read_pieces.append(at)
            yield 1
        yield DamagedPlace(FileKind.STATE, 0, "/d/VERSION", 0, 0, "it is rotten")

    lived.engine.scrubber.state_files = pieces
    assert len(lived.scrubbed()) == 1
    assert read_pieces[-1] == 199


def _breaks(_item: int) -> int:
    raise RuntimeError("nobody expected this")


class Later:
    """Timers that fire when the test says so."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.slept = 0.0

    def call(self, seconds: float, callback: Callable[[], None]) -> object:
        self.timers.append((seconds, callback))
        return None

    def run(self, workers: QueueWorkers, times: int) -> None:
        workers.pump()
        for _ in range(times):
            if not self.timers:
                return
            seconds, callback = self.timers.pop(0)
            self.slept += seconds
            callback()
            workers.pump()


@pytest.mark.rule("K30")
def test_damage_that_a_reader_meets_does_not_wait_for_a_slow_pass() -> None:
    lived, later = Lived(), Later()
    scrubber = lived.engine.scrubber
    scrubber.config = replace(CONFIG, scrub_bytes_per_s=0, scrub_period_s=1e6)
    scrubber.call_later = later.call
    scrubber.recall()
    scrubber.begin()
    later.run(lived.workers, 1)
    assert scrubber.schedule.running and later.timers[-1][0] > 1000.0, "it takes its time"
    assert scrubber.report()["next_pass_in_s"] is None, "this one goes on"
    lived.flip(*lived.place_of(2, 5))
    assert isinstance(read(lived.engine, lived.workers, 2, 5), CorruptionError)
    slow = [timer for timer in later.timers if timer[0] > 1000.0]
    later.timers = [timer for timer in later.timers if timer[0] <= 1000.0]
    later.run(lived.workers, 2)
    assert lived.engine.suspects == {2} and lived.engine.stats.scrub_passes == 0
    assert scrubber.schedule.running and slow, "and goes on"


@pytest.mark.rule("K30")
def test_a_log_that_gives_way_in_the_middle_is_read_from_its_beginning_in_the_same_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_checks, "STEP_BYTES", 1)
    lived = Lived()
    scrubber = lived.engine.scrubber
    first, other = sorted(scrubber.checkpointer.manifest.logs)[:2]
    path = f"/ledgers/{log_name(first)}"
    lived.flip(path, lived.disk.read_file(path).rindex(b"/"))
    scrubber.run_now(ignore)
    while not ((file := scrubber._file) and (file.kind, file.number) == (FileKind.LOG, first) and scrubber._read):
        assert lived.workers.step()
    scrubber.recheck_log(other)
    lived.workers.pump()
    assert [damage.number for damage in scrubber.damages] == [first] and lived.engine.stats.scrub_passes == 1


@pytest.mark.rule("K30")
def test_it_begins_by_itself_and_keeps_to_its_rate() -> None:
    lived, later = Lived(), Later()
    now = [0.0]
    config = replace(CONFIG, scrub_bytes_per_s=1000, scrub_period_s=100.0)
    scrubber = lived.engine.scrubber
    scrubber.config, scrubber.call_later, scrubber.monotonic = config, later.call, lambda: now[0]
    scrubber.recall()
    scrubber.begin()
    for _ in range(500):
        if not later.timers or lived.engine.stats.scrub_passes == 2:
            break
        seconds, callback = later.timers.pop(0)
        now[0] += seconds
        callback()
        lived.workers.pump()
    stats = lived.engine.stats
    assert stats.scrub_passes == 2 and now[0] > 100.0
    assert stats.scrubbed_bytes / now[0] <= 1000 * 1.2
    report = scrubber.report()
    assert report["damaged"] == [] and report["suspects"] == [] and not report["running"]


def test_a_stop_ends_who_waits_and_nothing_goes_on() -> None:
    lived = Lived()
    ended: list[BaseException | None] = []
    lived.engine.scrubber.run_now(ended.append)
    lived.workers.step()
    lived.engine.close(ignore)
    lived.workers.pump()
    assert len(ended) == 1 and isinstance(ended[0], Exception)
    assert lived.engine.stats.scrub_passes == 0


def test_notes_that_are_damaged_are_made_anew() -> None:
    lived = Lived()
    lived.scrubbed()
    lived.flip("/ledgers/scrub", 20)
    lived.engine.close(ignore)
    lived.workers.pump()
    engine, _ = open_engine(lived.disk, UNLIMITED)
    assert not engine.scrubber.schedule.ended and "cannot be used" in " ".join(engine.scrubber.sentences())


def test_engines_without_a_loop_do_not_begin_by_themselves() -> None:
    lived = Lived()
    lived.engine.scrubber.begin()
    lived.workers.pump()
    assert lived.engine.stats.scrubbed_bytes == 0 and isinstance(lived.engine, Engine)


@pytest.mark.rule("K30", "K9")
def test_the_unused_end_of_a_journal_file_is_no_damage() -> None:
    """A group that does not fit begins a new file; the rest of the old one holds zeros, or what it held before."""
    lived = Lived()
    files = 0
    for entry_id in range(60, 75):
        add(lived.engine, 1, entry_id, size=5000)
        lived.engine.when_durable(ignore)
        lived.workers.pump()
        files = sum(name.endswith(".journal") for name in lived.disk.list("/journal"))
    assert files > 2
    assert lived.scrubbed() == []


@pytest.mark.rule("K30")
def test_one_bad_read_is_no_damage() -> None:
    """A cable, memory, a drive that reads better the second time: damage is what two checks find in one place."""
    lived = Lived()
    path, at = lived.place_of(2, 5)
    opened, bad = lived.disk.open, [True]

    def once(wanted: str, **how: bool) -> object:
        file = opened(wanted, **how)
        if wanted == path and bad:
            bad.clear()
            pread = file.pread

            def flipped(size: int, offset: int) -> bytes:
                data = bytearray(pread(size, offset))
                if offset <= at < offset + len(data):
                    data[at - offset] ^= 1
                return bytes(data)

            file.pread = flipped  # type: ignore[method-assign]
        return file

    lived.disk.open = once  # type: ignore[method-assign, assignment]
    assert lived.scrubbed() == [] and not lived.engine.suspects and lived.problems == [] and not bad


@pytest.mark.rule("K30")
def test_a_second_rotten_place_of_a_log_is_looked_at_when_a_reader_meets_it() -> None:
    lived = Lived()
    path, at = lived.place_of(2, 5)
    lived.flip(path, at)
    assert isinstance(read(lived.engine, lived.workers, 2, 5), CorruptionError)
    lived.workers.pump()
    other, where = next(
        (entry, lived.place_of(1, entry)[1]) for entry in range(60) if lived.place_of(1, entry)[0] == path and entry > 5
    )
    lived.flip(path, where)
    assert isinstance(read(lived.engine, lived.workers, 1, other), CorruptionError)
    lived.workers.pump()
    assert lived.engine.suspects == {1, 2} and lived.engine.stats.scrub_damages == 2


@pytest.mark.rule("K30")
def test_damage_of_one_log_does_not_explain_what_a_reader_meets_at_the_same_place_of_another() -> None:
    lived = Lived()
    lived.flip(*lived.place_of(2, 5))
    lived.scrubbed()
    scrubber, stats = lived.engine.scrubber, lived.engine.stats
    (damage,) = scrubber.damages
    before = stats.scrubbed_bytes
    scrubber.recheck_log(damage.number, damage.offset)
    lived.workers.pump()
    assert stats.scrubbed_bytes == before
    scrubber.recheck_log(
        next(log_id for log_id in lived.engine._entry_logs.logs if log_id != damage.number), damage.offset
    )
    lived.workers.pump()
    assert stats.scrubbed_bytes > before


def test_what_only_a_reader_meets_is_not_looked_for_again_and_again() -> None:
    lived = Lived()
    log_id = next(iter(lived.engine._entry_logs.logs))
    for _ in range(5):
        lived.engine.scrubber.recheck_log(log_id, BLOCK)
        lived.workers.pump()
    assert 0 < lived.engine.stats.scrubbed_bytes < 2 * CONFIG.entry_log_bytes


@pytest.mark.rule("K30", "K19")
def test_a_damaged_index_is_not_forgotten_by_a_crash() -> None:
    lived = Lived()
    for segment in (name for name in lived.disk.list("/ledgers") if name.endswith(".index")):
        if len(lived.disk.read_file(f"/ledgers/{segment}")) > BLOCK + 300:
            lived.flip(f"/ledgers/{segment}", BLOCK + 1)
            break
    assert "index page" in lived.scrubbed()[0]
    lived.engine._let_go(None)  # without a clean stop
    engine, _ = open_engine(lived.disk, UNLIMITED)
    assert engine.report.rebuilt


@pytest.mark.rule("K30", "K19")
def test_a_pass_begins_anew_after_a_crash_while_no_manifest_tells_of_a_damaged_index() -> None:
    lived = Lived()
    scrubber = lived.engine.scrubber
    lived.scrubbed()
    assert scrubber.schedule.ended
    lived.engine._unknowns.found_index_damage(CorruptionError("a page"))
    scrubber._remember()
    lived.workers.pump()
    lived.engine._let_go(None)
    engine, _ = open_engine(lived.disk, UNLIMITED)
    assert not engine.scrubber.schedule.ended and engine.scrubber.schedule.behind is None


@pytest.mark.rule("K30", "B5")
def test_damage_that_is_found_while_a_copy_is_verified_keeps_its_ledger_suspect() -> None:
    lived = Lived()
    engine = lived.engine
    lived.flip(*lived.place_of(2, 5))
    lived.scrubbed()
    since = engine.suspicion(lid(2))
    lived.flip(*lived.place_of(2, 50))
    lived.scrubbed()
    assert not engine.end_suspicion(lid(2), since) and engine.suspects == {2}
    assert engine.end_suspicion(lid(2), engine.suspicion(lid(2))) and not engine.suspects


@pytest.mark.rule("K30", "B5")
def test_a_ledger_that_only_an_entry_log_knows_is_suspect_and_one_that_was_deleted_is_not() -> None:
    lived = Lived()
    lived.engine.collect({lid(1)}, ignore)
    lived.workers.pump()
    lived.engine.scrubber.suspect_unindexed([1, 77])
    lived.workers.pump()
    assert lived.engine.suspects == {77}
    assert isinstance(read(lived.engine, lived.workers, 77, 0), DataUnknownError)
    lived.engine._let_go(None)
    engine, workers = open_engine(lived.disk, UNLIMITED)
    assert engine.suspects == {77} and isinstance(read(engine, workers, 77, 0), DataUnknownError)


@pytest.mark.rule("K30", "K19", "B5")
@pytest.mark.parametrize("found", ["while it runs", "by a start"])
def test_suspects_of_a_start_that_rebuilds_the_index_have_no_honest_negative(found: str) -> None:
    """Rebuilt from a log that was put in another one's place, the index does not know what was lost."""
    lived = Lived()
    lived.engine.scrubber.suspect([2])
    lived.workers.pump()
    segment = next(
        path for path in lived.disk.names if path.endswith(".index") and len(lived.disk.read_file(path)) > BLOCK + 300
    )
    if found == "by a start":
        lived.flip(segment, len(lived.disk.read_file(segment)) - 3)
    else:
        lived.flip(segment, BLOCK + 1)
        lived.scrubbed()
    lived.engine._let_go(None)
    for _ in range(2):  # the second start rebuilds nothing
        engine, workers = open_engine(lived.disk, UNLIMITED)
        assert isinstance(read(engine, workers, 2, 99), DataUnknownError)
        assert isinstance(read(engine, workers, 1, 99), NoSuchEntryError)
        engine._let_go(None)


def test_notes_are_written_once_for_many_changes_and_before_the_end() -> None:
    lived = Lived()
    engine = lived.engine
    engine.scrubber.suspect(range(1000, 3000))
    before = len(lived.disk.ops)
    for ledger in range(1000, 2990):
        engine.end_suspicion(lid(ledger), engine.suspicion(lid(ledger)))
    lived.workers.pump()
    assert sum(op.kind == "rename" for op in lived.disk.ops[before:]) <= 2
    engine.scrubber.suspect([5000])
    engine.scrubber.suspect([6000])
    engine.close(ignore)
    lived.workers.pump()
    again, _ = open_engine(lived.disk, UNLIMITED)
    assert again.suspects == {*range(2990, 3000), 5000, 6000}


@pytest.mark.rule("K30")
def test_after_a_crash_behind_the_end_of_a_pass_the_next_one_is_not_due_at_once() -> None:
    lived = Lived()
    lived.scrubbed()
    lived.engine._let_go(None)
    engine, _ = open_engine(lived.disk, UNLIMITED)
    assert engine.scrubber.schedule.ended


@pytest.mark.rule("K30")
def test_a_pass_is_noted_log_by_log_so_that_the_next_start_goes_on_with_it() -> None:
    lived, ended, behind = Lived(), list[BaseException | None](), set[object]()
    lived.engine.scrubber.run_now(ended.append)
    while not ended:
        assert lived.workers.step()
        if "scrub" in lived.disk.list("/ledgers"):
            behind.add(ScrubNotes.decode(lived.disk.read_file("/ledgers/scrub"), "notes").behind)
    assert len(behind - {None}) >= len(lived.engine._entry_logs.logs) - 1 > 1


@pytest.mark.rule("K30")
def test_rotten_notes_are_written_anew_and_after_a_restart_without_them_everything_is_read_at_once() -> None:
    lived = Lived()
    lived.flip(*lived.place_of(2, 5))
    lived.scrubbed()
    lived.flip("/ledgers/scrub", 20)
    lived.scrubbed()
    assert ScrubNotes.decode(lived.disk.read_file("/ledgers/scrub"), "notes").suspects == [2]
    lived.flip("/ledgers/scrub", 20)
    lived.engine._let_go(None)
    engine, workers = open_engine(lived.disk, replace(CONFIG, scrub_bytes_per_s=0, scrub_period_s=1e9))
    later = Later()
    engine.scrubber.call_later = later.call
    engine.scrubber.begin()
    for _ in range(60):
        if not engine.suspects:
            later.run(workers, 1)
    assert engine.suspects == {2} and later.slept < 1000.0


def test_damage_that_was_mended_is_not_told_after_the_next_check() -> None:
    lived = Lived()
    lived.flip("/ledgers/manifest", 30)
    assert len(lived.scrubbed()) == 1
    assert lived.scrubbed() == [] and lived.engine.stats.scrub_damages == 1


def test_the_damage_of_a_log_that_is_gone_is_not_told() -> None:
    lived = Lived()
    lived.flip(*lived.place_of(2, 5))
    assert len(lived.scrubbed()) == 1
    lived.engine.collect({lid(1), lid(2)}, ignore)
    lived.workers.pump()
    add(lived.engine, 3, 0)
    lived.covered()
    lived.engine.checkpoint(ignore)
    lived.workers.pump()
    assert lived.engine.scrubber.damages == [] and lived.engine.scrubber.report()["damaged"] == []


def test_the_loop_never_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    lived = Lived()
    on_worker = [False]
    step = lived.workers.step

    def stepped() -> bool:
        if not lived.workers.jobs:
            return False
        name, job, done = lived.workers.jobs[0]

        def inside() -> object:
            on_worker[0] = True
            try:
                return job()
            finally:
                on_worker[0] = False

        lived.workers.jobs[0] = (name, inside, done)
        return step()

    monkeypatch.setattr(lived.workers, "step", stepped)
    for call in ("open", "list", "exists", "read_file"):
        original = getattr(lived.disk, call)

        def checked(*args: object, original: Callable[..., object] = original, **how: object) -> object:
            assert on_worker[0], "on the loop"
            return original(*args, **how)

        monkeypatch.setattr(lived.disk, call, checked)
    assert lived.scrubbed() == []
    lived.engine.scrubber.report()


@pytest.mark.rule("K30")
def test_files_are_read_past_the_page_cache() -> None:
    disk = RecordingDisk(direct=True)
    lived, past = Lived(disk), set[str]()
    opened = disk.open

    def noted(path: str, **how: bool) -> object:
        if how.get("direct"):
            past.add(path)
        return opened(path, **how)

    disk.open = noted  # type: ignore[method-assign, assignment]
    disk.forgotten.clear()
    assert lived.scrubbed() == []
    assert {path for path in disk.names if path.endswith((".log", ".index"))} <= past
    assert {path for path, _, _ in disk.forgotten} <= {"/ledgers/manifest"}, "readers keep theirs"
    path, at = lived.place_of(2, 5)
    lived.flip(path, at)
    lived.scrubbed()
    assert any(name == path and begin <= at < begin + size for name, begin, size in disk.forgotten)


@pytest.mark.rule("K30")
def test_what_a_known_stretch_has_taken_is_repaired_once_and_not_after_every_pass() -> None:
    lived = Lived()
    engine = lived.engine
    lived.flip(*lived.place_of(2, 5))
    lived.scrubbed()
    assert engine.end_suspicion(lid(2), engine.suspicion(lid(2)))
    assert len(lived.scrubbed()) == 1 and not engine.suspects
    engine.close(ignore)
    lived.workers.pump()
    lived.engine, lived.workers = open_engine(lived.disk, UNLIMITED)
    assert len(lived.scrubbed()) == 1 and not lived.engine.suspects
    lived.flip(*lived.place_of(1, 6))
    assert lived.scrubbed() and lived.engine.suspects == {1, 2}, "the stretch has grown"


@pytest.mark.rule("K26", "K30")
def test_a_full_disk_starts_with_the_suspects_of_a_rebuilt_index() -> None:
    lived = Lived()
    lived.engine.scrubber.suspect([2])
    lived.workers.pump()
    lived.engine._let_go(None)
    engine, _ = open_engine(lived.disk, UNLIMITED)
    lived.disk.faults["open", "scrub.tmp"] = OSError(errno.ENOSPC, "no space", "/ledgers/scrub.tmp")
    engine.scrubber.recall(rebuilt=True)
    assert engine.suspects == {2} and "could not be written" in " ".join(engine.scrubber.sentences())
