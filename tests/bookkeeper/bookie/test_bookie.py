"""What a bookie answers, and when."""

from __future__ import annotations

import asyncio
import errno
from struct import pack
from typing import Any

import pytest

from bookkeeper import codec, wire
from bookkeeper.errors import BookieError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.net.connection import AddRun, BookieConnection
from bookkeeper.storage.engine import Engine
from bookkeeper.testing import Fault
from bookkeeper.wire import Dialect, Status
from bookkeeper.wire.availability import GROUP, HEADER, encode_availability
from tests.bookkeeper.bookie.house import KEY, House, run, storage_config

L = LedgerId(7)
OTHER_KEY = b"o" * 20
LAC_1 = (7).to_bytes(8, "big") + (1).to_bytes(8, "big")


def entry(entry_id: int, *, ledger: int = 7, lac: int = -1, payload: bytes = b"p") -> bytes:
    frames, _ = codec.encode_adds(2, ledger, entry_id, [payload], lac, 0, KEY, 3)
    return frames[4 + 4 + 20 :]


def add(entry_id: int, *, key: bytes = KEY, ledger: int = 7, **more: Any) -> wire.AddEntry:
    made = {name: more.pop(name) for name in ("lac", "payload") if name in more}
    return wire.AddEntry(LedgerId(ledger), EntryId(entry_id), key, entry(entry_id, ledger=ledger, **made), **more)


def read(entry_id: int, **more: Any) -> wire.ReadEntry:
    return wire.ReadEntry(L, EntryId(entry_id), **more)


async def ask(connection: BookieConnection, request: wire.Request) -> Any:
    return await connection.request(request, 100)


async def status(connection: BookieConnection, request: wire.Request) -> Status:
    return (await ask(connection, request)).status  # type: ignore[no-any-return]


async def stream_adds(connection: BookieConnection, first: int, count: int, *, key: bytes = KEY) -> list[AddRun]:
    got: list[AddRun] = []
    stream = connection.open_stream(first + 1, L, got.extend, lambda error: None)
    frames, _ = codec.encode_adds(
        connection.dialect, L, first, [b"p"] * count, first - 1, 0, key, 3, txn_base=stream.txn_base
    )
    stream.send(frames)
    await asyncio.sleep(1)
    stream.close()
    return got


@pytest.mark.rule("B1")
def test_no_add_is_answered_before_it_is_durable() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        assert await status(connection, add(0)) is Status.OK
        house.node.freeze()  # the journal's worker stands still
        replies: list[wire.Reply | BookieError] = []
        connection.request_nowait(add(1), 100, replies.append)
        got: list[AddRun] = []
        stream = connection.open_stream(1, L, got.extend, lambda error: None)
        stream.send(codec.encode_adds(3, L, 2, [b"p"] * 5, 0, 0, KEY, 3, txn_base=stream.txn_base)[0])
        await asyncio.sleep(10)
        assert (replies, got) == ([], [])
        assert (await ask(connection, read(6))).entry is not None, "it is visible at once"
        house.node.thaw()
        await asyncio.sleep(1)
        assert (replies, got) == ([wire.AddReply(Status.OK, L, EntryId(1))], [(2, 5, Status.OK)])

    run(main)


@pytest.mark.rule("W11", "B1", "R3")
def test_a_deferred_add_is_answered_at_once_and_what_comes_after_it_makes_it_durable() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        assert await status(connection, add(0)) is Status.OK
        house.node.freeze()
        for entry_id in (1, 2):
            assert await status(connection, add(entry_id, deferred_sync=True)) is Status.OK
        reply = await ask(connection, read(2))
        assert (reply.entry, reply.max_lac) == (entry(2), -1), "visible, and no LAC has moved"
        later: list[tuple[str, Any]] = []

        def send(name: str, request: wire.Request) -> None:
            connection.request_nowait(request, 100, lambda answer: later.append((name, answer)))

        send("plain", add(3))
        send("deferred", add(4, deferred_sync=True))
        send("written back", add(5, deferred_sync=True, recovery=True))
        send("force", wire.ForceLedger(L))
        send("fence", read(9, fence=True, master_key=KEY))
        await asyncio.sleep(10)
        assert [name for name, _ in later] == ["deferred"], "acknowledged plain adds are durable beside deferred ones"
        house.node.thaw()
        await asyncio.sleep(1)
        statuses = {name: answer.status.name for name, answer in later}
        assert statuses == dict.fromkeys(("plain", "deferred", "written back", "force"), "OK") | {"fence": "NO_ENTRY"}
        assert await status(connection, add(6, deferred_sync=True)) is Status.FENCED

    run(main)


