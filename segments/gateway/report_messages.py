"""What becomes of streams, as messages of the protocol: holds, retention, findings, overviews. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from segments.checks.findings import Finding
from segments.checks.overview import StreamOverview
from segments.config import StreamConfig
from segments.directory.directory import StreamInfo
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import put_position, put_settings
from segments.protocol.segment_messages import put_segment
from segments.retention.holds import Hold
from segments.retention.retention import RetentionReport, SegmentReason

T = TypeVar("T")

LINES: Final = 1000
"""So many segments, cursors or holds are in one reply."""


def put_hold(hold: Hold) -> pb.Hold:
    """The message of a hold."""
    return pb.Hold(
        name=hold.name,
        start=put_position(hold.start),
        stop=put_position(hold.stop),
        until_ms=hold.until_ms,
        note=hold.note,
        created_ms=hold.created_ms,
    )


def put_info(info: StreamInfo, config: StreamConfig, start: Position) -> pb.StreamInfo:
    """The message of a stream in one line. Readers see nothing before ``start``."""
    return pb.StreamInfo(
        stream=info.name,
        stream_id=info.stream_id,
        settings=put_settings(config),
        sealed=info.sealed,
        segments=info.segments,
        start=put_position(start),
        writer=info.owner,
        records=info.records + info.truncated,
        bytes=info.bytes,
        first=put_position(info.start),
        epoch=info.epoch,
        truncated=info.truncated,
    )


def put_overview(shown: StreamOverview) -> Iterator[pb.ShowReply]:
    """The messages of all that is known of a stream."""
    yield pb.ShowReply(
        details=pb.StreamDetails(
            info=put_info(shown.info, shown.config, shown.info.start),
            location=shown.location,
            last=None if shown.last is None else put_position(shown.last),
            next_ledger=shown.next_ledger,
            removing=shown.removing,
            at_ms=shown.at_ms,
        )
    )
    for segments in _runs(shown.segments):
        yield pb.ShowReply(segments=map(put_segment, segments))
    for cursors in _runs(shown.cursors):
        yield pb.ShowReply(cursors=[pb.CursorPlace(name=e.name, needs=put_position(e.needs)) for e in cursors])
    for holds in _runs(shown.holds):
        yield pb.ShowReply(holds=map(put_hold, holds))


def put_report(report: RetentionReport, deleted: Sequence[int]) -> Iterator[pb.RetentionReply]:
    """The messages of what a pass of retention decided, and deleted."""
    yield pb.RetentionReply(
        summary=pb.RetentionSummary(
            start=put_position(report.start), expired_cursors=report.expired_cursors, deleted_ledgers=deleted
        )
    )
    for segments in _runs(report.segments):
        yield pb.RetentionReply(segments=map(_put_fate, segments))


def _put_fate(each: SegmentReason) -> pb.SegmentFate:
    return pb.SegmentFate(
        segment=put_segment(each.segment),
        goes=each.goes,
        reasons=[
            pb.RetentionReason(why=reason.why.value, text=reason.text, name=reason.name, until_ms=reason.until_ms)
            for reason in each.reasons
        ],
    )


def put_findings(findings: Iterable[Finding]) -> Iterator[pb.CheckReply]:
    """The messages of what a check found."""
    for some in _runs(tuple(findings)):
        yield pb.CheckReply(findings=map(_put_finding, some))


def _put_finding(finding: Finding) -> pb.Finding:
    return pb.Finding(
        problem=finding.problem.value,
        stream=finding.stream,
        text=finding.text,
        segment=finding.segment,
        ledger=finding.ledger,
        repaired=finding.repaired,
    )


def _runs(lines: Sequence[T]) -> Iterator[Sequence[T]]:
    return (lines[at : at + LINES] for at in range(0, len(lines), LINES))
