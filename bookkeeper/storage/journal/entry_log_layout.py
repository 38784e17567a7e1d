"""The way of durable groups into the entry logs, as the journal, checkpoints and the engine ask for it. Protocols only.

``shared_log`` has the layout that puts all records into one log, ``ledger_logs`` the one with a log per ledger. What is
behind them is the same: places, index, files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from bookkeeper.seams import File
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import GroupBuffer, PendingGroup


@dataclass(slots=True)
class GroupCopied:
    """What a copy reports."""

    created: File | None
    """The entry log, if it was made for this group."""
    seconds: float
    """How long it took; 0 without a clock."""


class CopyObserver(Protocol):
    """Who is told how copying goes: group commit."""

    def group_copied(self, copied: GroupCopied) -> None:
        """The oldest durable group is in the entry log."""

    def copy_failed(self, error: BaseException) -> None:
        """The oldest durable group could not be copied; :attr:`Copier.stuck` is set."""


class Copier(Protocol):
    """The way of durable groups into the entry logs."""

    stuck: bool
    """The oldest durable group could not be copied at the last try."""

    @property
    def busy(self) -> bool:
        """A copy is under way, or waits."""

    def go_on(self) -> None:
        """Copy the oldest durable group, if there is one and no copy is under way."""

    def go_on_here(self, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        """The same on the loop's thread, a turn from now."""

    def failed_already(self) -> None:
        """The journal's worker has tried to copy the oldest durable group, and could not."""

    def has_open(self, log_id: int) -> bool:
        """A group for this log needs no new file."""

    def copy(self, group: PendingGroup) -> GroupCopied:
        """Copy a group on the calling thread; blocks."""


class EntryLogLayout(Protocol):
    """Owned by the loop's thread."""

    # -- for group commit

    copies_with_journal: bool
    """Whether the journal's worker may copy a small group in the same job."""

    def new_group(self, buffer: GroupBuffer, log_id: int, log_offset: int) -> PendingGroup:
        """A group that collects."""

    def next_place(self) -> tuple[int, int]:
        """Log and offset for a new group."""

    def group_closed(self, group: PendingGroup) -> None:
        """A group takes no more records."""

    def copier(self, groups: GroupSequence, observer: CopyObserver) -> Copier:
        """How groups come into the logs; asked for once."""

    def created(self, group: PendingGroup, file: File) -> None:
        """The copier has made a log for a group."""

    # -- for checkpoints

    syncs_names: bool
    """Whether the name of a log is durable as soon as its file is there."""

    def write_out(self, callback: Done) -> None:
        """``callback(None)`` when every group that counts as logged is in the files."""

    def unsynced(self, ends: Mapping[int, int]) -> dict[int, File]:
        """The descriptors to sync, so that everything below these ends of logs is durable. Asked when that is written
        out."""

    def writer_of(self, log_id: int) -> File | None:
        """The descriptor that has written a log; None: it is closed, and everything is synced."""

    def has_writer(self, log_id: int) -> bool:
        """Whether :meth:`writer_of` will know, or the log may be opened to finish it."""

    def synced(self, ends: Mapping[int, int]) -> None:
        """A checkpoint has synced everything below these ends."""

    def finished(self, log_ids: Iterable[int]) -> None:
        """These logs have their map and footer."""

    def dead_logs(self, dropped: Callable[[int], bool]) -> list[int]:
        """Logs that are not finished, and hold nothing but a ledger that is deleted."""

    def removed(self, log_id: int) -> None:
        """The log is left out of the manifest."""

    def end_all(self) -> None:
        """The disk is being closed: no log takes more records."""

    def close(self, files: list[File]) -> None:
        """Close descriptors, when nobody has them in hand any more."""

    # -- for the engine

    def ledger_closed(self, ledger_id: int) -> None:
        """Advice: the ledger is closed."""

    def end_idle_logs(self) -> bool:
        """To be called every few seconds. Returns whether a checkpoint is wanted, which finishes ended logs."""

    def stop(self) -> None:
        """The workers end: nothing is handed to them any more."""

    def open_files(self) -> Iterable[File]:
        """Descriptors that wait to be closed."""
