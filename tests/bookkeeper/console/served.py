"""Two bookies and a console inside the test's process."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bookkeeper import BookKeeper
from bookkeeper.audit import AuditConfig, open_audit_log
from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.client.config import ClientConfig
from bookkeeper.console.config import ConsoleConfig
from bookkeeper.console.panel_book import UnusablePanel
from bookkeeper.console.panels import Panel
from bookkeeper.console.service import ConsoleServer
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.metrics import Metrics
from bookkeeper.real import run, system_seams
from bookkeeper.replication.repairs.bookie_client import BorrowedCluster
from examples.certificates import Certificate
from tests.bookkeeper.http_api.served import STORAGE

AUDIT = "audit.log"
PATIENCE_S = 30.0


class Answer(NamedTuple):
    """A reply over HTTP."""

    status: int
    body: str
    headers: dict[str, str]


@dataclass
class Served:
    """What is served, and who asks."""

    console: ConsoleServer
    bk: BookKeeper
    bookies: dict[str, BookieServer]
    token: str
    viewer: str
    """A token that is good for reading only."""

    async def ask(
        self, path: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: str | None = None
    ) -> Answer:
        """Send one request from another thread."""
        return await asyncio.to_thread(_ask, self.console.address.port, method, path, headers or {}, body)

    async def shows(self, path: str, *texts: str, **options: Any) -> str:
        """Ask for a page until it has all of these texts. Returns it."""
        found = Answer(0, "", {})
        try:
            async with asyncio.timeout(PATIENCE_S * stretch()):
                while True:
                    found = await self.ask(path, **options)
                    assert found.status < 500, found
                    if all(text in found.body for text in texts):
                        return found.body
                    await asyncio.sleep(0.02)
        except TimeoutError:
            missing = [text for text in texts if text not in found.body]
            raise AssertionError(f"{path} does not show {missing}: {found}") from None

    async def act(self, action: str, token: str | None, **body: Any) -> Answer:
        """Ask for an action."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await self.ask(f"/actions/{action}", method="POST", headers=headers, body=json.dumps(body))


def _ask(port: int, method: str, path: str, headers: dict[str, str], body: str | None) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S * stretch())
    try:
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        return Answer(reply.status, reply.read().decode(), dict(reply.getheaders()))
    finally:
        connection.close()


@asynccontextmanager
async def served(
    directory: Path,
    *,
    tokens: bool = False,
    actions: tuple[str, ...] = (),
    panels: Sequence[Panel] = (),
    unusable: Sequence[UnusablePanel] = (),
    bookies: Sequence[str] = ("b1", "b2"),
    refresh_s: float = 0.1,
    certificate: Certificate | None = None,
) -> AsyncIterator[Served]:
    """Everything, gone at the end."""
    seams, store = system_seams(), MemoryCluster()
    async with AsyncExitStack() as held:
        first = store.connect()
        await init_cluster_in(first, seams)
        token, viewer = new_token(), new_token()
        token_file = directory / "tokens"
        token_file.touch(mode=0o600)
        token_file.write_text(token_line("operator", token) + token_line("viewer", viewer, read_only=True))
        servers = {}
        for name in bookies:
            config = config_from(
                {
                    "metadata_uri": "memory://test",
                    "directory": str(directory / name),
                    "bookie_id": name,
                    "storage": STORAGE,
                    "http_listen": "",
                }
            )
            servers[name] = BookieServer(config, seams, await Metadata.over(store.connect(), seams))
            await servers[name].start()
            held.push_async_callback(servers[name].stop)
        metadata = await Metadata.over(store.connect(), seams)
        bk = await BookKeeper.over(BorrowedCluster(metadata, seams.net), config=ClientConfig(), seams=seams)
        held.push_async_callback(bk.close)
        log = open_audit_log(AuditConfig(to=str(directory / AUDIT)), seams.clock, seams.disk, seams.workers, Metrics())
        held.callback(log.close)
        console = ConsoleServer(
            ConsoleConfig(
                listen="127.0.0.1:0",
                token_file=str(token_file) if tokens or actions else None,
                actions=actions,
                tls_cert=None if certificate is None else str(certificate.cert),
                tls_key=None if certificate is None else str(certificate.key),
                refresh_s=refresh_s,
                ledgers_refresh_s=refresh_s,
            ),
            bk,
            name="test",
            metadata_uri="memory://test",
            panels=panels,
            unusable=unusable,
            metrics=Metrics(),
            audit=log,
        )
        held.push_async_callback(console.close)
        await console.start()
        yield Served(console, bk, servers, token.reveal(), viewer.reveal())


def story(directory: Path, work: Any, **options: Any) -> None:
    """Run ``work(served)``."""

    async def main() -> None:
        async with served(directory, **options) as found:
            await work(found)

    run(main())


def audit_lines(directory: Path) -> list[dict[str, Any]]:
    """What the audit log has, once everything is over."""
    return [json.loads(line) for line in (directory / AUDIT).read_text().splitlines()]


async def ledger(bk: BookKeeper, entries: int = 5, custom: dict[str, bytes] | None = None) -> int:
    """A closed ledger on both bookies."""
    made = await bk.create_ledger(ensemble=2, write_quorum=2, ack_quorum=2, custom_metadata=custom or {})
    async with made as writer:
        await writer.append_many([b"payload"] * entries)
    return int(made.id)
