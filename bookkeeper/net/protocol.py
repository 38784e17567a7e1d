"""Frames in, bytes out: the part of a connection that client and server share.

One :class:`FrameProtocol` per connection. It owns one receive buffer which it hands, as it stands, to
``on_bytes``: whole runs of frames are cut out of it in place, so no chunk is copied before the codec
looks at it. Everything written in one turn of the loop leaves in one write.

Memory is bounded on both sides (P12, X31): the receive buffer grows to one frame and shrinks again when it is
empty; a peer that does not read its replies is told apart by ``unsent`` and by ``on_writable``.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Final, cast

from bookkeeper.errors import MalformedFrameError
from bookkeeper.runs import FRAME_MAX
from bookkeeper.seams import Buffer

RECEIVE_BUFFER: Final = 64 * 1024
"""Bytes of a receive buffer to begin with; one that fills up in a single read grows to RECEIVE_BUFFER_BUSY."""

RECEIVE_BUFFER_BUSY: Final = 512 * 1024
"""Bytes of the receive buffer of a connection that keeps it full: long chunks make long runs."""

_LENGTH = struct.Struct(">I")


class FrameProtocol(asyncio.BufferedProtocol):
    """Bytes of one connection. Subclasses say what they mean.

    Subclasses implement ``on_bytes`` and ``on_closed``; they may implement ``on_open`` and ``on_writable``.
    Nothing here is ever called inside a call of the subclass's own: replies to what is written come later (B13).
    """

    def __init__(self, *, frame_max: int = FRAME_MAX, unsent_high: int = 4 * 1024 * 1024) -> None:
        self.frame_max = frame_max
        self.unsent_high = unsent_high
        """Unsent bytes above which ``writable`` turns False, until half of them are gone."""
        self.received_bytes = 0
        """Bytes ever received."""
        self.sent_bytes = 0
        """Bytes ever handed to the transport."""
        self.reading_paused = False
        self.writable = True
        """False while the peer does not take what was written."""
        self.closed = False
        self.encrypted = False
        """What is written now leaves encrypted."""
        self.in_clear = (0, 0)
        """Bytes received and sent before that."""
        self.ended_here = False
        """It was this side that ended the connection, or is ending it."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray(RECEIVE_BUFFER)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self._out: list[Buffer] = []
        self._out_bytes = 0
        self._flush_scheduled = False
        self._reason: BaseException | None = None
        self._pauses = 0
        self._upgrading = False
        self._gathers = False
        """The transport itself sends what is written in one turn in one call."""

    # -- what subclasses say ------------------------------------------------------------------------------

    def on_open(self) -> None:
        """The connection stands; ``write`` works from now on."""

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        """``buffer[start:end]`` has arrived and was not used yet: return how many bytes of it are used now.

        The buffer is ours and is overwritten after the call: copy what must last.

        Raises:
            MalformedFrameError: these bytes are no message; the connection ends.
        """
        raise NotImplementedError

    def on_closed(self, error: BaseException | None) -> None:
        """The connection has ended, once; ``error`` is the reason, None for an orderly end by the peer."""

    def on_writable(self, writable: bool) -> None:
        """The peer takes bytes again, or has stopped taking them."""

    # -- what subclasses and owners do --------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """Bytes written here that the system has not taken yet."""
        waiting = self._transport.get_write_buffer_size() if self._transport is not None and not self.closed else 0
        return self._out_bytes + waiting

    @property
    def peer(self) -> str:
        """The other side's address, for messages to people."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) and len(name) >= 2 else str(name or "unknown")

    def write(self, data: Buffer) -> None:
        """Send ``data``, together with whatever else is written in this turn of the loop.

        ``data`` must not change until it is sent. Nothing happens on a closed connection.
        """
        if self.closed or self._loop is None:
            return
        self._out.append(data)
        self._out_bytes += len(data)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def write_alone(self, data: Buffer) -> None:
        """As ``write``, a turn of the loop earlier where the transport does its own gathering.

        For messages that nothing is expected to join: where something is, the turn pays, since it makes longer runs.
        """
        if self._out or not self._gathers or self.encrypted or self._upgrading:
            self.write(data)
        elif not self.closed and self._transport is not None and not self._transport.is_closing():
            self.sent_bytes += len(data)
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Take nothing from the socket until as many ``resume_reading`` calls: the peer feels it by TCP (X32)."""
        self._pauses += 1
        if self._pauses == 1 and self._transport is not None and not self.closed:
            self.reading_paused = True
            if not self._transport.is_closing():  # uvloop refuses, asyncio does not mind
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Undo one ``pause_reading``. What is in the buffer already is looked at on the next turn of the loop."""
        self._pauses -= 1
        assert self._pauses >= 0, "resume_reading without pause_reading"
        if self._pauses == 0 and self._transport is not None and not self.closed and self._loop is not None:
            self.reading_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
            if self._end > self._start:
                self._loop.call_soon(self._offer)

    def close(self, error: BaseException | None = None) -> None:
        """End the connection after sending what was written. ``on_closed(error)`` follows."""
        if self.closed:
            return
        if self._upgrading:
            self.abort(error)
            return
        self.ended_here = True
        self._reason = self._reason or error
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self, error: BaseException | None = None) -> None:
        """End the connection now; what was written may be lost. ``on_closed(error)`` follows."""
        if self.closed:
            return
        self.ended_here = True
        self._reason = self._reason or error
        self._out.clear()
        self._out_bytes = 0
        if self._transport is not None:
            self._transport.abort()
        if self._upgrading and self._loop is not None:  # a loop's handshake may keep to itself that it has lost it
            self._loop.call_soon(self.connection_lost, None)

    async def upgrade(self, encrypt: Callable[[asyncio.Transport], Awaitable[asyncio.Transport]]) -> asyncio.Transport:
        """Go on encrypted: what was written leaves in clear, then ``encrypt`` makes of the transport the one to use.

        What is written meanwhile waits and leaves encrypted; what arrives meanwhile was encrypted, and is shown to
        ``on_bytes`` when the caller has gone on. Bytes that came in clear before are no part of the conversation:
        nobody may put words into it that look as if they had been encrypted (X2).

        Raises:
            MalformedFrameError: there are such bytes.
            OSError: the handshake failed. Either way the connection is closed.
        """
        transport = self._transport
        if transport is None or self.closed or transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        if self._end > self._start:
            nonsense = MalformedFrameError(f"{self._end - self._start} bytes in clear where TLS was to begin")
            self.abort(nonsense)
            raise nonsense
        self._flush()
        clear = (self.received_bytes, self.sent_bytes)
        self._upgrading = True
        self._pauses += 1
        self.reading_paused = True  # nothing is offered; the transport is to read on, for the handshake
        try:
            encrypted = await encrypt(transport)
            encrypted.set_write_buffer_limits(high=self.unsent_high)
        except BaseException as error:
            self.abort(error)
            self._upgrading = False
            raise
        self._upgrading = False
        self._transport = encrypted
        self.encrypted = True
        self.in_clear = clear
        if self._is_closed():
            encrypted.abort()
            raise ConnectionResetError("the connection was closed during the TLS handshake")
        self._flush()
        if self._pauses > 1 and not encrypted.is_closing():
            encrypted.pause_reading()
        self._pauses -= 1
        self.reading_paused = self._pauses > 0
        asyncio.get_running_loop().call_soon(self._offer)  # after the caller has seen who is there
        return encrypted

    # -- asyncio's side -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self.unsent_high)
        kind = type(transport)
        self._gathers = kind.__module__.startswith("uvloop") and kind.__name__ == "TCPTransport"
        if self._pauses:
            self.reading_paused = True
            self._transport.pause_reading()
        self.on_open()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._out.clear()
        self._out_bytes = 0
        self._start = self._end = 0
        self.on_closed(self._reason or exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        if not self._end:
            return self._view
        if self._end == len(self._buffer):
            self._make_room()
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        full = nbytes == len(self._buffer) - self._end and self._end - self._start < RECEIVE_BUFFER_BUSY
        self._end += nbytes
        self.received_bytes += nbytes
        self._offer()
        if full and len(self._buffer) < RECEIVE_BUFFER_BUSY:
            self._resize(min(2 * len(self._buffer), RECEIVE_BUFFER_BUSY))

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.writable = False
        self.on_writable(False)

    def resume_writing(self) -> None:
        self.writable = True
        self.on_writable(True)

    # -- inside -------------------------------------------------------------------------------------------

    def _is_closed(self) -> bool:
        """``closed``, which may change while something is awaited."""
        return self.closed

    def _offer(self) -> None:
        """Show the unused bytes to ``on_bytes``; a peer that sends nonsense loses its connection (F12)."""
        if self.closed or self.reading_paused or self._start == self._end:
            return
        try:
            used = self.on_bytes(self._buffer, self._start, self._end)
        except MalformedFrameError as error:
            self._start = self._end = 0
            self.close(error)
            return
        self._start += used
        assert used >= 0 and self._start <= self._end, "on_bytes used more than there is"
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._buffer) > RECEIVE_BUFFER_BUSY:
                self._resize(RECEIVE_BUFFER)

    def _make_room(self) -> None:
        """The buffer is full: move the unused tail to the front; if a frame is larger than the buffer, grow to it."""
        unused = self._end - self._start
        size = len(self._buffer)
        if unused >= _LENGTH.size:
            need = _LENGTH.size + _LENGTH.unpack_from(self._buffer, self._start)[0]
            if size < need <= self.frame_max:
                size = need
        if unused == size:  # on_bytes leaves a whole buffer unused: it waits (paused), or the frame is oversized
            size = min(2 * size, max(2 * self.frame_max, RECEIVE_BUFFER_BUSY))
            if unused == size:
                raise BufferError("nobody takes what arrives")
        self._resize(size)

    def _resize(self, size: int) -> None:
        unused = self._view[self._start : self._end]
        if size == len(self._buffer):
            self._buffer[: len(unused)] = bytes(unused)
        else:
            buffer = bytearray(max(size, len(unused)))
            buffer[: len(unused)] = unused
            self._buffer = buffer
            self._view = memoryview(buffer)
        self._end -= self._start
        self._start = 0

    def _flush(self) -> None:
        self._flush_scheduled = False
        if not self._out or self._transport is None or self.closed or self._upgrading:
            return
        out, self._out = self._out, []
        self.sent_bytes += self._out_bytes
        self._out_bytes = 0
        if self.encrypted:  # one write, as few records as can be; a view, lest what is left of it is copied again
            self._transport.write(memoryview(out[0] if len(out) == 1 else b"".join(out)))
        elif len(out) == 1:
            self._transport.write(out[0])
        else:
            self._transport.writelines(out)
