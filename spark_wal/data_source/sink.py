"""Shell: a stream as the sink of a query, or of a single write.

Tasks write their rows side by side: into ledgers of their own, or into their messages where they are few. Then one step
in the driver's process makes the batch visible: whole, in the order of the partitions, once. The batch is known by its
application and its number, never by its rows.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from segments import (
    AppendOutcomeUnknownError,
    BatchKey,
    BatchRefusedError,
    OwnershipLostError,
    PublishedBatch,
    StagedRows,
    StreamNotFoundError,
    StreamUnavailableError,
    sync,
)
from segments.publish.batch_key import require_key
from spark_wal.data_source import connections
from spark_wal.data_source.connections import call_with_retries
from spark_wal.data_source.options import DataSourceOptionError, WriteSettings, write_settings
from spark_wal.data_source.rows import RowColumns
from spark_wal.data_source.worker_heap import freeze_loaded_objects

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0
    DataSourceStreamArrowWriter = None

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType

_QUERY: Final = "sql.streaming.queryId"
_RUN: Final = "spark.jobGroup.id"
"""Local properties of Spark's jobs. A query's jobs have its run as their group."""
_CLAIMS_MAX: Final = 3
"""So often a stream is claimed again for one batch, where others claim it in between."""

_lock: Final = threading.Lock()
_publishers: Final[dict[tuple[int, str, str], sync.Publisher]] = {}
"""(process, address, stream) -> the right to publish, from one batch to the next."""


def stream_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceStreamWriter:
    """Writes the batches of a query. Raises DataSourceOptionError."""
    if overwrite:
        raise DataSourceOptionError(
            'a stream is appended to, and complete mode replaces everything: use outputMode("append"), or '
            '"update" with foreachBatch and spark_wal.batch_writer'
        )
    if DataSourceStreamArrowWriter is None:
        raise DataSourceOptionError(
            "a query writes with PySpark 4.1 or later, in which its tasks write Arrow batches; with 4.0 it writes by "
            "foreachBatch and spark_wal.batch_writer"
        )
    sink = StreamSink(_checked(write_settings(options, streaming=True)), schema)
    freeze_loaded_objects()
    return sink


def writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceWriter:
    """Writes one batch. Raises DataSourceOptionError."""
    if overwrite:
        raise DataSourceOptionError('a stream is appended to and not overwritten: use mode("append")')
    sink = BatchSink(_checked(write_settings(options, streaming=False)), schema)
    freeze_loaded_objects()
    return sink


def _checked(settings: WriteSettings) -> WriteSettings:
    """Refuse an application that no stream would remember before a task runs. Raises DataSourceOptionError."""
    try:
        if settings.app is not None:
            require_key(BatchKey(settings.app, "", settings.version or 0, settings.start), settings.stream)
    except BatchRefusedError as error:
        raise DataSourceOptionError(str(error)) from error
    return settings


@dataclass
class SinkMessage(WriterCommitMessage):
    """What a task reports to the driver: where its rows are, or the rows themselves."""

    partition: int
    query: str
    """The id of the query; empty outside of one."""
    run: str
    """Of the query; empty outside of one."""
    rows: StagedRows


class _Sink:
    """What both kinds of writers share. It is pickled into every task."""

    def __init__(self, settings: WriteSettings, schema: StructType) -> None:
        RowColumns(schema, settings.value_format)
        self._settings, self._schema = settings, schema
        self._staging = secrets.token_hex(16)
        """The same for all tasks of one batch, and for no other one."""

    def write(self, iterator: Iterator[Any]) -> SinkMessage:
        """Write the rows of a task; runs there. Raises: every failure, so that Spark knows of it."""
        settings = self._settings
        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        query = "" if context is None else context.getLocalProperty(_QUERY) or ""
        run = "" if context is None or not query else context.getLocalProperty(_RUN) or ""
        columns = RowColumns(self._schema, settings.value_format)
        if settings.at_least_once:
            stream = call_with_retries(lambda: _opened(settings, fresh=attempt > 0), settings.retry_s)
            count = sum(_append(stream, records, settings) for batch in iterator for records in columns.records(batch))
            return SinkMessage(0, query, run, StagedRows(self._staging, stream.id, count))
        opening = self._opening(settings.app or query, fresh=attempt > 0)
        first = next(iterator, None)  # what is before the sink works meanwhile
        staged = opening()
        try:
            for batch in iterator if first is None else chain((first,), iterator):
                if full := columns.add(batch):
                    staged.add(*full)
            rows = staged.finish(*columns.rest())
        except BaseException:
            staged.abandon()
            raise
        freeze_loaded_objects()
        return SinkMessage(0 if context is None else context.partitionId(), query, run, rows)

    def _opening(self, app: str, *, fresh: bool) -> Callable[[], sync.Staged]:
        """Begin to open the stream. Returns what waits for it, and asks again while the cluster does not answer."""
        settings = self._settings

        def begun() -> Future[sync.Staged]:
            namespace = connections.namespace(settings.metadata, fresh=fresh)
            return namespace.stage_nowait(
                settings.stream,
                self._staging,
                app,
                create=settings.create,
                patience_s=settings.retry_s,
                compression=settings.compression,
            )

        ahead = [call_with_retries(begun, settings.retry_s)]

        def opened() -> sync.Staged:
            with _with_hint(settings):
                return (ahead.pop() if ahead else begun()).result()

        return lambda: call_with_retries(opened, settings.retry_s)

    def _publish(self, messages: Sequence[Any], key: Callable[[SinkMessage], BatchKey | None]) -> PublishedBatch | None:
        """Make what tasks have written visible. Raises: every failure; then the batch may be published again."""
        done = self._published(messages, key)
        freeze_loaded_objects()
        return done

    def _published(
        self, messages: Sequence[Any], key: Callable[[SinkMessage], BatchKey | None]
    ) -> PublishedBatch | None:
        reported = sorted((each for each in messages if each is not None), key=lambda each: each.partition)
        if len(reported) != len(messages):
            raise RuntimeError("a task has told nothing of its rows: the batch is not published")
        if not reported:
            return None
        if self._settings.at_least_once:
            return None  # the tasks have appended
        batch, settings = key(reported[0]), self._settings
        rows = [each.rows for each in reported]

        def publish() -> PublishedBatch:
            for _ in range(_CLAIMS_MAX - 1):
                try:
                    return _publisher(settings).publish(batch, rows)
                except OwnershipLostError:
                    _forget(settings)
                except (BatchRefusedError, StreamNotFoundError):
                    _forget(settings)  # the stream may have been deleted, and made anew for the batches to come
                    raise
            return _publisher(settings).publish(batch, rows)

        if batch is None:  # nothing would tell whether an attempt without an answer has published it
            return publish()
        done = call_with_retries(publish, settings.retry_s, lambda: _forget(settings))
        if reported[0].query:  # another batch follows
            _publisher(settings).prepare(batch.app)  # while Spark goes on
        return done


if DataSourceStreamArrowWriter is not None:

    class StreamSink(_Sink, DataSourceStreamArrowWriter):
        """The sink of a query."""

        def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
            """Make the batch visible, unless it is there already."""
            settings = self._settings

            def key(told: SinkMessage) -> BatchKey:
                return BatchKey(settings.app or told.query, told.query, batchId, settings.start)

            self._publish(messages, key)

        def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
            """The batch has failed. What tasks have written is deleted with the next batch, or within an hour."""


class BatchSink(_Sink, DataSourceArrowWriter):
    """The sink of a single write."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the batch visible, unless another run has published this version."""
        settings = self._settings

        def key(told: SinkMessage) -> BatchKey | None:
            if settings.app is None:
                return None
            assert settings.version is not None, "the options go together"
            return BatchKey(settings.app, told.query, settings.version, settings.start, told.run or _run())

        self._publish(messages, key)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """The write has failed. What tasks have written is deleted within an hour."""


