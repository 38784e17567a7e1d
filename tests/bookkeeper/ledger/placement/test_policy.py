"""The two answers to "too few bookies"."""

from __future__ import annotations

from bookkeeper.ledger.placement import PlacementPolicy, RandomChoice, WhenShort


def test_policies_have_the_names_of_the_setting() -> None:
    assert [WhenShort("fail"), WhenShort("name_absent")] == list(WhenShort)


def test_random_choice_is_a_policy() -> None:
    policy: PlacementPolicy = RandomChoice()
    assert policy
