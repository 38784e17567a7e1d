"""Requests and replies over one connection: matched, limited in time, and told of a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from bookkeeper import codec, wire
from bookkeeper.codec import ReadReplies
from bookkeeper.errors import BookieError, BookieUnavailableError, RequestTimedOutError
from bookkeeper.ids import Address, EntryId, LedgerId
from bookkeeper.net.connection import AddRun, AddStream, BookieConnection, StreamIds, connect_bookie
from bookkeeper.net.frame_protocol import FrameProtocol
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.real import system_seams
from bookkeeper.seams import Buffer
from bookkeeper.testing.cluster import CLIENT, SimCluster
from bookkeeper.wire import Dialect, Status
from bookkeeper.wire import bookkeeper_pb2 as pb
from bookkeeper.wire.v3 import frame


def test_a_stream_that_is_closed_or_lost_reports_nothing_more() -> None:
    connection = BookieConnection(Address("b", 1), Dialect.V3)
    error = BookieUnavailableError("gone")
    for ending in (AddStream.close, lambda stream: stream.lost(error)):
        got: list[AddRun] = []
        lost: list[BookieError] = []
        stream = connection.open_stream(1, LedgerId(7), got.extend, lost.append)
        stream.answered([(0, 3, Status.OK)])
        ending(stream)
        told = len(lost)
        stream.answered([(3, 1, Status.OK)])
        stream.lost(error)
        stream.close()
        assert stream.closed
        assert got == [(0, 3, Status.OK)]
        assert len(lost) == told
        connection.close_stream(stream)


def test_stream_ids_are_small_and_begin_again() -> None:
    ids = StreamIds()
    assert [ids.next(), ids.next()] == [1, 2]
    ids._last = (1 << 23) - 1
    assert ids.next() == 1
    connection = BookieConnection(Address("b", 1), Dialect.V3)
    stream = connection.open_stream(5, LedgerId(7), lambda runs: None, lambda error: None)
    assert stream.txn_base == 5 << 40


KEY = b"k" * 20
LEDGER = LedgerId(7)
Answer = Callable[["Bookie", wire.RequestHeader, wire.Request], None]


class Bookie(FrameProtocol):
    """The other side: adds are acknowledged, everything else goes to ``answer``."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer
        self.detector = wire.DialectDetector()
        self.acknowledge = True
        self.seen: list[wire.Request] = []

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        adds = codec.split_adds(buffer, start, end, self.frame_max, self.detector.v2)
        self.detector.v2 = adds.v2
        if adds.acks and self.acknowledge:
            self.write(adds.acks)
        for s, e in adds.slow:
            decoded = self.detector.decode(bytes(buffer[s:e]))
            assert not isinstance(decoded, wire.RefusedFrame)
            self.seen.append(decoded[1])
            self.answer(self, *decoded)
        return adds.used - start

    def reply(self, header: wire.RequestHeader, reply: wire.Reply) -> None:
        self.write(wire.encode_reply(header, reply))


def read_reply(request: wire.Request, payload: bytes = b"x") -> wire.ReadReply:
    assert isinstance(request, wire.ReadEntry)
    return wire.ReadReply(Status.OK, request.ledger_id, request.entry_id, entry=payload)


def echo(bookie: Bookie, header: wire.RequestHeader, request: wire.Request) -> None:
    bookie.reply(header, read_reply(request, b"%d" % request.entry_id))  # type: ignore[union-attr]


def silent(bookie: Bookie, header: wire.RequestHeader, request: wire.Request) -> None: ...


async def connected(answer: Answer, dialect: Dialect = Dialect.V3) -> tuple[BookieConnection, Bookie]:
    net = InProcessNet()
    bookie = Bookie(answer)
    listener = await net.listen(Address("b", 1), lambda: bookie)
    return await connect_bookie(net, listener.address, dialect), bookie


def read(entry: int, *, fence: bool = False) -> wire.ReadEntry:
    return wire.ReadEntry(LEDGER, EntryId(entry), master_key=KEY if fence else None, fence=fence)


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


