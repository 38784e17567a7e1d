"""Records through a gateway, as they come. The reader gives credits, and goes on at another gateway by its token."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

from segments.errors import (
    PositionTruncatedError,
    StreamClosedError,
    StreamError,
    StreamGapError,
    StreamUnavailableError,
)
from segments.position import Position
from segments.read.options import BATCH_RECORDS
from segments.record import Gap, GapKind, StoredRecord
from segments.remote.gateway_channels import PATIENCE_S, PAUSE_S, GatewayCall, GatewayChannels
from segments.rpc import segments_pb2 as pb
from segments.rpc.messages import get_gap, get_position, get_stored, put_seek
from segments.seek import Seek

OnGap: TypeAlias = Literal["raise", "yield", "skip"]

CREDIT_RECORDS: Final = 16_384
"""Records that may be on their way to this reader."""

CREDIT_BYTES: Final = 8 * 1024 * 1024
"""Bytes that may be on their way to this reader."""

SILENT_S: Final = 6.0
"""After this time without a message, not even of progress, the gateway is given up."""

PROGRESS_MS: Final = 1000


class RemoteReader:
    """Reads one stream. ``async with`` closes it. Iterating gives records, and gaps with ``on_gap="yield"``."""

    def __init__(
        self,
        channels: GatewayChannels,
        stream: str,
        start: Seek,
        *,
        stop: Seek | None = None,
        follow: bool = False,
        on_gap: OnGap = "raise",
        undone_by: str = "",
    ) -> None:
        """``stop``: exclusive; None without ``follow``: where the stream ends when reading begins. ``undone_by``: leave
        out what this cursor has done."""
        self._channels = channels
        self._stream = stream
        self._start = start
        self._stop = stop
        self._follow = follow
        self._on_gap = on_gap
        self._undone_by = undone_by
        self._token = b""
        self._ready: deque[StoredRecord | Gap] = deque()
        self._news = asyncio.Event()
        self._taken = [0, 0]
        """Records and bytes that were handed out, and for which no credits were given."""
        self._give = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._failure: StreamError | None = None
        self._ended = False
        self._caught_up = False
        self._position: Position | None = None
        self._closed = False
        self.skipped_gaps = 0
        """Gaps that were passed over with ``on_gap="skip"``."""

    @property
    def position(self) -> Position:
        """Where the next record is, or directly behind the last one; EARLIEST before anything came."""
        if self._ready:
            first = self._ready[0]
            return first.first if isinstance(first, Gap) else first.position
        return self._position or (self._start if isinstance(self._start, Position) else Position.EARLIEST)

    @property
    def caught_up(self) -> bool:
        """Whether everything that the gateway knows was handed out."""
        return self._caught_up and not self._ready

    @property
    def ended(self) -> bool:
        """Whether no record follows."""
        return self._ended and not self._ready

    # -- reading -----------------------------------------------------------------------------------------

    async def next(self, timeout: float | None = None) -> StoredRecord | Gap | None:
        """The next record. None: it did not come within ``timeout`` seconds, or there is none (``ended`` tells).

        Raises:
            PositionTruncatedError, StreamGapError: records are missing here, and ``on_gap`` is ``"raise"``.
            StreamNotFoundError, StreamUnavailableError, StreamClosedError.
        """
        while True:
            if not await self._fill(timeout):
                return None
            item = self._ready[0]
            if isinstance(item, Gap) and not self._pass_gap(item):
                continue
            self._hand_out(1)
            return item

    async def next_batch(
        self, max_records: int = BATCH_RECORDS, *, max_bytes: int | None = None, wait: float | None = None
    ) -> list[StoredRecord]:
        """The next records that are there: at least one, at most ``max_records``. Empty: nothing came within ``wait``
        seconds, or the reader has ended. Gaps are raised or skipped; to be told of them use next().

        Raises: as next.
        """
        while True:
            if not await self._fill(wait):
                return []
            if not isinstance(gap := self._ready[0], Gap):
                break
            if self._pass_gap(gap):
                self._hand_out(1)
        found: list[StoredRecord] = []
        size = 0
        for item in self._ready:
            if isinstance(item, Gap) or len(found) >= max_records or (max_bytes is not None and size >= max_bytes):
                break
            found.append(item)
            size += len(item.value)
        self._hand_out(len(found))
        return found

    async def __aiter__(self) -> AsyncIterator[StoredRecord | Gap]:
        while (item := await self.next()) is not None:
            yield item

    async def seek(self, seek: Seek) -> None:
        """Go on elsewhere. Nothing that came before is handed out afterwards."""
        await self._stop_running()
        self._ready.clear()
        self._start, self._token, self._position = seek, b"", None
        self._ended, self._caught_up, self._failure = False, False, None
        self._taken = [0, 0]

    async def close(self) -> None:
        """Close the reader. Reads that wait raise StreamClosedError. Idempotent."""
        self._closed = True
        self._ready.clear()
        await self._stop_running()
        self._news.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- handing out -------------------------------------------------------------------------------------

    async def _fill(self, timeout: float | None) -> bool:
        """Wait until there is something to hand out. False: nothing within ``timeout``, or nothing follows."""
        if self._running is None and not self._ended and not self._closed:
            self._running = asyncio.get_running_loop().create_task(self._run(), name=f"read stream {self._stream}")
        try:
            async with asyncio.timeout(timeout):
                while not self._ready:
                    if self._closed:
                        raise StreamClosedError(f"this reader of stream {self._stream} is closed", stream=self._stream)
                    if self._failure is not None:
                        failure, self._failure = self._failure, None
                        await self._stop_running()
                        raise failure
                    if self._ended:
                        return False
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _hand_out(self, count: int) -> None:
        size = 0
        for _ in range(count):
            item = self._ready.popleft()
            if isinstance(item, Gap):
                self._position = item.last.next
                continue
            size += len(item.value) + len(item.key or b"")
            self._position = item.position.next
            self._taken[0] += 1
        self._taken[1] += size
        if self._taken[0] * 2 >= CREDIT_RECORDS or self._taken[1] * 2 >= CREDIT_BYTES:
            self._give.set()

    def _pass_gap(self, gap: Gap) -> bool:
        """Deal with the gap that comes next. Returns whether to hand it out."""
        if self._on_gap == "yield":
            return True
        if self._on_gap == "skip":
            self.skipped_gaps += 1
            self._ready.popleft()
            return False
        text = f"stream {self._stream}: records from {gap.first} to {gap.last} are {gap.kind.value}"
        if gap.kind in (GapKind.TRUNCATED, GapKind.EXPIRED):
            raise PositionTruncatedError(text, stream=self._stream, position=gap.last.next)
        raise StreamGapError(text, stream=self._stream, position=gap.first)

    # -- calls -------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        heard_at = loop.time()
        while not self._ended:
            call = self._open()
            sending = asyncio.ensure_future(self._send_credits(call)) if self._follow else None
            try:
                while True:
                    reply = await self._receive(call)
                    if reply is None:
                        break
                    heard_at = loop.time()
                    self._take(reply)
                if not self._ended:
                    raise StreamUnavailableError(f"the gateway at {call.address} ended the call", stream=self._stream)
            except StreamError as error:
                if not error.retryable or loop.time() - heard_at > PATIENCE_S:
                    self._failure = error
                    self._news.set()
                    return
                self._channels.note_failure("", call.address, error)
                await asyncio.sleep(PAUSE_S)
            finally:
                call.cancel()
                if sending is not None:
                    sending.cancel()
                    await asyncio.wait([sending])

    def _open(self) -> GatewayCall:
        """A call that goes on where the last message stood."""
        address = self._channels.address_for("")
        if self._follow:
            return self._channels.open("Read.Tail", address)
        start = put_seek(self._start)
        if self._token:
            start = pb.Seek(position=self._resume_at)
        stop = None if self._stop is None else put_seek(self._stop)
        request = pb.ReadRequest(
            stream=self._stream, start=start, stop=stop, on_gap=pb.ON_GAP_YIELD, undone_by=self._undone_by
        )
        return self._channels.open("Read.Read", address, request)

    async def _receive(self, call: GatewayCall) -> Any:
        """The next message. A gateway that says nothing for long is given up, though its connection stands."""
        if not self._follow:
            return await call.receive()
        receiving = asyncio.ensure_future(call.receive())
        try:
            await asyncio.wait([receiving], timeout=SILENT_S)
            if receiving.done():
                return receiving.result()
        finally:
            if not receiving.done():
                call.cancel()
                receiving.cancel()
                await asyncio.wait([receiving])
        raise StreamUnavailableError(
            f"the gateway at {call.address} was silent for {SILENT_S:g} s", stream=self._stream
        )

    async def _send_credits(self, call: GatewayCall) -> None:
        opened = pb.TailRequest.Open(
            stream=self._stream,
            on_gap=pb.ON_GAP_YIELD,
            progress_ms=PROGRESS_MS,
            resume_token=self._token,
            undone_by=self._undone_by,
        )
        if not self._token:
            opened.start.CopyFrom(put_seek(self._start))
        waiting = sum(isinstance(item, StoredRecord) for item in self._ready)
        self._taken = [0, 0]
        credits_ = pb.Credits(records=max(CREDIT_RECORDS - waiting, 0), bytes=CREDIT_BYTES)
        try:
            await call.send(pb.TailRequest(open=opened, credits=credits_))
            while True:
                self._give.clear()
                await self._give.wait()
                records, size = self._taken
                self._taken = [0, 0]
                await call.send(pb.TailRequest(credits=pb.Credits(records=records, bytes=size)))
        except StreamError:
            return  # _receive tells why

    def _take(self, reply: Any) -> None:
        kind = reply.WhichOneof("reply")
        if kind == "batch":
            self._ready += map(get_stored, reply.batch.records)
            self._resume_at = reply.batch.records[-1].position
            self._resume_at.slot += 1
        elif kind == "gap":
            gap = get_gap(reply.gap)
            self._ready.append(gap)
            self._resume_at = pb.Position(segment=gap.last.segment, entry=gap.last.entry, slot=gap.last.slot + 1)
        elif kind == "progress":
            self._caught_up = reply.progress.caught_up
            if not self._ready:
                self._position = get_position(reply.progress.position)
        elif kind == "end_of_stream":
            self._ended = True
            if not self._ready:
                self._position = get_position(reply.end_of_stream.position)
        if reply.resume_token and kind != "end_of_stream":
            self._token = reply.resume_token
        self._news.set()

    async def _stop_running(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
