"""A ledger whose entry ids are chosen by the application: out of order in, confirmed in order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NoReturn

from bookkeeper.client.ledger_handle import WriteHandle
from bookkeeper.errors import IllegalOperationError
from bookkeeper.ids import EntryId
from bookkeeper.seams import Buffer


class AdvancedHandle(WriteHandle):
    """The only writer of a ledger made with ``create_ledger(advanced=True)``: its caller chooses the entry ids.

    Ids may come in any order; each is used once, and in the end they are 0, 1, 2, ... without a gap. An entry is
    confirmed when all lower ones are (W2): one that lies above a gap waits, here, until the gap is filled, and is
    sent then. So ``length`` counts in the order of ids, and what lies above a gap is certainly not in the ledger.

    Closing with a gap: the ledger ends below it, and appends above it fail with LedgerClosedError; they were never
    sent. A recovery ends it there, too.
    """

    async def append_at(self, entry_id: int, payload: Buffer) -> EntryId:
        """Append as entry ``entry_id``; return that id once it and all lower ones are durable on the ack quorum (W1).

        Waits for room while ``pending_bytes_max`` or ``pending_entries_max`` are reached (W12), entries that wait
        above a gap included. The lowest id that is missing never waits for those above it, so whoever fills the
        gap always gets on.

        Cancelling the caller does not take the entry back once it was admitted (W7); while it waits for room it does.

        Raises:
            DuplicateEntryError: this id was appended before, by whomever; nothing was sent.
            BadRequestError: a negative id; nothing was sent.
            EntryTooLargeError: above ``entry_size_max``; nothing was sent.
            LedgerFencedError, AddTimeoutError, LedgerClosedError, ...: as :meth:`WriteHandle.append`.
        """
        return await self.append_at_nowait(entry_id, payload)

    def append_at_nowait(self, entry_id: int, payload: Buffer) -> asyncio.Future[EntryId]:
        """Append as entry ``entry_id`` without waiting: the future resolves like append_at(), in id order.

        Raises:
            TooManyRequestsError: there is no room for this id now (W12); nothing was sent. Await room(entry_id).
            DuplicateEntryError, BadRequestError, EntryTooLargeError: nothing was sent.
            LedgerClosedError, LedgerFencedError, ...: what ended this handle; nothing was sent.
        """
        raise IllegalOperationError(f"ledger {self.id}: advanced appends are not there yet")

    async def append(self, payload: Buffer) -> NoReturn:
        """Raises: IllegalOperationError, always: the ids of this ledger are its caller's; use append_at()."""
        raise self._no_numbering()

    def append_nowait(self, payload: Buffer) -> NoReturn:
        """Raises: IllegalOperationError, always; use append_at_nowait()."""
        raise self._no_numbering()

    async def append_many(self, payloads: Sequence[Buffer]) -> NoReturn:
        """Raises: IllegalOperationError, always; use append_at()."""
        raise self._no_numbering()

    def _no_numbering(self) -> IllegalOperationError:
        return IllegalOperationError(
            f"ledger {self.id} was created with advanced=True: its caller chooses the entry ids; use append_at()"
        )
