"""Our tools on a cluster of Java bookies: one function a row; one that returns is green."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from bookkeeper import BookKeeper
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.real import run
from journal_manager import EditLog, JournalFencedError, TxId, format_journal, open_reader, read_ops
from tests.integration.processes import Process, bk, bk_json, free_port, until
from tests.interop.clusters import Site
from tests.interop.killed import payload
from tests.interop.stories import expect


def commands(site: Site) -> None:
    """bk bookies, bk ledger append, read, show, list, delete."""
    cluster = site.clusters["java"]
    where = ("--metadata", cluster.uri)
    writable = {bookie.bookie_id: "writable" for bookie in cluster.bookies}

    def states() -> dict[str, str]:
        return {row["bookie"]: row["state"] for row in bk_json("bookies", *where)}

    until(lambda: states() == writable, what=lambda: f"bk bookies says {states()}")  # one may have lost its session
    status, out, err = bk("ledger", "append", *where, stdin=b"one\ntwo\n")
    expect(status, 0, err)
    ledger_id = int(out.split()[0])
    status, out, err = bk("ledger", "read", str(ledger_id), *where)
    expect((status, out), (0, "one\ntwo\n"), err)
    seen = site.client("java", "java", "v3").metadata(ledger_id)
    assert seen is not None
    expect((seen.state, seen.last_entry), ("CLOSED", 1), "as Java sees it")
    expect(bk("ledger", "delete", str(ledger_id), "--yes", *where)[0], 0, "bk ledger delete")
    expect(site.client("java", "java", "v3").metadata(ledger_id), None, "as Java sees it")


def journals(site: Site) -> None:
    """An edit log in segments; a second owner fences the first; everything is read back."""
    uri = site.clusters["java"].uri

    async def story() -> None:
        async with BookKeeper.connect(uri) as client:
            await format_journal("bk:interop", client=client)
            first = await EditLog.open("bk:interop", client=client)
            await first.log_group([(1, payload(i)) for i in range(50)])
            await first.roll()
            await first.log(payload(50), 1)
            second = await EditLog.open("bk:interop", client=client)
            await second.log(payload(51), 1)
            try:
                await first.log(b"too late", 1)
            except JournalFencedError:
                pass
            else:
                raise AssertionError("the fenced owner has had an edit made durable")
            await second.close()
            reader = await open_reader("bk:interop", client=client)
            found = [op.body async for op in read_ops(reader, TxId(1))]
            expect(found, [payload(i) for i in range(52)], "edits")
            await first.abort()

    run(story())


class _Gateway:
    """``bk gateway webhdfs`` as a process, asked over HTTP."""

    def __init__(self, site: Site, name: str, port: int) -> None:
        self._port = port
        words = ("--metadata", site.clusters["java"].uri, "--listen", f"127.0.0.1:{port}")
        self.process = Process(name, site.directory, "gateway", "webhdfs", *words).start()
        until(lambda: self.answers("/"), 60, lambda: self.process.said)

    def answers(self, path: str) -> bool:
        try:
            return self.ask("GET", path, "LISTSTATUS")[0] == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, op: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body, redirections followed as WebHDFS clients do."""
        target = f"/webhdfs/v1{path}?op={op}"
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20 * stretch())
            try:
                connection.request(method, target, body)
                reply = connection.getresponse()
                answer = reply.status, reply.read()
                if reply.status != 307:
                    return answer
                there = urlsplit(reply.headers["Location"])
                target = f"{there.path}?{there.query}"
            finally:
                connection.close()
        return answer

    def put(self, path: str, body: bytes) -> None:
        status, said = self.ask("PUT", path, "CREATE&overwrite=true", body)
        assert status == 201, said


@contextmanager
def _gateway(site: Site, name: str, port: int) -> Iterator[_Gateway]:
    gateway = _Gateway(site, name, port)
    try:
        yield gateway
    finally:
        gateway.process.kill()


def gateway(site: Site) -> None:
    """Files written through the gateway, small ones and one with a ledger of its own, outlive it."""
    port = free_port()
    large = bytes(range(256)) * 4096 * 2
    with _gateway(site, "gateway-1", port) as first:
        first.put("/small.tmp", b"offsets")
        status, said = first.ask("PUT", "/small.tmp", "RENAME&destination=/small")
        expect((status, json.loads(said)), (200, {"boolean": True}), "RENAME")
        first.put("/large", large)
    with _gateway(site, "gateway-2", port) as second:
        expect(second.ask("GET", "/small", "OPEN"), (200, b"offsets"), "a small file")
        expect(second.ask("GET", "/large", "OPEN"), (200, large), "a large file")
