"""The part of a connection that client and server share: it receives frames and sends bytes.

Each connection has one :class:`FrameProtocol`. It receives into a buffer that all connections of the loop share, and
hands the bytes to ``on_bytes``, which cuts whole runs of frames out in place. The beginning of an incomplete frame is
kept until the rest comes. Everything that is written in one turn of the loop leaves in one write.

Memory is bounded on both sides. What a connection keeps grows as bytes arrive, to one frame at most;
:mod:`~bookkeeper.net.receive_memory` limits what all connections keep together. A peer that does not read its replies
shows in ``unsent`` and in ``on_writable``.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Final, cast
from weakref import WeakKeyDictionary

from bookkeeper.codec import FRAME_MAX
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import Address
from bookkeeper.net.receive_memory import FREE, RECEIVE_BUFFER, ReceiveMemory
from bookkeeper.seams import Buffer

KEPT_MIN: Final = 256 * 1024
"""The first size, in bytes, of the memory for a large frame. It grows as bytes arrive."""

_LEND_MIN: Final = 512
"""Bytes that a transport gets in any case: it may deliver although it was told to pause."""

_UNREAD: Final = 16 * 1024
"""Room for what arrives after this side has ended the connection: nobody looks at it."""

_NOTHING: Final = bytearray()
_LENGTH = struct.Struct(">I")


class FrameProtocol(asyncio.BufferedProtocol):
    """Receives and sends the bytes of one connection. Subclasses know what the bytes mean.

    Subclasses implement ``on_bytes`` and ``on_closed``; they may implement ``on_open`` and ``on_writable``. These are
    never called inside a call that the subclass makes: a reply to what it writes always comes later.
    """

    def __init__(
        self, *, frame_max: int = FRAME_MAX, unsent_high: int = 4 * 1024 * 1024, memory: ReceiveMemory | None = None
    ) -> None:
        """``memory`` is what this connection receives into. By default it is the loop's, which has no limit."""
        self.frame_max = frame_max
        self.unsent_high = unsent_high
        """Above so many unsent bytes ``writable`` is False, until half of them are sent."""
        self.received_bytes = 0
        """Bytes received since the connection began."""
        self.sent_bytes = 0
        """Bytes handed to the transport since the connection began."""
        self.reading_paused = False
        self.writable = True
        """False while the peer does not take what is written."""
        self.closed = False
        self.encrypted = False
        """Whether what is written now leaves encrypted."""
        self.in_clear = (0, 0)
        """Bytes received and bytes sent before encryption began."""
        self.ended_here = False
        """Whether this side has ended the connection, or is ending it."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transport: asyncio.Transport | None = None
        self._local = ""
        self.account = ""
        """The account that pays for what is kept: the peer's address on a bookie."""
        self._memory = memory
        self._kept = _NOTHING
        """``_kept[_start:_end]`` has arrived and is not used yet."""
        self._start = 0
        self._end = 0
        self._direct = False
        """Whether the next bytes are received right behind what is kept. Otherwise it is copied before them."""
        self._copied = 0
        """Bytes that were copied to the front of the shared buffer for the current read."""
        self._charged = 0
        self._waits_for_room = False
        self._granted = False
        """Whether room for the whole frame is charged, after a wait."""
        self._out: list[Buffer] = []
        self._out_bytes = 0
        self._flush_scheduled = False
        self._reason: BaseException | None = None
        self._pauses = 0
        self._upgrading = False
        self._gathers = False
        """Whether the transport itself gathers the writes of one turn into one."""

    # -- what subclasses implement ------------------------------------------------------------------------

    def on_open(self) -> None:
        """The connection is open. ``write`` works from now on."""

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        """Use bytes of ``buffer[start:end]``, which has arrived. Returns how many bytes were used.

        The buffer is overwritten after the call: copy what must last.

        Raises:
            MalformedFrameError: the bytes are not a message; the connection ends.
        """
        raise NotImplementedError

    def on_closed(self, error: BaseException | None) -> None:
        """The connection has ended. Called once; ``error`` is the reason, None if the peer ended it in order."""

    def on_writable(self, writable: bool) -> None:
        """The peer takes bytes again (True), or has stopped taking them (False)."""

    # -- what subclasses and owners do --------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """Bytes written here that the system has not taken yet."""
        waiting = self._transport.get_write_buffer_size() if self._transport is not None and not self.closed else 0
        return self._out_bytes + waiting

    @property
    def peer(self) -> str:
        """The other side's address, for messages to people."""
        return self._address("peername")

    @property
    def local(self) -> str:
        """This side's address, which the other side knows as its ``peer``, unless something between them changes it."""
        if not self._local and self._transport is not None:
            self._local = self._address("sockname")
        return self._local or "unknown"

    def _address(self, of: str) -> str:
        name = self._transport.get_extra_info(of) if self._transport is not None else None
        if not isinstance(name, tuple) or len(name) < 2:
            return str(name or "unknown")
        return str(Address(str(name[0]), int(name[1])))

    @property
    def keeps_memory(self) -> bool:
        """Whether it keeps more of an unfinished frame than is free for every connection."""
        return self._charged > 0

    def write(self, data: Buffer) -> None:
        """Send ``data`` together with everything else that is written in this turn of the loop.

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
        """Like ``write``, but a turn of the loop earlier if the transport gathers writes itself.

        Use it for a message that no other will join. Otherwise waiting for the turn pays, because it makes longer runs.
        """
        if self._out or not self._gathers or self.encrypted or self._upgrading:
            self.write(data)
        elif not self.closed and self._transport is not None and not self._transport.is_closing():
            self.sent_bytes += len(data)
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Stop reading from the socket, so that TCP slows the peer down. Each call needs one ``resume_reading``."""
        self._pauses += 1
        if self._pauses == 1 and self._transport is not None and not self.closed:
            self.reading_paused = True
            if not self._transport.is_closing():  # uvloop raises then, asyncio does not
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Undo one ``pause_reading``. Bytes that are kept are offered on the next turn of the loop."""
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
        if self._upgrading and self._loop is not None:  # during a handshake the loop may not report the end
            self._loop.call_soon(self.connection_lost, None)

    async def upgrade(self, encrypt: Callable[[asyncio.Transport], Awaitable[asyncio.Transport]]) -> asyncio.Transport:
        """Encrypt the connection: send what was written, then use the transport that ``encrypt`` makes.

        What is written meanwhile waits and leaves encrypted. What arrives meanwhile was encrypted, and goes to
        ``on_bytes`` after the caller has continued. Unencrypted bytes that are left over are an error: otherwise
        somebody in between could insert bytes that look as if they had been encrypted.

        Raises:
            MalformedFrameError: there are such bytes. The connection is closed.
            OSError: the handshake failed. The connection is closed.
        """
        transport = self._transport
        if transport is None or self.closed or transport.is_closing():
            raise ConnectionResetError("the connection is closed")
        if self._end > self._start:
            nonsense = MalformedFrameError(f"{self._end - self._start} unencrypted bytes came where TLS must begin")
            self.abort(nonsense)
            raise nonsense
        self._flush()
        clear = (self.received_bytes, self.sent_bytes)
        self._upgrading = True
        self._pauses += 1
        self.reading_paused = True  # offer nothing; the transport still reads, for the handshake
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
        asyncio.get_running_loop().call_soon(self._offer)  # after the caller has checked who the peer is
        return encrypted

    # -- asyncio's side -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._loop = asyncio.get_running_loop()
        if self._memory is None:
            self._memory = memory_of(self._loop)
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
        if self._memory is not None:
            self._memory.forget(self)
        self._keep_nothing()
        self.on_closed(self._reason or exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        memory = self._memory
        assert memory is not None, "the connection is open"
        if self.ended_here:  # asyncio's TLS reads once more inside of ``close``, perhaps in the midst of on_bytes
            return memoryview(bytearray(_UNREAD))
        kept = self._end - self._start
        if self._direct:
            return self._room_behind(memory)
        if kept:
            whole = kept == len(self._kept)
            memory.buffer[:kept] = self._kept if whole else memoryview(self._kept)[self._start : self._end]
        self._copied = kept
        if not memory.short:
            return memory.view[kept:] if kept else memory.view
        return memory.view[kept : max(FREE, memory.left + self._charged, kept + _LEND_MIN)]

    def buffer_updated(self, nbytes: int) -> None:
        self.received_bytes += nbytes
        if self.ended_here:
            return
        if self._direct:
            self._end += nbytes
            self._offer()
            return
        memory = self._memory
        if self.closed or memory is None:
            return
        self._start, self._end = 0, (end := self._copied + nbytes)
        used = 0
        if not self.reading_paused:  # does what _show does, for most chunks
            try:
                used = self.on_bytes(memory.buffer, 0, end)
            except MalformedFrameError as error:
                self.close(error)
                used = end
            assert 0 <= used <= end, "on_bytes used more than there is"
            if used:
                self._granted = False
        rest = end - used
        if not rest:
            if self._kept:
                self._keep_nothing()
            self._start = self._end = 0
        elif rest <= FREE and not self._charged and not memory.short:  # does what _keep does, for most chunks
            self._kept, self._start, self._end = memory.buffer[used:end], 0, rest
        else:
            self._keep(memory.view[used:end], nbytes)

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
        """``closed``, read again, because it may change during an await."""
        return self.closed

    def _show(self, buffer: bytearray) -> int:
        """Show ``buffer[_start:_end]`` to ``on_bytes``. Returns where the unused bytes begin.

        A peer that sends malformed frames loses its connection.
        """
        try:
            used = self.on_bytes(buffer, self._start, self._end)
        except MalformedFrameError as error:
            self.close(error)
            return self._end
        assert used >= 0 and self._start + used <= self._end, "on_bytes used more than there is"
        if used:
            self._granted = False  # it was for a frame that is now complete
        return self._start + used

    def _offer(self) -> None:
        """Offer what is kept to ``on_bytes``."""
        if self.closed or self.reading_paused or self._start == self._end:
            return
        begin, kept = self._start, self._kept
        used = self._show(kept)
        if used == self._end:
            self._keep_nothing()
        elif used > begin or not self._direct:
            self._keep(memoryview(kept)[used : self._end], 0)
        else:
            self._claim_room()

    def _keep(self, rest: memoryview, received: int) -> None:
        """Keep ``rest``, which was not used.

        It is copied to the front of the next read if that costs less than the latest read did. Otherwise the next bytes
        are received behind it.
        """
        size = len(rest)
        self._direct = self._granted or (size > FREE and not size <= received <= RECEIVE_BUFFER // 2)
        capacity = size
        if self._direct and self._memory is not None:
            wanted = max(size, min(self._frame_size(rest), max(4 * size, KEPT_MIN)))
            if self._granted or wanted - self._charged <= self._memory.left:
                capacity = wanted
        kept = bytearray(capacity)
        kept[:size] = rest
        self._kept, self._start, self._end = kept, 0, size
        if not self._granted:
            self._charge(capacity)
        self._claim_room()

    def _keep_nothing(self) -> None:
        self._start = self._end = 0
        self._direct = False
        self._granted = False
        self._kept = _NOTHING
        if self._charged:
            self._charge(0)

    def _charge(self, size: int) -> None:
        charge = size if size > FREE else 0
        if charge != self._charged and self._memory is not None:
            change, self._charged = charge - self._charged, charge
            self._memory.charge(self, change, rest=charge)

    def _frame_size(self, start: Buffer) -> int:
        """Bytes of the frame that begins there; 0 if its length is not complete or not allowed."""
        if len(start) < _LENGTH.size:
            return 0
        size: int = _LENGTH.size + _LENGTH.unpack_from(start)[0]
        return size if size <= self.frame_max else 0

    def _room_behind(self, memory: ReceiveMemory) -> memoryview:
        """Memory for the next bytes, behind what is kept. Grows the memory if it is full."""
        size = len(self._kept)
        if self._end == size:
            frame = self._frame_size(memoryview(self._kept)[self._start : self._end])
            most = (
                frame if frame > size else max(2 * self.frame_max, 2 * RECEIVE_BUFFER)
            )  # the transport ignores the pause
            if size >= most:
                raise BufferError("the transport delivers although reading is paused, and the memory is full")
            kept = bytearray(max(min(2 * size, most), min(frame, self._charged)))
            kept[:size] = self._kept
            self._kept = kept
            if len(kept) > self._charged:
                self._charge(len(kept))
        return memoryview(self._kept)[self._end :]

    def _claim_room(self) -> None:
        """Take more room for a frame whose beginning fills the room that it has, or wait for room."""
        memory, frame = self._memory, self._frame_size(memoryview(self._kept)[self._start : self._end])
        if memory is None or self.reading_paused or self._waits_for_room or frame <= max(FREE, self._charged):
            return
        if self._direct:
            if self._end < len(self._kept):
                return
            more = min(frame, 4 * self._end) - self._charged
            if more <= memory.left and not memory.crowded:
                self._charge(self._charged + more)
                return
        elif memory.left >= FREE and not memory.crowded:
            return
        self._waits_for_room = True
        self.pause_reading()
        memory.wait(self, frame - self._charged)

    def on_room(self, size: int) -> None:
        """``size`` more bytes may be kept; they are charged already."""
        self._waits_for_room = False
        self._granted = True
        self._charged += size
        self.resume_reading()

    def _flush(self) -> None:
        self._flush_scheduled = False
        if not self._out or self._transport is None or self.closed or self._upgrading:
            return
        out, self._out = self._out, []
        self.sent_bytes += self._out_bytes
        self._out_bytes = 0
        if self.encrypted:  # one write makes few records; a view saves a copy
            self._transport.write(memoryview(out[0] if len(out) == 1 else b"".join(out)))
        elif len(out) == 1:
            self._transport.write(out[0])
        else:
            self._transport.writelines(out)


_of_loops: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, ReceiveMemory]] = WeakKeyDictionary()


def memory_of(loop: asyncio.AbstractEventLoop) -> ReceiveMemory:
    """The memory of those connections of a loop that were given none. It has no limit, because a client chooses its
    bookies and trusts them."""
    memory = _of_loops.get(loop)
    if memory is None:
        memory = _of_loops[loop] = ReceiveMemory()
    return memory
