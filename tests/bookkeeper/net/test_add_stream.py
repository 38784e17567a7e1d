"""A stream: what it reports, and when it is silent. Its replies on a connection: test_connection."""

from __future__ import annotations

from bookkeeper.errors import BookieError, BookieUnavailableError
from bookkeeper.ids import Address, LedgerId
from bookkeeper.net.add_stream import AddStream, StreamIds
from bookkeeper.net.connection import BookieConnection
from bookkeeper.net.replies.deliveries import AddRun
from bookkeeper.wire import Dialect, Status


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
