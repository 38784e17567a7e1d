"""What a slower disk and a longer way add. Only the least times are looked at: a busy machine adds its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks.apache.surroundings import Forwarder, slow_sync
from bookkeeper.launchers.zookeeper import free_port

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

SYNCS = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
synced = os.open(sys.argv[1], os.O_RDWR | os.O_DSYNC)
for work in (lambda: os.write(fd, b"x"), lambda: os.fdatasync(fd), lambda: os.fsync(fd),
             lambda: os.pwrite(synced, b"x", 0), lambda: os.pwritev(synced, [b"x"], 0)):
    began = time.monotonic()
    work()
    print(time.monotonic() - began >= 0.2)
"""


def test_every_sync_takes_longer_and_nothing_else(tmp_path: Path) -> None:
    """The sources were left out of the repository: no clone could measure it."""
    where = slow_sync(tmp_path, microseconds=200_000)
    done = subprocess.run(
        [sys.executable, "-c", SYNCS, str(tmp_path / "file")],
        env={**os.environ, **where.environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True", "True", "True", "True"]


def test_every_byte_comes_later_in_either_direction(tmp_path: Path) -> None:
    sent = bytes(range(256)) * 20_000
    with socket.create_server(("127.0.0.1", 0)) as server:

        def echo() -> None:
            connection, _ = server.accept()
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data)

        thread = threading.Thread(target=echo)
        thread.start()
        port = free_port()
        forwarder = Forwarder(tmp_path, 100_000, [(port, server.getsockname()[1])])
        try:
            with socket.create_connection(("127.0.0.1", port)) as client:
                began = time.monotonic()
                client.sendall(b"x")
                assert client.recv(1) == b"x"
                assert time.monotonic() - began >= 0.2
                sending = threading.Thread(target=client.sendall, args=(sent,))
                sending.start()
                assert read(client, len(sent)) == sent
                sending.join()
            thread.join(10)
            assert not thread.is_alive(), "the end comes through, too"
        finally:
            forwarder.stop()


def read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := client.recv(65536)):
        data += more
    return data