def _append(stream: sync.Stream, records: Any, settings: WriteSettings) -> int:
    """Append records through a gateway, again if it is not known whether they are there. Returns how many."""

    def append() -> None:
        try:
            with stream.writer() as writer:
                writer.append_batch(records)
        except AppendOutcomeUnknownError as error:
            raise StreamUnavailableError(str(error), stream=stream.name) from error

    call_with_retries(append, settings.retry_s)
    return int(records.count)


def _opened(settings: WriteSettings, *, fresh: bool = False) -> sync.Stream:
    namespace = connections.namespace(settings.metadata, fresh=fresh)
    with _with_hint(settings):
        return namespace.open(settings.stream, create=settings.create)


@contextmanager
def _with_hint(settings: WriteSettings) -> Iterator[None]:
    """Add a hint to the error of a missing stream."""
    try:
        yield
    except StreamNotFoundError as error:
        raise StreamNotFoundError(
            f"there is no stream {settings.stream}: make it by `bk stream create`, or with "
            'option("createStream", "true")',
            stream=settings.stream,
        ) from error


def _publisher(settings: WriteSettings) -> sync.Publisher:
    """This process's right to publish to a stream, claimed at the first use."""
    place = _publisher_key(settings)
    with _lock:
        known = _publishers.get(place)
        if known is None:
            if settings.gateway is None:
                owner = f"Spark ({settings.app or 'a query'}, process {os.getpid()})"
                known = _opened(settings).publisher(owner=owner, take_over=settings.take_over)
            else:
                known = connections.namespace(settings.gateway).open(settings.stream).publisher()
            _publishers[place] = known
        return known


def _forget(settings: WriteSettings) -> None:
    with _lock:
        _publishers.pop(_publisher_key(settings), None)


def _publisher_key(settings: WriteSettings) -> tuple[int, str, str]:
    return os.getpid(), settings.gateway or settings.metadata, settings.stream


def _run() -> str:
    """The run of Spark that this process belongs to: its parent makes all Python processes of one driver."""
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", "rb") as stat:
            began = stat.read().rpartition(b")")[2].split()[19].decode()
    except OSError:
        began = ""
    return f"{os.uname().nodename}-{parent}-{began}"
