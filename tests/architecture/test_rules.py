"""Every rule that this version promises has a test that names it, and every number that is cited is a rule."""

from __future__ import annotations

from tests.architecture import rules


def test_every_rule_kept_has_a_test() -> None:
    found, kept = rules.guarded(), rules.kept()
    assert len(kept) > 100, "docs/rules.md was not understood"
    assert [rule for rule in kept if rule not in found] == []


def test_every_number_that_is_cited_is_a_rule() -> None:
    kept = rules.kept()
    families = {rule[0] for rule in kept} | {"D", "T"}
    unknown = {n: where for n, where in rules.cited().items() if n[0] in families and n not in kept}
    assert unknown == {}, "define it in docs/rules.md, or say it in words"


def test_every_mark_names_a_rule() -> None:
    assert set(rules.guarded()) - set(rules.kept()) == set()
