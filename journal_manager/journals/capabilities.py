"""What some backends can do besides the contract. A writer either has the methods of a capability or not.

sweeper = capability(writer, OrphanSweep)     # or an error that says that this backend has no such thing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from journal_manager.edits.discarded_edits import NOTHING_DISCARDED, DiscardedEdits
from journal_manager.edits.segment import SegmentInfo
from journal_manager.errors import UnsupportedCapabilityError
from journal_manager.fencing_token import FencingToken
from journal_manager.journals.backend import NamespaceInfo
from journal_manager.txid import TxId

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Orphan:
    """Something that a journal left behind, and that nothing refers to."""

    location: str
    purpose: str
    """What it was made for, in words."""
    age_s: float
    bytes: int
    """How much would be free; 0 if it is not known."""


@runtime_checkable
class OrphanSweep(Protocol):
    """Finds and removes what crashes left behind."""

    async def find_orphans(self, *, older_than_s: float = ...) -> tuple[Orphan, ...]:
        """What nothing refers to and nothing will, at least ``older_than_s`` seconds old. Removes nothing.

        Raises:
            JournalFencedError, JournalUnavailableError.
        """

    async def sweep_orphans(self, *, older_than_s: float = ...) -> tuple[Orphan, ...]:
        """Remove what ``find_orphans`` finds. Returns it. Raises the same."""


@runtime_checkable
class Discard(Protocol):
    """Discards the newest edits, for a return to an earlier version of a program."""

    async def discard_from(self, first: TxId) -> tuple[SegmentInfo, ...]:
        """Remove the edits from ``first`` on, whole segments and the snapshots that contain them. Returns the segments,
        oldest first.

        No segment may be open. It is done at once or not at all; interrupted, it can be repeated. This writer begins no
        segment afterwards (SegmentExistsError): the ids are used again in a later epoch only, so open the journal anew.

        Raises:
            SegmentMismatchError: ``first`` is inside a segment, or no edit would be left (``format`` does that).
            SegmentExistsError: a segment is open. JournalFencedError, JournalUnavailableError.
        """


@runtime_checkable
class Upgrade(Protocol):
    """Takes a journal to a new version of its program, with a way back until it is finalized.

    begin_upgrade  -->  in progress  --finalize_upgrade-->  no way back
                             '---------roll_back--------->  as it was when the upgrade began

    While it is in progress nothing from before it goes or is replaced: ``purge`` removes nothing, ``delete_snapshot``
    leaves the snapshots from before, and none is kept or adopted at an id from before. No segment may be open at
    ``begin_upgrade`` and ``roll_back``; open the journal anew afterwards. Each of the methods may be repeated if it was
    interrupted.
    """

    async def begin_upgrade(self, namespace: NamespaceInfo) -> None:
        """Take the new layout version and time of ``namespace``, whose ids are the same.

        Raises:
            UpgradeError: another upgrade is in progress, a segment is open, or the layout would be older.
            NamespaceMismatchError, JournalFencedError, JournalUnavailableError.
        """

    async def finalize_upgrade(self) -> None:
        """Keep what the new version wrote, for ever. Without an upgrade it is no change.

        Raises:
            JournalFencedError, JournalUnavailableError.
        """

    async def roll_back(self) -> tuple[SegmentInfo, ...]:
        """Remove the edits and snapshots since the upgrade began. Returns the segments that were removed.

        Raises:
            UpgradeError: none is in progress, or a segment is open. JournalFencedError, JournalUnavailableError.
        """


@dataclass(frozen=True, slots=True)
class CopySource:
    """Which journal's edits a member of a set holds."""

    journal: str
    """As ``DiscardedEdits.journal`` of that one."""
    epoch: int
    """An epoch of that journal in which it had every edit of the copy."""


@runtime_checkable
class CopyTracking(Protocol):
    """A journal that remembers of which other one it is a copy."""

    async def note_copy(self, copy: CopySource) -> None:
        """Remember it, durably. The same again is no change. Raises JournalFencedError, JournalUnavailableError."""


@dataclass(frozen=True, slots=True)
class JournalDescription:
    """Whose journal it is, and who may write to it."""

    namespace: NamespaceInfo
    token: FencingToken
    """The newest claim; epoch 0 if nobody has claimed the journal yet."""
    upgraded_at: TxId | None = None
    """The last edit from before the upgrade that is in progress; None if there is none."""
    discarded: DiscardedEdits = NOTHING_DISCARDED
    """The edits that were there once and are not any more, because somebody discarded them."""
    copy_of: CopySource | None = None
    """Whose edits it holds, if it is a member of a set whose leading member has discarded edits."""
    node_bytes: int | None = None
    """The size of the journal's node, which grows with each segment until it is purged; None if nothing bounds it."""
    node_bytes_max: int | None = None
    """No segment begins if the node were longer."""


@runtime_checkable
class DescribableReader(Protocol):
    """A reader that can say more than what it reads."""

    async def describe(self) -> JournalDescription:
        """Read who has the journal now. Raises JournalUnavailableError."""


def capability(of: object, kind: type[C]) -> C:
    """``of``, if it has the methods of ``kind``.

    Raises:
        UnsupportedCapabilityError: it does not.
    """
    if not isinstance(of, kind):
        raise UnsupportedCapabilityError(f"{type(of).__name__} cannot do this: it has no {kind.__name__}")
    return of
