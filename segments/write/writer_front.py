"""What a writer and a producer are to an application, wherever their stream is: they wait for room, within a time, and
``async with`` closes them."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

from segments.arguments import check_timeout
from segments.closing import Closing
from segments.entries.columns import RecordColumns
from segments.errors import AppendOutcomeUnknownError, StreamError, StreamOverloadedError
from segments.position import Position
from segments.record import AppendResult, Record

if TYPE_CHECKING:
    from bookkeeper.outcome import Outcome
    from segments.chain import StreamSegment


class AppendFront(Closing):
    """What appends to one stream. ``async with`` closes it; an error of the body is not hidden by one of closing."""

    _when_late: ClassVar[str] = ""
    """What a caller can do whose record was late, for messages."""

    def __init__(self, stream: str) -> None:
        self._stream = stream

    @abstractmethod
    async def _in_turn(self, submit: Callable[[], asyncio.Future[AppendResult]]) -> asyncio.Future[AppendResult]:
        """Submit when there is room. Raises: what ``submit`` raises."""

    @abstractmethod
    async def room(self) -> None:
        """Wait until append_nowait() has room again."""

    @abstractmethod
    async def flush(self) -> Position | None:
        """Wait until everything that was appended so far is settled; return the position of the last durable record.

        Raises:
            OwnershipLostError, StreamClosedError: what ended the writer.
        """

    async def _within(self, timeout: float, submit: Callable[[], asyncio.Future[AppendResult]]) -> AppendResult:
        """Submit, and wait until it is durable, for so many seconds together."""
        check_timeout(timeout)
        limit = asyncio.timeout(timeout)
        future: asyncio.Future[AppendResult] | None = None
        try:
            async with limit:
                future = await self._in_turn(submit)
                return await asyncio.shield(future)
        except TimeoutError as error:
            if not limit.expired():
                raise
            if future is None:
                raise StreamOverloadedError(
                    f"stream {self._stream} had no room within {timeout} s; nothing was appended", stream=self._stream
                ) from error
            future.add_done_callback(_mark_read)
            raise AppendOutcomeUnknownError(
                f"the record was not durable in stream {self._stream} within {timeout} s; it may be later"
                f"{self._when_late}",
                stream=self._stream,
            ) from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except StreamError:
            if error is None:
                raise


class WriterFront(AppendFront):
    """A writer: ``async with stream.writer() as writer``. It belongs to the loop that made it.

    In this process's cluster it owns the stream, until another one takes it over. Through a gateway many clients append
    side by side; who wants to be alone opens a producer.
    """

    def __init__(self, stream: str, epoch: int = 0) -> None:
        super().__init__(stream)
        self.name = stream
        """Of the stream."""
        self.epoch = epoch
        """Counts the owners of the stream; later ones have higher epochs. 0 behind gateways, which tell none."""
        self.lost = asyncio.Event()
        """Set when another writer has taken the stream over, or this one has failed for good."""

    @property
    @abstractmethod
    def tail(self) -> Position | None:
        """The position of the last durable record; behind gateways, of the last that this writer appended. None: there
        is none."""

    async def append(
        self, record: Record | bytes, *, txid: int | None = None, timeout: float | None = None
    ) -> AppendResult:
        """Append a record; return where it stands once it is durable. Waits while too many bytes are pending.

        ``timeout`` is in seconds, also for the room. Cancelling the caller does not withdraw the record.

        Raises:
            RecordTooLargeError, TxidOrderError, StreamClosedError: nothing was appended.
            StreamOverloadedError: there was no room within ``timeout``; nothing was appended.
            OwnershipLostError: another writer has the stream; ``outcome`` says what became of the record.
            AppendOutcomeUnknownError: it was not durable within ``timeout``, or a gateway did not answer; it may be
            later.
        """
        if timeout is not None:
            return await self._within(timeout, partial(self.append_nowait, record, txid=txid))
        try:
            future = self.append_nowait(record, txid=txid)
        except StreamOverloadedError:
            pass
        else:
            return await future
        return await (await self._in_turn(partial(self.append_nowait, record, txid=txid)))

    @abstractmethod
    def append_nowait(self, record: Record | bytes, *, txid: int | None = None) -> asyncio.Future[AppendResult]:
        """Append without waiting: the future resolves like append(). Futures resolve in the order of the calls.

        Raises:
            StreamOverloadedError: too many bytes are pending; nothing was appended. Await room() first.
            RecordTooLargeError, TxidOrderError, StreamClosedError, OwnershipLostError: nothing was appended.
        """

    async def append_batch(
        self, records: Iterable[Record | bytes] | RecordColumns, *, atomic: bool = True
    ) -> AppendResult:
        """Append records that stand one after the other; return the positions of the first and the last.

        ``atomic``: all of them are in one entry, so that readers see all or none. Otherwise a large batch is cut into
        several entries, and a failure may leave its first part in the stream. Through a gateway a batch is one message,
        and always atomic.

        Raises:
            RecordTooLargeError: with ``atomic``, they are more than limits.record_bytes; or more records than a gateway
            takes. Nothing was appended. And as append().
        """
        batch = records if isinstance(records, list | RecordColumns) else list(records)
        try:
            future = self.append_batch_nowait(batch, atomic=atomic)
        except StreamOverloadedError:
            pass
        else:
            return await future
        return await (await self._in_turn(partial(self.append_batch_nowait, batch, atomic=atomic)))

    @abstractmethod
    def append_batch_nowait(
        self, records: Iterable[Record | bytes] | RecordColumns, *, atomic: bool = True
    ) -> asyncio.Future[AppendResult]:
        """The same without waiting for room. Raises: as append_nowait."""

    @abstractmethod
    async def append_if(
        self, record: Record | bytes, *, tail: Position | None, txid: int | None = None
    ) -> AppendResult:
        """Append a record if ``tail`` is the position of the stream's last one (None: if it has none).

        Raises:
            TailMovedError: it is not, or other appends of this writer are under way. Nothing was appended; the error's
            ``position`` is the last record's. And as append().
        """

    @abstractmethod
    async def commit(self) -> Position | None:
        """Flush, and let readers see it at once, also where the stream's settings leave that to the next entry. A
        gateway shows records by the stream's settings. Raises: as flush."""

    @abstractmethod
    async def roll(self) -> StreamSegment:
        """End the open segment and start the next one. Returns the one that ended.

        Raises:
            SegmentEmptyError: it has no records.
            StreamNotReadyError: bookies or metadata are away, and the segment goes on; or its bookies failed before a
                record was durable, and the stream went on in another one. And as flush, through a gateway.
        """

    @abstractmethod
    async def seal(self) -> Position | None:
        """Flush, complete the segment, and end the stream for good: nothing can be appended any more. Returns the
        position of its last record. Raises: as close; StreamNotReadyError: the stream is not sealed."""

    @abstractmethod
    async def close(self, *, complete: bool = True) -> None:
        """Flush, complete the segment, and leave the stream to the next writer. Idempotent.

        Without ``complete`` the segment stays open, and the next writer recovers it. Through a gateway the stream stays
        with the gateway in any case.

        Raises:
            OwnershipLostError: another writer has the stream. StreamMetadataError: the metadata store is away; the next
            writer completes the segment. Everything that was acknowledged is durable in any case.
        """

    @abstractmethod
    async def abort(self) -> None:
        """End at once, without flushing: what is pending fails with an unknown outcome, and the next writer recovers
        the segment. A close() that is under way ends, too. Idempotent."""


