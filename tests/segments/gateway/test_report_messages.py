"""What the gateway tells is what the client understands."""

from __future__ import annotations

from segments.chain import StreamChain, StreamSegment
from segments.checks.findings import Finding, Problem
from segments.checks.overview import overview_of
from segments.config import DEFAULTS
from segments.gateway.report_messages import LINES, put_findings, put_hold, put_info, put_overview, put_report
from segments.position import Position
from segments.remote.report_messages import get_finding, get_hold, get_info, get_overview, get_pass
from segments.retention.holds import Hold
from segments.retention.retention import CursorPlace, Reason, ReasonKind, RetentionReport, SegmentReason
from segments.retention.retention_pass import PassResult

SEGMENTS = tuple(StreamSegment(n + 1, 100 + n, 0, 1000, 1, completed_ms=2000) for n in range(LINES + 1))
CHAIN = StreamChain("id", owner="me", epoch=3, location="h:1", recent=SEGMENTS, next_number=LINES + 2)


def test_holds() -> None:
    for hold in (Hold("h", Position(1, 2, 3), until_ms=5, created_ms=4, note="why"), Hold("all")):
        assert get_hold(put_hold(hold)) == hold


def test_an_overview_comes_back_though_it_fills_several_messages() -> None:
    cursors = tuple(CursorPlace(f"c{n}", Position(1, n, 0)) for n in range(LINES + 1))
    shown = overview_of("s", CHAIN, DEFAULTS, cursors, (Hold("h"),), 77)
    messages = list(put_overview(shown))
    assert len(messages) == 1 + 2 + 2 + 1
    assert get_overview(messages) == shown
    assert get_info(put_info(shown.info, DEFAULTS, Position(9, 0, 0))) == shown.info


def test_a_pass_of_retention_comes_back() -> None:
    reasons = (Reason(ReasonKind.HOLD, "hold h covers it", "h", 99), Reason(ReasonKind.NO_LIMIT, "it has no limit"))
    fates = [SegmentReason(segment, segment.number < 3, reasons) for segment in SEGMENTS]
    report = RetentionReport(tuple(fates), Position(3, 0, 0), ("c",))
    assert get_pass(put_report(report, (100, 101))) == PassResult(report, (100, 101))


def test_findings_come_back() -> None:
    findings = [Finding(problem, "s", "text", 1, None, repaired=True) for problem in Problem]
    found = [get_finding(each) for message in put_findings(findings) for each in message.findings]
    assert found == findings
    assert list(put_findings([])) == []
