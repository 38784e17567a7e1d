"""Reads and checks every stored byte of a running bookie within a period: the shell around ``ScrubSchedule`` (K30).

A worker of its own reads; adds and reads of others never wait for it. Of each file that part is read which the last
checkpoint has covered; the journal up to what is durable.

Damage is believed when two checks have found it in the same place: what passes by itself costs nothing but the second
look. Then it is quarantined and counted, and more depends on the file:

    entry log        it is not compacted; the ledgers of which entries may be lost are *suspect* at once, until their
                     copies are whole again: which entries are here is unknown. Somebody else repairs them
                     (``on_suspects``)
    index segment    every negative is unknown until the next start has rebuilt the index (K19); a checkpoint notes that
    journal          what it holds is in the entry logs, too: a checkpoint makes it needless
    manifest         a checkpoint writes a new one
    state files      they are named for the operator

Nothing that goes wrong here ends the bookie. The next step tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.errors import BookieFailedError, BookKeeperError, CorruptionError, in_words
from bookkeeper.ids import LedgerId
from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.base.durable_file import BLOCK, replace_file
from bookkeeper.storage.base.results import Done, EngineStats, ignore
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.checkpoint.checkpointer import Checkpointer
from bookkeeper.storage.compaction.schedule import CompactionSchedule
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.journal.group_commit import GroupCommit
from bookkeeper.storage.ledgers.ledger_table import LedgerTable
from bookkeeper.storage.ledgers.unknowns import PLACES_MAX, Unknowns, newest_places
from bookkeeper.storage.scrub.damage import CheckedFile, DamagedPlace, FileKind
from bookkeeper.storage.scrub.file_checks import (
    END,
    Check,
    check_journals,
    check_log,
    check_manifest,
    check_segment,
    next_items,
)
from bookkeeper.storage.scrub.schedule import ScrubSchedule
from bookkeeper.storage.scrub.scrub_notes import NAME, ScrubNotes

FIRST_S: Final = 60.0
"""Seconds after the start before anything is read, and after a problem that passes by itself; less if the period is
short."""
AGAIN_S: Final = 1.0
"""Seconds before a file in which damage was found is read once more."""
LOOK_S: Final = 3600.0
"""So long a log in which nothing was found is not looked at again because a reader has met damage: what the reader
met was not the disk's."""


