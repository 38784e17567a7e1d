"""The last line."""

from __future__ import annotations

from examples.namenode_sim.__main__ import last_line
from examples.namenode_sim.audit import NameNodeVerdict
from examples.namenode_sim.story import NameNodeFacts


def test_the_last_line_says_yes_only_if_nothing_is_wrong() -> None:
    facts = NameNodeFacts(killed=1, zombies=1, bookies_lost=1, bits=50, damaged_met=3, checkpoints_damaged=1, away_s=5)
    line = last_line(NameNodeVerdict(edits=30, acknowledged=20), facts)
    assert line.startswith("namenode: nothing acknowledged lost, nothing applied twice: yes (20 requests acknowledged")
    assert line.endswith("metadata away for 5 s)")
    wrongs = (
        NameNodeVerdict(lost=["x"]),
        NameNodeVerdict(doubled=["x"]),
        NameNodeVerdict(different=["x"]),
        NameNodeVerdict(refused=["x"]),
    )
    for wrong in wrongs:
        assert "applied twice: no (" in last_line(wrong, facts)
