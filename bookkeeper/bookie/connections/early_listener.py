"""Holds the bookie's port before the bookie serves and after it: connections are closed at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bookkeeper.seams import Listener


class EarlyListener:
    """Listens before the bookie serves. Clients that come early lose their connection and try again."""

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.accepting: Callable[[], asyncio.BaseProtocol] | None = None

    def accept(self) -> asyncio.BaseProtocol:
        return self.accepting() if self.accepting is not None else _ClosedAtOnce()

    def close(self) -> None:
        self.accepting = None
        if self.listener is not None:
            self.listener.close()
            self.listener = None


class _ClosedAtOnce(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
