"""One gateway's ownership of one stream: it acquires the stream's lease, claims its node, and releases both.

The lease says which gateway answers for a stream, so that calls go to one of them. It protects no record: what was
appended is protected by the claim of the stream's node, which fences every earlier owner. So the claim need not wait
until the lease is held for certain, and appends go on while the metadata store is away, as long as nobody claims.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.leases.lease import Lease, LeaseEntry, NamespaceOwnedError
from bookkeeper.metrics import Counter
from bookkeeper.seams import Clock
from segments.errors import (
    GatewayRedirectError,
    OwnershipLostError,
    StreamError,
    StreamNotReadyError,
    StreamOwnedError,
)
from segments.gateway.config import GrpcGatewayConfig
from segments.gateway.ownership.ownership_state import OwnershipState, OwnershipStep
from segments.protocol.refusals import as_stream_error

logger = logging.getLogger(__name__)


class OwnedWriter(Protocol):
    """What ownership needs of a writer."""

    lost: asyncio.Event

    @property
    def pending(self) -> int: ...
    async def close(self, *, complete: bool = True) -> None: ...
    async def abort(self) -> None: ...


T = TypeVar("T")
W = TypeVar("W", bound=OwnedWriter)


@dataclass(slots=True)
class OwnershipCounts:
    """What a gateway's ownerships count together."""

    taken: Counter = field(default_factory=Counter)
    lost: Counter = field(default_factory=Counter)
    redirected: Counter = field(default_factory=Counter)


