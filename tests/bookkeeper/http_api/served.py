"""Two bookies and an auditor inside the test's process, the first bookie with the HTTP API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bookkeeper import BookKeeper
from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.service import AutorecoveryService
from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.client.config import ClientConfig
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.http_api.inside import InsideHttpApi
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.real import run, system_seams
from bookkeeper.replication.repairs.bookie_client import BorrowedCluster
from bookkeeper.seams import Seams
from examples.certificates import Certificate
from tests.interop.http_routes.capture import ask, furnish
from tests.interop.http_routes.exchanges import Exchange, Reply

AUDIT = "audit.log"
STORAGE = {
    "journal_file_bytes": 256 * 1024,
    "journal_spares": 1,
    "entry_log_bytes": 256 * 1024,
    "checkpoint_bytes": 64 * 1024,
    "reserve_bytes": 0,
}


@dataclass
class Served:
    """What is served, and who asks."""

    api: InsideHttpApi
    server: BookieServer
    other: BookieServer
    bk: BookKeeper
    seams: Seams
    store: MemoryCluster
    token: str
    viewer: str
    """A token that is good for reading only."""
    limited: str
    """A token that is good below one path only."""
    token_file: Path
    names: dict[str, str] = field(default_factory=dict)

    async def ask(self, method: str, target: str, body: str | None = None, token: str | None = "ours") -> Reply:
        """Send one request from another thread."""
        shown = self.token if token == "ours" else token
        port = self.api.address.port
        return await asyncio.to_thread(ask, port, Exchange(method, target, body), self.names, shown)

    async def furnish(self) -> None:
        """Make the ledgers that requests name."""
        bookies = {"bookie": str(self.server.bookie_id), "other": str(self.other.bookie_id)}
        self.names = await furnish(self.bk, bookies)


@asynccontextmanager
async def served(
    directory: Path,
    *,
    actions: tuple[str, ...] = ("all",),
    auditor: bool = True,
    certificate: Certificate | None = None,
    **options: Any,
) -> AsyncIterator[Served]:
    """Everything, gone at the end. ``options`` of the first bookie."""
    seams, store = system_seams(), MemoryCluster()
    async with AsyncExitStack() as held:
        first = store.connect()
        await init_cluster_in(first, seams)
        token, viewer, limited = (new_token() for _ in range(3))
        token_file = directory / "tokens"
        lines = [
            token_line("operator", token),
            token_line("viewer", viewer, read_only=True),
            token_line("app", limited, ["/app"]),
        ]
        token_file.touch(mode=0o600)
        token_file.write_text("".join(lines))
        api: dict[str, Any] = {"listen": "127.0.0.1:0", "token_file": str(token_file), "actions": actions}
        if certificate is not None:
            api |= {"tls_cert": str(certificate.cert), "tls_key": str(certificate.key)}

        async def bookie(name: str, **more: Any) -> BookieServer:
            metadata = await Metadata.over(store.connect(), seams)
            config = config_from(
                {
                    "metadata_uri": "memory://test",
                    "directory": str(directory / name),
                    "storage": STORAGE,
                    "http_listen": "",
                    **more,
                }
            )
            server = BookieServer(config, seams, metadata)
            await server.start()
            held.push_async_callback(server.stop)
            return server

        server = await bookie("b1", http_api=api, audit={"to": str(directory / AUDIT)}, **options)
        other = await bookie("b2")
        metadata = await Metadata.over(store.connect(), seams)
        config = ClientConfig(delete_grace_s=0)
        bk = await BookKeeper.over(BorrowedCluster(metadata, seams.net), config=config, seams=seams)
        held.push_async_callback(bk.close)
        if auditor:
            service = AutorecoveryService(bk, str(server.bookie_id), AutorecoveryConfig())
            await service.start()
            held.push_async_callback(service.stop)
        inside = await InsideHttpApi.of_bookie(server, server._metadata, server.config, seams)
        held.push_async_callback(inside.stop)
        yield Served(
            inside,
            server,
            other,
            bk,
            seams,
            store,
            token.reveal(),
            viewer.reveal(),
            limited.reveal(),
            token_file,
        )


def story(directory: Path, work: Any, **options: Any) -> None:
    """Run ``work(served)``."""

    async def main() -> None:
        async with served(directory, **options) as found:
            await work(found)

    run(main())


def audit_lines(directory: Path) -> list[dict[str, Any]]:
    """What the audit log of the first bookie has, once everything is over."""
    return [json.loads(line) for line in (directory / AUDIT).read_text().splitlines()]
