"""What an ``async with`` closes at its end: namespaces, streams, readers, writers, near or behind gateways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Closed at the end of an ``async with``, whatever ended it."""

    __slots__ = ()

    @abstractmethod
    async def close(self) -> None:
        """Close it. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
