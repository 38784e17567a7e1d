"""Bugs, planted to test the simulator: a simulator that does not find them is too weak.

Each breaks one numbered rule, by replacing a piece of production code for as long as a world runs. No production code
knows of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import bookkeeper.bookie.identity.completion as completion
import bookkeeper.client.ledgers.ledger_recovery as recover_shell
import bookkeeper.ledger.recovery.reading as recovery_reading
import bookkeeper.meta.records.ledgers as ledgers
import bookkeeper.storage.base.durable_file as durable
import bookkeeper.storage.checkpoint.checkpoint as checkpoint
import bookkeeper.storage.journal.group_writer as journal
import bookkeeper.storage.scrub.file_checks as file_checks
import bookkeeper.storage.start.replay as replay
import bookkeeper.storage.start.replayed_ledgers as replayed_ledgers
import bookkeeper.storage.start.scan_files as scan_files
import bookkeeper.storage.start.start as storage_start
import bookkeeper.storage.updates.ledger_updates as ledger_updates
import tests.simulation.plan as sim_plan
from bookkeeper.autorecovery.repair_queue import RepairQueue
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.garbage.garbage_collector import GarbageCollector
from bookkeeper.bookie.garbage.garbage_proof import GarbageProof
from bookkeeper.bookie.identity.seen_metadata import SeenMetadata
from bookkeeper.bookie.identity.stale_adds import StaleAdds
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import (
    AddTimeoutError,
    BookieUnavailableError,
    BookKeeperError,
    MetadataUnavailableError,
    NoSuchEntryError,
    RequestTimedOutError,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata, LedgerState, classify
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.ensemble.writer_ensemble import WriterEnsemble
from bookkeeper.ledger.metadata import Fragment, with_ensemble
from bookkeeper.ledger.recovery import LedgerRecovery
from bookkeeper.ledger.recovery.effects import FindStandIns, WriteBack
from bookkeeper.ledger.recovery.fencing import FencePhase
from bookkeeper.ledger.recovery.parts import EntryRead
from bookkeeper.ledger.recovery.reading import ReadPhase
from bookkeeper.ledger.recovery.writing import WritePhase
from bookkeeper.ledger.write import ChangeEnsemble, LedgerWriter
from bookkeeper.ledger.write.ensemble_changes import EnsembleChanges
from bookkeeper.meta.records.deleted_ids import DeletedIds
from bookkeeper.meta.records.rollback import RollbackCheck, RollbackCounter
from bookkeeper.meta.stores.memory import MemoryStore
from bookkeeper.replication.copying.fragment import FragmentCopy
from bookkeeper.seams import File
from bookkeeper.storage.checkpoint.checkpointer import Checkpointer
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.entry_log.entry_log_file import log_name
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.index.entry_index import LOG_SHIFT, OFFSET_MASK
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor as StoredLedger
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind, apply_state, state_record
from bookkeeper.storage.index.moved_entries import MovedEntries
from bookkeeper.storage.ledger_logs import log_writes
from bookkeeper.storage.ledgers.unknowns import Unknowns
from bookkeeper.storage.reads.entry_places import EntryPlaces
from bookkeeper.storage.reads.entry_reader import EntryReader
from bookkeeper.storage.scrub.scrub_notes import ScrubNotes
from bookkeeper.storage.start.group_continuity import GroupContinuity
from bookkeeper.storage.updates.fencing import LedgerFencing
from bookkeeper.storage.updates.ledger_updates import LedgerUpdates
from bookkeeper.testing.patches import Patch, patches
from bookkeeper.testing.world import SimDisk
from tests.simulation.bugs.bug import Bug, Plant, bug_into
from tests.simulation.bugs.deletion_bugs import DELETION_BUGS
from tests.simulation.bugs.encryption_bugs import ENCRYPTION_BUGS
from tests.simulation.bugs.rack_bugs import RACK_BUGS
from tests.simulation.bugs.volume_bugs import VOLUME_BUGS
from tests.simulation.plan import (
    FIRST_WITH_COLLECTION,
    FIRST_WITH_COMPACTION,
    FIRST_WITH_DAMAGE,
    FIRST_WITH_HEALERS,
    FIRST_WITH_LEDGER_LOGS,
    FIRST_WITH_ROLLBACK,
    FIRST_WITH_SCRUB,
)

BUGS: Final[dict[str, Bug]] = {}
"""By name, in the order of this file."""


@contextlib.contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Plant a bug (None: none) until the end of the block."""
    with patches() as patch:
        if name is not None:
            BUGS[name].plant(patch)
        yield


