"""Makes the ledger of the next segment in advance, and names it in the stream's node, so that nothing is lost.

    nothing --prepare--> being made --> named --obtain--> handed over --taken--> nothing
                                          ^--------------returned------'

The start of a segment obtains the ledger, and says afterwards whether the step was done. A ledger whose step failed
is kept for the next attempt. If none was made in advance, obtaining makes one; the step then names it.

A ledger that a former owner made in advance is of no use: only its maker can write to it. It is taken out of the node
by the step that names our own, and deleted after that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError, in_words
from segments.chain import StreamChain
from segments.error_translation import stream_error
from segments.errors import OwnershipLostError, StreamError, StreamNotReadyError, StreamUnavailableError
from segments.retention.removal import delete_ledgers
from segments.write.state.stream_owner import StreamOwner

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle

_log = logging.getLogger(__name__)

NewLedger = Callable[[], Awaitable["WriteHandle"]]
"""Makes a ledger for the next segment, with the stream's replication and tags. Raises BookKeeperError."""


class LedgerAllocator:
    """The ledgers of one writer's segments. Belongs to the loop that made it."""

    def __init__(self, client: BookKeeper, owner: StreamOwner, new_ledger: NewLedger, tasks: Tasks) -> None:
        self._client, self._owner, self._tasks = client, owner, tasks
        self._new_ledger = new_ledger
        self._ready: WriteHandle | None = None
        self._making: asyncio.Task[None] | None = None
        self._handed_over = False

    @property
    def is_ready(self) -> bool:
        """Whether a ledger was made in advance."""
        return self._ready is not None

    def prepare(self) -> None:
        """Begin to make a ledger, unless there is one. A failure is no failure of the writer: obtain() tries again."""
        if self._ready is None and self._making is None and not self._handed_over and not self._tasks.closed:
            self._making = self._tasks.start(self._make(), "make the next ledger")
            self._making.add_done_callback(self._made)

    def _made(self, task: asyncio.Task[None]) -> None:
        self._making = None

    async def _make(self) -> None:
        name = self._owner.node.name
        try:
            handle = await self._new_ledger()
        except BookKeeperError as error:
            _log.info("no ledger was made in advance for stream %s: %s", name, in_words(error))
            return
        try:
            await self._owner.step(lambda chain: _allocated(chain, handle.id))
        except StreamUnavailableError:
            self._ready = handle  # perhaps named, perhaps not; the start of the segment settles it
            return
        except StreamError as error:
            await handle.abandon()
            await self._delete_unless_named(handle.id, error)
            return
        except BaseException:
            await handle.abandon()
            raise
        self._ready = handle
        await self.sweep()

    async def _delete_unless_named(self, ledger: int, error: StreamError) -> None:
        """Delete a ledger whose step was refused. If another owner has the node the step may have been done before,
        its reply lost: then the node names the ledger, perhaps as a segment that the other owner recovers. While that
        cannot be seen it stays; a sweep finds it by its tags."""
        if isinstance(error, OwnershipLostError):
            try:
                chain, _ = await self._owner.node.recent.read()
            except (BookKeeperError, StreamError) as unread:
                _log.info("ledger %s is left to a sweep, because the node cannot be read: %s", ledger, unread)
                return
            if ledger in chain.recent_ledgers:
                return
        await self._delete(ledger)

    async def _delete(self, *ledgers: int) -> tuple[int, ...]:
        """Delete ledgers that nothing needs; returns those that are gone. The others are found by their tags."""
        return await delete_ledgers(self._client, list(ledgers), self._owner.node.name)

    async def obtain(self) -> WriteHandle:
        """The ledger for the segment that is started now; taken() or returned() must follow.

        Raises:
            StreamNotReadyError: somebody else has obtained one and not said what became of it.
            StreamUnavailableError, StreamConfigError: no ledger could be made.
        """
        if self._handed_over:
            raise StreamNotReadyError("another segment of this stream is being started")
        self._handed_over = True
        try:
            if self._making is not None:
                await asyncio.wait([self._making])
            if self._ready is None:
                name = self._owner.node.name
                try:
                    self._ready = await self._new_ledger()
                except BookKeeperError as error:
                    raise stream_error(error, f"making a ledger for stream {name}", name) from error
            return self._ready
        except BaseException:
            self._handed_over = False
            raise

    def mark_used(self) -> None:
        """The ledger is in a segment."""
        self._ready, self._handed_over = None, False

    def give_back(self) -> None:
        """The segment was not started, as far as is known; the next one gets the same ledger."""
        self._handed_over = False

    async def replace(self) -> None:
        """Give up what was made in advance: the next segment is to have other replication, or there is none.

        Raises: as StreamOwner.step.
        """
        if self._making is not None:
            await asyncio.wait([self._making])
        handle, self._ready = self._ready, None
        if handle is None:
            return
        await handle.abandon()
        try:
            await self._owner.step(lambda chain: _discarded(chain, handle.id))
        except OwnershipLostError as error:
            await self._delete_unless_named(handle.id, error)
            raise
        if handle.id not in self._owner.chain.recent_ledgers:
            await self._delete(handle.id)
        else:
            await self.sweep()

    async def sweep(self) -> None:
        """Delete the ledgers that the node lists for deletion. Failures are left to the next one who sweeps."""
        waiting = [each.ledger_id for each in self._owner.chain.removing]
        if waiting and (gone := await self._delete(*waiting)):
            try:
                await self._owner.step(lambda chain: chain.forget(gone))
            except StreamError as error:
                _log.info("ledgers that are gone are still listed: %s", error)

    async def close(self, *, discard: bool) -> None:
        """End. With ``discard`` what was made in advance is deleted; otherwise the next owner does it."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait([self._making])
        if discard:
            try:
                await self.replace()
            except StreamError as error:
                _log.info("the ledger made in advance is left to the next owner: %s", error)
        elif self._ready is not None:
            handle, self._ready = self._ready, None
            await handle.abandon()


def _allocated(chain: StreamChain, ledger: int) -> StreamChain:
    """The node with this ledger made in advance. If an earlier attempt has done it, that is no change."""
    return chain if ledger in chain.recent_ledgers else chain.discard_next().allocate(ledger)


def _discarded(chain: StreamChain, ledger: int) -> StreamChain:
    return chain.discard_next() if chain.next_ledger == ledger else chain
