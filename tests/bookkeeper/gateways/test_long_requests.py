from __future__ import annotations

import asyncio

import pytest

from bookkeeper.gateways.long_requests import LOOK_S, LongRequests
from bookkeeper.testing import SimLoop


class Lasting:
    """A request that ends when it is told twice."""

    ends_ms: int | None = None

    def __init__(self) -> None:
        self.looks = 0
        self.may_go_on = True

    def recheck(self) -> bool:
        self.looks += 1
        return self.may_go_on


@pytest.mark.rule("X15")
def test_requests_are_looked_at_when_something_can_have_changed_and_again_until_they_have_ended() -> None:
    state, now_ms = [1], [1000]

    async def story() -> None:
        requests = LongRequests(lambda: state[0], lambda: now_ms[0])
        plain, ending = Lasting(), Lasting()
        ending.ends_ms = 5000
        requests.begin(plain)
        requests.begin(ending)
        await asyncio.sleep(3.5 * LOOK_S)
        assert (plain.looks, ending.looks) == (0, 0), "nothing has changed"
        state[0] += 1
        await asyncio.sleep(2 * LOOK_S)
        assert (plain.looks, ending.looks) == (1, 1)
        now_ms[0], ending.may_go_on = 5000, False
        await asyncio.sleep(2 * LOOK_S)
        assert (plain.looks, ending.looks) == (1, 3), "one that has to end is asked again"
        requests.end(ending)
        requests.end(ending)
        state[0], plain.may_go_on = 9, False
        await asyncio.sleep(2 * LOOK_S)
        assert (plain.looks, ending.looks) == (3, 3)
        requests.end(plain)
        assert len(requests) == 0
        requests.begin(plain)
        plain.may_go_on = True
        await asyncio.sleep(2 * LOOK_S)
        assert plain.looks == 3
        requests.end(plain)

    with asyncio.Runner(loop_factory=SimLoop) as runner:
        runner.run(story())
