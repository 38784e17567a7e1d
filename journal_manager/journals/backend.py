"""The contract of a journal, which keeps an edit log's segments.

    open_writer()            claim an epoch, fence, recover: in progress --> finalized
    start_segment(first)     -->  in progress
    append(batch)            in progress, batch durable as a whole when the awaitable ends
    finalize_segment(...)    in progress --> finalized, for ever
    purge(min)               whole finalized segments are removed, oldest first

Promises, whatever the implementation (the tests in ``journal_manager.testing`` hold every backend to them):

* **J1** (C5, C8) After ``open_writer`` returned epoch e, no write with a lower epoch is acknowledged: the
  previous writer can add nothing, begin nothing, purge nothing, keep no snapshot, and is told so
  (JournalFencedError).
* **J2** An edit whose append ended is delivered to every later reader until it is purged. Only the capabilities
  ``Discard`` and ``Upgrade``, and ``format``, discard newer edits, on demand. Their ids are used again in a later
  epoch only.
* **J3** (C7) A finalized segment never changes, neither content nor ends.
* **J4** (C4) Edits are delivered in order, without gaps and repeats, or a gap is reported; so is reading from beyond
  the end.
* **J5** Recovery repeated, or interrupted at any step, ends the same for everyone.
* **J6** (C8) A reader never fences, recovers, finalizes or removes anything, and never sees an edit that a later
  recovery drops.
* **J7** (C6) Purge removes a prefix, whole segments only, and never the newest: it says which id comes next.
* **J8** When a step fails half-way, ``open_writer`` succeeds once the fault is gone. A step of a writer besides
  ``append`` that raised JournalUnavailableError may be repeated with the same arguments, whatever became of it; after
  a JournalDiskError it may not.
* **J9** A snapshot is kept and removed by the journal's owner only, and only at a durable id. What is not intact is
  never taken for a snapshot.
* **J10** What was discarded is never taken for what has its ids now: no edit, snapshot or offer of it is delivered,
  restored or adopted, and a reader that has delivered it says so before it goes on.

Roles are types: a reader has no method that changes the journal. A writer takes one call at a time, with three
exceptions: ``append`` may be called while earlier appends wait, and reading, ``ensure_owner`` and the methods for
snapshots at any time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from journal_manager.edits.discarded_edits import NOTHING_DISCARDED, DiscardedEdits
from journal_manager.edits.ops import Batch
from journal_manager.edits.segment import SegmentInfo
from journal_manager.errors import NamespaceMismatchError
from journal_manager.fencing_token import FencingToken
from journal_manager.txid import TxId

if TYPE_CHECKING:
    from journal_manager.journals.journal_uri import JournalURI
    from journal_manager.snapshots.snapshots import Chunks, SnapshotInfo, SnapshotStore


@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """Which namespace a journal belongs to. Journals of different namespaces are never mixed."""

    namespace_id: int = 0
    cluster_id: str = ""
    pool_id: str = ""
    layout_version: int = 1
    ctime: int = 0

    def ensure_same(self, stored: NamespaceInfo) -> None:
        """Refuse a journal of another namespace.

        Raises:
            NamespaceMismatchError: an id differs (versions and times may).
        """
        for field in ("namespace_id", "cluster_id", "pool_id"):
            if getattr(self, field) != getattr(stored, field):
                raise NamespaceMismatchError(
                    f"this is the journal of another namespace: its {field} is {getattr(stored, field)}, "
                    f"and {getattr(self, field)} is expected"
                )


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What opening for writing found and did."""

    token: FencingToken
    finalized: tuple[SegmentInfo, ...]
    """Segments that an earlier writer had left in progress; they are final now."""
    removed_empty: tuple[SegmentInfo, ...]
    """Segments that an earlier writer had begun without a durable edit; their ids are free again."""
    last_txid: TxId
    """The highest id ever durable in this journal; NOTHING (0) if there is none. The next edit is this + 1."""