def _bug(name: str, breaks: str, within: int, first: int = 0) -> Callable[[Plant], Plant]:
    return bug_into(BUGS, name, breaks, within, first)


# -- recovery ---------------------------------------------------------------------------------------------


@_bug("unfenced-reads", "R3", 300)
def _unfenced_reads(patch: Patch) -> None:
    """Recovery reads without the fence flag."""

    def unfenced(entry_id: int, write_set: tuple[BookieId, ...], fence: bool) -> EntryRead:
        return EntryRead(entry_id, write_set, False)

    patch(recovery_reading, "EntryRead", unfenced)


@_bug("negative-before-durable", "R3 B2", 1000)
def _negative_before_durable(patch: Patch) -> None:
    """A fencing read of a ledger that is not there is denied before the fence is durable."""
    fenced = Bookie._fenced

    def early(self: Bookie, request: Any, key: Any, reply: Any, go_on: Callable[[], None]) -> None:
        if key is None or self.engine.has(request.ledger_id):
            fenced(self, request, key, reply, go_on)
        else:
            self.engine.fence(request.ledger_id, key, lambda error: None)
            go_on()

    patch(Bookie, "_fenced", early)


@_bug("recovery-from-minus-one", "R4", 100)
def _recovery_from_minus_one(patch: Patch) -> None:
    """Recovery starts at -1, not at the first id of the last fragment."""
    begin = FencePhase.begin

    def begun(self: FencePhase) -> Any:
        self.lac = NO_ENTRY
        return begin(self)

    patch(FencePhase, "begin", begun)


@_bug("reads-follow-new-ensemble", "R5", 300)
def _reads_follow_new_ensemble(patch: Patch) -> None:
    """Recovery reads follow recovery's own new ensemble."""
    on_stand_ins = LedgerRecovery.on_stand_ins

    def followed(self: LedgerRecovery, stand_ins: Any, now: float) -> Any:
        if (reading := self._reading) is not None and stand_ins:
            last = reading.metadata.last_fragment
            ensemble = [stand_ins.get(bookie, bookie) for bookie in last.ensemble]
            fragments = with_ensemble(reading.metadata.fragments, last.first_entry, ensemble)
            reading.metadata = replace(reading.metadata, fragments=fragments)
        return on_stand_ins(self, stand_ins, now)

    patch(LedgerRecovery, "on_stand_ins", followed)


@_bug("timeout-is-negative", "Q2 R6", 50)
def _timeout_is_negative(patch: Patch) -> None:
    """A time-out counts as "no such entry"."""

    def hasty(error: BaseException | None) -> Answer:
        return Answer.NEGATIVE if isinstance(error, RequestTimedOutError | BookieUnavailableError) else classify(error)

    patch(recover_shell, "classify", hasty)


@_bug("lac-not-frozen", "R8", 1000)
def _lac_not_frozen(patch: Patch) -> None:
    """What recovery writes back carries its own progress as last add confirmed."""
    send = WritePhase._send

    def thawed(self: WritePhase, writing: Any, bookies: Any, effects: list[Any]) -> None:
        before = len(effects)
        send(self, writing, bookies, effects)
        for at in range(before, len(effects)):
            assert isinstance(effects[at], WriteBack)
            effects[at] = replace(effects[at], lac=EntryId(writing.entry_id - 1))

    patch(WritePhase, "_send", thawed)


