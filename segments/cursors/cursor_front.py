"""What a cursor is to an application, wherever its stream is: in this process's cluster or behind gateways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypedDict

from segments.cursors.cursor_state import RANGES_MAX, CursorState
from segments.errors import StreamClosedError
from segments.position import EARLIEST, Position
from segments.seek import Seek


class CursorOptions(TypedDict, total=False):
    """How a cursor is opened."""

    create: bool
    """Make it if it is missing; by default yes."""
    owner: str
    """Who uses it, for people."""
    ranges_max: int
    """How many separate ranges of acknowledged records it may have."""
    save_every_s: float
    """How long acknowledgements that nobody waits for may be unsaved."""


class CursorFront(ABC):
    """One cursor. ``async with`` makes it if it is missing, and takes it over: a former owner can move it no more.
    Without that it can be looked at, and nothing is made."""

    def __init__(
        self,
        stream: str,
        name: str,
        *,
        start: Seek = EARLIEST,
        create: bool = True,
        owner: str = "",
        ranges_max: int = RANGES_MAX,
        save_every_s: float = 1.0,
    ) -> None:
        self.name = name
        self._stream = stream
        self._start = start
        self._create = create
        self._owner_name = owner or "a reader"
        self._ranges_max = ranges_max
        self._save_every_s = save_every_s

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} of stream {self._stream}>"

    @abstractmethod
    async def state(self) -> CursorState:
        """What is stored of the cursor."""

    @abstractmethod
    async def open(self) -> Self:
        """Make the cursor if it is missing, and take it over."""

    @abstractmethod
    async def close(self) -> None:
        """Store what is acknowledged, and let go of the cursor. Idempotent."""

    @abstractmethod
    async def abandon(self) -> None:
        """Let go of the cursor without storing anything more. Idempotent."""

    async def position(self) -> Position:
        """Where reading goes on: everything before is done. Raises: as state."""
        return (await self.state()).mark.position

    async def properties(self) -> Mapping[str, str]:
        """What users noted on the cursor. Raises: as state."""
        return (await self.state()).properties

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        else:
            await self.abandon()

    def _not_open(self) -> StreamClosedError:
        text = f"cursor {self.name} of stream {self._stream} is not open: use async with, or open()"
        return StreamClosedError(text, stream=self._stream)
