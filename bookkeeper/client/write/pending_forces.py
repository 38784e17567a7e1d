"""The callers who wait for a writer's forces, by the number of each force."""

from __future__ import annotations

import asyncio

from bookkeeper.client.write.append_futures import copy_error
from bookkeeper.errors import BookKeeperError


class PendingForces:
    """A future for each caller of a force that has not ended. A cancelled one is skipped."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}

    def expect(self, number: int) -> asyncio.Future[None]:
        """A future for one more caller of this force."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(number, []).append(future)
        return future

    def done(self, number: int) -> None:
        """The force has ended: what it was asked for is durable."""
        for future in self._waiting.pop(number, ()):
            if not future.done():
                future.set_result(None)

    def fail(self, error: BookKeeperError, number: int) -> None:
        """The force has failed. Each caller gets an error of his own."""
        for future in self._waiting.pop(number, ()):
            if not future.done():
                future.set_exception(copy_error(error))

    def fail_all(self, error: BookKeeperError) -> None:
        """No force that is under way will end."""
        for number in list(self._waiting):
            self.fail(error, number)
