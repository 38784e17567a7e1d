"""A real process on a real disk, killed without warning."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from bookkeeper import codec, real, wire
from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.bookie.process import REMINDER_S, _remind, started
from bookkeeper.errors import BookieError, MetadataError, MetadataUnavailableError, SessionExpiredError
from bookkeeper.ids import Address, EntryId, LedgerId
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta import Metadata, init_cluster
from bookkeeper.meta.store import SessionState
from bookkeeper.net.connection import AddRun, connect_bookie
from bookkeeper.testing import World
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.processes import Process, new_process
from tests.bookkeeper.supervised import supervisor

L = LedgerId(7)
KEY = b"k" * 20


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
        stream.send(codec.encode_adds(3, L, first, payloads, -1, 0, KEY, 3, txn_base=stream.txn_base)[0])
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
def test_kill_9_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    process = new_process(tmp_path)
    acked: list[AddRun] = []
    following = 0
    process.start()
    for _ in range(3):
        got, following = real.run(_load(process.address, following, 3000, process))
        assert process.process is not None
        process.process.communicate(timeout=30 * stretch())
        acked += got
        port = process.address.port
        process.start()
        assert process.address.port == port, "the port was chosen once"
        real.run(_check(process.address, acked))
    assert sum(n for _, n, status in acked if status is Status.OK) >= 9000
    code, errors = process.end(signal.SIGTERM)
    assert (code, errors) == (0, "")
    with supervisor() as systemd:
        process.start(environment=systemd.environment(watchdog_s=30))
        heard = systemd.until("READY=1")
        assert heard[0] == "WATCHDOG=1", "a long start gives signs of life, too"
        assert "STATUS=starting: opening storage" in heard and heard[-1] == "READY=1"
        assert process.end(signal.SIGTERM) == (0, "")
        assert systemd.until("STOPPING=1")[-1] == "STOPPING=1"


def page(http: str, path: str) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection(http, timeout=30 * stretch())
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.integration
@pytest.mark.zookeeper
@pytest.mark.rule("Z1")
def test_with_zookeeper_hanging_it_is_live_but_not_ready_and_ends_on_sigterm_within_ten_seconds(tmp_path: Path) -> None:
    """The end of the registration was asked for four times, each for as long as an operation may take, and the client
    of ZooKeeper was waited for: 44 s. And the page went on saying that the bookie was writable."""
    with ZooKeeperServer(tmp_path / "zk", tick_ms=200) as zookeeper:
        real.run(init_cluster(zookeeper.uri, real.system_seams()))
        command = [sys.executable, "-m", "bookkeeper.bookie", "-m", zookeeper.uri, "--dir", str(tmp_path / "b")]
        command += ["--metadata-session", "5"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bookie:
            assert bookie.stdout is not None
            http = bookie.stdout.readline().split("http://")[1].strip()
            try:
                assert page(http, "/readyz")[0] == 200
                zookeeper.pause()
                while page(http, "/readyz")[0] == 200:
                    pass  # until the client has missed its servers
                assert page(http, "/livez") == (200, {"status": "ok"})
                status, shown = page(http, "/healthz")
                assert (status, shown["state"]) == (200, "unregistered")
                bookie.terminate()
                assert bookie.wait(timeout=10) == 0
            finally:
                bookie.kill()
                zookeeper.resume()


def test_an_insecure_bookie_says_so_at_once_and_every_hour(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        _remind(asyncio.get_running_loop(), "insecure: everyone who reaches")
        assert caplog.text.count("insecure: everyone who reaches") == 1
        await asyncio.sleep(2 * REMINDER_S + 1)
        assert caplog.text.count("insecure: everyone who reaches") == 3

    with World(0) as world:
        world.run(main(), within_s=3 * REMINDER_S)


@pytest.mark.rule("F1", "F9")
@pytest.mark.parametrize("lost", [SessionExpiredError, MetadataUnavailableError])
def test_a_start_that_loses_its_session_is_repeated_with_a_new_one_and_says_how_far_it_is(
    tmp_path: Path, lost: type[MetadataError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process ended: a machine on which a first start takes longer than a session never had a bookie."""
    sessions: list[Metadata] = []
    start = BookieServer.start

    async def loses(self: BookieServer) -> None:
        sessions.append(self._metadata)
        if len(sessions) < 3:
            raise lost("the session has ended")
        await start(self)

    async def main() -> None:
        seams, uri = real.system_seams(), f"sqlite://{tmp_path}/metadata.db"
        await init_cluster(uri, seams)
        storage = {"journal_file_bytes": 1 << 20, "reserve_bytes": 0}
        config = config_from({"metadata_uri": uri, "directory": str(tmp_path / "b1"), "storage": storage})
        server, metadata = await started(config, seams)
        try:
            assert len(set(map(id, sessions))) == 3 and metadata is sessions[-1]
            assert [each.store.session is SessionState.CONNECTED for each in sessions] == [False, False, True]
        finally:
            await server.stop()
            await metadata.close()

    monkeypatch.setattr(BookieServer, "start", loses)
    monkeypatch.setattr("bookkeeper.bookie.process.AGAIN_S", 0.0)
    real.run(main())
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("starting: ")]
    assert said == [
        *["starting: session with the metadata store"] * 3,
        "starting: opening storage",
        "starting: registering",
    ]