@_bug("ensemble-committed-early", "R9", 500)
def _ensemble_committed_early(patch: Patch) -> None:
    """Recovery writes its ensemble changes into the metadata before it closes."""
    shell = recover_shell._RecoveryShell

    def find(self: Any, wanted: FindStandIns) -> None:
        watcher = self._services.watcher
        spec = self._record.metadata.spec
        stand_ins = self._services.placement.replace(
            spec, wanted.ensemble, wanted.failed, watcher.candidates(), avoided=[]
        )

        async def commit() -> None:
            begun = self._begun
            ensemble = [stand_ins.get(bookie, bookie) for bookie in wanted.ensemble]
            fragments = with_ensemble(begun.value.fragments, self._machine._writing.written + 1, ensemble)
            with contextlib.suppress(BookKeeperError):
                await self._record.write(replace(begun.value, fragments=fragments), begun)
                self._begun = self._record.versioned
            self._perform(self._machine.on_stand_ins(stand_ins, self._loop.time()))

        self._tasks.start(commit(), "early")

    patch(shell, "_find_stand_ins", find)


@_bug("length-of-nothing", "R12", 200)
def _length_of_nothing(patch: Patch) -> None:
    """The length comes from an empty reply when nothing is written back."""
    begin = ReadPhase.begin

    def begun(self: ReadPhase, now: float) -> Any:
        effects = begin(self, now)
        if self.lac_length is None:
            self.lac_length = 0
            self._readings.pop(self.lac, None)
        return effects

    patch(ReadPhase, "begin", begun)


@_bug("too-few-fenced", "R2 Q3", 100)
def _too_few_fenced(patch: Patch) -> None:
    """Recovery goes on when an ack quorum is fenced, covered or not."""
    is_covered: property = vars(FencePhase)["is_covered"]

    def covered(self: FencePhase) -> Any:
        return bool(self._fenced) if self.spec.write_quorum > 1 else is_covered.__get__(self)

    patch(FencePhase, "is_covered", property(covered))


# -- writing ----------------------------------------------------------------------------------------------


@_bug("owner-closes-in-recovery", "R13", 1000)
def _owner_closes_in_recovery(patch: Patch) -> None:
    """The writer closes a ledger that somebody recovers."""
    close = LedgerMetadata.close

    def closed(self: LedgerMetadata, last_entry: int, length: int) -> LedgerMetadata:
        if self.state is LedgerState.IN_RECOVERY:
            return replace(self, state=LedgerState.CLOSED, last_entry=EntryId(last_entry), length=length)
        return close(self, last_entry, length)

    patch(LedgerMetadata, "close", closed)


@_bug("ack-before-metadata", "W4", 200)
def _ack_before_metadata(patch: Patch) -> None:
    """Entries are acknowledged while the change of their ensemble is not committed yet."""
    confirm = LedgerWriter._confirm

    def confirmed(self: LedgerWriter, now: float) -> Any:
        ensemble = self._ensemble
        changing, ensemble.changing = ensemble.changing, None
        try:
            return confirm(self, now)
        finally:
            ensemble.changing = changing or ensemble.changing

    patch(LedgerWriter, "_confirm", confirmed)


@_bug("first-id-of-the-first-try", "W5", 500)
def _first_id_of_the_first_try(patch: Patch) -> None:
    """The new fragment's first id is that of the first attempt, however much was confirmed since."""
    ask, committed = EnsembleChanges.request, LedgerWriter.on_ensemble_changed

    def tried(self: EnsembleChanges, now: float, effects: list[Any]) -> None:
        ask(self, now, effects)
        if effects and isinstance(asked := effects[-1], ChangeEnsemble):
            first = vars(self).setdefault("first_try", asked.first_entry)
            effects[-1] = replace(asked, first_entry=first)

    def done(self: LedgerWriter, metadata: LedgerMetadata, now: float) -> Any:
        vars(self._changes).pop("first_try", None)
        return committed(self, metadata, now)

    patch(EnsembleChanges, "request", tried)
    patch(LedgerWriter, "on_ensemble_changed", done)


@_bug("replaced-still-counts", "W4", 200)
def _replaced_still_counts(patch: Patch) -> None:
    """What a replaced bookie acknowledged counts for its stand-in."""
    seat = WriterEnsemble.seat

    def seated(self: WriterEnsemble, fragment: Fragment, start: int, now: float) -> Any:
        taken_over = seat(self, fragment, start, now)
        for left, came in taken_over:
            came.acks = left.acks
        return taken_over

    patch(WriterEnsemble, "seat", seated)


