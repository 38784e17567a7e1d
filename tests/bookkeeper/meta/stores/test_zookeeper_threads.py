"""The library's threads and sockets, without a server: what is pending, what is called where."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator

import pytest

from bookkeeper.meta.stores.zookeeper_threads import READ_AHEAD, Handler, ReadAheadSocket

Pair = tuple[ReadAheadSocket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with ReadAheadSocket(one) as ahead, other:
        yield ahead, other


def test_what_came_together_is_asked_of_the_system_once(pair: Pair) -> None:
    ahead, other = pair
    other.sendall(b"\0\0\0\5hello\0\0\0\3you")
    assert ahead.recv(4) == b"\0\0\0\5" and ahead.pending() == 12
    other.close()
    assert [ahead.recv(5), ahead.recv(4), ahead.recv(100)] == [b"hello", b"\0\0\0\3", b"you"]
    assert ahead.pending() == 0
    assert ahead.recv(4) == b"", "the other side has ended"


def test_what_is_larger_than_is_read_ahead_comes_in_pieces(pair: Pair) -> None:
    ahead, other = pair
    sent = bytes(range(256)) * (3 * READ_AHEAD // 256)
    threading.Thread(target=other.sendall, args=(sent,), daemon=True).start()
    got = ahead.recv(10)
    while len(got) < len(sent):
        got += ahead.recv(len(sent) - len(got))
    assert got == sent and ahead.pending() == 0


def test_what_is_pending_can_be_read_and_hides_no_other_socket(pair: Pair) -> None:
    ahead, other = pair
    handler = Handler()
    wake, waked = handler.create_socket_pair()
    with wake, waked:
        assert handler.select([ahead, waked], [], [], 0) == ([], [], [])
        other.sendall(b"abcdefgh")
        assert ahead.recv(4) == b"abcd"
        assert handler.select([ahead, waked], [], [], 0) == ([ahead], [], [])
        wake.send(b"x")
        assert handler.select([ahead, waked], [wake], [], 0) == ([ahead, waked], [wake], [])
        assert ahead.recv(4) == b"efgh"
        assert handler.select([ahead, waked], [], [], 0) == ([waked], [], [])


def test_what_tls_has_decrypted_is_pending() -> None:
    class Decrypted:
        def pending(self) -> int:
            return 7

    assert ReadAheadSocket(Decrypted()).pending() == 7


def test_a_connection_reads_ahead_and_has_everything_else_of_a_socket() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        Handler().create_connection(server.getsockname()[:2], timeout=20.0) as connection,
    ):
        assert connection.getpeername() == server.getsockname() and connection.fileno() >= 0
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
    assert connection.fileno() == -1


def test_who_waits_for_an_answer_is_called_by_the_thread_that_brings_it() -> None:
    handler = Handler()
    handler.start()
    try:
        threads: list[object] = []
        result = handler.async_result()
        result.rawlink(lambda done: threads.append(threading.current_thread()))
        result.set("answer")
        assert threads == [threading.current_thread()]
        result.rawlink(lambda done: threads.append(done.get(block=False)))
        assert threads[-1] == "answer", "it was there already"
    finally:
        handler.stop()
    assert not handler.running, "its threads have ended"


def test_an_error_of_who_waits_reaches_nobody_but_the_log(caplog: pytest.LogCaptureFixture) -> None:
    handler = Handler()
    handler.start()
    try:
        later: list[int] = []
        result = handler.async_result()
        result.rawlink(lambda done: [][1])
        result.rawlink(lambda done: later.append(1))
        with caplog.at_level(logging.ERROR):
            result.set(None)
        assert later == [1] and "IndexError" in caplog.text
    finally:
        handler.stop()
