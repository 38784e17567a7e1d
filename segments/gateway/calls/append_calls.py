"""The service Append: batches, streams of batches, producers, outcomes.

A streaming append goes on after a batch that was refused for its own sake. When the stream itself cannot be had here
any more, the batches that were read are answered, and the call ends with the reason; what the client has sent since was
not applied. A message that is refused unread ends the call, too: of what was not answered it is the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Final

from bookkeeper import codec
from bookkeeper.outcome import Outcome
from bookkeeper.seams import Clock
from segments import errors
from segments.errors import StreamError
from segments.gateway.calls.served_streams import ServedStream, ServedStreams
from segments.gateway.config import GrpcLimits
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.call_guard import Behaviour
from segments.gateway.guard.grpc_call import WAIT_S, GrpcCall
from segments.protocol import segments_pb2 as pb
from segments.protocol.credits import SendWindow
from segments.protocol.messages import get_position, get_producer, get_record, put_result
from segments.protocol.refusals import OUTCOMES, as_stream_error, put_error
from segments.record import AppendResult, ProducerRef, Record
from segments.write import Producer, Writer
from segments.write.producer import GapRule

_FINAL_ERRORS: Final = (
    errors.GatewayRedirectError,
    errors.StreamNotReadyError,
    errors.StreamNotFoundError,
    errors.StreamSealedError,
    errors.StreamClosedError,
    errors.OwnershipLostError,
    errors.AppendOutcomeUnknownError,
    errors.StreamUnavailableError,
    errors.StreamAccessError,
    errors.UnsupportedStreamFormatError,
    errors.StreamInvariantError,
)
"""Errors after which a streaming append ends: the next batch would not fare better."""


class AppendCalls:
    """The behaviours of the service."""

    def __init__(self, table: ServedStreams, limits: GrpcLimits, metrics: GatewayMetrics, clock: Clock) -> None:
        self._table = table
        self._limits = limits
        self._metrics = metrics
        self._clock = clock

    @property
    def behaviours(self) -> Mapping[str, Behaviour]:
        """By service and name."""
        return {
            "Append.Append": self.append,
            "Append.AppendStream": self.append_stream,
            "Append.OpenProducer": self.open_producer,
            "Append.GetOutcome": self.get_outcome,
        }

    async def append(self, request: pb.AppendRequest, call: GrpcCall) -> pb.AppendReply:
        """Append one batch. Raises: as ``Writer.append_batch``, and GatewayRedirectError."""
        served = await self._table.get(request.stream)
        batch = _Batch(request)
        if (slower := call.charge(len(batch.records), batch.size)) is not None:
            raise slower
        began = self._clock.monotonic()
        try:
            writer = await served.ownership.writer()
            future = await self.submit(served, writer, request, batch, call, wait=False)
            result = await asyncio.shield(future)
        except StreamError as error:
            raise elsewhere(error, request.stream) from error
        self.count(batch, result, began)
        return pb.AppendReply(result=put_result(result))

    async def submit(
        self,
        served: ServedStream,
        writer: Writer,
        request: pb.AppendRequest,
        batch: _Batch,
        call: GrpcCall,
        *,
        wait: bool,
    ) -> asyncio.Future[AppendResult]:
        """Give a batch to the stream's writer. ``wait``: until there is room; else StreamOverloadedError."""
        while True:
            while wait and not writer.has_room and not writer.closed:
                await writer.room()
            try:
                return await self._submit_now(served, writer, request, batch, call)
            except errors.StreamOverloadedError:
                if not wait:
                    raise  # with it somebody was faster while the producer was opened
            except (ValueError, OverflowError) as error:  # a record cannot be: a header is too long, say
                raise errors.StreamConfigError(str(error)) from error

    async def _submit_now(
        self, served: ServedStream, writer: Writer, request: pb.AppendRequest, batch: _Batch, call: GrpcCall
    ) -> asyncio.Future[AppendResult]:
        if request.HasField("expected_tail"):
            return await self._submit_if(writer, request, batch)
        if not request.HasField("producer"):
            return writer.append_batch_nowait(batch.records)
        ref = get_producer(request.producer)
        await served.require_producer(writer, ref.name, call)
        producer = served.known_producer(writer, ref, monotonic=request.monotonic)
        if producer is None:
            producer = await served.producer(writer, ref, monotonic=request.monotonic)
        return producer.append_batch_nowait(batch.records, seq=ref.sequence)

    async def _submit_if(
        self, writer: Writer, request: pb.AppendRequest, batch: _Batch
    ) -> asyncio.Future[AppendResult]:
        if len(batch.records) != 1 or request.HasField("producer"):
            raise errors.StreamConfigError("an append with expected_tail has one record, and no producer")
        tail = get_position(request.expected_tail)
        result = await writer.append_if(batch.records[0], tail=tail if tail.segment else None)
        done: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        done.set_result(result)
        return done

    def count(self, batch: _Batch, result: AppendResult, began: float) -> None:
        """Count a batch that is durable."""
        metrics = self._metrics
        metrics.append_seconds.observe(self._clock.monotonic() - began)
        if result.duplicate:
            metrics.duplicates.add()
        else:
            metrics.appended_records.add(len(batch.records))
            metrics.appended_bytes.add(batch.size)

    async def append_stream(
        self, requests: AsyncIterator[pb.AppendRequest], call: GrpcCall
    ) -> AsyncIterator[pb.AppendReply]:
        """Append batches as they come, and answer in their order."""
        session = _AppendSession(self, self._table, self._limits, call, self._clock)
        session.start(requests)
        self._metrics.append_streams.value += 1
        try:
            yield pb.AppendReply(window=pb.Window(records=self._limits.window_records, bytes=self._limits.window_bytes))
            async for reply in session.replies():
                yield reply
        finally:
            self._metrics.append_streams.value -= 1
            await session.close()

    async def open_producer(self, request: pb.OpenProducerRequest, call: GrpcCall) -> pb.ProducerState:
        """Open a producer in a new epoch. Raises: as ``Producer.open``, and GatewayRedirectError. StreamAccessError: it
        is somebody else's."""
        served = await self._table.get(request.stream)
        try:
            writer = await served.ownership.writer()
            epoch = request.epoch if request.HasField("epoch") else None
            gap: GapRule = "monotonic" if request.monotonic else "strict"
            await served.require_producer(writer, request.producer, call)
            producer = await Producer.open(writer, request.producer, epoch=epoch, gap=gap)
        except StreamError as error:
            raise elsewhere(error, request.stream) from error
        served.keep(writer, producer, monotonic=request.monotonic)
        return pb.ProducerState(
            epoch=producer.epoch, last_sequence=producer.last_seq, maybe_forgotten=producer.maybe_forgotten
        )

    async def get_outcome(self, request: pb.GetOutcomeRequest, call: GrpcCall) -> pb.OutcomeReply:
        """What became of a producer's record. Raises: as ``Producer.outcome``, and GatewayRedirectError."""
        served = await self._table.get(request.stream)
        try:
            writer = await served.ownership.certain_writer()
            ref = ProducerRef(request.producer, 0, request.sequence)
            producer = served.known_producer(writer, ref, monotonic=False)
            if producer is None:
                doubtful = writer.state.producers.is_doubtful(request.producer)
                await writer.ensure_current()
                return pb.OutcomeReply(outcome=pb.OUTCOME_UNKNOWN if doubtful else pb.OUTCOME_NOT_APPLIED)
            outcome, result = await producer.outcome(request.sequence)
        except StreamError as error:
            raise elsewhere(error, request.stream) from error
        return pb.OutcomeReply(outcome=OUTCOMES[outcome], result=None if result is None else put_result(result))


