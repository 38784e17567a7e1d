from __future__ import annotations

import asyncio

import pytest

from segments.closing import Closing


class Door(Closing):
    closed = 0

    async def close(self) -> None:
        self.closed += 1


def test_it_is_closed_at_the_end_whatever_ended_it() -> None:
    async def story() -> None:
        async with Door() as door:
            assert not door.closed
        assert door.closed == 1
        with pytest.raises(LookupError):
            async with door:
                raise LookupError
        assert door.closed == 2

    asyncio.run(story())
