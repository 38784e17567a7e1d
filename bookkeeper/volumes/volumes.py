"""A bookie's volumes behind one door, which has the face of an engine.

Each call goes to the volume that has the ledger; what concerns all ledgers goes to all volumes, and has ended when it
has ended on all of them. Everything here runs on the loop's thread.

**A ledger that is new** is placed on the volume with the fewest ledgers for its free space. Where it is placed is
durable before anything about it is answered: :meth:`Volumes.when_durable` waits for both.

**A volume that fails** leaves at once. Its ledgers are lost: regular adds to them are refused as failed, so that
writers go to other bookies; a negative about them is unknown; recovery adds are taken and stored on another volume.
They are suspects, like ledgers that a scrub has found damaged, and whoever repairs those repairs them
(:mod:`bookkeeper.bookie.identity.damaged_ledgers`). The bookie fails when its last volume does, or when it cannot
write down where ledgers are; what was on the last volume is not lost with that: the next start tries its disk again.

**What differs from an engine**: :meth:`Volumes.when_durable` waits for what was handed in since its last call, not for
everything, so that a slow disk delays its own ledgers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from bookkeeper.codec import Answers, Reads
from bookkeeper.errors import BookieFailedError, DataUnknownError, LedgerFencedError, NoSuchLedgerError, in_words
from bookkeeper.ids import EntryId, IdRanges, LedgerId
from bookkeeper.seams import Buffer, Disk, Space, Worker
from bookkeeper.storage.disk_state import DiskState
from bookkeeper.storage.durable_file import NO_SPACE, TRANSIENT
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.record_runs import EntryRecords, RecordRun
from bookkeeper.storage.results import AvailabilityRun, Done, EngineState, EngineStats, OpenReport, PackedEntries
from bookkeeper.volumes.joined import join, join_ledgers
from bookkeeper.volumes.kept_list import KeptList
from bookkeeper.volumes.ledger_moves import LedgerMove, LedgerMoves
from bookkeeper.volumes.ledger_places import LedgerPlaces
from bookkeeper.volumes.merged import merged_report, merged_stats
from bookkeeper.volumes.placement import PlacementKind, Placements, least_used
from bookkeeper.volumes.placement_log import PlacementLog
from bookkeeper.volumes.volume import Volume
from bookkeeper.volumes.volume_housekeeping import VolumeCompactors, VolumeScrubbers
from bookkeeper.volumes.volume_list import VolumeList, VolumeState, last_of

_SUSPICION_BITS = 32


class Volumes:
    """The volumes of one bookie. Made by :mod:`bookkeeper.volumes.volume_start`."""

    def __init__(
        self,
        directory: str,
        disk: Disk,
        volumes: Iterable[Volume],
        listed: VolumeList,
        placements: Placements,
        placement_log: PlacementLog,
        list_worker: Worker,
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._call_later = call_later
        self._serving: dict[int, Volume] = {}
        self._list = KeptList(disk, directory, listed, list_worker)
        self._places = LedgerPlaces(placements, placement_log)
        self._moves = LedgerMoves(self._places)
        self._where = placements.volume_of
        self._list.failed = placement_log.failed = self._fail
        self._state = DiskState()
        self._failed_for_good: BaseException | None = None
        self._touched: dict[int, set[int]] = {}
        """Volumes that were given something since the last :meth:`when_durable`, and the ledgers concerned."""
        self._free: dict[int, int] = {}
        self._doubted: Container[int] = frozenset()
        self._pressed: set[int] = set()
        self._pause: Callable[[], None] = _nothing
        self._resume: Callable[[], None] = _nothing
        self._on_new_file: Callable[[], None] | None = None
        self.on_loss: Callable[[str, str, int], None] = lambda directory, reason, ledgers: None
        """Called when a volume has left: its directory, why, and how many ledgers were on it."""
        self.scrubber = VolumeScrubbers(lambda: [each.engine.scrubber for each in self._serving.values()])
        """Reads and checks every stored byte of every volume."""
        self.compactor = VolumeCompactors(
            lambda: {each.number: each.engine.compactor for each in self._serving.values()}
        )
        """Compacts every volume."""
        volumes = list(volumes)
        self.report: OpenReport = merged_report([each.engine.report for each in volumes])
        for each in volumes:
            self._admit(each)
        self._judge()

    # -- the volumes --------------------------------------------------------------------------------------

    @property
    def volume_list(self) -> VolumeList:
        """The volumes and what has become of them, also of those that do not serve."""
        return self._list.now

    @property
    def serving(self) -> list[Volume]:
        """The volumes that serve."""
        return list(self._serving.values())

    @property
    def positions(self) -> dict[int, tuple[int, int]]:
        """For each volume :attr:`Engine.durable_position`."""
        return {number: each.engine.durable_position for number, each in self._serving.items()}

    @property
    def placements(self) -> Placements:
        """Which volume has which ledger. Not to be changed."""
        return self._places.placements

    def add(self, volume: Volume, listed: VolumeList, callback: Done) -> None:
        """Let one volume more serve, once the list that has it as used is durable, and it remembers the ledgers that
        were dropped. ``callback`` then.

        Args:
            listed: the list of now, with this volume as a new one.
        """
        self._list.now = self._list.now.with_entry(replace(listed.entries[-1], state=VolumeState.USED))

        def written(error: BaseException | None) -> None:
            if error is not None or self._state.closing:
                volume.engine.close(_ignore)
                return callback(error or BookieFailedError("the bookie is closing"))
            dropped = [pair for each in self._serving.values() for pair in each.engine.dropped]
            return volume.engine.collect((), remembered, never_again=dropped)

        def remembered(error: BaseException | None) -> None:
            self._admit(volume)
            if self.scrubber.began:
                volume.engine.scrubber.begin()
            self._judge()
            callback(error)

        self._list.write(written)

    def share_dropped(self, callback: Done) -> None:
        """Have every volume remember which ledgers were dropped by any; ``callback`` when they do. A volume that was
        configured for this start knows of none, one on which the last collection failed not of all. What is not shared
        goes with its disk, and a writer that is late makes a deleted ledger anew."""
        dropped = list(self.dropped)
        engines = [each.engine for each in self._serving.values()]
        lacking = [engine for engine in engines if not all(engine.dropped.covers(*run) for run in dropped)]
        join([_collects(engine, dropped) for engine in lacking], callback)

    def set_state(self, number: int, state: VolumeState, callback: Done) -> None:
        """Note that a volume is draining, drained, or used again.

        One that is drained serves no more. The list has it as drained when the others remember which of its ledgers
        were dropped: a collection that was answered with an error may have left that to this volume alone.
        """
        if state is VolumeState.DRAINED:
            leaving = self._serving.pop(number)
            self._places.forget_empty(number)
            self.scrubber.departed()
            dropped = list(leaving.engine.dropped)
            others = [_collects(each.engine, dropped) for each in self._serving.values()]

            def remembered(error: BaseException | None) -> None:
                if error is not None:
                    return callback(error)
                self._list.now = self._list.now.with_state(number, state)
                return self._list.write(lambda failed: leaving.engine.close(lambda _closed: callback(failed)))

            join(others, remembered)
        else:
            self._list.now = self._list.now.with_state(number, state)
            self._list.write(callback)
        self._judge()

    def lose(self, number: int, reason: str) -> None:
        """A volume has failed, or is given up: it leaves, and its ledgers are lost.

        The last one that serves does not leave: the bookie fails with it, and its next start tries the disk again, as
        that of a bookie with one directory does.
        """
        if self._state.closing or (volume := self._serving.get(number)) is None:
            return None
        if len(self._serving) == 1:
            return self._fail(BookieFailedError(f"the last ledger directory, {volume.config.ledger_dir}: {reason}"))
        del self._serving[number]
        self._moves.lost(volume, BookieFailedError(f"{volume.config.ledger_dir} was lost: {reason}"))
        count = self.placements.count(number)
        self._places.record(PlacementKind.VOLUME_LOST, volume=number)
        self._list.now = self._list.now.with_state(number, VolumeState.LOST, reason)
        self._list.write(_ignore)
        self._pressed.discard(number)
        self._call_later(0.0, lambda: volume.engine.close(_ignore))
        self.on_loss(volume.config.ledger_dir, reason, count)
        self.scrubber.departed()
        self.scrubber.tell_suspects()
        if not self._pressed:
            self._resume()
        return self._judge()

    def is_last(self, number: int) -> bool:
        """Whether there is no other volume that gets new ledgers."""
        return last_of((each for each in self._list.now if each.number in self._serving), number)

    # -- writing ------------------------------------------------------------------------------------------

    def append(self, run: RecordRun, batch: EntryRecords, *, recovery: bool = False) -> None:
        """See :meth:`Engine.append`. BookieFailedError: the ledger's volume was lost."""
        ledger_id = run.ledger_id
        volume = self._volume_for(ledger_id, recovery)
        volume.engine.append(run, batch, recovery=recovery)
        self._touch(volume, ledger_id)
        if self._moves:
            self._append_too(ledger_id, lambda engine: engine.append(run, batch, recovery=True))

    def append_entry(self, ledger_id: LedgerId, master_key: bytes, entry: Buffer, *, recovery: bool = False) -> None:
        """See :meth:`Engine.append_entry`."""
        volume = self._volume_for(ledger_id, recovery)
        volume.engine.append_entry(ledger_id, master_key, entry, recovery=recovery)
        self._touch(volume, ledger_id)
        if self._moves:
            self._append_too(ledger_id, lambda engine: engine.append_entry(ledger_id, master_key, entry, recovery=True))

    def _append_too(self, ledger_id: int, act: Callable[[Engine], None]) -> None:
        """The same on the target, if the ledger is being moved."""
        if (move := self._moves.get(ledger_id)) is not None and self._moves.too(move, act):
            self._touch(move.target, ledger_id)

    def when_durable(self, callback: Done) -> None:
        """``callback(None)`` when everything handed in since the last call is durable, and where it is, too. With
        :class:`PartlyFailedError` if that failed for some ledgers and not for others."""
        touched, self._touched = self._touched, {}
        fresh = any(self._places.any_fresh(ledgers) for ledgers in touched.values())
        if len(touched) == 1 and not fresh:
            (number,) = touched
            return self._durable_on(number)(callback)
        parts: list[tuple[Callable[[Done], None], set[int]]] = [
            (self._durable_on(number), ledgers) for number, ledgers in touched.items()
        ]
        if fresh:
            parts.append((self._places.when_placed, set().union(*touched.values())))
        return join_ledgers(parts, callback)

    def start_writing(self) -> None:
        """See :meth:`Engine.start_writing`."""
        touched, self._touched = self._touched, {}
        for number in touched:
            if (volume := self._serving.get(number)) is not None:
                volume.engine.start_writing()
        self._places.write()

    def fence(self, ledger_id: LedgerId, master_key: bytes, callback: Done) -> None:
        """See :meth:`Engine.fence`."""
        if self._is_dropped(ledger_id):
            return callback(None)
        return self._change(ledger_id, callback, True, lambda engine, done: engine.fence(ledger_id, master_key, done))

    def set_explicit_lac(self, ledger_id: LedgerId, master_key: bytes, lac: int, blob: Buffer, callback: Done) -> None:
        """See :meth:`Engine.set_explicit_lac`."""
        self._change(
            ledger_id,
            callback,
            False,
            lambda engine, done: engine.set_explicit_lac(ledger_id, master_key, lac, blob, done),
        )

    def _change(self, ledger_id: LedgerId, callback: Done, recovery: bool, act: Callable[[Engine, Done], None]) -> None:
        """Change what is known of a ledger; ``callback`` when that is durable wherever it must be.

        Raises: what ``act`` raises; then nothing was changed.
        """
        volume, move = self._volume_for(ledger_id, recovery), self._moves.get(ledger_id)
        changed, copied = _Pending(), _Pending()
        act(volume.engine, changed.done)
        begun: list[Callable[[Done], None]] = [changed.then]
        if move is not None and self._moves.too(move, lambda engine: act(engine, copied.done)):
            begun.append(copied.then)
        if self._places.any_fresh((ledger_id,)):
            begun.append(self._places.when_placed)
        join(begun, callback)

    def force(self, ledger_id: LedgerId, callback: Done) -> None:
        """See :meth:`Engine.force`. Fails for a ledger that is lost, or ever was: what it had taken and not
        synced is gone, and a copy that is whole says nothing of it. With a negative id: for all ledgers."""
        if ledger_id < 0:
            engines = [each.engine for each in self._serving.values()]
            return join([*(each.when_durable for each in engines), self._places.when_placed], callback)
        if ledger_id in self.placements.lost or ledger_id in self.placements.retired:
            return callback(_lost(ledger_id))
        volume, move = self._at(ledger_id), self._moves.get(ledger_id)
        if volume is None:
            return callback(None)
        begun: list[Callable[[Done], None]] = [lambda done: volume.engine.force(ledger_id, done)]
        if move is not None and move.answers_wait and move.error is None:
            begun.append(lambda done: move.target.engine.force(ledger_id, done))
        elif move is not None and move.error is not None:
            self._moves.take_back(move)
        if self._places.any_fresh((ledger_id,)):
            begun.append(self._places.when_placed)
        return join(begun, callback)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """See :meth:`Engine.on_pressure`: while any volume has too much to write."""
        self._pause, self._resume = pause, resume

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        """See :meth:`Engine.on_state`; :attr:`state` says what counts."""
        self._state.on_change(callback)

    @property
    def state(self) -> EngineState:
        """Writable while any volume takes new ledgers; failed when none is left."""
        return self._state.now

    def on_new_journal_file(self, callback: Callable[[], None]) -> None:
        """See :meth:`Engine.on_new_journal_file`."""
        self._on_new_file = callback
        for each in self._serving.values():
            each.engine.on_new_journal_file(callback)

    @property
    def journal_bytes_in_flight(self) -> int:
        """Bytes accepted and not yet durable, of all volumes."""
        return sum(each.engine.journal_bytes_in_flight for each in self._serving.values())

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, ledger_id: LedgerId, entry_id: EntryId, reply: Callable[[bytes | BaseException], None]) -> None:
        """See :meth:`Engine.read`."""
        try:
            engine = self._engine_of(ledger_id)
        except (DataUnknownError, NoSuchLedgerError) as error:
            return reply(error)
        return engine.read(ledger_id, entry_id, reply)

    def answer_at_hand(self, reads: Reads, i0: int, frame_max: int) -> Answers | None:
        """See :meth:`Engine.answer_at_hand`."""
        volume = self._at(reads.ledger_ids[i0])
        return volume.engine.answer_at_hand(reads, i0, frame_max) if volume is not None else None

    def read_batch(
        self,
        ledger_id: LedgerId,
        first: EntryId,
        count_max: int,
        size_max: int,
        reply: Callable[[PackedEntries | BaseException], None],
    ) -> None:
        """See :meth:`Engine.read_batch`."""
        try:
            engine = self._engine_of(ledger_id)
        except (DataUnknownError, NoSuchLedgerError) as error:
            return reply(error)
        return engine.read_batch(ledger_id, first, count_max, size_max, reply)

    def lac(self, ledger_id: LedgerId) -> int:
        """See :meth:`Engine.lac`."""
        return self._engine_of(ledger_id).lac(ledger_id)

    def explicit_lac(self, ledger_id: LedgerId) -> tuple[int, bytes] | None:
        """See :meth:`Engine.explicit_lac`."""
        return self._engine_of(ledger_id).explicit_lac(ledger_id)

    def last_entry(self, ledger_id: LedgerId) -> EntryId:
        """See :meth:`Engine.last_entry`."""
        return self._engine_of(ledger_id).last_entry(ledger_id)

    def entries(self, ledger_id: LedgerId) -> Sequence[AvailabilityRun]:
        """See :meth:`Engine.entries`."""
        return self._engine_of(ledger_id).entries(ledger_id)

    def is_fenced(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Engine.is_fenced`; a ledger that was ever lost counts as fenced (B3)."""
        volume = self._at(ledger_id)
        if ledger_id in self.placements.lost or ledger_id in self.placements.retired:
            return True
        if volume is None and self._is_dropped(ledger_id):
            return True
        return volume is not None and volume.engine.is_fenced(ledger_id)

    def on_lac(self, ledger_id: LedgerId, callback: Callable[[int], None]) -> Callable[[], None]:
        """See :meth:`Engine.on_lac`; of a ledger that is not here nothing is ever told."""
        volume = self._at(ledger_id)
        return _nothing if volume is None else volume.engine.on_lac(ledger_id, callback)

    def has(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Engine.has`."""
        volume = self._at(ledger_id)
        return volume is not None and volume.engine.has(ledger_id)

    def ledgers(self) -> Iterable[LedgerId]:
        """Every ledger with anything here, a snapshot."""
        where = self.placements.volume_of
        return [
            ledger
            for each in self._serving.values()
            for ledger in each.engine.ledgers()
            if where(ledger) == each.number
        ]

    # -- keeping house ------------------------------------------------------------------------------------

    def checkpoint(self, callback: Done) -> None:
        """See :meth:`Engine.checkpoint`."""
        join([each.engine.checkpoint for each in self._serving.values()], callback)

    def collect(
        self,
        dead: Container[LedgerId] | Callable[[LedgerId], bool],
        callback: Done,
        *,
        never_again: Iterable[tuple[int, int]] = (),
    ) -> None:
        """See :meth:`Engine.collect`. Every volume remembers every ledger that was dropped."""
        is_dead = dead if callable(dead) else dead.__contains__
        gone = [ledger for ledger in self.ledgers() if is_dead(ledger)]
        ranges = [*never_again, *((ledger, ledger) for ledger in gone)]

        def collected(error: BaseException | None) -> None:
            if error is not None:
                return callback(error)
            nowhere = [ledger for ledger in self.placements.retired if self._at(LedgerId(ledger)) is None]
            forgotten = IdRanges(ranges)
            more = [LedgerId(each) for each in nowhere if each in forgotten]
            return self._places.forget([*gone, *more], callback)

        join([_collects(each.engine, ranges, is_dead) for each in self._serving.values()], collected)

    def compact(self, callback: Done, *, major: bool = False) -> None:
        """See :meth:`Engine.compact`: all volumes at the same time."""
        engines = [each.engine for each in self._serving.values()]
        join([lambda done, engine=engine: engine.compact(done, major=major) for engine in engines], callback)  # type: ignore[misc]

    @property
    def dropped(self) -> IdRanges:
        """See :attr:`Engine.dropped`; a copy."""
        return IdRanges(pair for each in self._serving.values() for pair in each.engine.dropped)

    @property
    def stats(self) -> EngineStats:
        """The sums over the volumes that serve."""
        return merged_stats([each.engine.stats for each in self._serving.values()])

    @property
    def in_limbo(self) -> bool:
        """See :attr:`Engine.in_limbo`: a volume is."""
        return any(each.engine.in_limbo for each in self._serving.values())

    @property
    def takes_new_ledgers(self) -> bool:
        """See :attr:`Engine.takes_new_ledgers`: a volume does."""
        return any(each.engine.takes_new_ledgers for each in self._serving.values())

    def narrow_limbo(self, suspects: Iterable[LedgerId]) -> None:
        """See :meth:`Engine.narrow_limbo`."""
        chosen = frozenset(suspects)
        for each in self._serving.values():
            each.engine.narrow_limbo(chosen)

    def end_limbo(self, ledger_id: LedgerId | None = None) -> None:
        """See :meth:`Engine.end_limbo`."""
        for each in self._serving.values():
            each.engine.end_limbo(ledger_id)

    def doubt(self, ledgers: Container[int]) -> None:
        """See :meth:`Engine.doubt`."""
        self._doubted = ledgers

    @property
    def suspects(self) -> frozenset[int]:
        """See :attr:`Engine.suspects`; lost ledgers are among them."""
        where = self.placements.volume_of
        damaged = [ledger for each in self.serving for ledger in each.engine.suspects if where(ledger) == each.number]
        return frozenset([*self.placements.lost, *damaged])

    def suspicion(self, ledger_id: LedgerId) -> int:
        """See :meth:`Engine.suspicion`."""
        volume = self._at(ledger_id)
        damaged = volume.engine.suspicion(ledger_id) if volume is not None else 0
        return self.placements.lost.get(ledger_id, 0) << _SUSPICION_BITS | damaged

    def end_suspicion(self, ledger_id: LedgerId, suspicion: int) -> bool:
        """See :meth:`Engine.end_suspicion`."""
        loss, damage = suspicion >> _SUSPICION_BITS, suspicion & (1 << _SUSPICION_BITS) - 1
        if self.placements.lost.get(ledger_id, 0) > loss:
            return False
        volume = self._at(ledger_id)
        if volume is not None and not volume.engine.end_suspicion(ledger_id, damage):
            return False
        if loss:
            self._places.record(PlacementKind.WHOLE, ledger_id)
        return True

    def space(self) -> Space:
        """Bytes of all volumes' file systems. Two volumes on one file system count it twice."""
        found = [each.engine.space() for each in self._serving.values()]
        return Space(total=sum(each.total for each in found), free=sum(each.free for each in found))

    def check_space(self) -> None:
        """See :meth:`Engine.check_space`. A volume that cannot even be asked is lost."""
        for each in self.serving:
            try:
                each.engine.check_space()
                self._free[each.number] = each.engine.space().free
            except OSError as error:
                if error.errno in TRANSIENT and error.errno not in NO_SPACE:
                    continue
                self.lose(each.number, in_words(error))
        self._places.write()
        self._judge()

    def ledger_closed(self, ledger_id: LedgerId) -> None:
        """See :meth:`Engine.ledger_closed`."""
        if (volume := self._at(ledger_id)) is not None:
            volume.engine.ledger_closed(ledger_id)

    def finish_logs(self) -> None:
        """See :meth:`Engine.finish_logs`."""
        for each in self.serving:
            each.engine.finish_logs()

    def close(self, callback: Done) -> None:
        """See :meth:`Engine.close`."""
        if self._state.now is EngineState.CLOSED:
            return callback(None)
        self._state.begin_closing()

        def closed(error: BaseException | None) -> None:
            with suppress(OSError):
                self._places.log.close()
            self._list.close()
            self._state.set(EngineState.CLOSED, str(error) if error is not None else "clean stop")
            callback(error)

        def noted(_error: BaseException | None) -> None:
            join([each.engine.close for each in self._serving.values()], closed)

        return self._places.log.when_durable(noted)

    # -- moving a ledger ----------------------------------------------------------------------------------

    def begin_move(self, ledger_id: LedgerId, target: Volume) -> LedgerMove:
        """From now on adds to a ledger go to another volume, too; :attr:`moves` goes on with it.

        Raises:
            NoSuchLedgerError: the ledger is not placed.
        """
        source = self._at(ledger_id)
        if source is None:
            raise NoSuchLedgerError(f"ledger {ledger_id} is not here")
        return self._moves.begin(ledger_id, source, target)

    @property
    def moves(self) -> LedgerMoves:
        """The ledgers that are being moved."""
        return self._moves

    # -- where ledgers are --------------------------------------------------------------------------------

    def _at(self, ledger_id: int) -> Volume | None:
        number = self._where(ledger_id)
        return self._serving.get(number) if number is not None else None

    def _engine_of(self, ledger_id: LedgerId) -> Engine:
        """The engine that answers questions about a ledger.

        Raises:
            NoSuchLedgerError, DataUnknownError: no volume has it.
        """
        if (volume := self._at(ledger_id)) is not None:
            return volume.engine
        if ledger_id not in self.placements.lost and (ledger_id not in self._doubted or self._is_dropped(ledger_id)):
            raise NoSuchLedgerError(f"ledger {ledger_id} is not here")
        raise DataUnknownError(f"whether ledger {ledger_id} was here is not known")

    def _volume_for(self, ledger_id: int, recovery: bool) -> Volume:
        """The volume that takes a ledger's adds; a ledger that is nowhere is placed.

        Raises:
            BookieFailedError: the ledger is lost, and this is no recovery; or the bookie has failed.
            LedgerFencedError: it was deleted, or is retired.
            DiskFullError: where it is cannot be written down for now.
        """
        if not recovery and (ledger_id in self.placements.lost or ledger_id in self.placements.retired):
            if ledger_id in self.placements.lost:
                raise _lost(ledger_id)
            raise LedgerFencedError(f"ledger {ledger_id} is closed, and was on a disk that was lost")
        if (volume := self._at(ledger_id)) is not None:
            return volume
        self._state.refuse_if_stopped()
        if self._is_dropped(ledger_id):
            raise LedgerFencedError(f"ledger {ledger_id} was deleted")
        if self._places.log.full is not None:
            raise self._places.log.full
        volume = self._chosen()
        self._places.place(ledger_id, volume.number)
        return volume

    def _chosen(self) -> Volume:
        """The volume for a new ledger; one that is full only if all are."""
        used = [each for each in self._serving.values() if self._list.is_used(each.number)]
        good = [each for each in used if each.engine.state is EngineState.WRITABLE and each.engine.takes_new_ledgers]
        chosen = {each.number: self.placements.count(each.number) for each in good or used or self.serving}
        return self._serving[least_used(chosen, self._free)]

    def best_target(self, leaving: int) -> Volume | None:
        """The volume to which a ledger should be moved from another one; None: none can take it."""
        good = {
            each.number: self.placements.count(each.number)
            for each in self._serving.values()
            if each.number != leaving and self._list.is_used(each.number) and each.engine.state is EngineState.WRITABLE
        }
        return self._serving[least_used(good, self._free)] if good else None

    def _is_dropped(self, ledger_id: int) -> bool:
        return any(ledger_id in each.engine.dropped for each in self._serving.values())

    def _touch(self, volume: Volume, ledger_id: int) -> None:
        if (ledgers := self._touched.get(volume.number)) is None:
            self._touched[volume.number] = {ledger_id}
        else:
            ledgers.add(ledger_id)

    def _durable_on(self, number: int) -> Callable[[Done], None]:
        volume = self._serving.get(number)
        if volume is None:
            return lambda done: done(BookieFailedError("the disk that was to have the entries has failed"))
        return volume.engine.when_durable

    # -- state --------------------------------------------------------------------------------------------

    def _admit(self, volume: Volume) -> None:
        number, engine = volume.number, volume.engine
        self._serving[number] = volume
        with suppress(OSError):
            self._free[number] = engine.space().free
        engine.doubt(_Doubted(self))
        engine.on_state(lambda state, reason: self._on_volume_state(number, state, reason))
        engine.on_pressure(lambda: self._on_pressed(number), lambda: self._on_relieved(number))
        self.scrubber.admit(engine.scrubber)
        if self._on_new_file is not None:
            engine.on_new_journal_file(self._on_new_file)
        if engine.state is EngineState.FAILED:
            self._on_volume_state(number, engine.state, "it failed while it started")

    def _on_volume_state(self, number: int, state: EngineState, reason: str) -> None:
        if state is EngineState.FAILED and not self._state.closing:
            self.lose(number, reason)
        elif state is not EngineState.CLOSED:
            self._judge()

    def _on_pressed(self, number: int) -> None:
        self._pressed.add(number)
        self._pause()

    def _on_relieved(self, number: int) -> None:
        self._pressed.discard(number)
        if not self._pressed:
            self._resume()

    def _judge(self) -> None:
        """Bring :attr:`state` up to date."""
        engines = [each.engine for each in self._serving.values() if self._list.is_used(each.number)]
        if self._failed_for_good is not None:
            self._state.set(EngineState.FAILED, in_words(self._failed_for_good))
        elif any(each.state is EngineState.WRITABLE for each in engines):
            self._state.set(EngineState.WRITABLE, "a ledger directory takes new ledgers")
        else:
            self._state.set(EngineState.READ_ONLY, "no ledger directory takes new ledgers")

    def _fail(self, error: BaseException) -> None:
        """Nothing can be written down about volumes any more."""
        self._failed_for_good = error
        self._judge()


BookieStorage: TypeAlias = Engine | Volumes
"""What a bookie stores ledgers in: one disk, or several."""


@dataclass(slots=True)
class _Pending:
    """Something that was begun before anybody waits for it."""

    _ended: list[BaseException | None] = field(default_factory=list)
    _waiting: Done | None = None

    def done(self, error: BaseException | None) -> None:
        self._ended.append(error)
        if self._waiting is not None:
            self._waiting(error)

    def then(self, callback: Done) -> None:
        if self._ended:
            callback(self._ended[0])
        else:
            self._waiting = callback


class _Doubted:
    """Ledgers about which no negative is honest: lost ones, and those that the bookie doubts."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def __contains__(self, ledger_id: object) -> bool:
        return ledger_id in self._volumes.placements.lost or ledger_id in self._volumes._doubted


def _lost(ledger_id: int) -> BookieFailedError:
    return BookieFailedError(f"the disk with ledger {ledger_id} has failed")


def _collects(
    engine: Engine, never_again: Iterable[tuple[int, int]], dead: Callable[[LedgerId], bool] = lambda ledger: False
) -> Callable[[Done], None]:
    """Collects on one volume. What a volume cannot do because it has just failed is not missing."""
    ranges = list(never_again)

    def begin(done: Done) -> None:
        def ended(error: BaseException | None) -> None:
            done(None if engine.state in (EngineState.FAILED, EngineState.CLOSED) else error)

        try:
            engine.collect(dead, ended, never_again=ranges)
        except BookieFailedError as error:
            ended(error)

    return begin


def _ignore(_error: BaseException | None) -> None:
    pass


def _nothing() -> None:
    pass
