from __future__ import annotations

import asyncio

import pytest

from segments.closing import Closing


class Door(Closing):
    times = 0

    async def close(self) -> None:
        self.times += 1


def test_it_is_closed_at_the_end_whatever_ended_it() -> None:
    async def story() -> None:
        async with Door() as door:
            times = [door.times]
        times.append(door.times)
        with pytest.raises(LookupError):
            async with door:
                raise LookupError
        assert [*times, door.times] == [0, 1, 2]

    asyncio.run(story())
