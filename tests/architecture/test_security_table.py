"""Each requirement of security is held, by tests that carry its number, or it is said why it is not."""

from __future__ import annotations

import pytest

from tests.architecture import rules
from tests.architecture.security_table import STATES, Row, rows

ALL = tuple(f"X{number}" for number in range(1, 68))


def test_no_requirement_is_missing_and_none_stands_twice() -> None:
    assert tuple(row.number for row in rows()) == ALL
    assert {row.state for row in rows()} == set(STATES)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.number)
def test_a_row_names_tests_that_carry_its_number_or_says_why_not(row: Row) -> None:
    carried = {test.rpartition("::")[2] for test in rules.guarded().get(row.rule, [])}
    assert set(row.tests) <= carried, "tests that do not exist, or are of another number"
    if row.state == "held":
        assert row.tests
        assert row.reason == "", "what is held needs no excuse"
        assert row.rule in rules.kept(), "what is held is promised in docs/rules.md"
    else:
        assert len(row.reason.split()) >= 8, "a sentence"
        assert bool(row.tests) is (row.state == "partly")


def test_a_rule_that_is_kept_is_not_refused() -> None:
    assert [row.number for row in rows() if row.state == "refused" and row.number in rules.kept()] == []