@pytest.mark.rule("W11", "B1")
def test_of_a_chunk_deferred_runs_are_answered_at_once_and_plain_ones_when_they_are_durable() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        assert await status(connection, add(0, ledger=9)) is Status.OK
        await ask(connection, wire.ReadEntry(LedgerId(3), EntryId(-1), KEY, fence=True))
        got: dict[int, list[AddRun]] = {ledger: [] for ledger in (1, 2, 3, 4)}
        streams = {
            ledger: connection.open_stream(ledger, LedgerId(ledger), got[ledger].extend, lambda error: None)
            for ledger in got
        }

        def frames(ledger: int, first: int, *, deferred: bool) -> bytes:
            base = streams[ledger].txn_base
            return codec.encode_adds(3, ledger, first, [b"p"] * 4, -1, 0, KEY, 3, b"", base, deferred)[0]

        house.node.freeze()
        plain = frames(1, 0, deferred=False) + frames(4, 0, deferred=False)
        connection.write(
            plain + frames(2, 0, deferred=True) + frames(3, 0, deferred=True) + frames(4, 4, deferred=True)
        )
        await asyncio.sleep(10)
        assert got == {1: [], 2: [(0, 4, Status.OK)], 3: [(0, 4, Status.FENCED)], 4: [(4, 4, Status.OK)]}
        assert await status(connection, wire.ReadEntry(LedgerId(2), EntryId(3))) is Status.OK
        house.node.thaw()
        await asyncio.sleep(1)
        assert (got[1], got[4]) == ([(0, 4, Status.OK)], [(4, 4, Status.OK), (0, 4, Status.OK)])
        counted = [house.metrics.counter(f"adds{name}_total").value for name in ("", "_deferred", "_refused")]
        assert counted == [17, 8, 4] and house.admission.in_progress == 0
        house.bookie.read_only = True
        streams[2].send(frames(2, 4, deferred=True))
        await asyncio.sleep(1)
        assert got[2][1:] == [(4, 4, Status.READ_ONLY)]

    run(main)


@pytest.mark.rule("W11", "P12")
def test_deferred_adds_are_written_without_being_asked_for_and_bounded() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        for entry_id in range(3):
            assert await status(connection, add(entry_id, deferred_sync=True)) is Status.OK
        await asyncio.sleep(1)
        assert house.engine.journal_bytes_in_flight == 0, "nobody forced it"
        house.node.freeze()
        for entry_id in range(3, 3 + 6):
            request = add(entry_id, deferred_sync=True, payload=bytes(100_000))
            connection.request_nowait(request, 100, lambda answer: None)
        await asyncio.sleep(1)
        assert house.engine.journal_bytes_in_flight > 300_000
        assert house.admission.crowded, "what is acknowledged and not written counts: its senders are not read"
        house.node.thaw()
        await asyncio.sleep(1)
        assert not house.admission.crowded

    def prepared(house: House) -> Any:
        pressure = house.admission.set_pressure
        house.engine.on_pressure(lambda: pressure(True), lambda: pressure(False))
        return main(house)

    run(prepared, storage=storage_config(group_bytes=8192, inflight_bytes=300_000))


@pytest.mark.rule("W11")
def test_a_force_whose_sync_failed_is_no_yes() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        await status(connection, add(0))
        house.node.disk.faults.append(Fault(operation="pwrite", code=errno.EIO, path="journal"))
        assert await status(connection, add(1, deferred_sync=True)) is Status.OK
        assert await status(connection, wire.ForceLedger(L)) is Status.IO_ERROR
        assert await status(connection, add(2, deferred_sync=True)) is Status.IO_ERROR

    run(main)


