"""The edit log: numbers edits, makes them durable in groups, rolls segments.

    log = await EditLog.open("file:///data/edits")     # claim an epoch, fence, recover
    async for op in log.read(snapshot_txid + 1): ...   # replay
    txid = await log.log(b"...")                       # durable
    await log.roll(); await log.purge(snapshot_txid + 1)
    await log.close()

Group commit without a timer: edits that arrive while a batch is being made durable form the next batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from journal_manager.backend import Backend, JournalWriter, NamespaceInfo, RecoveryReport
from journal_manager.fencing import FencingToken
from journal_manager.ops import Op
from journal_manager.segment import SegmentInfo
from journal_manager.txid import TxId


@dataclass(frozen=True, slots=True, kw_only=True)
class EditLogConfig:
    """What an application may set."""

    layout_version: int = 1
    """The version of the edits' bodies, kept with each segment."""
    max_batch_bytes: int = 1 << 20
    """The most that becomes durable at once; a longer group of edits is refused. The backend's own limit holds too."""
    max_pending_bytes: int = 64 << 20
    """The most that may wait to become durable; beyond, JournalOverloadedError."""
    segment_bytes: int = 64 << 20
    """Roll by itself before a segment grows beyond this."""


class EditLog:
    """One writer's log. Everything runs on one event loop; any number of tasks may log at once."""

    @classmethod
    async def open(
        cls,
        uri: str,
        *,
        namespace: NamespaceInfo | None = None,
        owner: str = "",
        create: bool = True,
        config: EditLogConfig | None = None,
        **options: object,
    ) -> EditLog:
        """Become the writer of the journal at ``uri``: claim the next epoch, fence, recover (C8).

        Nothing is written yet: the first edit begins the first segment. Raises as ``Backend.open_writer``.
        """
        raise NotImplementedError

    def __init__(self, writer: JournalWriter, config: EditLogConfig | None = None) -> None:
        raise NotImplementedError

    @property
    def token(self) -> FencingToken:
        """Whose epoch: hand it to side effects that must be fenced as well."""
        raise NotImplementedError

    @property
    def recovery(self) -> RecoveryReport:
        """What opening found; ``recovery.last_txid`` is the last edit to replay."""
        raise NotImplementedError

    @property
    def next_txid(self) -> TxId:
        """The id the next edit gets."""
        raise NotImplementedError

    @property
    def durable_txid(self) -> TxId:
        """Every edit up to this one is durable."""
        raise NotImplementedError

    @property
    def failure(self) -> BaseException | None:
        """Why this log takes nothing more; None while it does."""
        raise NotImplementedError

    def log(self, body: bytes, opcode: int = 0) -> asyncio.Future[TxId]:
        """Give ``body`` the next id and let it become durable. The future ends with the id, in order of ids.

        Cancelling the future, or the task that awaits it, does not withdraw the edit.

        Raises (at once):
            OpTooLargeError, JournalOverloadedError: nothing was logged; the log goes on.
            JournalClosedError; JournalFencedError, JournalFailedError: the log has failed before.
        Raises (the future):
            JournalFencedError: another writer has the journal; JournalFailedError. The outcome is unknown.
        """
        raise NotImplementedError

    def log_group(self, ops: Iterable[tuple[int, bytes]]) -> asyncio.Future[TxId]:
        """Log ``(opcode, body)`` edits that become durable together or not at all. The future ends with the last id."""
        raise NotImplementedError

    async def room(self) -> None:
        """Wait until less than the allowed number of bytes waits to become durable."""
        raise NotImplementedError

    async def sync(self, upto: TxId | None = None) -> TxId:
        """Wait until ``upto`` (default: everything logged so far) is durable; returns ``durable_txid``."""
        raise NotImplementedError

    async def roll(self) -> SegmentInfo | None:
        """Make everything logged so far durable and final: returns the finalized segment, None if none was open.

        The next edit begins a new segment. Needed before ``purge`` can remove what was written so far.
        """
        raise NotImplementedError

    def read(self, start: TxId, end: TxId | None = None) -> AsyncIterator[Op]:
        """The durable edits from ``start`` up to ``end`` (default: all there are now), in order.

        Raises (while iterating):
            JournalGapError: an edit that must be there is not, for instance because it was purged.
        """
        raise NotImplementedError

    async def segments(self) -> tuple[SegmentInfo, ...]:
        raise NotImplementedError

    async def purge(self, below: TxId) -> tuple[SegmentInfo, ...]:
        """Remove whole finalized segments that end below ``below``; returns them."""
        raise NotImplementedError

    async def ensure_owner(self) -> None:
        """Ask the journal whether this writer still has it.

        Raises:
            JournalFencedError: not any more (the log has failed then). JournalUnavailableError: cannot tell.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Make everything durable, finalize the segment, release. Idempotent; after a failure only releases."""
        raise NotImplementedError

    async def abort(self) -> None:
        """Release without waiting, as a crash would: edits that are not durable yet are unknown. Never raises."""
        raise NotImplementedError

    async def __aenter__(self) -> EditLog:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


__all__ = ["Backend", "EditLog", "EditLogConfig"]
