"""``bk zookeeper`` and ``bk standalone`` as processes: what they print, how they stop, what they leave."""

from __future__ import annotations

import os
import re
import signal
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import grown
from examples.certificates import Authority
from tests.bookkeeper.admin.commands import bk
from tests.integration.processes import Process, bk_json, free_port, until
from tests.integration.processes import bk as run_bk

pytestmark = pytest.mark.integration


@contextmanager
def running(directory: Path, *words: str) -> Iterator[Process]:
    process = Process("bk", directory, *words).start()
    try:
        yield process
    finally:
        process.resume()
        process.stop()


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# -- standalone -------------------------------------------------------------------------------------------


def test_standalone_serves_ledgers_and_the_gateway_stops_cleanly_and_goes_on_where_it_was(tmp_path: Path) -> None:
    port = free_port()
    words = ("standalone", "--dir", str(tmp_path / "bk"), "--webhdfs-port", str(port))
    for turn in range(2):
        with running(tmp_path, *words) as standalone:
            uri = standalone.until_said(r"export BK_METADATA=(\S+)")[1]
            assert uri == f"sqlite://{tmp_path}/bk/metadata.db"
            assert f"checkpointLocation=webhdfs://127.0.0.1:{port}/NAME" in standalone.said
            assert "everything is in" in standalone.said
            assert [row["state"] for row in bk_json("bookies", "-m", uri)] == ["writable"] * 3
            if turn == 0:
                number = run_bk("ledger", "append", "-m", uri, stdin=b"kept\n")[1].strip()
            assert run_bk("ledger", "read", number, "-m", uri)[1] == "kept\n"
            listing = f"http://127.0.0.1:{port}/webhdfs/v1/?op=LISTSTATUS"
            with urllib.request.urlopen(listing, timeout=20 * stretch()) as reply:
                assert b"FileStatuses" in reply.read()
            family = children(standalone.pid)
            assert len(family) == 5, "three bookies, the healer, the gateway"
            assert standalone.stop(signal.SIGINT if turn == 0 else signal.SIGTERM) == 0, standalone.said
            assert all(map(gone, family))
            assert "Traceback" not in standalone.said


def test_who_is_killed_is_reported_and_comes_back_and_an_empty_cluster_is_small(tmp_path: Path) -> None:
    """Nobody started a dead bookie or gateway again; and each bookie took what one with a disk of its own may take."""
    port = free_port()
    words = ("standalone", "--dir", str(tmp_path / "bk"), "--webhdfs-port", str(port))
    with running(tmp_path, *words) as standalone:
        uri = standalone.until_said(r"export BK_METADATA=(\S+)")[1]
        files = [path.stat() for path in (tmp_path / "bk", *(tmp_path / "bk").rglob("*"))]
        assert not any(file.st_mode & 0o077 for file in files), "others can read it"
        assert sum(512 * file.st_blocks for file in files) <= 100_000_000
        number = run_bk("ledger", "append", "-m", uri, stdin=b"one\ntwo\n")[1].strip()
        first, *_, gateway = children(standalone.pid)
        os.kill(first, signal.SIGKILL)
        os.kill(gateway, signal.SIGKILL)
        name = standalone.until_said(r"(b\d) +has ended by the signal SIGKILL; it is started again in 1 s")[1]
        standalone.until_said(rf"(?s)bookie {name} serves.*bookie {name} serves")
        standalone.until_said(r"gateway +has ended by the signal SIGKILL; it is started again in 1 s")
        standalone.until_said(r"(?s)serves namespace.*serves namespace")
        assert {row["state"] for row in bk_json("bookies", "-m", uri)} == {"writable"}
        assert run_bk("ledger", "read", number, "-m", uri)[1] == "one\ntwo\n"
        assert standalone.stop() == 0, "all are up again"


def test_the_family_ends_with_its_parent(tmp_path: Path) -> None:
    with running(tmp_path, "standalone", "--dir", str(tmp_path / "bk"), "--bookies", "1", "--webhdfs-port", "0") as it:
        it.until_said("ready after")
        family = children(it.pid)
        assert family
        os.kill(it.pid, signal.SIGKILL)
        until(lambda: all(map(gone, family)), 20, family)


