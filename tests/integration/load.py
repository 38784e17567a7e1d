"""Someone who appends all the time, and remembers what was acknowledged."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from bookkeeper import BookKeeperError, ReadHandle, WriteHandle
from tests.integration.processes import until_async


class Load:
    """Appends by some lanes at once until it is left. Every payload is another one."""

    def __init__(self, ledger: WriteHandle, lanes: int = 16) -> None:
        self.ledger = ledger
        self.acked: dict[int, bytes] = {}
        """Entry id -> payload of everything that was acknowledged."""
        self.errors: list[BookKeeperError] = []
        """How each lane has ended that did not end by being told to."""
        self._lanes = lanes
        self._count = 0
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    async def _lane(self) -> None:
        while not self._stopping:
            self._count += 1
            payload = b"%d " % self._count * 20
            try:
                entry_id = await self.ledger.append(payload)
            except BookKeeperError as error:
                self.errors.append(error)
                return
            assert entry_id not in self.acked
            self.acked[entry_id] = payload

    async def more(self, count: int, deadline_s: float = 60.0) -> None:
        """Wait until ``count`` more entries are acknowledged; every lane must go on."""
        wanted = len(self.acked) + count
        await until_async(lambda: len(self.acked) >= wanted or self.errors, deadline_s, lambda: repr(self.ledger))
        assert not self.errors, self.errors[0]

    async def ended(self, deadline_s: float = 60.0) -> list[BookKeeperError]:
        """Wait until all lanes have ended by themselves; their reasons."""
        await until_async(lambda: len(self.errors) == self._lanes, deadline_s, lambda: repr(self.ledger))
        return self.errors

    async def stop(self) -> None:
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.ensure_future(self._lane()) for _ in range(self._lanes)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        else:
            await self.stop()


async def check_all_there(reader: ReadHandle, acked: dict[int, bytes]) -> None:
    """Every acknowledged entry is there and equal; reading it all meets no gap."""
    last = int(reader.last_add_confirmed)
    assert last >= max(acked), f"the ledger ends at {last}, {max(acked)} was acknowledged"
    expected = 0
    async for entry in reader.read(0, last):
        assert entry.entry_id == expected
        expected += 1
        if (payload := acked.get(entry.entry_id)) is not None:
            assert entry.payload == payload, f"entry {entry.entry_id} is another one"
    assert expected == last + 1
