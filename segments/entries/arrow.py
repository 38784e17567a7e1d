"""An entry's records as Arrow columns, which share the entry's memory. Only this module of segments uses pyarrow."""

from __future__ import annotations

from array import array
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from bookkeeper.install import how_to_install
from segments.errors import MissingLibraryError

if TYPE_CHECKING:
    from segments.entries.sections import Sections, StringSection
    from segments.entries.stored_entry import StoredEntry

_SLOTS_STEP: Final = 16_384


def record_batch(entry: StoredEntry, sections: Sections, a: int, b: int) -> Any:
    """The records from slot ``a`` up to ``b`` as a ``pyarrow.RecordBatch`` of ``schema()``.

    Raises:
        MissingLibraryError: pyarrow is not installed.
    """
    pa, compute = _arrow(), _compute()
    n, count = entry.count, max(0, b - a)
    slots = pa.Array.from_buffers(pa.int64(), n, [None, pa.py_buffer(_slots(n))])
    events = _numbers(pa.timestamp("ms", "UTC"), sections.events, sections.event_bits, n)
    columns = [
        pa.repeat(pa.scalar(entry.segment, pa.int64()), n),
        pa.repeat(pa.scalar(entry.entry, pa.int64()), n),
        slots,
        compute.add(slots, pa.scalar(entry.first_seq_no, pa.int64())),
        _strings(sections.values, None, n),
        _numbers(pa.int64(), sections.txids, sections.txid_bits, n),
        pa.nulls(n, pa.binary()) if sections.keys is None else _strings(sections.keys, sections.key_bits, n),
        _headers(entry) if sections.headers is not None else pa.nulls(n, _header_type()),
        events,
        pa.repeat(pa.scalar(entry.append_ms, pa.timestamp("ms", "UTC")), n),
        *_producers(entry, slots),
    ]
    whole = pa.RecordBatch.from_arrays(columns, schema=schema())
    return whole if (a, count) == (0, n) else whole.slice(a, count)


@cache
def schema() -> Any:
    """The columns of a stream's records."""
    pa = _arrow()
    return pa.schema(
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


def _headers(entry: StoredEntry) -> Any:
    return _arrow().array([list(each.items()) for each in entry.headers()], _header_type())


def _producers(entry: StoredEntry, slots: Any) -> tuple[Any, Any]:
    pa, compute = _arrow(), _compute()
    names, sequences, begin = [], [], 0
    if all(batch.producer is None for batch in entry.batches):
        return pa.nulls(entry.count, pa.string()), pa.nulls(entry.count, pa.int64())
    for batch in entry.batches:
        if batch.producer is None:
            names.append(pa.nulls(batch.records, pa.string()))
            sequences.append(pa.nulls(batch.records, pa.int64()))
        else:
            names.append(pa.repeat(pa.scalar(batch.producer, pa.string()), batch.records))
            first = pa.scalar(batch.first_sequence - begin, pa.int64())
            sequences.append(compute.add(slots.slice(begin, batch.records), first))
        begin += batch.records
    return pa.concat_arrays(names), pa.concat_arrays(sequences)


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