def test_a_port_that_is_taken_is_said_and_nothing_is_started(tmp_path: Path) -> None:
    """It waited for ever for a gateway that had ended."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, out, err = run_bk("standalone", "--dir", str(tmp_path / "bk"), "--webhdfs-port", str(port))
        assert (status, out) == (1, "")
        assert err.startswith(f"bk: port {port} of 127.0.0.1") and "--webhdfs-port PORT" in err
        assert not (tmp_path / "bk").exists()


def test_a_second_one_on_the_same_directory_says_what_is_wrong(tmp_path: Path) -> None:
    words = ("standalone", "--dir", str(tmp_path / "bk"), "--bookies", "1", "--webhdfs-port", "0")
    with running(tmp_path, *words) as first:
        first.until_said("ready after")
        status, out, err = run_bk(*words)
        assert (status, out) == (1, "")
        assert err == f"bk: another bk standalone runs on {tmp_path}/bk: stop it, or choose another --dir\n"
        assert first.running


@pytest.mark.rule("X2", "X5")
def test_a_standalone_that_is_encrypted_serves_only_who_shows_a_certificate(tmp_path: Path) -> None:
    """Bookies, the gateway as their client, and `bk ledger` by options and by environment."""
    port = free_port()
    authority = Authority(tmp_path / "certificates")
    made, client = authority.server(), authority.client()
    tls = ("--tls-cert", made.cert, "--tls-key", made.key, "--tls-ca", authority.ca, "--tls-client-ca", authority.ca)
    with running(tmp_path, "standalone", "--dir", str(tmp_path / "bk"), "--webhdfs-port", str(port), *tls) as it:
        uri = it.until_said(r"export BK_METADATA=(\S+)")[1]
        assert it.until_said(r"export BK_TLS_CA=(\S+)")[1] == authority.ca
        shown = ("--tls-ca", authority.ca, "--tls-cert", client.cert, "--tls-key", client.key)
        number = run_bk("ledger", "append", "-m", uri, *shown, stdin=b"kept\n")[1].strip()
        told = {"BK_TLS_CA": authority.ca, "BK_TLS_CERT": client.cert, "BK_TLS_KEY": client.key}
        assert bk("ledger", "read", number, "-m", uri, environment=told).out == "kept\n"
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/webhdfs/v1/?op=LISTSTATUS", timeout=20 * stretch()
        ) as reply:
            assert b"FileStatuses" in reply.read()
        half_told = {"BK_TLS_CA": authority.ca}
        refused = bk("ledger", "read", number, "-m", uri, environment=half_told)
        refused.refused("does not accept this client's certificate, or requires one")
        bk("ledger", "read", number, "-m", uri).refused("requires TLS or authentication")


def test_tls_needs_to_be_whole(tmp_path: Path) -> None:
    bk("standalone", "--dir", tmp_path, "--tls-cert", "/cert").refused("--tls-ca")


def test_the_directory_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    bk("standalone", "--dir", tmp_path / "file").refused("is a file", status=2)
    bk("standalone", "--bookies", 0).refused("0", status=2)


# -- zookeeper --------------------------------------------------------------------------------------------


@pytest.mark.zookeeper
def test_zookeeper_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    with running(tmp_path, "zookeeper", "--dir", str(tmp_path / "zk"), "--port", "0") as server:
        uri = server.until_said(r"a cluster in it: (\S+)")[1]
        assert re.fullmatch(r"zk://127\.0\.0\.1:\d+/ledgers", uri)
        status, _, err = run_bk("bookies", "-m", uri)
        assert (status, "no cluster at" in err) == (1, True)
        assert run_bk("init", "-m", uri)[0] == 0
        assert bk_json("bookies", "-m", uri) == []
        assert server.stop(signal.SIGINT) == 0, server.said


@pytest.mark.zookeeper
def test_a_zookeeper_that_ends_by_itself_is_reported(tmp_path: Path) -> None:
    with running(tmp_path, "zookeeper", "--dir", str(tmp_path / "zk"), "--port", "0") as server:
        server.until_said("serves at")
        os.kill(children(server.pid)[0], signal.SIGKILL)
        assert server.wait() == 1
        assert "bk: ZooKeeper has ended by itself; its output is in" in server.said


@pytest.mark.zookeeper
def test_a_zookeeper_that_cannot_serve_names_its_log(tmp_path: Path) -> None:
    (tmp_path / "zk").mkdir()
    (tmp_path / "zk" / "data").write_text("not a directory")
    bk("zookeeper", "--dir", tmp_path / "zk", "--port", "0").refused("did not begin to serve", "zookeeper.out")


@pytest.mark.rule("F1", "K21")
@pytest.mark.parametrize("seed", range(2))
def test_a_first_start_that_is_killed_at_random_moments_is_repeated_until_it_is_whole(
    tmp_path: Path, seed: int
) -> None:
    """Everything at once, by kill -9 of the parent: when so many bytes are there, of all that a first start writes."""
    chance, home = Random(seed), tmp_path / "bk"
    words = ("standalone", "--dir", str(home), "--webhdfs-port", "0", "--no-autorecovery")
    for _ in range(4):
        until_bytes = int(3e8 * chance.random() ** 3)
        standalone = Process("bk", tmp_path, *words).start()
        family: list[int] = []

        def so_far(standalone: Process = standalone, size: int = until_bytes) -> bool:
            return grown([home]) >= size or "ready after" in standalone.said

        try:
            until(so_far, what=lambda process=standalone: process.said)
            family = children(standalone.pid)
        finally:
            standalone.kill()
        until(lambda family=family: all(map(gone, family)), what=family)  # type: ignore[misc]
    with running(tmp_path, *words) as standalone:
        uri = standalone.until_said(r"export BK_METADATA=(\S+)")[1]
        assert " without " not in standalone.said, standalone.said
        assert [row["state"] for row in bk_json("bookies", "-m", uri)] == ["writable"] * 3
        number = run_bk("ledger", "append", "-m", uri, stdin=b"kept\n")[1].strip()
        assert run_bk("ledger", "read", number, "-m", uri)[1] == "kept\n"
