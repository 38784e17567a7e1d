from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from segments.gateway.budget.call_budget import CallBudget, Ticket


def budget(**changes: int) -> CallBudget:
    return CallBudget(**{"bytes_max": 100, "address_bytes_max": 60, "address_calls_max": 2, **changes})


def test_an_address_has_its_share_and_all_together_the_whole() -> None:
    held = budget()
    assert held.try_take("a", 60)
    assert not held.try_take("a", 1)
    assert not held.try_take("b", 41)
    assert held.try_take("b", 40)
    assert not held.try_take("c", 0), "with a size of 0: whether there is any room"
    held.resize("b", 40, 0)
    assert held.try_take("c", 0)
    assert held.bytes == 60


def test_what_was_received_counts_also_above_the_limit() -> None:
    held = budget()
    held.resize("a", 0, 1000)
    assert held.bytes == 1000
    assert not held.try_take("b", 0)


def test_calls_are_counted_by_address() -> None:
    held = budget()
    assert [held.enter("a"), held.enter("a"), held.enter("a"), held.enter("b")] == [True, True, False, True]
    held.leave("a")
    assert held.enter("a")
    assert held.calls == 3


def test_who_waits_gets_room_an_address_after_the_other() -> None:
    held, came = budget(address_bytes_max=100), []
    assert held.try_take("first", 100)
    for number, address in enumerate("aaab"):
        assert not held.try_take(address, 30)
        held.wait(address, 30, lambda number=number: came.append(number))  # type: ignore[misc]
    assert held.waiting == 4
    held.resize("first", 100, 10)
    assert came == [0, 3, 1]
    assert (held.waiting, held.bytes) == (1, 100)


def test_an_address_that_is_full_waits_for_itself_only() -> None:
    held, came = budget(), []
    assert held.try_take("a", 60)
    held.wait("a", 30, lambda: came.append("a"))
    assert held.try_take("b", 40), "a waits for its own bytes"
    held.wait("c", 30, lambda: came.append("c"))
    held.resize("b", 40, 5)
    assert came == ["c"]
    held.resize("a", 60, 0)
    assert came == ["c", "a"]


def test_nobody_overtakes_a_large_request_that_waits_for_the_others() -> None:
    held, came = budget(), []
    assert held.try_take("a", 50)
    assert held.try_take("b", 40)
    ticket = held.wait("c", 30, lambda: came.append("c"))
    assert not held.try_take("d", 5), "small ones would keep the large one out for ever"
    held.withdraw(ticket)
    assert held.try_take("d", 5)
    assert came == []


@given(st.data())
def test_whatever_happens_nothing_is_lost_and_nothing_above_the_limits_is_granted(data: st.DataObject) -> None:
    held = budget(address_calls_max=1000)
    taken: list[tuple[str, int]] = []
    waiting: list[Ticket] = []

    def grant(address: str, size: int) -> None:
        own = sum(each for name, each in taken if name == address)
        assert own + size <= 60
        assert sum(each for _, each in taken) + size <= 100
        taken.append((address, size))

    for _ in range(data.draw(st.integers(0, 40))):
        action = data.draw(st.sampled_from(("take", "give", "withdraw")))
        if action == "take":
            address, size = data.draw(st.sampled_from("abc")), data.draw(st.integers(1, 60))
            if held.try_take(address, size):
                grant(address, size)
            else:
                ticket = Ticket(address, size, lambda: None)

                def granted(address: str = address, size: int = size) -> None:
                    grant(address, size)

                ticket = held.wait(address, size, granted)
                waiting.append(ticket)
        elif action == "give" and taken:
            address, size = taken.pop(data.draw(st.integers(0, len(taken) - 1)))
            held.resize(address, size, 0)
        elif waiting:
            held.withdraw(waiting.pop(data.draw(st.integers(0, len(waiting) - 1))))
        assert held.bytes == sum(size for _, size in taken)
    for ticket in waiting:
        held.withdraw(ticket)
    while taken:
        held.resize(*taken.pop(), 0)
    assert (held.bytes, held.waiting) == (0, 0)
    assert held.try_take("z", 60), "nothing is left over"
