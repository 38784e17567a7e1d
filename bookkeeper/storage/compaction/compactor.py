"""Compaction as the engine sees it: runs when they are due or asked for, and reports what lives in every log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bookkeeper.errors import BookieFailedError
from bookkeeper.seams import Disk
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.compaction.compaction_steps import CompactionSteps
from bookkeeper.storage.compaction.log_use import uses_of
from bookkeeper.storage.compaction.schedule import CompactionKind, CompactionSchedule, LogUse


@dataclass(slots=True)
class Compactor:
    """Owned by the loop's thread."""

    disk: Disk
    directory: str
    schedule: CompactionSchedule
    steps: CompactionSteps
    _wanted: list[tuple[CompactionKind, Done]] = field(default_factory=list)
    """Runs that were asked for while one was going on."""

    def run(self, kind: CompactionKind, callback: Done) -> None:
        """Make a run now, or after the one that is going on. ``callback(None)`` when it is over; else with why not."""
        if self.steps.state.closing or self.steps.checkpointer.commit.failure is not None:
            return callback(BookieFailedError("the disk is closing, or has failed"))
        if self.schedule.running is not None:
            self._wanted.append((kind, callback))
            return None

        def ended(error: BaseException | None) -> None:
            callback(error)
            while self._wanted and self.schedule.running is None:
                self.run(*self._wanted.pop(0))

        self.schedule.begin(kind, self.steps.monotonic())
        return self.steps.begin(self.report, ended)

    def run_if_due(self, callback: Done) -> None:
        """Begin a run if it is time for one; ``callback`` as by :meth:`run`."""
        if not self.steps.state.closing and (kind := self.schedule.due(self.steps.monotonic())) is not None:
            self.run(kind, callback)

    def suspend(self) -> None:
        """Stop where it is, and begin nothing, until :meth:`resume`. Nothing is lost."""
        self.schedule.suspend()

    def resume(self) -> None:
        """Go on where :meth:`suspend` has stopped."""
        self.schedule.resume()
        self.steps.go_on()

    @property
    def is_running(self) -> bool:
        """Whether a run goes on."""
        return self.schedule.running is not None

    @property
    def is_suspended(self) -> bool:
        """Whether an operator has suspended it."""
        return self.schedule.suspended

    @property
    def logs_left(self) -> int:
        """How many entry logs are not compacted, because something is wrong with them."""
        return len(self.schedule.left)

    @property
    def age_s(self) -> float | None:
        """Seconds since a run last ended well; None: none has since the start."""
        last = self.schedule.last_good
        return None if last is None else self.steps.monotonic() - last

    def report(self, callback: Callable[[list[LogUse] | BaseException], None]) -> None:
        """What lives in every entry log. A run of a kind would take those of which ``schedule.takes`` says so, and win
        ``total - live`` bytes of each."""
        logs, dropped = self.steps.entry_logs.entries(), self.steps.ledgers.dropped.copy()

        def done(uses: list[LogUse] | None, error: BaseException | None) -> None:
            callback(uses if uses is not None else error or BookieFailedError("the logs could not be looked at"))

        self.steps.workers.get("checkpoint").submit(lambda: uses_of(self.disk, self.directory, logs, dropped), done)

    def rows(self, callback: Callable[[list[dict[str, object]] | BaseException], None]) -> None:
        """The same as plain data, a row for each log: its number, bytes in all and living ones, whether a minor and a
        major run would take it, the bytes that this would win, and why it is left as it is, if it is."""

        def on_uses(uses: list[LogUse] | BaseException) -> None:
            callback(uses if isinstance(uses, BaseException) else [self._row(use) for use in uses])

        self.report(on_uses)

    def _row(self, use: LogUse) -> dict[str, object]:
        minor, major = (self.schedule.takes(kind, use) for kind in CompactionKind)
        return {
            "log": use.log_id,
            "bytes": use.total,
            "live_bytes": use.live,
            "minor": minor,
            "major": major,
            "wins_bytes": use.total - use.live if minor or major else 0,
            "filling": use.filling,
            "left": self.schedule.left.get(use.log_id, use.unreadable),
        }

    def sentences(self) -> tuple[str, ...]:
        """What holds compaction up, for people."""
        said = [
            f"entry log {log_id} is not compacted: {reason}" for log_id, reason in sorted(self.schedule.left.items())
        ]
        if self.schedule.suspended:
            said.append("compaction is suspended")
        if self.schedule.stopped_by is not None:
            said.append(f"the last compaction ended early: {self.schedule.stopped_by}")
        return tuple(said)

    def close(self) -> None:
        """Close files, when the workers have ended."""
        self.steps.files.close()
