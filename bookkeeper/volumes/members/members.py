"""Which volumes serve, and what changes that: one is added, fails, is given up, is being drained, is drained.

**A volume that fails** leaves at once, and its ledgers are lost. The bookie fails when its last volume does, or when it
cannot write down where ledgers are; what was on the last volume is not lost with that: the next start tries its disk
again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import replace

from bookkeeper.errors import BookieFailedError, in_words
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.storage.base.disk_state import DiskState
from bookkeeper.storage.base.durable_file import NO_SPACE, TRANSIENT
from bookkeeper.storage.base.results import Done, ignore
from bookkeeper.storage.engine import Engine, EngineState
from bookkeeper.volumes.after_all import after_all
from bookkeeper.volumes.disks.serving import ServingVolumes, Volume
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, last_of
from bookkeeper.volumes.disks.volume_list_file import VolumeListFile
from bookkeeper.volumes.map.ledger_map import PlacementKind
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from bookkeeper.volumes.members.volume_housekeeping import VolumeScrubbers
from bookkeeper.volumes.routing.ledger_moves import LedgerMoves


def share(dropped: IdRanges, engines: Iterable[Engine], callback: Done) -> None:
    """Have every engine remember that these were dropped; ``callback`` when they do. Nothing is written twice."""
    ranges = list(dropped)
    lacking = [engine for engine in engines if not all(engine.dropped.covers(*run) for run in ranges)]
    after_all([collects(engine, ranges) for engine in lacking], callback)


def collects(
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


class Members:
    """Changes the volumes that serve, their list, and the bookie's state; nobody else does. Owned by the loop's
    thread."""

    def __init__(
        self,
        serving: ServingVolumes,
        list_file: VolumeListFile,
        places: StoredLedgerMap,
        moves: LedgerMoves,
        state: DiskState,
        unknowns: Container[int],
        scrubber: VolumeScrubbers,
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        """
        Args:
            unknowns: ledgers of which a missing entry is answered "unknown".
        """
        self._serving, self._list, self._places, self._moves = serving, list_file, places, moves
        self._state, self._unknowns, self._call_later = state, unknowns, call_later
        self.scrubber = self._scrubber = scrubber
        self._failed_for_good: BaseException | None = None
        self._on_new_file: Callable[[], None] | None = None
        self.pressure = Pressure()
        self.on_loss: Callable[[str, str, int], None] = lambda directory, reason, ledgers: None
        """Called when a volume has left: its directory, why, and how many ledgers were on it."""
        list_file.failed = places.log.failed = self._fail

    def begin(self, volumes: Iterable[Volume]) -> None:
        """The volumes that a start has opened serve."""
        for each in volumes:
            self.admit(each)
        self._judge()

    def add(self, volume: Volume, listed: VolumeList, callback: Done) -> None:
        """Let one volume more serve, once the list that has it as used is durable, and it remembers the ledgers that
        were dropped. ``callback`` then.

        Args:
            listed: the list of now, with this volume as a new one.
        """
        self._list.now = self._list.now.with_entry(replace(listed.entries[-1], state=VolumeState.USED))

        def written(error: BaseException | None) -> None:
            if error is not None or self._state.closing:
                if error is not None:
                    self._list.now = self._list.now.with_state(volume.number, VolumeState.DRAINED)
                volume.engine.close(ignore)
                return callback(error or BookieFailedError("the bookie is closing"))
            return collects(volume.engine, self._serving.dropped)(remembered)

        def remembered(error: BaseException | None) -> None:
            if self._state.closing:
                volume.engine.close(ignore)
                return callback(BookieFailedError("the bookie is closing"))
            self.admit(volume)
            if volume.number not in self._serving.by_number:
                error = BookieFailedError(f"{volume.config.ledger_dir} failed while it was added")
            elif self._scrubber.began:
                volume.engine.scrubber.begin()
            self._judge()
            return callback(error)

        self._list.write(written)

    def set_state(self, number: int, state: VolumeState, callback: Done) -> None:
        """Note that a volume is draining, drained, or used again. If that cannot be written down, nothing has changed.

        One that is drained serves no more. The list has it as drained when the others remember which of its ledgers
        were dropped: a collection that was answered with an error may have left that to this volume alone.
        """
        if state is VolumeState.DRAINED:
            self._let_go(number, callback)
        else:
            self._note(number, state, callback)
        self._judge()

    def _note(self, number: int, state: VolumeState, callback: Done) -> None:
        """Let the list have another state of a volume; as it was, if that cannot be written."""
        before = self._list.state_of(number) or state
        self._list.now = self._list.now.with_state(number, state)

        def written(error: BaseException | None) -> None:
            if error is not None and self._list.state_of(number) is state:
                self._list.now = self._list.now.with_state(number, before)
                self._judge()
            callback(error)

        self._list.write(written)

    def _let_go(self, number: int, callback: Done) -> None:
        leaving = self._serving.end(number)
        self._places.forget_empty(number)
        self._scrubber.departed()
        dropped = list(leaving.engine.dropped)

        def remembered(error: BaseException | None) -> None:
            if error is not None:
                return noted(error)
            return self._note(number, VolumeState.DRAINED, noted)

        def noted(error: BaseException | None) -> None:
            if error is None:
                return leaving.engine.close(lambda _closed: callback(None))
            self._serve_again(leaving)
            return callback(error)

        after_all([collects(engine, dropped) for engine in self._serving.engines], remembered)

    def _serve_again(self, volume: Volume) -> None:
        """A volume could not be let go: the next attempt finds it where it was."""
        if self._state.closing:
            return volume.engine.close(ignore)
        self._serving.begin(volume)
        if volume.engine.state is EngineState.FAILED:
            self.lose(volume.number, "it failed while it was let go")
        return self._judge()

    def lose(self, number: int, reason: str) -> None:
        """A volume has failed, or is given up: it leaves, and its ledgers are lost.

        The last one that serves does not leave: the bookie fails with it, and its next start tries the disk again, as
        that of a bookie with one directory does.
        """
        if self._state.closing or (volume := self._serving.by_number.get(number)) is None:
            return None
        if len(self._serving) == 1:
            return self._fail(BookieFailedError(f"the last ledger directory, {volume.config.ledger_dir}: {reason}"))
        self._serving.end(number)
        self._moves.lost(volume, BookieFailedError(f"{volume.config.ledger_dir} was lost: {reason}"))
        count = self._places.placements.count(number)
        self._places.record(PlacementKind.VOLUME_LOST, volume=number)
        self._list.now = self._list.now.with_state(number, VolumeState.LOST, reason)
        self._list.write(ignore)
        self._call_later(0.0, lambda: volume.engine.close(ignore))
        self.on_loss(volume.config.ledger_dir, reason, count)
        self._scrubber.departed()
        self._scrubber.report_suspects()
        self.pressure.end(number)
        return self._judge()

    def is_last(self, number: int) -> bool:
        """Whether there is no other volume that gets new ledgers."""
        return last_of((each for each in self._list.now if each.number in self._serving.by_number), number)

    def check_space(self) -> None:
        """See :meth:`Engine.check_space`. A volume that cannot even be asked is lost."""
        for each in self._serving:
            try:
                each.engine.check_space()
                self._serving.note_space(each)
            except OSError as error:
                if error.errno in TRANSIENT and error.errno not in NO_SPACE:
                    continue
                self.lose(each.number, in_words(error))
        self._places.write()
        self._list.catch_up()
        self._judge()

    def on_new_journal_file(self, callback: Callable[[], None]) -> None:
        """See :meth:`Engine.on_new_journal_file`."""
        self._on_new_file = callback
        for engine in self._serving.engines:
            engine.on_new_journal_file(callback)

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
            after_all([engine.close for engine in self._serving.engines], closed)

        return self._places.log.when_stored(noted)  # the bookie's last word publishes it

    # -- what volumes tell --------------------------------------------------------------------------------

    def admit(self, volume: Volume) -> None:
        """A volume serves from now on."""
        number, engine = volume.number, volume.engine
        self._serving.begin(volume)
        with suppress(OSError):
            self._serving.note_space(volume)
        engine.doubt(self._unknowns)
        engine.on_state(lambda state, reason: self._on_volume_state(number, state, reason))
        engine.on_pressure(lambda: self.pressure.begin(number), lambda: self.pressure.end(number))
        self._scrubber.admit(engine.scrubber)
        if self._on_new_file is not None:
            engine.on_new_journal_file(self._on_new_file)
        if engine.state is EngineState.FAILED:
            self._on_volume_state(number, engine.state, "it failed while it started")

    def _on_volume_state(self, number: int, state: EngineState, reason: str) -> None:
        if state is EngineState.FAILED and not self._state.closing:
            self.lose(number, reason)
        elif state is not EngineState.CLOSED:
            self._judge()

    def _judge(self) -> None:
        """Bring the bookie's state up to date."""
        engines = [each.engine for each in self._serving if self._list.is_used(each.number)]
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


class Pressure:
    """Owned by the loop's thread."""

    def __init__(self) -> None:
        self._pressed: set[int] = set()
        self._pause: Callable[[], None] = ignore
        self._resume: Callable[[], None] = ignore

    def on_change(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Who to tell."""
        self._pause, self._resume = pause, resume

    def begin(self, number: int) -> None:
        """A volume has too much to write."""
        self._pressed.add(number)
        self._pause()

    def end(self, number: int) -> None:
        """A volume has caught up, or is gone: callers go on if it was the last one."""
        self._pressed.discard(number)
        if not self._pressed:
            self._resume()