class JournalReader(Protocol):
    """Reads, and never changes anything. Several may be open beside a writer. Also an async context manager."""

    async def segments(self) -> tuple[SegmentInfo, ...]:
        """All segments, in order of their ids; the last one may be in progress.

        Raises:
            JournalUnavailableError: the store does not answer (the list is never empty instead).
        """

    def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        """The batches of one segment from the one that holds ``start``; of a segment in progress, as far as it
        is durable now.

        Raises (while iterating):
            SegmentNotFoundError: it was purged, or finalized meanwhile: call ``segments()`` again.
            JournalCorruptionError: an edit that must be there is missing or damaged.
        """

    async def discarded(self) -> DiscardedEdits:
        """Which edits were discarded until now, so that nobody takes them for those that have their ids today.

        ``discard_from``, ``roll_back`` and ``format`` do that; a backend that can do so tells the edits here. Ask after
        ``segments``: what is in the list and not discarded then follows an edit that is not discarded either.

        Raises:
            JournalUnavailableError: the store does not answer.
        """
        return NOTHING_DISCARDED

    async def changed(self, timeout_s: float) -> None:
        """Wait until there may be more to read than at the last call, at most ``timeout_s`` seconds."""

    async def close(self) -> None:
        """Release everything. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


class SegmentWriter(Protocol):
    """Writes one segment."""

    @property
    def info(self) -> SegmentInfo: ...

    def append(self, batch: Batch) -> Awaitable[None]:
        """Store ``batch`` behind the earlier ones; the awaitable ends when it is durable as a whole.

        Raises (when awaited):
            JournalFencedError: another writer has the journal (J1). The batch may or may not survive.
            JournalUnavailableError, JournalError: the outcome is unknown; this segment takes no more.
        """

    async def close(self) -> None:
        """End the appends. Awaited edits stay, and the segment stays in progress. Idempotent."""

    async def abort(self) -> None:
        """Release everything without waiting. Never raises. Idempotent, also after close."""


class JournalWriter(JournalReader, Protocol):
    """The one writer of a journal. It exists only after claim, fencing and recovery."""

    @property
    def token(self) -> FencingToken: ...

    @property
    def recovery(self) -> RecoveryReport: ...

    @property
    def max_batch_bytes(self) -> int:
        """The longest batch (its frames' bytes) that ``append`` takes."""

    async def start_segment(self, first: TxId, layout_version: int) -> SegmentWriter:
        """Begin a segment at ``first``, which must be the id after the last one (any, in a new journal).

        Raises:
            SegmentExistsError: a segment is open, or the id was used, or would leave a gap (C7); or this writer has
            discarded the id.
            JournalFullError: the store can list no more segments; purge.
            JournalFencedError: another writer has the journal.
        """

    async def finalize_segment(self, first: TxId, last: TxId) -> SegmentInfo:
        """Fix the ends of the open segment, whose writer was closed. The same ends again: no change.

        Raises:
            JournalUnavailableError: an append to it failed, so that nobody knows where it ends; the next
            ``open_writer`` finds out. Or the store does not answer.
            SegmentNotFoundError: no segment begins there.
            SegmentMismatchError: ``last`` is not the last durable edit, or the segment ended elsewhere.
            JournalFencedError: another writer has the journal.
        """

    async def discard_segment(self, first: TxId) -> None:
        """Remove the open segment, whose writer was closed, if no edit is in it.

        Raises:
            SegmentNotFoundError, JournalFencedError; SegmentMismatchError: there are edits in it.
        """

    async def purge(self, min_txid: TxId) -> tuple[SegmentInfo, ...]:
        """Remove the finalized segments whose last id is below ``min_txid``, but not the newest segment.

        Returns what was removed, oldest first.
        """

    @property
    def durable_txid(self) -> TxId:
        """The last edit that is durable, as this writer knows; the id before the first one if there is none."""

    async def save_snapshot(self, at: TxId, chunks: Chunks) -> SnapshotInfo:
        """Keep the state after edit ``at``. It is durable when this returns. It replaces one at the same id.

        Cancelling leaves the former snapshots as they were, or this one whole.

        Raises:
            SnapshotAheadError: ``at`` is above ``durable_txid``. JournalFencedError: another writer has the journal.
            JournalFullError: the store can list no more snapshots; remove old ones.
            UpgradeError: an upgrade is in progress, and ``at`` is from before it.
        """

    async def delete_snapshot(self, at: TxId) -> None:
        """Remove a snapshot. It is no error if there is none.

        Raises:
            JournalFencedError: another writer has the journal.
        """

    async def adopt_snapshots(self) -> tuple[SnapshotInfo, ...]:
        """Keep the newest snapshot that readers have offered, if it is newer than those that are kept; remove the older
        offers. Returns what is kept now and was not before.

        Raises:
            JournalFencedError: another writer has the journal.
        """

    async def ensure_owner(self) -> None:
        """Ask the store whether this writer's epoch is still the newest.

        Raises:
            JournalFencedError: it is not. JournalUnavailableError: the store does not answer.
        """


Options = Mapping[str, object]
"""Options from the URI's query (text) and from keyword arguments (values). A backend refuses what it does not know."""


class Backend(Protocol):
    """One kind of store for journals. It is found by its scheme among the entry points ``journal.backends``."""

    async def format(self, uri: JournalURI, namespace: NamespaceInfo, options: Options, *, force: bool = False) -> None:
        """Make an empty journal.

        Raises:
            JournalExistsError: there is one with edits in it, and not ``force`` (which removes it).
        """

    async def has_data(self, uri: JournalURI, options: Options) -> bool:
        """Whether ``format`` would destroy something. Raises if it cannot tell."""

    async def open_reader(self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options) -> JournalReader:
        """Open for reading. Raises JournalNotFormattedError, NamespaceMismatchError, JournalUnavailableError."""

    async def open_writer(
        self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options, *, owner: str, create: bool = True
    ) -> JournalWriter:
        """Claim the next epoch, fence the former writer, and recover. Only then is there a writer (C8).

        ``create`` formats a journal that does not exist. May be cancelled at any await, and leaves a
        state that another ``open_writer`` can finish (J5).

        Raises:
            JournalNotFormattedError, NamespaceMismatchError, JournalUnavailableError;
            JournalFencedError: another claim came in between; JournalCorruptionError: acknowledged edits are damaged.
        """

    async def open_snapshots(self, uri: JournalURI, options: Options) -> SnapshotStore:
        """Open the snapshots that are kept beside the journal. Raises JournalNotFormattedError."""