@_bug("returned-without-asking", "W10b", 1000)
def _returned_without_asking(patch: Patch) -> None:
    """A bookie that was lost counts again as if it had never been away: what it missed is not sent anew."""
    readmit = EnsembleChanges._readmit

    def readmitted(self: EnsembleChanges, member: Any, now: float, effects: list[Any]) -> None:
        acks = member.acks
        acks.add(acks.mark, self._progress.next_entry)
        readmit(self, member, now, [])
        member.acks = acks

    patch(EnsembleChanges, "_readmit", readmitted)


@_bug("blind-create", "M5", 200)
def _blind_create(patch: Patch) -> None:
    """A creation whose reply was lost is simply tried again."""

    async def blind(store: Any, path: str, value: bytes, *, parents: bool = False) -> Any:
        while True:
            try:
                return (await store.create(path, value, parents=parents))[1]
            except MetadataUnavailableError:
                await asyncio.sleep(0.1)

    patch(ledgers, "settled_create", blind)


@_bug("deadline-forgotten", "V1 W6", 200)
def _deadline_forgotten(patch: Patch) -> None:
    """An append that is too late is not failed: its handle goes on."""
    fail = LedgerWriter._fail

    def failed(self: LedgerWriter, error: BookKeeperError) -> Any:
        return [] if isinstance(error, AddTimeoutError) else fail(self, error)

    patch(LedgerWriter, "_fail", failed)


@_bug("watch-not-armed-again", "Z5 L8", 200)
def _watch_not_armed_again(patch: Patch) -> None:
    """Readers rely on watches alone, and those say nothing after a lost connection."""
    plan = sim_plan.plan

    def without_polls(seed: int) -> Any:
        made = plan(seed)
        return replace(made, client=replace(made.client, metadata_poll_ms=10**9))

    patch(MemoryStore, "_doubt", lambda self: None)
    patch(sim_plan, "plan", without_polls)


# -- bookies ----------------------------------------------------------------------------------------------


@_bug("fence-in-memory", "B2 B3", 50)
def _fence_in_memory(patch: Patch) -> None:
    """A fence is not journalled."""

    def fence(self: LedgerFencing, ledger_id: LedgerId, master_key: bytes) -> None:
        state = self._known(ledger_id, master_key)
        if state is None:
            state = StoredLedger(ledger_id, master_key)
            self._ledgers.ledgers.add(state)
        state.fenced = True

    patch(LedgerFencing, "fence", fence)


@_bug("fence-without-key", "K31 B3", 300)
def _fence_without_key(patch: Patch) -> None:
    """The fence of a ledger never seen is journalled without its key, and skipped at replay."""
    fence = LedgerFencing.fence

    def keyless(self: LedgerFencing, ledger_id: LedgerId, master_key: bytes) -> None:
        if ledger_id in self._ledgers.ledgers or ledger_id in self._ledgers.dropped:
            fence(self, ledger_id, master_key)
            return
        state = StoredLedger(ledger_id, master_key)
        self._ledgers.ledgers.add(state)
        state.fenced = True
        self._commit.add_record(ledger_id, state_record(ledger_id, StateRecordKind.FENCED, b"?"))

    def skipping(state: StoredLedger, kind: int, entry: Any) -> None:
        if not (kind == StateRecordKind.FENCED and bytes(entry[-1:]) == b"?"):
            apply_state(state, kind, entry)

    patch(LedgerFencing, "fence", keyless)
    patch(replayed_ledgers, "apply_state", skipping)


@_bug("ack-before-sync", "K7", 20)
def _ack_before_sync(patch: Patch) -> None:
    """The journal is written and not synced."""
    opened = SimDisk.open

    def buffered(self: SimDisk, path: str, *, create: bool = False, write: bool = True, direct: bool = False) -> Any:
        return opened(self, path, create=create, write=write)

    patch(SimDisk, "open", buffered)
    patch(journal, "sync", lambda file: None)


