"""A ledger whose application chooses the entry ids. Entries come in any order and are confirmed in the order of ids."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.services import ClientServices
from bookkeeper.client.write.append_futures import copy_error
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.encryption import EntrySealer
from bookkeeper.errors import BookKeeperError, IllegalOperationError, TooManyRequestsError
from bookkeeper.ids import EntryId
from bookkeeper.ledger import DigestScheme
from bookkeeper.ledger.write import AdvancedOrder
from bookkeeper.seams import Buffer


class _Entry(NamedTuple):
    payload: bytes
    future: asyncio.Future[EntryId]


class AdvancedHandle(WriteHandle):
    """The only writer of a ledger made with ``create_ledger(advanced=True)``: its caller chooses the entry ids.

    Ids may come in any order. Each is used once, and in the end they are 0, 1, 2, ... without a gap. An entry is
    confirmed only after all lower ones. An entry above a gap waits here, and is sent when the gap is filled. So
    ``length`` counts in the order of ids, and no bookie has an entry that lies above a gap.

    A ledger that is closed with a gap ends below the gap. Appends above it were never sent, and fail with
    LedgerClosedError. A recovery ends the ledger there, too.
    """

    def __init__(
        self,
        services: ClientServices,
        record: LedgerView,
        digest: DigestScheme,
        on_closed: Callable[[WriteHandle], None] = lambda handle: None,
        *,
        sealer: EntrySealer | None = None,
        deferred_sync: bool = False,
    ) -> None:
        super().__init__(services, record, digest, on_closed, sealer=sealer, deferred_sync=deferred_sync)
        self._order = AdvancedOrder(self._writer)
        self._entries: dict[int, _Entry] = {}
        """The entries that are held above a gap, or wait for room."""
        self._rooms: list[asyncio.Future[None]] = []
        """The callers of room(), who look again after any change."""

    @property
    def pending_bytes(self) -> int:
        """Payload bytes appended and not yet confirmed, those above a gap included."""
        return super().pending_bytes + self._order.held_bytes

    @property
    def lowest_missing(self) -> EntryId:
        """The lowest id that was not appended yet: nothing above it can be confirmed."""
        return self._order.lowest_missing

    async def append_at(self, entry_id: int, payload: Buffer) -> EntryId:
        """Append as entry ``entry_id``; return that id once it and all lower ones are durable on the ack quorum.

        Waits for room while ``pending_bytes_max`` or ``pending_entries_max`` is reached. Entries that wait above a gap
        count as well. The lowest missing id never waits for those above it, so that the gap can always be filled.

        Cancelling the caller withdraws the entry only while it waits for room.

        Raises:
            DuplicateEntryError: this id was appended before, by any caller; nothing was sent.
            ValueError: the id is negative.
            EntryTooLargeError: above ``entry_size_max``; nothing was sent.
            LedgerFencedError, AddTimeoutError, LedgerClosedError, ...: as :meth:`WriteHandle.append`.
        """
        entry = self._new(entry_id, payload)
        if self._order.has_room(entry_id):
            self._order.hold(entry_id, len(entry.payload))
            self._advance()
        else:
            self._order.wait(entry_id, len(entry.payload))
        try:
            return await entry.future
        except asyncio.CancelledError:
            if self._order.withdraw(entry_id):
                del self._entries[entry_id]
            raise

    def append_at_nowait(self, entry_id: int, payload: Buffer) -> asyncio.Future[EntryId]:
        """Append as entry ``entry_id`` without waiting: the future resolves like append_at(), in id order.

        Raises:
            TooManyRequestsError: there is no room for this id now; nothing was sent. Await room(entry_id).
            DuplicateEntryError, ValueError, EntryTooLargeError: nothing was sent.
            LedgerClosedError, LedgerFencedError, ...: what ended this handle; nothing was sent.
        """
        if not self._order.has_room(entry_id):
            self._raise_if_ended()
            self._order.check_new(entry_id)
            raise TooManyRequestsError(
                f"ledger {self._id} has {self.pending_bytes} bytes of appends pending, which is all that "
                f"pending_bytes_max or pending_entries_max allow; await room({entry_id}), and append entry "
                f"{self._order.lowest_missing}: the entries above it stay pending until then"
            )
        entry = self._new(entry_id, payload)
        self._order.hold(entry_id, len(entry.payload))
        self._advance()
        return entry.future

    async def room(self, entry_id: int | None = None) -> None:
        """Wait until ``entry_id`` could be appended without waiting; None stands for an id above a gap.

        Raises: the error that ended this handle.
        """
        self._require_loop()
        while True:
            self._raise_if_ended()
            if self._order.has_room(self._order.lowest_missing + 1 if entry_id is None else entry_id):
                return
            future: asyncio.Future[None] = self._loop.create_future()
            self._rooms.append(future)
            try:
                await future
            except asyncio.CancelledError:
                if future in self._rooms:
                    self._rooms.remove(future)
                raise

    async def flush(self) -> EntryId:
        """Wait until every entry appended so far without a gap below it is acknowledged, also those that wait for room.

        Returns and raises: as :meth:`WriteHandle.flush`.
        """
        upto = max(self._entries, default=-1)
        last = await super().flush()
        while (lowest := self._order.lowest_missing) <= upto and lowest in self._entries:
            await self.room(lowest)
            self._advance_later()
            last = await super().flush()
        return last

    async def append(self, payload: Buffer) -> NoReturn:
        """Raises: IllegalOperationError, always: the caller chooses the ids of this ledger; use append_at()."""
        raise self._no_numbering()

    def append_nowait(self, payload: Buffer) -> NoReturn:
        """Raises: IllegalOperationError, always; use append_at_nowait()."""
        raise self._no_numbering()

    async def append_many(self, payloads: Sequence[Buffer]) -> NoReturn:
        """Raises: IllegalOperationError, always; use append_at()."""
        raise self._no_numbering()

    def _no_numbering(self) -> IllegalOperationError:
        return IllegalOperationError(
            f"ledger {self.id} was created with advanced=True, so its caller chooses the entry ids: use append_at()"
        )

    # -- inside -------------------------------------------------------------------------------------------

    def _new(self, entry_id: int, payload: Buffer) -> _Entry:
        self._require_loop()
        checked = self._checked(payload)
        self._raise_if_ended()
        self._order.check_new(entry_id)
        entry = self._entries[entry_id] = _Entry(checked, self._loop.create_future())
        return entry

    def _advance(self) -> None:
        """Give the writer the entries without a gap below them, then admit those for which there is room."""
        while True:
            for entry_id in self._order.take_ready():
                entry = self._entries.pop(entry_id)
                self._enqueue(entry.payload, entry.future)
            if not self._order.admit():
                return

    def _on_progress(self) -> None:
        super()._on_progress()
        if (error := self._error()) is not None:
            self._refuse_held(error)
        elif self._order.has_waiters:
            self._loop.call_soon(self._advance_later)  # not now: the machine's effects are being performed
        self._wake_rooms()

    def _advance_later(self) -> None:
        if self._error() is None and self._order.admit():
            self._advance()

    def _wake_rooms(self) -> None:
        rooms, self._rooms = self._rooms, []
        for future in rooms:
            if not future.done():
                future.set_result(None)

    def _refuse_held(self, error: BookKeeperError) -> None:
        super()._refuse_held(error)
        self._order.forget()
        entries, self._entries = self._entries, {}
        for _, entry in sorted(entries.items()):
            if not entry.future.done():
                entry.future.set_exception(copy_error(error))
        self._wake_rooms()
