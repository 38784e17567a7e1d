"""Connections: hostile peers lose theirs and nobody else notices; memory is bounded; overload is felt, not suffered."""

from __future__ import annotations

import asyncio
import gc
import struct
from dataclasses import replace
from random import Random

import pytest

from bookkeeper import codec, wire
from bookkeeper.bookie.connections.flow_control import TURN_REQUESTS
from bookkeeper.bookie.connections.server_connection import ServerConnection
from bookkeeper.codec import Answers, Reads
from bookkeeper.errors import BookieError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.net.connection import AddRun
from bookkeeper.seams import Buffer
from bookkeeper.storage.base.results import Done
from bookkeeper.volumes.after_all import PartlyFailedError
from bookkeeper.wire import Dialect, Status, v3
from tests.bookkeeper.bookie.house import KEY, House, run

L = LedgerId(7)


def adds(
    first: int, count: int, *, size: int = 100, stream: int = 1, dialect: Dialect = Dialect.V3, deferred: bool = False
) -> bytes:
    payloads = [b"p" * size] * count
    return codec.encode_adds(dialect, L, first, payloads, -1, 0, KEY, 3, b"", stream << 40, deferred)[0]


def read(entry: int, *, fence: bool = False) -> wire.ReadEntry:
    return wire.ReadEntry(L, EntryId(entry), KEY if fence else None, fence=fence)


async def is_well(house: House) -> None:
    """A newcomer is served."""
    connection = await house.client()
    reply = await connection.request(wire.ForceLedger(LedgerId(1)), 5)
    assert reply.status is Status.OK
    connection.close()


@pytest.mark.rule("F12", "X30", "X40")
@pytest.mark.parametrize(
    "junk",
    [
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        struct.pack(">I", 5 * 1024 * 1024 - 3),
        b"\0\0\0\1\0",
        b"\0\0\0\4\2\x63\0\0",
        b"\0\0\0\x0c\2\2\0\0" + bytes(8),
        b"\0\0\0\x20" + b"\x0a\x06\x08\x03\x10\x63\x18\x01" + bytes(24),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    ],
)
def test_nonsense_ends_its_connection_and_no_other(junk: bytes) -> None:
    async def main(house: House) -> None:
        peer, other = await house.raw(), await house.client()
        peer.send(adds(0, 3))
        peer.send(junk)
        await asyncio.sleep(1)
        assert peer.closed
        assert (await other.request(read(2), 5)).status is Status.OK, "what came before it was done"
        assert house.metrics.counter("malformed_frames_total").value == 1
        await is_well(house)

    run(main)


@pytest.mark.rule("F12", "X40")
@pytest.mark.parametrize("seed", range(30))
def test_no_bytes_bring_the_bookie_down(seed: int) -> None:
    """Frames of all kinds, truncated, with flipped bits, cut anywhere."""
    rng = Random(seed)
    requests: list[wire.Request] = [
        read(0), read(-1, fence=True), wire.ReadLac(L), wire.WriteLac(L, 0, KEY, b"\0" * 7 + b"\7" + bytes(8)),
        wire.ForceLedger(L), wire.GetBookieInfo(3), wire.ListEntries(L), wire.Auth("p", b"x"), wire.StartTls(),
        wire.ReadEntry(L, EntryId(-1), previous_lac=5, timeout_ms=50, piggyback=True),
    ]  # fmt: skip

    def frame() -> bytes:
        if rng.random() < 0.4:
            return adds(rng.randrange(0, 50), rng.randrange(1, 5), dialect=rng.choice(list(Dialect)))
        if rng.random() < 0.2:
            return adds(rng.randrange(0, 50), rng.randrange(1, 5), deferred=True)
        if rng.random() < 0.2:
            return wire.encode_request(wire.BatchRead(L, EntryId(0), 1, 10, 1000), Dialect.V2)
        return wire.encode_request(rng.choice(requests), Dialect.V3, rng.randrange(1, 1 << 40))

    async def main(house: House) -> None:
        for _ in range(20):
            peer = await house.raw()
            data = bytearray(b"".join(frame() for _ in range(rng.randrange(1, 8))))
            for _ in range(rng.randrange(0, 4)):
                data[rng.randrange(0, len(data))] ^= 1 << rng.randrange(0, 8)
            at = 0
            while at < len(data):
                piece = rng.randrange(1, 200)
                peer.send(bytes(data[at : at + piece]))
                at += piece
                if rng.random() < 0.3:
                    await asyncio.sleep(0.001)
            await asyncio.sleep(0.2)
            peer.transport.abort()
        await asyncio.sleep(1)
        assert house.admission.in_progress == 0, "something was never answered"
        assert house.connections.connections == {}
        assert house.bookie.long_polls == 0
        await is_well(house)

    run(main)


