"""Every rule that this version promises has a test that names it."""

from __future__ import annotations

from tests.architecture import rules


def test_every_rule_kept_has_a_test() -> None:
    found = rules.guarded()
    assert [rule for rule in rules.KEPT if rule not in found] == []
