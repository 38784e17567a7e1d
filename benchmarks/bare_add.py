"""The least that one add at a time can take here at E3/Qw3/Qa2, whoever implements it.

Three processes that receive 1 KiB, write it synced and answer, and nothing else: no protocol, no checksum, no index,
no entry log. A client sends to all three and waits for two answers. What three disks of their own would do in parallel
three processes do here on one, so this is more than one synced write and one round trip.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from typing import Final

COPIES: Final = 3
ACKS: Final = 2
_REQUEST: Final = 1100
"""Bytes of an add of 1 KiB on the wire, about."""
_REPLY: Final = 60
_FILE: Final = 4 << 20


def measure(directory: Path, rounds: int = 3000) -> float:
    """Microseconds of such an add, the median."""
    with ExitStack() as stack:
        ends = []
        for number in range(COPIES):
            command = [sys.executable, "-m", "benchmarks.bare_add", str(directory / f"bare-add-{os.getpid()}-{number}")]
            child = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(child.kill)
            assert child.stdout is not None
            end = stack.enter_context(socket.create_connection(("127.0.0.1", int(child.stdout.readline()))))
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ends.append(end)
        return median(_spans(ends, rounds)) * 1e6


def _spans(ends: list[socket.socket], rounds: int) -> list[float]:
    poll = select.poll()
    by_number = {end.fileno(): end for end in ends}
    answered = dict.fromkeys(by_number, 0)
    for number in by_number:
        poll.register(number, select.POLLIN)
    request = bytes(_REQUEST)
    spans = []
    for done in range(1, rounds + 1):
        began = time.perf_counter()
        for end in ends:
            end.sendall(request)
        while sum(count >= done * _REPLY for count in answered.values()) < ACKS:
            for number, _ in poll.poll():
                answered[number] += len(by_number[number].recv(4096))
        spans.append(time.perf_counter() - began)
    return spans


def serve(path: str) -> None:
    """Be one of the three, until the client goes."""
    Path(path).write_bytes(bytes(_FILE))
    try:
        file = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    except OSError:
        file = os.open(path, os.O_WRONLY | os.O_DSYNC)
    os.unlink(path)
    block, reply, at = mmap.mmap(-1, 4096), bytes(_REPLY), 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        end, _ = server.accept()
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with suppress(ConnectionError):  # the client goes with answers unread
        while len(end.recv(_REQUEST, socket.MSG_WAITALL)) == _REQUEST:
            os.pwrite(file, block, at)
            end.sendall(reply)
            at = (at + 4096) % _FILE


if __name__ == "__main__":
    serve(sys.argv[1])