@dataclass(slots=True)
class Scrubber:
    """Owned by the loop's thread. One file at a time."""

    config: StorageConfig
    disk: Disk
    workers: StorageWorkers
    checkpointer: Checkpointer
    commit: GroupCommit
    entry_logs: EntryLogs
    ledgers: LedgerTable
    unknowns: Unknowns
    compaction: CompactionSchedule
    state: DiskState
    stats: EngineStats
    monotonic: Callable[[], float]
    call_later: Callable[[float, Callable[[], None]], object] | None
    state_files: Callable[[], Check] | None = None
    """Checks what the bookie notes about itself; set by who knows it."""
    report_problem: Callable[[str, BaseException | None], None] = lambda text, error: None
    """Gets a sentence for the log, and the error behind it if it was not expected; set by who has a log."""
    schedule: ScrubSchedule = field(init=False)
    """Set by :meth:`recall`."""
    remembered: frozenset[int] = frozenset()
    """The suspects that a start after a crash would know of."""
    _damages: list[DamagedPlace] = field(default_factory=list)
    _counted: list[str] = field(default_factory=list)
    _tell: Callable[[], None] | None = None
    _file: CheckedFile | None = None
    _check: Check | None = None
    _read: int = 0
    _found: list[DamagedPlace] = field(default_factory=list)
    """What the check of this file has found so far."""
    _began: bool = False
    _turn: int = 0
    """Steps of an earlier turn are stale."""
    _in_flight: int | None = None
    """The turn of the step that the worker has in hand."""
    _waiting: list[Done] = field(default_factory=list)
    _last_pass: float | None = None
    _trouble: str | None = None
    _found_once: dict[tuple[FileKind, int], set[tuple[str, int]]] = field(default_factory=dict)
    """Files -> damaged places that one check has found."""
    _nothing_found: dict[int, float] = field(default_factory=dict)
    """Logs that were looked at because somebody had met damage, and when nothing was found."""
    _hurry: bool = False
    """What earlier runs have found is not known: the next pass goes as fast as it may."""
    _noting: bool = False
    _unnoted: bool = False
    """The notes are not what they should be."""

    # -- from start to stop -------------------------------------------------------------------------------

    def recall(self, *, rebuilt: bool = False) -> None:
        """Read what earlier runs have noted. Blocks; part of the start.

        Args:
            rebuilt: the index was made anew from the entry logs, without what is damaged in them.
        """
        path = f"{self.config.ledger_dir}/{NAME}"
        try:
            notes = ScrubNotes.decode(self.disk.read_file(path), path) if self.disk.exists(path) else ScrubNotes()
        except (BookKeeperError, OSError) as error:
            self._trouble = f"the notes of the last scrub cannot be used: {in_words(error)}"
            notes, self._hurry = ScrubNotes(), True
        self.schedule = ScrubSchedule(
            self.config, self.monotonic(), passed_s=notes.passed_s, behind=notes.behind, ended=notes.ended
        )
        self._counted = list(notes.damaged)
        dropped = self.ledgers.dropped
        self.unknowns.suspect(ledger for ledger in notes.suspects if ledger not in dropped)
        unindexed = notes.suspects if rebuilt else notes.unindexed
        self.remembered = self.unknowns.suspects
        if self.unknowns.suspect((ledger for ledger in unindexed if ledger not in dropped), unindexed=True) and rebuilt:
            try:
                self._write_notes()()
            except OSError as error:
                self._trouble, self._unnoted = f"its notes could not be written: {in_words(error)}", True

    def begin(self) -> None:
        """Begin to scrub by itself, if it is to; needs a loop's ``call_later``."""
        if self.call_later is not None:
            self._began = True
            self._again(self._first_s)

    def stop(self) -> None:
        """The disk is being closed: nothing goes on."""
        self._end_check()
        self._began = False
        if self._unnoted:
            self.workers.get("scrub").submit(self._write_notes(), lambda _none, _error: None)
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(BookieFailedError("the scrub has ended before it was through: the disk is closing"))

    def on_suspects(self, callback: Callable[[], None]) -> None:
        """Called when ledgers have become suspect."""
        self._tell = callback
        if self.unknowns.suspects:
            callback()

    # -- asked for ----------------------------------------------------------------------------------------

    def run_now(self, callback: Done) -> None:
        """Check everything, as fast as the limit allows. ``callback(None)`` when it is through."""
        self._waiting.append(callback)
        self._end_check()
        self.schedule.begin(self.files(), self.monotonic(), hurried=True)
        self._again(0.0)

    def recheck_log(self, log_id: int, offset: int | None = None) -> None:
        """Something is wrong with an entry log, at this offset or anywhere: find out at once of which ledgers entries
        are lost, unless that is known."""
        entry = self.checkpointer.manifest.logs.get(log_id)
        if entry is None or any(each.explains(log_id, offset) for each in self._damages):
            return
        if (looked := self._nothing_found.get(log_id)) is not None and self.monotonic() - looked < LOOK_S:
            return
        self.schedule.doubt(CheckedFile(FileKind.LOG, log_id, entry.end))
        if self._in_flight is None:  # else it gives way when its step has ended
            self._give_way()
            self._again(0.0)

    def recheck_path(self, path: str, offset: int | None) -> None:
        """The same, by the file's name, as an error has it."""
        name = path.rpartition("/")[2]
        if name.endswith(".log"):
            self.recheck_log(int(name[:-4], 16), offset)

    def suspect(self, ledgers: Iterable[int] | None, *, unindexed: bool = False) -> None:
        """Entries of these ledgers (None: of any that is here) may be lost here; ``unindexed``: or the index lacks
        them."""
        chosen = self.ledgers.ledgers if ledgers is None else ledgers
        kept = (ledger for ledger in chosen if ledger not in self.ledgers.dropped)
        if self.unknowns.suspect(kept, unindexed=unindexed):
            self._remember()
            if self._tell is not None:
                self._tell()

    def suspect_unindexed(self, ledgers: Iterable[int]) -> None:
        """There are records of these ledgers that the index does not know."""
        self.suspect(ledgers, unindexed=True)

    def settled(self, ledger_id: LedgerId, suspicion: int) -> bool:
        """See :meth:`Engine.end_suspicion`."""
        done = self.unknowns.settle(ledger_id, suspicion)
        self._remember()
        return done

    # -- said ---------------------------------------------------------------------------------------------

    @property
    def damages(self) -> list[DamagedPlace]:
        """What was found when each file was last checked, the newest places; without logs and segments that are gone
        since."""
        by_name = (FileKind.LOG, FileKind.INDEX)
        self._damages = [each for each in self._damages if each.kind not in by_name or self._is_ours(each)]
        return self._damages

    def report(self) -> dict[str, object]:
        """What it does and has found, as plain data."""
        now = self.monotonic()
        files, size = self.schedule.left
        due = self.schedule.due_in_s(now)
        return {
            "running": self.schedule.running,
            "hurried": self.schedule.hurried,
            "files_left": files,
            "bytes_left": size,
            "next_pass_in_s": None if due is None or self.schedule.running else round(due),
            "seconds_since_pass": None if self._last_pass is None else round(now - self._last_pass),
            "read_bytes": self.stats.scrubbed_bytes,
            "damaged": [each.report() for each in self.damages],
            "suspects": sorted(self.unknowns.suspects),
        }

    def sentences(self) -> tuple[str, ...]:
        """What people should know: damage, and what holds the scrub up."""
        said = [f"damaged: {each}" for each in self.damages]
        if self.unknowns.suspects:
            ledgers = counted(len(self.unknowns.suspects), "ledger")
            said.append(f"entries of {ledgers} may be lost here, until the copies are whole again")
        if self.schedule.too_slow(self.monotonic()):
            said.append("the scrub cannot read everything within its period: scrub_bytes_per_s is too small")
        if self._trouble is not None:
            said.append(f"the scrub could not go on, and tries again: {self._trouble}")
        return tuple(said)

    # -- one step after the other -------------------------------------------------------------------------

    def _again(self, seconds: float) -> None:
        self._turn += 1
        turn = self._turn

        def step() -> None:
            if turn == self._turn and not self.state.closing:
                self._step()

        if seconds <= 0 or self.call_later is None:
            self.workers.get("scrub").submit(ignore, lambda _result, _error: step())
        else:
            self.call_later(seconds, step)

    def _step(self) -> None:
        if self._check is None and not self._open_next():
            return
        check = self._check
        assert check is not None
        turn = self._in_flight = self._turn

        def done(items: list[int | DamagedPlace] | None, error: BaseException | None) -> None:
            if self._in_flight == turn:
                self._in_flight = None
            if turn == self._turn and not self.state.closing:
                self._stepped(items, error)

        self.workers.get("scrub").submit(lambda: next_items(check), done)

    def _open_next(self) -> bool:
        """Choose the next file. False: there is nothing to do now."""
        now, schedule = self.monotonic(), self.schedule
        if not schedule.running and not schedule.doubts:
            due = schedule.due_in_s(now)
            if not self._began or due is None:
                return False
            if due > 0:
                self._again(due)
                return False
            schedule.begin(self.files(), now, hurried=self._hurry)
            self._hurry = False
        ran = schedule.running
        self._file = schedule.next_file()
        if self._file is None:
            if ran:
                self._pass_ended()
            if self._began and (due := schedule.due_in_s(now)) is not None:
                self._again(max(due, 1.0))
            return False
        self._found, self._read = [], 0
        self._check = self._check_of(self._file)
        return True

    def _stepped(self, items: list[int | DamagedPlace] | None, error: BaseException | None) -> None:
        file = self._file
        assert file is not None
        if items is None:  # a passing problem, or one that nobody expected
            self._trouble = in_words(error) if error is not None else "no result"
            if not isinstance(error, OSError):
                self.report_problem("the check of a file ended unexpectedly, and the file is left out", error)
                self.schedule.file_done()
            else:
                self.schedule.put_off()
            self._end_check()
            return self._again(self._first_s) if self.call_later is not None else None
        count = sum(item for item in items[:-1] if isinstance(item, int))
        self._found += [item for item in items if isinstance(item, DamagedPlace)]
        self._read += count
        self.stats.scrubbed_bytes += count
        if items[-1] == END:
            if self._found and self.checkpointer.running:  # it may be replacing this very file: judge after it
                return self._again(AGAIN_S)
            if self._is_new():
                self.schedule.doubt(file)
                self._end_check()
                return self._again(max(AGAIN_S, self.schedule.at_limit_s(count)))
            self._trouble = None
            self._file_done(file)
        if self.schedule.gives_way:
            self._give_way()
            return self._again(self.schedule.at_limit_s(count))
        left = file.size - self._read if self._file is not None else 0
        return self._again(max(self.schedule.pause_s(count, left, self.monotonic()), 0.0))

    def _give_way(self) -> None:
        """Begin the file anew later, if another one is in doubt. What was found in it is found again."""
        if self.schedule.gives_way:
            self.schedule.put_back()
            self._end_check()

    def _end_check(self) -> None:
        self._turn += 1
        self._file = self._check = None
        self._found = []

    def _is_new(self) -> bool:
        """Whether this is the first check that has found this damage. What two in a row have not found is left out."""
        file = self._file
        assert file is not None
        known = {each.place for each in self._damages}
        new = {each.place for each in self._found} - known
        before = self._found_once.pop((file.kind, file.number), None)
        if new and before is None:
            self._found_once[file.kind, file.number] = new
            return True
        self._found = [each for each in self._found if each.place in known or each.place in (before or ())]
        return False

    def _file_done(self, file: CheckedFile) -> None:
        found, log = self._found, file.kind is FileKind.LOG
        at_once = self.schedule.file_done()
        self._end_check()
        whole = file.kind in (FileKind.JOURNAL, FileKind.STATE, FileKind.MANIFEST)  # it stands for all of its kind
        self._damages = [
            each for each in self._damages if each.kind is not file.kind or not (whole or each.number == file.number)
        ]
        for damage in found:
            if self._is_ours(damage):
                self._take(damage)
        if log and at_once and not found:
            self._nothing_found[file.number] = self.monotonic()
        elif log:
            self._nothing_found.pop(file.number, None)
        if log:
            self._remember()

    def _is_ours(self, damage: DamagedPlace) -> bool:
        """Whether the file is still one of the bookie's: it may have been replaced while it was read."""
        manifest = self.checkpointer.manifest
        match damage.kind:
            case FileKind.LOG:
                return damage.number in manifest.logs and damage.number in self.entry_logs.logs
            case FileKind.INDEX:
                return damage.number in manifest.segments
            case FileKind.JOURNAL:
                return damage.number >= manifest.file_id
            case _:
                return True

    def _take(self, damage: DamagedPlace) -> None:
        """Something is damaged: quarantine it, count it, and see that it is repaired."""
        text = str(damage)
        settled = damage.size > 0 and text in self._counted  # its ledgers are suspect since then, or whole again
        self._damages = [*self._damages, damage][-PLACES_MAX:]
        if text not in self._counted:
            self.stats.scrub_damages += 1
            self._counted = newest_places([*self._counted, text])
            self.report_problem(f"a scrub found damage: {text}", None)
        self.unknowns.quarantine([text])
        match damage.kind:
            case FileKind.LOG:
                if damage.ledgers is None or damage.ledgers:
                    self.compaction.leave(damage.number, damage.what)
                if not settled:
                    self.suspect(damage.ledgers)
            case FileKind.INDEX:
                self.unknowns.found_index_damage(CorruptionError(text))
                self.checkpointer.checkpoint(ignore)
            case FileKind.MANIFEST | FileKind.JOURNAL:
                self.checkpointer.checkpoint(ignore)
            case _:
                pass

    def _pass_ended(self) -> None:
        self.stats.scrub_passes += 1
        self._last_pass = self.monotonic()
        self._remember()
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(None)

    # -- files --------------------------------------------------------------------------------------------

    def files(self) -> Sequence[CheckedFile]:
        """What a pass would read, in its order, with about as many bytes."""
        manifest, groups = self.checkpointer.manifest, self.commit.groups
        journals = max(groups.file_id - manifest.file_id, 0) * self.config.journal_file_bytes + groups.file_offset
        found = [CheckedFile(FileKind.MANIFEST, 0, BLOCK), CheckedFile(FileKind.JOURNAL, 0, journals)]
        found += [CheckedFile(FileKind.INDEX, key, BLOCK + size) for key, size in manifest.segments.items()]
        found += [CheckedFile(FileKind.LOG, key, entry.end) for key, entry in sorted(manifest.logs.items())]
        if self.state_files is not None:
            found.append(CheckedFile(FileKind.STATE, 0, BLOCK))
        return found

    def _check_of(self, file: CheckedFile) -> Check:
        manifest, directory = self.checkpointer.manifest, self.config.ledger_dir
        match file.kind:
            case FileKind.MANIFEST:
                return check_manifest(self.disk, directory)
            case FileKind.JOURNAL:
                return check_journals(self.disk, self.config.journal_dir, manifest.file_id, self.commit.groups.durable)
            case FileKind.INDEX if file.number in manifest.segments:
                return check_segment(self.disk, directory, file.number)
            case FileKind.LOG if (entry := manifest.logs.get(file.number)) is not None:
                return check_log(self.disk, directory, file.number, entry, self.ledgers.dropped.copy())
            case FileKind.STATE if self.state_files is not None:
                return self.state_files()
            case _:
                return iter(())  # it has been replaced since

    @property
    def _first_s(self) -> float:
        period = self.config.scrub_period_s
        return min(FIRST_S, period / 10) if period > 0 else FIRST_S

    # -- notes --------------------------------------------------------------------------------------------

    def _remember(self) -> None:
        """See that the notes say what is known now. One write at a time: the next one has all that came meanwhile. If
        one fails the older notes stay: a later pass finds what is missing in them."""
        self._unnoted = True
        if self._noting or self.state.closing:
            return
        self._noting, self._unnoted = True, False
        suspects = self.unknowns.suspects

        def written(_none: None, error: BaseException | None) -> None:
            self._noting = False
            if error is not None:
                self._trouble, self._unnoted = f"its notes could not be written: {in_words(error)}", True
            else:
                self.remembered = suspects
                if self._unnoted:
                    self._remember()

        self.workers.get("scrub").submit(self._write_notes(), written)

    def _write_notes(self) -> Callable[[], None]:
        """The job that writes the notes as they should be now."""
        schedule = self.schedule
        safe = not self.unknowns.index_damaged or self.checkpointer.manifest.rebuild  # else a pass must find it again
        notes = ScrubNotes(
            round(schedule.passed_s(self.monotonic()), 1),
            schedule.behind if safe else None,
            schedule.ended and safe,
            list(self.unknowns.suspects),
            list(self.unknowns.suspects if self.unknowns.index_damaged else self.unknowns.unindexed),
            list(self._counted),
        )
        return lambda: replace_file(self.disk, f"{self.config.ledger_dir}/{NAME}", notes.encode())
