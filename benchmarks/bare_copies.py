"""The least that three durable copies of many bytes can take here, whoever implements it.

Three processes that receive the bytes, write each block synced to a file that is used again, and once more to a file
that grows, as a bookie has its journal and its entry log; nothing else: no protocol, no checksum, no index. A client
sends each block to all three, with a few under way.
"""

from __future__ import annotations

import mmap
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from benchmarks.bare_add import COPIES

BLOCK: Final = 768 * 1024
_UNDER_WAY: Final = 8
_JOURNAL: Final = 64 << 20
_LOG_SYNC: Final = 32


def measure(directory: Path, size: int) -> tuple[float, float]:
    """Seconds, and seconds of processor of client and servers together, until ``size`` bytes have their copies."""
    with ExitStack() as stack:
        children, ends = [], []
        for number in range(COPIES):
            place = str(directory / f"bare-copies-{os.getpid()}-{number}")
            command = [sys.executable, "-m", "benchmarks.bare_copies", place]
            child = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(child.kill)
            assert child.stdout is not None
            ends.append(stack.enter_context(socket.create_connection(("127.0.0.1", int(child.stdout.readline())))))
            children.append(child.pid)
        block = os.urandom(BLOCK)
        began, spent = time.monotonic(), processor_s([os.getpid(), *children])
        blocks = -(-size // BLOCK)
        for number in range(blocks + _UNDER_WAY):
            for end in ends:
                if number < blocks:
                    end.sendall(block)
                if number >= _UNDER_WAY:
                    assert end.recv(1), "a server has ended"
        return time.monotonic() - began, processor_s([os.getpid(), *children]) - spent


def processor_s(pids: list[int]) -> float:
    """Processor time that these processes have taken."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(sum(map(int, each[11:13])) for each in fields) / os.sysconf("SC_CLK_TCK")


def serve(path: str) -> None:
    """Be one of the three, until the client goes."""
    Path(path).write_bytes(bytes(_JOURNAL))
    try:
        journal = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    except OSError:
        journal = os.open(path, os.O_WRONLY | os.O_DSYNC)
    os.unlink(path)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    block, at, end_of_log = mmap.mmap(-1, BLOCK), 0, 0
    view = memoryview(block)
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        end, _ = server.accept()
    with suppress(ConnectionError):  # the client goes with answers unread
        while end.recv_into(view, BLOCK, socket.MSG_WAITALL) == BLOCK:
            os.pwrite(journal, view, at)
            os.pwrite(log, view, end_of_log)
            end.sendall(b"1")
            at, end_of_log = (at + BLOCK) % (_JOURNAL - BLOCK) // 4096 * 4096, end_of_log + BLOCK
            if end_of_log % (_LOG_SYNC * BLOCK) == 0:
                os.fdatasync(log)
                os.posix_fadvise(log, 0, end_of_log, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    serve(sys.argv[1])
