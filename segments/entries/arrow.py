"""An entry's records as Arrow columns, which share the entry's memory. Only this module of segments uses pyarrow."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from bookkeeper.install import how_to_install
from segments.errors import MissingLibraryError

if TYPE_CHECKING:
    from segments.entries.lone_entries import LoneEntries
    from segments.entries.sections import Sections, StringSection
    from segments.entries.stored_entry import StoredEntry

_SLOTS_STEP: Final = 16_384


def record_batch(
    entry: StoredEntry | LoneEntries, sections: Sections | None, a: int, b: int, names: tuple[str, ...] | None = None
) -> Any:
    """The records from slot ``a`` up to ``b`` as a ``pyarrow.RecordBatch`` of ``schema()``, or of these columns of it.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    wanted, n, count = schema(names), entry.count, max(0, b - a)
    columns = [_column(name, entry, sections, n) for name in wanted.names]
    whole = _arrow().RecordBatch.from_arrays(columns, schema=wanted)
    return whole if (a, count) == (0, n) else whole.slice(a, count)


def joined_batch(parts: Sequence[_Part], names: tuple[str, ...] | None = None) -> Any:
    """The records of several entries, each with its sections and slots, as one ``pyarrow.RecordBatch``, which is a copy
    of them. There is at least one part.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    if len(parts) == 1:
        return record_batch(*parts[0], names)
    wanted = schema(names)
    columns = [_joined_numbers(parts) if name == "seq_no" else _joined(name, parts) for name in wanted.names]
    return _arrow().RecordBatch.from_arrays(columns, schema=wanted)


def _joined(name: str, parts: Sequence[_Part]) -> Any:
    return _arrow().concat_arrays(
        [_column(name, entry, sections, entry.count).slice(a, b - a) for entry, sections, a, b in parts]
    )


def _column(name: str, entry: StoredEntry | LoneEntries, sections: Sections | None, n: int) -> Any:
    """All ``n`` records of an entry, or of a run of lone ones, which has no sections."""
    if sections is not None:
        return _MAKERS[name](entry, sections, n)  # type: ignore[arg-type]  # with sections it is a stored one
    return _LONE_MAKERS.get(name, _nulls)(name, entry, n)  # type: ignore[arg-type]


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


def _segment(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    return pa.repeat(pa.scalar(entry.segment, pa.int64()), n)


def _entry(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    return pa.repeat(pa.scalar(entry.entry, pa.int64()), n)


def _slot(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _rising(0, n)


def _seq_no(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _rising(entry.first_seq_no, n)


def _value(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _strings(sections.values, None, n)


def _txid(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _numbers(_arrow().int64(), sections.txids, sections.txid_bits, n)


def _key(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    return pa.nulls(n, pa.binary()) if sections.keys is None else _strings(sections.keys, sections.key_bits, n)


def _headers(entry: StoredEntry, sections: Sections, n: int) -> Any:
    if sections.headers is None:
        return _arrow().nulls(n, _header_type())
    return _arrow().array([list(each.items()) for each in entry.headers()], _header_type())


def _event_time(entry: StoredEntry, sections: Sections, n: int) -> Any:
    return _numbers(_arrow().timestamp("ms", "UTC"), sections.events, sections.event_bits, n)


def _append_time(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    return pa.repeat(pa.scalar(entry.append_ms, pa.timestamp("ms", "UTC")), n)


def _producer(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    if not sections.has_producers:
        return pa.nulls(n, pa.string())
    return pa.concat_arrays(
        [pa.repeat(pa.scalar(batch.producer, pa.string()), batch.records) for batch in sections.batches]
    )


def _sequence(entry: StoredEntry, sections: Sections, n: int) -> Any:
    pa = _arrow()
    if not sections.has_producers:
        return pa.nulls(n, pa.int64())
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


def _lone_segment(name: str, run: LoneEntries, n: int) -> Any:
    pa = _arrow()
    return pa.repeat(pa.scalar(run.segment, pa.int64()), n)


def _lone_slot(name: str, run: LoneEntries, n: int) -> Any:
    pa = _arrow()
    return pa.repeat(pa.scalar(0, pa.int64()), n)


def _lone_value(name: str, run: LoneEntries, n: int) -> Any:
    pa = _arrow()
    offsets, data, _ = run.columns
    return pa.Array.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _lone_append_time(name: str, run: LoneEntries, n: int) -> Any:
    pa = _arrow()
    return pa.Array.from_buffers(pa.timestamp("ms", "UTC"), n, [None, pa.py_buffer(run.columns[2])])


def _nulls(name: str, run: LoneEntries, n: int) -> Any:
    return _arrow().nulls(n, schema().field(name).type)


_LONE_MAKERS: Final[dict[str, Callable[[str, LoneEntries, int], Any]]] = {
    "segment": _lone_segment,
    "entry": lambda _, run, n: _rising(run.entry, n),
    "slot": _lone_slot,
    "seq_no": lambda _, run, n: _rising(run.first_seq_no, n),
    "value": _lone_value,
    "append_time": _lone_append_time,
}
"""The same for a run of lone entries, which has no other columns."""


def _rising(first: int, n: int) -> Any:
    pa = _arrow()
    slots = pa.Array.from_buffers(pa.int64(), n, [None, pa.py_buffer(_slots(n))])
    return _compute().add(slots, pa.scalar(first, pa.int64()))


def _strings(section: StringSection, bits: memoryview | None, n: int) -> Any:
    pa = _arrow()
    buffers = [None if bits is None else pa.py_buffer(bits), pa.py_buffer(section.offsets), pa.py_buffer(section.data)]
    column = pa.Array.from_buffers(pa.binary(), n, buffers)
    column.validate(full=True)
    return column


def _numbers(kind: Any, column: memoryview | None, bits: memoryview | None, n: int) -> Any:
    pa = _arrow()
    if column is None:
        return pa.nulls(n, kind)
    return pa.Array.from_buffers(kind, n, [None if bits is None else pa.py_buffer(bits), pa.py_buffer(column)])


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


@cache
def _compute() -> Any:
    _arrow()
    import pyarrow.compute

    return pyarrow.compute