def test_an_explicit_lac_is_answered_in_one_write_with_the_add_that_takes_it_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blob = b"\0" * 7 + b"\7" + bytes(8)
    alone: list[object] = []
    write_alone = ServerConnection.write_alone

    def noted(self: ServerConnection, data: Buffer) -> None:
        alone.append(data)
        write_alone(self, data)

    monkeypatch.setattr(ServerConnection, "write_alone", noted)

    async def main(house: House) -> None:
        connection = await house.client()
        got: list[AddRun] = []
        replies: list[object] = []
        stream = connection.open_stream(1, L, got.extend, lambda error: None)
        stream.send(adds(0, 1))
        await asyncio.sleep(1)
        assert (got, len(alone)) == ([(0, 1, Status.OK)], 1)
        waiting: list[Done] = []
        with monkeypatch.context() as patch:  # as where the journal waits for an add to take it along
            patch.setattr(house.bookie.engine, "set_explicit_lac", lambda *arguments: waiting.append(arguments[-1]))
            connection.request_nowait(wire.WriteLac(L, 0, KEY, blob), 5, replies.append)
            stream.send(adds(1, 1))
            await asyncio.sleep(1)
        assert (len(got), len(replies), len(alone)) == (2, 0, 1), "its reply is expected behind the add's"
        waiting[0](None)
        stream.send(adds(2, 1))
        connection.request_nowait(wire.WriteLac(L, 1, b"x" * 20, blob), 5, replies.append)  # refused at once
        await asyncio.sleep(1)
        stream.send(adds(3, 1))
        await asyncio.sleep(1)
        assert (len(got), len(replies), len(alone)) == (4, 2, 3), "nothing waits: adds are answered at once"

    run(main)


@pytest.mark.rule("X30")
def test_a_frame_at_the_limit_passes_and_one_above_does_not() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        got: list[AddRun] = []
        stream = connection.open_stream(1, L, got.extend, lambda error: None)
        overhead = len(adds(0, 1, size=20000)) - 20000
        stream.send(adds(0, 1, size=65536 - overhead))
        await asyncio.sleep(1)
        assert got == [(0, 1, Status.OK)]
        stream.send(adds(1, 1, size=65537 - overhead))
        await asyncio.sleep(1)
        assert connection.closed

    run(main, frame_max=65536, in_progress=1 << 20, reserve=1 << 20)


@pytest.mark.rule("X34", "P12")
def test_a_peer_that_asks_and_never_reads_is_not_read_and_then_dropped() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        stream = connection.open_stream(1, L, lambda batch: None, lambda error: None)
        stream.send(adds(0, 1, size=1_000_000))
        await asyncio.sleep(1)
        peer = await house.raw()
        peer.transport.pause_reading()
        frame = wire.encode_request(read(0), Dialect.V3, 1)
        for _ in range(100):
            peer.send(frame * 100)
            await asyncio.sleep(0.01)
        server_side = next(c for c in house.accepted() if c.unsent)
        assert server_side.unsent < 16 * 1024 * 1024, "10 GB were asked for"
        await is_well(house)
        await asyncio.sleep(40)
        assert peer.closed or server_side.closed
        await asyncio.sleep(1)
        assert house.admission.in_progress == 0

    run(main)


