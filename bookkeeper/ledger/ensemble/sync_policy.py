"""What an ack of a bookie means: the entry is durable there, or only written.

A writer gets one of two policies when it is made. They answer the same questions. The writer and its ensemble ask them,
and never look which policy it is.

    question                                    ImmediateSync            DeferredSync
    what may others read?                       what is acknowledged     what a completed force covers
    what does a failed bookie mean?             it is replaced           the writer ends: its acks may be lost
    what does a bookie that trails mean?        it is replaced           callers wait for it
    after which time without progress           stall_ms                 add_timeout_ms
      has a bookie failed?
    which packets are never sent again?         the acknowledged ones    those that every bookie acknowledged

Rules
    W11  With deferred sync an ack moves ``last_acknowledged`` only, and the ensemble never changes.
    W15  A bookie that stands still while others progress, or trails too far, counts as failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from bookkeeper.errors import AddTimeoutError, BookieFailedError, BookKeeperError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.member import EnsembleMember


class SyncPolicy(Protocol):
    """See the table in :mod:`bookkeeper.ledger.ensemble.sync_policy`."""

    @property
    def stall_ms(self) -> int:
        """A bookie that makes no progress for so long while others do has failed."""

    @property
    def waits_for_trailing(self) -> bool:
        """Do callers wait for a bookie that trails? Otherwise it is replaced."""

    def visible(self, acknowledged: int, forced: int) -> int:
        """Which of two positions (ids, or lengths in bytes) others may read: ``acknowledged`` or ``forced``."""

    def releasable(self, end: int, members: Iterable[EnsembleMember]) -> int:
        """Packets below this id are never sent again; everything below ``end`` is acknowledged."""

    def end_after_loss(self, bookie: BookieId, error: BookKeeperError) -> BookieFailedError | None:
        """The error that ends the writer because ``bookie`` failed; None: the bookie can be replaced."""

    def may_close_after(self, error: BookKeeperError) -> bool:
        """May a writer that ended with ``error`` still close the ledger?"""


class ImmediateSync:
    """An ack says that the entry is durable."""

    waits_for_trailing: Final = False

    def __init__(self, config: WriterConfig) -> None:
        self.stall_ms: Final = config.stall_ms

    def visible(self, acknowledged: int, forced: int) -> int:
        return acknowledged

    def releasable(self, end: int, members: Iterable[EnsembleMember]) -> int:
        return end

    def end_after_loss(self, bookie: BookieId, error: BookKeeperError) -> BookieFailedError | None:
        return None

    def may_close_after(self, error: BookKeeperError) -> bool:
        return isinstance(error, AddTimeoutError)


class DeferredSync:
    """An ack says that the entry is written; ``force`` makes it durable (W11)."""

    waits_for_trailing: Final = True

    def __init__(self, config: WriterConfig) -> None:
        self.stall_ms: Final = config.add_timeout_ms

    def visible(self, acknowledged: int, forced: int) -> int:
        return forced

    def releasable(self, end: int, members: Iterable[EnsembleMember]) -> int:
        """A bookie still needs the packets that it refused: without them no force could complete."""
        return min(end, *(member.acks.mark for member in members))

    def end_after_loss(self, bookie: BookieId, error: BookKeeperError) -> BookieFailedError | None:
        failure = BookieFailedError(
            f"{bookie} failed, and a ledger with deferred_sync has no ensemble change: nothing more can be appended "
            "or forced. A recovery (open_ledger) keeps what its other bookies have; close(force=False) ends the "
            f"ledger at the last add confirmed. The failure: {error}"
        )
        failure.__cause__ = error
        return failure

    def may_close_after(self, error: BookKeeperError) -> bool:
        return isinstance(error, AddTimeoutError | BookieFailedError)


def sync_policy(config: WriterConfig) -> SyncPolicy:
    """The policy of a writer, chosen once."""
    return DeferredSync(config) if config.deferred_sync else ImmediateSync(config)
