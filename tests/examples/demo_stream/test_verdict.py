from __future__ import annotations

from examples.demo_stream.readers import ReadCheck
from examples.demo_stream.verdict import judge


def test_the_verdict_is_yes_only_if_every_reader_has_everything_once() -> None:
    tail = ReadCheck("tail, library", next={"p1": 20, "p2": 10}, read=30)
    cursor = ReadCheck("cursor", next={"p1": 20, "p2": 10}, read=30)
    checks = [(tail, ("p1", "p2")), (cursor, ("p1", "p2"))]
    found = judge({"p1": 20, "p2": 10}, 7, checks, [])
    assert found.good
    assert (found.appended, found.read, found.refused, found.gaps) == (30, 30, 7, 0)
    assert not judge({"p1": 21, "p2": 10}, 7, checks, []).good
    assert not judge({"p1": 20, "p2": 10}, 7, checks, ["a zombie appended"]).good
    cursor.doubled = 1
    assert judge({"p1": 20, "p2": 10}, 7, checks, []).problems == ["cursor: 1 record came twice"]