@_bug("second-sync-trusted", "K23", 200)
def _second_sync_trusted(patch: Patch) -> None:
    """A sync that failed is tried again, and believed."""
    sync = durable.sync

    def again(file: File) -> None:
        try:
            file.sync()
        except OSError:
            sync(file)

    patch(journal, "sync", again)


@_bug("no-directory-sync", "K1 K12", 300)
def _no_directory_sync(patch: Patch) -> None:
    """A new journal file is used before its name is durable."""
    sync_directory = SimDisk.sync_directory

    def lazy(self: SimDisk, path: str) -> None:
        if not path.endswith("/journal"):
            sync_directory(self, path)

    patch(SimDisk, "sync_directory", lazy)


@_bug("mark-before-sync", "K13", 300)
def _mark_before_sync(patch: Patch) -> None:
    """The mark passes records whose entry log is not synced."""
    patch(checkpoint, "sync", lambda file: None)


@_bug("fence-ignored", "B3 R3", 50)
def _fence_ignored(patch: Patch) -> None:
    """A bookie goes on taking adds to a ledger that it has fenced."""
    admit = LedgerFencing.admit

    def admitted(
        self: LedgerFencing, ledger_id: LedgerId, key: bytes, recovery: bool, *, fenced_too: bool = False
    ) -> Any:
        return admit(self, ledger_id, key, recovery, fenced_too=True)

    patch(LedgerFencing, "admit", admitted)


@_bug("empty-disk-trusted", "W10a B5", 500)
def _empty_disk_trusted(patch: Patch) -> None:
    """A bookie that starts on an empty disk takes itself for a new one, whatever its id was before."""
    patch(StaleAdds, "must_verify", lambda self, ledger_id: False)
    patch(Engine, "doubt", lambda self, ledgers: None)


@_bug("force-without-sync", "W11", 500)
def _force_without_sync(patch: Patch) -> None:
    """A bookie answers a force at once, durable or not."""
    patch(Engine, "force", lambda self, ledger_id, callback: callback(None))


# -- repair -----------------------------------------------------------------------------------------------


@_bug("repair-swaps-open-end", "A3", 500)
def _repair_swaps_open_end(patch: Patch) -> None:
    """Repair swaps a bookie in the last fragment of a ledger that is not closed, with what it finds there."""
    fragment_end, swap_bookie = LedgerMetadata.fragment_end, LedgerMetadata.swap_bookie

    def end(self: LedgerMetadata, index: int) -> EntryId | None:
        found = fragment_end(self, index)
        return found if found is not None else EntryId(self.fragments[index].first_entry - 1)

    def swapped(self: LedgerMetadata, first_entry: int, old: BookieId, new: BookieId) -> LedgerMetadata:
        if self.is_closed or first_entry != self.last_fragment.first_entry:
            return swap_bookie(self, first_entry, old, new)
        ensemble = [new if bookie == old else bookie for bookie in self.last_fragment.ensemble]
        return replace(self, fragments=with_ensemble(self.fragments, first_entry, ensemble))

    patch(LedgerMetadata, "fragment_end", end)
    patch(LedgerMetadata, "swap_bookie", swapped)


@_bug("swap-before-acknowledged", "A1", 500)
def _swap_before_acknowledged(patch: Patch) -> None:
    """A target that says nothing counts as one that has taken the entries, and is not asked for them."""
    on_write_failed = FragmentCopy.on_write_failed

    def taken(self: FragmentCopy, first: int, error: BookKeeperError, now: float) -> Any:
        effects = self.on_written(first, now)
        return effects or on_write_failed(self, first, error, now)

    def believed(self: FragmentCopy, first: int, error: BookKeeperError, now: float) -> Any:
        return self.on_verified(first, now)

    patch(FragmentCopy, "on_write_failed", taken)
    patch(FragmentCopy, "on_verify_failed", believed)


# -- files that were damaged ------------------------------------------------------------------------------


