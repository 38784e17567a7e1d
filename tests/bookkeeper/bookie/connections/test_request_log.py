"""What a bookie's log says about requests, and what their clients can make it say."""

from __future__ import annotations

import asyncio
import logging

import pytest

from bookkeeper import codec, wire
from bookkeeper.bookie.connections.request_log import CONTEXT_MAX, SLOW_S, RequestLog, printable
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Dialect, Operation, Status
from bookkeeper.wire import bookkeeper_pb2 as pb
from tests.bookkeeper.bookie.house import KEY, House, run

L = LedgerId(7)


def adds_of(first: int, count: int, dialect: int = 3, stream: int = 0) -> codec.Adds:
    """What a bookie cuts out of a chunk with these adds."""
    payloads = [b"p"] * count
    frames = codec.encode_adds(dialect, L, first, payloads, -1, 0, KEY, 3, txn_base=stream << codec.STREAM_SHIFT)[0]
    return codec.split_adds(frames, 0, len(frames), codec.FRAME_MAX, dialect == 2)


def with_context(request: wire.Request, *pairs: tuple[bytes, bytes]) -> bytes:
    message = pb.Request.FromString(wire.encode_request(request, Dialect.V3, 5)[4:])
    for key, value in pairs:
        message.requestContext.add(key=key, value=value)
    body = message.SerializeToString()
    return len(body).to_bytes(4, "big") + body


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.endswith("request_log")]


@pytest.mark.rule("X38")
def test_the_context_of_a_refused_request_reaches_the_log_escaped_and_cut(caplog: pytest.LogCaptureFixture) -> None:
    async def main(house: House) -> None:
        peer = await house.raw()
        house.bookie.read_only = True
        add = wire.AddEntry(L, EntryId(0), KEY, codec.encode_adds(2, L, 0, [b"p"], -1, 0, KEY, 3)[0][28:])
        peer.send(with_context(add, (b"user", b"al\nice\x1b[2J"), (b'job"]', "ü".encode() * 100)))
        await asyncio.sleep(1)
        assert len(peer.frames) == 1

    run(main)
    [line] = lines(caplog)
    assert "refused: ADD of entry 0 of ledger 7 from " in line and "READ_ONLY after " in line
    assert '[user="al\\x0aice\\x1b\\x5b2J", job\\x22\\x5d="' in line
    assert line.isascii() and line.isprintable() and len(line) < CONTEXT_MAX + 150


@pytest.mark.rule("X36", "X38")
def test_no_client_makes_a_line_long_or_the_lines_many(caplog: pytest.LogCaptureFixture) -> None:
    flood = tuple((b"k" * 10_000, b"\0" * 10_000) for _ in range(1000))

    async def main(house: House) -> None:
        peer = await house.raw()
        for _ in range(50):
            peer.send(with_context(wire.ReadEntry(L, EntryId(-5)), *flood[:100]))
        await asyncio.sleep(0.5)
        assert len(peer.frames) == 50
        await asyncio.sleep(1.5)
        peer.send(with_context(wire.ReadEntry(L, EntryId(-5))))
        await asyncio.sleep(0.5)

    run(main)
    first, second = lines(caplog)
    assert len(first) < CONTEXT_MAX + 150 and first.isprintable()
    assert second.endswith("(not logged since the last such line: 49)")
    decoded = wire.DialectDetector().decode(with_context(wire.ForceLedger(L), *flood)[4:])
    assert isinstance(decoded, tuple)
    assert sum(len(key) + len(value) for key, value in decoded[0].context) <= 1024
    assert len(printable(decoded[0].context)) == CONTEXT_MAX


