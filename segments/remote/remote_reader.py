"""Records through a gateway, as they come. The reader gives credits, and goes on at another gateway by its token."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import StoredEntry
from segments.errors import (
    StreamError,
    StreamMetadataError,
    StreamUnavailableError,
)
from segments.position import LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.entry_messages import get_entries, get_records
from segments.protocol.messages import get_activity, get_gap, get_position, put_position, put_seek
from segments.read import Activity, Lag, OnGap, ReaderFront, ReaderState
from segments.read.batches.ready_queue import ReadyQueue
from segments.read.batches.record_batch import Slice
from segments.read.options import ReadOptions
from segments.record import Gap
from segments.remote.gateway_channels import PATIENCE_S, PAUSE_S, GatewayCall, GatewayChannels
from segments.seek import Ago, Seek

CREDIT_RECORDS: Final = 16_384
"""Records that may be on their way to this reader, or wait in it."""

CREDIT_BYTES: Final = 8 * 1024 * 1024
"""Bytes that may be on their way to this reader, or wait in it."""

SILENT_S: Final = 6.0
"""After this time without a message, not even of progress, the gateway is given up."""

PROGRESS_MS: Final = 1000

STATE_S: Final = SILENT_S
"""How long gateways are asked for a reader's state: one that does not answer is an answer, too."""


