"""A ledger that this client writes. Skeleton: signatures and promises; see the module when it is filled in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from bookkeeper.ids import EntryId, LedgerId

if TYPE_CHECKING:
    from bookkeeper.ledger import LedgerMetadata


class WriteHandle:
    """The only writer of a ledger that :meth:`BookKeeper.create_ledger` made.

    Belongs to the loop that made it. ``async with`` closes it.
    """

    @property
    def id(self) -> LedgerId:
        """The ledger's id."""
        raise NotImplementedError

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata as last seen or written by this handle."""
        raise NotImplementedError

    @property
    def last_add_confirmed(self) -> EntryId:
        """Highest id that is confirmed, and with it all below (W3); -1 at first."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """Payload bytes confirmed so far."""
        raise NotImplementedError

    @property
    def pending_bytes(self) -> int:
        """Payload bytes appended and not yet confirmed (W12)."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """True once nothing can be appended any more, for whatever reason."""
        raise NotImplementedError

    async def append(self, payload: bytes) -> EntryId:
        """Append one entry; return its id once it is durable on the ack quorum (W1).

        Waits while ``pending_bytes_max`` is reached (W12). Cancelling the caller does not take the entry
        back (W7). Raises: LedgerFencedError, AddTimeoutError, NotEnoughBookiesError, LedgerClosedError,
        EntryTooLargeError, UnauthorizedError, ClientClosedError.
        """
        raise NotImplementedError

    async def append_many(self, payloads: Sequence[bytes]) -> range:
        """Append a run; return the ids (consecutive) once all are durable. One awaitable for all of them.

        Raises: as append; PartialAppendError with the confirmed ids and the first unknown id when a prefix was
        confirmed (D16).
        """
        raise NotImplementedError

    def append_nowait(self, payload: bytes) -> asyncio.Future[EntryId]:
        """Append without waiting: the future resolves like append(). Futures resolve in id order (P5).

        Raises: as append, at once when the handle is closed; TooManyRequestsError when ``pending_bytes_max`` is
        reached: await room() first.
        """
        raise NotImplementedError

    async def room(self) -> None:
        """Wait until another append would not have to wait (W12)."""
        raise NotImplementedError

    async def flush(self) -> EntryId:
        """Wait until everything appended so far is confirmed; return the last add confirmed."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the ledger at the last add confirmed. Appends that are pending fail first (R13): flush() before.

        One shared future: later calls wait for the same close.
        """
        raise NotImplementedError

    async def abandon(self) -> None:
        """Let go without closing: the ledger stays open for a recovery to close. Pending appends end as unknown."""
        raise NotImplementedError

    async def __aenter__(self) -> WriteHandle:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
