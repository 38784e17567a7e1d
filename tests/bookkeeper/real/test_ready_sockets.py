"""Sockets that are ready, beside what the selectors of the standard library say."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator

import pytest

from bookkeeper.real.ready_sockets import ready_sockets

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def by_selector(readers: list[socket.socket], writers: list[socket.socket]) -> tuple[set[int], set[int]]:
    with selectors.DefaultSelector() as selector:
        for each in {*readers, *writers}:
            events = (each in readers) * selectors.EVENT_READ | (each in writers) * selectors.EVENT_WRITE
            selector.register(each, events)
        found = [(key.fd, events) for key, events in selector.select(0)]
    return (
        {fd for fd, events in found if events & selectors.EVENT_READ},
        {fd for fd, events in found if events & selectors.EVENT_WRITE},
    )


def numbers(found: tuple[list[socket.socket], list[socket.socket]]) -> tuple[set[int], set[int]]:
    return {each.fileno() for each in found[0]}, {each.fileno() for each in found[1]}


@pytest.mark.parametrize("state", ["idle", "sent", "full", "shut", "gone"])
@pytest.mark.parametrize("asked", ["read", "write", "both"])
def test_it_says_what_a_selector_says(pair: Pair, state: str, asked: str) -> None:
    one, other = pair
    match state:
        case "sent":
            other.send(b"x")
        case "full":
            one.setblocking(False)
            with pytest.raises(BlockingIOError):
                while True:
                    one.send(bytes(65536))
        case "shut":
            other.shutdown(socket.SHUT_WR)
        case "gone":
            other.close()
    readers = [one] if asked != "write" else []
    writers = [one] if asked != "read" else []
    assert numbers(ready_sockets(readers, writers, 0)) == by_selector(readers, writers)


def test_each_is_told_apart_and_nothing_is_ready_when_the_time_is_up(pair: Pair) -> None:
    one, other = pair
    assert ready_sockets([one, other], [], 0.001) == ([], [])
    other.send(b"x")
    assert ready_sockets([other, one], [other], None) == ([one], [other])


def test_a_closed_socket_and_a_negative_time_are_refused(pair: Pair) -> None:
    one, other = pair
    one.close()
    with pytest.raises(ValueError, match="closed"):
        ready_sockets([one], [], 0)
    with pytest.raises(ValueError, match="negative"):
        ready_sockets([other], [], -1)
