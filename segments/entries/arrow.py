"""An entry's records as Arrow columns, which share the entry's memory. Only this module of segments uses pyarrow."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from bookkeeper.install import how_to_install
from segments.codec import repeated, rising
from segments.entries.lone_entries import LoneEntries
from segments.entries.sections import Sections, StringSection
from segments.entries.stored_entry import StoredEntry
from segments.errors import EntryCorruptError, MissingLibraryError

_SLOTS_STEP: Final = 16_384


def record_batch(
    entry: StoredEntry | LoneEntries, a: int = 0, b: int | None = None, *, columns: tuple[str, ...] | None = None
) -> Any:
    """The records of an entry from slot ``a`` up to ``b`` as a ``pyarrow.RecordBatch`` of ``schema()``, or of these
    columns of it. It shares the memory of a stored entry.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    return _record_batch(entry.part(a, b), columns)


def joined_batch(parts: Sequence[_Part], names: tuple[str, ...] | None = None) -> Any:
    """The records of several entries, each with its sections and slots, as one ``pyarrow.RecordBatch``, which is a copy
    of them. There is at least one part.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    if len(parts) == 1:
        return _record_batch(parts[0], names)
    wanted = schema(names)
    columns = [_joined_numbers(parts) if name == "seq_no" else _joined(name, parts) for name in _names_of(names)]
    return _arrow().RecordBatch.from_arrays(columns, schema=wanted)


def _record_batch(part: _Part, names: tuple[str, ...] | None) -> Any:
    entry, sections, a, b = part
    wanted, n, count = schema(names), entry.count, max(0, b - a)
    columns = [_column(name, entry, sections, n) for name in _names_of(names)]
    whole = _arrow().RecordBatch.from_arrays(columns, schema=wanted)
    return whole if (a, count) == (0, n) else whole.slice(a, count)


def _joined(name: str, parts: Sequence[_Part]) -> Any:
    return _arrow().concat_arrays(
        [_column(name, entry, sections, entry.count).slice(a, b - a) for entry, sections, a, b in parts]
    )


def _column(name: str, entry: StoredEntry | LoneEntries, sections: Sections | None, n: int) -> Any:
    """All ``n`` records of an entry, or of a run of lone ones, which has no sections."""
    if sections is not None:
        return _MAKERS[name](entry, sections, n)  # type: ignore[arg-type]  # with sections it is a stored one
    make = _LONE_MAKERS.get(name)
    return _no(name, n) if make is None else make(entry, n)  # type: ignore[arg-type]


def _joined_numbers(parts: Sequence[_Part]) -> Any:
    """Sequence numbers, which mostly go on from one entry to the next."""
    (entry, _, a, b), following = parts[0], 0
    first, following = entry.first_seq_no + a, entry.first_seq_no + b
    for entry, _, a, b in parts[1:]:
        if entry.first_seq_no + a != following:
            return _joined("seq_no", parts)
        following = entry.first_seq_no + b
    return _rising(first, following - first)


@cache
def schema(names: tuple[str, ...] | None = None) -> Any:
    """The columns of a stream's records: all, or those of these names."""
    pa = _arrow()
    whole = pa.schema(
        [
            pa.field("segment", pa.int64(), nullable=False),
            pa.field("entry", pa.int64(), nullable=False),
            pa.field("slot", pa.int64(), nullable=False),
            pa.field("seq_no", pa.int64(), nullable=False),
            pa.field("value", pa.binary(), nullable=False),
            pa.field("txid", pa.int64()),
            pa.field("key", pa.binary()),
            pa.field("headers", _header_type()),
            pa.field("event_time", pa.timestamp("ms", "UTC")),
            pa.field("append_time", pa.timestamp("ms", "UTC"), nullable=False),
            pa.field("producer", pa.string()),
            pa.field("sequence", pa.int64()),
        ]
    )
    return whole if names is None else pa.schema([whole.field(name) for name in names])


@cache
def _int64() -> Any:
    return _arrow().int64()


