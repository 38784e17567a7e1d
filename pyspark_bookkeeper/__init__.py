"""What PySpark finds by itself: ``format("bookkeeper")``. See :mod:`spark_wal.data_source`.

At the first use of any data source PySpark imports every top-level module whose name begins with ``pyspark_``, and
forgets all of them if one raises. So nothing but the standard library and pyspark is imported here; the rest comes
with the first method that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from pyspark.sql.datasource import DataSource
except ImportError:  # PySpark before 4.0 has no data sources in Python, and never looks here
    DataSource = object

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["BookKeeperDataSource", "DefaultSource"]


class BookKeeperDataSource(DataSource):
    """Streams, ledgers and journals of a BookKeeper cluster as data of Spark: ``format("bookkeeper")``.

    The options, what is promised and what is not: docs/spark-data.md.
    """

    @classmethod
    def name(cls) -> str:
        """The word for ``format()``."""
        return "bookkeeper"

    def schema(self) -> str:
        """The columns of what the options name. Raises DataSourceOptionError."""
        from spark_wal.data_source import source

        return source.schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads what there is now. Raises DataSourceOptionError."""
        from spark_wal.data_source import source

        return source.reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads a stream, batch after batch. Raises DataSourceOptionError."""
        from spark_wal.data_source import source

        return source.stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Writes one batch. Raises DataSourceOptionError."""
        from spark_wal.data_source import sink

        return sink.writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Writes the batches of a query. Raises DataSourceOptionError."""
        from spark_wal.data_source import sink

        return sink.stream_writer(self.options, schema, overwrite=overwrite)


DefaultSource = BookKeeperDataSource
"""The name by which PySpark looks for it."""
