"""What :class:`bookkeeper.ledger.recovery.LedgerRecovery` asks its shell to do, and its settings.

The shell keeps the first good payload of each entry id. The machine keeps everything else.
"""

from __future__ import annotations

from dataclasses import dataclass

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata


@dataclass(frozen=True, slots=True)
class BeginRecovery:
    """Set the ledger's state to IN_RECOVERY by compare-and-set (``LedgerMetadata.begin_recovery``), unless it is (R1).

    Report ``on_begun(metadata)`` with the stored metadata, also if they are CLOSED, or ``on_store_failed``.
    """


@dataclass(frozen=True, slots=True)
class FenceRead:
    """Read the last entry of the ledger from ``bookie``, with the fence flag and the master key (R3).

    Report ``on_fence_answer``.
    """

    bookie: BookieId


@dataclass(frozen=True, slots=True)
class RecoveryRead:
    """Read an entry from ``bookie`` with high priority. With ``fence`` add the fence flag and the master key (R3).

    Report ``on_read_answer``.
    """

    bookie: BookieId
    entry_id: EntryId
    fence: bool


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Store an entry that was found on ``bookie``, as a recovery add with high priority (R7). The bookie accepts it
    although the ledger is fenced.

    The shell builds the packet once per entry, from the payload that was found and these ``lac`` and ``length`` (R8).
    Report ``on_written`` or ``on_write_failed``.
    """

    bookie: BookieId
    entry_id: EntryId
    lac: EntryId
    length: int


@dataclass(frozen=True, slots=True)
class FindStandIns:
    """Choose stand-ins for the members of ``ensemble`` that are in ``failed``. Write nothing to the metadata (R9).

    A stand-in is neither in ``ensemble`` nor in ``failed``, which also names the bookies that were replaced before.
    Report ``on_stand_ins`` with a mapping, which may be empty or name stand-ins for some only.
    """

    failed: tuple[BookieId, ...]
    ensemble: tuple[BookieId, ...]


@dataclass(frozen=True, slots=True)
class ForgetPayloads:
    """Forget the payloads of entries up to and including ``upto``; they are not needed any more."""

    upto: EntryId


@dataclass(frozen=True, slots=True)
class CloseRecovered:
    """Close the ledger with ``LedgerMetadata.close_recovered``, by compare-and-set on the version that ``on_begun``
    reported (R10).

    Report ``on_closed(metadata)`` with what was written; ``on_close_lost(metadata)`` with what is stored, if somebody
    else wrote first; or ``on_store_failed``.
    """

    last_entry: EntryId
    length: int
    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class RecoveryDone:
    """The recovery is done: the ledger is closed, by this recovery or another (R15)."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class RecoveryFailed:
    """The recovery gave up. The ledger stays in recovery, and nothing is lost. The error says whether to try again."""

    error: BookKeeperError


Effect = (
    BeginRecovery
    | FenceRead
    | RecoveryRead
    | WriteBack
    | FindStandIns
    | ForgetPayloads
    | CloseRecovered
    | RecoveryDone
    | RecoveryFailed
    | WakeAt
)
