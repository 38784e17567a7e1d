"""``python -m bookkeeper.bookie``: a real process on a real disk, killed without warning."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bookkeeper import real, runs, wire
from bookkeeper.errors import BookieError
from bookkeeper.ids import Address, EntryId, LedgerId
from bookkeeper.meta import init_cluster
from bookkeeper.net.connection import AddRun, connect_bookie
from bookkeeper.wire import Status

L = LedgerId(7)
KEY = b"k" * 20


class Process:
    """A bookie in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self._arguments = [
            *(sys.executable, "-m", "bookkeeper.bookie"),
            *("--metadata", f"sqlite:///{directory}/meta.db", "--directory", f"{directory}/bookie"),
        ]
        self.address = Address("", 0)
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(self._arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert " serves at " in line, self.end(signal.SIGKILL)
        self.address = Address.parse(line.split(" serves at ")[1].split(",")[0].strip())

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal; the exit code and what was written to stderr."""
        assert self.process is not None
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@pytest.fixture
def process(tmp_path: Path) -> Process:
    real.run(_init(f"sqlite:///{tmp_path}/meta.db"))
    return Process(tmp_path)


async def _init(uri: str) -> None:
    await init_cluster(uri, real.system_seams())


async def _load(address: Address, first: int, kill: int, process: Process) -> tuple[list[AddRun], int]:
    """Add until the connection is lost; kill the process after ``kill`` acknowledgements."""
    connection = await connect_bookie(real.system_seams().net, address)
    got: list[AddRun] = []
    lost: asyncio.Future[BookieError] = asyncio.get_running_loop().create_future()
    killed = False

    def replies(batch: list[AddRun]) -> None:
        nonlocal killed
        got.extend(batch)
        if not killed and sum(n for _, n, _ in got) >= kill and process.process is not None:
            killed = True
            os.kill(process.process.pid, signal.SIGKILL)

    stream = connection.open_stream(1, L, replies, lost.set_result)
    while not lost.done():
        payloads = [(b"%d." % (first + i)) * 50 for i in range(20)]
        stream.send(runs.encode_adds(3, L, first, payloads, -1, 0, KEY, 3, txn_base=stream.txn_base)[0])
        first += 20
        await asyncio.sleep(0.0005)
    return got, first


async def _check(address: Address, acked: list[AddRun]) -> None:
    connection = await connect_bookie(real.system_seams().net, address)
    ids = [first + i for first, n, status in acked if status is Status.OK for i in range(n)]
    replies = await asyncio.gather(*[connection.request(wire.ReadEntry(L, EntryId(e)), 30) for e in ids])
    for entry_id, reply in zip(ids, replies, strict=True):
        assert isinstance(reply, wire.ReadReply)
        assert reply.entry is not None, f"acknowledged entry {entry_id} is gone: {reply.status.name}"
        assert reply.entry[36:] == (b"%d." % entry_id) * 50
    connection.close()


@pytest.mark.integration
@pytest.mark.rule("B1", "F1", "K7")
def test_kill_9_under_load_loses_nothing_that_was_acknowledged(process: Process) -> None:
    acked: list[AddRun] = []
    following = 0
    process.start()
    for _ in range(3):
        got, following = real.run(_load(process.address, following, 3000, process))
        assert process.process is not None
        process.process.communicate(timeout=30)
        acked += got
        port = process.address.port
        process.start()
        assert process.address.port == port, "the port was chosen once (D18)"
        real.run(_check(process.address, acked))
    assert sum(n for _, n, status in acked if status is Status.OK) >= 9000
    code, errors = process.end(signal.SIGTERM)
    assert (code, errors) == (0, "")


@pytest.mark.integration
@pytest.mark.rule("X1")
def test_what_is_wrong_is_said_and_the_exit_code_tells(process: Process, tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "bookkeeper.bookie", *arguments], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    code, errors = run("--directory", str(tmp_path))
    assert (code, "metadata_uri" in errors) == (78, True)
    good = ("--metadata", f"sqlite:///{tmp_path}/meta.db", "--directory", f"{tmp_path}/bookie")
    code, errors = run(*good, "--listen", "0.0.0.0:0")
    assert (code, "insecure" in errors) == (78, True)
    process.start()
    code, errors = run(*good)
    assert (code, "another process" in errors) == (78, True)
    assert process.end(signal.SIGINT)[0] == 0
