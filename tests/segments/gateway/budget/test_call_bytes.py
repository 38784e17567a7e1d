from __future__ import annotations

import asyncio

import pytest

from segments.gateway.budget.call_budget import CallBudget
from segments.gateway.budget.call_bytes import ELEMENT_BYTES, CallBytes


def budget() -> CallBudget:
    return CallBudget(bytes_max=100, address_bytes_max=100, address_calls_max=10)


async def test_a_message_takes_its_own_size_in_place_of_what_was_reserved_and_something_for_each_record() -> None:
    held = budget()
    call = CallBytes(held, "a")
    await call.room(80)
    assert held.bytes == 80
    call.received(10, 2)
    assert held.bytes == 10 + 2 * ELEMENT_BYTES
    call.received(5, 0)
    call.release_oldest()
    assert held.bytes == 5, "the oldest is given back first"
    call.release_oldest()
    call.release_oldest()
    assert held.bytes == 0


async def test_a_call_waits_until_another_gives_back() -> None:
    held = budget()
    first, second = CallBytes(held, "a"), CallBytes(held, "b")
    await first.room(100)
    waits = asyncio.ensure_future(second.room())
    await asyncio.sleep(0)
    assert not waits.done()
    first.close()
    await waits
    assert held.bytes == 0


@pytest.mark.parametrize("granted_before", [False, True])
async def test_a_call_that_is_cancelled_while_it_waits_takes_nothing(granted_before: bool) -> None:
    """Also when its room came in the moment in which it was cancelled."""
    held = budget()
    first, second = CallBytes(held, "a"), CallBytes(held, "b")
    await first.room(100)
    waits = asyncio.ensure_future(second.room(50))
    await asyncio.sleep(0)
    if granted_before:
        first.close()
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    first.close()
    second.close()
    second.close()
    assert (held.bytes, held.waiting) == (0, 0)
