"""What gateways tell of the life of streams: holds, retention, findings, overviews. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from segments.checks.findings import Finding, Problem
from segments.checks.overview import StreamOverview
from segments.directory.directory import NameChange, NamespaceEvent, StreamInfo
from segments.errors import StreamUnavailableError
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_position, get_settings
from segments.protocol.segment_messages import get_segment, optional
from segments.retention.holds import Hold
from segments.retention.retention import CursorPlace, Reason, ReasonKind, RetentionReport, SegmentReason
from segments.retention.retention_pass import PassResult

_REASONS: Final = {why.value: why for why in ReasonKind}
_PROBLEMS: Final = {problem.value: problem for problem in Problem}
_CHANGES: Final = {
    pb.NamespaceEvent.KIND_CREATED: NameChange.CREATED,
    pb.NamespaceEvent.KIND_DELETED: NameChange.DELETED,
    pb.NamespaceEvent.KIND_RENAMED: NameChange.RENAMED,
}


def get_hold(message: pb.Hold) -> Hold:
    """The hold in a message."""
    start, stop = get_position(message.start), get_position(message.stop)
    return Hold(message.name, start, stop, optional(message, "until_ms"), message.created_ms, message.note)


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
        tuple(CursorPlace(each.name, get_position(each.needs)) for message in messages for each in message.cursors),
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
        _PROBLEMS.get(message.problem, Problem.RECORD_UNREADABLE),
        message.stream,
        message.text,
        optional(message, "segment"),
        optional(message, "ledger"),
        message.repaired,
    )


def _cut() -> StreamUnavailableError:
    return StreamUnavailableError("the gateway ended the call before it had told everything: ask again")
