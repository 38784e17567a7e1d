"""What concerns all ledgers is asked of all volumes: it has ended when it has ended on all of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import fields

from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.seams import Space
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.base.results import Done, EngineState, EngineStats, OpenReport
from bookkeeper.volumes.after_all import after_all
from bookkeeper.volumes.calls.reads import VolumeReads
from bookkeeper.volumes.calls.suspects import Suspects, UnknownLedgers
from bookkeeper.volumes.disks.serving import ServingVolumes
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from bookkeeper.volumes.members.members import Members, collects, share
from bookkeeper.volumes.members.volume_housekeeping import VolumeCompactors, VolumeScrubbers
from bookkeeper.volumes.routing.routes import Routes


def merged_report(reports: Sequence[OpenReport]) -> OpenReport:
    """What the starts of all volumes have found."""
    tails = [each.torn_tail for each in reports if each.torn_tail]
    limbo = [each.limbo_reason for each in reports if each.limbo_reason]
    return OpenReport(
        clean=all(each.clean for each in reports),
        last_boot=max((each.last_boot for each in reports), default=0),
        fresh=all(each.fresh for each in reports),
        replayed_groups=sum(each.replayed_groups for each in reports),
        replayed_records=sum(each.replayed_records for each in reports),
        torn_tail="; ".join(tails) or None,
        limbo_reason="; ".join(limbo) or None,
        rebuilt=any(each.rebuilt for each in reports),
        quarantined=[place for each in reports for place in each.quarantined],
    )


def merged_stats(stats: Sequence[EngineStats]) -> EngineStats:
    """The sums; of the slowest sync the maximum."""
    merged = EngineStats()
    for field in fields(EngineStats):
        values = [getattr(each, field.name) for each in stats]
        if field.name == "sync_summary":
            for each in stats:
                merged.sync_summary.include(each.sync_summary)
        elif values:
            setattr(merged, field.name, max(values) if field.name == "slowest_sync_seconds" else sum(values))
    return merged


class AllVolumes:
    """The same interface as :class:`Engine` for what concerns all ledgers, or none. Runs on the loop's thread."""

    def __init__(
        self,
        report: OpenReport,
        serving: ServingVolumes,
        routes: Routes,
        places: StoredLedgerMap,
        reads: VolumeReads,
        state: DiskState,
        unknowns: UnknownLedgers,
        members: Members,
    ) -> None:
        self.report: OpenReport = report
        self._serving, self._routes, self._places, self._reads = serving, routes, places, reads
        self._state, self._unknowns, self._members = state, unknowns, members
        self._suspects = Suspects(serving, routes, places)
        self.scrubber: VolumeScrubbers = members.scrubber
        """Reads and checks every stored byte of every volume."""
        self.compactor = VolumeCompactors(lambda: {each.number: each.engine.compactor for each in serving})
        """Compacts every volume."""

    # -- whether the disks take adds ----------------------------------------------------------------------

    @property
    def state(self) -> EngineState:
        """Writable while any volume takes new ledgers; failed when none is left."""
        return self._state.now

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        """See :meth:`Engine.on_state`; :attr:`state` says what counts."""
        self._state.on_change(callback)

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """See :meth:`Engine.on_pressure`: while any volume has too much to write."""
        self._members.pressure.on_change(pause, resume)

    def on_new_journal_file(self, callback: Callable[[], None]) -> None:
        """See :meth:`Engine.on_new_journal_file`."""
        self._members.on_new_journal_file(callback)

    def check_space(self) -> None:
        """See :meth:`Members.check_space`."""
        self._members.check_space()

    def refusals(self) -> tuple[str, ...]:
        """See :meth:`Engine.refusals`."""
        return tuple(said for each in self._serving.engines for said in each.refusals())

    def sentences(self) -> tuple[str, ...]:
        """See :meth:`Engine.sentences`."""
        return tuple(said for each in self._serving.engines for said in each.sentences())

    def close(self, callback: Done) -> None:
        """See :meth:`Engine.close`."""
        self._members.close(callback)

    # -- keeping house ------------------------------------------------------------------------------------

    def checkpoint(self, callback: Done) -> None:
        """See :meth:`Engine.checkpoint`."""
        after_all([engine.checkpoint for engine in self._serving.engines], callback)

    def collect(
        self,
        dead: Container[LedgerId] | Callable[[LedgerId], bool],
        callback: Done,
        *,
        never_again: Iterable[tuple[int, int]] = (),
    ) -> None:
        """See :meth:`Engine.collect`. Every volume remembers every ledger that was dropped.

        Until all do, a ledger keeps its place: if the volume that dropped it is lost, it counts as lost. So those that
        a collection has left that ended with an error come along with the next one.
        """
        is_dead = dead if callable(dead) else dead.__contains__
        gone = [*(ledger for ledger in self._reads.ledgers() if is_dead(ledger)), *self._dropped_and_placed()]
        ranges = [*never_again, *((ledger, ledger) for ledger in gone)]

        def collected(error: BaseException | None) -> None:
            if error is not None:
                return callback(error)
            retired, forgotten = self._places.placements.retired, IdRanges(ranges)
            nowhere = [LedgerId(each) for each in retired if self._routes.at(each) is None and each in forgotten]
            return self._places.forget([*gone, *nowhere], callback)

        after_all([collects(engine, ranges, is_dead) for engine in self._serving.engines], collected)

    def _dropped_and_placed(self) -> list[LedgerId]:
        """Ledgers whose volume has dropped them, and that are placed there still."""
        dropped, none = {each.number: each.engine.dropped for each in self._serving}, IdRanges()
        return [ledger for ledger, number in self._places.placements.placed() if ledger in dropped.get(number, none)]

    def share_dropped(self, callback: Done) -> None:
        """Have every volume remember which ledgers were dropped by any; ``callback`` when they do. A volume that was
        configured for this start knows of none, one on which the last collection failed not of all. What is not shared
        goes with its disk, and a writer that is late makes a deleted ledger anew."""
        share(self._serving.dropped, self._serving.engines, callback)

    def compact(self, callback: Done, *, major: bool = False) -> None:
        """See :meth:`Engine.compact`: all volumes at the same time."""
        after_all([lambda done, each=each: each.compact(done, major=major) for each in self._serving.engines], callback)  # type: ignore[misc]

    def finish_logs(self) -> None:
        """See :meth:`Engine.finish_logs`."""
        for engine in self._serving.engines:
            engine.finish_logs()

    @property
    def dropped(self) -> IdRanges:
        """See :attr:`Engine.dropped`; a copy."""
        return self._serving.dropped

    # -- what may be missing ------------------------------------------------------------------------------

    @property
    def in_limbo(self) -> bool:
        """See :attr:`Engine.in_limbo`: a volume is."""
        return any(engine.in_limbo for engine in self._serving.engines)

    @property
    def takes_new_ledgers(self) -> bool:
        """See :attr:`Engine.takes_new_ledgers`: a volume does."""
        return any(engine.takes_new_ledgers for engine in self._serving.engines)

    def narrow_limbo(self, ledgers: Iterable[LedgerId]) -> None:
        """See :meth:`Engine.narrow_limbo`."""
        chosen = frozenset(ledgers)
        for engine in self._serving.engines:
            engine.narrow_limbo(chosen)

    def end_limbo(self, ledger_id: LedgerId | None = None) -> None:
        """See :meth:`Engine.end_limbo`."""
        for engine in self._serving.engines:
            engine.end_limbo(ledger_id)

    def doubt(self, ledgers: Container[int]) -> None:
        """See :meth:`Engine.doubt`."""
        self._unknowns.doubted = ledgers

    @property
    def suspects(self) -> frozenset[int]:
        """See :attr:`Engine.suspects`; lost ledgers are among them."""
        return self._suspects.ledgers

    def suspicion(self, ledger_id: LedgerId) -> int:
        """See :meth:`Engine.suspicion`."""
        return self._suspects.suspicion(ledger_id)

    def end_suspicion(self, ledger_id: LedgerId, suspicion: int) -> bool:
        """See :meth:`Engine.end_suspicion`."""
        return self._suspects.end(ledger_id, suspicion)

    # -- figures ------------------------------------------------------------------------------------------

    @property
    def stats(self) -> EngineStats:
        """The sums over the volumes that serve."""
        return merged_stats([engine.stats for engine in self._serving.engines])

    @property
    def journal_bytes_in_flight(self) -> int:
        """Bytes accepted and not yet durable, of all volumes."""
        return sum(engine.journal_bytes_in_flight for engine in self._serving.engines)

    def space(self) -> Space:
        """Bytes of all volumes' file systems. Two volumes on one file system count it twice."""
        found = [engine.space() for engine in self._serving.engines]
        return Space(total=sum(each.total for each in found), free=sum(each.free for each in found))
