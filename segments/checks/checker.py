"""Verifies streams: their records, ledgers, entries, cursors, names; and repairs what can be repaired.

A check reads and changes nothing, and fences nobody. A repair of a node takes the stream over first, so that no
writer steps on from what is wrong. What a repair cannot bring back it leaves as it is, and says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bookkeeper.chains.orphans import ORPHAN_AGE_S
from bookkeeper.chains.owned_node import OwnedNode
from bookkeeper.errors import (
    CorruptionError,
    DataMissingError,
    NoSuchEntryError,
    NoSuchKeyError,
    NoSuchLedgerError,
    in_words,
)
from bookkeeper.meta.store import settled_delete
from segments.chain import StreamChain, StreamHead, StreamSegment, decode_chain, encode_chain
from segments.checks.findings import (
    Finding,
    LedgerFacts,
    Problem,
    ScannedSegment,
    StreamAccount,
    find_problems,
    repair_chain,
)
from segments.checks.scan import SegmentScanner
from segments.directory.directory import stream_names
from segments.error_translation import worded
from segments.errors import ChainCorruptError, StreamNotFoundError, UnsupportedStreamFormatError
from segments.names import name_path, stream_path, streams_path
from segments.retention.deletion import LeakedLedgers, finish_deletions, remove_remains, stream_of, unfinished_deletions
from segments.retention.removal import finish_removals
from segments.retention.retention import CursorPosition

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, ReadHandle

CHECKER: Final = "bk stream check"
"""The owner's name in a node while it is repaired."""

CursorsOf = Callable[[str], Awaitable[Mapping[str, CursorPosition]]]
"""What the cursors of a stream, given by its id, need next."""

OF_THE_RECORD: Final = frozenset(
    {
        Problem.OPEN_LEDGER_MISSING,
        Problem.LEDGER_LENGTH,
        Problem.NEXT_LEDGER,
        Problem.REMOVING_IN_USE,
        Problem.COUNT,
        Problem.LAST,
        Problem.SEQUENCE,
        Problem.STATISTICS,
    }
)
"""What is repaired by another node."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How much is checked, and what is done about it."""

    scan: bool = True
    """Read every entry. Without it only metadata are compared."""
    repair: bool = False
    orphans: bool = True
    """Look for ledgers that no stream names, in all of the cluster. Only when all streams are checked."""
    older_than_s: float = ORPHAN_AGE_S
    """A younger ledger is never an orphan."""


