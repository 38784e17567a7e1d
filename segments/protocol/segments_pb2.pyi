from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GapKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GAP_KIND_UNSPECIFIED: _ClassVar[GapKind]
    GAP_KIND_TRUNCATED: _ClassVar[GapKind]
    GAP_KIND_EXPIRED: _ClassVar[GapKind]
    GAP_KIND_CORRUPT: _ClassVar[GapKind]
    GAP_KIND_LOST: _ClassVar[GapKind]
    GAP_KIND_FILTERED: _ClassVar[GapKind]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_NOT_APPLIED: _ClassVar[Outcome]
    OUTCOME_APPLIED: _ClassVar[Outcome]
    OUTCOME_UNKNOWN: _ClassVar[Outcome]

class OnGap(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_GAP_RAISE: _ClassVar[OnGap]
    ON_GAP_YIELD: _ClassVar[OnGap]

class Activity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTIVITY_UNSPECIFIED: _ClassVar[Activity]
    ACTIVITY_READING: _ClassVar[Activity]
    ACTIVITY_IDLE: _ClassVar[Activity]
    ACTIVITY_STUCK: _ClassVar[Activity]

class CursorChange(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CURSOR_CHANGE_UNSPECIFIED: _ClassVar[CursorChange]
    CURSOR_CHANGE_CREATED: _ClassVar[CursorChange]
    CURSOR_CHANGE_ACKNOWLEDGED: _ClassVar[CursorChange]
    CURSOR_CHANGE_RESET: _ClassVar[CursorChange]
    CURSOR_CHANGE_RESTORED: _ClassVar[CursorChange]
GAP_KIND_UNSPECIFIED: GapKind
GAP_KIND_TRUNCATED: GapKind
GAP_KIND_EXPIRED: GapKind
GAP_KIND_CORRUPT: GapKind
GAP_KIND_LOST: GapKind
GAP_KIND_FILTERED: GapKind
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_NOT_APPLIED: Outcome
OUTCOME_APPLIED: Outcome
OUTCOME_UNKNOWN: Outcome
ON_GAP_RAISE: OnGap
ON_GAP_YIELD: OnGap
ACTIVITY_UNSPECIFIED: Activity
ACTIVITY_READING: Activity
ACTIVITY_IDLE: Activity
ACTIVITY_STUCK: Activity
CURSOR_CHANGE_UNSPECIFIED: CursorChange
CURSOR_CHANGE_CREATED: CursorChange
CURSOR_CHANGE_ACKNOWLEDGED: CursorChange
CURSOR_CHANGE_RESET: CursorChange
CURSOR_CHANGE_RESTORED: CursorChange

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Position(_message.Message):
    __slots__ = ("segment", "entry", "slot")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    segment: int
    entry: int
    slot: int
    def __init__(self, segment: _Optional[int] = ..., entry: _Optional[int] = ..., slot: _Optional[int] = ...) -> None: ...

class Seek(_message.Message):
    __slots__ = ("position", "txid", "time_ms", "seq_no", "ago_ms", "earliest", "latest", "cursor", "event_time_ms")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    AGO_MS_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    position: Position
    txid: int
    time_ms: int
    seq_no: int
    ago_ms: int
    earliest: Empty
    latest: Empty
    cursor: str
    event_time_ms: int
    def __init__(self, position: _Optional[_Union[Position, _Mapping]] = ..., txid: _Optional[int] = ..., time_ms: _Optional[int] = ..., seq_no: _Optional[int] = ..., ago_ms: _Optional[int] = ..., earliest: _Optional[_Union[Empty, _Mapping]] = ..., latest: _Optional[_Union[Empty, _Mapping]] = ..., cursor: _Optional[str] = ..., event_time_ms: _Optional[int] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: bytes
    def __init__(self, name: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("value", "key", "headers", "txid", "event_time_ms")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    value: bytes
    key: bytes
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    txid: int
    event_time_ms: int
    def __init__(self, value: _Optional[bytes] = ..., key: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ..., txid: _Optional[int] = ..., event_time_ms: _Optional[int] = ...) -> None: ...

class ProducerRef(_message.Message):
    __slots__ = ("name", "epoch", "sequence")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    epoch: int
    sequence: int
    def __init__(self, name: _Optional[str] = ..., epoch: _Optional[int] = ..., sequence: _Optional[int] = ...) -> None: ...

class StoredRecord(_message.Message):
    __slots__ = ("record", "position", "seq_no", "append_time_ms", "producer")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    APPEND_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    record: Record
    position: Position
    seq_no: int
    append_time_ms: int
    producer: ProducerRef
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ..., position: _Optional[_Union[Position, _Mapping]] = ..., seq_no: _Optional[int] = ..., append_time_ms: _Optional[int] = ..., producer: _Optional[_Union[ProducerRef, _Mapping]] = ...) -> None: ...

class Gap(_message.Message):
    __slots__ = ("first", "last", "kind", "records", "detail")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    first: Position
    last: Position
    kind: GapKind
    records: int
    detail: str
    def __init__(self, first: _Optional[_Union[Position, _Mapping]] = ..., last: _Optional[_Union[Position, _Mapping]] = ..., kind: _Optional[_Union[GapKind, str]] = ..., records: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...

class SegmentError(_message.Message):
    __slots__ = ("code", "message", "retryable", "outcome", "stream", "position", "owner", "retry_after_ms", "numbers")
    class NumbersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retryable: bool
    outcome: Outcome
    stream: str
    position: Position
    owner: str
    retry_after_ms: int
    numbers: _containers.ScalarMap[str, int]
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retryable: _Optional[bool] = ..., outcome: _Optional[_Union[Outcome, str]] = ..., stream: _Optional[str] = ..., position: _Optional[_Union[Position, _Mapping]] = ..., owner: _Optional[str] = ..., retry_after_ms: _Optional[int] = ..., numbers: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Settings(_message.Message):
    __slots__ = ("values",)
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.ScalarMap[str, str]
    def __init__(self, values: _Optional[_Mapping[str, str]] = ...) -> None: ...

class CreateStreamRequest(_message.Message):
    __slots__ = ("stream", "settings", "exist_ok")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    EXIST_OK_FIELD_NUMBER: _ClassVar[int]
    stream: str
    settings: Settings
    exist_ok: bool
    def __init__(self, stream: _Optional[str] = ..., settings: _Optional[_Union[Settings, _Mapping]] = ..., exist_ok: _Optional[bool] = ...) -> None: ...

class StreamInfo(_message.Message):
    __slots__ = ("stream", "stream_id", "settings", "sealed", "segments", "start", "writer", "records", "bytes", "first", "epoch", "truncated")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    stream: str
    stream_id: str
    settings: Settings
    sealed: bool
    segments: int
    start: Position
    writer: str
    records: int
    bytes: int
    first: Position
    epoch: int
    truncated: int
    def __init__(self, stream: _Optional[str] = ..., stream_id: _Optional[str] = ..., settings: _Optional[_Union[Settings, _Mapping]] = ..., sealed: _Optional[bool] = ..., segments: _Optional[int] = ..., start: _Optional[_Union[Position, _Mapping]] = ..., writer: _Optional[str] = ..., records: _Optional[int] = ..., bytes: _Optional[int] = ..., first: _Optional[_Union[Position, _Mapping]] = ..., epoch: _Optional[int] = ..., truncated: _Optional[int] = ...) -> None: ...

class GetStreamRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class ListStreamsRequest(_message.Message):
    __slots__ = ("prefix",)
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: _Optional[str] = ...) -> None: ...

class WatchStreamsRequest(_message.Message):
    __slots__ = ("prefix",)
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: _Optional[str] = ...) -> None: ...

class NamespaceEvent(_message.Message):
    __slots__ = ("kind", "stream", "stream_id", "former")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[NamespaceEvent.Kind]
        KIND_CREATED: _ClassVar[NamespaceEvent.Kind]
        KIND_DELETED: _ClassVar[NamespaceEvent.Kind]
        KIND_RENAMED: _ClassVar[NamespaceEvent.Kind]
    KIND_UNSPECIFIED: NamespaceEvent.Kind
    KIND_CREATED: NamespaceEvent.Kind
    KIND_DELETED: NamespaceEvent.Kind
    KIND_RENAMED: NamespaceEvent.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    FORMER_FIELD_NUMBER: _ClassVar[int]
    kind: NamespaceEvent.Kind
    stream: str
    stream_id: str
    former: str
    def __init__(self, kind: _Optional[_Union[NamespaceEvent.Kind, str]] = ..., stream: _Optional[str] = ..., stream_id: _Optional[str] = ..., former: _Optional[str] = ...) -> None: ...

class UpdateConfigRequest(_message.Message):
    __slots__ = ("stream", "settings")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    settings: Settings
    def __init__(self, stream: _Optional[str] = ..., settings: _Optional[_Union[Settings, _Mapping]] = ...) -> None: ...

class RenameStreamRequest(_message.Message):
    __slots__ = ("stream", "new_name")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NEW_NAME_FIELD_NUMBER: _ClassVar[int]
    stream: str
    new_name: str
    def __init__(self, stream: _Optional[str] = ..., new_name: _Optional[str] = ...) -> None: ...

class DeleteStreamRequest(_message.Message):
    __slots__ = ("stream", "missing_ok", "force", "stream_id")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    stream: str
    missing_ok: bool
    force: bool
    stream_id: str
    def __init__(self, stream: _Optional[str] = ..., missing_ok: _Optional[bool] = ..., force: _Optional[bool] = ..., stream_id: _Optional[str] = ...) -> None: ...

class SealRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class PositionReply(_message.Message):
    __slots__ = ("position",)
    POSITION_FIELD_NUMBER: _ClassVar[int]
    position: Position
    def __init__(self, position: _Optional[_Union[Position, _Mapping]] = ...) -> None: ...

class GetOwnerRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class OwnerInfo(_message.Message):
    __slots__ = ("address", "here", "epoch")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    HERE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    address: str
    here: bool
    epoch: int
    def __init__(self, address: _Optional[str] = ..., here: _Optional[bool] = ..., epoch: _Optional[int] = ...) -> None: ...

class ShowStreamRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class StreamDetails(_message.Message):
    __slots__ = ("info", "location", "last", "next_ledger", "removing", "at_ms")
    INFO_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    NEXT_LEDGER_FIELD_NUMBER: _ClassVar[int]
    REMOVING_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    info: StreamInfo
    location: str
    last: Position
    next_ledger: int
    removing: _containers.RepeatedScalarFieldContainer[int]
    at_ms: int
    def __init__(self, info: _Optional[_Union[StreamInfo, _Mapping]] = ..., location: _Optional[str] = ..., last: _Optional[_Union[Position, _Mapping]] = ..., next_ledger: _Optional[int] = ..., removing: _Optional[_Iterable[int]] = ..., at_ms: _Optional[int] = ...) -> None: ...

class CursorPlace(_message.Message):
    __slots__ = ("name", "needs")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    needs: Position
    def __init__(self, name: _Optional[str] = ..., needs: _Optional[_Union[Position, _Mapping]] = ...) -> None: ...

class ShowReply(_message.Message):
    __slots__ = ("details", "segments", "cursors", "holds")
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    CURSORS_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    details: StreamDetails
    segments: _containers.RepeatedCompositeFieldContainer[SegmentInfo]
    cursors: _containers.RepeatedCompositeFieldContainer[CursorPlace]
    holds: _containers.RepeatedCompositeFieldContainer[Hold]
    def __init__(self, details: _Optional[_Union[StreamDetails, _Mapping]] = ..., segments: _Optional[_Iterable[_Union[SegmentInfo, _Mapping]]] = ..., cursors: _Optional[_Iterable[_Union[CursorPlace, _Mapping]]] = ..., holds: _Optional[_Iterable[_Union[Hold, _Mapping]]] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("stream", "no_scan", "repair", "no_orphans", "older_than_s")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NO_SCAN_FIELD_NUMBER: _ClassVar[int]
    REPAIR_FIELD_NUMBER: _ClassVar[int]
    NO_ORPHANS_FIELD_NUMBER: _ClassVar[int]
    OLDER_THAN_S_FIELD_NUMBER: _ClassVar[int]
    stream: str
    no_scan: bool
    repair: bool
    no_orphans: bool
    older_than_s: float
    def __init__(self, stream: _Optional[str] = ..., no_scan: _Optional[bool] = ..., repair: _Optional[bool] = ..., no_orphans: _Optional[bool] = ..., older_than_s: _Optional[float] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("problem", "stream", "text", "segment", "ledger", "repaired")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_FIELD_NUMBER: _ClassVar[int]
    problem: str
    stream: str
    text: str
    segment: int
    ledger: int
    repaired: bool
    def __init__(self, problem: _Optional[str] = ..., stream: _Optional[str] = ..., text: _Optional[str] = ..., segment: _Optional[int] = ..., ledger: _Optional[int] = ..., repaired: _Optional[bool] = ...) -> None: ...

class CheckReply(_message.Message):
    __slots__ = ("findings",)
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    def __init__(self, findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("stream", "start", "stop")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    stream: str
    start: Seek
    stop: Seek
    def __init__(self, stream: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., stop: _Optional[_Union[Seek, _Mapping]] = ...) -> None: ...

class ExportReply(_message.Message):
    __slots__ = ("chunk", "exported")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    EXPORTED_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    exported: Exported
    def __init__(self, chunk: _Optional[bytes] = ..., exported: _Optional[_Union[Exported, _Mapping]] = ...) -> None: ...

class Totals(_message.Message):
    __slots__ = ("segments", "entries", "bytes")
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    segments: int
    entries: int
    bytes: int
    def __init__(self, segments: _Optional[int] = ..., entries: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Exported(_message.Message):
    __slots__ = ("start", "end", "totals")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    start: Position
    end: Position
    totals: Totals
    def __init__(self, start: _Optional[_Union[Position, _Mapping]] = ..., end: _Optional[_Union[Position, _Mapping]] = ..., totals: _Optional[_Union[Totals, _Mapping]] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ("open", "chunk")
    class Open(_message.Message):
        __slots__ = ("stream", "settings", "dry_run")
        STREAM_FIELD_NUMBER: _ClassVar[int]
        SETTINGS_FIELD_NUMBER: _ClassVar[int]
        DRY_RUN_FIELD_NUMBER: _ClassVar[int]
        stream: str
        settings: Settings
        dry_run: bool
        def __init__(self, stream: _Optional[str] = ..., settings: _Optional[_Union[Settings, _Mapping]] = ..., dry_run: _Optional[bool] = ...) -> None: ...
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    open: ImportRequest.Open
    chunk: bytes
    def __init__(self, open: _Optional[_Union[ImportRequest.Open, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class ImportReply(_message.Message):
    __slots__ = ("imported", "stop", "ready")
    IMPORTED_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    imported: Imported
    stop: Empty
    ready: Empty
    def __init__(self, imported: _Optional[_Union[Imported, _Mapping]] = ..., stop: _Optional[_Union[Empty, _Mapping]] = ..., ready: _Optional[_Union[Empty, _Mapping]] = ...) -> None: ...

class Imported(_message.Message):
    __slots__ = ("stream", "stream_id", "start", "segments", "records", "totals")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    stream_id: str
    start: Position
    segments: int
    records: int
    totals: Totals
    def __init__(self, stream: _Optional[str] = ..., stream_id: _Optional[str] = ..., start: _Optional[_Union[Position, _Mapping]] = ..., segments: _Optional[int] = ..., records: _Optional[int] = ..., totals: _Optional[_Union[Totals, _Mapping]] = ...) -> None: ...

class BatchKey(_message.Message):
    __slots__ = ("app", "query", "batch", "start", "run")
    APP_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    app: str
    query: str
    batch: int
    start: int
    run: str
    def __init__(self, app: _Optional[str] = ..., query: _Optional[str] = ..., batch: _Optional[int] = ..., start: _Optional[int] = ..., run: _Optional[str] = ...) -> None: ...

class StagedRows(_message.Message):
    __slots__ = ("staging", "stream_id", "records", "ledger", "entries")
    STAGING_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    staging: str
    stream_id: str
    records: int
    ledger: SegmentInfo
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, staging: _Optional[str] = ..., stream_id: _Optional[str] = ..., records: _Optional[int] = ..., ledger: _Optional[_Union[SegmentInfo, _Mapping]] = ..., entries: _Optional[_Iterable[bytes]] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("stream", "key", "rows")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    key: BatchKey
    rows: _containers.RepeatedCompositeFieldContainer[StagedRows]
    def __init__(self, stream: _Optional[str] = ..., key: _Optional[_Union[BatchKey, _Mapping]] = ..., rows: _Optional[_Iterable[_Union[StagedRows, _Mapping]]] = ...) -> None: ...

class PublishReply(_message.Message):
    __slots__ = ("number", "records", "first_seq_no", "already_there")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    ALREADY_THERE_FIELD_NUMBER: _ClassVar[int]
    number: int
    records: int
    first_seq_no: int
    already_there: bool
    def __init__(self, number: _Optional[int] = ..., records: _Optional[int] = ..., first_seq_no: _Optional[int] = ..., already_there: _Optional[bool] = ...) -> None: ...

class AppendRequest(_message.Message):
    __slots__ = ("stream", "records", "values", "producer", "expected_tail", "crc32c", "monotonic")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_TAIL_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    MONOTONIC_FIELD_NUMBER: _ClassVar[int]
    stream: str
    records: _containers.RepeatedCompositeFieldContainer[Record]
    values: _containers.RepeatedScalarFieldContainer[bytes]
    producer: ProducerRef
    expected_tail: Position
    crc32c: int
    monotonic: bool
    def __init__(self, stream: _Optional[str] = ..., records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., values: _Optional[_Iterable[bytes]] = ..., producer: _Optional[_Union[ProducerRef, _Mapping]] = ..., expected_tail: _Optional[_Union[Position, _Mapping]] = ..., crc32c: _Optional[int] = ..., monotonic: _Optional[bool] = ...) -> None: ...

class AppendResult(_message.Message):
    __slots__ = ("position", "last", "txid", "duplicate", "seq_no")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    TXID_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    position: Position
    last: Position
    txid: int
    duplicate: bool
    seq_no: int
    def __init__(self, position: _Optional[_Union[Position, _Mapping]] = ..., last: _Optional[_Union[Position, _Mapping]] = ..., txid: _Optional[int] = ..., duplicate: _Optional[bool] = ..., seq_no: _Optional[int] = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("records", "bytes")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    records: int
    bytes: int
    def __init__(self, records: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class AppendReply(_message.Message):
    __slots__ = ("result", "error", "window")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    result: AppendResult
    error: SegmentError
    window: Window
    def __init__(self, result: _Optional[_Union[AppendResult, _Mapping]] = ..., error: _Optional[_Union[SegmentError, _Mapping]] = ..., window: _Optional[_Union[Window, _Mapping]] = ...) -> None: ...

class OpenProducerRequest(_message.Message):
    __slots__ = ("stream", "producer", "monotonic", "epoch")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    MONOTONIC_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    stream: str
    producer: str
    monotonic: bool
    epoch: int
    def __init__(self, stream: _Optional[str] = ..., producer: _Optional[str] = ..., monotonic: _Optional[bool] = ..., epoch: _Optional[int] = ...) -> None: ...

class ProducerState(_message.Message):
    __slots__ = ("epoch", "last_sequence", "maybe_forgotten")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MAYBE_FORGOTTEN_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    last_sequence: int
    maybe_forgotten: bool
    def __init__(self, epoch: _Optional[int] = ..., last_sequence: _Optional[int] = ..., maybe_forgotten: _Optional[bool] = ...) -> None: ...

class GetOutcomeRequest(_message.Message):
    __slots__ = ("stream", "producer", "sequence")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    producer: str
    sequence: int
    def __init__(self, stream: _Optional[str] = ..., producer: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class OutcomeReply(_message.Message):
    __slots__ = ("outcome", "result")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    outcome: Outcome
    result: AppendResult
    def __init__(self, outcome: _Optional[_Union[Outcome, str]] = ..., result: _Optional[_Union[AppendResult, _Mapping]] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("stream", "start", "stop", "max_records", "on_gap", "undone_by", "entries")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    MAX_RECORDS_FIELD_NUMBER: _ClassVar[int]
    ON_GAP_FIELD_NUMBER: _ClassVar[int]
    UNDONE_BY_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    stream: str
    start: Seek
    stop: Seek
    max_records: int
    on_gap: OnGap
    undone_by: str
    entries: bool
    def __init__(self, stream: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., stop: _Optional[_Union[Seek, _Mapping]] = ..., max_records: _Optional[int] = ..., on_gap: _Optional[_Union[OnGap, str]] = ..., undone_by: _Optional[str] = ..., entries: _Optional[bool] = ...) -> None: ...

class Credits(_message.Message):
    __slots__ = ("records", "bytes")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    records: int
    bytes: int
    def __init__(self, records: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class TailRequest(_message.Message):
    __slots__ = ("open", "credits", "seek")
    class Open(_message.Message):
        __slots__ = ("stream", "start", "resume_token", "on_gap", "progress_ms", "undone_by", "entries")
        STREAM_FIELD_NUMBER: _ClassVar[int]
        START_FIELD_NUMBER: _ClassVar[int]
        RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
        ON_GAP_FIELD_NUMBER: _ClassVar[int]
        PROGRESS_MS_FIELD_NUMBER: _ClassVar[int]
        UNDONE_BY_FIELD_NUMBER: _ClassVar[int]
        ENTRIES_FIELD_NUMBER: _ClassVar[int]
        stream: str
        start: Seek
        resume_token: bytes
        on_gap: OnGap
        progress_ms: int
        undone_by: str
        entries: bool
        def __init__(self, stream: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., resume_token: _Optional[bytes] = ..., on_gap: _Optional[_Union[OnGap, str]] = ..., progress_ms: _Optional[int] = ..., undone_by: _Optional[str] = ..., entries: _Optional[bool] = ...) -> None: ...
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    SEEK_FIELD_NUMBER: _ClassVar[int]
    open: TailRequest.Open
    credits: Credits
    seek: Seek
    def __init__(self, open: _Optional[_Union[TailRequest.Open, _Mapping]] = ..., credits: _Optional[_Union[Credits, _Mapping]] = ..., seek: _Optional[_Union[Seek, _Mapping]] = ...) -> None: ...

class RecordBatch(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[StoredRecord]
    def __init__(self, records: _Optional[_Iterable[_Union[StoredRecord, _Mapping]]] = ...) -> None: ...

class EntrySlice(_message.Message):
    __slots__ = ("segment", "entry", "first", "end", "stored")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    segment: int
    entry: int
    first: int
    end: int
    stored: bytes
    def __init__(self, segment: _Optional[int] = ..., entry: _Optional[int] = ..., first: _Optional[int] = ..., end: _Optional[int] = ..., stored: _Optional[bytes] = ...) -> None: ...

class EntryBatch(_message.Message):
    __slots__ = ("slices",)
    SLICES_FIELD_NUMBER: _ClassVar[int]
    slices: _containers.RepeatedCompositeFieldContainer[EntrySlice]
    def __init__(self, slices: _Optional[_Iterable[_Union[EntrySlice, _Mapping]]] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("position", "caught_up")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    position: Position
    caught_up: bool
    def __init__(self, position: _Optional[_Union[Position, _Mapping]] = ..., caught_up: _Optional[bool] = ...) -> None: ...

class EndOfStream(_message.Message):
    __slots__ = ("position",)
    POSITION_FIELD_NUMBER: _ClassVar[int]
    position: Position
    def __init__(self, position: _Optional[_Union[Position, _Mapping]] = ...) -> None: ...

class ReadReply(_message.Message):
    __slots__ = ("batch", "gap", "progress", "end_of_stream", "entries", "resume_token", "generation")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    END_OF_STREAM_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    batch: RecordBatch
    gap: Gap
    progress: Progress
    end_of_stream: EndOfStream
    entries: EntryBatch
    resume_token: bytes
    generation: int
    def __init__(self, batch: _Optional[_Union[RecordBatch, _Mapping]] = ..., gap: _Optional[_Union[Gap, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., end_of_stream: _Optional[_Union[EndOfStream, _Mapping]] = ..., entries: _Optional[_Union[EntryBatch, _Mapping]] = ..., resume_token: _Optional[bytes] = ..., generation: _Optional[int] = ...) -> None: ...

class FindRequest(_message.Message):
    __slots__ = ("stream", "seek")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SEEK_FIELD_NUMBER: _ClassVar[int]
    stream: str
    seek: Seek
    def __init__(self, stream: _Optional[str] = ..., seek: _Optional[_Union[Seek, _Mapping]] = ...) -> None: ...

class CountRequest(_message.Message):
    __slots__ = ("stream", "start", "stop")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    stream: str
    start: Seek
    stop: Seek
    def __init__(self, stream: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., stop: _Optional[_Union[Seek, _Mapping]] = ...) -> None: ...

class CountReply(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: int
    def __init__(self, records: _Optional[int] = ...) -> None: ...

class SplitsRequest(_message.Message):
    __slots__ = ("stream", "start", "stop", "target")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    stream: str
    start: Seek
    stop: Seek
    target: int
    def __init__(self, stream: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., stop: _Optional[_Union[Seek, _Mapping]] = ..., target: _Optional[int] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("start", "stop", "records", "bytes")
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    start: Position
    stop: Position
    records: int
    bytes: int
    def __init__(self, start: _Optional[_Union[Position, _Mapping]] = ..., stop: _Optional[_Union[Position, _Mapping]] = ..., records: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class SplitsReply(_message.Message):
    __slots__ = ("ranges",)
    RANGES_FIELD_NUMBER: _ClassVar[int]
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    def __init__(self, ranges: _Optional[_Iterable[_Union[Range, _Mapping]]] = ...) -> None: ...

class LagRequest(_message.Message):
    __slots__ = ("stream", "place", "last_append_ms")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    LAST_APPEND_MS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    place: Seek
    last_append_ms: int
    def __init__(self, stream: _Optional[str] = ..., place: _Optional[_Union[Seek, _Mapping]] = ..., last_append_ms: _Optional[int] = ...) -> None: ...

class LagReply(_message.Message):
    __slots__ = ("records", "bytes", "seconds")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    records: int
    bytes: int
    seconds: float
    def __init__(self, records: _Optional[int] = ..., bytes: _Optional[int] = ..., seconds: _Optional[float] = ...) -> None: ...

class ActivityRequest(_message.Message):
    __slots__ = ("stream", "place")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    place: Seek
    def __init__(self, stream: _Optional[str] = ..., place: _Optional[_Union[Seek, _Mapping]] = ...) -> None: ...

class ActivityReply(_message.Message):
    __slots__ = ("activity", "reason")
    ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    activity: Activity
    reason: str
    def __init__(self, activity: _Optional[_Union[Activity, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class SegmentInfo(_message.Message):
    __slots__ = ("number", "ledger_id", "completed", "start_seq_no", "records", "bytes", "created_ms", "completed_ms", "first_txid", "last_txid", "last", "last_entry", "epoch", "first_append_ms", "last_append_ms", "min_event_ms", "max_event_ms", "footer_entry")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    START_SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_TXID_FIELD_NUMBER: _ClassVar[int]
    LAST_TXID_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    LAST_ENTRY_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIRST_APPEND_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_APPEND_MS_FIELD_NUMBER: _ClassVar[int]
    MIN_EVENT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_EVENT_MS_FIELD_NUMBER: _ClassVar[int]
    FOOTER_ENTRY_FIELD_NUMBER: _ClassVar[int]
    number: int
    ledger_id: int
    completed: bool
    start_seq_no: int
    records: int
    bytes: int
    created_ms: int
    completed_ms: int
    first_txid: int
    last_txid: int
    last: Position
    last_entry: int
    epoch: int
    first_append_ms: int
    last_append_ms: int
    min_event_ms: int
    max_event_ms: int
    footer_entry: int
    def __init__(self, number: _Optional[int] = ..., ledger_id: _Optional[int] = ..., completed: _Optional[bool] = ..., start_seq_no: _Optional[int] = ..., records: _Optional[int] = ..., bytes: _Optional[int] = ..., created_ms: _Optional[int] = ..., completed_ms: _Optional[int] = ..., first_txid: _Optional[int] = ..., last_txid: _Optional[int] = ..., last: _Optional[_Union[Position, _Mapping]] = ..., last_entry: _Optional[int] = ..., epoch: _Optional[int] = ..., first_append_ms: _Optional[int] = ..., last_append_ms: _Optional[int] = ..., min_event_ms: _Optional[int] = ..., max_event_ms: _Optional[int] = ..., footer_entry: _Optional[int] = ...) -> None: ...

class ListSegmentsRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class RollRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class TruncateRequest(_message.Message):
    __slots__ = ("stream", "before", "dry_run", "up_to_holds")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    UP_TO_HOLDS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    before: Seek
    dry_run: bool
    up_to_holds: bool
    def __init__(self, stream: _Optional[str] = ..., before: _Optional[_Union[Seek, _Mapping]] = ..., dry_run: _Optional[bool] = ..., up_to_holds: _Optional[bool] = ...) -> None: ...

class TruncateReply(_message.Message):
    __slots__ = ("start", "segments", "records", "bytes", "held_by", "was")
    START_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    WAS_FIELD_NUMBER: _ClassVar[int]
    start: Position
    segments: _containers.RepeatedScalarFieldContainer[int]
    records: int
    bytes: int
    held_by: str
    was: Position
    def __init__(self, start: _Optional[_Union[Position, _Mapping]] = ..., segments: _Optional[_Iterable[int]] = ..., records: _Optional[int] = ..., bytes: _Optional[int] = ..., held_by: _Optional[str] = ..., was: _Optional[_Union[Position, _Mapping]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class SegmentReason(_message.Message):
    __slots__ = ("segment", "reason", "kept")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    segment: int
    reason: str
    kept: bool
    def __init__(self, segment: _Optional[int] = ..., reason: _Optional[str] = ..., kept: _Optional[bool] = ...) -> None: ...

class ApplyRetentionRequest(_message.Message):
    __slots__ = ("stream", "dry_run")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    stream: str
    dry_run: bool
    def __init__(self, stream: _Optional[str] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class RetentionReply(_message.Message):
    __slots__ = ("summary", "segments")
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    summary: RetentionSummary
    segments: _containers.RepeatedCompositeFieldContainer[SegmentFate]
    def __init__(self, summary: _Optional[_Union[RetentionSummary, _Mapping]] = ..., segments: _Optional[_Iterable[_Union[SegmentFate, _Mapping]]] = ...) -> None: ...

class RetentionSummary(_message.Message):
    __slots__ = ("start", "expired_cursors", "deleted_ledgers")
    START_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_CURSORS_FIELD_NUMBER: _ClassVar[int]
    DELETED_LEDGERS_FIELD_NUMBER: _ClassVar[int]
    start: Position
    expired_cursors: _containers.RepeatedScalarFieldContainer[str]
    deleted_ledgers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, start: _Optional[_Union[Position, _Mapping]] = ..., expired_cursors: _Optional[_Iterable[str]] = ..., deleted_ledgers: _Optional[_Iterable[int]] = ...) -> None: ...

class SegmentFate(_message.Message):
    __slots__ = ("segment", "goes", "reasons")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    GOES_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    segment: SegmentInfo
    goes: bool
    reasons: _containers.RepeatedCompositeFieldContainer[RetentionReason]
    def __init__(self, segment: _Optional[_Union[SegmentInfo, _Mapping]] = ..., goes: _Optional[bool] = ..., reasons: _Optional[_Iterable[_Union[RetentionReason, _Mapping]]] = ...) -> None: ...

class RetentionReason(_message.Message):
    __slots__ = ("why", "text", "name", "until_ms")
    WHY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    why: str
    text: str
    name: str
    until_ms: int
    def __init__(self, why: _Optional[str] = ..., text: _Optional[str] = ..., name: _Optional[str] = ..., until_ms: _Optional[int] = ...) -> None: ...

class PutHoldRequest(_message.Message):
    __slots__ = ("stream", "name", "start", "stop", "until_ms", "note")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    start: Seek
    stop: Seek
    until_ms: int
    note: str
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., stop: _Optional[_Union[Seek, _Mapping]] = ..., until_ms: _Optional[int] = ..., note: _Optional[str] = ...) -> None: ...

class Hold(_message.Message):
    __slots__ = ("name", "start", "stop", "until_ms", "note", "created_ms", "by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    start: Position
    stop: Position
    until_ms: int
    note: str
    created_ms: int
    by: str
    def __init__(self, name: _Optional[str] = ..., start: _Optional[_Union[Position, _Mapping]] = ..., stop: _Optional[_Union[Position, _Mapping]] = ..., until_ms: _Optional[int] = ..., note: _Optional[str] = ..., created_ms: _Optional[int] = ..., by: _Optional[str] = ...) -> None: ...

class ListHoldsRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class DeleteHoldRequest(_message.Message):
    __slots__ = ("stream", "name", "only")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ONLY_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    only: Hold
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., only: _Optional[_Union[Hold, _Mapping]] = ...) -> None: ...

class CursorClaim(_message.Message):
    __slots__ = ("epoch", "nonce", "ranges_max")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    RANGES_MAX_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    nonce: str
    ranges_max: int
    def __init__(self, epoch: _Optional[int] = ..., nonce: _Optional[str] = ..., ranges_max: _Optional[int] = ...) -> None: ...

class AckedRanges(_message.Message):
    __slots__ = ("first", "end", "segment", "entry", "slot")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    first: _containers.RepeatedScalarFieldContainer[int]
    end: _containers.RepeatedScalarFieldContainer[int]
    segment: _containers.RepeatedScalarFieldContainer[int]
    entry: _containers.RepeatedScalarFieldContainer[int]
    slot: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, first: _Optional[_Iterable[int]] = ..., end: _Optional[_Iterable[int]] = ..., segment: _Optional[_Iterable[int]] = ..., entry: _Optional[_Iterable[int]] = ..., slot: _Optional[_Iterable[int]] = ...) -> None: ...

class CursorInfo(_message.Message):
    __slots__ = ("name", "position", "version", "seq_no", "ranges", "epoch", "owner", "properties", "changed_ms", "change", "claim", "by")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    CHANGED_MS_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    position: Position
    version: int
    seq_no: int
    ranges: AckedRanges
    epoch: int
    owner: str
    properties: _containers.ScalarMap[str, str]
    changed_ms: int
    change: CursorChange
    claim: CursorClaim
    by: str
    def __init__(self, name: _Optional[str] = ..., position: _Optional[_Union[Position, _Mapping]] = ..., version: _Optional[int] = ..., seq_no: _Optional[int] = ..., ranges: _Optional[_Union[AckedRanges, _Mapping]] = ..., epoch: _Optional[int] = ..., owner: _Optional[str] = ..., properties: _Optional[_Mapping[str, str]] = ..., changed_ms: _Optional[int] = ..., change: _Optional[_Union[CursorChange, str]] = ..., claim: _Optional[_Union[CursorClaim, _Mapping]] = ..., by: _Optional[str] = ...) -> None: ...

class CreateCursorRequest(_message.Message):
    __slots__ = ("stream", "name", "start", "individual")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    INDIVIDUAL_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    start: Seek
    individual: bool
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., individual: _Optional[bool] = ...) -> None: ...

class ClaimCursorRequest(_message.Message):
    __slots__ = ("stream", "name", "start", "must_exist", "owner")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    MUST_EXIST_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    start: Seek
    must_exist: bool
    owner: str
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., must_exist: _Optional[bool] = ..., owner: _Optional[str] = ...) -> None: ...

class ReleaseCursorRequest(_message.Message):
    __slots__ = ("stream", "name", "claim")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    claim: CursorClaim
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., claim: _Optional[_Union[CursorClaim, _Mapping]] = ...) -> None: ...

class RestoreCursorRequest(_message.Message):
    __slots__ = ("stream", "name", "version", "force", "claim", "owner")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    version: int
    force: bool
    claim: CursorClaim
    owner: str
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., version: _Optional[int] = ..., force: _Optional[bool] = ..., claim: _Optional[_Union[CursorClaim, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class SkipCursorRequest(_message.Message):
    __slots__ = ("stream", "name", "count", "count_acked", "claim")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    COUNT_ACKED_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    count: int
    count_acked: bool
    claim: CursorClaim
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., count: _Optional[int] = ..., count_acked: _Optional[bool] = ..., claim: _Optional[_Union[CursorClaim, _Mapping]] = ...) -> None: ...

class SetPropertiesRequest(_message.Message):
    __slots__ = ("stream", "name", "set", "remove", "force", "claim")
    class SetEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    set: _containers.ScalarMap[str, str]
    remove: _containers.RepeatedScalarFieldContainer[str]
    force: bool
    claim: CursorClaim
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., set: _Optional[_Mapping[str, str]] = ..., remove: _Optional[_Iterable[str]] = ..., force: _Optional[bool] = ..., claim: _Optional[_Union[CursorClaim, _Mapping]] = ...) -> None: ...

class CursorBacklogRequest(_message.Message):
    __slots__ = ("stream", "name", "precise")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRECISE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    precise: bool
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., precise: _Optional[bool] = ...) -> None: ...

class CursorBacklog(_message.Message):
    __slots__ = ("records", "bytes", "seconds")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    records: int
    bytes: int
    seconds: float
    def __init__(self, records: _Optional[int] = ..., bytes: _Optional[int] = ..., seconds: _Optional[float] = ...) -> None: ...

class GetCursorRequest(_message.Message):
    __slots__ = ("stream", "name")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ListCursorsRequest(_message.Message):
    __slots__ = ("stream",)
    STREAM_FIELD_NUMBER: _ClassVar[int]
    stream: str
    def __init__(self, stream: _Optional[str] = ...) -> None: ...

class AdvanceCursorRequest(_message.Message):
    __slots__ = ("stream", "name", "to", "expected", "claim", "seq_no")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    to: Position
    expected: Position
    claim: CursorClaim
    seq_no: int
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., to: _Optional[_Union[Position, _Mapping]] = ..., expected: _Optional[_Union[Position, _Mapping]] = ..., claim: _Optional[_Union[CursorClaim, _Mapping]] = ..., seq_no: _Optional[int] = ...) -> None: ...

class AckRequest(_message.Message):
    __slots__ = ("stream", "name", "positions", "claim", "ranges")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    positions: _containers.RepeatedCompositeFieldContainer[Position]
    claim: CursorClaim
    ranges: AckedRanges
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., positions: _Optional[_Iterable[_Union[Position, _Mapping]]] = ..., claim: _Optional[_Union[CursorClaim, _Mapping]] = ..., ranges: _Optional[_Union[AckedRanges, _Mapping]] = ...) -> None: ...

class ResetCursorRequest(_message.Message):
    __slots__ = ("stream", "name", "seek", "force", "claim", "owner")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEEK_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    seek: Seek
    force: bool
    claim: CursorClaim
    owner: str
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., seek: _Optional[_Union[Seek, _Mapping]] = ..., force: _Optional[bool] = ..., claim: _Optional[_Union[CursorClaim, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class CursorHistoryRequest(_message.Message):
    __slots__ = ("stream", "name", "limit")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    limit: int
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class CursorVersion(_message.Message):
    __slots__ = ("version", "position", "time_ms", "seq_no", "ranges", "change")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    SEQ_NO_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    version: int
    position: Position
    time_ms: int
    seq_no: int
    ranges: AckedRanges
    change: CursorChange
    def __init__(self, version: _Optional[int] = ..., position: _Optional[_Union[Position, _Mapping]] = ..., time_ms: _Optional[int] = ..., seq_no: _Optional[int] = ..., ranges: _Optional[_Union[AckedRanges, _Mapping]] = ..., change: _Optional[_Union[CursorChange, str]] = ...) -> None: ...

class DeleteCursorRequest(_message.Message):
    __slots__ = ("stream", "name")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("id", "done", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    done: bool
    error: SegmentError
    def __init__(self, id: _Optional[str] = ..., done: _Optional[bool] = ..., error: _Optional[_Union[SegmentError, _Mapping]] = ...) -> None: ...

class GetOperationRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...