class StreamOwnership(Generic[W]):
    """One gateway's view of who owns one stream, and the writer while it is this gateway."""

    def __init__(
        self,
        name: str,
        make_lease: Callable[[], Lease],
        open_writer: Callable[[], Awaitable[W]],
        clock: Clock,
        config: GrpcGatewayConfig,
        tasks: Tasks,
        counts: OwnershipCounts | None = None,
    ) -> None:
        """``open_writer`` claims the stream. It must not be called twice at a time."""
        self.name = name
        self._make_lease = make_lease
        self._open_writer = open_writer
        self._clock = clock
        self._config = config
        self._tasks = tasks
        self._counts = counts or OwnershipCounts()
        self._state = OwnershipState(config.lease_s, config.probation_s)
        self._lease: Lease | None = None
        self._writer: W | None = None
        self._failure: StreamError | None = None
        """Why the last attempt to take the stream failed."""
        self._attempt = 0
        self._changed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._alone = asyncio.Lock()
        self._used = clock.monotonic()

    @property
    def is_here(self) -> bool:
        """Whether this gateway owns the stream."""
        return self._state.is_here

    @property
    def is_certain(self) -> bool:
        """Whether this gateway certainly holds the lease, so that no other gateway can have appended meanwhile."""
        return self._state.is_here and self._lease is not None and self._lease.is_held

    @property
    def idle_s(self) -> float:
        """Seconds since the writer was last asked for, or had something pending."""
        if self._writer is not None and self._writer.pending:
            self._used = self._clock.monotonic()
        return self._clock.monotonic() - self._used

    async def writer(self) -> W:
        """The stream's writer. Takes the stream if nobody owns it, and waits for that.

        Raises:
            GatewayRedirectError: another gateway owns the stream; ``owner`` is its address.
            StreamNotReadyError: the stream is not taken yet, or must not be taken now.
            StreamNotFoundError, StreamSealedError: it cannot be taken.
        """
        began = self._clock.monotonic()
        attempt = self._attempt
        while True:
            now = self._used = self._clock.monotonic()
            answer = self._state.answer(now)
            match answer.step:
                case OwnershipStep.SERVE:
                    assert self._writer is not None
                    return self._writer
                case OwnershipStep.REDIRECT:
                    self._counts.redirected.add()
                    raise GatewayRedirectError(
                        f"the gateway at {answer.address} owns stream {self.name}: repeat the call there",
                        stream=self.name,
                        owner=answer.address,
                    )
                case OwnershipStep.REFUSE:
                    raise StreamNotReadyError(
                        f"stream {self.name} cannot be had now: {answer.reason}", stream=self.name
                    )
                case OwnershipStep.TAKE:
                    if self._failure is not None and self._attempt > attempt:
                        raise self._failure
                    self._begin_acquiring()
            left = began + self._config.wait_s - self._clock.monotonic()
            try:
                async with asyncio.timeout(max(left, 0)):
                    await self._changed.wait()
            except TimeoutError:
                raise StreamNotReadyError(
                    f"stream {self.name} was not taken over within {self._config.wait_s:g} s; its former owner, or the "
                    "metadata store, does not answer: try again",
                    stream=self.name,
                ) from None

    async def certain_writer(self) -> W:
        """The same, once this gateway certainly holds the lease: for answers about what was appended."""
        writer = await self.writer()
        if not self.is_certain and self._lease is not None:
            try:
                async with asyncio.timeout(self._config.wait_s):
                    await self._lease.wait_until_held()
            except (TimeoutError, BookKeeperError):
                pass
        if not self.is_certain:
            raise StreamNotReadyError(f"another gateway may own stream {self.name}: try again", stream=self.name)
        return writer

    async def exclusively(self, work: Callable[[], Awaitable[T]]) -> T:
        """Close the writer, with what is pending, do ``work``, and open a writer again. The lease stays, and who asks
        for the writer meanwhile waits.

        Raises: as :meth:`writer`, and what ``work`` raises. OwnershipLostError, StreamOwnedError: a program has the
        stream, which is left alone for a while.
        """
        async with self._alone:
            writer = await self.writer()
            lease, running = self._lease, self._running
            assert lease is not None and running is not None
            self._state.taking()
            self._changed.clear()
            self._writer = self._running = None
            running.cancel()
            await asyncio.wait([running])
            after = self._keep
            try:
                await writer.close()
                return await work()
            except (OwnershipLostError, StreamOwnedError):
                after = self._leave_alone
                raise
            finally:
                if self._lease is lease:
                    self._running = self._tasks.start(after(lease), f"own stream {self.name}")

    async def release(self) -> None:
        """Close the writer and release the lease. A later call takes the stream again."""
        await self._leave(end=False)

    async def end(self) -> None:
        """The same, for good. Idempotent."""
        await self._leave(end=True)

    # -- taking and losing it ------------------------------------------------------------------------------

    def _begin_acquiring(self) -> None:
        self._attempt += 1
        self._failure = None
        self._state.taking()
        self._changed.clear()
        self._running = self._tasks.start(self._acquire(), f"own stream {self.name}")

    def _notify(self) -> None:
        """Wake the waiting calls."""
        self._changed.set()

    async def _acquire(self) -> None:
        """Take the stream, and keep it until it is lost."""
        lease = self._make_lease()
        try:
            await lease.acquire(LeaseEntry.IF_VACANT)
        except NamespaceOwnedError as error:
            self._state.elsewhere(error.address, self._clock.monotonic())
            self._notify()
            await lease.release()
        except (StreamError, BookKeeperError) as error:
            await self._failed(lease, error)
        except asyncio.CancelledError:
            await lease.release()
            raise
        else:
            self._lease = lease
            await self._keep(lease)

    async def _failed(self, lease: Lease, error: StreamError | BookKeeperError) -> None:
        logger.warning("stream %s could not be taken: %s", self.name, in_words(error))
        self._failure = as_stream_error(error)
        self._lease = None
        await lease.release()
        self._state.given_up()
        self._notify()

    async def _keep(self, lease: Lease) -> None:
        """Open a writer, and have it until it is lost."""
        try:
            writer = await self._open_writer()
        except (StreamError, BookKeeperError) as error:
            await self._failed(lease, error)
            return
        except asyncio.CancelledError:
            await lease.release()
            raise
        self._writer = writer
        self._counts.taken.add()
        self._state.taken()
        self._notify()
        logger.info("this gateway owns stream %s", self.name)
        await self._until_lost(lease, writer)

    async def _until_lost(self, lease: Lease, writer: W) -> None:
        lease_lost = asyncio.ensure_future(lease.lost())
        writer_lost = asyncio.ensure_future(writer.lost.wait())
        try:
            await asyncio.wait([lease_lost, writer_lost], return_when=asyncio.FIRST_COMPLETED)
        finally:
            lease_lost.cancel()
            writer_lost.cancel()
        self._state.taking()
        self._changed.clear()
        self._writer = None
        with suppress(StreamError):
            await writer.abort()
        await self._leave_alone(lease)

    async def _leave_alone(self, lease: Lease) -> None:
        """The stream was taken: find out by whom, and leave it alone."""
        self._counts.lost.add()
        self._lease = None
        lease_lost = asyncio.ensure_future(lease.lost())
        # Another gateway takes the lease first: then it is seen as soon as the lease is renewed.
        await asyncio.wait([lease_lost], timeout=self._config.lease_s)
        taken_by_gateway = lease_lost.done()
        lease_lost.cancel()
        now = self._clock.monotonic()
        if taken_by_gateway and lease.other:
            logger.warning("the gateway at %s took stream %s over", lease.other, self.name)
            self._state.elsewhere(lease.other, now)
        elif taken_by_gateway:
            self._state.given_up()
        else:
            logger.warning("stream %s was taken over by a program, or its writer failed", self.name)
            await lease.release()
            self._state.overtaken(now)
        self._notify()

    async def _leave(self, *, end: bool) -> None:
        if end:
            self._state.end()
        elif not self._state.is_here:
            return
        else:
            self._state.taking()
            self._changed.clear()
        running, self._running = self._running, None
        writer, self._writer = self._writer, None
        lease, self._lease = self._lease, None
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
        if writer is not None:
            try:
                await writer.close()
            except StreamError as error:
                logger.warning("the writer of stream %s did not end in good order: %s", self.name, in_words(error))
        if lease is not None:
            await lease.release()
        if not end:
            self._state.given_up()
        self._notify()
