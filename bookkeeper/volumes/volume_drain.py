"""Empties a volume: its ledgers are moved to the others, one after the other, while they are read and written.

A move copies what is stored while adds go to both volumes; then adds are answered only when they are durable on both;
when everything before that is durable on the target, the ledger is placed there, and served from there. A crash at any
moment leaves the ledger on the one or on the other, whole.

A ledger of which damage may have taken entries is not moved until it is whole again. Whoever waits for the last add
confirmed of a ledger that is moved waits until the wait's time is over.
"""

from __future__ import annotations

import asyncio
import logging
from struct import Struct
from typing import Final

from bookkeeper.errors import BookKeeperError, DataUnknownError, NoSuchLedgerError, in_words
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.engine import Engine, PackedEntries
from bookkeeper.volumes.after_all import wait_until_done
from bookkeeper.volumes.disks.volume_list import VolumeState
from bookkeeper.volumes.mapped_volumes import MappedVolumes
from bookkeeper.volumes.routing.ledger_moves import LedgerMove

log = logging.getLogger(__name__)

BATCH_BYTES: Final = 1 << 20
AGAIN_S: Final = 5.0
"""Seconds before ledgers that could not be moved are tried again."""
_NAP_S: Final = 0.02
_LENGTH: Final = Struct(">I")


class VolumeDrain:
    """Empties one volume. Runs on the loop's thread."""

    def __init__(self, volumes: MappedVolumes, number: int, bytes_per_s: int) -> None:
        """
        Args:
            bytes_per_s: entries are copied at most so fast; 0: no limit.
        """
        self._volumes, self._number, self._bytes_per_s = volumes, number, bytes_per_s
        self.moved = 0
        """Ledgers that were moved since the bookie's start."""
        self.waits_for: dict[LedgerId, str] = {}
        """Ledgers that could not be moved yet, and why."""

    async def run(self) -> None:
        """Move ledgers until none is left, then let the volume go. Errors are logged, and tried again.

        Returns early when the volume is lost meanwhile.
        """
        members = self._volumes.members
        while self._serves():
            try:
                if await self.one_pass() and not members.is_last(self._number):
                    await wait_until_done(lambda done: members.set_state(self._number, VolumeState.DRAINED, done))
                    return
            except Exception as error:
                log.warning("a ledger directory could not be emptied (%s): it is tried again", in_words(error))
            await asyncio.sleep(AGAIN_S)

    async def one_pass(self) -> bool:
        """Try to move every ledger once. Returns whether none is left."""
        for ledger_id in self._volumes.placements.ledgers_on(self._number):
            if not self._serves():
                return False
            try:
                await self._move(ledger_id)
                self.waits_for.pop(ledger_id, None)
            except NoSuchLedgerError:
                self.waits_for.pop(ledger_id, None)  # it was deleted meanwhile, or nothing of it was stored
            except (BookKeeperError, OSError) as error:
                self.waits_for[ledger_id] = in_words(error)
        left = self._volumes.placements.ledgers_on(self._number)
        engine = self._engine()
        return engine is not None and not any(engine.has(ledger) for ledger in left)

    def _serves(self) -> bool:
        return self._engine() is not None

    def _engine(self) -> Engine | None:
        return next((each.engine for each in self._volumes.serving if each.number == self._number), None)

    async def _move(self, ledger_id: LedgerId) -> None:
        """
        Raises:
            NoSuchLedgerError: there is nothing to move.
            BookKeeperError: it could not be moved now; the ledger is where it was.
        """
        source, target = self._engine(), self._volumes.best_target(self._number)
        if source is None or not source.has(ledger_id):
            raise NoSuchLedgerError(f"ledger {ledger_id} is not here")
        if target is None:
            raise BookKeeperError("no other ledger directory takes ledgers")
        key = source.master_key(ledger_id)
        if key is None:
            raise DataUnknownError(
                "the bookie does not know its key: recover it with `bk ledger recover`, or let its writer append"
            )
        if source.may_lack(ledger_id) or ledger_id in self._volumes.suspects:
            raise DataUnknownError(
                "some of its entries may be missing here: it is moved when they are copied from other bookies"
            )
        move = self._volumes.begin_move(ledger_id, target)
        try:
            await self._copy(ledger_id, key, source, move)
            await wait_until_done(lambda done: self._volumes.moves.wait_for_both(move, done))
            self._compare(ledger_id, source, move)
            await wait_until_done(lambda done: self._volumes.moves.finish(move, done))
            self.moved += 1
        finally:
            self._volumes.moves.end(move)

    async def _copy(self, ledger_id: LedgerId, key: bytes, source: Engine, move: LedgerMove) -> None:
        """Copy what was stored before the move began, then the fence and the explicit LAC."""
        target, owed = move.target.engine, 0.0
        for run in source.entries(ledger_id):
            at, end = run.first, run.first + run.count
            while at < end:
                packed = await _read(source, ledger_id, EntryId(at), end - at)
                for entry in _entries(packed):
                    target.append_entry(ledger_id, key, entry, recovery=True)
                at = EntryId(at + packed.count)
                _raise(move)
                await wait_until_done(target.when_durable)
                if self._bytes_per_s and (owed := owed + len(packed.body) / self._bytes_per_s) > _NAP_S:
                    await asyncio.sleep(owed)
                    owed = 0.0
        if (explicit := source.explicit_lac(ledger_id)) is not None:
            await wait_until_done(lambda done: target.set_explicit_lac(ledger_id, key, *explicit, done))
        if source.is_fenced(ledger_id):
            await wait_until_done(lambda done: target.fence(ledger_id, key, done))

    def _compare(self, ledger_id: LedgerId, source: Engine, move: LedgerMove) -> None:
        """Raises: BookKeeperError: the copy lacks something."""
        _raise(move)
        target = move.target.engine
        if not target.has(ledger_id) and not source.entries(ledger_id):
            return  # nothing of it is stored but its key
        if (
            list(target.entries(ledger_id)) != list(source.entries(ledger_id))
            or target.is_fenced(ledger_id) is not source.is_fenced(ledger_id)
            or target.lac(ledger_id) < source.lac(ledger_id)
        ):
            raise BookKeeperError("it was changed while it was copied")


def _raise(move: LedgerMove) -> None:
    if move.error is not None:
        raise BookKeeperError(f"its copy failed: {in_words(move.error)}") from move.error


async def _read(engine: Engine, ledger_id: LedgerId, first: EntryId, count: int) -> PackedEntries:
    got: asyncio.Future[PackedEntries] = asyncio.get_running_loop().create_future()

    def on_packed(packed: PackedEntries | BaseException) -> None:
        if not got.done():
            got.set_exception(packed) if isinstance(packed, BaseException) else got.set_result(packed)

    engine.read_batch(ledger_id, first, count, BATCH_BYTES, on_packed)
    return await got


def _entries(packed: PackedEntries) -> list[memoryview]:
    view, found, at = memoryview(packed.body), [], 0
    while at < len(view):
        (size,) = _LENGTH.unpack_from(view, at)
        found.append(view[at + 4 : at + 4 + size])
        at += 4 + size
    return found
