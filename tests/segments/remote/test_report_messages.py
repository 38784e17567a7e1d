"""What comes back whole is in tests/segments/gateway/test_report_messages; here is what a gateway tells that we do not
know, or leaves out."""

from __future__ import annotations

import pytest

from segments.checks.findings import Problem
from segments.errors import StreamUnavailableError
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.remote.report_messages import get_event, get_finding, get_info, get_overview, get_pass
from segments.retention.retention import ReasonKind


def test_a_call_that_ended_before_its_first_message_is_no_empty_answer() -> None:
    with pytest.raises(StreamUnavailableError, match="before it had told everything"):
        get_overview([])
    with pytest.raises(StreamUnavailableError, match="before it had told everything"):
        get_pass([])


def test_words_of_a_later_version_stay_readable() -> None:
    finding = get_finding(pb.Finding(problem="from the future", stream="s", text="what it is", repaired=True))
    assert (finding.problem, finding.text, finding.repaired) == (Problem.RECORD_UNREADABLE, "what it is", True)
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
