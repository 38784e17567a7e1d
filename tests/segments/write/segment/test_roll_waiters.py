from __future__ import annotations

import asyncio

import pytest

from segments.chain import StreamSegment
from segments.errors import StreamNotReadyError
from segments.write.segment.roll_waiters import RollWaiters

SEGMENT = StreamSegment(number=3, ledger_id=7, start_seq_no=0, created_ms=0)


async def waiting(waiters: RollWaiters) -> asyncio.Future[StreamSegment]:
    future: asyncio.Future[StreamSegment] = asyncio.get_running_loop().create_future()
    waiters.add(future)
    return future


async def test_all_who_wait_get_the_segment_that_ended() -> None:
    waiters = RollWaiters()
    first, second = await waiting(waiters), await waiting(waiters)
    waiters.done(SEGMENT)
    assert await first is SEGMENT and await second is SEGMENT
    waiters.done(SEGMENT)


async def test_each_gets_an_error_of_its_own_and_who_left_gets_none() -> None:
    waiters = RollWaiters()
    first, gone, second = [await waiting(waiters) for _ in range(3)]
    gone.cancel()
    waiters.fail(lambda: StreamNotReadyError("not now"))
    for each in (first, second):
        with pytest.raises(StreamNotReadyError, match="not now"):
            await each
    assert first.exception() is not second.exception() and gone.cancelled()