@pytest.mark.rule("R3", "B2")
@pytest.mark.parametrize("wanted", [0, 5, -1])
def test_no_reply_to_a_fence_before_it_is_durable_not_even_a_negative(wanted: int) -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        await status(connection, add(0))
        house.node.freeze()
        replies: list[wire.Reply | BookieError] = []
        connection.request_nowait(read(wanted, fence=True, master_key=KEY), 100, replies.append)
        batch = wire.BatchRead(L, EntryId(3), 1, 1, 100, master_key=KEY, fence=True)
        v2 = await house.client(Dialect.V2)
        v2.request_nowait(batch, 100, replies.append)
        await asyncio.sleep(10)
        assert replies == []
        assert await status(connection, add(1)) is Status.FENCED, "in force at once"
        house.node.thaw()
        await asyncio.sleep(1)
        expected = Status.NO_ENTRY if wanted == 5 else Status.OK
        assert [reply.status for reply in replies] == [expected, Status.NO_ENTRY]  # type: ignore[union-attr]

    run(main)


@pytest.mark.rule("R3", "K23")
def test_a_fence_whose_sync_failed_is_an_io_error_never_a_yes() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        await status(connection, add(0))
        house.node.disk.faults.append(Fault(operation="pwrite", code=errno.EIO, path="journal"))
        assert await status(connection, read(0, fence=True, master_key=KEY)) is Status.IO_ERROR
        assert await status(connection, add(1)) is not Status.OK
        assert await stream_adds(connection, 1, 3) == [(1, 3, Status.IO_ERROR)]

    run(main)


@pytest.mark.rule("B3")
def test_fencing_a_ledger_never_seen_creates_it_fenced() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        assert await status(connection, read(-1)) is Status.NO_LEDGER
        assert await status(connection, read(-1, fence=True, master_key=KEY)) is Status.NO_ENTRY
        assert await stream_adds(connection, 0, 3) == [(0, 3, Status.FENCED)]
        assert await status(connection, add(0, recovery=True)) is Status.OK
        assert await status(connection, add(1, recovery=True, key=OTHER_KEY)) is Status.UNAUTHORIZED

    run(main)


@pytest.mark.rule("B4", "X21")
def test_a_wrong_key_neither_adds_nor_fences_nor_creates() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        assert await stream_adds(connection, 0, 2) == [(0, 2, Status.OK)]
        assert await stream_adds(connection, 2, 2, key=OTHER_KEY) == [(2, 2, Status.UNAUTHORIZED)]
        assert await status(connection, read(-1, fence=True, master_key=OTHER_KEY)) is Status.UNAUTHORIZED
        assert await status(connection, wire.WriteLac(L, 1, OTHER_KEY, LAC_1)) is (Status.UNAUTHORIZED)
        assert await status(connection, read(2)) is Status.NO_ENTRY
        assert await stream_adds(connection, 2, 2) == [(2, 2, Status.OK)], "it was not fenced"
        assert await status(connection, read(0, fence=True)) is Status.UNAUTHORIZED, "no key at all"

    run(main)


@pytest.mark.parametrize("dialect", Dialect)
def test_of_a_chunk_only_the_runs_that_break_a_rule_are_refused(dialect: Dialect) -> None:
    async def main(house: House) -> None:
        connection = await house.client(dialect)
        assert (await ask(connection, wire.ReadEntry(LedgerId(2), EntryId(-1), KEY, fence=True))).status is (
            Status.NO_ENTRY
        )
        got: dict[int, list[AddRun]] = {}
        frames = b""
        for ledger in (1, 2, 3):
            got[ledger] = []
            stream = connection.open_stream(ledger, LedgerId(ledger), got[ledger].extend, lambda error: None)
            frames += codec.encode_adds(dialect, ledger, 0, [b"p"] * 4, -1, 0, KEY, 3, txn_base=stream.txn_base)[0]
        connection.write(frames)
        await asyncio.sleep(1)
        assert got == {1: [(0, 4, Status.OK)], 2: [(0, 4, Status.FENCED)], 3: [(0, 4, Status.OK)]}

    run(main)


@pytest.mark.rule("B13")
def test_the_order_of_one_connection_is_kept_between_adds_and_a_fence() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        got: list[AddRun] = []
        stream = connection.open_stream(1, L, got.extend, lambda error: None)
        replies: list[Any] = []
        for first in (0, 3):
            stream.send(codec.encode_adds(3, L, first, [b"p"] * 3, -1, 0, KEY, 3, txn_base=stream.txn_base)[0])
            connection.request_nowait(read(-1, fence=True, master_key=KEY), 100, replies.append)
        await asyncio.sleep(1)
        assert sorted(got) == [(0, 3, Status.OK), (3, 3, Status.FENCED)]
        assert [codec.read_record(codec.record(r.entry), 0, 7, 2) is not None for r in replies] == [True, True]

    run(main)


