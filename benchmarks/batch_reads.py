"""Batch reads of one ledger from a bookie's process, and its log sent by ``sendfile``, each over TCP of this machine.

The reader throws away what it gets, but for the lengths of frames. The bookie prepares a reply while the reader takes
the one before.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.processes import BookieProcesses
from benchmarks.report import Figure, Report
from bookkeeper.codec import Dialect
from bookkeeper.ids import Address, EntryId, LedgerId
from bookkeeper.storage.base.config import MIB
from bookkeeper.wire import BatchRead, encode_request

_SIZE: Final = 1000
"""Bytes of an entry's payload."""
_PACKED: Final = 4 + 32 + 4 + _SIZE
"""Bytes of an entry in a reply: length, header, CRC32C, payload."""
_REPLY_HEAD: Final = 32
"""Bytes before the first entry."""
_LENGTH: Final = 4
_ROUNDS: Final = 5
_WAIT_S: Final = 60.0


def measure(report: Report, directory: Path, megabytes: int) -> None:
    """The median of the rounds, in each of which both are measured."""
    count = megabytes * MIB // _PACKED
    with BookieProcesses(directory, bookies=1) as cluster:
        one_copy = ("--ensemble", "1", "--write-quorum", "1", "--ack-quorum", "1", "--deferred")
        how = ("--size", str(_SIZE), "--count", str(count), *one_copy)
        ledger = cluster.bk("ledger", "append", "--json", *how)["ledger"]
        bookie = Address.parse(cluster.bk("bookies", "--json")[0]["address"])
        log = max(directory.rglob("*.log"), key=lambda path: path.stat().st_size)
        rounds = [(_sent(log), _read(bookie, LedgerId(ledger), count)) for _ in range(1 + _ROUNDS)][1:]
    sent, read = (median(rates) for rates in zip(*rounds, strict=True))
    note = f"{read:,.0f} MB/s; sendfile {sent:,.0f} MB/s"
    ratio = median(reading / sending for sending, reading in rounds)
    report.add(Figure("batch reads from a bookie over TCP, over sendfile", ratio, "", None, note))


def _read(bookie: Address, ledger_id: LedgerId, count: int) -> float:
    """MB/s of all entries. A request leaves as soon as the head of the reply before says where it begins."""
    room, at, size = bytearray(MIB), 0, 0

    def ask() -> None:
        end.sendall(encode_request(BatchRead(ledger_id, EntryId(at), 0, 10_000, MIB), Dialect.V2))

    with closing(socket.create_connection((bookie.host, bookie.port), _WAIT_S)) as end:
        began = time.monotonic()
        ask()
        while at < count:
            length = int.from_bytes(end.recv(_LENGTH, socket.MSG_WAITALL), "big")
            entries, rest = divmod(length - _REPLY_HEAD, _PACKED)
            if rest or not entries:
                raise RuntimeError(f"the bookie has answered a read of entry {at} with {length} bytes")
            at += entries
            if at < count:
                ask()
            _take(end, room, length)
            size += length
        return size / MIB / (time.monotonic() - began)


def _take(end: socket.socket, room: bytearray, size: int) -> None:
    """Receive so many bytes and throw them away."""
    view = memoryview(room)
    while size:
        if not (count := end.recv_into(view[: min(size, len(room))])):
            raise ConnectionError(f"{size} bytes did not come")
        size -= count


def _sent(path: Path) -> float:
    """MB/s of a file that another process sends."""
    size = path.stat().st_size
    with _sender(path) as end:
        began = time.monotonic()
        _take(end, bytearray(MIB), size)
        return size / MIB / (time.monotonic() - began)


@contextmanager
def _sender(path: Path) -> Iterator[socket.socket]:
    command = [sys.executable, "-m", "benchmarks.batch_reads", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        with closing(socket.create_connection(("127.0.0.1", int(child.stdout.readline())), _WAIT_S)) as end:
            yield end


def _send(path: str) -> None:
    """Be the process that sends: a file, to the first that connects."""
    with socket.create_server(("127.0.0.1", 0)) as server, open(path, "rb") as file:
        print(server.getsockname()[1], flush=True)
        end, _ = server.accept()
        with end:
            sent, size = 0, os.fstat(file.fileno()).st_size
            while sent < size:
                sent += os.sendfile(end.fileno(), file.fileno(), sent, min(MIB, size - sent))


if __name__ == "__main__":
    _send(sys.argv[1])
