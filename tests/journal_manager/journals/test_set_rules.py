"""Which members may fail, and when too few are left."""

from __future__ import annotations

import pytest

from journal_manager import JournalConfigError, NotEnoughJournalsError
from journal_manager.journals.set_rules import Member, MemberState, SetRules

SHARED = Member("mem:shared", shared=True)
REQUIRED = Member("mem:required", required=True)
ONE, TWO, THREE, FOUR = (Member(f"mem:{number}") for number in range(1, 5))


def test_the_shared_member_comes_first_and_the_redundant_ones_last() -> None:
    rules = SetRules([ONE, REQUIRED, SHARED, TWO])
    assert rules.members == (SHARED, REQUIRED, ONE, TWO)
    assert rules.leading == SHARED
    assert [rules.is_required(member) for member in rules.members] == [True, True, False, False]


@pytest.mark.parametrize(
    ("members", "minimum", "why"),
    [
        ([], 1, "needs a shared or a required member"),
        ([ONE, TWO], 1, "needs a shared or a required member"),
        ([SHARED, Member("mem:other", shared=True)], 1, "at most one shared"),
        ([SHARED, SHARED], 1, "twice"),
        ([SHARED, ONE], 2, "2 of 1 redundant"),
        ([SHARED, ONE], -1, "-1 of 1 redundant"),
    ],
)
def test_a_set_that_cannot_work_is_refused(members: list[Member], minimum: int, why: str) -> None:
    with pytest.raises(JournalConfigError, match=why):
        SetRules(members, minimum)


def test_the_third_of_four_redundant_members_is_too_many() -> None:
    rules = SetRules([REQUIRED, ONE, TWO, THREE, FOUR], minimum=2)
    for member in (ONE, THREE):
        rules.switch_off(member, OSError(f"broken {member.uri}"))
        rules.ensure_enough()
    rules.switch_off(FOUR, OSError("broken too"))
    with pytest.raises(NotEnoughJournalsError, match=r"1 redundant members .* 2 must.*mem:1: broken mem:1"):
        rules.ensure_enough()
    rules.join(THREE)
    rules.ensure_enough()


def test_without_redundant_members_none_is_needed() -> None:
    SetRules([SHARED, REQUIRED]).ensure_enough()
    rules = SetRules([SHARED, ONE], minimum=0)
    rules.switch_off(ONE, OSError())
    rules.ensure_enough()


def test_the_status_says_who_is_off_and_why() -> None:
    rules = SetRules([ONE, SHARED], minimum=0)
    rules.switch_off(ONE, OSError("disk"))
    assert [(one.uri, one.state, one.problem) for one in rules.status()] == [
        ("mem:shared", MemberState.ACTIVE, None),
        ("mem:1", MemberState.OFF, "disk"),
    ]
    rules.join(ONE)
    assert rules.status()[1].problem is None
