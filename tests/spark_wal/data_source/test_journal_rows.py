"""The edits of a journal, as a table."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as t

from journal_manager import JournalUnavailableError
from journal_manager import sync as journals
from segments import sync
from spark_wal.data_source.journal_rows import JournalRows
from spark_wal.data_source.options import ReadSettings
from tests.spark_wal.data_source.clusters import rows

EDITS = t.StructType([t.StructField("txid", t.LongType()), t.StructField("body", t.BinaryType())])


def test_a_journal_closed_and_open_segments(namespace: sync.Namespace, cluster_uri: str) -> None:
    with journals.EditLog.open("bk:batch-edits", metadata=cluster_uri) as log:
        log.log_group([(0, b"%d" % n) for n in range(4)])
        reader = JournalRows(ReadSettings(metadata=cluster_uri, journal="batch-edits", retry_s=0.0), EDITS)
        assert [body for _, body in rows(reader)][:4] == [b"0", b"1", b"2", b"3"]
    first = rows(reader)[0][0]
    some = ReadSettings(metadata=cluster_uri, journal="batch-edits", start=str(first + 1), stop=str(first + 3))
    assert rows(JournalRows(some, EDITS)) == [(first + 1, b"1"), (first + 2, b"2")]
    one = ReadSettings(metadata=cluster_uri, journal="batch-edits", start=str(first + 1), stop=str(first + 2))
    assert rows(JournalRows(one, EDITS)) == [(first + 1, b"1")]
    assert rows(JournalRows(ReadSettings(metadata=cluster_uri, journal="batch-edits", start="1000"), EDITS)) == []


def test_a_journal_that_does_not_answer_is_asked_again(cluster_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause: its errors are of another family than those of streams and ledgers, and ended the read at once."""
    with journals.EditLog.open("bk:away-edits", metadata=cluster_uri) as log:
        log.log_group([(0, b"%d" % n) for n in range(4)])
    reader = JournalRows(ReadSettings(metadata=cluster_uri, journal="away-edits", retry_s=60.0), EDITS)
    real, failing = journals.open_reader, [1, 0, 1]

    def opened(*args: Any, **options: Any) -> journals.JournalReader:
        if failing and failing.pop():
            raise JournalUnavailableError("away")
        return real(*args, **options)

    monkeypatch.setattr(journals, "open_reader", opened)
    assert [body for _, body in rows(reader)][:4] == [b"0", b"1", b"2", b"3"]
    assert not failing
