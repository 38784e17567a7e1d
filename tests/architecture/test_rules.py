"""Every rule that this version promises has a test that names it, and every number that is cited is a rule."""

from __future__ import annotations

from pathlib import Path

from tests.architecture import rules
from tests.architecture.security_table import numbers

CONTRACTS = ("bookkeeper/meta/store.py", "journal_manager/journals/backend.py")
"""What every implementation promises: the rules are what the module is about."""

WITH_SHELLS = ("bookkeeper/testing/", "journal_manager/testing/")
"""Rooms whose shells stand beside their machines and cite with them, and tests that are shipped. This list gets
shorter, never longer."""

SETTINGS = ("config.py", "errors.py", "seams.py", "settings.py")


def test_every_rule_kept_has_a_test() -> None:
    found, kept = rules.guarded(), rules.kept()
    assert len(kept) > 100, "docs/rules.md was not understood"
    assert [rule for rule in kept if rule not in found] == []


def test_every_number_that_is_cited_is_a_rule() -> None:
    kept = rules.kept()
    families = {rule[0] for rule in kept} | {"D", "T"}
    unknown = rules.cited(lambda number: number[0] in families and number not in {*kept, *rules.OTHERS})
    for number in numbers():  # the table of what was asked of security names also what is refused
        places = [place for place in unknown.pop(number, []) if not place.startswith("docs/security.md:")]
        if places:
            unknown[number] = places
    assert unknown == {}, "define it in docs/rules.md, or say it in words"


def test_every_mark_names_a_rule() -> None:
    assert set(rules.guarded()) - set(rules.kept()) == set()


def test_shells_commands_and_settings_say_it_in_words() -> None:
    """Numbers are for machines, checks, tests and pages: who operates a shell should not have to look one up."""
    kept = rules.kept()
    found = []
    for package in ("bookkeeper", "journal_manager", "segments", "spark_wal"):
        for path in sorted((rules.ROOT / package).rglob("*.py")):
            if not rules.numbers_in(path) & kept.keys() or _may_cite(path.relative_to(rules.ROOT)):
                continue
            for line, text in rules.texts_of(path):
                numbers = [n for n in rules.NUMBER.findall(text) if n in kept and n not in rules.OTHERS]
                if numbers and text not in {f'"{number}"' for number in numbers}:  # check(condition, "W4", …)
                    found.append((str(path.relative_to(rules.ROOT)), line, numbers))
    assert found == []


def _may_cite(path: Path) -> bool:
    name = path.as_posix()
    if name in CONTRACTS or name.startswith(WITH_SHELLS) or path.stem.endswith("_pb2"):
        return True
    return path.name not in SETTINGS and rules.is_pure(rules.ROOT / path)
