"""Ledgers that are being moved from one volume to another, while they are written.

    begin          adds go to both volumes; they are answered when the source has them
    wait_for_both  they are answered when both have them
    finish         the ledger is placed on the target, and served from there when that is durable
    end            always, and last; a move that did not come to its end is taken back

If the target fails, the move ends, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.engine import Engine
from bookkeeper.volumes.disks.serving import Volume
from bookkeeper.volumes.map.ledger_map import PlacementKind, PlacementRecord
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap


@dataclass(eq=False, slots=True)
class LedgerMove:
    """A ledger that is being copied to another volume."""

    ledger_id: LedgerId
    source: Volume
    target: Volume
    answers_wait: bool = False
    """Whether an add is answered only when it is durable on both."""
    recorded: bool = False
    """Whether the log of placements may have the target."""
    error: BaseException | None = None
    """Why it cannot go on."""


class LedgerMoves:
    """Owned by the loop's thread."""

    def __init__(self, places: StoredLedgerMap) -> None:
        self._places = places
        self._moves: dict[int, LedgerMove] = {}

    def __bool__(self) -> bool:
        return bool(self._moves)

    def get(self, ledger_id: int) -> LedgerMove | None:
        """The move of a ledger, if there is one."""
        return self._moves.get(ledger_id)

    def begin(self, ledger_id: LedgerId, source: Volume, target: Volume) -> LedgerMove:
        """From now on adds to a ledger go to another volume, too."""
        move = self._moves[ledger_id] = LedgerMove(ledger_id, source, target)
        return move

    def wait_for_both(self, move: LedgerMove, callback: Done) -> None:
        """From now on an add is answered when it is durable on both; ``callback`` when everything before is."""
        move.answers_wait = True
        move.target.engine.when_durable(callback)

    def finish(self, move: LedgerMove, callback: Done) -> None:
        """Place the ledger on the target. ``callback`` when that is durable; then the ledger is served from there."""
        move.recorded = True
        ledger_id, places = move.ledger_id, self._places
        placed = PlacementRecord(PlacementKind.PLACED, ledger_id, move.target.number)
        places.log.append(placed)

        def durable(error: BaseException | None) -> None:
            error = error or move.error
            if error is None and self._moves.get(ledger_id) is move and self._is_on_source(move):
                places.placements.take(placed)
                del self._moves[ledger_id]
            callback(error)

        places.log.when_durable(durable)

    def end(self, move: LedgerMove) -> None:
        """Give a move up that has not ended: the ledger stays where it is. What was copied is known to nobody."""
        if self._moves.get(move.ledger_id) is not move:
            return
        del self._moves[move.ledger_id]
        self.take_back(move)
        self._places.write()

    def lost(self, volume: Volume, error: BaseException) -> None:
        """A volume has failed: no move from it or to it can go on."""
        for move in self._moves.values():
            if volume in (move.source, move.target) and move.error is None:
                move.error = error

    def too(self, move: LedgerMove, act: Callable[[Engine], None]) -> bool:
        """Do the same on the target; whether that is to be waited for. If it fails the move ends, and nothing else."""
        if move.error is None:
            try:
                act(move.target.engine)
            except Exception as error:
                move.error = error
            else:
                return move.answers_wait
        self.take_back(move)
        return False

    def take_back(self, move: LedgerMove) -> None:
        """A move cannot go on. The log may have the target already, whose copy is not whole from now on: nothing about
        the ledger is answered until the log has the source again (K35)."""
        if move.recorded and self._is_on_source(move):
            move.recorded = False
            self._places.place(move.ledger_id, move.source.number)

    def _is_on_source(self, move: LedgerMove) -> bool:
        return self._places.placements.volume_of(move.ledger_id) == move.source.number