@pytest.mark.rule("B10")
def test_a_read_only_bookie_refuses_adds_and_serves_the_rest() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        await status(connection, add(0))
        house.bookie.read_only = True
        assert await stream_adds(connection, 1, 3) == [(1, 3, Status.READ_ONLY)]
        assert await status(connection, add(1)) is Status.READ_ONLY
        lac = wire.WriteLac(L, 1, KEY, LAC_1)
        assert await status(connection, lac) is Status.READ_ONLY
        assert await status(connection, read(0)) is Status.OK
        assert await status(connection, read(0, fence=True, master_key=KEY)) is Status.OK
        assert await status(connection, add(1, recovery=True)) is Status.OK

    run(main)


@pytest.mark.rule("X37")
@pytest.mark.parametrize("dialect", Dialect)
def test_ids_that_cannot_be_are_refused(dialect: Dialect) -> None:
    async def main(house: House) -> None:
        connection = await house.client(dialect)
        assert await status(connection, wire.ReadEntry(LedgerId(-1), EntryId(0))) is Status.NO_LEDGER
        assert await status(connection, read(-2)) is Status.BAD_REQUEST
        assert await status(connection, wire.ReadEntry(LedgerId(-1), EntryId(0), KEY, fence=True)) is Status.NO_LEDGER
        if dialect is Dialect.V2:
            assert await status(connection, wire.BatchRead(L, EntryId(-1), 0, 1, 1)) is Status.BAD_REQUEST
        assert not list(house.engine.ledgers())

    run(main)


# -- long polls ----------------------------------------------------------------------------------------------


def poll(previous: int, timeout_ms: int = 5000) -> wire.ReadEntry:
    return read(-1, previous_lac=previous, timeout_ms=timeout_ms, piggyback=True)


@pytest.mark.rule("L9")
def test_a_long_poll_never_misses_an_advance_and_never_waits_too_long() -> None:
    async def main(house: House) -> None:
        connection, loop = await house.client(), asyncio.get_running_loop()
        assert await status(connection, poll(-1)) is Status.NO_LEDGER
        await status(connection, add(0))
        await status(connection, add(1, lac=0))
        assert (await ask(connection, poll(-1))).entry == entry(0), "the LAC was ahead already"

        began = loop.time()
        waiting = asyncio.ensure_future(ask(connection, poll(0)))
        await asyncio.sleep(2)
        assert house.bookie.long_polls == 1
        await status(connection, add(2, lac=1))
        reply = await waiting
        assert (reply.entry_id, reply.entry, reply.max_lac) == (1, entry(1, lac=0), 1)
        assert reply.lac_timestamp_ms is not None
        assert loop.time() - began < 2.1

        began = loop.time()
        reply = await ask(connection, poll(1, 300))
        assert (reply.status, reply.entry_id, reply.entry, reply.max_lac) == (Status.OK, -1, None, 1)
        assert 0.299 <= loop.time() - began < 0.5
        assert house.bookie.long_polls == 0

    run(main)


def test_a_fence_wakes_those_who_wait_and_a_missing_entry_is_no_error() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        await status(connection, add(0))
        waiting = [asyncio.ensure_future(ask(connection, poll(-1))) for _ in range(3)]
        await asyncio.sleep(1)
        await status(connection, read(-1, fence=True, master_key=KEY))
        assert [(reply.entry_id, reply.entry) for reply in await asyncio.gather(*waiting)] == [(-1, None)] * 3
        await status(connection, add(9, lac=5, recovery=True))
        reply = await ask(connection, poll(3))
        assert (reply.status, reply.entry_id, reply.max_lac) == (Status.OK, -1, 5)

    run(main)


@pytest.mark.rule("X35")
def test_one_poll_too_many_is_answered_at_once() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        await status(connection, add(0))
        waiting = [asyncio.ensure_future(ask(connection, poll(0))) for _ in range(2)]
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        assert (await ask(connection, poll(0))).entry is None
        assert asyncio.get_running_loop().time() - began < 1
        house.bookie.end_polls()
        await asyncio.gather(*waiting)

    run(main, long_polls_max=2)


