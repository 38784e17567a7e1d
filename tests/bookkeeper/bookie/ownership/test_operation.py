"""Operations as bits, and of which request is which."""

from __future__ import annotations

import pytest

from bookkeeper import wire
from bookkeeper.access import LedgerOperation, Right, allowed_by
from bookkeeper.bookie.ownership.operation import ALL, BIT, bits_of, key_of, operation_of
from bookkeeper.ids import LedgerId
from tests.bookkeeper.bookie.identity.test_ledger_keys import KEY, add, fence


@pytest.mark.rule("X13")
@pytest.mark.parametrize("right", Right)
def test_the_bits_are_what_the_rights_allow(right: Right) -> None:
    bits = bits_of(frozenset({right}))
    assert {each for each in LedgerOperation if bits & BIT[each]} == {
        each for each in LedgerOperation if allowed_by(each, {right})
    }
    assert bits_of(frozenset(Right)) == ALL and bits_of(frozenset()) == 0


def test_a_flag_makes_another_operation_of_a_request() -> None:
    assert operation_of(add(1)) is LedgerOperation.ADD
    assert operation_of(add(1, priority=1)) is LedgerOperation.ADD
    assert operation_of(add(1, recovery=True)) is LedgerOperation.RECOVERY_ADD
    assert operation_of(fence(1)) is LedgerOperation.FENCE
    assert operation_of(wire.GetBookieInfo()) is None
    assert key_of(fence(1)) == KEY and key_of(wire.ForceLedger(LedgerId(1))) is None
