"""The last line."""

from __future__ import annotations

from examples.demo_heal.__main__ import last_line
from examples.demo_heal.story import HealFacts
from examples.demo_heal.verdict import Wholeness


def test_the_last_line_says_yes_only_if_nothing_is_wrong() -> None:
    facts = HealFacts(lost=2, bits=50, before_bytes=100_000_000, freed_bytes=60_000_000)
    line = last_line(Wholeness(ledgers=3, entries=30), facts)
    assert line.startswith("heal: whole: yes (3 ledgers, 30 acknowledged entries read back, 2 bookies lost")
    assert line.endswith("60 of 100 MB freed)")
    for wrong in (Wholeness(incomplete=["x"]), Wholeness(unread=["x"]), Wholeness(marks=[1])):
        assert last_line(wrong, facts).startswith("heal: whole: no (")