class ProducerFront(AppendFront):
    """An idempotent producer: ``async with stream.producer(name) as producer``. A record that is appended again with
    its number is not appended a second time."""

    _when_late = ": append it again with its number, or ask outcome()"

    def __init__(self, stream: str, name: str, epoch: int) -> None:
        super().__init__(stream)
        self.name = name
        self.epoch = epoch
        """Of the name; opening it again gives a higher one, and fences this producer."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of stream {self._stream}, epoch {self.epoch}, next {self.next_seq}>"

    @property
    @abstractmethod
    def last_seq(self) -> int | None:
        """The sequence number of its last durable record; None if none is known. A producer that starts again goes on
        behind it."""

    @property
    @abstractmethod
    def next_seq(self) -> int:
        """The number that the next append without ``seq`` gets."""

    async def append(
        self, record: Record | bytes, *, seq: int | None = None, txid: int | None = None, timeout: float | None = None
    ) -> AppendResult:
        """Append a record, once; return where it stands. ``seq`` is its number, by default the next one.

        A record that was appended before is not appended again: the result is where it stands, with ``duplicate``.

        Raises:
            ProducerFencedError: the name was opened again. SequenceGapError: strict, and a record before is missing.
            SequenceTooOldError: nobody remembers where so old a record stands, or whether there is one; ``outcome``
            tells which. StreamConfigError: ``seq`` is no whole number, negative, or above
            SEQUENCE_MAX. And as ``Writer.append``.
        """
        submit = partial(self.append_nowait, record, seq=seq, txid=txid)
        if timeout is not None:
            return await self._within(timeout, submit)
        return await (await self._in_turn(submit))

    @abstractmethod
    def append_nowait(
        self, record: Record | bytes, *, seq: int | None = None, txid: int | None = None
    ) -> asyncio.Future[AppendResult]:
        """Append without waiting; the future resolves like append(). Raises: as append, and StreamOverloadedError."""

    async def append_batch(self, records: Iterable[Record | bytes], *, seq: int | None = None) -> AppendResult:
        """Append records, all in one entry, with consecutive numbers from ``seq`` on. Raises: as append."""
        return await (await self._in_turn(partial(self.append_batch_nowait, list(records), seq=seq)))

    @abstractmethod
    def append_batch_nowait(
        self, records: Iterable[Record | bytes], *, seq: int | None = None
    ) -> asyncio.Future[AppendResult]:
        """The same without waiting. Raises: as append_nowait."""

    @abstractmethod
    async def outcome(self, seq: int) -> tuple[Outcome, AppendResult | None]:
        """What became of the record with this number, also if it was sent by a former owner that has died. Waits for a
        record that is under way. There is no result for an appended record whose position is not remembered.

        Raises:
            ProducerFencedError: the name was opened again. OwnershipLostError: another writer has the stream, so that
            this one cannot tell. StreamMetadataError: whether one has is not known now. StreamConfigError: no record
            can have this number.
        """


def _mark_read(future: asyncio.Future[AppendResult]) -> None:
    if not future.cancelled():
        future.exception()  # marks it as read, so that asyncio logs nothing
