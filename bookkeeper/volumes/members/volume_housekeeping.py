"""The scrubs and compactions of all volumes as one of each, with the same interfaces as
:class:`Scrubber` and :class:`Compactor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bookkeeper.storage.base.results import Done
from bookkeeper.storage.compaction.compactor import Compactor
from bookkeeper.storage.compaction.schedule import CompactionKind
from bookkeeper.storage.scrub.damage import CheckedFile, DamagedPlace
from bookkeeper.storage.scrub.file_checks import Check
from bookkeeper.storage.scrub.scrubber import Scrubber
from bookkeeper.volumes.after_all import after_all


class VolumeScrubbers:
    """Each volume scrubs itself. The bookie's own files are checked with the first of them."""

    def __init__(self, scrubbers: Callable[[], Sequence[Scrubber]]) -> None:
        self._scrubbers = scrubbers
        self._state_files: Callable[[], Check] | None = None
        self._report_problem: Callable[[str, BaseException | None], None] = lambda text, error: None
        self._tell: Callable[[], None] | None = None
        self.began = False
        """Whether volumes scrub by themselves."""

    def admit(self, scrubber: Scrubber) -> None:
        """One volume more serves."""
        scrubber.report_problem = self._report_problem
        if self._tell is not None:
            scrubber.on_suspects(self._tell)

    @property
    def report_problem(self) -> Callable[[str, BaseException | None], None]:
        """See :attr:`Scrubber.report_problem`."""
        return self._report_problem

    @report_problem.setter
    def report_problem(self, report: Callable[[str, BaseException | None], None]) -> None:
        self._report_problem = report
        for each in self._scrubbers():
            each.report_problem = report

    @property
    def state_files(self) -> Callable[[], Check] | None:
        """See :attr:`Scrubber.state_files`."""
        return self._state_files

    @state_files.setter
    def state_files(self, check: Callable[[], Check] | None) -> None:
        self._state_files = check
        for each in self._scrubbers()[:1]:
            each.state_files = check

    def begin(self) -> None:
        """See :meth:`Scrubber.begin`."""
        self.began = True
        for each in self._scrubbers():
            each.begin()

    def on_suspects(self, callback: Callable[[], None]) -> None:
        """See :meth:`Scrubber.on_suspects`; also called when a volume is lost."""
        self._tell = callback
        for each in self._scrubbers():
            each.on_suspects(callback)
        callback()

    def departed(self) -> None:
        """A volume serves no more: the bookie's own files may have been checked with it."""
        self.state_files = self._state_files

    def report_suspects(self) -> None:
        """Ledgers have become suspect because their volume was lost."""
        if self._tell is not None:
            self._tell()

    def run_now(self, callback: Done) -> None:
        """See :meth:`Scrubber.run_now`: all volumes at the same time."""
        after_all([each.run_now for each in self._scrubbers()], callback)

    def files(self) -> Sequence[CheckedFile]:
        """See :meth:`Scrubber.files`."""
        return [file for each in self._scrubbers() for file in each.files()]

    @property
    def damages(self) -> list[DamagedPlace]:
        """See :attr:`Scrubber.damages`."""
        return [damage for each in self._scrubbers() for damage in each.damages]

    def report(self) -> dict[str, object]:
        """See :meth:`Scrubber.report`: sums, what lies next, and the oldest pass."""
        reports: list[dict[str, Any]] = [each.report() for each in self._scrubbers()]
        nexts = [each["next_pass_in_s"] for each in reports if each["next_pass_in_s"] is not None]
        passes = [each["seconds_since_pass"] for each in reports]
        return {
            "running": any(each["running"] for each in reports),
            "hurried": any(each["hurried"] for each in reports),
            "files_left": sum(each["files_left"] for each in reports),
            "bytes_left": sum(each["bytes_left"] for each in reports),
            "next_pass_in_s": min(nexts, default=None),
            "seconds_since_pass": max(passes) if passes and None not in passes else None,
            "read_bytes": sum(each["read_bytes"] for each in reports),
            "damaged": [place for each in reports for place in each["damaged"]],
            "suspects": sorted({ledger for each in reports for ledger in each["suspects"]}),
        }

    def sentences(self) -> tuple[str, ...]:
        """See :meth:`Scrubber.sentences`."""
        return tuple(dict.fromkeys(said for each in self._scrubbers() for said in each.sentences()))


class VolumeCompactors:
    """Each volume compacts itself."""

    def __init__(self, compactors: Callable[[], dict[int, Compactor]]) -> None:
        self._compactors = compactors

    def run(self, kind: CompactionKind, callback: Done) -> None:
        """See :meth:`Compactor.run`."""
        chosen = self._compactors().values()
        after_all([lambda done, each=each: each.run(kind, done) for each in chosen], callback)  # type: ignore[misc]

    def run_if_due(self, callback: Done) -> None:
        """See :meth:`Compactor.run_if_due`; ``callback`` for each volume."""
        for each in self._compactors().values():
            each.run_if_due(callback)

    def suspend(self) -> None:
        """See :meth:`Compactor.suspend`."""
        for each in self._compactors().values():
            each.suspend()

    def resume(self) -> None:
        """See :meth:`Compactor.resume`."""
        for each in self._compactors().values():
            each.resume()

    @property
    def is_running(self) -> bool:
        """See :attr:`Compactor.is_running`."""
        return any(each.is_running for each in self._compactors().values())

    @property
    def is_suspended(self) -> bool:
        """See :attr:`Compactor.is_suspended`: all are."""
        return all(each.is_suspended for each in self._compactors().values())

    @property
    def logs_left(self) -> int:
        """See :attr:`Compactor.logs_left`."""
        return sum(each.logs_left for each in self._compactors().values())

    @property
    def age_s(self) -> float | None:
        """See :attr:`Compactor.age_s`: that of the volume that has waited longest."""
        ages = [each.age_s for each in self._compactors().values()]
        known = [age for age in ages if age is not None]
        return max(known) if known and len(known) == len(ages) else None

    def rows(self, callback: Callable[[list[dict[str, object]] | BaseException], None]) -> None:
        """See :meth:`Compactor.rows`; each row has its volume's directory, too."""
        compactors = list(self._compactors().values())
        found: list[dict[str, object]] = []

        def one(compactor: Compactor) -> Callable[[Done], None]:
            def begin(done: Done) -> None:
                def on_rows(rows: list[dict[str, object]] | BaseException) -> None:
                    if isinstance(rows, BaseException):
                        return done(rows)
                    found.extend({"directory": compactor.directory, **row} for row in rows)
                    return done(None)

                compactor.rows(on_rows)

            return begin

        after_all([one(each) for each in compactors], lambda error: callback(found if error is None else error))

    def sentences(self) -> tuple[str, ...]:
        """See :meth:`Compactor.sentences`; what concerns logs names their directory."""
        many = self._compactors().values()
        return tuple(
            dict.fromkeys(
                f"{each.directory}: {said}" if said.startswith("entry log") else said
                for each in many
                for said in each.sentences()
            )
        )