@_bug("one-listing-is-enough", "A9 V3", 40, FIRST_WITH_HEALERS)
def _one_listing_is_enough(patch: Patch) -> None:
    """A worker that has listed marks once never lists them again."""
    listed = RepairQueue.on_listed
    queues: list[RepairQueue] = []

    def once(self: RepairQueue, marked: Any, now: float) -> None:
        if not any(queue is self for queue in queues):
            queues.extend([self] if marked else [])
            listed(self, marked, now)

    patch(RepairQueue, "on_listed", once)


@_bug("missing-log-is-empty", "K18 B5", 100, FIRST_WITH_DAMAGE)
def _missing_log_is_empty(patch: Patch) -> None:
    """An entry log that is missing or too short is no loss, and what it should hold was never there."""
    open_logs, found = scan_files._Contents._open_logs, EntryPlaces.find
    logs_of: dict[int, EntryLogs] = {}

    def opened(self: Any) -> None:
        before = list(self.losses.lost)
        open_logs(self)
        self.losses.lost[:] = before
        logs_of[id(self.disk)] = self.entry_logs

    def known(self: EntryPlaces, state: Any, entry_id: int, *held: Any) -> int:
        place = found(self, state, entry_id, *held)
        log = logs_of[id(self.disk)].logs.get(place >> LOG_SHIFT)
        return place if log is not None and log.end > place & OFFSET_MASK else 0

    patch(scan_files._Contents, "_open_logs", opened)
    patch(EntryPlaces, "find", known)


@_bug("damage-is-denied", "K27 B5", 100, FIRST_WITH_DAMAGE)
def _damage_is_denied(patch: Patch) -> None:
    """An entry that cannot be read is not there."""

    def trouble(self: EntryReader, error: BaseException) -> BaseException:
        return NoSuchEntryError(str(error))

    patch(EntryReader, "trouble", trouble)


@_bug("damaged-index-is-empty", "K19 B5", 100, FIRST_WITH_DAMAGE)
def _damaged_index_is_empty(patch: Patch) -> None:
    """An index segment that is damaged or missing is left out, and not made anew from the entry logs."""
    load = scan_files._Contents._load_segments

    def loaded(self: Any) -> bool:
        load(self)
        return True

    patch(scan_files._Contents, "_load_segments", loaded)


@_bug("older-copy-believed", "K32", 100, FIRST_WITH_DAMAGE)
def _older_copy_believed(patch: Patch) -> None:
    """A start does not compare what its directory knows with what is known elsewhere."""
    compare = GroupContinuity.compare

    def believed(self: GroupContinuity, known: Any) -> None:
        compare(self, replace(known, boot=0, sequence=0))

    patch(GroupContinuity, "compare", believed)


@_bug("rot-taken-for-a-torn-tail", "K9", 100, FIRST_WITH_DAMAGE)
def _rot_taken_for_a_torn_tail(patch: Patch) -> None:
    """A start looks for no evidence: a damaged last group of the journal is one that was never finished."""
    patch(replay, "rot_in", lambda *args: None)
    patch(replay.JournalReplay, "_evidence", lambda self: None)
    compare = GroupContinuity.compare

    def unproved(self: GroupContinuity, known: Any) -> None:
        compare(self, replace(known, sequence=0))

    patch(GroupContinuity, "compare", unproved)


@_bug("missing-manifest-believed", "B5 K15", 100, FIRST_WITH_DAMAGE)
def _missing_manifest_believed(patch: Patch) -> None:
    """A start without its manifest takes the entry logs that are there for all that there were."""
    begin, compare = GroupContinuity.__init__, GroupContinuity.compare
    without: list[GroupContinuity] = []

    def begun(self: GroupContinuity, *args: Any, no_manifest: str | None, **others: Any) -> None:
        begin(self, *args, no_manifest=None, **others)
        if no_manifest is not None:
            without.append(self)

    def believed(self: GroupContinuity, known: Any) -> None:
        compare(self, replace(known, boot=0) if any(one is self for one in without) else known)

    patch(GroupContinuity, "__init__", begun)
    patch(GroupContinuity, "compare", believed)


