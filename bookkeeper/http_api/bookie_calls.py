"""What is asked of the cluster's bookies."""

from __future__ import annotations

import asyncio
from typing import Final

from bookkeeper.bookie.health.health import PageReply
from bookkeeper.client.operators import BookieInfo, Operator
from bookkeeper.errors import BookKeeperError
from bookkeeper.http_api.request import ApiRequest, Call
from bookkeeper.http_api.shapes import space_documents
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes

ASKED_AT_ONCE: Final = 32
"""Bookies that are asked for their space at a time."""


class BookieCalls:
    """Answers by a client of the cluster."""

    def __init__(self, operator: Operator, autorecovery: AutorecoveryNodes) -> None:
        self._operator = operator
        self._autorecovery = autorecovery
        self._metadata = operator.client.metadata_store

    @property
    def calls(self) -> dict[tuple[str, str], Call]:
        """By method and path."""
        return {
            ("GET", "/api/v1/bookie/list_bookies"): self.list_bookies,
            ("GET", "/api/v1/bookie/list_bookie_info"): self.list_bookie_info,
            ("GET", "/api/v1/bookie/cluster_info"): self.cluster_info,
        }

    async def list_bookies(self, request: ApiRequest) -> PageReply:
        """Ids of writable or read-only bookies, each with its host or with nothing."""
        read_only = request.params.get("type") == "ro"
        names = await (self._operator.read_only_bookies() if read_only else self._operator.writable_bookies())
        if not request.is_true("print_hostnames"):
            return PageReply(200, {str(name): None for name in names})
        return PageReply(200, {str(name): (await self._metadata.bookies.address(name)).host for name in names})

    async def list_bookie_info(self, request: ApiRequest) -> PageReply:
        """The space of each bookie that answers, writable or read-only."""
        names = sorted([*await self._operator.writable_bookies(), *await self._operator.read_only_bookies()])
        gate = asyncio.Semaphore(ASKED_AT_ONCE)

        async def info_of(name: BookieId) -> BookieInfo | None:
            async with gate:
                try:
                    return await self._operator.bookie_info(name)
                except BookKeeperError:
                    return None  # as with Apache's: who does not answer is not in the list

        found = zip(names, await asyncio.gather(*map(info_of, names)), strict=True)
        spaces = {str(name): (info.free or 0, info.total or 0) for name, info in found if info is not None}
        if not spaces:
            return PageReply(404, "Not found any Bookie info.")
        return PageReply(200, space_documents(spaces))

    async def cluster_info(self, request: ApiRequest) -> PageReply:
        """The cluster in eight numbers."""
        marked = False
        async for _ in self._metadata.under_replication.ledgers():
            marked = True
            break
        auditor = await self._autorecovery.auditor()
        known = len(await self._operator.all_bookies())
        writable = len(await self._operator.writable_bookies())
        read_only = len(await self._operator.read_only_bookies())
        return PageReply(
            200,
            {
                "auditorElected": auditor is not None,
                "auditorId": auditor or "",
                "clusterUnderReplicated": marked,
                "ledgerReplicationEnabled": await self._autorecovery.is_enabled(),
                "totalBookiesCount": known,
                "writableBookiesCount": writable,
                "readonlyBookiesCount": read_only,
                "unavailableBookiesCount": max(0, known - writable - read_only),
            },
        )
