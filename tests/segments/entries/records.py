"""Records for tests: any that can be, by hypothesis."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from segments.entries.columns import RecordColumns
from segments.entries.stored_entry import StoredEntry
from segments.record import Record, StoredRecord

TIMES = st.integers(min_value=0, max_value=4_000_000_000_000).map(lambda ms: datetime.fromtimestamp(ms // 1000, UTC))

RECORDS = st.builds(
    Record,
    st.binary(max_size=20),
    st.none() | st.integers(min_value=0, max_value=2**63 - 2),
    st.none() | st.binary(max_size=5),
    st.dictionaries(st.text(st.characters(blacklist_categories=["Cs"]), max_size=4), st.binary(max_size=4), max_size=3),
    st.none() | TIMES,
)


def contents(records: list[StoredRecord]) -> list[Record]:
    """What a user appended."""
    return [record.as_record() for record in records]


def same(entry: StoredEntry, columns: RecordColumns) -> bool:
    """Whether the entry holds exactly these columns."""
    return entry.columns() == columns