class StreamChecker:
    """Checks one stream, or all of a cluster."""

    def __init__(self, client: BookKeeper, cursors_of: CursorsOf, options: CheckOptions | None = None) -> None:
        self._client, self._cursors_of = client, cursors_of
        self._options = options or CheckOptions()

    async def check_all(self) -> tuple[Finding, ...]:
        """Check every stream, and what belongs to none.

        Raises:
            StreamMetadataError, StreamUnavailableError: the check is not complete. What is wrong is no error.
        """
        found: list[Finding] = []
        names = await stream_names(self._client.metadata_store)
        for name, stream_id in names.items():
            found += await self.check(name, stream_id)
        found += await self._deletions()
        found += await self._without_name(set(names.values()))
        if self._options.orphans:
            found += await self._orphans()
        return tuple(found)

    async def check(self, name: str, stream_id: str) -> tuple[Finding, ...]:
        """Check one stream. Raises: as ``check_all``."""
        node = StreamHead(self._client.metadata_store, stream_id, name)
        with worded(f"checking stream {name}", name):
            try:
                account = await self._account(node)
            except StreamNotFoundError:
                return await self._lost_name(node)
            except (ChainCorruptError, UnsupportedStreamFormatError) as error:
                return (Finding(Problem.NODE_UNREADABLE, name, f"the node cannot be read: {error}"),)
            found = find_problems(account)
            if self._options.repair and any(finding.repair for finding in found):
                found = await self._repair(node, found)
        return found

    # -- accounts --------------------------------------------------------------------------------------

    async def _account(self, node: StreamHead) -> StreamAccount:
        chain, _ = await node.read()
        ledgers = await self._ledgers(chain)
        scans: dict[int, ScannedSegment] = {}
        if self._options.scan:
            for segment in chain.segments:
                if segment.ledger_id in ledgers:
                    scan = await self._scan(segment)
                    if scan is not None:
                        scans[segment.number] = scan
        cursors = await self._cursors_of(node.stream_id)
        return StreamAccount(node.name, node.stream_id, chain, ledgers, scans, cursors)

    async def _ledgers(self, chain: StreamChain) -> dict[int, LedgerFacts]:
        found = await asyncio.gather(*map(self._facts, dict.fromkeys(chain.ledgers)))
        return {facts.ledger_id: facts for facts in found if facts is not None}

    async def _facts(self, ledger_id: int) -> LedgerFacts | None:
        try:
            metadata = await self._client.metadata(ledger_id)
        except NoSuchLedgerError:
            return None
        tag = metadata.custom.get("stream")
        stream = None if tag is None else tag.decode(errors="replace")
        return LedgerFacts(ledger_id, metadata.is_closed, metadata.last_entry, stream)

    async def _scan(self, segment: StreamSegment) -> ScannedSegment | None:
        """Read all entries that are confirmed; None if the ledger has gone meanwhile."""
        scanner = SegmentScanner(segment.number, segment.base)
        try:
            ledger = await self._client.open_ledger(segment.ledger_id, None, recovery=False)
        except NoSuchLedgerError:
            return None
        async with ledger:
            last = int(ledger.last_add_confirmed)
            if not segment.is_open and not ledger.closed:
                last = max(last, segment.contents.last_entry)
            await _read_all(ledger, last, scanner)
        return scanner.result()

    # -- repairs ---------------------------------------------------------------------------------------

    async def _repair(self, node: StreamHead, found: Sequence[Finding]) -> tuple[Finding, ...]:
        """Repair what can be; returns the findings, with those that are gone after it marked."""
        for finding in found:
            if finding.problem is Problem.LEDGER_NOT_CLOSED and finding.ledger is not None:
                await self._close(finding.ledger)
        if any(finding.problem in OF_THE_RECORD for finding in found):
            nonce = f"{self._client.services.seams.rng.getrandbits(64):x}"
            owned = await OwnedNode.claim(node, CHECKER, nonce)
            try:
                account = await self._account(node)
                repaired = await node.pages.write_folded(_repaired(account))
                await owned.step(lambda chain: repaired if chain == account.chain else chain)
            finally:
                await owned.step(StreamChain.release)
        await finish_removals(self._client, node)
        left = {_key(finding) for finding in find_problems(await self._account(node))}
        return tuple(replace(finding, repaired=_key(finding) not in left) for finding in found)

    async def _close(self, ledger_id: int) -> None:
        """Recover a ledger, which closes it."""
        try:
            handle = await self._client.open_ledger(ledger_id, None)
        except NoSuchLedgerError:
            return
        await handle.close()

    # -- what belongs to no stream -----------------------------------------------------------------------

    async def _lost_name(self, node: StreamHead) -> tuple[Finding, ...]:
        metadata = self._client.metadata_store
        path = name_path(metadata, node.name)
        try:
            value = await metadata.store.get(path)
        except NoSuchKeyError:
            raise StreamNotFoundError(f"there is no stream {node.name}", stream=node.name) from None
        repaired = False
        if self._options.repair and value.value.decode() == node.stream_id:
            await settled_delete(metadata.store, path, value.version, created_txn=value.created_txn)
            repaired = True
        text = f"the name leads to {node.stream_id}, and there is no such stream"
        return (Finding(Problem.NAME_WITHOUT_STREAM, node.name, text, repaired=repaired),)

    async def _deletions(self) -> list[Finding]:
        left = await unfinished_deletions(self._client)
        if left and self._options.repair:
            await finish_deletions(self._client)
        return [
            Finding(
                Problem.DELETION_LEFT,
                tombstone.name,
                f"its deletion has begun and has not ended (id {tombstone.stream_id})",
                repaired=self._options.repair,
            )
            for tombstone in left
        ]

    async def _without_name(self, named: set[str]) -> list[Finding]:
        metadata = self._client.metadata_store
        with worded("looking for streams without a name"):
            try:
                stream_ids = await metadata.store.children(streams_path(metadata))
            except NoSuchKeyError:
                return []
            buried = {tombstone.stream_id for tombstone in await unfinished_deletions(self._client)}
            again = set((await stream_names(metadata)).values())
            nameless = [stream_id for stream_id in stream_ids if stream_id not in named | buried | again]
            found = [await self._nameless(stream_id) for stream_id in nameless]
        return [finding for finding in found if finding is not None]

    async def _nameless(self, stream_id: str) -> Finding | None:
        """A stream without a name, or what an import has left; None while the import runs."""
        metadata, store = self._client.metadata_store, self._client.metadata_store.store
        if await store.exists(stream_path(metadata, stream_id, "chain")) is not None:
            return Finding(Problem.STREAM_WITHOUT_NAME, stream_id, "no name leads to the stream with this id")
        if await store.exists(metadata.own("segments", "importing", stream_id)) is not None:
            return None
        repaired = self._options.repair and await remove_remains(metadata, stream_id)
        return Finding(Problem.IMPORT_LEFT, stream_id, "an import to this id came to no stream", repaired=repaired)

    async def _orphans(self) -> list[Finding]:
        leaks = LeakedLedgers(self._client)
        act = leaks.delete if self._options.repair else leaks.find
        return [
            Finding(
                Problem.ORPHAN,
                stream_of(orphan),
                f"ledger {orphan.ledger} of {orphan.length} bytes is in no stream",
                ledger=orphan.ledger,
                repaired=self._options.repair,
            )
            for orphan in await act(self._options.older_than_s)
        ]


def _repaired(account: StreamAccount) -> StreamChain:
    """The node after a repair; as it was if the entries contradict each other, so that no record could be read."""
    repaired = repair_chain(account)
    try:
        decode_chain(encode_chain(repaired))
    except ChainCorruptError:
        return account.chain
    return repaired


def _key(finding: Finding) -> tuple[Problem, int | None, int | None]:
    return finding.problem, finding.segment, finding.ledger


async def _read_all(ledger: ReadHandle, last: int, scanner: SegmentScanner) -> None:
    """Give the scanner entries 0 to ``last``. One that no bookie has is noted, and the next is tried."""
    at = 0
    while at <= last:
        try:
            async for first, entries in ledger.read_batches(at, last):
                for entry_id, data in enumerate(entries, first):
                    scanner.add(entry_id, data)
                at = first + len(entries)
        except (NoSuchEntryError, DataMissingError, CorruptionError) as error:
            scanner.missing(at, at, in_words(error))
            at += 1
