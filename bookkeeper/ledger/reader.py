"""Reading a run of entries: which bookie next, when to try two, when to give up.

``EntryReader`` reads ``first .. first + count - 1`` of one fragment (only one entry where E > Qw), each entry from
one bookie of its write set at a time.

Rules
    L1  An entry at or below the last add confirmed ends in its bytes or in a transient error, never in "no such
        entry" while a good copy may exist.
    L4  Past the last add confirmed only with ``unconfirmed=True``: then "no such entry" is an answer.
    L5  The shell checks digest and ids before it reports ``on_entries``; a bad copy is reported as unknown
        (``on_failed`` with DigestMismatchError), named by ``ReportCorrupt``, and the other copies are asked.
    L7  An explicit no from every replica: metadata is read anew and all are asked once more, then *data missing*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bookkeeper.errors import (
    BookKeeperError,
    require,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata

__all__ = [
    "AskBookie",
    "Effect",
    "EntryReader",
    "FailRead",
    "Found",
    "ReadConfig",
    "RefreshMetadata",
    "ReportCorrupt",
    "WakeAt",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfig:
    """Limits of one read."""

    hedge_ms: int = 500
    """No answer for so long: the next bookie is asked too."""
    rounds_max: int = 2
    """How often all replicas are asked before a transient error is raised."""

    def __post_init__(self) -> None:
        require(self.hedge_ms >= 1, "hedge_ms >= 1")
        require(self.rounds_max >= 1, "rounds_max >= 1")


@dataclass(frozen=True, slots=True)
class AskBookie:
    """Read up to ``count`` entries from ``first`` on from ``bookie``; no key, no fence.

    Report ``on_entries`` (a prefix of them, checked) or ``on_failed``.
    """

    bookie: BookieId
    first: EntryId
    count: int


@dataclass(frozen=True, slots=True)
class Found:
    """Hand the entries that ``bookie`` gave to the caller: ``first .. first + count - 1``."""

    bookie: BookieId
    first: EntryId
    count: int


@dataclass(frozen=True, slots=True)
class ReportCorrupt:
    """Log, count and tell repair: this copy is bad (L5)."""

    bookie: BookieId
    entry_id: EntryId


@dataclass(frozen=True, slots=True)
class RefreshMetadata:
    """Re-read the ledger's metadata; report ``on_metadata`` or ``on_metadata_failed`` (L7)."""


@dataclass(frozen=True, slots=True)
class FailRead:
    """Tell the caller. Everything before ``first`` was found."""

    first: EntryId
    error: BookKeeperError


Effect = AskBookie | Found | ReportCorrupt | RefreshMetadata | FailRead | WakeAt


class EntryReader:
    """Reads one run of one fragment. ``order``: the ensemble, nearest or least loaded first (a preference)."""

    def __init__(
        self,
        metadata: LedgerMetadata,
        first: int,
        count: int = 1,
        *,
        order: Sequence[BookieId] = (),
        unconfirmed: bool = False,
        config: ReadConfig | None = None,
    ) -> None: ...

    def start(self, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_entries(self, bookie: BookieId, first: int, count: int, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_failed(self, bookie: BookieId, first: int, error: BookKeeperError, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_metadata(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_metadata_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_tick(self, now: float) -> list[Effect]:
        raise NotImplementedError