@cache
def _names_of(names: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(schema(names).names)


def _segment(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _same(_int64(), entry.segment, n)


def _entry(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _same(_int64(), entry.entry, n)


def _slot(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    return pa.Array.from_buffers(_int64(), n, [None, pa.py_buffer(_slots(n))])


def _seq_no(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _rising(entry.first_seq_no, n)


def _value(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _strings(sections.values, None, n)


def _txid(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _numbers("txid", sections.txids, sections.txid_bits, n)


def _key(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _no("key", n) if sections.keys is None else _strings(sections.keys, sections.key_bits, n)


def _headers(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    if sections.headers is None:
        return _no("headers", n)
    places, names, values = entry.header_columns()
    try:
        texts = pa.array(names, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise EntryCorruptError(f"a record's headers are damaged: {error}") from error
    return pa.MapArray.from_arrays(pa.array(places, pa.int32()), texts, pa.array(values, pa.binary()))


def _event_time(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _numbers("event_time", sections.events, sections.event_bits, n)


def _append_time(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _same(_type_of("append_time"), entry.append_ms, n)


def _producer(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    if not sections.has_producers:
        return _no("producer", n)
    return pa.concat_arrays(
        [pa.repeat(pa.scalar(batch.producer, pa.string()), batch.records) for batch in sections.batches]
    )


def _sequence(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    if not sections.has_producers:
        return _no("sequence", n)
    return pa.concat_arrays(
        [
            pa.nulls(batch.records, pa.int64())
            if batch.producer is None
            else _rising(batch.first_sequence, batch.records)
            for batch in sections.batches
        ]
    )


_Part: TypeAlias = "tuple[StoredEntry | LoneEntries, Sections | None, int, int]"
"""An entry, its sections if it has any, and slots of it."""

_Maker: TypeAlias = "Callable[[StoredEntry, Sections, int], Any]"

_MAKERS: Final[dict[str, _Maker]] = {
    "segment": _segment,
    "entry": _entry,
    "slot": _slot,
    "seq_no": _seq_no,
    "value": _value,
    "txid": _txid,
    "key": _key,
    "headers": _headers,
    "event_time": _event_time,
    "append_time": _append_time,
    "producer": _producer,
    "sequence": _sequence,
}
"""Name of a column -> what makes it, of an entry's ``n`` records."""


def _lone_value(run: LoneEntries, n: int) -> Any:
    pa = _arrow()
    offsets, data, _ = run.columns
    return pa.Array.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _lone_append_time(run: LoneEntries, n: int) -> Any:
    pa = _arrow()
    return pa.Array.from_buffers(_type_of("append_time"), n, [None, pa.py_buffer(run.columns[2])])


_LONE_MAKERS: Final[dict[str, Callable[[LoneEntries, int], Any]]] = {
    "segment": lambda run, n: _same(_int64(), run.segment, n),
    "entry": lambda run, n: _rising(run.entry, n),
    "slot": lambda run, n: _same(_int64(), 0, n),
    "seq_no": lambda run, n: _rising(run.first_seq_no, n),
    "value": _lone_value,
    "append_time": _lone_append_time,
}
"""The same for a run of lone entries, which has no other columns."""


def _rising(first: int, n: int) -> Any:
    pa = _arrow()
    try:
        numbers = rising(first, n)
    except OverflowError as error:
        raise EntryCorruptError(f"an entry has {n} numbers from {first} on, which do not fit into 64 bits") from error
    return pa.Array.from_buffers(_int64(), n, [None, pa.py_buffer(numbers)])


def _same(kind: Any, value: int, n: int) -> Any:
    pa = _arrow()
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(repeated(value, n))])


def _no(name: str, n: int) -> Any:
    """A column of which no record has anything."""
    return _arrow().nulls(n, _type_of(name)) if n > _SLOTS_STEP else _nothing(name).slice(0, n)


@cache
def _nothing(name: str) -> Any:
    return _arrow().nulls(_SLOTS_STEP, _type_of(name))


@cache
def _type_of(name: str) -> Any:
    return schema().field(name).type


def _strings(section: StringSection, bits: memoryview | None, n: int) -> Any:
    pa = _arrow()
    buffers = [None if bits is None else pa.py_buffer(bits), pa.py_buffer(section.offsets), pa.py_buffer(section.data)]
    column = pa.Array.from_buffers(pa.binary(), n, buffers)
    column.validate(full=True)
    return column


def _numbers(name: str, column: memoryview | None, bits: memoryview | None, n: int) -> Any:
    pa = _arrow()
    if column is None:
        return _no(name, n)
    return pa.Array.from_buffers(
        _type_of(name), n, [None if bits is None else pa.py_buffer(bits), pa.py_buffer(column)]
    )


@cache
def _slots_up_to(size: int) -> bytes:
    return array("q", range(size)).tobytes()


def _slots(n: int) -> memoryview:
    size = -(-n // _SLOTS_STEP) * _SLOTS_STEP
    return memoryview(_slots_up_to(size))[: 8 * n]


@cache
def _header_type() -> Any:
    pa = _arrow()
    return pa.map_(pa.string(), pa.binary())


@cache
def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingLibraryError(f"pyarrow is not installed: {how_to_install('copy')}") from error
    return pyarrow
