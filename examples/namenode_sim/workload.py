"""Clients that use the name node like a small warehouse, and remember what they were told.

Each client has a directory of its own, so it knows what must be in it: whatever is refused there was lost before, or
done twice.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Final, Protocol

from examples.namenode_sim.errors import NamespaceError, NoAnswerError

_KEPT: Final = 30
"""A client deletes its oldest file when it has more than this."""


class RequestSender(Protocol):
    """Has requests done, each once, by whichever replica is active."""

    repeated: int
    """Requests that were asked for more than once."""

    async def do(self, verb: str, **arguments: Any) -> int:
        """Raises: NamespaceError: it cannot be done. NoAnswerError: nobody answered; it may have been done."""

    async def look(self, path: str) -> dict[str, Any] | None:
        """What is at ``path``; None: nothing. Raises NoAnswerError."""

    async def close(self) -> None:
        """Release everything."""


class WarehouseClient:
    """One client: it makes files under temporary names, renames them, looks at them, and deletes old ones."""

    def __init__(self, number: int, sender: RequestSender, *, pause_s: float, rng: Random, looks: float = 0.3) -> None:
        """
        Args:
            pause_s: seconds between two files, on average.
            looks: how often the client looks at a file that it has just made; 1: always.
        """
        self._rng = rng
        self._looks = looks
        self._client = sender
        self._pause_s = pause_s
        self._stopping = False
        self.directory = f"/c{number}"
        self.expected: dict[str, int | None] = {}
        """Path -> length of each file that must be there; None: open."""
        self.acknowledged = 0
        """Requests that were answered."""
        self.problems: list[str] = []
        self.slowest_s = 0.0
        """The longest time that a request took."""

    @property
    def repeated(self) -> int:
        """Requests that had to be asked for again."""
        return self._client.repeated

    async def run(self) -> None:
        """Work until told to stop. A request whose outcome is unknown ends the work."""
        number = 0
        try:
            await self._do("mkdirs", path=self.directory)
            while not self._stopping:
                path = f"{self.directory}/f{number}"
                number += 1
                await self._make_file(path)
                if self._rng.random() < self._looks:
                    await self._look(path)
                if len(self.expected) > _KEPT:
                    await self._delete(next(iter(self.expected)))
                await asyncio.sleep(self._pause_s * self._rng.random() * 2)
        except NamespaceError as error:
            self.problems.append(f"{self.directory}: refused, though it must be possible: {error}")
        except NoAnswerError as error:
            self.problems.append(f"{self.directory}: {error}")
        finally:
            await self._client.close()

    def stop(self) -> None:
        """Finish the file that is being made, and end."""
        self._stopping = True

    async def _make_file(self, path: str) -> None:
        temporary = f"{path}.tmp"
        await self._do("create", path=temporary)
        self.expected[temporary] = None
        await self._do("add_block", path=temporary)
        length = self._rng.randrange(1, 100_000)
        await self._do("close", path=temporary, length=length)
        self.expected[temporary] = length
        await self._do("rename", source=temporary, target=path)
        self.expected[path] = self.expected.pop(temporary)

    async def _look(self, path: str) -> None:
        found = await self._client.look(path)
        if found is None or found["length"] != self.expected[path]:
            self.problems.append(f"{path} must have {self.expected[path]} bytes, and was shown as {found}")

    async def _delete(self, path: str) -> None:
        await self._do("delete", path=path)
        del self.expected[path]

    async def _do(self, verb: str, **arguments: object) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._client.do(verb, **arguments)
        self.acknowledged += 1
        self.slowest_s = max(self.slowest_s, loop.time() - began)
