"""What a replica knows to have been durable, also when it has to rebuild its state (pure).

A replica that rebuilds its state would take whatever it finds then. If the journal was put back to an older copy
meanwhile it would go on without edits that were acknowledged. So the last edit that was durable, with its epoch, is
kept across each rebuild, and compared with the journal that is there now. What was discarded by order is no loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from journal_manager.edits.discarded_edits import UNKNOWN_EPOCH, DiscardedEdits
from journal_manager.edits.segment import SegmentInfo
from journal_manager.errors import ReplicaFailedError
from journal_manager.txid import NOTHING, TxId

ADVICE: Final = (
    "the journal was put back to an older state, made anew, or cut. Put the newest copy back and start this replica "
    "again; to go on without those edits, remove the newer snapshots, if there are any, and start all replicas again"
)


class KnownEdits:
    """Every edit up to ``txid`` was durable in the journal."""

    def __init__(self) -> None:
        self.txid = NOTHING
        self.epoch = UNKNOWN_EPOCH
        """The epoch of that edit, or a later one in which it was there."""

    def durable(self, txid: TxId, epoch: int) -> None:
        """The edits up to ``txid`` are durable in this epoch. It never goes back by this."""
        if txid >= self.txid:
            self.txid, self.epoch = txid, epoch

    def without(self, discarded: DiscardedEdits) -> None:
        """Edits were discarded by order: only those before them are still to be expected."""
        first = discarded.first_after(self.epoch)
        if first is not None and first <= self.txid:
            self.txid, self.epoch = TxId(first - 1), discarded.epoch + 1

    def ensure_same(self, segments: Sequence[SegmentInfo]) -> None:
        """Check that no other edits have got these ids; ask ``without`` before.

        Raises:
            ReplicaFailedError: the segment that holds the last one was begun after that edit was durable.
        """
        for segment in segments:
            holds = segment.first <= self.txid and (segment.last is None or self.txid <= segment.last)
            if holds and segment.epoch > self.epoch > UNKNOWN_EPOCH:
                raise ReplicaFailedError(
                    f"segment {segment} of the journal was begun in epoch {segment.epoch}, and this replica knows "
                    f"edits up to {self.txid} that were durable in epoch {self.epoch} already: other edits have got "
                    f"their ids, although those were not discarded; {ADVICE}"
                )

    def ensure_reached(self, last: TxId, known: str = "this replica knows durable edits") -> None:
        """Check that a journal that certainly ends at ``last`` has them; ask ``without`` before.

        Raises:
            ReplicaFailedError: it ends before.
        """
        if self.txid > last:
            raise ReplicaFailedError(
                f"the journal ends at edit {last}, and {known} up to {self.txid}: edits that were acknowledged are "
                f"gone without having been discarded; {ADVICE}"
            )


def certain_end(segments: Sequence[SegmentInfo]) -> TxId | None:
    """The last edit of a journal; None if a segment is in progress, so that only its writer knows."""
    return segments[-1].last if segments else NOTHING
