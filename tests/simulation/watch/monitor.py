"""What must hold at every step, watched from outside the code that has to keep it.

The monitor knows what each bookie has made durable, because it reads the groups that the journal has synced. From
that it judges every acknowledgement, every reply and every closed ledger. A violation is noted, never raised: code
under test handles exceptions, and must not handle this one.

    W1, W4  an acknowledged entry is durable on an ack quorum of its write set, by committed metadata
    W11     an entry that was forced is durable on all of its write set
    R3, B2  nothing is said to a fencing read before the fence is durable; no recovery read is denied unfenced
    A1      a bookie that repair puts into a complete fragment has its whole share of it durably
    B3      after a durable fence no regular add is taken, not even after restarts
    B5      "no such entry" is never said of a durable one
    Q3, R2  a ledger leaves IN_RECOVERY only when durable fences cover its last fragment
    L1      a bookie that comes back has everything it made durable, and no doubt of it (K7, K9); one whose files were
            damaged has it, or doubts (B9)
    B12     what was on a disk that failed takes no regular add (:mod:`tests.simulation.watch.volume_monitor`)
    K35     where a ledger lies is durable, and published, when something about it is answered
    G8      what can be brought back is dropped by nobody (:mod:`tests.simulation.watch.deletions`)
    K30     a bookie that comes back still suspects the ledgers of which it has noted that damage concerns them
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from bookkeeper import wire
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.codec import Run, scan_records
from bookkeeper.errors import BookKeeperError, CorruptionError, DataUnknownError, NoSuchLedgerError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata, LedgerState
from bookkeeper.meta.records.disks import DiskProgress
from bookkeeper.storage.engine import AvailabilityRun, Engine
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind
from bookkeeper.storage.updates.record_runs import EntryRecords, RecordRun
from bookkeeper.volumes import Volumes
from bookkeeper.wire import Status
from tests.simulation.faults.damage import LastGroup
from tests.simulation.users.litter import LITTER
from tests.simulation.watch.deletions import DeletionMonitor
from tests.simulation.watch.rack_watch import RackWatch
from tests.simulation.watch.volume_monitor import VolumeMonitor, engine_with, is_lost

_NEGATIVE = (Status.NO_ENTRY, Status.NO_LEDGER)
_BY_METADATA = ("metadata", "W1", "W11", "R2", "R3", "R4", "R5", "R9", "A1")


class Monitor:
    """See the module. ``problems`` is what was found, in order."""

    def __init__(
        self,
        metadata_of: Callable[[int], LedgerMetadata | None] = lambda ledger: None,
        disk_record_of: Callable[[str], DiskProgress | None] = lambda bookie: None,
    ) -> None:
        self._metadata_of = metadata_of
        self.disk_record_of = disk_record_of
        """What a bookie has published of its disk; None: nothing."""
        self.problems: list[str] = []
        self.resting = False
        """The metadata are not what they were (sim_rollback.py): nothing is judged by them."""
        self.counts: dict[str, int] = defaultdict(int)
        self.durable: dict[str, set[tuple[int, int]]] = defaultdict(set)
        """Bookie -> entries it once had on stable storage."""
        self.fences: dict[str, set[int]] = defaultdict(set)
        self.lost: set[str] = set()
        """Bookies whose disks are gone."""
        self.wiped: dict[str, tuple[set[tuple[int, int]], set[int]]] = {}
        """Bookies whose disks were emptied -> what they had until then, entries and fences: it may be missing, but
        neither be denied nor forgotten (W10a, B3, B5)."""
        self.hurt: set[str] = set()
        """Bookies whose files were damaged (sim_damage.py): what they had may be missing, but neither be denied nor
        forgotten (B5, B9, B3)."""
        self.rotten: dict[str, set[tuple[str, int]]] = defaultdict(set)
        """Bookies whose entry logs rot while they serve -> where. Nothing else of theirs is damaged, so what they take
        for whole must be there (K30)."""
        self._engines: dict[str, Engine] = {}
        """Bookie -> its disk in the life before."""
        self.late: set[str] = set()
        """Bookies that came while others were at work. A ledger may have named them before they first looked, and then
        they do not know whether they had something of it."""
        self.tails: dict[str, LastGroup] = {}
        """Bookie -> the last group that it has made durable."""
        self.deferred: dict[str, set[tuple[int, int]]] = defaultdict(set)
        """Bookie -> entries it has acknowledged in this life without a promise (W11)."""
        self.volumes = VolumeMonitor(self)
        """For bookies with several ledger directories."""
        self.deletions = DeletionMonitor(self.problem, self.count)
        """Of ledgers that are deleted, and brought back."""
        self.racks: RackWatch | None = None
        """Of where copies stand; None: nobody knows of racks."""
        self.recovering: dict[int, int] = defaultdict(int)
        """Ledger -> recoveries of it that run now."""

    def problem(self, rule: str, detail: object) -> None:
        """Something does not hold."""
        if self.resting and rule in _BY_METADATA:
            return
        self.problems.append(f"{rule}: {detail}")

    def on_wiped(self, name: str) -> None:
        """A bookie's disk is emptied now, and its cookie deleted."""
        self.wiped[name] = set(self.durable[name]), set(self.fences[name])

    def gone(self, name: str, engine: Volumes) -> set[tuple[int, int]]:
        """What went with the bookie's disk and did not come back."""
        had, _ = self.wiped.get(name, (set(), set()))
        here: dict[int, set[int]] = {}
        for ledger in {ledger for ledger, _ in had}:
            runs = _entries(engine, LedgerId(ledger), in_doubt=True)
            here[ledger] = {entry for run in runs for entry in range(run.first, run.first + run.count)}
        return {(ledger, entry) for ledger, entry in had if entry not in here[ledger]}

    def belongs(self, name: str, ledger: int, entry: int) -> bool:
        """The metadata of a ledger say that this entry of it is on this bookie, as far as they say where it ends."""
        metadata = self._metadata_of(ledger)
        if metadata is None or (metadata.last_entry is not None and entry > metadata.last_entry):
            return False
        return name in metadata.write_set(entry)

    def _is_past(self, name: str, ledger: int) -> bool:
        """Nobody asks this bookie for the end of the ledger any more."""
        metadata = self._metadata_of(ledger)
        return metadata is None or metadata.is_closed or name not in metadata.last_fragment.ensemble

    def may_be_unknown(self, ledger: int) -> bool:
        """All copies of an entry of this ledger may be hurt: what was acknowledged may be unknown, and never wrong."""
        metadata = self._metadata_of(ledger)
        if metadata is None or metadata.spec.ack_quorum > len(self.hurt):
            return False
        return any(self.hurt.intersection(fragment.ensemble) for fragment in metadata.fragments)

    def count(self, what: str, by: int = 1) -> None:
        self.counts[what] += by

    # -- one bookie's disk --------------------------------------------------------------------------------

    def watch_engine(self, name: str, volumes: Volumes) -> None:
        """From its start on: first, that nothing was forgotten. It has one ledger directory."""
        (only,) = volumes.serving
        engine = only.engine
        self.deferred[name].clear()
        self.check_memory(name, volumes)
        self._check_suspicion(name, engine)
        commit: Any = engine._commit
        door: Any = volumes  # what the bookie calls
        append, make_durable = door.append, commit.journal.make_durable

        def watched_append(run: RecordRun, batch: EntryRecords, *, recovery: bool = False) -> None:
            append(run, batch, recovery=recovery)
            ledger = run.ledger_id
            if not recovery and ledger in self.fences[name]:
                self.problem("B3", f"{name} takes a regular add to ledger {ledger}, which it had fenced durably")
            if isinstance(run, Run) and run.deferred:  # the reply follows in this turn
                self.deferred[name].update((ledger, entry) for entry in batch.entry_ids[run.i0 : run.i1])

        def watched_make_durable(group: Any, durable_below: int) -> None:
            make_durable(group, durable_below)  # when it returns, the group is on stable storage, whatever it holds
            scan = scan_records(group.data, 0, len(group.data), len(group.data))
            file = commit.journal._file
            self.tails[name] = LastGroup(file.path, group.file_offset, bytes(group.header) + bytes(group.data))
            for ledger, entry in zip(scan.ledger_ids, scan.entry_ids, strict=True):
                if ledger >= LITTER:
                    continue
                if entry >= 0:
                    self.durable[name].add((ledger, entry))
                elif entry == StateRecordKind.FENCED:
                    self.fences[name].add(ledger)
                    self.count("fences")

        door.append = watched_append
        commit.journal.make_durable = watched_make_durable

    def _check_suspicion(self, name: str, engine: Engine) -> None:
        """What damage had made suspect in the life before still is, if the bookie had noted it."""
        before, self._engines[name] = self._engines.get(name), engine
        if before is None or not self.rotten[name]:
            return
        noted = before.scrubber.remembered & before.suspects
        self.count("suspects over restarts", len(noted))
        if forgotten := [ledger for ledger in sorted(noted - engine.suspects) if ledger in set(engine.ledgers())]:
            self.problem("K30", f"{name} has forgotten that entries of ledgers {forgotten} may be lost")

    def check_memory(self, name: str, engine: Volumes) -> None:
        """Everything it ever made durable is there, and it has no doubt of it."""
        report = engine.report
        had, fenced = self.wiped.get(name, (set(), set()))
        hurt = name in self.hurt
        if (report.limbo_reason or report.quarantined) and not hurt:
            self.problem("K9", f"{name} starts in doubt: {report.limbo_reason} {report.quarantined}")
        for ledger in sorted(self.fences[name] - fenced - self.deletions.gone):
            if not engine.is_fenced(LedgerId(ledger)) and not (hurt and self._is_past(name, ledger)):
                self.problem("B3", f"{name} has forgotten its fence of ledger {ledger}")
        kept: dict[int, set[int]] = {ledger: set() for ledger in engine.ledgers() if ledger < LITTER}
        for ledger, entry in sorted(self.durable[name] - had):
            kept.setdefault(ledger, set()).add(entry)
        for ledger, entries in kept.items():
            if ledger in self.deletions.gone:
                continue
            try:
                doubt = hurt or name in self.wiped or name in self.late or is_lost(engine, ledger)
                runs = _entries(engine, LedgerId(ledger), in_doubt=doubt)
                here = {entry for run in runs for entry in range(run.first, run.first + run.count)}
            except BookKeeperError as error:
                if hurt and isinstance(error, CorruptionError):
                    continue  # a page of the index rots: it is unknown, and said to be
                self.problem("L1", f"{name} had {len(entries)} entries of ledger {ledger}: {error!r}")
                continue
            missing = sorted(entries - here)
            if hurt and missing:
                (only,) = engine.serving  # files of bookies with one ledger directory are damaged
                missing = (
                    [] if only.engine._unknowns.has(ledger) else [e for e in missing if self.belongs(name, ledger, e)]
                )
            if missing:
                self.problem("L1", f"{name} has lost entries {missing[:5]} of ledger {ledger}")
            self.durable[name].update((ledger, entry) for entry in here)  # whatever a start finds, it has synced (K17)
            if engine.is_fenced(LedgerId(ledger)):
                self.fences[name].add(ledger)

    # -- one bookie's replies -----------------------------------------------------------------------------

    def watch_bookie(self, name: str, bookie: Bookie) -> None:
        handle = bookie.handle

        def watched(header: wire.RequestHeader, request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
            self._judge_place(name, request)
            written = set(self.deferred[name]) if isinstance(request, wire.ForceLedger) else set()

            def judged(answer: wire.Reply) -> None:
                self._judge(name, request, answer)
                if written and answer.status is Status.OK:
                    self._judge_force(name, request, written)
                reply(answer)

            handle(header, request, judged)

        bookie.handle = watched  # type: ignore[method-assign]

    def _judge(self, name: str, request: wire.Request, answer: wire.Reply) -> None:
        match request:
            case wire.ReadEntry() | wire.AddEntry() if request.ledger_id in self.deletions.gone:
                pass
            case wire.ReadEntry() if answer.status is Status.OK or answer.status in _NEGATIVE:
                ledger, fenced = request.ledger_id, request.ledger_id in self.fences[name]
                if request.fence and not fenced:
                    self.problem("R3", f"{name} answers a fencing read of {ledger} before the fence is durable")
                if answer.status in _NEGATIVE:
                    if self._is_forsaken(name, ledger, request.entry_id):
                        self.problem(
                            "B12", f"{name} denies entry {request.entry_id} of {ledger}, which was on a lost disk"
                        )
                    if request.priority and not fenced and self._decides(ledger, request.entry_id):
                        self.problem(
                            "R3", f"{name} denies entry {request.entry_id} of {ledger} to a recovery, unfenced"
                        )
                    if (ledger, request.entry_id) in self.durable[name] and not self._out_of_doubt(name, request):
                        self.problem("B5", f"{name} denies entry {request.entry_id} of {ledger}, which it has")
            case wire.AddEntry() if (
                request.recovery and request.priority and not self._may_write_back(request.ledger_id, request.entry_id)
            ):
                self.problem(
                    "R4", f"entry {request.entry_id} of an earlier fragment of {request.ledger_id} is re-written"
                )
            case wire.AddEntry() if answer.status is Status.OK and request.deferred_sync and not request.recovery:
                self.deferred[name].add((request.ledger_id, request.entry_id))
            case wire.AddEntry() if answer.status is Status.OK:
                if (request.ledger_id, request.entry_id) not in self.durable[name]:
                    self.problem("B1", f"{name} acknowledges entry {request.entry_id}, which is not durable")
                self.count("recovery_adds", request.recovery)
            case _:
                pass

    def _is_forsaken(self, name: str, ledger: int, entry: int) -> bool:
        """What this bookie had of the ledger was on a disk that failed: whether it had this entry it cannot know, or it
        has not copied the entry back."""
        metadata = self._metadata_of(ledger)
        if metadata is None or ledger not in self.volumes.forsaken[name] or (ledger, entry) in self.durable[name]:
            return False
        return not metadata.is_closed or self.belongs(name, ledger, entry)

    def _out_of_doubt(self, name: str, request: wire.ReadEntry) -> bool:
        """What a hurt bookie has lost it may deny when its ledger is closed, and does not say that it is there."""
        metadata = self._metadata_of(request.ledger_id)
        closed = metadata is not None and metadata.is_closed
        return name in self.hurt and closed and not self.belongs(name, request.ledger_id, request.entry_id)

    def _judge_force(self, name: str, request: wire.Request, written: set[tuple[int, int]]) -> None:
        assert isinstance(request, wire.ForceLedger)
        missing = {entry for ledger, entry in written - self.durable[name] if ledger == request.ledger_id}
        if missing:
            self.problem("W11", f"{name} says {request.ledger_id} is forced, {sorted(missing)[:5]} are not durable")
        self.deferred[name] -= written

    def _judge_place(self, name: str, request: wire.Request) -> None:
        """A recovery read goes to the last fragment as it is committed, not to where recovery writes back (R5), and not
        before that fragment is covered by fences (R2)."""
        if not (isinstance(request, wire.ReadEntry) and request.fence and request.entry_id >= 0):
            return
        metadata = self._metadata_of(request.ledger_id)
        if metadata is None or metadata.is_closed:
            return
        ensemble = metadata.last_fragment.ensemble
        if name not in ensemble:
            self.problem("R5", f"a recovery of {request.ledger_id} reads from {name}, which is no member")
        if not metadata.spec.covers_ensemble(self._fenced(request.ledger_id, ensemble), ensemble):
            self.problem("R2", f"a recovery of {request.ledger_id} reads before it has fenced enough")

    def _judge_swaps(self, ledger: int, old: LedgerMetadata, new: LedgerMetadata) -> None:
        """A bookie that repair puts into a fragment that is complete has its whole share of it, durably (A1)."""
        for index, (before, after) in enumerate(zip(old.fragments, new.fragments, strict=True)):
            end = old.fragment_end(index)
            if before.ensemble == after.ensemble or end is None:
                continue
            self.count("repair_swaps")
            for position, (gone, came) in enumerate(zip(before.ensemble, after.ensemble, strict=True)):
                share = old.spec.stripe(position, before.first_entry, end - before.first_entry + 1)
                if gone != came and (missing := [e for e in share if not self._once_had(came, ledger, e)]):
                    self.problem("A1", f"{came} takes the place of {gone} in {ledger} without entries {missing[:5]}")

    def _once_had(self, bookie: str, ledger: int, entry: int) -> bool:
        """It was durable there when it was answered; its disk may have failed since."""
        return (ledger, entry) in self.durable[bookie] or (ledger, entry) in self.volumes.gone[bookie]

    def _fenced(self, ledger: int, ensemble: Sequence[BookieId]) -> set[BookieId]:
        return {bookie for bookie in ensemble if ledger in self.fences[bookie]}

    def _decides(self, ledger: int, entry: int) -> bool:
        """Would a recovery take the absence of this entry for the ledger's end? Earlier fragments are complete."""
        metadata = self._metadata_of(ledger)
        return metadata is not None and not metadata.is_closed and entry >= metadata.last_fragment.first_entry

    def _may_write_back(self, ledger: int, entry: int) -> bool:
        metadata = self._metadata_of(ledger)
        return metadata is None or metadata.is_closed or entry >= metadata.last_fragment.first_entry

    # -- the cluster --------------------------------------------------------------------------------------

    def on_ack(self, ledger: int, entry: int, metadata: LedgerMetadata) -> None:
        """A writer's caller was told that ``entry`` is written; ``metadata`` is what is committed now (W1)."""
        self.count("acks")
        write_set = metadata.write_set(entry)
        having = [bookie for bookie in write_set if self._once_had(bookie, ledger, entry)]
        if len(having) < metadata.spec.ack_quorum:
            self.problem("W1", f"entry {entry} of {ledger} is acked and durable on {having} of {write_set}")

    def on_forced(self, ledger: int, entry: int, metadata: LedgerMetadata) -> None:
        """A writer with deferred sync was told that ``entry`` is durable (W11): on all of its bookies."""
        missing = [bookie for bookie in metadata.write_set(entry) if not self._once_had(bookie, ledger, entry)]
        if missing:
            self.problem("W11", f"entry {entry} of {ledger} is forced and not durable on {missing}")

    def on_metadata(self, ledger: int, old: LedgerMetadata, new: LedgerMetadata) -> None:
        """A ledger's metadata was changed."""
        if len(new.fragments) > len(old.fragments) or new.last_fragment.ensemble != old.last_fragment.ensemble:
            self.count("ensemble_changes")
        if len(new.fragments) == len(old.fragments):
            self._judge_swaps(ledger, old, new)
        grown = len(new.fragments) != len(old.fragments) or new.last_fragment != old.last_fragment
        if new.state is old.state is LedgerState.IN_RECOVERY and grown:  # repair may touch earlier ones
            self.problem("R9", f"a recovery of {ledger} changes the ensemble before it closes: {new.fragments}")
        if new.state is LedgerState.CLOSED and old.state is LedgerState.IN_RECOVERY:
            self.count("recoveries")
            ensemble = old.last_fragment.ensemble
            fenced = self._fenced(ledger, ensemble)
            if not old.spec.covers_ensemble(fenced, ensemble):
                self.problem("R2", f"ledger {ledger} is closed with only {sorted(fenced)} of {ensemble} fenced")


def _entries(engine: Volumes, ledger: LedgerId, *, in_doubt: bool) -> Sequence[AvailabilityRun]:
    """Which entries are there; ``in_doubt``: also if the bookie would not say, because others were before."""
    try:
        return engine.entries(ledger)
    except (DataUnknownError, NoSuchLedgerError):
        if not in_doubt:
            raise
        home = engine_with(engine, ledger)
        state = home._ledgers.ledgers.get(ledger) if home is not None else None
        return () if home is None or state is None else home._reader.places.entries(state)
