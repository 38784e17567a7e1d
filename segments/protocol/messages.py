"""Values of the library as messages of the protocol, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any, Final

from segments.arguments import checked_seek
from segments.config import StreamConfig, from_stored_table
from segments.errors import SeekFormatError, StreamConfigError
from segments.position import EARLIEST, LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.read import Activity
from segments.record import (
    NO_HEADERS,
    AppendResult,
    Gap,
    GapKind,
    ProducerRef,
    Record,
    StoredRecord,
    from_ms,
    to_ms,
)
from segments.seek import Ago, AtCursor, AtSeqNo, AtTime, AtTxId, Seek

_GAP_KINDS: Final = {
    GapKind.TRUNCATED: pb.GAP_KIND_TRUNCATED,
    GapKind.EXPIRED: pb.GAP_KIND_EXPIRED,
    GapKind.CORRUPT: pb.GAP_KIND_CORRUPT,
    GapKind.LOST: pb.GAP_KIND_LOST,
    GapKind.FILTERED: pb.GAP_KIND_FILTERED,
}
NO_SEQ_NO: Final = -1
"""In an append's result: the number is not remembered."""

_KINDS_OF_GAPS: Final = {number: kind for kind, number in _GAP_KINDS.items()}

_ACTIVITIES: Final = {
    Activity.READING: pb.ACTIVITY_READING,
    Activity.IDLE: pb.ACTIVITY_IDLE,
    Activity.STUCK: pb.ACTIVITY_STUCK,
}
"""A reader that has ended asks nobody."""

_NAMED_ACTIVITIES: Final[dict[int, Activity]] = {number: activity for activity, number in _ACTIVITIES.items()}


# -- positions and seeks ---------------------------------------------------------------------------------


def put_position(position: Position) -> pb.Position:
    """The message of a position."""
    return pb.Position(segment=position.segment, entry=position.entry, slot=position.slot)


def get_position(message: pb.Position) -> Position:
    """The position in a message."""
    return Position(message.segment, message.entry, message.slot)


