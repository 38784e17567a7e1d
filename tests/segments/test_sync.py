"""Streams for threads: the same calls, the same errors, and appends of many threads."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import segments.cursors.cursor
import segments.namespace
import segments.read.reader
import segments.remote
import segments.remote.remote_cursor
import segments.remote.remote_transfer
import segments.remote.remote_writer
import segments.stream
import segments.transfer.transfer
import segments.write.producer
import segments.write.writer
from bookkeeper.background_loop import run
from bookkeeper.errors import IllegalOperationError
from bookkeeper.outcome import Outcome
from segments import sync
from segments.config import RollPolicy, StreamConfig
from segments.entries.columns import RecordColumns
from segments.errors import OwnershipLostError, StreamClosedError, StreamNotFoundError, StreamSealedError
from segments.record import StoredRecord
from segments.seek import AtSeqNo

FOR_GATEWAYS = {"cursor_for", "hold_for", "publisher_for", "release_hold_for"}
"""What a gateway calls for a caller whom it knows."""

ONE_BOOKIE = StreamConfig(ensemble=1, write_quorum=1, ack_quorum=1, roll=RollPolicy(min_age_s=0))


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sync.Namespace]:
    with sync.connect(f"embedded://{tmp_path_factory.mktemp('bk')}?bookies=1") as found:
        yield found


def values(reader: sync.Reader) -> list[bytes]:
    with reader:
        return [record.value for record in reader if isinstance(record, StoredRecord)]


def test_a_plain_program_writes_and_reads(namespace: sync.Namespace) -> None:
    stream = namespace.create("plain", config=ONE_BOOKIE)
    with stream.writer(owner="me") as writer:
        first = writer.append(b"0")
        waiting = [writer.append_nowait(b"%d" % n) for n in (1, 2)]
        assert [future.result().seq_no for future in waiting] == [1, 2]
        assert writer.append_batch([b"3", b"4"]).seq_no == 3
        assert writer.roll().records == 5
        last = writer.append_if(b"5", tail=writer.tail)
        assert (writer.flush(), writer.tail, writer.lost, writer.epoch) == (last.last, last.last, False, 1)
        writer.commit()
    assert values(stream.read()) == [b"%d" % n for n in range(6)]
    assert values(stream.read(AtSeqNo(4), stop=last.position)) == [b"4"]
    assert (stream.count(), stream.find(AtSeqNo(0))) == (6, first.position)
    one, six = stream.first(), stream.last()
    assert one is not None and six is not None and (one.value, six.value) == (b"0", b"5")
    assert stream.tail_position() > six.position and len(stream.segments()) == 2
    with stream.read(follow=True) as reader:
        assert len(reader.next_batch(2)) == 2 and not reader.caught_up
        record = reader.next()
        assert isinstance(record, StoredRecord) and record.value == b"2" and reader.lag().records == 3
        assert reader.state().position == reader.position and reader.skip_gap() is None
        reader.seek(AtSeqNo(5))
        assert len(reader.next_batch()) == 1 and reader.next(timeout=0.01) is None and not reader.ended
    assert sum(part.records for part in stream.splits(target=2)) == 6


def test_a_producer_and_a_cursor(namespace: sync.Namespace) -> None:
    stream = namespace.open("producing", create=True, config=ONE_BOOKIE)
    with stream.producer("loader") as producer:
        original = producer.append(b"0")
        producer.append_batch([b"1", b"2"])
        assert producer.append_nowait(b"3").result().seq_no == 3
        assert producer.append(b"0", seq=0).duplicate and (producer.last_seq, producer.next_seq) == (3, 4)
        outcome, result = producer.outcome(0)
        assert outcome is Outcome.APPLIED and result is not None and result.position == original.position
        producer.flush()
    with stream.cursor("billing") as cursor:
        with cursor.read() as reader:
            records = [record for record in reader if isinstance(record, StoredRecord)]
        cursor.advance(records[1])
        cursor.ack(records[3])
        assert cursor.backlog().records == 1 and cursor.position() == records[1].position.next
        cursor.set_properties({"who": "me"})
    looked_at = stream.cursor("billing")
    assert looked_at.properties() == {"who": "me"} and len(looked_at.history()) >= 2
    assert looked_at.reset(AtSeqNo(0)) <= records[0].position and set(stream.cursors()) == {"billing"}
    looked_at.restore(1)
    looked_at.delete()
    assert stream.cursors() == {}


def test_the_life_of_a_stream(namespace: sync.Namespace) -> None:
    stream = namespace.create("life", config=ONE_BOOKIE)
    with stream.writer() as writer:
        for number in range(3):
            writer.append(b"%d" % number)
            writer.roll()
    stream.hold("audit", AtSeqNo(1))
    assert [hold.name for hold in stream.holds()] == ["audit"]
    assert stream.truncate(AtSeqNo(2), up_to_holds=True).start == stream.find(AtSeqNo(1))
    stream.release_hold("audit")
    assert stream.configure({"retention.max_records": 1}).retention.max_records == 1
    assert [each.goes for each in stream.explain_retention().segments] == [True, True, False]
    assert len(stream.apply_retention().deleted) == 2
    copy = namespace.import_stream(list(stream.export()), name="life/copy")
    assert copy.records == 1 and namespace.verify("life/copy") == () and namespace.verify() == ()
    namespace.rename("life/copy", "life/second")
    assert [info.records for info in namespace.infos("life/")] == [1]
    assert list(namespace.list("life")) == ["life", "life/second"] and namespace.exists("life/second")
    namespace.delete("life/second")
    assert namespace.finish_deletions() == ()
    stream.roll()
    assert stream.seal() is not None
    with pytest.raises(StreamSealedError):
        stream.writer()


def test_rows_are_staged_for_a_stream_that_is_opened_meanwhile(namespace: sync.Namespace) -> None:
    staged = namespace.stage_nowait("staged/meanwhile", "s", "a", create=True).result()
    staged.add(RecordColumns.of_values([b"a"]))
    rows = staged.finish(RecordColumns.of_values([b"b"]))
    assert (rows.staging, rows.records, rows.stream_id) == ("s", 2, namespace.open("staged/meanwhile").id)
    with pytest.raises(StreamNotFoundError):
        namespace.stage_nowait("staged/nowhere", "s").result()


def test_many_threads_append_through_one_writer(namespace: sync.Namespace) -> None:
    stream = namespace.create("threads", config=ONE_BOOKIE)
    with stream.writer() as writer, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: writer.append(b"%d" % n), range(200)))
    assert len({result.position for result in results}) == 200
    assert sorted(map(int, values(stream.read()))) == list(range(200))


def test_errors_are_those_of_the_async_interface(namespace: sync.Namespace) -> None:
    with pytest.raises(StreamNotFoundError):
        namespace.open("nowhere")
    stream = namespace.create("errors", config=ONE_BOOKIE)
    first = stream.writer()
    with stream.writer():
        with pytest.raises(OwnershipLostError):
            first.append(b"late")
        first.abort()
    reader = stream.read(follow=True)
    reader.close()
    with pytest.raises(StreamClosedError):
        reader.next()


def test_it_refuses_to_wait_for_itself(namespace: sync.Namespace) -> None:
    async def on_the_loop() -> None:
        namespace.exists("plain")

    with pytest.raises(IllegalOperationError):
        run(on_the_loop())


@pytest.mark.parametrize(
    ("blocking", "original", "left_out"),
    [
        (sync.Namespace, segments.namespace.StreamNamespace, {"client", "ensure_open"}),
        (
            sync.Stream,
            segments.stream.Stream,
            {"client", "node", "reading", "read_config", "chain", "keep_retention", "close", "found_as", "position_of"}
            | FOR_GATEWAYS,
        ),
        (
            sync.Cursor,
            segments.cursors.cursor.Cursor,
            {"reading", "path", "refused", "open", "ack_later", "flush", "abandon", "held", "resume"},
        ),
        (sync.Reader, segments.read.reader.Reader, set()),
    ],
)
def test_nothing_of_the_interface_is_forgotten(blocking: type, original: type, left_out: set[str]) -> None:
    assert public(original) - public(blocking) <= left_out


@pytest.mark.parametrize(
    ("remote", "original", "left_out"),
    [
        (
            segments.remote.RemoteNamespace,
            segments.namespace.StreamNamespace,
            set(),
        ),
        (
            segments.remote.RemoteStream,
            segments.stream.Stream,
            {
                "reading",
                "chain",
                "keep_retention",
                "found_as",
                "position_of",
            }
            | FOR_GATEWAYS,
        ),
        (
            segments.remote.remote_cursor.RemoteCursor,
            segments.cursors.cursor.Cursor,
            {"reading", "path", "refused", "held", "resume"},
        ),
        (segments.remote.RemoteReader, segments.read.reader.Reader, set()),
        (
            segments.remote.remote_writer.RemoteWriter,
            segments.write.writer.Writer,
            {"announce", "begin", "last_txid", "metrics", "next_seq_no", "now_ms"}
            | {
                "ensure_current",
                "segment",
                "start",
                "state",
            },  # for the one who owns the stream
        ),
        (segments.remote.remote_transfer.RemoteExport, segments.transfer.transfer.StreamExport, set()),
    ],
)
def test_what_is_behind_gateways_has_the_interface_too(remote: type, original: type, left_out: set[str]) -> None:
    """What is left out is what a gateway does itself, or has no call for."""
    assert public(original) - public(remote) == left_out


def public(of: type) -> set[str]:
    """The names that a class has for everybody."""
    return {name for name, _ in inspect.getmembers(of) if not name.startswith("_")}
