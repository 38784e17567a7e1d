"""What tenants and owners of ledgers have: counted from the metadata, and asked of bookies for ledgers that are open.

A ledger counts with the bytes of all its copies (its length by its write quorum) for whoever owns it:

    closed                       the length in its metadata
    open, or being recovered     the length with the last entry that a bookie shows; if none answers, the one before
    deleted, can be undeleted    as when it was deleted, until its grace is over: bookies keep its data
    metadata that cannot be read not at all, and that is said

Whoever deletes has less with the first count after the grace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from bookkeeper.access import Policy, Resource, Usage
from bookkeeper.access.ownership import NO_OWNER, owner_in
from bookkeeper.access.usage_count import UsageCount
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerMetadata

ASKED_AT_ONCE: Final = 50
"""Open ledgers whose lengths are asked for at a time."""


@dataclass(frozen=True, slots=True)
class DeletedUsage:
    """Deleted ledgers of one owner that still count."""

    owner: Resource
    tenant: str | None
    ledgers: int
    bytes_kept: int
    until_ms: int
    """When the last of them counts no more, in milliseconds since 1970, by the metadata store's clock."""


@dataclass(slots=True)
class UsageReport:
    """A count, and what people want to know besides."""

    usage: Usage
    deleted: list[DeletedUsage] = field(default_factory=list)
    unreadable: int = 0
    """Ledgers that were not counted, because their metadata cannot be read."""
    open_unknown: int = 0
    """Open ledgers of which no bookie said how long they are now."""


class UsageCounter:
    """Counts again and again. It remembers the lengths of open ledgers, for bookies that do not answer."""

    def __init__(self, client: BookKeeper) -> None:
        self._operator = Operator(client)
        self._metadata = client.metadata_store
        self._owners = self._metadata.ledger_owners
        self._lengths: dict[LedgerId, int] = {}

    async def count(self, policy: Policy, counted_ms: int) -> UsageReport:
        """Count everything now. Raises: MetadataError."""
        count = UsageCount(policy)
        handed_over = await self._owners.handed_over()
        found = UsageReport(Usage())
        lengths: dict[LedgerId, int] = {}
        waiting: list[tuple[LedgerId, LedgerMetadata, Resource]] = []
        async for ledger_id, metadata in self._operator.all_metadata():
            if isinstance(metadata, BookKeeperError):
                found.unreadable += 1
                continue
            owner = await self._owner(ledger_id, metadata, handed_over)
            if metadata.is_closed:
                count.add(owner, _stored_bytes(metadata, metadata.length))
                continue
            waiting.append((ledger_id, metadata, owner))
            if len(waiting) == ASKED_AT_ONCE:
                await self._add_open(waiting, count, lengths, found)
                waiting = []
        await self._add_open(waiting, count, lengths, found)
        self._lengths = lengths
        await self._add_deleted(count, handed_over, found)
        found.usage = count.usage(counted_ms)
        return found

    async def _owner(
        self, ledger_id: LedgerId, metadata: LedgerMetadata, handed_over: Mapping[LedgerId, Resource]
    ) -> Resource:
        owner = handed_over.get(ledger_id) or owner_in(metadata.custom)
        return owner or await self._owners.claimed_by(ledger_id) or NO_OWNER

    async def _add_open(
        self,
        ledgers: list[tuple[LedgerId, LedgerMetadata, Resource]],
        count: UsageCount,
        lengths: dict[LedgerId, int],
        found: UsageReport,
    ) -> None:
        asked = await asyncio.gather(*(self._length(ledger_id, metadata) for ledger_id, metadata, _ in ledgers))
        for (ledger_id, metadata, owner), length in zip(ledgers, asked, strict=True):
            if length is None:
                found.open_unknown += 1
                length = metadata.length
            lengths[ledger_id] = max(length, self._lengths.get(ledger_id, 0))
            count.add(owner, _stored_bytes(metadata, lengths[ledger_id]))

    async def _length(self, ledger_id: LedgerId, metadata: LedgerMetadata) -> int | None:
        """How long an open ledger is, by its last confirmed entry; None: no bookie says."""
        try:
            async with await self._operator.open_ledger(ledger_id) as reader:
                last = await reader.read_last_add_confirmed()
            if last < 0:
                return 0
            for bookie in metadata.last_fragment.ensemble:
                try:
                    return (await self._operator.copy_on(bookie, ledger_id, last)).length
                except BookKeeperError:
                    continue
        except BookKeeperError:
            pass
        return None

    async def deleted(self, policy: Policy) -> list[DeletedUsage]:
        """Which deleted ledgers still count, by owner, and until when. Raises: MetadataError."""
        found = UsageReport(Usage())
        await self._add_deleted(UsageCount(policy), await self._owners.handed_over(), found)
        return found.deleted

    async def _add_deleted(
        self, count: UsageCount, handed_over: Mapping[LedgerId, Resource], found: UsageReport
    ) -> None:
        kept: dict[Resource, DeletedUsage] = {}
        async for deleted in self._operator.deleted_ledgers():
            try:
                metadata = deleted.metadata
            except BookKeeperError:
                found.unreadable += 1
                continue
            owner = await self._owner(deleted.ledger_id, metadata, handed_over)
            size = _stored_bytes(metadata, metadata.length)
            count.add(owner, size)
            before = kept.get(owner) or DeletedUsage(owner, count.tenant_of(owner), 0, 0, 0)
            until_ms = max(before.until_ms, deleted.until_ms)
            kept[owner] = replace(
                before, ledgers=before.ledgers + 1, bytes_kept=before.bytes_kept + size, until_ms=until_ms
            )
        found.deleted = sorted(kept.values(), key=lambda each: str(each.owner))


def _stored_bytes(metadata: LedgerMetadata, length: int) -> int:
    return length * metadata.spec.write_quorum
