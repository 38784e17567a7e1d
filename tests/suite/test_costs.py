"""The table of costs."""

from __future__ import annotations

import pytest

from tests.suite.costs import CORE, CORE_OUTSIDE, DRAWN, DRAWN_OUTSIDE, HEAVY, Costs, merged, read, written
from tests.suite.selection import EXAMPLES, Selection

A = "tests/test_a.py"
LISTS = Selection({f"{A}::test_real": "it"}, {A: ["test_long"]}, {}, {A: ["test_heavy"]})


def counted() -> Costs:
    costs = Costs()
    for test, outside in (("test_x", False), ("test_y", False), ("test_long", False), ("test_real", True), ("t", True)):
        costs.add(LISTS, f"tests/test_a.py::{test}", 2.0, outside=outside, property_test=False, examples=False)
    costs.add(LISTS, "tests/test_a.py::test_heavy[1]", 3.0, outside=False, property_test=False, examples=False)
    costs.add(LISTS, "tests/test_a.py::test_x", 10.0, outside=False, property_test=True, examples=True)
    return costs


def test_each_kind_is_counted_apart() -> None:
    costs = counted()
    assert {kind: costs.seconds(kind) for kind in (CORE, HEAVY, CORE_OUTSIDE, DRAWN_OUTSIDE)} == {
        CORE: 2.0 + 2.0 + 2.0,  # a fifth of the ten seconds for many examples
        HEAVY: 3.0,
        CORE_OUTSIDE: 2.0,
        DRAWN_OUTSIDE: 2.0,
    }
    assert {unit: cost.seconds for unit, cost in costs.of[DRAWN].items()} == {
        "tests/test_a.py": 2.0,
        EXAMPLES + "tests/test_a.py": 10.0,
    }


def test_the_table_survives_being_written() -> None:
    assert written(read(written(counted()))) == written(counted())


@pytest.mark.parametrize("row", ["core\ttests/test_a.py\t1", "core\ta\tone\t1.0", "soul\ta\t1\t1.0"])
def test_a_row_that_is_none_is_named(row: str) -> None:
    with pytest.raises(ValueError, match="line 2: not a row of costs"):
        read(f"kind\tkey\ttests\tseconds\n{row}\n")


def test_what_was_measured_later_counts_and_what_is_gone_goes() -> None:
    later = Costs()
    later.add(LISTS, "tests/test_b.py::test_x", 1.0, outside=False, property_test=False, examples=False)
    assert set(merged(counted(), later).of[CORE]) == {"tests/test_a.py", "tests/test_b.py"}
    assert set(merged(counted(), later, ["tests/test_a.py"]).of[CORE]) == {"tests/test_b.py"}
