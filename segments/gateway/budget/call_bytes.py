"""The bytes of one call: it waits for room before it receives, and gives back what was answered."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from segments.gateway.budget.call_budget import CallBudget

ELEMENT_BYTES: Final = 256
"""What a record, header or other repeated value takes in memory beside its bytes, about."""


class CallBytes:
    """Belongs to one call, which the budget has let in."""

    def __init__(self, budget: CallBudget, address: str) -> None:
        self._budget = budget
        self._address = address
        self._reserved = 0
        self._held: deque[int] = deque()

    async def room(self, reserve: int = 0) -> None:
        """Wait until there is room for a message of ``reserve`` bytes, and take it; with 0, until there is any."""
        budget, address = self._budget, self._address
        if budget.try_take(address, reserve):
            self._reserved = reserve
            return
        came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def granted() -> None:
            self._reserved = reserve
            if not came.done():
                came.set_result(None)

        ticket = budget.wait(address, reserve, granted)
        try:
            await came
        finally:
            budget.withdraw(ticket)

    def received(self, size: int, elements: int) -> None:
        """A message is there: it takes its own size in place of what was reserved."""
        cost = size + elements * ELEMENT_BYTES
        before, self._reserved = self._reserved, 0
        self._held.append(cost)
        self._budget.resize(self._address, before, cost)

    def release_oldest(self) -> None:
        """Give back the oldest message. No effect if there is none."""
        if self._held:
            self._budget.resize(self._address, self._held.popleft(), 0)

    def close(self) -> None:
        """Give back everything. Idempotent."""
        before, self._reserved = self._reserved + sum(self._held), 0
        self._held.clear()
        if before:
            self._budget.resize(self._address, before, 0)
