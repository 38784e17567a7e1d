"""What is told of streams, as messages of the protocol and back: holds, retention, findings, overviews, changes of
names, sums of copies. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from segments.checks.findings import Finding, Problem
from segments.checks.overview import StreamOverview
from segments.config import StreamConfig
from segments.directory.directory import NameChange, NamespaceEvent, StreamInfo
from segments.errors import StreamUnavailableError
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_position, get_settings, put_position, put_settings
from segments.protocol.segment_messages import get_segment, optional, put_segment
from segments.retention.holds import Hold
from segments.retention.retention import CursorPosition, Reason, ReasonKind, RetentionReport, SegmentReason
from segments.retention.retention_pass import PassResult
from segments.transfer.bundle import Totals

T = TypeVar("T")

LINES: Final = 1000
"""So many segments, cursors or holds are in one reply."""

_REASONS: Final = {why.value: why for why in ReasonKind}
_PROBLEMS: Final = {problem.value: problem for problem in Problem}
_KINDS: Final = {
    NameChange.CREATED: pb.NamespaceEvent.KIND_CREATED,
    NameChange.DELETED: pb.NamespaceEvent.KIND_DELETED,
    NameChange.RENAMED: pb.NamespaceEvent.KIND_RENAMED,
}
_CHANGES: Final = {kind: change for change, kind in _KINDS.items()}


def put_hold(hold: Hold) -> pb.Hold:
    """The message of a hold."""
    return pb.Hold(
        name=hold.name,
        start=put_position(hold.start),
        stop=put_position(hold.stop),
        until_ms=hold.until_ms,
        note=hold.note,
        created_ms=hold.created_ms,
        by=hold.by,
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


def put_event(event: NamespaceEvent) -> pb.NamespaceEvent:
    """The message of a change of a name."""
    return pb.NamespaceEvent(kind=_KINDS[event.change], stream=event.name, stream_id=event.stream_id, former=event.was)


def put_totals(totals: Totals) -> pb.Totals:
    """The message of what a copy has."""
    return pb.Totals(segments=totals.segments, entries=totals.entries, bytes=totals.bytes)


def get_totals(message: pb.Totals) -> Totals:
    """What a copy has, in a message."""
    return Totals(message.segments, message.entries, message.bytes)


def get_hold(message: pb.Hold) -> Hold:
    """The hold in a message."""
    start, stop = get_position(message.start), get_position(message.stop)
    return Hold(message.name, start, stop, optional(message, "until_ms"), message.created_ms, message.note, message.by)


def get_event(message: pb.NamespaceEvent) -> NamespaceEvent | None:
    """The change of a name in a message; None: it is of a kind of a later version."""
    change = _CHANGES.get(message.kind)
    return NamespaceEvent(change, message.stream, message.stream_id, message.former or None) if change else None


def get_info(message: pb.StreamInfo) -> StreamInfo:
    """The stream in a message. An older gateway tells no writer, and no size."""
    return StreamInfo(
        message.stream,
        message.stream_id,
        message.sealed,
        message.writer,
        message.epoch,
        message.segments,
        message.records - message.truncated,
        message.bytes,
        get_position(message.first if message.HasField("first") else message.start),
        message.truncated,
    )


def get_overview(replies: Iterable[pb.ShowReply]) -> StreamOverview:
    """What is known of a stream, in the messages of one call.

    Raises:
        StreamUnavailableError: the first of them is missing.
    """
    messages = list(replies)
    details = next((each.details for each in messages if each.HasField("details")), None)
    if details is None:
        raise _cut()
    return StreamOverview(
        get_info(details.info),
        details.location,
        get_position(details.last) if details.HasField("last") else None,
        optional(details, "next_ledger"),
        tuple(details.removing),
        details.at_ms,
        get_settings(details.info.settings),
        tuple(get_segment(each) for message in messages for each in message.segments),
        tuple(CursorPosition(each.name, get_position(each.needs)) for message in messages for each in message.cursors),
        tuple(get_hold(each) for message in messages for each in message.holds),
    )


def get_pass(replies: Iterable[pb.RetentionReply]) -> PassResult:
    """What a pass of retention decided and did, in the messages of one call.

    Raises:
        StreamUnavailableError: the first of them is missing.
    """
    messages = list(replies)
    summary = next((each.summary for each in messages if each.HasField("summary")), None)
    if summary is None:
        raise _cut()
    report = RetentionReport(
        tuple(_get_fate(each) for message in messages for each in message.segments),
        get_position(summary.start),
        tuple(summary.expired_cursors),
    )
    return PassResult(report, tuple(summary.deleted_ledgers))


def _get_fate(message: pb.SegmentFate) -> SegmentReason:
    """A reason of a later version counts as a limit that keeps, or lets go; its text says what it is."""
    unknown = ReasonKind.TRUNCATED if message.goes else ReasonKind.NO_LIMIT
    reasons = tuple(
        Reason(_REASONS.get(each.why, unknown), each.text, optional(each, "name"), optional(each, "until_ms"))
        for each in message.reasons
    )
    return SegmentReason(get_segment(message.segment), message.goes, reasons)


def get_finding(message: pb.Finding) -> Finding:
    """The finding in a message. A problem of a later version counts as an unreadable record, which nothing repairs."""
    return Finding(
        _PROBLEMS.get(message.problem, Problem.NODE_UNREADABLE),
        message.stream,
        message.text,
        optional(message, "segment"),
        optional(message, "ledger"),
        message.repaired,
    )


def _cut() -> StreamUnavailableError:
    return StreamUnavailableError("the gateway ended the call before it had told everything: ask again")
