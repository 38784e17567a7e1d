"""What is read of a ledger is asked of the volume that has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bookkeeper.codec import Answers, Reads
from bookkeeper.errors import DataUnknownError, NoSuchLedgerError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.base.results import AvailabilityRun, PackedEntries, ignore
from bookkeeper.volumes.disks.serving import ServingVolumes
from bookkeeper.volumes.map.ledger_map import Placements
from bookkeeper.volumes.routing.routes import Routes


class VolumeReads:
    """The same interface as :class:`Engine`. Runs on the loop's thread, and keeps nothing."""

    def __init__(self, serving: ServingVolumes, routes: Routes, placements: Placements) -> None:
        self._serving, self._routes, self._placements = serving, routes, placements

    def read(self, ledger_id: LedgerId, entry_id: EntryId, reply: Callable[[bytes | BaseException], None]) -> None:
        """See :meth:`Engine.read`."""
        try:
            engine = self._routes.engine_of(ledger_id)
        except (DataUnknownError, NoSuchLedgerError) as error:
            return reply(error)
        return engine.read(ledger_id, entry_id, reply)

    def try_read_cached(self, reads: Reads, i0: int, frame_max: int) -> Answers | None:
        """See :meth:`Engine.try_read_cached`."""
        volume = self._routes.at(reads.ledger_ids[i0])
        return volume.engine.try_read_cached(reads, i0, frame_max) if volume is not None else None

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
            engine = self._routes.engine_of(ledger_id)
        except (DataUnknownError, NoSuchLedgerError) as error:
            return reply(error)
        return engine.read_batch(ledger_id, first, count_max, size_max, reply)

    def lac(self, ledger_id: LedgerId) -> int:
        """See :meth:`Engine.lac`."""
        return self._routes.engine_of(ledger_id).lac(ledger_id)

    def explicit_lac(self, ledger_id: LedgerId) -> tuple[int, bytes] | None:
        """See :meth:`Engine.explicit_lac`."""
        return self._routes.engine_of(ledger_id).explicit_lac(ledger_id)

    def last_entry(self, ledger_id: LedgerId) -> EntryId:
        """See :meth:`Engine.last_entry`."""
        return self._routes.engine_of(ledger_id).last_entry(ledger_id)

    def entries(self, ledger_id: LedgerId) -> Sequence[AvailabilityRun]:
        """See :meth:`Engine.entries`."""
        return self._routes.engine_of(ledger_id).entries(ledger_id)

    def is_fenced(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Routes.is_fenced`."""
        return self._routes.is_fenced(ledger_id)

    def on_lac(self, ledger_id: LedgerId, callback: Callable[[int], None]) -> Callable[[], None]:
        """See :meth:`Engine.on_lac`; of a ledger that is not here nothing is ever told."""
        volume = self._routes.at(ledger_id)
        return ignore if volume is None else volume.engine.on_lac(ledger_id, callback)

    def has(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Engine.has`."""
        volume = self._routes.at(ledger_id)
        return volume is not None and volume.engine.has(ledger_id)

    def is_strange(self, ledger_id: LedgerId) -> bool:
        """See :meth:`Engine.is_strange`."""
        volume = self._routes.at(ledger_id)
        return volume.engine.is_strange(ledger_id) if volume is not None else not self._serving.has_dropped(ledger_id)

    def ledgers(self) -> Iterable[LedgerId]:
        """Every ledger with anything here, a snapshot. What a move has left on another volume is not here."""
        where = self._placements.volume_of
        return [ledger for each in self._serving for ledger in each.engine.ledgers() if where(ledger) == each.number]