@pytest.mark.rule("B13")
@pytest.mark.parametrize("dialect", Dialect)
async def test_each_request_gets_its_own_reply_whatever_the_order(dialect: Dialect) -> None:
    held: list[tuple[wire.RequestHeader, wire.Request]] = []
    connection, bookie = await connected(lambda b, header, request: held.append((header, request)), dialect)
    replies = [asyncio.ensure_future(connection.request(read(entry), 5)) for entry in range(10)]
    await settle()
    assert connection.outstanding == 10
    for header, request in reversed(held):
        echo(bookie, header, request)
    for entry, reply in enumerate(await asyncio.gather(*replies)):
        assert isinstance(reply, wire.ReadReply)
        assert reply.entry == b"%d" % entry
    assert connection.outstanding == 0


async def test_the_reply_to_a_notice_is_dropped_without_being_decoded_and_one_that_refuses_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lac = wire.WriteLac(LEDGER, 3, KEY, b"\0" * 7 + b"\7" + b"\0" * 7 + b"\3")
    notices: list[wire.WriteLac | wire.GetBookieInfo] = [wire.GetBookieInfo(0, LEDGER), lac, lac, lac]
    answers: list[wire.Reply] = [
        wire.InfoReply(Status.OK),
        wire.WriteLacReply(Status.OK, LEDGER),
        wire.WriteLacReply(Status.UNAUTHORIZED, LEDGER),
        wire.BareReply(Status.UNAUTHORIZED),
    ]
    decoded: list[wire.Reply] = []
    decode = wire.decode_reply

    def noted(body: Buffer, dialect: Dialect) -> tuple[wire.RequestHeader, wire.Reply]:
        header, reply = decode(body, dialect)
        decoded.append(reply)
        return header, reply

    monkeypatch.setattr(wire, "decode_reply", noted)
    connection, bookie = await connected(lambda b, header, request: b.reply(header, answers[len(bookie.seen) - 1]))
    for count, notice in enumerate(notices, 1):
        connection.write(wire.encode_notice(notice))
        await settle()
        assert bookie.seen == notices[:count] and decoded == answers[2:count]
        assert connection.outstanding == 0
    assert connection.closed, "a bookie that does not know this client says so by such a reply"


@pytest.mark.parametrize("dialect", Dialect)
async def test_streams_get_their_replies_as_runs(dialect: Dialect) -> None:
    connection, _bookie = await connected(silent, dialect)
    ids = StreamIds()
    got: dict[int, list[AddRun]] = {}
    streams = []
    for ledger in (LedgerId(1), LedgerId(2)):
        got[ledger] = []
        stream = connection.open_stream(ids.next(), ledger, got[ledger].extend, lambda error: None)
        streams.append(stream)
        frames, _ = codec.encode_adds(dialect, ledger, 0, [b"p"] * 50, -1, 0, KEY, 3, txn_base=stream.txn_base)
        stream.send(frames)
    assert got == {1: [], 2: []}, "a reply came inside send"
    await settle()
    assert got == {1: [(0, 50, Status.OK)], 2: [(0, 50, Status.OK)]}
    streams[0].close()
    frames, _ = codec.encode_adds(dialect, 1, 50, [b"p"], -1, 50, KEY, 3, txn_base=streams[0].txn_base)
    connection.write(frames)
    await settle()
    assert got[1] == [(0, 50, Status.OK)]
    connection.close()


@pytest.mark.rule("B13")
@pytest.mark.parametrize(
    ("reply", "heard"),
    [
        (wire.AddReply(Status.OK, LEDGER, EntryId(5)), [(5, 1, Status.OK)]),
        (wire.AddReply(Status.IO_ERROR, LEDGER, EntryId(5)), [(5, 1, Status.IO_ERROR)]),
        (wire.BareReply(Status.TOO_MANY_REQUESTS), [(5, 1, Status.TOO_MANY_REQUESTS)]),
        (wire.AddReply(Status.READ_ONLY, LedgerId(0), EntryId(0)), [(5, 1, Status.READ_ONLY)]),
        (wire.BareReply(Status.OK), []),
        (wire.AddReply(Status.OK, LedgerId(LEDGER + 1), EntryId(5)), []),
        (wire.AddReply(Status.OK, LEDGER, EntryId(6)), []),
    ],
    ids=str,
)
async def test_a_streams_reply_in_an_unusual_shape_is_heard_and_only_a_named_entry_is_stored(
    reply: wire.Reply, heard: list[AddRun]
) -> None:
    connection, bookie = await connected(silent)
    got: list[AddRun] = []
    stream = connection.open_stream(3, LEDGER, got.extend, lambda error: None)
    header = wire.RequestHeader(Dialect.V3, wire.Operation.ADD, stream.txn_base + 5, version=3, priority=100)
    odd = wire.encode_reply(header, reply)
    if isinstance(reply, wire.AddReply):  # a field more than is needed: the header's priority
        message = pb.Response.FromString(odd[4:])
        message.header.priority = 100
        odd = frame(message.SerializeToString())
    assert not codec.split_add_replies(bytearray(odd), 0, len(odd), 1 << 20).runs
    bookie.write(odd)
    await settle()
    assert got == heard and not connection.closed
    connection.close()


