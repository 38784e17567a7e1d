"""Which reader the options ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_wal.data_source.columns import JOURNAL_DDL, LEDGER_DDL, STREAM_DDL, STREAMS_DDL, check_columns
from spark_wal.data_source.options import STREAM_OPTIONS, DataSourceOptionError, ReadSettings, read_settings
from spark_wal.data_source.worker_heap import freeze_loaded_objects

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


def schema(options: Mapping[str, str]) -> str:
    """The columns where a user names none. Raises DataSourceOptionError."""
    given = {name.lower() for name in options}
    settings = read_settings(options, streaming=any(name.lower() in given for name in STREAM_OPTIONS))
    freeze_loaded_objects()
    if settings.value_format != "raw":
        raise DataSourceOptionError(
            f"valueFormat {settings.value_format} needs the columns of your values: give .schema(...)"
        )
    if settings.ledger is not None:
        return LEDGER_DDL
    if settings.journal is not None:
        return JOURNAL_DDL
    return STREAM_DDL if settings.stream is not None else STREAMS_DDL


def reader(options: Mapping[str, str], columns: StructType) -> DataSourceReader:
    """Reads what there is now. Raises DataSourceOptionError."""
    from spark_wal.data_source.tables import LedgerRows, StreamsRows

    settings = read_settings(options, streaming=False)
    _check(settings, columns)
    if settings.ledger is not None:
        return LedgerRows(settings, columns)
    if settings.journal is not None:
        from spark_wal.data_source.journal_rows import JournalRows

        return JournalRows(settings, columns)
    return StreamsRows(settings, columns)


def stream_reader(options: Mapping[str, str], columns: StructType) -> DataSourceStreamReader:
    """Reads a stream, batch after batch. Raises DataSourceOptionError."""
    from spark_wal.data_source.stream_source import QuerySource

    settings = read_settings(options, streaming=True)
    _check(settings, columns)
    source = QuerySource(settings, columns)
    freeze_loaded_objects()
    return source


def _check(settings: ReadSettings, columns: StructType) -> None:
    if not columns.fields:
        raise DataSourceOptionError("a schema without columns has no rows: leave it out, or name one column at least")
    if twice := [name for name in columns.names if columns.names.count(name) > 1]:
        raise DataSourceOptionError(
            f"the schema has {columns.names.count(twice[0])} columns {twice[0]}: name each once"
        )
    if settings.stream is None and settings.streams is None:
        if settings.value_format != "raw":
            raise DataSourceOptionError(f"valueFormat is for streams: a {settings.what} has bytes")
        check_columns(columns, LEDGER_DDL if settings.ledger is not None else JOURNAL_DDL, settings.what)
    elif settings.value_format == "raw":
        ddl = STREAM_DDL if settings.stream is not None else STREAMS_DDL
        hint = ". With valueFormat json or arrow the schema is that of your values"
        check_columns(columns, ddl, settings.what, hint)
