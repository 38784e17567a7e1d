"""A bookie's disk behind one door.

Everything here runs on the loop's thread and never waits for the disk: blocking work goes to three workers
(journal, checkpoint, read), whose results come back on the loop's thread. The state that decides anything
(handles, index tails, fences) is owned by the loop's thread alone.

**What is promised.** An entry is visible to reads and fences from the moment :meth:`Engine.append` returns, and
durable when a callback given to :meth:`Engine.when_durable` *after* it is called with None (B1, K7). A fence answers
only when the group that holds it is durable, and every add accepted before it is in that group or an earlier one,
so a negative answer given after a fence is final (R3, B2). A fence never goes away (B3).

**Groups.** ``append`` only collects. ``when_durable``, ``fence``, ``force`` and ``set_explicit_lac`` start the journal
if it is idle; while one group is being made durable the next one collects (the journal clocks itself). So: append
all runs of a chunk, then call ``when_durable`` once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.runs import Adds, Run
from bookkeeper.seams import Buffer, Disk, Space, Workers
from bookkeeper.storage.config import StorageConfig

Done = Callable[[BaseException | None], None]
"""Called once, on the loop's thread: None = done and durable, else why not."""


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


@dataclass(slots=True)
class OpenReport:
    """What a start found."""

    clean: bool = True
    """The last life ended by :meth:`Engine.close`."""
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
    """Plain counters; all bytes and counts are since the start of this life."""

    groups: int = 0
    records: int = 0
    record_bytes: int = 0
    journal_bytes: int = 0
    sync_seconds: float = 0.0
    slowest_sync_seconds: float = 0.0
    checkpoints: int = 0
    reads_inline: int = 0
    reads_waited: int = 0
    corruptions: int = 0
    merges: int = 0
    dropped_ledgers: int = 0
    removed_logs: int = 0