@pytest.mark.rule("L9", "X35")
def test_a_long_poll_ends_with_its_connection() -> None:
    async def main(house: House) -> None:
        connection, other = await house.client(), await house.client()
        await status(connection, add(0))
        await status(connection, add(1, lac=0))
        waiting = [asyncio.ensure_future(ask(connection, poll(0, 60_000))) for _ in range(2)]
        staying = asyncio.ensure_future(ask(other, poll(0, 60_000)))
        await asyncio.sleep(1)
        assert house.bookie.long_polls == 3
        connection.close()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.1)
        assert (house.bookie.long_polls, len(house.bookie._polls), len(house.bookie._wake_on_fence[L])) == (1, 1, 1)
        await status(other, add(2, lac=1))
        assert (await staying).entry == entry(1, lac=0)
        assert house.bookie.long_polls == 0 and not house.bookie._polls
        assert house.admission.in_progress == 0, "each was answered for the books"

    run(main, long_polls_max=3)


# -- what a wire allows and a disk does not ------------------------------------------------------------------


async def done(act: Any) -> BaseException | None:
    """``act(callback)``, and what the callback was told."""
    told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    act(told.set_result)
    return await told


async def started_again(house: House) -> Engine:
    """The disk after a checkpoint, a clean stop and a start."""
    assert await done(house.engine.checkpoint) is None
    assert await done(house.engine.close) is None
    return Engine.open(storage_config(), house.node.disk, house.node.seams.workers, boot=2)


@pytest.mark.rule("X21", "X40", "B4")
@pytest.mark.parametrize("size", [0, 19, 21, 255, 256, 300, 4 << 20])
def test_a_key_that_no_client_can_make_is_refused_and_leaves_nothing_behind(size: int) -> None:
    """v3 has a key of any length, a row of the index one byte for it. An add with 300 bytes was answered OK; then no
    checkpoint succeeded any more, nor any start. Of an explicit LAC the ledger stayed, though it was refused."""

    async def main(house: House) -> None:
        connection = await house.client()
        key = b"k" * size
        body = (7).to_bytes(8, "big") + (4).to_bytes(8, "big") + b"sum!"
        requests: list[wire.Request] = [
            add(0, key=key),
            add(0, key=key, recovery=True),
            add(0, key=key, deferred_sync=True),
            read(-1, fence=True, master_key=key),
            wire.WriteLac(L, 4, key, body),
        ]
        assert [await status(connection, request) for request in requests] == [Status.UNAUTHORIZED] * len(requests)
        assert list(house.engine.ledgers()) == [] and house.engine.journal_bytes_in_flight == 0
        assert await status(connection, add(0)) is Status.OK, "nobody has taken the ledger"
        assert [await status(connection, request) for request in requests] == [Status.UNAUTHORIZED] * len(requests)
        assert await status(connection, read(0, master_key=key)) is Status.OK, "a read without a fence needs no key"
        again = await started_again(house)
        assert list(again.ledgers()) == [L] and not again.is_fenced(L) and again.master_key(L) == KEY

    run(main)


@pytest.mark.rule("X21", "X40")
@pytest.mark.parametrize("size", [0, 19, 21, 255, 256, 300, 4 << 20])
def test_in_v2_a_key_of_another_length_is_no_request_or_another_key(size: int) -> None:
    """Its place has twenty bytes: more of them are the beginning of the entry, or are not looked at."""

    async def main(house: House) -> None:
        word = (2).to_bytes(1, "big")
        ids = (7).to_bytes(8, "big") + (0).to_bytes(8, "big")
        add_frame = word + b"\x01\x00\x00" + b"k" * size + entry(0)
        fence_frame = word + b"\x02\x00\x01" + ids + b"k" * size
        for frame in (add_frame, fence_frame):
            peer = await house.raw()
            peer.send(len(frame).to_bytes(4, "big") + frame)
            await asyncio.sleep(0.5)
            assert peer.closed or len(peer.frames) == 1
        again = await started_again(house)
        assert all(again.master_key(ledger) is not None for ledger in again.ledgers())

    run(main)