@pytest.mark.rule("X32", "X32a")
@pytest.mark.parametrize("kind", ["others", "reads", "runs of adds"])
def test_many_small_requests_in_one_chunk_leave_the_other_connections_their_turn(kind: str) -> None:
    """Cause: as long as little was owed to a client the bookie went on with its requests, and a hundred thousand small
    ones, even refused, kept everybody else waiting for seconds."""

    def made(number: int) -> bytes:
        if kind == "runs of adds":  # each to a ledger of its own
            return codec.encode_adds(Dialect.V3, LedgerId(number + 1), 0, [b""], -1, 0, KEY, 3, b"", 1 << 40, False)[0]
        request = wire.GetBookieInfo(1) if kind == "others" else read(number)
        return wire.encode_request(request, Dialect.V3, number)

    async def main(house: House) -> None:
        peer = await house.raw()
        await asyncio.sleep(0.1)
        (server_side,) = house.accepted()

        def come(count: int) -> None:
            data = b"".join(map(made, range(count)))
            room = server_side.get_buffer(-1)
            room[: len(data)] = data
            server_side.buffer_updated(len(data))

        paused = []
        for count in (TURN_REQUESTS // 2, TURN_REQUESTS * 2):
            come(count)
            paused.append(server_side.reading_paused)
        await asyncio.sleep(5)
        assert [*paused, server_side.reading_paused] == [False, True, False]
        assert len(peer.frames) == TURN_REQUESTS // 2 + TURN_REQUESTS * 2, "all are answered"

    run(main)


def test_requests_wait_for_replies_to_be_read_and_all_are_answered() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        connection.open_stream(1, L, lambda batch: None, lambda error: None).send(adds(0, 1, size=500_000))
        await asyncio.sleep(1)
        replies: list[wire.Reply | BookieError] = []
        for _ in range(200):
            connection.request_nowait(read(0), 100, replies.append)
        await asyncio.sleep(10)
        assert len(replies) == 200
        assert {reply.status for reply in replies if not isinstance(reply, BookieError)} == {Status.OK}

    run(main)


@pytest.mark.rule("X32", "X33", "F11")
def test_overload_is_refused_while_fences_and_recovery_get_through_whatever_claims_priority() -> None:
    """A priority of 1 opened the reserve to every request, so that a flood of those kept fences and recoveries out."""

    async def main(house: House) -> None:
        house.node.freeze()  # a disk that stands still
        flood = await house.client()
        got: list[AddRun] = []
        stream = flood.open_stream(1, L, got.extend, lambda error: None)
        for first in range(0, 1000, 10):
            stream.send(adds(first, 10, size=1000))
            await asyncio.sleep(0.001)
        assert house.admission.in_progress <= 300_000
        assert house.admission.pauses > 0, "the flood is not read any more"
        others = [await house.client() for _ in range(4)]
        replies: list[wire.Reply | BookieError] = []
        plain = wire.AddEntry(LedgerId(8), EntryId(0), KEY, (8).to_bytes(8, "big") + bytes(290_000))
        others[0].request_nowait(plain, 1000, replies.append)
        await asyncio.sleep(1)
        assert [r.status for r in replies] == [Status.TOO_MANY_REQUESTS]  # type: ignore[union-attr]
        others[1].request_nowait(read(-1, fence=True), 1000, replies.append)
        recovery = wire.AddEntry(LedgerId(9), EntryId(0), KEY, (9).to_bytes(8, "big") + bytes(1000), recovery=True)
        others[2].request_nowait(recovery, 1000, replies.append)
        rest = max(0, house.admission.limit - house.admission.in_progress)
        house.admission.in_progress += rest  # not a byte is left outside of the reserve
        urgent: list[wire.Request] = [
            replace(plain, priority=100),
            wire.ReadEntry(L, EntryId(0), priority=1),
            wire.ForceLedger(L),
        ]
        refused: list[wire.Reply | BookieError] = []
        for request in urgent:
            others[3].request_nowait(request, 1000, refused.append)
        await asyncio.sleep(1)
        house.admission.in_progress -= rest
        assert [r.status for r in refused] == [Status.TOO_MANY_REQUESTS] * 3  # type: ignore[union-attr]
        assert house.engine.is_fenced(L)
        house.node.thaw()
        await asyncio.sleep(5)
        assert [r.status for r in replies[1:]] == [Status.OK] * 2  # type: ignore[union-attr]
        done = sum(n for _, n, status in got if status is Status.OK)
        turned_away = sum(n for _, n, status in got if status is not Status.OK)
        assert done + turned_away == 1000
        assert done > 0
        assert house.admission.in_progress == 0

    run(main, in_progress=300_000, reserve=200_000)


@pytest.mark.rule("X32")
def test_a_flood_over_many_connections_of_one_client_leaves_room_for_the_others() -> None:
    async def main(house: House) -> None:
        house.admission.enforce_shares(True)
        flooded: list[AddRun] = []
        house.node.freeze()  # a disk that stands still
        for _ in range(20):
            flood = await house.client()
            house.accepted()[-1].share = house.admission.share_of("one")
            stream = flood.open_stream(1, L, flooded.extend, lambda error: None)
            for first in range(0, 50, 10):
                stream.send(adds(first, 10, size=1000))
                await asyncio.sleep(0.001)
        assert 200_000 <= house.admission.in_progress <= 400_000
        assert not house.admission.crowded and house.admission.pauses > 0
        other = await house.client()
        house.accepted()[-1].share = house.admission.share_of("other")
        replies: list[wire.Reply | BookieError] = []
        plain = wire.AddEntry(LedgerId(8), EntryId(0), KEY, (8).to_bytes(8, "big") + bytes(100_000))
        other.request_nowait(plain, 1000, replies.append)
        await asyncio.sleep(1)
        house.node.thaw()
        await asyncio.sleep(5)
        assert [r.status for r in replies] == [Status.OK]  # type: ignore[union-attr]
        assert sum(n for _, n, _ in flooded) == 20 * 50, "every one of the flood has an answer"
        assert house.admission.in_progress == 0
        assert house.admission.share_of("one").in_progress == 0

    run(main, in_progress=800_000, reserve=0)


@pytest.mark.rule("B3", "B10")
@pytest.mark.parametrize("dialect", [Dialect.V3, Dialect.V2])
def test_recovery_adds_pass_a_fence_and_read_only_also_between_plain_adds(dialect: Dialect) -> None:
    async def main(house: House) -> None:
        stored = codec.split_adds(plain := adds(0, 6), 0, len(plain))
        ends = [0, *stored.record_ends]
        entries = [bytes(stored.records[ends[at] + codec.RECORD_HEADER : ends[at + 1]]) for at in range(6)]
        recovery = codec.encode_recovery_adds(dialect, L, range(2, 4), entries[2:4], KEY, 2 << 40)
        peer = await house.client(dialect)
        assert (await peer.request(read(-1, fence=True), 5)).status is Status.NO_ENTRY
        for refused in (Status.FENCED, Status.READ_ONLY):
            got: dict[int, list[AddRun]] = {1: [], 2: []}
            if refused is Status.READ_ONLY:
                house.bookie.read_only = True
            for number, replies in got.items():
                if dialect is Dialect.V3 or number == 1:
                    peer.open_stream(number, L, replies.extend, lambda error: None)
            chunk = adds(0, 2, dialect=dialect) + recovery + adds(4, 2, dialect=dialect)
            peer.write(chunk)
            await asyncio.sleep(1)
            answers = sorted(got[1] + got[2])
            assert answers == [(0, 2, refused), (2, 2, Status.OK), (4, 2, refused)]
            peer.close()
            peer = await house.client(dialect)
        assert house.admission.in_progress == 0
        assert isinstance(await peer.request(read(2), 5), wire.ReadReply)

    run(main)


def test_v2_and_v3_on_one_connection_as_apaches_server_has_it() -> None:
    async def main(house: House) -> None:
        peer = await house.raw()
        peer.send(adds(0, 1) + adds(1, 1, dialect=Dialect.V2))
        await asyncio.sleep(1)
        assert len(peer.frames) == 2
        peer.send(adds(2, 1))
        await asyncio.sleep(1)
        assert peer.closed

    run(main)


@pytest.mark.rule("X32", "X35", "P12")
def test_of_reads_that_wait_for_the_disk_only_so_many_are_taken_up() -> None:
    """Hundreds of reads of a large entry, none of it in memory, by a peer that does not read: a few are served."""

    async def main(house: House) -> None:
        connection = await house.client()
        connection.open_stream(1, L, lambda batch: None, lambda error: None).send(adds(0, 1, size=1_000_000))
        await asyncio.sleep(1)
        house.node.disk.cold_share = 1.0
        peer = await house.raw()
        peer.transport.pause_reading()
        peer.send(wire.encode_request(read(0), Dialect.V3, 1) * 300)
        await asyncio.sleep(5)
        server_side = next(c for c in house.accepted() if c.unsent)
        assert server_side.unsent < 100 * 1024 * 1024
        peer.transport.resume_reading()
        await asyncio.sleep(300)
        assert len(peer.frames) == 300, "once it reads, all are answered"

    run(main, slow_frame_s=1000.0)


@pytest.mark.rule("B13")
def test_adds_between_reads_whose_replies_are_not_taken_yet_are_answered_too() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        connection.open_stream(1, L, lambda batch: None, lambda error: None).send(adds(0, 1, size=500_000))
        await asyncio.sleep(1)
        acked: list[AddRun] = []
        replies: list[wire.Reply | BookieError] = []
        stream = connection.open_stream(2, L, acked.extend, lambda error: None)
        for entry_id in range(1, 41):
            connection.request_nowait(read(0), 100, replies.append)
            stream.send(adds(entry_id, 1, stream=2))
        await asyncio.sleep(30)
        assert len(replies) == 40
        assert sum(count for _, count, status in acked if status is Status.OK) == 40

    run(main)


@pytest.mark.rule("B13")
@pytest.mark.parametrize("dialect", list(Dialect))
def test_reads_and_adds_and_whatever_else_in_one_chunk_are_served_in_their_order(dialect: Dialect) -> None:
    async def main(house: House) -> None:
        peer = await house.raw()
        peer.send(adds(0, 3, dialect=dialect))
        await asyncio.sleep(1)
        begun = len(peer.frames)
        plain = codec.encode_reads(dialect, L, [0, 1], 1) + codec.encode_reads(dialect, LedgerId(8), [1], 3)
        odd = wire.encode_request(wire.ReadEntry(L, EntryId(0), priority=100), dialect, 4)
        chunk = plain + adds(3, 2, dialect=dialect) + odd + codec.encode_reads(dialect, L, [2], 5)
        for cut in (len(chunk), len(plain), len(plain) - 5, 7):  # the chunk before began with reads, or did not
            for part in (chunk[:cut], chunk[cut:]):
                if part:
                    peer.send(part)
                    await asyncio.sleep(1)
            found = [wire.decode_reply(body, dialect)[1] for body in peer.frames[begun:]]
            begun = len(peer.frames)
            reads = [
                (reply.ledger_id, reply.entry_id, reply.status) for reply in found if isinstance(reply, wire.ReadReply)
            ]
            ok = Status.OK
            assert reads == [(7, 0, ok), (7, 1, ok), (8, 1, Status.NO_LEDGER), (7, 0, ok), (7, 2, ok)]
            assert [reply.entry_id for reply in found if isinstance(reply, wire.AddReply)] == [3, 4]
        assert house.admission.in_progress == 0

    run(main)


def test_v3_is_not_heard_after_v2_though_only_reads_were_spoken() -> None:
    async def main(house: House) -> None:
        peer = await house.raw()
        peer.send(adds(0, 2))
        await asyncio.sleep(1)
        for frames in (4, 6, 8, 10):
            dialect = Dialect.V2 if frames == 8 else Dialect.V3
            peer.send(codec.encode_reads(dialect, L, [0, 1], 1))
            await asyncio.sleep(1)
            assert len(peer.frames) == min(frames, 8)
        assert peer.closed

    run(main)


@pytest.mark.rule("B13", "X32")
@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_plain_read_of_an_entry_at_hand_is_answered_and_counted_like_any_other(dialect: Dialect) -> None:
    async def main(house: House) -> None:
        connection = await house.client(dialect)
        connection.open_stream(1, L, lambda batch: None, lambda error: None).send(adds(0, 3, dialect=dialect))
        await asyncio.sleep(1)
        counted = house.metrics.counter("requests_total", "", op="read", status="OK")
        general = wire.ReadEntry(L, EntryId(1), priority=100)  # says more than a plain read
        expected = await connection.request(general, 5)
        assert (await connection.request(read(1), 5), counted.value) == (expected, 2)
        assert (await connection.request(read(1), 5), counted.value) == (expected, 3)
        assert isinstance(expected, wire.ReadReply)
        assert expected.entry is not None
        assert (await connection.request(read(3), 5)).status is Status.NO_ENTRY
        cached, answered = house.engine.try_read_cached, []

        def counting(reads: Reads, first: int, frame_max: int) -> Answers | None:
            answers = cached(reads, first, frame_max)
            answered.append(answers.n if answers is not None else 0)
            return answers

        house.engine.try_read_cached = counting  # type: ignore[assignment]
        assert await connection.request(read(1), 5) == expected
        assert answered == [1]
        entries = [0, 2, 3, 1, 2]
        replies = await asyncio.gather(*(connection.request(read(entry), 5) for entry in entries))
        assert [reply.status for reply in replies] == [
            Status.NO_ENTRY if entry == 3 else Status.OK for entry in entries
        ]
        assert [reply.entry_id for reply in replies if isinstance(reply, wire.ReadReply)] == entries
        assert answered == [1, 2, 0, 2], "what is cached is answered together, the others in their place"
        assert counted.value == 4 + 4
        assert house.admission.admit(house.admission.limit)
        assert (await connection.request(read(1), 5)).status is Status.TOO_MANY_REQUESTS
        assert answered == [1, 2, 0, 2]
        house.admission.release(house.admission.limit)
        assert house.admission.in_progress == 0

    run(main)


@pytest.mark.rule("B12")
def test_of_a_chunk_to_two_disks_the_adds_on_the_good_one_are_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ledgers 7 and 8 lie on two disks, and that of 8 fails while the chunk is written."""

    async def main(house: House) -> None:
        when_durable = house.engine.when_durable

        def one_fails(callback: Done) -> None:
            def done(error: BaseException | None) -> None:
                callback(error or PartlyFailedError({8}, OSError("burnt")))

            when_durable(done)

        monkeypatch.setattr(house.engine, "when_durable", one_fails)
        peer = await house.raw()
        chunk = b""
        for first, ledger in ((0, 7), (0, 8), (3, 7), (3, 8)):
            payloads = [b"p" * 9] * 3
            chunk += codec.encode_adds(Dialect.V3, ledger, first, payloads, -1, 0, KEY, 3, b"", 1 << 40, False)[0]
        peer.send(chunk)
        await asyncio.sleep(1)
        replies = [v3.decode_reply(frame)[1] for frame in peer.frames]
        assert all(isinstance(reply, wire.AddReply) for reply in replies)
        found = sorted((reply.ledger_id, reply.entry_id, reply.status) for reply in replies)  # type: ignore[union-attr]
        expected = {7: Status.OK, 8: Status.IO_ERROR}
        assert found == [(ledger, entry, status) for ledger, status in expected.items() for entry in range(6)]

    run(main)


def test_what_does_not_fit_into_a_frame_becomes_an_error_of_the_same_entry() -> None:
    assert wire.too_large(wire.ReadReply(Status.OK, L, EntryId(1), b"x")) == wire.ReadReply(
        Status.IO_ERROR, L, EntryId(1)
    )
    batch = wire.BatchReply(Status.OK, L, EntryId(1), 9, b"x")
    assert wire.too_large(batch) == wire.BatchReply(Status.IO_ERROR, L, EntryId(1), 9)
    assert wire.too_large(wire.LacReply(Status.OK, L, b"lac", b"entry")) == wire.LacReply(Status.OK, L, b"lac")
    assert wire.too_large(wire.LacReply(Status.OK, L, None, b"entry")) == wire.LacReply(Status.IO_ERROR, L)
    assert wire.too_large(wire.BareReply(Status.OK)) == wire.BareReply(Status.OK)


def test_a_request_that_was_answered_is_freed_at_once() -> None:
    """Cause: what answers a request knew itself; each left fourteen objects to the collector, which stops the loop."""
    blob = b"\0" * 7 + b"\7" + bytes(8)
    requests: list[wire.Request] = [wire.WriteLac(L, 0, KEY, blob), read(7), wire.ForceLedger(L)]
    requests.append(wire.ReadEntry(L, EntryId(-1), previous_lac=5, timeout_ms=50, piggyback=True))

    async def main(house: House) -> None:
        connection = await house.client()
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for request in requests:
                await connection.request(request, 5)
            gc.collect()
            left = [each for each in gc.garbage if isinstance(each, wire.RequestHeader)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert left == []
        assert [each.is_polling for each in house.connections.connections] == [False]

    run(main)