async def test_one_encoding_serves_streams_of_the_same_id_on_several_connections() -> None:
    got: list[list[AddRun]] = [[], []]
    frames, _ = codec.encode_adds(3, LEDGER, 0, [b"p"] * 3, -1, 0, KEY, 3, txn_base=5 << 40)
    for replies in got:
        connection, _ = await connected(silent)
        connection.open_stream(5, LEDGER, replies.extend, lambda error: None).send(frames)
    await settle()
    assert got == [[(0, 3, Status.OK)]] * 2


async def test_two_streams_of_one_name_are_refused() -> None:
    connection, _ = await connected(silent, Dialect.V2)
    connection.open_stream(1, LEDGER, lambda batch: None, lambda error: None)
    with pytest.raises(ValueError, match="already"):
        connection.open_stream(2, LEDGER, lambda batch: None, lambda error: None)


@pytest.mark.parametrize("dialect", Dialect)
async def test_an_add_made_as_a_request_finds_its_reply_beside_a_stream(dialect: Dialect) -> None:
    connection, _bookie = await connected(silent, dialect)
    batches: list[AddRun] = []
    stream = connection.open_stream(1, LEDGER, batches.extend, lambda error: None)
    frames, _ = codec.encode_adds(dialect, LEDGER, 0, [b"p"] * 3, -1, 0, KEY, 3, txn_base=stream.txn_base)
    entry = (8).to_bytes(8, "big") + (5).to_bytes(8, "big") + bytes(16)
    asked = asyncio.ensure_future(connection.request(wire.AddEntry(LedgerId(8), EntryId(5), KEY, entry), 5))
    await asyncio.sleep(0)
    stream.send(frames)
    assert await asked == wire.AddReply(Status.OK, LedgerId(8), EntryId(5))
    assert batches == [(0, 3, Status.OK)]


async def test_a_late_reply_is_dropped_and_its_place_is_not_given_to_another() -> None:
    held: list[tuple[wire.RequestHeader, wire.Request]] = []
    for dialect in Dialect:
        held.clear()
        connection, bookie = await connected(lambda b, header, request: held.append((header, request)), dialect)
        with pytest.raises(RequestTimedOutError):
            await connection.request(read(1), 0.001)
        again = asyncio.ensure_future(connection.request(read(1), 5))
        await settle()
        bookie.reply(held[0][0], read_reply(held[0][1], b"late"))
        bookie.reply(held[1][0], read_reply(held[1][1], b"in time"))
        reply = await again
        assert isinstance(reply, wire.ReadReply)
        assert reply.entry == b"in time"
        connection.close()


@pytest.mark.rule("R3")
async def test_on_v2_a_plain_reads_reply_is_never_taken_for_a_fence() -> None:
    held: list[tuple[wire.RequestHeader, wire.Request]] = []
    connection, bookie = await connected(lambda b, header, request: held.append((header, request)), Dialect.V2)
    plain = asyncio.ensure_future(connection.request(read(-1), 5))
    fence = asyncio.ensure_future(connection.request(read(-1, fence=True), 5))
    await settle()
    assert [request.fence for _, request in held] == [False]  # type: ignore[union-attr]
    bookie.reply(held[0][0], read_reply(held[0][1]))
    await plain
    await settle()
    assert [request.fence for _, request in held] == [False, True]  # type: ignore[union-attr]
    assert not fence.done()
    bookie.reply(held[1][0], read_reply(held[1][1]))
    await fence


