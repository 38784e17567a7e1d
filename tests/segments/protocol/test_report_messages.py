"""What the gateway tells is what the client understands; also where it is of another version, or cut."""

from __future__ import annotations

import pytest

from segments.chain import StreamChain, StreamSegment
from segments.checks.findings import Finding, Problem
from segments.checks.overview import overview_of
from segments.config import DEFAULTS
from segments.directory.directory import NameChange, NamespaceEvent
from segments.errors import StreamUnavailableError
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.report_messages import (
    LINES,
    get_event,
    get_finding,
    get_hold,
    get_info,
    get_overview,
    get_pass,
    get_totals,
    put_event,
    put_findings,
    put_hold,
    put_info,
    put_overview,
    put_report,
    put_totals,
)
from segments.retention.holds import Hold
from segments.retention.retention import CursorPosition, Reason, ReasonKind, RetentionReport, SegmentReason
from segments.retention.retention_pass import PassResult
from segments.transfer.bundle import Totals

SEGMENTS = tuple(StreamSegment(n + 1, 100 + n, 0, 1000, 1, completed_ms=2000) for n in range(LINES + 1))
CHAIN = StreamChain("id", owner="me", epoch=3, location="h:1", recent=SEGMENTS, next_number=LINES + 2)


def test_holds() -> None:
    for hold in (Hold("h", Position(1, 2, 3), until_ms=5, created_ms=4, note="why", by="etl"), Hold("all")):
        assert get_hold(put_hold(hold)) == hold


def test_an_overview_comes_back_though_it_fills_several_messages() -> None:
    cursors = tuple(CursorPosition(f"c{n}", Position(1, n, 0)) for n in range(LINES + 1))
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


def test_changes_of_names_and_sums_of_copies_come_back() -> None:
    for change in NameChange:
        event = NamespaceEvent(change, "new", "id", "old" if change is NameChange.RENAMED else None)
        assert get_event(put_event(event)) == event
    assert get_totals(put_totals(Totals(1, 2, 3))) == Totals(1, 2, 3)


def test_a_call_that_ended_before_its_first_message_is_no_empty_answer() -> None:
    with pytest.raises(StreamUnavailableError, match="before it had told everything"):
        get_overview([])
    with pytest.raises(StreamUnavailableError, match="before it had told everything"):
        get_pass([])


def test_words_of_a_later_version_stay_readable() -> None:
    finding = get_finding(pb.Finding(problem="from the future", stream="s", text="what it is", repaired=True))
    assert (finding.problem, finding.text, finding.repaired) == (Problem.NODE_UNREADABLE, "what it is", True)
    for goes in (True, False):
        fate = pb.SegmentFate(goes=goes, reasons=[pb.RetentionReason(why="from the future", text="what it is")])
        report = get_pass([pb.RetentionReply(summary=pb.RetentionSummary(), segments=[fate])]).report
        (reason,) = report.segments[0].reasons
        assert (reason.keeps, reason.text, report.segments[0].goes) == (not goes, "what it is", goes)
        assert isinstance(reason.why, ReasonKind)


def test_an_older_gateway_tells_no_writer() -> None:
    info = get_info(pb.StreamInfo(stream="s", segments=3, start=pb.Position(segment=2)))
    assert (info.owner, info.records, info.segments, info.start) == ("", 0, 3, Position(2, 0, 0))


def test_an_older_gateway_counts_truncated_records_too() -> None:
    info = get_info(pb.StreamInfo(stream="s", records=10))
    assert (info.records, info.truncated) == (10, 0)
    info = get_info(pb.StreamInfo(stream="s", records=10, truncated=4))
    assert (info.records, info.truncated) == (6, 4)


def test_a_change_of_a_name_that_only_later_versions_know_is_passed_over() -> None:
    message = pb.NamespaceEvent(stream="a")
    message.MergeFromString(b"\x08\x63")  # kind 99
    assert get_event(message) is None
