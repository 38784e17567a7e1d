"""Decides which snapshots and segments may be removed (pure).

The newest snapshots stay, and so do the edits after the oldest of them, which turn it into the present state. Some
older edits may stay as well, for readers that are behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from journal_manager.edits.segment import SegmentInfo
from journal_manager.edits.selection import in_order
from journal_manager.errors import check
from journal_manager.txid import FIRST_TXID, TxId


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How much to keep."""

    snapshots: int = 2
    """The newest snapshots stay, at least this many."""
    extra_txns: int = 0
    """Edits that stay before the oldest kept snapshot's."""
    extra_segments: int = 10_000
    """Those edits stay in no more segments than this."""


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What may be removed: first the snapshots, then the segments. Either may fail without harm."""

    snapshots: tuple[TxId, ...]
    """The snapshots to delete."""
    purge_below: TxId
    """For ``EditLog.purge``: whole final segments that end below this may be removed."""


def plan_retention(
    policy: RetentionPolicy, snapshots: Iterable[TxId], segments: Iterable[SegmentInfo]
) -> RetentionPlan:
    """Decide what may be removed, given the ids of the snapshots and the segments. Without a snapshot: nothing."""
    by_age = sorted(set(snapshots))
    kept = by_age[-max(policy.snapshots, 1) :]
    if not kept:
        return RetentionPlan((), FIRST_TXID)
    needed = kept[0] + 1
    below = max(FIRST_TXID, needed - policy.extra_txns)
    extra = [s for s in in_order(segments) if s.last is not None and below <= s.last < needed]
    if len(extra) > policy.extra_segments:
        last = extra[len(extra) - policy.extra_segments - 1].last
        assert last is not None
        below = last + 1
    check(below <= needed, "C6", (below, needed))
    return RetentionPlan(tuple(by_age[: -len(kept)]), TxId(below))
