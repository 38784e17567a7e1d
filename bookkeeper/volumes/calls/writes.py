"""What is written to a ledger goes to its volume; to the target as well, if the ledger is being moved.

Where a ledger is placed is durable before anything about it is answered (K35): whoever waits here waits for both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from bookkeeper.errors import BookieFailedError
from bookkeeper.ids import LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.updates.record_runs import EntryRecords, RecordRun
from bookkeeper.volumes.after_all import after_all, after_all_ledgers
from bookkeeper.volumes.disks.serving import ServingVolumes, Volume
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from bookkeeper.volumes.routing.ledger_moves import LedgerMoves
from bookkeeper.volumes.routing.routes import Routes, lost_error


class VolumeWrites:
    """The same interface as :class:`Engine`. Owned by the loop's thread."""

    def __init__(self, serving: ServingVolumes, routes: Routes, places: StoredLedgerMap, moves: LedgerMoves) -> None:
        self._serving, self._routes, self._places, self._moves = serving, routes, places, moves
        self._touched: dict[int, set[int]] = {}
        """Volumes that were given something since the last :meth:`when_durable`, and the ledgers concerned."""

    def landing(self, size: int) -> tuple[memoryview, int] | None:
        """See :meth:`Engine.landing`: it is not known yet on which volume the run's ledger is."""
        return None

    def append(self, run: RecordRun, batch: EntryRecords, *, recovery: bool = False) -> None:
        """See :meth:`Engine.append`. BookieFailedError: the ledger's volume was lost."""
        ledger_id = run.ledger_id
        volume = self._routes.taker(ledger_id, recovery)
        volume.engine.append(run, batch, recovery=recovery)
        self._touch(volume, ledger_id)
        if self._moves:
            self._append_too(ledger_id, lambda engine: engine.append(run, batch, recovery=True))

    def append_entry(self, ledger_id: LedgerId, master_key: bytes, entry: Buffer, *, recovery: bool = False) -> None:
        """See :meth:`Engine.append_entry`."""
        volume = self._routes.taker(ledger_id, recovery)
        volume.engine.append_entry(ledger_id, master_key, entry, recovery=recovery)
        self._touch(volume, ledger_id)
        if self._moves:
            self._append_too(ledger_id, lambda engine: engine.append_entry(ledger_id, master_key, entry, recovery=True))

    def _append_too(self, ledger_id: int, act: Callable[[Engine], None]) -> None:
        """The same on the target, if the ledger is being moved."""
        if (move := self._moves.get(ledger_id)) is not None and self._moves.too(move, act):
            self._touch(move.target, ledger_id)

    def _touch(self, volume: Volume, ledger_id: int) -> None:
        if (ledgers := self._touched.get(volume.number)) is None:
            self._touched[volume.number] = {ledger_id}
        else:
            ledgers.add(ledger_id)

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
            new = {each for ledgers in touched.values() for each in ledgers if self._places.any_fresh((each,))}
            parts.append((self._placed(new), new))
        return after_all_ledgers(parts, callback)

    def _placed(self, ledger_ids: Collection[int]) -> Callable[[Done], None]:
        """Waits until the places of these ledgers are durable. Fails if one of them has lost its volume meanwhile."""

        def begin(done: Done) -> None:
            def ended(error: BaseException | None) -> None:
                nowhere = [each for each in ledger_ids if self._places.placements.volume_of(each) is None]
                done(lost_error(nowhere[0]) if error is None and nowhere else error)

            self._places.when_placed(ended)

        return begin

    def _durable_on(self, number: int) -> Callable[[Done], None]:
        volume = self._serving.by_number.get(number)
        if volume is None:
            return lambda done: done(BookieFailedError("the disk that was to have the entries has failed"))
        return volume.engine.when_durable

    def start_writing(self) -> None:
        """See :meth:`Engine.start_writing`."""
        touched, self._touched = self._touched, {}
        for number in touched:
            if (volume := self._serving.by_number.get(number)) is not None:
                volume.engine.start_writing()
        self._places.write()

    def fence(self, ledger_id: LedgerId, master_key: bytes, callback: Done) -> None:
        """See :meth:`Engine.fence`."""
        if dropped := [engine for engine in self._serving.engines if ledger_id in engine.dropped]:
            return after_all([lambda done, at=at: at.fence(ledger_id, master_key, done) for at in dropped], callback)  # type: ignore[misc]
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
        volume, move = self._routes.taker(ledger_id, recovery), self._moves.get(ledger_id)
        changed, copied = _Pending(), _Pending()
        act(volume.engine, changed.done)
        begun: list[Callable[[Done], None]] = [changed.then]
        if move is not None and self._moves.too(move, lambda engine: act(engine, copied.done)):
            begun.append(copied.then)
        if self._places.any_fresh((ledger_id,)):
            begun.append(self._placed((ledger_id,)))
        after_all(begun, callback)

    def force(self, ledger_id: LedgerId, callback: Done) -> None:
        """See :meth:`Engine.force`. Fails for a ledger that is lost, or ever was: what it had taken and not
        synced is gone, and a copy that is whole says nothing of it. With a negative id: for all ledgers."""
        if ledger_id < 0:
            return after_all(
                [*(each.when_durable for each in self._serving.engines), self._places.when_placed], callback
            )
        placements = self._places.placements
        if ledger_id in placements.lost or ledger_id in placements.retired:
            return callback(lost_error(ledger_id))
        volume, move = self._routes.at(ledger_id), self._moves.get(ledger_id)
        if volume is None:
            return callback(None)
        begun: list[Callable[[Done], None]] = [lambda done: volume.engine.force(ledger_id, done)]
        if move is not None and move.answers_wait and move.error is None:
            begun.append(lambda done: move.target.engine.force(ledger_id, done))
        elif move is not None and move.error is not None:
            self._moves.take_back(move)
        if self._places.any_fresh((ledger_id,)):
            begun.append(self._placed((ledger_id,)))
        return after_all(begun, callback)

    def ledger_closed(self, ledger_id: LedgerId) -> None:
        """See :meth:`Engine.ledger_closed`."""
        if (volume := self._routes.at(ledger_id)) is not None:
            volume.engine.ledger_closed(ledger_id)


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
