"""A Java bookie on a directory of ours, and ours on one of Java's: each refuses, and nothing is touched."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper.errors import BookieUnavailableError
from bookkeeper.launchers.zookeeper import ZooKeeperServer, free_port
from examples.apache_servers import ApacheBookie, whats_missing
from tests.integration.processes import Process, bk
from tests.interop.apache_shell import apache_init, shell

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

if (_missing := whats_missing()) is not None:
    pytest.skip(f"Java's bookie is not run: {_missing}", allow_module_level=True)


@pytest.fixture
def uri(tmp_path: Path) -> Iterator[str]:
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        uri = f"zk://{server.address}/ledgers"
        apache_init(uri)
        yield uri


def contents(directory: Path) -> dict[str, str]:
    """Every file below, and a digest of what is in it."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def ours(home: Path, uri: str, data: Path, port: int) -> Process:
    where = ("--metadata", uri, "--dir", str(data), "--bookie-id", f"127.0.0.1:{port}", "--port", str(port))
    home.mkdir(exist_ok=True)
    return Process("ours", home, "bookie", *where)


def test_javas_bookie_refuses_our_directories_and_touches_nothing(uri: str, tmp_path: Path) -> None:
    port, data = free_port(), tmp_path / "data"
    process = ours(tmp_path / "ours", uri, data, port).start()
    try:
        process.until_said(r"serves at \S+")
        shape = ("--ensemble", "1", "--write-quorum", "1", "--ack-quorum", "1")
        status, ledger, complaint = bk("ledger", "append", "--metadata", uri, *shape, stdin=b"one\ntwo\n")
        assert status == 0, complaint
        process.stop()
        before = contents(data)
        directories = dict.fromkeys(("ledgerDirectories", "indexDirectories"), data / "ledgers")
        for other in (port, free_port()):  # under our id, and under another one
            settings = {"journalDirectories": data / "journal", **directories}
            java = ApacheBookie(tmp_path / f"java-{other}", uri, port=other, settings=settings)
            with pytest.raises(BookieUnavailableError):
                java.start()
            assert "upgrade needed" in java.log.read_text(), "what docs/compatibility.md says that it says"
            assert contents(data) == before
        process.start().until_said(r"serves at \S+")
        status, read, complaint = bk("ledger", "read", "--metadata", uri, ledger.split()[-1])
        assert (status, read) == (0, "one\ntwo\n"), complaint
    finally:
        process.kill()


def test_our_bookie_refuses_javas_directories_and_its_id_elsewhere(uri: str, tmp_path: Path) -> None:
    home = tmp_path / "java"
    java = ApacheBookie(home, uri).start()
    try:
        port = int(java.bookie_id.rpartition(":")[2])
        java.stop()
        before = contents(home)
        for other in (port, free_port()):
            process = ours(tmp_path / f"ours-{other}", uri, home, other).start()
            assert process.wait() != 0
            assert f"belongs to a bookie of Apache BookKeeper in Java, {java.bookie_id} " in process.said
            assert "bk bookies drain" in process.said
        process = ours(tmp_path / "elsewhere", uri, tmp_path / "data", port).start()
        assert process.wait() != 0
        assert f"the cookie of {java.bookie_id} in the metadata is another: its journal directory is" in process.said
        process.kill()
        after = contents(home)
        assert {name: after[name] for name in before} == before and set(after) == set(before)
        java.start()
    finally:
        java.kill()


@pytest.mark.rule("W10a")
def test_javas_client_writes_to_our_bookie_also_after_an_operator_took_its_disk_and_cookie(
    uri: str, tmp_path: Path
) -> None:
    port, data = free_port(), tmp_path / "data"
    process = ours(tmp_path / "ours", uri, data, port).start()
    write = ("simpletest", "-ensemble", "1", "-writeQuorum", "1", "-ackQuorum", "1", "-numEntries", "20")
    try:
        process.until_said(r"serves at \S+")
        shell(*write, uri=uri)
        shape = ("--ensemble", "1", "--write-quorum", "1", "--ack-quorum", "1")
        assert bk("ledger", "append", "--metadata", uri, *shape, stdin=b"one\n")[0] == 0
        process.stop()
        shutil.rmtree(data)
        shell("cookie_delete", f"127.0.0.1:{port}", uri=uri)
        process.start().until_said(r"serves at \S+")
        assert re.search(r"starts on an empty disk, but \d+ ledgers? names? it", process.said)
        shell(*write, uri=uri)
    finally:
        process.kill()