@_bug("files-of-others-taken", "K32", 100, FIRST_WITH_DAMAGE)
def _files_of_others_taken(patch: Patch) -> None:
    """A start does not compare the ids of directories in the headers of its files."""
    patch(storage_start, "refuse_foreign", lambda *args: None)


@_bug("limbo-denies", "B9 B5", 100, FIRST_WITH_DAMAGE)
def _limbo_denies(patch: Patch) -> None:
    """A bookie that may have lost data denies what it does not find."""
    patch(Unknowns, "has", lambda self, ledger_id: False)


@_bug("limbo-takes-adds", "B9 B3", 100, FIRST_WITH_DAMAGE)
def _limbo_takes_adds(patch: Patch) -> None:
    """A bookie that may have lost a fence goes on taking adds."""
    admit = LedgerFencing.admit

    def admitted(
        self: LedgerFencing, ledger_id: LedgerId, key: bytes, recovery: bool, *, fenced_too: bool = False
    ) -> Any:
        limbo, self._unknowns.limbo = self._unknowns.limbo, None
        try:
            return admit(self, ledger_id, key, recovery, fenced_too=fenced_too)
        finally:
            self._unknowns.limbo = limbo

    patch(LedgerFencing, "admit", admitted)
    patch(StaleAdds, "must_verify", lambda self, ledger_id: False)


@_bug("whole-without-reading", "B9", 100, FIRST_WITH_DAMAGE)
def _whole_without_reading(patch: Patch) -> None:
    """A ledger of which something may have been lost is whole as soon as it is closed."""

    async def none(*args: Any) -> list[Any]:
        return []

    patch(completion, "gaps_of", none)


# -- compaction -------------------------------------------------------------------------------------------


@_bug("compaction-unlinks-early", "G3", 60, FIRST_WITH_COMPACTION)
def _compaction_unlinks_early(patch: Patch) -> None:
    """A compacted log is removed when it was copied, before the index is durable."""

    def early(self: Checkpointer, emptied: Iterable[int], callback: Any) -> None:
        names = [log_name(log_id) for log_id in emptied]
        self._emptied.update(emptied)  # the next checkpoint covers it
        self.workers.get("checkpoint").submit(
            lambda: durable.remove_files(self.disk, self.config.ledger_dir, names), lambda *_: callback(None)
        )

    patch(Checkpointer, "cover_moves", early)


@_bug("compaction-moves-what-has-changed", "G3", 100, FIRST_WITH_COMPACTION)
def _compaction_moves_what_has_changed(patch: Patch) -> None:
    """Compaction moves the place of an entry though it was written again since it was copied."""

    def moved_all(page: Any, origin: int, moved: MovedEntries, i0: int, i1: int) -> int:
        for at in range(i0, i1):
            page[moved.entry_ids[at] - origin] = moved.new[at]
        return i1 - i0

    patch(ledger_updates, "put_moved", moved_all)


@_bug("compaction-brings-back", "G3 M6", 100, FIRST_WITH_COMPACTION)
def _compaction_brings_back(patch: Patch) -> None:
    """Compaction moves the places of a ledger that was deleted since it was copied, which brings it back."""
    move = LedgerUpdates.move

    def moved(self: LedgerUpdates, moved: MovedEntries, held: Any) -> int:
        if moved.ledger_id not in self._ledgers.ledgers:
            self._ledgers.dropped.discard(moved.ledger_id)
            self._ledgers.add(StoredLedger(LedgerId(moved.ledger_id)))
        return move(self, moved, held)

    patch(LedgerUpdates, "move", moved)


# -- scrubbing --------------------------------------------------------------------------------------------


@_bug("rot-is-believed", "K30", 20, FIRST_WITH_SCRUB)
def _rot_is_believed(patch: Patch) -> None:
    """A scrub takes a stretch of an entry log without a valid record for one in which nothing was written."""
    taken_in = file_checks._LogCheck._scanned

    def believed(self: Any, step: Any, at: int, bad: list[Any]) -> Any:
        at = yield from taken_in(self, step, at, [])
        return at

    patch(file_checks._LogCheck, "_scanned", believed)
    patch(file_checks._LogCheck, "_lost", lambda self: frozenset())


