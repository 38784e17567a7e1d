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
    __slots__ = ("stream", "stream_id", "settings", "sealed", "segments", "start")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    stream: str
    stream_id: str
    settings: Settings
    sealed: bool
    segments: int
    start: Position
    def __init__(self, stream: _Optional[str] = ..., stream_id: _Optional[str] = ..., settings: _Optional[_Union[Settings, _Mapping]] = ..., sealed: _Optional[bool] = ..., segments: _Optional[int] = ..., start: _Optional[_Union[Position, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("stream", "missing_ok", "force")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    MISSING_OK_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    missing_ok: bool
    force: bool
    def __init__(self, stream: _Optional[str] = ..., missing_ok: _Optional[bool] = ..., force: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("stream", "start", "stop", "max_records", "on_gap")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    MAX_RECORDS_FIELD_NUMBER: _ClassVar[int]
    ON_GAP_FIELD_NUMBER: _ClassVar[int]
    stream: str
    start: Seek
    stop: Seek
    max_records: int
    on_gap: OnGap
    def __init__(self, stream: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., stop: _Optional[_Union[Seek, _Mapping]] = ..., max_records: _Optional[int] = ..., on_gap: _Optional[_Union[OnGap, str]] = ...) -> None: ...

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
        __slots__ = ("stream", "start", "resume_token", "on_gap", "progress_ms")
        STREAM_FIELD_NUMBER: _ClassVar[int]
        START_FIELD_NUMBER: _ClassVar[int]
        RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
        ON_GAP_FIELD_NUMBER: _ClassVar[int]
        PROGRESS_MS_FIELD_NUMBER: _ClassVar[int]
        stream: str
        start: Seek
        resume_token: bytes
        on_gap: OnGap
        progress_ms: int
        def __init__(self, stream: _Optional[str] = ..., start: _Optional[_Union[Seek, _Mapping]] = ..., resume_token: _Optional[bytes] = ..., on_gap: _Optional[_Union[OnGap, str]] = ..., progress_ms: _Optional[int] = ...) -> None: ...
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
    __slots__ = ("batch", "gap", "progress", "end_of_stream", "resume_token", "generation")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    END_OF_STREAM_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    batch: RecordBatch
    gap: Gap
    progress: Progress
    end_of_stream: EndOfStream
    resume_token: bytes
    generation: int
    def __init__(self, batch: _Optional[_Union[RecordBatch, _Mapping]] = ..., gap: _Optional[_Union[Gap, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., end_of_stream: _Optional[_Union[EndOfStream, _Mapping]] = ..., resume_token: _Optional[bytes] = ..., generation: _Optional[int] = ...) -> None: ...

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

class SegmentInfo(_message.Message):
    __slots__ = ("number", "ledger_id", "completed", "start_seq_no", "records", "bytes", "created_ms", "completed_ms", "first_txid", "last_txid", "last")
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
    def __init__(self, number: _Optional[int] = ..., ledger_id: _Optional[int] = ..., completed: _Optional[bool] = ..., start_seq_no: _Optional[int] = ..., records: _Optional[int] = ..., bytes: _Optional[int] = ..., created_ms: _Optional[int] = ..., completed_ms: _Optional[int] = ..., first_txid: _Optional[int] = ..., last_txid: _Optional[int] = ..., last: _Optional[_Union[Position, _Mapping]] = ...) -> None: ...

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
    __slots__ = ("name", "start", "stop", "until_ms", "note")
    NAME_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    UNTIL_MS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    start: Position
    stop: Position
    until_ms: int
    note: str
    def __init__(self, name: _Optional[str] = ..., start: _Optional[_Union[Position, _Mapping]] = ..., stop: _Optional[_Union[Position, _Mapping]] = ..., until_ms: _Optional[int] = ..., note: _Optional[str] = ...) -> None: ...

class DeleteHoldRequest(_message.Message):
    __slots__ = ("stream", "name")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class CursorInfo(_message.Message):
    __slots__ = ("name", "position", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    position: Position
    version: int
    def __init__(self, name: _Optional[str] = ..., position: _Optional[_Union[Position, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("stream", "name", "to", "expected")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    to: Position
    expected: Position
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., to: _Optional[_Union[Position, _Mapping]] = ..., expected: _Optional[_Union[Position, _Mapping]] = ...) -> None: ...

class AckRequest(_message.Message):
    __slots__ = ("stream", "name", "positions")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    positions: _containers.RepeatedCompositeFieldContainer[Position]
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., positions: _Optional[_Iterable[_Union[Position, _Mapping]]] = ...) -> None: ...

class ResetCursorRequest(_message.Message):
    __slots__ = ("stream", "name", "seek", "force")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEEK_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    name: str
    seek: Seek
    force: bool
    def __init__(self, stream: _Optional[str] = ..., name: _Optional[str] = ..., seek: _Optional[_Union[Seek, _Mapping]] = ..., force: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("version", "position", "time_ms")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    version: int
    position: Position
    time_ms: int
    def __init__(self, version: _Optional[int] = ..., position: _Optional[_Union[Position, _Mapping]] = ..., time_ms: _Optional[int] = ...) -> None: ...

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
