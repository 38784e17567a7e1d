"""Appends through a gateway: plain ones, and idempotent producers.

Through a gateway many clients append to one stream side by side, and none of them takes it over. Who wants to be alone
opens a producer: its epoch ends the former holder of the name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from bookkeeper.outcome import Outcome
from segments.arguments import check_sequence, check_whole
from segments.chain import StreamSegment
from segments.config import StreamLimits
from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry, encode_pieces, fits_one_entry
from segments.entries.stored_entry import decode_entry
from segments.errors import (
    ProducerFencedError,
    RecordTooLargeError,
    SequenceGapError,
    StreamClosedError,
    StreamError,
    StreamOverloadedError,
)
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_position, get_result, put_position, put_record
from segments.protocol.refusals import get_outcome
from segments.protocol.request_elements import ELEMENTS_MAX
from segments.protocol.segment_messages import get_segment
from segments.record import AppendResult, Record
from segments.remote.append_pipe import AppendPipe
from segments.remote.gateway_channels import GatewayChannels
from segments.write.appends.record_checks import checked
from segments.write.writer_front import AppendFront, ProducerFront, WriterFront

PENDING_BYTES: Final = StreamLimits().pending_bytes
"""Bytes that are appended and not answered; then ``append`` waits, and ``append_nowait`` refuses."""

_RECORD_COST: Final = 16


class RemoteAppends(AppendFront):
    """What a writer and a producer behind gateways have in common: a pipe, and what is pending in it."""

    def __init__(self, channels: GatewayChannels, stream: str, pipe: AppendPipe) -> None:
        AppendFront.__init__(self, stream)
        self.lost = asyncio.Event()
        """Set when this writer has failed for good."""
        self._channels = channels
        self._pipe = pipe
        self._tail: Position | None = None

    @property
    def pending(self) -> int:
        """Appends that are not answered."""
        return self._pipe.pending

    @property
    def pending_bytes(self) -> int:
        """Bytes that were appended and are not known to be durable."""
        return self._pipe.pending_bytes

    @property
    def closed(self) -> bool:
        """Whether nothing can be appended any more."""
        return self._pipe.failure is not None

    @property
    def has_room(self) -> bool:
        """Whether append_nowait() would take another record."""
        return self._pipe.pending_bytes < PENDING_BYTES

    @property
    def tail(self) -> Position | None:
        """The position of the last record that this writer appended; None if there is none."""
        return self._tail

    async def room(self) -> None:
        """Wait until append_nowait() has room again."""
        await self._pipe.settled(PENDING_BYTES - 1)

    async def flush(self) -> Position | None:
        """Wait until everything that was appended so far is answered; return the position of the last record.

        Raises:
            StreamError: what ended the writer.
        """
        await self._pipe.settled()
        if self._pipe.failure is not None:
            raise self._pipe.failure
        return self._tail

    async def close(self, *, complete: bool = True) -> None:
        """Wait until everything is answered. The stream stays with its gateway in any case. Idempotent."""
        await self._pipe.close()

    async def abort(self) -> None:
        """End at once: what is not answered may be in the stream, which stays with its gateway. Idempotent."""
        await self._pipe.abort(
            StreamClosedError(f"the writer of stream {self._stream} was aborted", stream=self._stream)
        )

    # -- inside ------------------------------------------------------------------------------------------

    def _request(self, records: list[Record | bytes]) -> Any:
        if not records:
            raise ValueError("a batch needs at least one record")
        self._check_elements(records)
        if all(type(record) is bytes for record in records):
            return pb.AppendRequest(stream=self._stream, values=records)  # type: ignore[arg-type]
        kept = [checked(each, None) for each in records]
        return pb.AppendRequest(
            stream=self._stream,
            records=[put_record(each if isinstance(each, Record) else Record(each)) for each in kept],
        )

    def _check_elements(self, records: list[Record | bytes]) -> None:
        """Refuse what every gateway refuses: it would end the call, and with it hold up the appends behind it."""
        found = len(records)
        if found <= ELEMENTS_MAX:
            found += sum(len(each.headers) for each in records if isinstance(each, Record))
        if found > ELEMENTS_MAX:
            raise RecordTooLargeError(
                f"a batch may have {ELEMENTS_MAX} records and headers when it is appended through a gateway, and this "
                "one has more: nothing of it was appended; append it in several batches",
                stream=self._stream,
            )

    def _send(self, request: Any, records: list[Record | bytes]) -> asyncio.Future[AppendResult]:
        size = sum(len(each.value if isinstance(each, Record) else each) + _RECORD_COST for each in records)
        future = self._pipe.submit(request, len(records), size)
        future.add_done_callback(self._answered)
        return future

    def _answered(self, future: asyncio.Future[AppendResult]) -> None:
        if future.cancelled():
            return
        if future.exception() is None:
            self._noted(future.result())
        elif self._pipe.failure is not None:
            self.lost.set()

    def _noted(self, result: AppendResult) -> AppendResult:
        if self._tail is None or result.last > self._tail:
            self._tail = result.last
        return result

    def _require_room(self) -> None:
        if not self.has_room:
            raise StreamOverloadedError(
                f"stream {self._stream} has {self.pending_bytes} bytes of appends pending; await room() before the "
                "next append_nowait",
                stream=self._stream,
            )

    async def _in_turn(self, submit: Callable[[], asyncio.Future[AppendResult]]) -> asyncio.Future[AppendResult]:
        while not self.has_room and not self.closed:
            await self.room()
        return submit()


class RemoteWriter(RemoteAppends, WriterFront):
    """A writer through gateways: it appends beside others, and takes the stream over from nobody."""

    def __init__(self, channels: GatewayChannels, stream: str, pipe: AppendPipe) -> None:
        WriterFront.__init__(self, stream)
        super().__init__(channels, stream, pipe)

    def __repr__(self) -> str:
        return f"<RemoteWriter of stream {self.name}, {self.pending} pending>"

    def append_nowait(self, record: Record | bytes, *, txid: int | None = None) -> asyncio.Future[AppendResult]:
        """Append without waiting: the future resolves like append(). Futures resolve in the order of the calls.

        Raises:
            StreamOverloadedError: too many bytes are pending; nothing was appended. StreamClosedError.
        """
        return self._submit([_with_txid(record, txid)])

    def append_batch_nowait(
        self, records: Iterable[Record | bytes] | RecordColumns, *, atomic: bool = True
    ) -> asyncio.Future[AppendResult]:
        """The same without waiting. Raises: as append_nowait."""
        return self._submit(_plain(records) if isinstance(records, RecordColumns) else list(records))

    async def append_if(
        self, record: Record | bytes, *, tail: Position | None, txid: int | None = None
    ) -> AppendResult:
        """Append a record if ``tail`` is the position of the stream's last one (None: if it has none).

        Raises:
            TailMovedError: it is not; the error's ``position`` is the last record's. And as append().
        """
        request = self._request([_with_txid(record, txid)])
        request.expected_tail.CopyFrom(pb.Position() if tail is None else put_position(tail))
        reply = await self._channels.call("Append.Append", request, stream=self.name, repeat=False)
        return self._noted(get_result(reply.result))

    async def commit(self) -> Position | None:
        """The same: a gateway answers when records are durable, and shows them by the stream's settings."""
        return await self.flush()

    async def roll(self) -> StreamSegment:
        """Wait until everything is answered, then have the gateway end the open segment. Returns the one that ended.

        Raises:
            SegmentEmptyError: it has no records. StreamNotReadyError: the segment goes on.
            StreamError: what ended the writer.
        """
        await self.flush()
        return await roll(self._channels, self.name)

    async def seal(self) -> Position | None:
        """Wait until everything is answered, end the writer, and have the gateway end the stream for good. Returns the
        position of the stream's last record.

        Raises: as flush; StreamNotReadyError: the stream is not sealed.
        """
        await self.flush()
        await self.close()
        return await seal(self._channels, self.name)

    def _submit(self, records: list[Record | bytes]) -> asyncio.Future[AppendResult]:
        self._require_room()
        return self._send(self._request(records), records)


