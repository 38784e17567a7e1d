"""A bookie that knows its clients by name, and a policy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from bookkeeper.access import Grant, Mode, Policy, PolicyChange, Resource, Subject
from bookkeeper.access.ownership import OWNER_KEY
from bookkeeper.access.rights import parse_rights
from bookkeeper.auth.config import AuthConfig
from bookkeeper.bookie.ownership.ledger_permissions import LedgerPermissions
from bookkeeper.ids import Address, BookieId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.net.client_handshake import ClientSecurity
from bookkeeper.net.connection import BookieConnection
from bookkeeper.wire import Dialect, Reply, Request
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import named

PROVIDERS: Final = "tests.bookkeeper.auth.providers"


def grant(text: str) -> Grant:
    """``WHO RIGHT,RIGHT RESOURCE``."""
    who, rights, on = text.split()
    return Grant(Subject.parse(who), parse_rights(rights), Resource.parse(on))


def policy(*grants: str, mode: Mode = Mode.ENFORCE) -> Policy:
    return Policy(mode, tuple(map(grant, grants)))


async def put_policy(metadata: Metadata, wanted: Policy) -> None:
    await metadata.access.change(lambda old: replace(wanted, changes=old.changes), PolicyChange(0, "a test", "changed"))


def control_of(cluster: Cluster) -> LedgerPermissions:
    assert cluster.server is not None
    return cluster.server.parts.access


async def apply(cluster: Cluster, metadata: Metadata, wanted: Policy) -> None:
    """Change the policy; returns when the bookie has it."""
    await put_policy(metadata, wanted)
    assert cluster.server is not None
    await cluster.server.parts.policy.read()


async def create(
    metadata: Metadata,
    owner: str | None = None,
    *,
    ctime_ms: int | None = None,
    ensemble: Sequence[str] = (BOOKIE,),
    **more: Any,
) -> LedgerId:
    """A ledger whose custom metadata name this owner."""
    made = replace(named(*map(BookieId, ensemble), **more), ctime_ms=ctime_ms)
    if owner is not None:
        made = replace(made, custom={OWNER_KEY: owner.encode()})
    return (await metadata.ledgers.create(made))[0]


class Clients:
    """Connections of clients by name."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._node = cluster.world.node("client")
        self._open: dict[tuple[str, Dialect], BookieConnection] = {}

    async def connection(self, name: str, dialect: Dialect = Dialect.V3) -> BookieConnection:
        if (name, dialect) not in self._open:
            auth = AuthConfig(provider=f"{PROVIDERS}:named_client", options={"name": name})
            security = ClientSecurity(self._node.seams.net, self._node.seams.rng, None, auth)
            self._open[name, dialect] = await self._node.run(
                security.connect(Address("b", 3181), BOOKIE, dialect, timeout_s=5)
            )
        return self._open[name, dialect]

    async def ask(self, name: str, request: Request, dialect: Dialect = Dialect.V3) -> Reply:
        connection = await self.connection(name, dialect)
        return await self._node.run(connection.request(request, 20))

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()


@asynccontextmanager
async def clients_of(cluster: Cluster) -> AsyncIterator[Clients]:
    clients = Clients(cluster)
    try:
        yield clients
    finally:
        clients.close()


def run_named(main: Callable[[Cluster], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Run ``main`` with a cluster whose bookie asks for names."""
    run(main, auth={"provider": f"{PROVIDERS}:named_server"}, **options)