def put_seek(seek: Seek) -> pb.Seek:
    """The message of a seek. Raises: SeekFormatError: it is none."""
    seek = checked_seek(seek)
    match seek:
        case Position():
            if seek == EARLIEST:
                return pb.Seek(earliest=pb.Empty())
            if seek == LATEST:
                return pb.Seek(latest=pb.Empty())
            return pb.Seek(position=put_position(seek))
        case AtTxId():
            return pb.Seek(txid=seek.txid)
        case AtTime():
            return pb.Seek(event_time_ms=to_ms(seek.time)) if seek.event else pb.Seek(time_ms=to_ms(seek.time))
        case AtSeqNo():
            return pb.Seek(seq_no=seek.seq_no)
        case Ago():
            return pb.Seek(ago_ms=seek.age // timedelta(milliseconds=1))
        case AtCursor():
            return pb.Seek(cursor=seek.name)


def get_seek(message: pb.Seek, default: Seek | None = None) -> Seek:
    """The seek in a message; ``default`` if it names none.

    Raises:
        SeekFormatError: it names none, and there is no default; or a time that cannot be.
    """
    try:
        match message.WhichOneof("place"):
            case "position":
                return get_position(message.position)
            case "txid":
                return AtTxId(message.txid)
            case "time_ms":
                return AtTime(from_ms(message.time_ms))
            case "event_time_ms":
                return AtTime(from_ms(message.event_time_ms), event=True)
            case "seq_no":
                return AtSeqNo(message.seq_no)
            case "ago_ms":
                return Ago(timedelta(milliseconds=message.ago_ms))
            case "earliest":
                return EARLIEST
            case "latest":
                return LATEST
            case "cursor":
                return AtCursor(message.cursor)
    except OverflowError as error:
        raise SeekFormatError(f"the position {message} has a time that cannot be") from error
    if default is None:
        raise SeekFormatError("the call names no position in the stream: set one field of Seek")
    return default


# -- records ---------------------------------------------------------------------------------------------


def put_record(record: Record) -> pb.Record:
    """The message of a record to append."""
    return pb.Record(
        value=record.value,
        key=record.key,
        headers=put_headers(record.headers),
        txid=record.txid,
        event_time_ms=None if record.event_time is None else to_ms(record.event_time),
    )


def get_record(message: pb.Record) -> Record:
    """The record in a message.

    Raises:
        SeekFormatError: its event time cannot be. StreamConfigError: two headers have the same name.
    """
    try:
        return Record(
            message.value,
            message.txid if message.HasField("txid") else None,
            message.key if message.HasField("key") else None,
            get_headers(message.headers),
            from_ms(message.event_time_ms) if message.HasField("event_time_ms") else None,
        )
    except OverflowError as error:
        raise SeekFormatError(f"a record's event time cannot be: {message.event_time_ms} ms since 1970") from error


def put_headers(headers: Mapping[str, bytes]) -> list[pb.Header]:
    """The messages of headers."""
    return [pb.Header(name=name, value=value) for name, value in headers.items()] if headers else []


def get_headers(messages: Sequence[pb.Header]) -> Mapping[str, bytes]:
    """The headers in messages. Raises: StreamConfigError: two have the same name."""
    if not messages:
        return NO_HEADERS
    found: dict[str, bytes] = {}
    for header in messages:
        if header.name in found:
            raise StreamConfigError(f"a record has the header {header.name} more than once")
        found[header.name] = header.value
    return found


def put_stored(record: StoredRecord) -> pb.StoredRecord:
    """The message of a record that was read."""
    position, producer = record.position, record.producer
    return pb.StoredRecord(
        record=pb.Record(
            value=record.value,
            key=record.key,
            headers=put_headers(record.headers),
            txid=record.txid,
            event_time_ms=record.event_ms,
        ),
        position=pb.Position(segment=position.segment, entry=position.entry, slot=position.slot),
        seq_no=record.seq_no,
        append_time_ms=record.append_ms,
        producer=None if producer is None else put_producer(producer),
    )


def get_stored(message: pb.StoredRecord) -> StoredRecord:
    """The record that was read in a message."""
    record = message.record
    return StoredRecord(
        get_position(message.position),
        message.seq_no,
        record.value,
        record.txid if record.HasField("txid") else None,
        record.key if record.HasField("key") else None,
        get_headers(record.headers),
        record.event_time_ms if record.HasField("event_time_ms") else None,
        message.append_time_ms,
        get_producer(message.producer) if message.HasField("producer") else None,
    )


def put_producer(producer: ProducerRef) -> pb.ProducerRef:
    """The message of a producer and sequence."""
    return pb.ProducerRef(name=producer.name, epoch=producer.epoch, sequence=producer.sequence)


def get_producer(message: pb.ProducerRef) -> ProducerRef:
    """The producer and sequence in a message."""
    return ProducerRef(message.name, message.epoch, message.sequence)


def put_batch(records: Iterable[StoredRecord]) -> pb.RecordBatch:
    """The message of records that were read together."""
    return pb.RecordBatch(records=[put_stored(record) for record in records])


def put_activity(activity: Activity) -> pb.Activity:
    """The number of what a reader is doing."""
    return _ACTIVITIES[activity]


def get_activity(number: int) -> Activity:
    """What a reader is doing; a number of a later version stands for reading."""
    return _NAMED_ACTIVITIES.get(number, Activity.READING)


def put_gap(gap: Gap) -> pb.Gap:
    """The message of a gap."""
    return pb.Gap(
        first=put_position(gap.first),
        last=put_position(gap.last),
        kind=_GAP_KINDS[gap.kind],
        records=gap.records,
        detail=gap.detail,
    )


def get_gap(message: pb.Gap) -> Gap:
    """The gap in a message. A kind of a later version counts as lost."""
    return Gap(
        get_position(message.first),
        get_position(message.last),
        _KINDS_OF_GAPS.get(message.kind, GapKind.LOST),
        message.records if message.HasField("records") else None,
        message.detail,
    )


# -- appends ---------------------------------------------------------------------------------------------


def put_result(result: AppendResult) -> pb.AppendResult:
    """The message of an append's result."""
    return pb.AppendResult(
        position=put_position(result.position),
        last=put_position(result.last),
        seq_no=NO_SEQ_NO if result.seq_no is None else result.seq_no,
        txid=result.txid,
        duplicate=result.duplicate,
    )


def get_result(message: pb.AppendResult) -> AppendResult:
    """The result in a message."""
    return AppendResult(
        get_position(message.position),
        get_position(message.last),
        None if message.seq_no == NO_SEQ_NO else message.seq_no,
        message.txid if message.HasField("txid") else None,
        message.duplicate,
    )


# -- settings --------------------------------------------------------------------------------------------


def put_settings(config: StreamConfig) -> pb.Settings:
    """The message of all settings."""
    return pb.Settings(values={name: json.dumps(value) for name, value in _flat(asdict(config), "")})


def get_settings(message: pb.Settings) -> StreamConfig:
    """The settings in a message; those that are not there have their defaults.

    Raises:
        StreamConfigError: a setting is unknown, or cannot have this value.
    """
    return from_stored_table(get_patch(message))


def get_patch(message: pb.Settings) -> dict[str, Any]:
    """The settings in a message, as a table of dotted names.

    Raises:
        StreamConfigError: a value is no JSON.
    """
    table = {}
    for name, text in message.values.items():
        try:
            table[name] = json.loads(text)
        except ValueError as error:
            raise StreamConfigError(f'the value of {name} must be JSON, for example 60 or "lz4", not {text}') from error
    return table


def put_patch(patch: Mapping[str, object]) -> pb.Settings:
    """The message of some settings."""
    return pb.Settings(values={name: json.dumps(value) for name, value in _flat(patch, "")})


def _flat(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