@pytest.mark.rule("X32", "X36")
def test_the_body_of_an_explicit_lac_is_not_longer_than_a_client_can_make_it() -> None:
    """It stays in memory for each ledger, and counts nowhere: a thousand requests of five megabytes took 5 GB."""

    async def main(house: House) -> None:
        connection = await house.client()
        ids = (7).to_bytes(8, "big") + (4).to_bytes(8, "big")
        assert await status(connection, wire.WriteLac(L, 4, KEY, ids + bytes(21))) is Status.BAD_REQUEST
        assert list(house.engine.ledgers()) == []
        for digest in (0, 4, 8, 20):  # DUMMY, CRC32C, CRC32, HMAC
            assert await status(connection, wire.WriteLac(L, 4, KEY, ids + bytes(digest))) is Status.OK
            assert (await ask(connection, wire.ReadLac(L))).lac_body == ids + bytes(digest)

    run(main)


@pytest.mark.rule("X37", "X40")
def test_the_greatest_numbers_that_fit_into_a_message_fit_into_the_disk() -> None:
    """Whatever a client is told to be stored is in the next checkpoint, can be listed, and is there after a start."""
    most = 2**63 - 1

    async def main(house: House) -> None:
        connection = await house.client()
        ledgers = [LedgerId(number) for number in (0, 7, most - 1, most)]
        ids = [0, 1, 511, 512, most - 513, most - 1, most]
        lacs = [-(2**63), -1, most]
        for ledger in ledgers:
            for at, entry_id in enumerate(ids):
                numbers = pack(">qqqq", ledger, entry_id, lacs[at % 3], lacs[(at + 1) % 3])
                request = wire.AddEntry(ledger, EntryId(entry_id), KEY, numbers + b"p")
                assert await status(connection, request) is Status.OK
            blob = pack(">qq", ledger, most)
            assert await status(connection, wire.WriteLac(ledger, most, KEY, blob)) is Status.OK
            assert await status(connection, wire.ReadEntry(ledger, EntryId(-1), KEY, fence=True)) is Status.OK
            assert await status(connection, wire.ListEntries(ledger)) is Status.OK
        again = await started_again(house)
        for ledger in ledgers:
            runs = [(run.first, run.count) for run in again.entries(ledger)]
            assert runs == [(0, 2), (511, 2), (most - 513, 1), (most - 1, 2)]
            assert again.is_fenced(ledger) and again.lac(ledger) == most

    run(main)


@pytest.mark.rule("X38")
def test_an_error_that_nobody_foresaw_is_one_line_a_second(caplog: pytest.LogCaptureFixture) -> None:
    """Each request wrote a traceback: whoever found such a request filled the disk with them."""

    async def main(house: House) -> None:
        connection = await house.client()

        def broken(*_: object) -> None:
            raise RuntimeError("not foreseen")

        house.engine.fence = broken  # type: ignore[assignment]
        fence = read(-1, fence=True, master_key=KEY)
        for _ in range(50):
            assert await status(connection, fence) is Status.IO_ERROR
        await asyncio.sleep(1)
        assert await status(connection, fence) is Status.IO_ERROR

    run(main)
    lines = [record for record in caplog.records if record.name == "bookkeeper.bookie.bookie"]
    assert [line.exc_info is not None for line in lines] == [True, True]
    assert lines[1].getMessage().endswith("(49 more of this kind)")


# -- the last add confirmed, lists, information --------------------------------------------------------------


@pytest.mark.rule("B8")
def test_an_explicit_lac_is_kept_beside_the_last_entry() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        body = (7).to_bytes(8, "big") + (4).to_bytes(8, "big") + b"sum!"
        assert await status(connection, wire.ReadLac(L)) is Status.NO_ENTRY
        assert await status(connection, wire.WriteLac(L, 4, KEY, body)) is Status.OK
        reply = await ask(connection, wire.ReadLac(L))
        assert (reply.status, reply.lac_body, reply.last_entry) == (Status.OK, body, None)
        await status(connection, add(0))
        reply = await ask(connection, wire.ReadLac(L))
        assert (reply.lac_body, reply.last_entry) == (body, entry(0))
        assert (await ask(connection, read(0))).max_lac == 4

    run(main)


def test_lists_information_and_force() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        for entry_id in (0, 1, 5):
            await status(connection, add(entry_id))
        reply = await ask(connection, wire.ListEntries(L))
        assert reply.availability == encode_availability([(0, 1), (5, 5)])
        assert await status(connection, wire.ListEntries(LedgerId(99))) is Status.NO_LEDGER
        assert await status(connection, wire.ForceLedger(LedgerId(99))) is Status.OK
        info = await ask(connection, wire.GetBookieInfo(2))
        assert (info.total, info.free is not None) == (None, True)

    run(main)