class Engine:
    """One bookie's disk. Made by :meth:`open`; all methods on the loop's thread."""

    report: OpenReport
    stats: EngineStats
    state: EngineState

    @classmethod
    def open(
        cls,
        config: StorageConfig,
        disk: Disk,
        workers: Workers,
        *,
        boot: int = 0,
        monotonic: Callable[[], float] | None = None,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> Engine:
        """Lock, check and replay. Blocks: call it before serving.

        When it returns everything that was ever acknowledged is readable, synced and covered by the mark (K17), and
        the workers are not yet in use (they are made with the first work).

        Args:
            boot: this life's number, written into the files it makes.
            monotonic: seconds, for the sync statistics and ``journal_gap_ms``; without it neither is there.
            call_later: the loop's; needed only with ``journal_gap_ms``.

        Raises:
            DirectoryLockedError: another process has the directory (B11).
            UnsupportedFormatError: a file of another version.
            StorageError, OSError: the directory cannot be used.
        """
        raise NotImplementedError

    # -- writing ------------------------------------------------------------------------------------------

    def append(self, run: Run, adds: Adds, *, recovery: bool = False) -> None:
        """Take one run of what ``runs.split_adds`` cut; the records are copied.

        Nothing is written before the journal is started (see the module). All or nothing: when it raises, no entry of
        the run was taken. Costs a few microseconds whatever the run's length.

        Args:
            recovery: a recovery add: passes a fence, and a full disk (B10).

        Raises:
            LedgerFencedError: fenced, or deleted, or its fence state is unknown (B3).
            UnauthorizedError: another master key (B4).
            DiskFullError: read-only for regular adds (B10, K26).
            DuplicateEntryError: another payload is stored under one of the ids (B6).
            BookieFailedError: the disk failed or is closed.
        """
        raise NotImplementedError

    def append_entry(self, ledger_id: LedgerId, master_key: bytes, entry: Buffer, *, recovery: bool = False) -> None:
        """The same for one entry as it came (header of 32 bytes, digest, payload); its ids are in its header.

        Raises:
            BadRequestError: shorter than its header, or a negative id, or another ledger's.
            and as :meth:`append`.
        """
        raise NotImplementedError

    def when_durable(self, callback: Done) -> None:
        """``callback(None)`` when everything handed in so far is durable; starts the journal if it is idle.

        Never called inside this call, unless nothing is pending (then at once). Callbacks come in the order in which
        they were given.
        """
        raise NotImplementedError

    def fence(self, ledger_id: LedgerId, master_key: bytes, callback: Done) -> None:
        """Fence a ledger for ever; a ledger never seen is created fenced, with its key (K31).

        Visible at once; ``callback(None)`` when it and every add accepted before it are durable (R3, B2).
        An already durable fence answers after the adds accepted before this call. A dropped ledger answers None.

        Raises:
            UnauthorizedError: another master key.
        """
        raise NotImplementedError

    def set_explicit_lac(self, ledger_id: LedgerId, master_key: bytes, lac: int, blob: Buffer, callback: Done) -> None:
        """Journal an explicit LAC with its opaque body; only ever raises the ledger's LAC (B8).

        Raises:
            UnauthorizedError, LedgerFencedError (deleted ledger), DiskFullError, BookieFailedError
        """
        raise NotImplementedError

    def force(self, ledger_id: LedgerId, callback: Done) -> None:
        """``callback(None)`` when every add accepted so far for the ledger is durable."""
        raise NotImplementedError

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        """Who to tell when too many bytes wait for the journal (``inflight_bytes``), and when it has caught up."""
        raise NotImplementedError

    def on_state(self, callback: Callable[[EngineState, str], None]) -> None:
        """Called with the new state and the reason at every change of :attr:`state`."""
        raise NotImplementedError

    @property
    def journal_bytes_in_flight(self) -> int:
        """Bytes accepted and not yet durable."""
        raise NotImplementedError

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, ledger_id: LedgerId, entry_id: EntryId, reply: Callable[[bytes | BaseException], None]) -> None:
        """The entry's bytes as they came (header, digest, payload); ``entry_id`` -1 = the last entry.

        ``reply`` is called inside this call if nothing must be waited for, else from the loop later. The record's crc,
        ledger id and entry id are verified on each read (B7). Errors are handed to ``reply``:
        NoSuchLedgerError, NoSuchEntryError (honest negatives only, B5), DataUnknownError, CorruptionError (names file
        and offset), BookieFailedError (I/O).
        """
        raise NotImplementedError

    def read_batch(
        self,
        ledger_id: LedgerId,
        first: EntryId,
        count_max: int,
        size_max: int,
        reply: Callable[[PackedEntries | BaseException], None],
    ) -> None:
        """Consecutive entries from ``first`` on.

        At most ``count_max`` (0 = no limit), at most ``size_max`` bytes of body but at least one entry. Ends early at the first entry that is not here; errors as :meth:`read` only if the
        first one cannot be given."""
        raise NotImplementedError

    def lac(self, ledger_id: LedgerId) -> int:
        """The greatest LAC over entries and explicit LAC (B8); -1 if none.

        Raises:
            NoSuchLedgerError, DataUnknownError
        """
        raise NotImplementedError

    def explicit_lac(self, ledger_id: LedgerId) -> tuple[int, bytes] | None:
        """The greatest explicit LAC and its body. Raises as :meth:`lac`."""
        raise NotImplementedError

    def last_entry(self, ledger_id: LedgerId) -> EntryId:
        """The greatest entry id here; -1 if there are none. Raises as :meth:`lac`."""
        raise NotImplementedError

    def entries(self, ledger_id: LedgerId) -> Sequence[AvailabilityRun]:
        """Which entries are here, ascending. May read index pages. Raises as :meth:`lac`."""
        raise NotImplementedError

    def is_fenced(self, ledger_id: LedgerId) -> bool:
        """Fenced, deleted, or unknown (B3)."""
        raise NotImplementedError

    def on_lac(self, ledger_id: LedgerId, callback: Callable[[int], None]) -> Callable[[], None]:
        """``callback(lac)`` once, when the ledger's LAC next rises (the ledger need not exist yet).

        Returns:
            a function that takes the waiter back; harmless afterwards.
        """
        raise NotImplementedError

    def ledgers(self) -> Iterable[LedgerId]:
        """Every ledger with anything here, a snapshot."""
        raise NotImplementedError

    # -- keeping house ------------------------------------------------------------------------------------

    def checkpoint(self, callback: Done) -> None:
        """Everything handed in so far becomes covered by the mark; the journal before it is recycled (K13-K16)."""
        raise NotImplementedError

    def collect(self, dead: Container[LedgerId] | Callable[[LedgerId], bool], callback: Done) -> None:
        """Drop the ledgers given as dead and remove entry logs without a live ledger.

        The caller has the proof that they are dead (G1). Dropped ledgers are remembered: adds to them are refused as
        fenced, reads say "no such ledger".
        """
        raise NotImplementedError

    def end_limbo(self, ledger_id: LedgerId | None = None) -> None:
        """The data of the ledger (None: of all) is known to be complete again, or it was created later."""
        raise NotImplementedError

    def space(self) -> Space:
        """Bytes of the file system that holds the ledger directory."""
        raise NotImplementedError

    def check_space(self) -> None:
        """Look at the free space: turn read-only or writable (V8), and retry what found no space. Cheap; call it every
        few seconds."""
        raise NotImplementedError

    def close(self, callback: Done) -> None:
        """Clean stop: everything durable and covered by the mark, marked clean, unlocked. Adds are refused from now."""
        raise NotImplementedError

    def close_blocking(self) -> None:
        """The same on this thread, for programs without a loop: only when no worker has anything in hand."""
        raise NotImplementedError
