"""How fast a caller may change files, by his rates in the access policy.

Each change is an entry, and the bytes of uploads count as they come. What comes too fast waits: stock clients know
nothing of rates, and take a refusal for a failure. Only what would wait too long is refused, with 429, and as a
RetriableException, which clients with a retry policy ask again for. Reading is free.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Final

from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from spark_wal.webhdfs.errors import RateExceededError

WAIT_S: Final = 10.0
"""Seconds that a change waits before it is refused: a client waits a minute for an answer."""

LOOK_S: Final = 1.0
"""Seconds after which what waits is looked at again: a policy may have changed the rates."""
LEAST_S: Final = 0.001
"""The shortest wait, so that one which rounding has left ends."""


async def admit(permissions: CallerRights, caller: Caller | None) -> None:
    """Count a change, when the caller's rates admit it.

    Raises:
        RateExceededError: they do not for so long that he comes back better; nothing was counted.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + WAIT_S
    while (refusal := permissions.charge(caller, 1, 0)) is not None:
        after_s = refusal.after_s
        if after_s is None or loop.time() + after_s > end:
            raise RateExceededError(f"{refusal}; nothing was done", max(1, math.ceil(after_s or WAIT_S)))
        await asyncio.sleep(min(max(after_s, LEAST_S), LOOK_S))


async def paced(permissions: CallerRights, caller: Caller | None, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The bytes of an upload as they come, and no faster than the caller's rates admit them."""
    async for data in body:
        while (refusal := permissions.charge(caller, 0, len(data))) is not None:
            after_s = LOOK_S if refusal.after_s is None else refusal.after_s
            await asyncio.sleep(min(max(after_s, LEAST_S), LOOK_S))
        yield data
