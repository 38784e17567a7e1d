"""X12, X13, X14, X22: each request to a bookie needs a right; one of those that it names is enough."""

from __future__ import annotations

import pytest

from bookkeeper.access import LedgerOperation, Right, allowed_by


@pytest.mark.rule("X13", "X14", "X22")
@pytest.mark.parametrize(
    ("right", "operations"),
    [
        (Right.APPEND, {"ADD", "FORCE", "WRITE_LAC"}),
        (Right.READ, {"READ", "LIST"}),
        (Right.RECOVER, {"RECOVERY_ADD", "FENCE", "READ", "LIST", "FORCE", "PRIORITY"}),
        (Right.REPAIR, {"RECOVERY_ADD", "FENCE", "READ", "LIST", "PRIORITY"}),
        (Right.CREATE, set()),
        (Right.DELETE, set()),
        (Right.ADMINISTER, set()),
    ],
)
def test_what_each_right_is_good_for_on_a_bookie(right: Right, operations: set[str]) -> None:
    assert {each.name for each in LedgerOperation if allowed_by(each, {right})} == operations


def test_without_rights_nothing_is_allowed() -> None:
    assert not any(allowed_by(each, frozenset()) for each in LedgerOperation)
