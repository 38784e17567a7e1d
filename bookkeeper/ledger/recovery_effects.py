"""What :class:`bookkeeper.ledger.recovery.LedgerRecovery` asks its shell to do, and the numbers it works with.

The shell keeps, per entry id, the first payload that was reported as found; everything else the machine knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from bookkeeper.errors import BookKeeperError, require_range
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryConfig:
    """Limits of one recovery."""

    window_entries: int = 64
    """How many entries are read, or written back, at a time."""
    hedge_ms: int = 250
    """A read without an answer for so long is asked of the rest of its write set too."""
    retry_ms: int = 500
    """Pause before bookies that gave no usable answer are asked again."""
    rounds_max: int = 5
    """How often the same question is put to all who gave no usable answer; then: inconclusive (V2)."""

    def __post_init__(self) -> None:
        require_range(self, "window_entries", "hedge_ms", "retry_ms", "rounds_max", least=1)


@dataclass(frozen=True, slots=True)
class BeginRecovery:
    """Move the ledger to IN_RECOVERY by compare-and-set (``LedgerMetadata.begin_recovery``), or find it so (R1).

    Report ``on_begun(metadata)`` with what is stored then (also if it is CLOSED), or ``on_store_failed``.
    """


@dataclass(frozen=True, slots=True)
class FenceRead:
    """Read "the last entry" of the ledger from ``bookie``, with the fence flag and the master key (R3).

    Report ``on_fence_answer``.
    """

    bookie: BookieId


@dataclass(frozen=True, slots=True)
class RecoveryRead:
    """Read an entry from ``bookie``: high priority, the fence flag and the master key if ``fence`` (R3).

    Report ``on_read_answer``.
    """

    bookie: BookieId
    entry_id: EntryId
    fence: bool


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Store a found entry on ``bookie`` as a recovery add (accepted although fenced), high priority (R7).

    The packet is built anew, once per entry: the payload that was found, ``lac`` and ``length`` from here (R8).
    Report ``on_written`` or ``on_write_failed``.
    """

    bookie: BookieId
    entry_id: EntryId
    lac: EntryId
    length: int


@dataclass(frozen=True, slots=True)
class FindStandIns:
    """Choose stand-ins for the members of ``ensemble`` that are in ``failed``; nothing is written to metadata (R9).

    A stand-in is neither in ``ensemble`` nor in ``failed``, which also names those that were replaced before.
    Report ``on_stand_ins`` with a mapping that may be empty or partial.
    """

    failed: tuple[BookieId, ...]
    ensemble: tuple[BookieId, ...]


@dataclass(frozen=True, slots=True)
class ForgetPayloads:
    """Payloads of entries up to and including ``upto`` are not needed any more."""

    upto: EntryId


@dataclass(frozen=True, slots=True)
class CloseRecovered:
    """Close by compare-and-set from IN_RECOVERY, at the version that ``on_begun`` came with (R10):
    ``LedgerMetadata.close_recovered``.

    Report ``on_closed(metadata)`` with what was written, ``on_close_lost(metadata)`` with what is stored if the race
    was lost, or ``on_store_failed``.
    """

    last_entry: EntryId
    length: int
    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """Done: the ledger is closed, by this recovery or another (R15)."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class RecoveryFailed:
    """Given up; the ledger stays in recovery and nothing was lost. The error says whether to try again later."""

    error: BookKeeperError


Effect = (
    BeginRecovery
    | FenceRead
    | RecoveryRead
    | WriteBack
    | FindStandIns
    | ForgetPayloads
    | CloseRecovered
    | Recovered
    | RecoveryFailed
    | WakeAt
)
