"""The third part of a start: everything found and replayed is covered before anyone is served.

A new journal file is made ready and a checkpoint taken, so that the mark names the new file and nothing has to be
replayed twice. Only then are files removed that no manifest names; after any damage or loss none is, and journal files
that the mark passes are put aside. :class:`~bookkeeper.storage.start.losses.StartLosses` says which it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import remove_files
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.checkpoint.checkpoint import SEGMENTS, CheckpointResult, CheckpointScope, run_checkpoint
from bookkeeper.storage.entry_log.entry_log_file import log_ids, log_name
from bookkeeper.storage.index.index_segment import segment_ids, segment_name
from bookkeeper.storage.journal.group_writer import GroupWriter, journal_ids, journal_name, spare_name, spare_names
from bookkeeper.storage.ledgers.unknowns import newest_places
from bookkeeper.storage.start.inventory import Inventory
from bookkeeper.storage.start.orphaned_logs import put_journals_aside


@dataclass(slots=True)
class CoveredDisk:
    """What stands when the start's checkpoint is in place."""

    manifest: Manifest
    journal: GroupWriter
    """With a new file open, which holds no group."""
    spares: list[str]


class StartCheckpoint:
    """The checkpoint of a start; blocks."""

    def __init__(self, config: StorageConfig, disk: Disk, boot: int, found: Inventory) -> None:
        self._config, self._disk, self._boot, self._found = config, disk, boot, found
        self._scope: CheckpointScope | None = None
        self._begun: str | None = None
        """The journal file that this start has begun."""

    @property
    def published(self) -> bool:
        """A manifest that names the logs of this start may be on disk."""
        return self._scope is not None and self._scope.published

    def run(self, last: int, known_file: int, broken: bool) -> CoveredDisk:
        """
        Args:
            last: the last group that is replayed or covered.
            known_file: no journal file had a greater id, as is known elsewhere.
            broken: something is wrong with the journal itself.

        Raises:
            OSError: the disk does not take the checkpoint; the journal is as it was.
        """
        config, disk, losses, before = self._config, self._disk, self._found.losses, self._found.manifest
        journal = GroupWriter(disk, config.journal_dir, config.journal_file_bytes, before.directory_id, self._boot)
        spares = self._whole_spares()
        ids = journal_ids(disk, config.journal_dir)
        file_id = max([before.next_file - 1, before.file_id, known_file, *ids]) + 1  # greater than every id ever used
        try:
            self._begun = journal_name(file_id)
            journal.begin_file(file_id, last + 1, spares.pop() if spares else None)
            self._scope = self._scope_of(file_id, last, len(spares))
            covered = run_checkpoint(disk, config, self._scope)
            self._adopt(self._scope, covered)
            if broken or losses.known:  # in the second case: those that an unfinished start before this one has left
                put_journals_aside(disk, config.journal_dir, file_id if broken else before.file_id)
            if not losses.damaged:
                self._remove_unnamed(covered.manifest)
        except BaseException:
            journal.close()
            raise
        return CoveredDisk(covered.manifest, journal, spares + covered.spares)

    def run_in_place(self, last: int) -> bool:
        """The same without a new journal file, for which there may be no space: the newest file that is there is the
        mark, and those before it become spares. A start that comes after this replays nothing. Only where nothing is
        damaged or lost.

        Returns:
            whether there are journal files before the newest.
        """
        ids = journal_ids(self._disk, self._config.journal_dir)
        if len(ids) < 2:
            return False
        self._scope = self._scope_of(ids[-1], last, len(self._whole_spares()))
        run_checkpoint(self._disk, self._config, self._scope)
        return True

    def take_back(self) -> None:
        """Before anything is published: remove what a try without success has made, and make a spare of the journal
        file that it has begun. On a full disk the next try needs the space."""
        disk, directory, begun = self._disk, self._config.journal_dir, self._begun
        if self._scope is not None:
            first = self._scope.segment_id
            made = [segment_name(first + more) for more in range(SEGMENTS)]
            remove_files(disk, self._config.ledger_dir, made)
        if begun is not None and disk.exists(f"{directory}/{begun}"):
            disk.rename(f"{directory}/{begun}", f"{directory}/{spare_name(begun)}")
            disk.sync_directory(directory)

    def _whole_spares(self) -> list[str]:
        """Spare journal files that were written to their end; what else is there of that name goes."""
        directory, whole, rest = self._config.journal_dir, list[str](), list[str]()
        for name in spare_names(self._disk, directory):
            file = self._disk.open(f"{directory}/{name}", write=False)
            try:
                (whole if file.size() >= self._config.journal_file_bytes else rest).append(name)
            finally:
                file.close()
        remove_files(self._disk, directory, rest)
        return whole

    def _scope_of(self, file_id: int, last: int, spares: int) -> CheckpointScope:
        """Everything that was found and replayed; the new journal file begins behind it."""
        before, ledgers = self._found.manifest, self._found.ledgers
        losses, logs = self._found.losses, self._found.entry_logs
        before.boot = self._boot
        logs.leave_current()  # this start begins a log of its own
        next_file = max(before.next_file, file_id + 1)
        scope = CheckpointScope(before, self._segment_id(), logs.next_log, next_file, starting=True)
        scope.file_id, scope.sequence = file_id, last
        scope.keep_journals = losses.keep_journals
        scope.rebuilt = before.rebuild or self._found.report.rebuilt
        resident = ledgers.states.resident  # after a rebuild these are all
        news = resident.keys() if scope.rebuilt else ledgers.news
        scope.tails = {key: state.index.freeze() for key, state in resident.items() if state.index.tail}
        scope.states = {key: state.encode() for key, state in resident.items() if key in news}
        gone = ledgers.dropped if scope.rebuilt else [(key, key) for key in sorted(news) if key in ledgers.dropped]
        scope.newly_dropped = list(gone)
        scope.resident, scope.dropped = set(resident), ledgers.dropped
        scope.logs = {key: log.entry() for key, log in logs.logs.items()}
        for key, log in logs.logs.items():
            if log.dirty:
                assert log.file is not None
                scope.unsynced[key] = log.file
            if not log.finished and key not in self._found.keep:
                scope.finish[key] = (log.file, log.end, log.usage)
                if log.remembered:
                    scope.remembered.add(key)
        scope.limbo = losses.limbo
        known = before.quarantined if losses.keep_journals else []  # nothing is wrong any more: they are forgotten
        scope.quarantined = newest_places([*known, *losses.quarantined])
        scope.spares = max(self._config.journal_spares - spares, 0)
        return scope

    def _segment_id(self) -> int:
        """The number of the segment that is written; after any damage one that no file has."""
        following = max(self._found.manifest.next_segment, 1)
        if not self._found.losses.damaged:
            return following
        return max([following - 1, *segment_ids(self._disk, self._config.ledger_dir)]) + 1

    def _adopt(self, scope: CheckpointScope, covered: CheckpointResult) -> None:
        self._found.ledgers.states.adopt(covered.merged, covered.table, covered.extents, scope.tails)
        self._found.entry_logs.covered(covered.manifest.logs)

    def _remove_unnamed(self, manifest: Manifest) -> None:
        directory = self._config.ledger_dir
        old = [log_name(key) for key in log_ids(self._disk, directory) if key not in manifest.logs]
        old += [segment_name(key) for key in segment_ids(self._disk, directory) if key not in manifest.segments]
        remove_files(self._disk, directory, old)