class RemoteProducer(RemoteAppends, ProducerFront):
    """An idempotent producer through gateways."""

    def __init__(
        self,
        channels: GatewayChannels,
        stream: str,
        pipe: AppendPipe,
        name: str,
        state: Any,
        *,
        monotonic: bool,
    ) -> None:
        super().__init__(channels, stream, pipe)
        ProducerFront.__init__(self, stream, name, state.epoch)
        self.maybe_forgotten: bool = state.maybe_forgotten
        """The stream has forgotten producers before: this may have been one of them."""
        self._last_seq: int | None = state.last_sequence if state.HasField("last_sequence") else None
        self._next = 0 if self._last_seq is None else self._last_seq + 1
        self._refused: int | None = None
        """The lowest number that was refused, and is not taken: the next append has it when all others are answered."""
        self._monotonic = monotonic

    @property
    def last_seq(self) -> int | None:
        """The sequence number of its last durable record when it was opened; None if none was known."""
        return self._last_seq

    @property
    def next_seq(self) -> int:
        """The number that the next append without ``seq`` gets."""
        return self._next

    def append_nowait(
        self, record: Record | bytes, *, seq: int | None = None, txid: int | None = None
    ) -> asyncio.Future[AppendResult]:
        """Append without waiting; the future resolves like append(). Raises: as append, and StreamOverloadedError."""
        return self._submit([_with_txid(record, txid)], seq=seq)

    def append_batch_nowait(
        self, records: Iterable[Record | bytes], *, seq: int | None = None
    ) -> asyncio.Future[AppendResult]:
        """The same without waiting. Raises: as append_nowait."""
        return self._submit(list(records), seq=seq)

    async def outcome(self, seq: int) -> tuple[Outcome, AppendResult | None]:
        """What became of the record with this number, also if another gateway had it. Raises: StreamError."""
        check_sequence(self._stream, self.name, seq)
        request = pb.GetOutcomeRequest(stream=self._stream, producer=self.name, sequence=seq)
        reply = await self._channels.call("Append.GetOutcome", request, stream=self._stream)
        result = get_result(reply.result) if reply.HasField("result") else None
        return get_outcome(reply.outcome), result

    def _submit(self, records: list[Record | bytes], seq: int | None = None) -> asyncio.Future[AppendResult]:
        first = self._next if seq is None else seq
        check_sequence(self._stream, self.name, first, len(records))
        self._require_room()
        request = self._request(records)
        request.producer.name, request.producer.epoch = self.name, self.epoch
        request.producer.sequence = first
        request.monotonic = self._monotonic
        before = self._next
        future = self._send(request, records)
        self._next = max(before, first + len(records))
        future.add_done_callback(partial(self._settled, before))
        return future

    def _settled(self, before: int, future: asyncio.Future[AppendResult]) -> None:
        """Numbers that were refused are free again: without that each later append would leave a gap. Those below
        ``before`` are not: records of this producer have them, or may have."""
        error = None if future.cancelled() else future.exception()
        if isinstance(error, StreamError) and error.outcome is Outcome.REJECTED:
            free = error.expected if isinstance(error, SequenceGapError) else before
            self._refused = free if self._refused is None else min(self._refused, free)
        if self._refused is not None and not self.pending:
            self._next, self._refused = self._refused, None

    def _answered(self, future: asyncio.Future[AppendResult]) -> None:
        super()._answered(future)
        if not future.cancelled() and isinstance(future.exception(), ProducerFencedError):
            self.lost.set()


