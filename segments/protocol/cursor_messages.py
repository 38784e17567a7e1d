"""Cursors as messages of the protocol, and back. Pure."""

from __future__ import annotations

from typing import Final

from segments.cursors.acked_ranges import FrozenRanges, Mark
from segments.cursors.cursor_state import Acknowledgement, CursorChange, CursorState, CursorVersion
from segments.errors import PositionFormatError
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_position, put_position

NUMBER_UNKNOWN: Final = -1
"""In a mark: an older gateway told no sequence number."""

_CHANGES: Final = {
    CursorChange.CREATED: pb.CURSOR_CHANGE_CREATED,
    CursorChange.ACKNOWLEDGED: pb.CURSOR_CHANGE_ACKNOWLEDGED,
    CursorChange.RESET: pb.CURSOR_CHANGE_RESET,
    CursorChange.RESTORED: pb.CURSOR_CHANGE_RESTORED,
}
_KINDS_OF_CHANGES: Final = {number: change for change, number in _CHANGES.items()}


def put_ranges(ranges: FrozenRanges) -> pb.AckedRanges:
    """The message of acknowledged ranges."""
    return pb.AckedRanges(
        first=ranges.firsts,
        end=ranges.ends,
        segment=[after.segment for after in ranges.afters],
        entry=[after.entry for after in ranges.afters],
        slot=[after.slot for after in ranges.afters],
    )


def get_ranges(message: pb.AckedRanges) -> FrozenRanges:
    """The ranges in a message.

    Raises:
        PositionFormatError: its columns do not fit each other, or a range is empty.
    """
    columns = (message.first, message.end, message.segment, message.entry, message.slot)
    if len(set(map(len, columns))) != 1:
        raise PositionFormatError("the columns of acknowledged ranges have different lengths")
    if not all(0 <= first < end for first, end in zip(message.first, message.end, strict=True)):
        raise PositionFormatError("an acknowledged range has no record, or begins before the first one")
    afters = map(Position, message.segment, message.entry, message.slot)
    return FrozenRanges(tuple(message.first), tuple(message.end), tuple(afters))


def put_acknowledgements(changes: list[Acknowledgement]) -> pb.AckedRanges:
    """The message of records that are done. Each change has a first record."""
    return put_ranges(
        FrozenRanges(
            tuple(0 if each.first is None else each.first for each in changes),
            tuple(each.mark.seq_no for each in changes),
            tuple(each.mark.position for each in changes),
        )
    )


def get_acknowledgements(message: pb.AckedRanges) -> list[Acknowledgement]:
    """The records that are done, in a message. Raises: PositionFormatError."""
    return [Acknowledgement(Mark(each.end, each.after), each.first) for each in get_ranges(message)]


def put_cursor(name: str, state: CursorState, *, claimed: bool = False) -> pb.CursorInfo:
    """The message of a cursor; with ``claimed`` with what its owner shows."""
    return pb.CursorInfo(
        name=name,
        position=put_position(state.mark.position),
        version=state.version.number,
        seq_no=state.mark.seq_no,
        ranges=put_ranges(state.ranges),
        epoch=state.epoch,
        owner=state.owner,
        properties=dict(state.properties),
        changed_ms=state.version.changed_ms,
        change=_CHANGES[state.version.change],
        claim=pb.CursorClaim(epoch=state.epoch, nonce=state.nonce) if claimed else None,
        by=state.by,
    )


def get_cursor(message: pb.CursorInfo) -> CursorState:
    """The state in a message, without its history. An older gateway tells only position and version."""
    seq_no = message.seq_no if message.HasField("seq_no") else NUMBER_UNKNOWN
    version = CursorVersion(
        message.version,
        message.changed_ms,
        _KINDS_OF_CHANGES.get(message.change, CursorChange.ACKNOWLEDGED),
        Mark(seq_no, get_position(message.position)),
        get_ranges(message.ranges),
    )
    nonce, properties = message.claim.nonce, dict(message.properties)
    return CursorState(version, message.epoch, message.owner, nonce, properties, by=message.by)


def put_version(version: CursorVersion) -> pb.CursorVersion:
    """The message of a version of a cursor."""
    return pb.CursorVersion(
        version=version.number,
        position=put_position(version.mark.position),
        time_ms=version.changed_ms,
        seq_no=version.mark.seq_no,
        ranges=put_ranges(version.ranges),
        change=_CHANGES[version.change],
    )


def get_version(message: pb.CursorVersion) -> CursorVersion:
    """The version in a message."""
    seq_no = message.seq_no if message.HasField("seq_no") else NUMBER_UNKNOWN
    return CursorVersion(
        message.version,
        message.time_ms,
        _KINDS_OF_CHANGES.get(message.change, CursorChange.ACKNOWLEDGED),
        Mark(seq_no, get_position(message.position)),
        get_ranges(message.ranges),
    )
