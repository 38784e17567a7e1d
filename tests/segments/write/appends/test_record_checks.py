"""What may be a record, and how large it is."""

from __future__ import annotations

import pytest

from segments.entries.columns import RecordColumns
from segments.record import Record
from segments.write.appends.record_checks import checked, record_size


def test_bytes_are_copied_if_they_could_change_and_records_get_their_transaction_id() -> None:
    value = bytearray(b"abc")
    taken = checked(value, None)
    value[:] = b"xyz"
    assert taken == b"abc"
    assert checked(memoryview(b"abc"), None) == b"abc"
    assert checked(Record(b"v", key=b"k"), 7) == Record(b"v", 7, b"k")


def test_headers_that_the_caller_fills_anew_stay_what_they_were() -> None:
    """Cause: a record kept its caller's own headers until its entry was made: of records that were appended without
    waiting, with one dict for all, each was stored with the headers of the last."""
    headers = {"n": b"0"}
    taken = checked(Record(b"v", headers=headers), None)
    headers["n"] = b"1"
    assert isinstance(taken, Record)
    assert taken.headers == {"n": b"0"}


@pytest.mark.parametrize(
    ("record", "txid", "error"),
    [
        (3, None, TypeError),
        (Record(b"", headers={1: b""}), None, TypeError),  # type: ignore[dict-item]
        (Record(b"", headers={str(n): b"" for n in range(70_000)}), None, ValueError),
        (b"", 2**63 - 1, OverflowError),
        (b"", 1.5, TypeError),
    ],
)
def test_what_cannot_be_stored_is_refused(record: object, txid: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        checked(record, txid)  # type: ignore[arg-type]


def test_the_size_is_at_least_what_the_columns_take() -> None:
    record = Record(b"value", 3, b"key", {"name": b"header", "ü" * 40: b""})
    assert record_size(record) + 8 >= RecordColumns.of_records([record]).size - 16
    assert record_size(b"abc") == 3
