"""Finding the end of a ledger whose writer is gone. (Signatures first; the machine follows.)"""

from __future__ import annotations

from collections.abc import Mapping

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.recovery_effects import (
    BeginRecovery,
    CloseRecovered,
    Effect,
    FenceRead,
    FindStandIns,
    Forget,
    ReadEntry,
    Recovered,
    RecoveryConfig,
    RecoveryFailed,
    WriteBack,
)

__all__ = [
    "BeginRecovery",
    "CloseRecovered",
    "Effect",
    "FenceRead",
    "FindStandIns",
    "Forget",
    "LedgerRecovery",
    "ReadEntry",
    "Recovered",
    "RecoveryConfig",
    "RecoveryFailed",
    "WakeAt",
    "WriteBack",
]


class LedgerRecovery:
    """Recovers one ledger, once. Start with :meth:`start`, end with ``Recovered`` or ``RecoveryFailed``."""

    def __init__(self, config: RecoveryConfig | None = None) -> None: ...

    def start(self, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_begun(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """What is stored: IN_RECOVERY (set or joined), or CLOSED (adopted)."""
        raise NotImplementedError

    def on_fence_answer(
        self, bookie: BookieId, answer: Answer, lac: EntryId | None, now: float, error: BookKeeperError | None = None
    ) -> list[Effect]:
        """POSITIVE: fenced, and the last entry's digest is right; NEGATIVE: fenced, has no entry; else UNKNOWN.

        ``lac``: the highest last add confirmed that the answer carried (entry or explicit, digest checked), or None.
        """
        raise NotImplementedError

    def on_read_answer(
        self,
        bookie: BookieId,
        entry_id: int,
        answer: Answer,
        now: float,
        length: int | None = None,
        error: BookKeeperError | None = None,
    ) -> list[Effect]:
        """POSITIVE (digest and ids checked, ``length`` from its header): the shell keeps the payload."""
        raise NotImplementedError

    def on_written(self, bookie: BookieId, entry_id: int, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_write_failed(self, bookie: BookieId, entry_id: int, error: BookKeeperError, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_stand_ins(self, stand_ins: Mapping[BookieId, BookieId], now: float) -> list[Effect]:
        raise NotImplementedError

    def on_closed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        raise NotImplementedError

    def on_close_lost(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The compare-and-set lost; ``metadata`` is what is stored."""
        raise NotImplementedError

    def on_store_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The store cannot be reached, or the ledger is deleted."""
        raise NotImplementedError

    def on_tick(self, now: float) -> list[Effect]:
        raise NotImplementedError
