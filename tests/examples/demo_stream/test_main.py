"""The last line."""

from __future__ import annotations

from examples.demo_stream.__main__ import last_line
from examples.demo_stream.story import StreamFacts
from examples.demo_stream.verdict import StreamVerdict


def test_the_last_line_says_yes_only_if_nothing_is_wrong() -> None:
    facts = StreamFacts(rolls=2, owners_killed=1, zombies=1, bookies_lost=1, gateways_killed=1, truncated=50)
    line = last_line(StreamVerdict(appended=300, read=300, refused=20), facts)
    assert line.startswith(
        "stream: exactly once: yes (300 records appended, 300 read, 20 refused as duplicates, 0 gaps"
    )
    assert line.endswith("50 records truncated)")
    assert last_line(StreamVerdict(problems=["x"]), facts).startswith("stream: exactly once: no (")