@_bug("suspects-forgotten", "K30", 40, FIRST_WITH_SCRUB)
def _suspects_forgotten(patch: Patch) -> None:
    """A restart does not know which ledgers damage concerns."""
    encode = ScrubNotes.encode
    patch(ScrubNotes, "encode", lambda self: encode(replace(self, suspects=[])))


@_bug("damage-is-not-repaired", "K30", 20, FIRST_WITH_SCRUB)
def _damage_is_not_repaired(patch: Patch) -> None:
    """A ledger that damage concerns is whole as soon as it is closed."""

    async def none(*args: Any) -> list[Any]:
        return []

    patch(completion, "gaps_of", none)


# -- a log per ledger ---------------------------------------------------------------------------------------


@_bug("ledger-log-closed-unsynced", "K5 K13", 60, FIRST_WITH_LEDGER_LOGS)
def _ledger_log_closed_unsynced(patch: Patch) -> None:
    """A ledger's log that gives way to another one is closed without a sync."""
    patch(log_writes, "sync", lambda file: None)


# -- metadata that were put back --------------------------------------------------------------------------


@_bug("rollback-ignored-by-writers", "M10", 20, FIRST_WITH_ROLLBACK)
def _rollback_ignored_by_writers(patch: Patch) -> None:
    """A writer goes on when its client has found the metadata older than they were."""
    patch(WriteHandle, "fail", lambda self, error: None)


@_bug("rollback-ignored-by-readers", "M10", 20, FIRST_WITH_ROLLBACK)
def _rollback_ignored_by_readers(patch: Patch) -> None:
    """A reader goes on when its client has found the metadata older than they were."""
    patch(ReadHandle, "fail", lambda self, error: None)


@_bug("rollback-ignored-by-collector", "M10 G1", 20, FIRST_WITH_ROLLBACK)
def _rollback_ignored_by_collector(patch: Patch) -> None:
    """Garbage passes believe metadata that are older than they were, and drop what those do not know."""

    async def believed(self: object, *args: object) -> None:
        return

    async def is_gone(self: object, *args: object) -> bool:
        return True

    patch(RollbackCheck, "check_fresh", believed)
    patch(RollbackCounter, "count_up", believed)
    patch(DeletedIds, "add", is_gone)


@_bug("listing-is-proof", "G1 Z6", 40, FIRST_WITH_COLLECTION)
def _listing_is_proof(patch: Patch) -> None:
    """A garbage pass drops what one listing lacks, which may be a follower's that is behind."""

    async def gone(self: GarbageCollector, ledger: LedgerId) -> bool:
        return True

    async def unasked(self: RollbackCheck) -> None:
        return

    async def listed(self: Any) -> AsyncIterator[LedgerId]:
        async for ledger in self._layout.walk(self._store, self._root):
            yield ledger

    patch(RollbackCheck, "check_fresh", unasked)
    patch(ledgers.Ledgers, "list", listed)
    patch(GarbageCollector, "_is_gone", gone)
    patch(GarbageProof, "confirmed", lambda self, absent, now: set(absent))


@_bug("rollback-ignored-at-start", "M10", 40, FIRST_WITH_ROLLBACK)
def _rollback_ignored_at_start(patch: Patch) -> None:
    """A bookie starts with metadata that are older than it has seen."""

    async def believed(*args: object) -> None:
        return

    patch(SeenMetadata, "check", believed)
    patch(RollbackCounter, "check", believed)


@_bug("rollback-accepted-and-collected", "M10", 40, FIRST_WITH_ROLLBACK)
def _rollback_accepted_and_collected(patch: Patch) -> None:
    """After a loss was accepted garbage passes drop at once what the metadata do not know."""

    async def at_once(self: GarbageCollector, absent: list[LedgerId]) -> list[LedgerId]:
        return absent

    patch(GarbageCollector, "_collectable", at_once)


BUGS.update(VOLUME_BUGS)
BUGS.update(DELETION_BUGS)
BUGS.update(ENCRYPTION_BUGS)
BUGS.update(RACK_BUGS)