class _Batch:
    """The records of a request."""

    __slots__ = ("records", "size")

    def __init__(self, request: pb.AppendRequest) -> None:
        """Raises StreamConfigError, EntryCorruptError: the request cannot be."""
        self.records: list[Record | bytes]
        if request.records and request.values:
            raise errors.StreamConfigError("a batch has records or values, never both")
        values = list(request.values)
        if values:
            self.records = values  # type: ignore[assignment]
        else:
            self.records = [get_record(each) for each in request.records]
            values = [each.value for each in request.records]
        if not values:
            raise errors.StreamConfigError("a batch needs at least one record")
        self.size = sum(map(len, values))
        if request.HasField("crc32c") and codec.crc32c(b"".join(values), 0) != request.crc32c:
            raise errors.EntryCorruptError(
                "the batch does not have the checksum that came with it: it was damaged on its way, and not appended"
            )


class _AppendSession:
    """One streaming append: batches that were read and are not answered, in order.

    All of them go to one writer. After a fail-over a batch must not overtake one that failed.
    """

    def __init__(
        self, calls: AppendCalls, table: ServedStreams, limits: GrpcLimits, call: GrpcCall, clock: Clock
    ) -> None:
        self._calls = calls
        self._table = table
        self._call = call
        call.on_end = self._end
        self._clock = clock
        self._window = SendWindow(limits.window_records, limits.window_bytes)
        self._room = asyncio.Event()
        self._name = ""
        self._writer: Writer | None = None
        self._reading: asyncio.Task[None] | None = None
        self._submitting = False
        self._stopped = False
        self._ended: StreamError | None = None
        """Why the call has to end, whatever its last batches met."""
        self._unread: StreamError | None = None
        """Why a request was not parsed."""
        self._queue: asyncio.Queue[tuple[_Batch | None, asyncio.Future[AppendResult] | StreamError, float] | None] = (
            asyncio.Queue()
        )

    def start(self, requests: AsyncIterator[pb.AppendRequest]) -> None:
        """Begin to read."""
        self._reading = asyncio.get_running_loop().create_task(self._read(requests), name="streaming append")

    async def close(self) -> None:
        """Read nothing more. What was submitted goes on. Idempotent."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read(self, requests: AsyncIterator[pb.AppendRequest]) -> None:
        """Submit the requests as they come, as many as the window allows."""
        try:
            async for request in requests:
                if self._stopped:
                    break
                self._submitting = True
                if not await self._take(request):
                    break
                self._submitting = False
        except Exception as error:  # a request that was not even parsed; nothing after it is read
            self._unread = as_stream_error(error)
        finally:
            self._queue.put_nowait(None)

    async def _take(self, request: pb.AppendRequest) -> bool:
        """Submit one request. False: the call ends with it."""
        began = self._clock.monotonic()
        try:
            served = await self._served(request)
            batch = _Batch(request)
            await self._has_room(len(batch.records), batch.size)
            await self._in_time(batch)
            writer = await self._pinned(served)
            future = await self._calls.submit(served, writer, request, batch, self._call, wait=True)
        except Exception as error:  # every request is answered, whatever happens
            refusal = elsewhere(as_stream_error(error), self._name)
            await self._has_room(1, 0)  # a client that does not read its refusals is not read, either
            self._window.sent(1, 0)
            self._queue.put_nowait((None, refusal, began))
            return not isinstance(refusal, _FINAL_ERRORS)
        self._window.sent(len(batch.records), batch.size)
        self._queue.put_nowait((batch, future, began))
        return not self._stopped

    async def _in_time(self, batch: _Batch) -> None:
        """Wait until the caller's own rates admit a batch. Meanwhile nothing more of the call is received."""
        while (slower := self._call.charge(len(batch.records), batch.size)) is not None:
            if self._stopped:
                raise slower
            await asyncio.sleep(min(slower.after_s or WAIT_S, WAIT_S))

    async def _has_room(self, records: int, size: int) -> None:
        """Wait until so much more may be unanswered."""
        while not self._window.has_room(records, size):
            self._room.clear()
            await self._room.wait()

    async def _pinned(self, served: ServedStream) -> Writer:
        writer = await served.ownership.writer()
        if self._writer is None:
            self._writer = writer
        if writer is not self._writer or self._stopped:
            raise errors.StreamNotReadyError(
                f"stream {self._name} was taken over meanwhile: append in another call", stream=self._name
            )
        return writer

    async def _served(self, request: pb.AppendRequest) -> ServedStream:
        if not self._name:
            self._name = request.stream
        elif request.stream and request.stream != self._name:
            raise errors.StreamConfigError(
                f"this call appends to stream {self._name}: append to {request.stream} in another call"
            )
        return await self._table.get(self._name)

    async def replies(self) -> AsyncIterator[pb.AppendReply]:
        """The answers, in order. Raises what ended the call, after the last of them."""
        end: StreamError | None = None
        while (item := await self._queue.get()) is not None:
            batch, answer, began = item
            reply, refusal = await self._reply(batch, answer, began)
            self._call.release_oldest()
            self._window.answered(*((1, 0) if batch is None else (len(batch.records), batch.size)))
            self._room.set()
            if end is None and isinstance(refusal, _FINAL_ERRORS):
                end = refusal
                self._stop()
            yield reply
        end = self._ended or end or self._unread
        if end is not None:
            raise for_the_rest(end)

    def _end(self, error: StreamError) -> None:
        """Answer what was submitted, and then end the call with this error."""
        self._ended = error
        self._stop()

    def _stop(self) -> None:
        """Submit nothing more; a request that is being submitted is answered."""
        self._stopped = True
        if not self._submitting and self._reading is not None:
            self._reading.cancel()

    async def _reply(
        self, batch: _Batch | None, answer: asyncio.Future[AppendResult] | StreamError, began: float
    ) -> tuple[pb.AppendReply, StreamError | None]:
        try:
            if isinstance(answer, StreamError):
                raise answer
            result = await asyncio.shield(answer)
        except Exception as error:  # also a bug is told to whoever waits for this batch
            refusal = elsewhere(as_stream_error(error), self._name)
            return pb.AppendReply(error=put_error(refusal)), refusal
        if batch is not None:
            self._calls.count(batch, result, began)
        return pb.AppendReply(result=put_result(result)), None


def elsewhere(error: StreamError, stream: str) -> StreamError:
    """The error as a client of a gateway needs it: a writer that was lost is the gateway's own affair."""
    if not isinstance(error, errors.OwnershipLostError | errors.StreamClosedError):
        return error
    if error.outcome is Outcome.REJECTED:
        return errors.StreamNotReadyError(
            f"stream {stream} is being taken over, and nothing was appended: try again", stream=stream
        )
    return errors.AppendOutcomeUnknownError(
        f"stream {stream} was taken over meanwhile, and the records may be in it; a producer sends them again, and "
        "they are there once",
        stream=stream,
    )


def for_the_rest(end: StreamError) -> StreamError:
    """The status of a call that ended with ``end``: what it had not answered was not appended."""
    if end.outcome is Outcome.REJECTED:
        return end
    return errors.StreamNotReadyError(
        f"the call has ended, and what it has not answered was not appended: {end}", stream=end.stream
    )
