"""The sink as Spark calls it: tasks write, one object commits. The cluster is real, and in this process."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from bookkeeper.background_loop import run
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import Address
from bookkeeper.real import system_seams
from segments import (
    BatchRefusedError,
    StoredRecord,
    StreamNotFoundError,
    StreamOwnedError,
    StreamUnavailableError,
    sync,
)
from segments.gateway.service import GrpcGatewayService, GrpcServingConfig
from segments.publish import StreamPublisher
from spark_wal.data_source import connections, options, sink
from spark_wal.data_source.options import DataSourceOptionError, WriteSettings
from spark_wal.data_source.sink import BatchSink, SinkMessage, StreamSink
from tests.spark_wal.data_source.clusters import ONE_BOOKIE

SCHEMA = t.StructType([t.StructField("value", t.BinaryType())])


@pytest.fixture
def totals(namespace: sync.Namespace, request: pytest.FixtureRequest) -> Iterator[sync.Stream]:
    yield namespace.create(f"totals/{request.node.name}".replace("[", "-").replace("]", ""), config=ONE_BOOKIE)
    sink._publishers.clear()


def settings(stream: sync.Stream, uri: str, **more: Any) -> WriteSettings:
    return WriteSettings(**{"metadata": uri, "stream": stream.name, "retry_s": 0.0, **more})


def task(writer: Any, partition: int, *values: bytes, query: str = "q") -> SinkMessage:
    """What a task tells, as the driver gets it."""
    told = writer.write(iter([pa.record_batch({"value": pa.array(values, pa.binary())})]))
    told.partition, told.query = partition, query
    return pickle.loads(pickle.dumps(told))  # type: ignore[no-any-return]


def values(stream: sync.Stream) -> list[bytes]:
    with stream.read() as reader:
        return [record.value for record in reader if isinstance(record, StoredRecord)]


def commit(stream: sync.Stream, uri: str, batch: int, *parts: tuple[bytes, ...], query: str = "q", **more: Any) -> None:
    """One batch, written and committed by two objects, as Spark does it."""
    planned = StreamSink(settings(stream, uri, **more), SCHEMA)
    told = [task(pickle.loads(pickle.dumps(planned)), at, *part, query=query) for at, part in enumerate(parts)]
    StreamSink(settings(stream, uri, **more), SCHEMA).commit([*reversed(told)], batch)


def test_a_batch_is_visible_when_it_is_committed_in_the_order_of_its_partitions(
    totals: sync.Stream, cluster_uri: str
) -> None:
    large = bytes(100_000)
    writer = StreamSink(settings(totals, cluster_uri), SCHEMA)
    told = [task(writer, 0, b"a", b"b"), task(writer, 1, large), task(writer, 2), task(writer, 3, b"c")]
    assert values(totals) == []
    assert [each.rows.ledger is not None for each in told] == [False, True, False, False]
    StreamSink(settings(totals, cluster_uri), SCHEMA).commit([told[3], told[1], told[0], told[2]], 0)
    assert values(totals) == [b"a", b"b", large, b"c"]


@pytest.mark.rule("S14")
def test_a_batch_that_is_repeated_with_other_rows_is_there_once(totals: sync.Stream, cluster_uri: str) -> None:
    commit(totals, cluster_uri, 0, (b"first",))
    sink._publishers.clear()  # a new driver
    commit(totals, cluster_uri, 0, (b"other", b"rows"))
    commit(totals, cluster_uri, 1, (b"second",))
    assert values(totals) == [b"first", b"second"]


def test_a_query_that_lost_its_checkpoint_is_refused_unless_it_says_where_it_goes_on(
    totals: sync.Stream, cluster_uri: str
) -> None:
    for batch in range(2):
        commit(totals, cluster_uri, batch, (b"%d" % batch,), app="app")
    with pytest.raises(BatchRefusedError, match="as query q, and query new is another one"):
        commit(totals, cluster_uri, 0, (b"lost",), app="app", query="new")
    commit(totals, cluster_uri, 0, (b"goes on",), app="app", query="new", start=2)
    assert values(totals) == [b"0", b"1", b"goes on"]


def test_two_queries_share_a_stream_in_turn(totals: sync.Stream, cluster_uri: str) -> None:
    for batch in range(3):
        for query in ("a", "b"):
            sink._publishers.clear()  # each in a process of its own
            commit(totals, cluster_uri, batch, (query.encode(),), query=query)
    assert values(totals) == [b"a", b"b"] * 3


def test_a_publisher_that_was_overtaken_claims_the_stream_again(totals: sync.Stream, cluster_uri: str) -> None:
    commit(totals, cluster_uri, 0, (b"a",))
    totals.publisher()
    commit(totals, cluster_uri, 1, (b"b",))
    assert values(totals) == [b"a", b"b"]


@pytest.mark.rule("S14")
def test_a_query_goes_on_with_a_stream_that_was_deleted_and_made_anew(
    namespace: sync.Namespace, totals: sync.Stream, cluster_uri: str
) -> None:
    """The batch that is under way is refused, whichever of the two its rows were written for; the next one is not."""
    commit(totals, cluster_uri, 0, (b"a",))
    planned = StreamSink(settings(totals, cluster_uri), SCHEMA)
    old = task(planned, 0, b"of the deleted stream")
    namespace.delete(totals.name)
    with pytest.raises(StreamNotFoundError):
        planned.commit([old], 1)
    anew = namespace.create(totals.name, config=ONE_BOOKIE)
    with pytest.raises(BatchRefusedError, match="written for another stream"):
        planned.commit([old], 1)
    commit(anew, cluster_uri, 1, (b"b",))
    assert values(anew) == [b"b"]


def test_a_living_writer_is_not_overtaken_unless_the_options_say_so(totals: sync.Stream, cluster_uri: str) -> None:
    with totals.writer(owner="feeder") as writer:
        writer.append(b"w")
        with pytest.raises(StreamOwnedError, match="open for writing by feeder"):
            commit(totals, cluster_uri, 0, (b"x",))
        commit(totals, cluster_uri, 0, (b"x",), take_over=True)
        assert values(totals) == [b"w", b"x"]
        writer.abort()


@pytest.mark.parametrize("step", ["stage", "publish", "message"])
def test_every_failure_reaches_spark(
    totals: sync.Stream, cluster_uri: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise BookKeeperError("the disk is full")

    writer = StreamSink(settings(totals, cluster_uri), SCHEMA)
    if step == "stage":
        monkeypatch.setattr("segments.publish.staged_writer.StagedWriter.add", fails)
        with pytest.raises(BookKeeperError, match="the disk is full"):
            task(writer, 0, b"a")
    elif step == "publish":
        told = task(writer, 0, b"a")
        monkeypatch.setattr(StreamPublisher, "_published", fails)
        with pytest.raises(BookKeeperError, match="the disk is full"):
            writer.commit([told], 0)
    else:
        with pytest.raises(RuntimeError, match="a task has told nothing of its rows"):
            writer.commit([task(writer, 0, b"a"), None], 0)
    assert values(totals) == []


def test_a_stream_that_is_not_there_is_made_only_if_asked_for(namespace: sync.Namespace, cluster_uri: str) -> None:
    wanted = WriteSettings(metadata=cluster_uri, stream="not/there", retry_s=0)
    with pytest.raises(StreamNotFoundError, match=r"there is no stream not/there: make it by `bk stream create`"):
        task(StreamSink(wanted, SCHEMA), 0, b"a")
    assert not namespace.exists("not/there")


def test_the_stream_is_opened_while_the_steps_before_the_sink_work(
    totals: sync.Stream, cluster_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, stage_nowait = [], sync.Namespace.stage_nowait

    def asking(namespace: sync.Namespace, *given: Any, **more: Any) -> Any:
        asked.append(given)
        return stage_nowait(namespace, *given, **more)

    def batches() -> Iterator[Any]:
        assert len(asked) == 1
        for value in (b"a", b"b"):
            yield pa.record_batch({"value": pa.array([value], pa.binary())})

    monkeypatch.setattr(sync.Namespace, "stage_nowait", asking)
    assert StreamSink(settings(totals, cluster_uri), SCHEMA).write(batches()).rows.records == 2
    assert StreamSink(settings(totals, cluster_uri), SCHEMA).write(iter([])).rows.records == 0
    assert len(asked) == 2


def test_a_cluster_that_does_not_answer_at_first_is_asked_again(
    totals: sync.Stream, cluster_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, stage_nowait = [1, 1], sync.Namespace.stage_nowait

    def away(namespace: sync.Namespace, *given: Any, **more: Any) -> Any:
        if not left:
            return stage_nowait(namespace, *given, **more)
        left.pop()
        failed: Future[Any] = Future()
        failed.set_exception(StreamUnavailableError("no bookie answers"))
        return failed

    monkeypatch.setattr(sync.Namespace, "stage_nowait", away)
    told = task(StreamSink(settings(totals, cluster_uri, retry_s=60.0), SCHEMA), 0, b"a")
    assert told.rows.records == 1 and not left
    left.append(1)
    with pytest.raises(StreamUnavailableError, match="no bookie answers"):
        task(StreamSink(settings(totals, cluster_uri), SCHEMA), 0, b"a")


def test_a_single_write_is_known_by_its_version_and_a_run_writes_one_once(
    totals: sync.Stream, cluster_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(version: int | None, *rows: bytes) -> None:
        app = None if version is None else "app"
        writer = BatchSink(settings(totals, cluster_uri, app=app, version=version), SCHEMA)
        writer.commit([task(writer, 0, *rows, query="")])

    write(1, b"one")
    with pytest.raises(BatchRefusedError, match="has written number 1"):
        write(1, b"again")
    monkeypatch.setattr(sink, "_run", lambda: "another run")
    write(1, b"repeated")
    write(None, b"plain")
    write(None, b"plain")
    assert values(totals) == [b"one", b"plain", b"plain"]


def test_a_query_s_next_ledger_is_made_when_its_batch_is_there_and_that_of_a_single_write_is_not(
    totals: sync.Stream, cluster_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []
    prepare = StreamPublisher.prepare

    async def prepared(publisher: StreamPublisher, app: str) -> None:
        asked.append((app, publisher._owner.chain.records))
        await prepare(publisher, app)

    monkeypatch.setattr(StreamPublisher, "prepare", prepared)
    single = BatchSink(settings(totals, cluster_uri, app="a", version=0), SCHEMA)
    single.commit([task(single, 0, b"single", query="")])
    for number, value in enumerate((b"first", b"second")):
        commit(totals, cluster_uri, number, (value,))
    (publisher,) = sink._publishers.values()
    publisher.prepare("q").result()  # behind those of the sink
    assert asked[:2] == [("q", 2), ("q", 3)]
    assert values(totals) == [b"single", b"first", b"second"]
    publisher.close()


def test_a_sink_compresses_what_its_tasks_write_as_it_is_asked_to(totals: sync.Stream, cluster_uri: str) -> None:
    large = bytes(300_000)
    for batch, compression in enumerate((None, "lz4", "zstd")):
        commit(totals, cluster_uri, batch, (large,), (b"few",), compression=compression)
    assert values(totals) == [large, b"few"] * 3
    stored = [segment.contents.bytes for segment in totals.segments() if segment.contents is not None]
    assert stored[0] > len(large) > 20 * max(stored[2], stored[4])


def test_an_application_that_no_stream_would_remember_is_refused_before_a_task_runs() -> None:
    named = {"metadata": "sqlite:///x", "stream": "a", "txnAppId": "a" * 513}
    with pytest.raises(DataSourceOptionError, match="a name of at most 512 bytes, and this one has 513"):
        sink.stream_writer(named, SCHEMA, overwrite=False)
    with pytest.raises(DataSourceOptionError, match="a name of at most 512 bytes, and this one has 513"):
        sink.writer({**named, "txnVersion": "1"}, SCHEMA, overwrite=False)


def test_overwriting_and_complete_mode_are_refused() -> None:
    named = {"metadata": "sqlite:///x", "stream": "a"}
    with pytest.raises(DataSourceOptionError, match="complete mode replaces everything"):
        sink.stream_writer(named, SCHEMA, overwrite=True)
    with pytest.raises(DataSourceOptionError, match="appended to and not overwritten"):
        sink.writer(named, SCHEMA, overwrite=True)
    assert isinstance(sink.writer(named, SCHEMA, overwrite=False), BatchSink)
    with pytest.raises(DataSourceOptionError, match="txnVersion is for write"):
        sink.stream_writer({**named, "txnVersion": "1"}, SCHEMA, overwrite=False)
    with pytest.raises(DataSourceOptionError, match="with guarantee atLeastOnce tasks append through gateways"):
        sink.stream_writer({**named, "guarantee": "atLeastOnce"}, SCHEMA, overwrite=False)
    assert options.write_settings({**named, "txnAppId": "a", "txnVersion": "3"}, streaming=False).version == 3


@pytest.fixture
def gateway(cluster_uri: str) -> Iterator[str]:
    service = GrpcGatewayService(GrpcServingConfig(uri=cluster_uri, listen=Address("127.0.0.1", 0)), system_seams())
    yield f"grpc://{run(service.start())}"
    run(service.close())


@pytest.mark.rule("S14")
def test_a_stream_that_a_gateway_owns_is_written_through_it_exactly_once(
    totals: sync.Stream, cluster_uri: str, gateway: str
) -> None:
    with connections.namespace(gateway).open(totals.name).writer() as writer:
        writer.append(b"before")
        with pytest.raises(StreamOwnedError, match=f'option\\("gateway", "{gateway}"\\)'):
            commit(totals, cluster_uri, 0, (b"a",))
        large = bytes(100_000)
        commit(totals, cluster_uri, 0, (b"a", b"b"), (large,), gateway=gateway)
        sink._publishers.clear()  # a new driver
        commit(totals, cluster_uri, 0, (b"other", b"rows"), gateway=gateway)
        commit(totals, cluster_uri, 1, (b"c",), gateway=gateway)
        writer.append(b"after")
    assert values(totals) == [b"before", b"a", b"b", large, b"c", b"after"]


@pytest.mark.rule("S14")
def test_tasks_that_reach_a_gateway_alone_write_exactly_once(totals: sync.Stream, gateway: str) -> None:
    alone = options.write_settings({"metadata": gateway, "stream": totals.name, "retrySeconds": "0"}, streaming=True)
    assert alone.gateway == gateway
    for values_of_tasks in (((b"a", b"b"), (b"c",)), ((b"other", b"rows"),)):
        told = [task(StreamSink(alone, SCHEMA), at, *part) for at, part in enumerate(values_of_tasks)]
        StreamSink(alone, SCHEMA).commit([*reversed(told)], 0)
        sink._publishers.clear()  # a new driver
    assert values(totals) == [b"a", b"b", b"c"]


def test_at_least_once_tasks_append_through_a_gateway(totals: sync.Stream, gateway: str) -> None:
    schema = t.StructType([*SCHEMA.fields, t.StructField("key", t.BinaryType())])
    planned = StreamSink(settings(totals, gateway, at_least_once=True), schema)
    large = bytes(1_500_000)
    rows = pa.record_batch({"value": pa.array([b"a", b"b", large]), "key": pa.array([b"k", None, b"l"])})
    told = planned.write(iter([rows]))
    assert (told.rows.records, told.rows.ledger, told.rows.entries) == (3, None, ())
    planned.commit([told], 0)
    with totals.read() as reader:
        found = [(record.key, record.value) for record in reader if isinstance(record, StoredRecord)]
    assert found == [(b"k", b"a"), (None, b"b"), (b"l", large)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metadata": "grpc://g:1", "gateway": "grpc://g:1"}, "leave one of them out"),
        ({"metadata": "grpc://g:1", "takeOver": "true"}, "through a gateway nothing is taken"),
        ({"gateway": "sqlite:///x"}, "option gateway is grpc://HOST:PORT"),
        ({"gateway": "grpc://g:1", "takeOver": "true"}, "through a gateway nothing is taken"),
        ({"guarantee": "atLeastOnce"}, "the option metadata is grpc://HOST:PORT then"),
        ({"guarantee": "atLeastOnce", "metadata": "grpc://g:1", "txnAppId": "a"}, "option txnAppId is for exactlyOnce"),
    ],
)
def test_what_cannot_be_with_a_gateway_is_refused_with_a_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(DataSourceOptionError, match=said):
        options.write_settings({"metadata": "sqlite:///x", "stream": "a", **given}, streaming=True)