def test_advice_that_a_ledger_is_closed_is_passed_on_and_takes_nothing_from_anybody() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        told: list[LedgerId] = []
        house.engine.ledger_closed = told.append  # type: ignore[assignment]
        await status(connection, add(0))
        adds = [asyncio.ensure_future(status(connection, add(entry_id))) for entry_id in (1, 2)]
        advice = await ask(connection, wire.GetBookieInfo(0, closed_ledger=L))
        assert (advice.status, advice.total, advice.free) == (Status.OK, None, None)
        assert await asyncio.gather(*adds) == [Status.OK] * 2
        assert await status(connection, add(3)) is Status.OK
        await ask(connection, wire.GetBookieInfo(0))
        await ask(connection, wire.GetBookieInfo(0, closed_ledger=LedgerId(-1)))
        assert told == [L], "a negative number is no ledger, and may be something else below"

    run(main)


@pytest.mark.rule("A1", "A7")
def test_what_is_listed_is_durable() -> None:
    """It was listed as soon as it could be read. A repair called a ledger whole whose copies a power cut then took."""

    async def main(house: House) -> None:
        connection = await house.client()
        await status(connection, add(0))
        answered: list[str] = []

        async def told(name: str, request: wire.Request) -> Any:
            reply = await ask(connection, request)
            answered.append(name)
            return reply

        _, listed = await asyncio.gather(told("add", add(1)), told("list", wire.ListEntries(L)))
        assert listed.availability == encode_availability([(0, 1)])
        assert answered == ["add", "list"]

    run(main)


@pytest.mark.parametrize(("holes", "told"), [(2, Status.OK), (3, Status.IO_ERROR)])
def test_a_list_that_does_not_fit_into_a_frame_is_refused_and_not_cut_short(holes: int, told: Status) -> None:
    """Runs that begin at ever larger distances are a group each: with its frame, the list takes what a frame may."""

    async def main(house: House) -> None:
        connection = await house.client()
        for run_ in range(holes + 1):
            await status(connection, add(2**run_ + run_))
        assert await status(connection, wire.ListEntries(L)) is told

    run(main, frame_max=64 + HEADER.size + 3 * GROUP.size)


# -- batches -------------------------------------------------------------------------------------------------


def test_a_batch_gives_at_least_one_entry_and_at_most_what_was_asked() -> None:
    async def main(house: House) -> None:
        await stream_adds(await house.client(), 0, 10)
        connection = await house.client(Dialect.V2)

        async def batch(first: int, count: int, size: int) -> list[bytes]:
            reply = await ask(connection, wire.BatchRead(L, EntryId(first), 0, count, size))
            assert reply.status is Status.OK
            entries, body = [], reply.body
            while body:
                size = int.from_bytes(body[:4], "big")
                entries.append(body[4 : 4 + size])
                body = body[4 + size :]
            return entries

        one = 4 + len(entry(0))
        assert len(await batch(0, 0, 1 << 20)) == 10
        assert len(await batch(0, 3, 1 << 20)) == 3
        assert len(await batch(8, 100, 1 << 20)) == 2
        assert len(await batch(0, 0, 0)) == 1
        assert len(await batch(0, 0, 36 + 3 * one)) == 3
        assert len(await batch(0, 0, 36 + 3 * one - 1)) == 2
        assert await status(connection, wire.BatchRead(L, EntryId(10), 0, 1, 1)) is Status.NO_ENTRY

    run(main)


@pytest.mark.rule("B5", "B7")
def test_a_damaged_entry_is_unknown_never_absent() -> None:
    async def main(house: House) -> None:
        connection = await house.client()
        await stream_adds(connection, 0, 3)
        disk, stored = house.node.disk, (await ask(connection, read(1))).entry
        for name in disk.list("/data/ledgers"):
            if name.endswith(".log"):
                content = disk.read_file(f"/data/ledgers/{name}")
                at = content.index(stored)
                disk.flip_bit(f"/data/ledgers/{name}", 8 * (at + 36))
        assert await status(connection, read(0)) is Status.OK
        assert await status(connection, read(1)) is Status.IO_ERROR

    run(main)
