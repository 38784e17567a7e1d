"""The ledger of the segment that is being written: gives it entries in order, and reports each that is durable.

There is one future and one callback per entry, nothing per record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from bookkeeper.errors import BookKeeperError, ClientClosedError, TooManyRequestsError
from bookkeeper.ids import EntryId

if TYPE_CHECKING:
    from bookkeeper import WriteHandle


class Sendable(Protocol):
    """An entry of the segment."""

    entry: int
    """Its id, set when it is sent."""
    payload: bytes
    """What is stored; dropped when it is durable."""


F = TypeVar("F", bound=Sendable)


class OpenSegment(Generic[F]):
    """Entries on their way to one ledger. Belongs to the loop that made it."""

    def __init__(
        self,
        handle: WriteHandle,
        number: int,
        on_durable: Callable[[F], None],
        on_failed: Callable[[OpenSegment[F], BookKeeperError], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        """``on_broken`` is called for an append that failed with anything but a BookKeeperError, which is a bug: what
        the ledger holds is unknown then."""
        self.handle = handle
        self.number = number
        """Of the segment."""
        self.flights: deque[F] = deque()
        """Sent, and not known to be durable, in order."""
        self.next_entry = 0
        """The id of the next entry."""
        self.failure: BookKeeperError | None = None
        """Why the ledger takes no more entries."""
        self._on_durable, self._on_failed, self._on_broken = on_durable, on_failed, on_broken
        self._held: deque[bytes] = deque()
        """Payloads for which the ledger's writer has no room."""
        self._waiting: asyncio.Task[None] | None = None
        self._all_durable: asyncio.Future[None] | None = None
        self._abandoned = False

    def send(self, flight: F) -> None:
        """Append an entry. Its result is reported later, never inside this call."""
        flight.entry = self.next_entry
        self.next_entry += 1
        self.flights.append(flight)
        if self._held or self.failure is not None:
            self._held.append(flight.payload)
        else:
            self._append(flight.payload)

    def _append(self, payload: bytes) -> None:
        try:
            self.handle.append_nowait(payload).add_done_callback(self._done)
        except TooManyRequestsError:
            self._held.append(payload)
            if self._waiting is None:
                self._waiting = asyncio.get_running_loop().create_task(self._wait_for_room())
        except BookKeeperError as error:
            asyncio.get_running_loop().call_soon(self.fail, error)

    async def _wait_for_room(self) -> None:
        try:
            while self._held and not self._abandoned:
                await self.handle.room()
                payload = self._held[0]
                self.handle.append_nowait(payload).add_done_callback(self._done)
                self._held.popleft()
        except TooManyRequestsError:
            pass  # another append took the room; wait again below
        except BookKeeperError as error:
            self.fail(error)
        except Exception as error:
            self._on_broken(error)
            return
        finally:
            self._waiting = None
        if self._held and self.failure is None and not self._abandoned:
            self._waiting = asyncio.get_running_loop().create_task(self._wait_for_room())

    def _done(self, appended: asyncio.Future[EntryId]) -> None:
        if appended.cancelled():
            return
        error = appended.exception()
        if error is None:
            if self._abandoned:
                return  # the recovered ledger decides
            flight = self.flights.popleft()
            flight.payload = b""
            self._on_durable(flight)
            if not self.flights:
                self._wake(None)
        elif isinstance(error, BookKeeperError):
            self.fail(error)
        else:
            self._on_broken(error)

    def fail(self, error: BookKeeperError) -> None:
        """The ledger takes no more entries; those under way have an unknown outcome."""
        if self.failure is None and not self._abandoned:
            self.failure = error
            self._on_failed(self, error)
            self._wake(error)

    def _wake(self, error: BookKeeperError | None) -> None:
        quiet, self._all_durable = self._all_durable, None
        if quiet is not None and not quiet.done():
            if error is None:
                quiet.set_result(None)
            else:
                quiet.set_exception(error)

    async def wait_until_durable(self) -> None:
        """Wait until everything that was sent is durable. Raises: the BookKeeperError that ended the ledger."""
        if self.failure is not None:
            raise self.failure
        if self.flights:
            if self._all_durable is None:
                self._all_durable = asyncio.get_running_loop().create_future()
                self._all_durable.add_done_callback(_mark_read)
            await asyncio.shield(self._all_durable)

    async def abandon(self) -> deque[F]:
        """Report nothing more, and leave the ledger to a recovery. Returns the entries of unknown outcome, in order.

        The caller takes out each one that it settles: giving up again returns those that are left.
        """
        self._abandoned = True
        if self._waiting is not None:
            self._waiting.cancel()
        self._held.clear()
        self._wake(self.failure or ClientClosedError(f"segment {self.number} was given up"))
        await self.handle.abandon()
        return self.flights


def _mark_read(quiet: asyncio.Future[None]) -> None:
    if not quiet.cancelled():
        quiet.exception()
