"""What the engine hands out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from bookkeeper.ids import EntryId
from bookkeeper.metrics import Summary

Done = Callable[[BaseException | None], None]
"""Called once, on the loop's thread: None = done and durable, else why not."""


def ignore(*_news: object) -> None:
    """The callback of who need not know how it ended."""


class EngineState(Enum):
    WRITABLE = "writable"
    READ_ONLY = "read-only"
    """Too little space: regular adds are refused; reads, fences and recovery adds go on (B10, K26)."""
    FAILED = "failed"
    """A sync failed, or an invariant: nothing is acknowledged any more, the process should end (K23)."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class PackedEntries:
    """Entries of a batch read in protocol v2's form ``[length u32][entry]…``."""

    body: bytes
    count: int


@dataclass(frozen=True, slots=True)
class AvailabilityRun:
    """``count`` entries from ``first`` on are here."""

    first: EntryId
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedProgress:
    """What is known of a directory elsewhere, from earlier starts (K32); 0: nothing."""

    directory_id: int = 0
    """In the header of every file that holds data."""
    boot: int = 0
    """The last start that the directory came to know of."""
    sequence: int = 0
    """Every group of the journal up to this one was durable."""
    file_id: int = 0
    """No journal file had a greater id."""


NOTHING_KNOWN: Final = PublishedProgress()


@dataclass(slots=True)
class OpenReport:
    """What a start found."""

    clean: bool = True
    """The last run ended by :meth:`Engine.close`."""
    last_boot: int = 0
    """The last start before this one that the directory has come to know of; 0: none."""
    fresh: bool = False
    """The directories were empty: a new bookie, or a lost disk (the cookie tells which)."""
    replayed_groups: int = 0
    replayed_records: int = 0
    torn_tail: str | None = None
    """The unfinished last group that was cut: never acknowledged."""
    limbo_reason: str | None = None
    """Acknowledged data may be missing (K9, K18). Negatives are unknown and every ledger counts as fenced until
    :meth:`Engine.end_limbo`."""
    rebuilt: bool = False
    """The index was rebuilt from the entry logs (K19)."""
    quarantined: list[str] = field(default_factory=list)
    """Damaged places: file, offset, length."""


@dataclass(slots=True)
class EngineStats:
    """Plain counters; all bytes and counts are since this start."""

    groups: int = 0
    records: int = 0
    record_bytes: int = 0
    journal_bytes: int = 0
    sync_seconds: float = 0.0
    sync_summary: Summary = field(default_factory=Summary)
    """Seconds that writing and syncing a group took."""
    slowest_sync_seconds: float = 0.0
    checkpoints: int = 0
    reads_inline: int = 0
    reads_waited: int = 0
    corruptions: int = 0
    merges: int = 0
    dropped_ledgers: int = 0
    removed_logs: int = 0
    removed_bytes: int = 0
    """What those of them had taken that were dead as a whole, so that nothing of them was copied."""
    scrubbed_bytes: int = 0
    """What scrubs have read."""
    scrub_passes: int = 0
    """Passes over every stored byte that came to their end."""
    scrub_damages: int = 0
    """Damaged places that scrubs have found."""
    compactions: int = 0
    """Runs that came to their end."""
    major_compactions: int = 0
    """Those of them that were major ones."""
    compactions_failed: int = 0
    """Runs that an error ended; they lose nothing."""
    compacted_logs: int = 0
    """Entry logs that were removed after what lived in them was copied."""
    compaction_copied_bytes: int = 0
    compaction_reclaimed_bytes: int = 0
    """What compacted logs had taken, less what was copied."""
