"""Which reader the options ask for, and with which columns."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql import types as t

from pyspark_bookkeeper import BookKeeperDataSource, DefaultSource
from spark_wal.data_source import source
from spark_wal.data_source.columns import JOURNAL_DDL, LEDGER_DDL, STREAM_DDL, STREAMS_DDL
from spark_wal.data_source.journal_rows import JournalRows
from spark_wal.data_source.options import DataSourceOptionError
from spark_wal.data_source.stream_source import QuerySource
from spark_wal.data_source.tables import LedgerRows, StreamsRows

URI = {"metadata": "sqlite:///tmp/x"}
SEQ_NO = t.StructType([t.StructField("seq_no", t.LongType())])


@pytest.mark.parametrize(
    ("options", "ddl", "column", "kind"),
    [
        ({"stream": "a"}, STREAM_DDL, "seq_no", StreamsRows),
        ({"streams": "a*"}, STREAMS_DDL, "seq_no", StreamsRows),
        ({"ledger": "1"}, LEDGER_DDL, "entry_id", LedgerRows),
        ({"journal": "j"}, JOURNAL_DDL, "txid", JournalRows),
    ],
)
def test_each_kind_has_its_columns_and_its_reader(options: dict[str, str], ddl: str, column: str, kind: type) -> None:
    given = {**URI, **options}
    assert source.schema(given) == ddl
    schema = t.StructType([t.StructField(column, t.LongType())])
    assert type(BookKeeperDataSource(given).reader(schema)) is kind
    with pytest.raises(DataSourceOptionError, match="has no column nothing"):
        source.reader(given, t.StructType([t.StructField("nothing", t.LongType())]))
    of_another = t.StructType([t.StructField("stream", t.StringType())])
    if kind is StreamsRows and "streams" in options:
        assert type(source.reader(given, of_another)) is kind
    else:
        with pytest.raises(DataSourceOptionError, match="has no column stream"):
            source.reader(given, of_another)


def test_a_query_reads_a_stream() -> None:
    found = BookKeeperDataSource({**URI, "stream": "a", "holdname": "q"})
    assert (found.name(), DefaultSource, found.schema()) == ("bookkeeper", BookKeeperDataSource, STREAM_DDL)
    assert type(found.streamReader(SEQ_NO)) is QuerySource


def test_a_schema_without_columns_is_refused_instead_of_having_no_rows() -> None:
    for given in ({"stream": "a"}, {"ledger": "1"}, {"stream": "a", "valueFormat": "json"}):
        with pytest.raises(DataSourceOptionError, match="a schema without columns has no rows"):
            source.reader({**URI, **given}, t.StructType([]))
    with pytest.raises(DataSourceOptionError, match="a schema without columns has no rows"):
        source.stream_reader({**URI, "stream": "a"}, t.StructType([]))


def test_two_columns_of_one_name_are_refused() -> None:
    twice = t.StructType([t.StructField("value", t.BinaryType())] * 2)
    for given in ({}, {"valueFormat": "json"}):
        with pytest.raises(DataSourceOptionError, match="the schema has 2 columns value: name each once"):
            source.reader({**URI, "stream": "a", **given}, twice)


def test_values_need_a_schema_and_are_those_of_streams() -> None:
    with pytest.raises(DataSourceOptionError, match="needs the columns of your values"):
        source.schema({**URI, "stream": "a", "valueFormat": "json"})
    with pytest.raises(DataSourceOptionError, match="valueFormat is for streams"):
        source.reader({**URI, "ledger": "1", "valueFormat": "json"}, SEQ_NO)


def test_what_pyspark_finds_imports_nothing_of_ours_and_is_quick() -> None:
    code = (
        "import sys, pyspark.sql.datasource\n"
        "import pyspark_bookkeeper\n"
        "ours = ('spark_wal', 'segments', 'journal_manager', 'bookkeeper', 'pyarrow')\n"
        "print([name for name in sys.modules if name.split('.')[0] in ours])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_pyarrow_there_is_a_sentence_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataSourceOptionError, match="needs pyarrow: pip install"):
        source.reader({**URI, "stream": "a"}, SEQ_NO)
