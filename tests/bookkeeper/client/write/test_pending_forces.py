"""Whoever waits for a force gets its end, and an error of his own."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.client.write.pending_forces import PendingForces
from bookkeeper.errors import BookKeeperError, ClientClosedError


async def test_the_end_of_a_force_is_for_its_own_callers() -> None:
    forces = PendingForces()
    one, other, later = forces.expect(1), forces.expect(1), forces.expect(2)
    forces.done(1)
    assert one.done() and other.done() and not later.done()
    forces.done(1)
    forces.done(2)
    await asyncio.gather(one, other, later)


async def test_each_caller_gets_an_error_of_his_own() -> None:
    forces, error = PendingForces(), ClientClosedError("closed")
    waiting = [forces.expect(1), forces.expect(1)]
    forces.fail(error, 1)
    found = [future.exception() for future in waiting]
    assert [str(each) for each in found] == ["closed", "closed"]
    assert found[0] is not found[1] and error not in found


async def test_at_the_end_nobody_waits_any_more() -> None:
    forces = PendingForces()
    given_up, *waiting = [forces.expect(number) for number in (1, 1, 2, 7)]
    given_up.cancel()
    forces.fail_all(ClientClosedError("closed"))
    for future in waiting:
        with pytest.raises(BookKeeperError, match="closed"):
            await future
    assert given_up.cancelled()
