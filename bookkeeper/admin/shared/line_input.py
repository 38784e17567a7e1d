"""Reads lines as they arrive: a line of a slow producer does not wait for a full block."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator
from typing import BinaryIO, Final

READ: Final = 64 * 1024
"""Bytes of one read: the size of a pipe."""


class LineInput:
    """The complete lines of a file, in runs, without their line ends. The last line need not have one.

    A thread waits for the file and for :meth:`stop`, so neither the loop nor the end of the program waits for a silent
    producer.

    Args:
        line_max: a longer line is cut into several, so that memory is bounded.
    """

    def __init__(self, source: BinaryIO, *, line_max: int) -> None:
        self._source = source
        self._line_max = line_max
        self._rest = bytearray()
        self._stopped = False
        self._reads = False
        self._woken, self._wakes = os.pipe()
        try:
            self._fd: int | None = source.fileno()
        except (OSError, AttributeError):
            self._fd = None  # in memory

    @property
    def left(self) -> int:
        """Bytes of a line that :meth:`stop` has cut off before its end."""
        return len(self._rest)

    def stop(self) -> None:
        """Read no more input. Idempotent."""
        if not self._stopped:
            self._stopped = True
            os.write(self._wakes, b"x")

    def close(self) -> None:
        """Release everything. Idempotent."""
        self.stop()
        if not self._reads and self._woken >= 0:
            os.close(self._woken)
            os.close(self._wakes)
            self._woken = -1

    async def runs(self) -> AsyncIterator[list[bytes]]:
        """Yield runs of at least one line each. Raises OSError."""
        while data := await self._more():
            *lines, rest = data.split(b"\n")
            if lines:
                lines[0] = bytes(self._rest) + lines[0]
                self._rest.clear()
            self._rest += rest
            if len(self._rest) > self._line_max:
                lines.append(self._take())
            if lines:
                yield lines
        if self._rest and not self._stopped:
            yield [self._take()]

    async def _more(self) -> bytes:
        self._reads = True
        data = await asyncio.to_thread(self._read)
        self._reads = False  # not after a cancellation: then the thread may still use our pipe
        return data

    def _take(self) -> bytes:
        line = bytes(self._rest)
        self._rest.clear()
        return line

    def _read(self) -> bytes:
        """Wait for bytes and read them. Empty at the end of the file, or after :meth:`stop`."""
        if self._fd is None:
            return b"" if self._stopped else self._source.read(READ)
        ready = select.poll()
        ready.register(self._fd, select.POLLIN)
        ready.register(self._woken, select.POLLIN)
        found = [fd for fd, _ in ready.poll()]
        return b"" if self._woken in found else os.read(self._fd, READ)