class RemoteReader(ReaderFront):
    """Reads a stream behind gateways."""

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
        super().__init__(ReadyQueue(), ReadOptions(on_gap=on_gap).on_gap)
        self._channels = channels
        self._stream = stream
        self._start = start
        self._stop = stop
        self._follow = follow
        self._undone_by = undone_by
        self._token = b""
        self._has_entries = False
        """Whether the gateway sends entries; an older one sends records."""
        self._news = asyncio.Event()
        self._taken = [0, 0]
        """Records and bytes that were handed out, and for which no credits were given. Below zero: they were given for
        what was put back."""
        self._give = asyncio.Event()
        self._held_bytes = 0
        """Of what came, and was not handed out."""
        self._room = asyncio.Event()
        """Set when something was handed out."""
        self._running: asyncio.Task[None] | None = None
        self._failure: StreamError | None = None
        self._ended = False
        self._caught_up = False
        self._position: Position | None = None
        self._last_news: float | None = None
        """When something came last, or reading began."""

    @property
    def caught_up(self) -> bool:
        """Whether everything that the gateway knows was handed out."""
        return self._caught_up and not self._ready

    @property
    def ended(self) -> bool:
        """Whether no record follows."""
        return self._ended and not self._ready

    async def lag(self) -> Lag:
        """How far this reader is behind the stream's end. Raises: StreamNotFoundError, StreamUnavailableError;
        GatewayTooOldError."""
        request = pb.LagRequest(stream=self._stream, place=put_seek(self._place), last_append_ms=self._last_append_ms)
        found = await self._channels.call("Read.GetLag", request)
        return Lag(found.records, found.bytes, found.seconds if found.HasField("seconds") else None)

    async def state(self) -> ReaderState:
        """Whether this reader is idle, because nothing is written, or stuck, because something fails: the gateway, the
        metadata store, bookies. It asks.

        Raises: StreamNotFoundError: the stream was deleted. GatewayTooOldError.
        """
        if self.ended:
            return self._state(Activity.ENDED, "no record follows")
        if self._ready:
            return self._state(Activity.READING, "there are records to hand out")
        request = pb.ActivityRequest(stream=self._stream, place=put_seek(self._place))
        try:
            found = await self._channels.call("Read.GetActivity", request, patience_s=STATE_S)
        except StreamMetadataError as error:
            return self._state(Activity.STUCK, f"the metadata store does not answer: {error}")
        except StreamUnavailableError as error:
            return self._state(Activity.STUCK, f"no gateway answers: {error}")
        return self._state(get_activity(found.activity), found.reason)

    def _state(self, activity: Activity, reason: str) -> ReaderState:
        now = asyncio.get_running_loop().time()
        return ReaderState(activity, self.position, 0.0 if self._last_news is None else now - self._last_news, reason)

    @property
    def _place(self) -> Seek:
        """Where the next record is, as far as is known here."""
        return self.position if self._ready or self._position is not None else self._start

    # -- handing out -------------------------------------------------------------------------------------

    async def _fill(self, timeout: float | None) -> bool:
        if self._last_news is None:
            self._last_news = asyncio.get_running_loop().time()
        if self._running is None and not self._ended and not self._closed:
            self._running = asyncio.get_running_loop().create_task(self._run(), name=f"read stream {self._stream}")
        try:
            async with asyncio.timeout(timeout):
                while not self._ready:
                    self._ensure_open()
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

    @property
    def _stream_name(self) -> str:
        return self._stream

    @property
    def _next_position(self) -> Position:
        return self._position or (self._start if isinstance(self._start, Position) else Position.EARLIEST)

    async def _go_to(self, seek: Seek) -> None:
        await self._stop_running()
        self._forget_ready()
        self._start, self._token, self._position = seek, b"", None
        self._ended, self._caught_up, self._failure = False, False, None
        self._taken = [0, 0]

    async def _end(self) -> None:
        self._forget_ready()
        await self._stop_running()
        self._news.set()

    def _hand_out(self, slices: Sequence[Slice]) -> None:
        """Note what is handed out: credits for as much more are given."""
        self._count(slices, 1)
        self._position = slices[-1].entry.position(slices[-1].b)
        self._last_append_ms = slices[-1].entry.appended_ms(slices[-1].b - 1)
        if self._taken[0] * 2 >= CREDIT_RECORDS or self._taken[1] * 2 >= CREDIT_BYTES:
            self._give.set()
        self._room.set()

    def _put_back(self, slices: Sequence[Slice]) -> None:
        """For what comes next again no credits are given a second time."""
        super()._put_back(slices)
        self._count(slices, -1)

    def _count(self, slices: Sequence[Slice], sign: int) -> None:
        for entry, a, b in slices:
            self._held_bytes -= sign * entry.share(a, b)
            self._taken[0] += sign * (b - a)
            self._taken[1] += sign * (entry.share(a, b) if self._has_entries else _content(entry, a, b))

    def _forget_ready(self) -> None:
        self._ready.clear()
        self._held_bytes = 0

    def _drop_gap(self) -> Gap:
        gap = super()._drop_gap()
        self._position = gap.last.next
        return gap

    # -- calls -------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._settle_start()
            await self._read(loop.time())
        except StreamError as error:
            self._failure = error
            self._news.set()

    async def _read(self, heard_at: float) -> None:
        """Make calls until the stream has ended. Raises StreamError: what ends the reader."""
        loop = asyncio.get_running_loop()
        while not self._ended:
            call = self._open()
            sending = asyncio.ensure_future(self._send_credits(call)) if self._follow else None
            try:
                while True:
                    if not self._follow and await self._wait_for_room():
                        heard_at = loop.time()
                    reply = await self._receive(call)
                    if reply is None:
                        break
                    heard_at = loop.time()
                    self._take(reply)
                if not self._ended:
                    raise StreamUnavailableError(f"the gateway at {call.address} ended the call", stream=self._stream)
            except StreamError as error:
                if not error.retryable or loop.time() - heard_at > PATIENCE_S:
                    raise
                self._channels.note_failure("", call.address, error)
                await asyncio.sleep(PAUSE_S)
            finally:
                call.cancel()
                if sending is not None:
                    sending.cancel()
                    await asyncio.wait([sending])

    async def _settle_start(self) -> None:
        """Look up once where to begin if that place moves: a call that breaks before its first message is made again,
        and what was appended meanwhile is not passed over."""
        if self._start == LATEST or isinstance(self._start, Ago):
            request = pb.FindRequest(stream=self._stream, seek=put_seek(self._start))
            self._start = get_position((await self._channels.call("Read.Find", request)).position)

    async def _wait_for_room(self) -> bool:
        """Wait until there is room for more: a call without credits is as fast as its messages are taken. Returns
        whether that had to be waited for."""
        waited = False
        while self._ready.records >= CREDIT_RECORDS or self._held_bytes >= CREDIT_BYTES:
            waited = True
            self._room.clear()
            await self._room.wait()
        return waited

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
            stream=self._stream, start=start, stop=stop, on_gap=pb.ON_GAP_YIELD, undone_by=self._undone_by, entries=True
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
            entries=True,
        )
        if not self._token:
            opened.start.CopyFrom(put_seek(self._start))
        self._taken = [0, 0]
        credits_ = pb.Credits(
            records=max(CREDIT_RECORDS - self._ready.records, 0), bytes=max(CREDIT_BYTES - self._held_bytes, 0)
        )
        try:
            await call.send(pb.TailRequest(open=opened, credits=credits_))
            while True:
                self._give.clear()
                await self._give.wait()
                records, size = (max(0, taken) for taken in self._taken)
                self._taken = [min(0, taken) for taken in self._taken]  # of what was put back, and had its credits
                await call.send(pb.TailRequest(credits=pb.Credits(records=records, bytes=size)))
        except StreamError:
            return  # _receive tells why

    def _take(self, reply: Any) -> None:
        kind = reply.WhichOneof("reply")
        if kind in ("batch", "entries", "gap"):
            self._last_news = asyncio.get_running_loop().time()
        if kind in ("batch", "entries"):
            self._has_entries = kind == "entries"
            slices = get_entries(reply.entries) if self._has_entries else get_records(reply.batch)
            self._ready.add(slices)
            self._held_bytes += sum(entry.share(a, b) for entry, a, b in slices)
            self._resume_at = put_position(slices[-1].entry.position(slices[-1].b))
        elif kind == "gap":
            gap = get_gap(reply.gap)
            self._ready.add([gap])
            self._resume_at = put_position(gap.last.next)
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


def _content(entry: StoredEntry | LoneEntries, a: int, b: int) -> int:
    """The bytes of the records' values and keys: what a gateway that sends records takes credits for."""
    return sum(map(len, entry.values(a, b))) + sum(len(key) for key in entry.keys(a, b) if key is not None)