def test_slow_and_failed_requests_are_told_and_ordinary_ones_are_not(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    notes = RequestLog(lambda: now)
    header = wire.RequestHeader(Dialect.V3, Operation.READ, 9)
    read = wire.ReadEntry(L, EntryId(3))
    poll = wire.ReadEntry(L, EntryId(-1), previous_lac=1, timeout_ms=9000)
    for status in (Status.OK, Status.NO_ENTRY, Status.NO_LEDGER):
        notes.log_request("h", header, read, status, 0.5 * SLOW_S)
    notes.log_request("h", header, poll, Status.OK, 9.0)
    assert lines(caplog) == []
    notes.log_request("h", header, read, Status.OK, SLOW_S)
    notes.log_request("h", header, read, Status.IO_ERROR, 0.0)
    adds = adds_of(12, 4, stream=2)
    notes.log_run("h", adds.runs[0], adds, Status.OK, 2 * SLOW_S)
    assert lines(caplog) == [
        "slow: READ of entry 3 of ledger 7 from h: OK after 1000.0 ms [request h/9]",
        "failed: READ of entry 3 of ledger 7 from h: IO_ERROR after 0.0 ms [request h/9]",
    ], "one line a second of each kind"
    now = 5.0
    notes.log_run("h", adds.runs[0], adds, Status.OK, 2 * SLOW_S)
    assert lines(caplog)[-1] == (
        "slow: ADD of entries 12 to 15 of ledger 7 from h: OK after 2000.0 ms [request h/2:12] "
        "(not logged since the last such line: 1)"
    )


def test_a_line_has_what_the_client_calls_the_operation_or_else_the_number_on_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    notes = RequestLog(lambda: now)
    named = ((b"job", b"j"), (wire.REQUEST_ID, b'1f-3"]'))
    for context, dialect, told in (
        (named, Dialect.V3, "1f-3\\x22\\x5d"),
        (((wire.REQUEST_ID, b""),), Dialect.V3, "h:1/17"),
        ((), Dialect.V3, "h:1/17"),
        ((), Dialect.V2, "h:1"),
    ):
        now += 5
        header = wire.RequestHeader(dialect, Operation.READ, 17, context=context)
        notes.log_request("h:1", header, wire.ReadEntry(L, EntryId(3)), Status.IO_ERROR, 0.0)
        assert f"from h:1: IO_ERROR after 0.0 ms [request {told}]" in lines(caplog)[-1]
        assert vars(caplog.records[-1])["request_id"] == told and vars(caplog.records[-1])["status"] == "IO_ERROR"
    for dialect_number, told in ((3, "h:1/5:40"), (2, "h:1")):
        now += 5
        adds = adds_of(40, 3, dialect_number, stream=5)
        notes.log_run("h:1", adds.runs[0], adds, Status.IO_ERROR, 0.0)
        assert vars(caplog.records[-1])["request_id"] == told
    mixed = codec.encode_adds(3, L, 40, [b"p"], -1, 0, KEY, 3, txn_base=17)[0]
    mixed += codec.encode_adds(2, L, 41, [b"p"], -1, 0, KEY, 3)[0]
    adds = codec.split_adds(mixed, 0, len(mixed), codec.FRAME_MAX, False)
    now += 5
    notes.log_run("h:1", adds.runs[0], adds, Status.IO_ERROR, 0.0)
    assert vars(caplog.records[-1])["request_id"] == "h:1/57", "the dialect of the chunk's end is not that of its begin"


def test_a_fenced_writer_is_ordinary_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    notes = RequestLog(lambda: 0.0)
    with caplog.at_level(logging.INFO):
        adds = adds_of(12, 4, stream=2)
        notes.log_run("h", adds.runs[0], adds, Status.FENCED, 0.0)
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert (
        record.getMessage()
        == "fenced: ADD of entries 12 to 15 of ledger 7 from h: FENCED after 0.0 ms [request h/2:12]"
    )


def test_plain_adds_that_are_refused_are_one_line_a_run(caplog: pytest.LogCaptureFixture) -> None:
    async def main(house: House) -> None:
        house.bookie.read_only = True
        peer = await house.raw()
        peer.send(codec.encode_adds(3, L, 5, [b"p"] * 9, -1, 0, KEY, 3, txn_base=1 << 40)[0])
        await asyncio.sleep(1)

    with caplog.at_level(logging.WARNING):
        run(main)
    assert lines(caplog)[0].startswith("refused: ADD of entries 5 to 13 of ledger 7 from ")