@pytest.mark.rule("V1")
async def test_a_lost_connection_tells_everything_that_waits_once() -> None:
    connection, bookie = await connected(silent)
    bookie.acknowledge = False
    lost: list[BookieError] = []
    closings: list[BookieConnection] = []
    connection.on_closing.append(closings.append)
    stream = connection.open_stream(1, LEDGER, lambda batch: None, lost.append)
    replies: list[wire.Reply | BookieError] = []
    for entry in range(3):
        connection.request_nowait(read(entry), 5, replies.append)
    await settle()
    bookie.abort()
    assert not lost
    await settle()
    assert [type(error) for error in (*lost, *replies)] == [BookieUnavailableError] * 4
    assert closings == [connection]
    assert (stream.closed, connection.outstanding) == (True, 0)
    later: list[wire.Reply | BookieError] = []
    connection.request_nowait(read(1), 5, later.append)
    connection.open_stream(2, LEDGER, lambda batch: None, lost.append)
    assert (len(later), len(lost)) == (0, 1), "an error came inside the call"
    await settle()
    assert (len(later), len(lost)) == (1, 2)


@pytest.mark.rule("F12")
@pytest.mark.parametrize("junk", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\4junk"])
async def test_a_bookie_that_sends_nonsense_loses_the_connection(junk: bytes) -> None:
    connection, bookie = await connected(silent)
    asked = asyncio.ensure_future(connection.request(read(1), 5))
    await settle()
    bookie.write(junk)
    with pytest.raises(BookieUnavailableError):
        await asked


async def test_a_batch_read_is_matched_by_an_id_of_the_connections_own() -> None:
    def answer(bookie: Bookie, header: wire.RequestHeader, request: wire.Request) -> None:
        assert isinstance(request, wire.BatchRead)
        body = b"%d" % request.count_max
        bookie.reply(header, wire.BatchReply(Status.OK, LEDGER, request.first_entry, request.request_id, body))

    connection, _ = await connected(answer, Dialect.V2)
    asked = [connection.request(wire.BatchRead(LEDGER, EntryId(0), 0, count, 0), 5) for count in (1, 2)]
    replies = await asyncio.gather(*asked)
    assert [reply.body for reply in replies] == [b"1", b"2"]  # type: ignore[union-attr]


@pytest.mark.parametrize("address", [Address("127.0.0.1", 70_000), Address("a..b", 1), Address("x\0y", 1)], ids=repr)
async def test_an_address_that_cannot_be_is_an_error_of_the_bookie_that_published_it(address: Address) -> None:
    with pytest.raises(BookieUnavailableError, match="cannot connect to"):
        await connect_bookie(system_seams().net, address)


async def test_nobody_there_is_an_error_of_the_bookie() -> None:
    with pytest.raises(BookieUnavailableError, match="cannot connect"):
        await connect_bookie(InProcessNet(), Address("nowhere", 1))


# -- plain reads that are sent together -----------------------------------------------------------------------


class Sink:
    """What came, in order."""

    def __init__(self) -> None:
        self.entries: dict[int, bytes] = {}
        self.others: list[tuple[int, Status | str]] = []
        self.calls = 0

    def found(self, buffer: Buffer, replies: ReadReplies, picked: list[int], entry_ids: list[int]) -> None:
        self.calls += 1
        for i, entry_id in zip(picked, entry_ids, strict=True):
            assert entry_id not in self.entries
            assert replies.entry_ids[i] == entry_id
            self.entries[entry_id] = bytes(memoryview(buffer)[replies.begins[i] : replies.ends[i]])

    def answered(self, entry_id: int, reply: wire.Reply | BookieError) -> None:
        self.others.append((entry_id, type(reply).__name__ if isinstance(reply, BookieError) else reply.status))

    def lost(self, error: BookieError) -> None:
        self.others.append((-1, type(error).__name__))


def soon() -> float:
    return asyncio.get_running_loop().time() + 5


@pytest.mark.parametrize("dialect", Dialect)
async def test_reads_sent_together_are_answered_together_or_one_by_one(dialect: Dialect) -> None:
    def answer(bookie: Bookie, header: wire.RequestHeader, request: wire.Request) -> None:
        assert isinstance(request, wire.ReadEntry)
        if request.entry_id % 10 == 5:
            bookie.reply(header, wire.ReadReply(Status.NO_ENTRY, request.ledger_id, request.entry_id))
        else:
            echo(bookie, header, request)

    connection, bookie = await connected(answer, dialect)
    one, other = Sink(), Sink()
    connection.reads_nowait(LEDGER, [1, 2, 5, 6], soon(), one)
    connection.reads_nowait(LEDGER, [2, 15, 7], soon(), other)
    single = asyncio.ensure_future(connection.request(read(2), 5))
    await asyncio.sleep(0)
    assert connection.outstanding == 8
    reply = await single
    assert isinstance(reply, wire.ReadReply)
    assert reply.entry == b"2"
    assert one.entries == {1: b"1", 2: b"2", 6: b"6"}
    assert other.entries == {2: b"2", 7: b"7"}
    assert (one.others, other.others) == ([(5, Status.NO_ENTRY)], [(15, Status.NO_ENTRY)])
    assert connection.outstanding == 0
    assert len(bookie.seen) == 8
    again = Sink()
    connection.reads_nowait(LEDGER, [8, 9, 10], soon(), again)
    await settle()
    assert (again.calls, len(again.entries)) == (1, 3)


@pytest.mark.parametrize("dialect", Dialect)
async def test_replies_in_any_order_with_adds_between_find_their_reads_once(dialect: Dialect) -> None:
    held: list[tuple[wire.RequestHeader, wire.Request]] = []
    connection, bookie = await connected(lambda b, header, request: held.append((header, request)), dialect)
    acked: list[AddRun] = []
    stream = connection.open_stream(1, LEDGER, acked.extend, lambda error: None)
    sink = Sink()
    connection.reads_nowait(LEDGER, [1, 2, 3, 4], soon(), sink)
    await settle()
    for number in (2, 0):
        bookie.reply(held[number][0], read_reply(held[number][1]))
    frames, _ = codec.encode_adds(dialect, LEDGER, 0, [b"p"] * 3, -1, 0, KEY, 3, txn_base=stream.txn_base)
    adds = codec.split_adds(frames, 0, len(frames))
    bookie.write(adds.acks)
    for number in (0, 3, 2, 1, 1):
        bookie.reply(held[number][0], read_reply(held[number][1]))
    bookie.write(adds.acks)
    await settle()
    assert sorted(sink.entries) == [1, 2, 3, 4]
    assert sink.others == []
    assert sum(count for _, count, _ in acked) == 6
    assert connection.outstanding == 0


@pytest.mark.rule("R3")
async def test_on_v2_reads_wait_behind_a_fence_of_the_same_entry_and_pass_others() -> None:
    held: list[tuple[wire.RequestHeader, wire.Request]] = []
    connection, bookie = await connected(lambda b, header, request: held.append((header, request)), Dialect.V2)
    fence = asyncio.ensure_future(connection.request(read(3, fence=True), 5))
    await settle()
    sink = Sink()
    connection.reads_nowait(LEDGER, [2, 3, 4], soon(), sink)
    await settle()
    assert [(r.entry_id, r.fence) for _, r in held] == [(3, True), (2, False), (4, False)]  # type: ignore[union-attr]
    assert connection.outstanding >= 4
    for header, request in held:
        bookie.reply(header, read_reply(request))
    await fence
    await settle()
    assert sorted(sink.entries) == [2, 4]
    assert len(held) == 4
    bookie.reply(held[3][0], read_reply(held[3][1]))
    await settle()
    assert sink.others == [(3, Status.OK)]
    assert connection.outstanding == 0
    later = asyncio.ensure_future(connection.request(read(5, fence=True), 5))
    again = Sink()
    await asyncio.sleep(0)
    connection.reads_nowait(LEDGER, [5], soon(), again)
    connection.reads_nowait(LEDGER, [5], soon(), again)
    connection.close()
    await settle()
    with pytest.raises(BookieUnavailableError):
        await later
    assert again.others, "told of the loss"
    assert connection.outstanding == 0


@pytest.mark.rule("V1")
@pytest.mark.parametrize("dialect", Dialect)
async def test_reads_end_with_their_time_or_their_connection_and_late_replies_are_dropped(dialect: Dialect) -> None:
    held: list[tuple[wire.RequestHeader, wire.Request]] = []
    connection, bookie = await connected(lambda b, header, request: held.append((header, request)), dialect)
    late, lost, never = Sink(), Sink(), Sink()
    connection.reads_nowait(LEDGER, [1, 2, 3], asyncio.get_running_loop().time() + 0.001, late)
    await settle()
    bookie.reply(held[1][0], read_reply(held[1][1], b"in time"))
    with pytest.raises(RequestTimedOutError):
        await connection.request(read(9), 0.001)
    assert (late.entries, late.others) == ({2: b"in time"}, [(-1, "RequestTimedOutError")])
    assert connection.outstanding == 0
    connection.reads_nowait(LEDGER, [1, 4], soon(), lost)
    await settle()
    bookie.reply(held[0][0], read_reply(held[0][1], b"late"))
    bookie.reply(held[2][0], wire.ReadReply(Status.NO_ENTRY, LEDGER, EntryId(3)))
    bookie.reply(held[4][0], read_reply(held[4][1], b"in time"))
    await settle()
    assert (lost.entries, len(late.entries), len(late.others)) == ({1: b"in time"}, 1, 1)
    bookie.abort()
    await settle()
    assert lost.others == [(-1, "BookieUnavailableError")]
    assert connection.outstanding == 0
    connection.reads_nowait(LEDGER, [1], soon(), never)
    assert not never.others, "never inside the call"
    await settle()
    assert never.others == [(-1, "BookieUnavailableError")]


async def test_transaction_ids_of_reads_begin_again_before_they_reach_the_streams() -> None:
    connection, bookie = await connected(echo)
    connection.matcher.ids.last = (1 << codec.STREAM_SHIFT) - 3
    sink = Sink()
    connection.reads_nowait(LEDGER, [1, 2, 3], soon(), sink)
    connection.reads_nowait(LEDGER, [4, 5], soon(), sink)
    await settle()
    assert sorted(sink.entries) == [1, 2, 3, 4, 5]
    assert (sink.others, connection.outstanding) == ([], 0)
    assert len(bookie.seen) == 5


def lose_ways(cluster: SimCluster) -> None:
    """All connections of the story's node die without a word, as if a firewall had forgotten them; new ones work."""
    for transport in list(cluster.world.network.transports.values()):
        if transport.node is not cluster.client:
            transport.lost = transport.closing = True


@pytest.mark.parametrize("copies", [1, 3])
def test_ways_that_died_without_a_word_are_left_for_new_ones(copies: int) -> None:
    """Each append to a single bookie waited until its time was up, and each read failed, as long as the system took the
    connection for alive: two minutes."""

    async def story(cluster: SimCluster) -> None:
        cluster.world.network.weather.tells_silence = True
        async with cluster.connect(replace(CLIENT, add_timeout_ms=15_000, metadata_timeout_ms=10_000)) as bk:
            writer = await bk.create_ledger(ensemble=copies, write_quorum=copies, ack_quorum=copies)
            assert await writer.append(b"a") == 0
            lose_ways(cluster)
            assert await writer.append(b"b") == 1
            lose_ways(cluster)
            assert await writer.append(b"c") == 2
            await writer.close()
            async with await bk.open_ledger(writer.id, b"", recovery=False) as reader:
                lose_ways(cluster)
                async with asyncio.timeout(30):
                    while True:
                        try:
                            assert await reader.read_entry(1) == b"b"
                            break
                        except BookieError:
                            continue

    SimCluster(bookies=3).run(story)


def test_a_bookie_that_hangs_is_not_taken_for_one_that_cannot_be_reached() -> None:
    async def story(cluster: SimCluster) -> None:
        cluster.world.network.weather.tells_silence = True
        async with cluster.connect(replace(CLIENT, add_timeout_ms=15_000)) as bk:
            writer = await bk.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1)
            await writer.append(b"a")
            (bookie,) = writer.metadata.last_fragment.ensemble
            connection = bk.services.pool.ready(bookie)
            cluster.node(bookie).freeze()
            pending = asyncio.ensure_future(writer.append(b"b"))
            await asyncio.sleep(12)
            cluster.node(bookie).thaw()
            assert await pending == 1
            assert connection is not None and connection is bk.services.pool.ready(bookie)
            await asyncio.sleep(5)
            assert not connection.watched, "nothing is on its way: nobody looks"

    SimCluster(bookies=1).run(story)
