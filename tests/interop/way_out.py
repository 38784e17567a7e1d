"""The way out, and in: three Java bookies join a cluster of ours under load, ours are drained and stopped, and a Java
client reads everything. And a cluster of Java's is moved to ours one bookie at a time, and back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from bookkeeper.meta import init_cluster
from bookkeeper.real import run, system_seams
from tests.integration.processes import bk, bk_json, until
from tests.interop.apache_shell import apache_init
from tests.interop.clients import OurClient, Shape, Writer
from tests.interop.clusters import Bookie, JavaBookie, OurBookie, Site
from tests.interop.java_client import JavaClient
from tests.interop.killed import payload
from tests.interop.stories import expect

_ROOT = "/way-out"
_CLOSED = 12
"""Ledgers that are closed before anything happens."""


@dataclass
class _Load:
    """A writer that goes on and on, in a thread."""

    writer: Writer
    acknowledged: int = 0
    failed: list[BaseException] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            while not self.over.is_set():
                expect(self.writer.append(payload(self.acknowledged)), self.acknowledged, "id of an entry")
                self.acknowledged += 1
        except BaseException as error:
            self.failed.append(error)

    def more(self, count: int = 20) -> None:
        """Wait until so many more are acknowledged."""
        wanted = self.acknowledged + count
        until(lambda: self.failed or self.acknowledged >= wanted, 60, f"{wanted} appends acknowledged")
        if self.failed:
            raise AssertionError(f"ledger {self.writer.id} under load") from self.failed[0]

    def end(self) -> None:
        """Stop, and close the ledger."""
        self.over.set()
        self._thread.join(60)
        self.more(0)
        self.writer.close()


def way_out(site: Site) -> None:
    uri = f"zk://{site.zookeeper.address}{_ROOT}"
    home = site.directory / "way-out"
    certificate = site.authority.server("way-out")
    run(init_cluster(uri, system_seams()))
    old: list[OurBookie] = [OurBookie(f"old-{i}", home / f"old-{i}", uri, certificate) for i in (1, 2, 3)]
    new: list[Bookie] = [JavaBookie(f"new-{i}", home / f"new-{i}", uri, certificate) for i in (1, 2, 3)]
    with ExitStack() as stack:
        for bookie in old:
            stack.callback(bookie.kill)
            bookie.launch()
        for bookie in old:
            bookie.await_serving()
        ours, java = OurClient(uri, "v3"), JavaClient(site.java, uri, "v3")
        stack.callback(java.close)
        stack.callback(ours.close)
        written = _closed_ledgers(ours, java)
        loads = [_Load(client.create(Shape())) for client in (ours, java)]
        for load in loads:
            stack.callback(load.over.set)
            load.more()
        for joins in new:
            stack.callback(joins.kill)
            joins.launch()
        for joins in new:
            joins.await_serving()
        for bookie in old:
            _make_read_only(uri, bookie)
            for load in loads:
                load.more()
        _leave(uri, old, loads)
        for load in loads:
            load.end()
            written[load.writer.id] = load.acknowledged
        _everything_is_there(java, written, {bookie.bookie_id for bookie in new})


def there_and_back(site: Site) -> None:
    """A cluster of Java's is taken over by ours one bookie at a time, and given back the same way, under load."""
    uri = f"zk://{site.zookeeper.address}/there-and-back"
    home = site.directory / "there-and-back"
    certificate = site.authority.server("there-and-back")
    apache_init(uri)
    java_bookies = [JavaBookie(f"java-{i}", home / f"java-{i}", uri, certificate) for i in (1, 2, 3)]
    with ExitStack() as stack:
        _join(stack, java_bookies)
        ours, java = OurClient(uri, "v3"), JavaClient(site.java, uri, "v3")
        stack.callback(java.close)
        stack.callback(ours.close)
        written = _closed_ledgers(ours, java)
        loads = [_Load(client.create(Shape())) for client in (ours, java)]
        for load in loads:
            stack.callback(load.over.set)
            load.more()
        moved = [OurBookie(f"ours-{i}", home / f"ours-{i}", uri, certificate) for i in (1, 2, 3)]
        for comes, goes in zip(moved, java_bookies, strict=True):
            _join(stack, [comes])
            goes.kill()
            _until_absent(uri, goes)
            _gone(uri, goes, loads)
        _everything_is_there(java, written, {bookie.bookie_id for bookie in moved})
        back = [JavaBookie(f"back-{i}", home / f"back-{i}", uri, certificate) for i in (1, 2, 3)]
        for returns, leaves in zip(back, moved, strict=True):
            _join(stack, [returns])
            _make_read_only(uri, leaves)
            _gone(uri, leaves, loads)
            leaves.kill()
        for load in loads:
            load.end()
            written[load.writer.id] = load.acknowledged
        _everything_is_there(java, written, {bookie.bookie_id for bookie in back})


def _join(stack: ExitStack, bookies: Sequence[Bookie]) -> None:
    for bookie in bookies:
        stack.callback(bookie.kill)
        bookie.launch()
    for bookie in bookies:
        bookie.await_serving()


def _gone(uri: str, bookie: Bookie, loads: list[_Load]) -> None:
    """Let its writers leave it, and move everything else off it."""
    for load in loads:
        load.more()
    status, out, err = bk("bookies", "drain", bookie.bookie_id, "--metadata", uri, deadline_s=120)
    expect((status, err), (0, ""), out)
    for load in loads:
        load.more()


def _closed_ledgers(ours: OurClient, java: JavaClient) -> dict[int, int]:
    """Ledger -> how many entries."""
    written = {}
    for number in range(_CLOSED):
        writer = (ours if number % 2 else java).create(Shape(write_quorum=2 + number % 3 // 2))
        writer.append_many([payload(i) for i in range(30)])
        writer.close()
        written[writer.id] = 30
    return written


def _state(uri: str, bookie_id: str) -> str:
    return str({row["bookie"]: row["state"] for row in bk_json("bookies", "--metadata", uri)}.get(bookie_id))


def _until_absent(uri: str, bookie: Bookie) -> None:
    """A bookie that was killed stays listed until its session has ended."""
    until(lambda: _state(uri, bookie.bookie_id) == "absent", 60, f"{bookie.bookie_id} absent")


def _make_read_only(uri: str, bookie: OurBookie) -> None:
    """Started again so: its writers go elsewhere by themselves."""
    bookie.process.stop()
    bookie.process.words += ("--read-only",)
    bookie.launch()
    bookie.await_serving()
    until(lambda: _state(uri, bookie.bookie_id) == "read-only", 60, f"{bookie.bookie_id} read-only")


def _leave(uri: str, old: list[OurBookie], loads: list[_Load]) -> None:
    """Drain ours, stop them, and go on."""
    status, out, err = bk("bookies", "drain", *(each.bookie_id for each in old), "--metadata", uri, deadline_s=120)
    expect((status, err), (0, ""), out)
    for load in loads:
        load.more()
    for bookie in old:
        bookie.kill()
    for load in loads:
        load.more()


def _everything_is_there(java: JavaClient, written: dict[int, int], allowed: set[str]) -> None:
    for ledger_id, count in written.items():
        metadata = java.metadata(ledger_id)
        assert metadata is not None
        named = {bookie for ensemble in metadata.fragments.values() for bookie in ensemble}
        assert named <= allowed, f"ledger {ledger_id} still names {named - allowed}"
        reader = java.open(ledger_id)
        expect(reader.confirmed, count - 1, f"last entry of ledger {ledger_id}")
        expect(reader.read(0, count - 1), [payload(i) for i in range(count)], f"entries of ledger {ledger_id}")
        reader.close()
