"""Which dialect a connection speaks is found out from its frames."""

from __future__ import annotations

import pytest

from bookkeeper import wire
from bookkeeper.codec.shapes import Dialect
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import dialect
from bookkeeper.wire.dialect import DialectDetector
from bookkeeper.wire.requests import StartTls

READ = wire.ReadEntry(LedgerId(7), EntryId(3))


def body(request: wire.Request, spoken: Dialect) -> bytes:
    return dialect.encode_request(request, spoken, txn_id=9)[4:]


def test_a_connection_stays_v3_as_long_as_it_speaks_it() -> None:
    server = DialectDetector()
    for _ in range(2):
        decoded = server.decode(body(READ, Dialect.V3))
        assert isinstance(decoded, tuple)
        assert (decoded[0].dialect, decoded[0].txn_id, decoded[1]) == (Dialect.V3, 9, READ)
    assert not server.v2


def test_the_first_frame_that_is_not_v3_makes_it_v2_for_ever() -> None:
    server = DialectDetector()
    server.decode(body(READ, Dialect.V3))
    decoded = server.decode(body(READ, Dialect.V2))
    assert isinstance(decoded, tuple)
    assert (decoded[0].dialect, decoded[1]) == (Dialect.V2, READ)
    assert server.v2
    with pytest.raises(MalformedFrameError):
        server.decode(body(READ, Dialect.V3))


def test_start_tls_is_v3_whatever_follows() -> None:
    server = DialectDetector()
    decoded = server.decode(body(StartTls(), Dialect.V2))
    assert isinstance(decoded, tuple)
    assert isinstance(decoded[1], StartTls)
    assert not server.v2


@pytest.mark.parametrize("spoken", [Dialect.V2, Dialect.V3])
def test_a_reply_is_in_the_dialect_of_its_request(spoken: Dialect) -> None:
    decoded = DialectDetector(v2=spoken is Dialect.V2).decode(body(READ, spoken))
    assert isinstance(decoded, tuple)
    reply = wire.ReadReply(wire.Status.NO_ENTRY, LedgerId(7), EntryId(3))
    header, found = dialect.decode_reply(dialect.encode_reply(decoded[0], reply)[4:], spoken)
    assert (header.dialect, found) == (spoken, reply)


def test_the_entries_of_a_batch_leave_as_they_are() -> None:
    entries = bytes(100)
    header = wire.RequestHeader(Dialect.V2, wire.Operation.BATCH_READ)
    reply = wire.BatchReply(wire.Status.OK, LedgerId(7), EntryId(3), 9, entries)
    assert dialect.reply_pieces(header, reply)[1] is entries
    assert len(dialect.reply_pieces(header, wire.BatchReply(wire.Status.NO_ENTRY, LedgerId(7), EntryId(3), 9))) == 1