async def open_producer(
    channels: GatewayChannels, stream: str, name: str, *, epoch: int | None, monotonic: bool
) -> RemoteProducer:
    """Open the producer of this name in the next epoch, or in ``epoch``.

    Raises:
        ProducerFencedError, StreamNameError, StreamNotFoundError, StreamSealedError, StreamUnavailableError.
    """
    if epoch is not None:
        check_whole(epoch, "the epoch of a producer")
    request = pb.OpenProducerRequest(stream=stream, producer=name, monotonic=monotonic, epoch=epoch)
    state = await channels.call("Append.OpenProducer", request, stream=stream)
    return RemoteProducer(
        channels, stream, AppendPipe(channels, stream, idempotent=True), name, state, monotonic=monotonic
    )


async def roll(channels: GatewayChannels, stream: str) -> StreamSegment:
    """Have a stream's gateway end its open segment. Raises: SegmentEmptyError, StreamNotReadyError."""
    request = pb.RollRequest(stream=stream)
    return get_segment(await channels.call("Segments.Roll", request, stream=stream, repeat=False))


async def seal(channels: GatewayChannels, stream: str) -> Position | None:
    """Have a stream's gateway end it for good. Returns the position of its last record."""
    reply = await channels.call("Streams.Seal", pb.SealRequest(stream=stream), stream=stream)
    return get_position(reply.position) if reply.HasField("position") else None


def _plain(columns: RecordColumns) -> list[Record | bytes]:
    """The records of columns: messages have one by one."""
    if fits_one_entry(columns):
        entry = decode_entry(encode_entry(columns, first_seq_no=0, append_ms=0))
    else:
        pieces = [
            decode_entry(raw, 0, at) for at, raw in enumerate(encode_pieces(columns, first_seq_no=0, append_ms=0))
        ]
        entry = pieces[-1].assembled(pieces)
    return [record.as_record() for record in entry.records()]


def _with_txid(record: Record | bytes, txid: int | None) -> Record | bytes:
    if txid is None:
        return record
    if not isinstance(record, Record):
        return Record(bytes(record), txid)
    return Record(record.value, txid, record.key, record.headers, record.event_time)
