"""Deletes streams in steps that anybody can finish, and finds ledgers that no stream names.

    1  the name goes and a tombstone comes, in one write: nobody can open the stream any more
    2  the node is claimed: a running writer is overtaken at the next step
    3  its ledgers are deleted; one that is still open is fenced first
    4  its values in the metadata store go, the node last
    5  the tombstone goes

After a crash the tombstone is still there, and ``finish_deletions`` goes on. Steps 2 to 5 can be done twice.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bookkeeper.chains.orphans import ORPHAN_AGE_S, OrphanLedger, delete_orphans, find_orphans
from bookkeeper.chains.owned_node import OwnedNode
from bookkeeper.errors import KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta import Metadata
from bookkeeper.meta.store import OUTCOME_UNKNOWN, Check, Create, Delete, MetadataStore, settled_delete
from segments.chain import COMPONENT_TAGS, StreamHead
from segments.directory.settings import named_stream
from segments.error_translation import worded
from segments.errors import (
    ChainCorruptError,
    StreamHeldError,
    StreamNotFoundError,
    StreamUnavailableError,
    UnsupportedStreamFormatError,
)
from segments.names import name_path, stream_path
from segments.retention.agreed_time import AgreedTime
from segments.retention.checked_json import checked_fields, pack_json, unpack_json
from segments.retention.hold_node import HoldNode
from segments.retention.removal import delete_ledgers
from segments.retention.stagings import Stagings

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

_log = logging.getLogger(__name__)

FORMAT: Final = 1
DELETER: Final = "a deletion"
"""The owner's name in the node of a stream that is being deleted."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A stream whose deletion has begun."""

    stream_id: str
    name: str
    since_ms: int
    """When it began, in milliseconds since 1970."""


def tombstones_path(metadata: Metadata) -> str:
    """The parent of all tombstones."""
    return metadata.own("segments", "deleting")


async def delete_stream(client: BookKeeper, name: str, *, force: bool = False, only: str | None = None) -> None:
    """Delete a stream with everything that belongs to it. A running writer is fenced.

    Args:
        force: also if an active hold is on it.
        only: the stream with this id; another one that has the name is none.

    Raises:
        StreamNotFoundError. StreamHeldError: names a hold; nothing was changed.
        StreamUnavailableError, StreamMetadataError: it is not known whether the name is gone, or a ledger could not be
        deleted; if there is a tombstone, ``finish_deletions`` goes on.
    """
    metadata = client.metadata_store
    with worded(f"deleting stream {name}", name):
        tombstone = await _bury(client, metadata, name, force=force, only=only)
        await _finish(client, tombstone)


async def _bury(client: BookKeeper, metadata: Metadata, name: str, *, force: bool, only: str | None) -> Tombstone:
    """Step 1. A lost reply is settled by looking whether the name still leads to this stream: somebody may have
    finished its deletion meanwhile, and made another one of this name, which nobody asked to delete."""
    store, now_ms = metadata.store, client.services.seams.clock.wall_ms()
    unsure: Tombstone | None = None
    while True:
        await _make_parent(store, tombstones_path(metadata))
        path = name_path(metadata, name)
        found = await named_stream(metadata, name)
        if unsure is not None and (found is None or found.id != unsure.stream_id):
            if await _is_buried(metadata, unsure):
                return unsure
            raise StreamNotFoundError(f"stream {name} has another name by now: nothing was deleted", stream=name)
        if found is None or found.id != (only or found.id):
            which = name if only is None else f"{name} with id {only}"
            raise StreamNotFoundError(f"there is no stream {which}", stream=name)
        tombstone = Tombstone(found.id, name, now_ms)
        conditions: list[Check] = [*found.unchanged]
        if not force:
            conditions.append(await _check_not_held(client, metadata, tombstone))
        grave = _grave(metadata, tombstone.stream_id)
        value = pack_json(FORMAT, {"name": name, "since_ms": now_ms})
        try:
            await store.multi([*conditions, Delete(path, found.name.version), Create(grave, value)])
        except OUTCOME_UNKNOWN:
            unsure = tombstone
            continue
        except (MetadataConflictError, NoSuchKeyError, KeyExistsError):
            continue
        return tombstone


async def _is_buried(metadata: Metadata, tombstone: Tombstone) -> bool:
    """Whether a stream that has lost its name is being deleted, or is gone: its tombstone goes after its node."""
    if await metadata.store.exists(_grave(metadata, tombstone.stream_id)) is not None:
        return True
    return await metadata.store.exists(stream_path(metadata, tombstone.stream_id, "chain")) is None


async def _check_not_held(client: BookKeeper, metadata: Metadata, tombstone: Tombstone) -> Check:
    """The condition that no hold comes meanwhile. Raises StreamHeldError."""
    node = StreamHead(metadata, tombstone.stream_id, tombstone.name)
    holds, unchanged = await HoldNode(metadata, node).read()
    now_ms = await AgreedTime(client, node).now_ms() if len(holds) else 0
    if active := holds.active(now_ms):
        raise StreamHeldError(
            f"{active[0].says()} is on stream {tombstone.name}: release it first", stream=tombstone.name
        )
    return unchanged


def _grave(metadata: Metadata, stream_id: str) -> str:
    return metadata.own("segments", "deleting", stream_id)


async def _make_parent(store: MetadataStore, path: str) -> None:
    if await store.exists(path) is None:
        try:
            await store.create(path, parents=True)
        except KeyExistsError:
            pass


async def _finish(client: BookKeeper, tombstone: Tombstone) -> None:
    """Steps 2 to 5."""
    metadata = client.metadata_store
    node = StreamHead(metadata, tombstone.stream_id, tombstone.name)
    try:
        nonce = f"{client.services.seams.rng.getrandbits(64):x}"
        owned = await OwnedNode.claim(node, DELETER, nonce)
    except StreamNotFoundError:
        pass  # another one was faster, or a former one came as far as this
    else:
        ledgers = list(dict.fromkeys(owned.value.ledgers))
        gone = await delete_ledgers(client, ledgers, tombstone.name)
        if left := len(ledgers) - len(gone):
            raise StreamUnavailableError(
                f"stream {tombstone.name} is not there any more, but {left} of its ledgers could not be deleted: "
                "finish_deletions() or `bk stream check --repair` deletes them later",
                stream=tombstone.name,
            )
    await _remove_tree(metadata.store, stream_path(metadata, tombstone.stream_id), last="chain")
    try:
        await settled_delete(metadata.store, _grave(metadata, tombstone.stream_id), None)
    except NoSuchKeyError:
        pass


async def _remove_tree(store: MetadataStore, path: str, last: str = "") -> None:
    """Remove a value and all below it; the child ``last`` only after the others. What is gone already is no error."""
    try:
        children = await store.children(path)
    except NoSuchKeyError:
        return
    for child in sorted(children, key=lambda child: child == last):
        await _remove_tree(store, f"{path}/{child}")
    try:
        await settled_delete(store, path, None)
    except NoSuchKeyError:
        pass


async def remove_remains(metadata: Metadata, stream_id: str) -> bool:
    """Remove what an import left that came to no stream: pages without a node. False: there is a node, or an import
    is running. Raises BookKeeper's metadata errors."""
    arriving, home = metadata.own("segments", "importing", stream_id), stream_path(metadata, stream_id)
    await metadata.store.sync(home)
    for needed in (arriving, f"{home}/chain"):
        if await metadata.store.exists(needed) is not None:
            return False
    await _remove_tree(metadata.store, home)
    return True


async def unfinished_deletions(client: BookKeeper) -> tuple[Tombstone, ...]:
    """The streams whose deletion has begun and has not ended. Raises StreamMetadataError, StreamCorruptError."""
    metadata = client.metadata_store
    with worded("looking for unfinished deletions"):
        await metadata.store.sync(tombstones_path(metadata))
        try:
            stream_ids = await metadata.store.children(tombstones_path(metadata))
        except NoSuchKeyError:
            return ()
        found: list[Tombstone] = []
        for stream_id in stream_ids:
            try:
                value = (await metadata.store.get(_grave(metadata, stream_id))).value
            except NoSuchKeyError:
                continue
            what = "the tombstone of a stream"
            about = checked_fields(unpack_json(value, FORMAT, what), {"name": str, "since_ms": int}, what)
            found.append(Tombstone(stream_id, about["name"], about["since_ms"]))
        return tuple(found)


async def finish_deletions(client: BookKeeper) -> tuple[Tombstone, ...]:
    """Finish every deletion that has begun; returns them. Raises: as ``delete_stream``."""
    found = await unfinished_deletions(client)
    for tombstone in found:
        with worded(f"finishing the deletion of stream {tombstone.name}", tombstone.name):
            await _finish(client, tombstone)
    return found


# -- leaked ledgers --------------------------------------------------------------------------------------


class LeakedLedgers:
    """Ledgers that were made for a stream, and that nothing names or will name.

    A ledger of a stream that does not exist is leaked; so is one with the epoch of a former owner that the node does
    not name. A ledger of the present epoch is its owner's, who may be about to name it.
    """

    def __init__(self, client: BookKeeper) -> None:
        self._client = client

    async def find(self, older_than_s: float = ORPHAN_AGE_S) -> tuple[OrphanLedger, ...]:
        """Find them. The metadata of every ledger of the cluster are read. Raises StreamMetadataError."""
        with worded("looking for ledgers that no stream names"):
            now_ms = self._client.services.seams.clock.wall_ms()
            return await find_orphans(self._client, COMPONENT_TAGS, self._needed, now_ms, older_than_s=older_than_s)

    async def delete(self, older_than_s: float = ORPHAN_AGE_S) -> tuple[OrphanLedger, ...]:
        """Delete them; returns them. Raises StreamMetadataError, StreamUnavailableError."""
        found = await self.find(older_than_s)
        with worded("deleting ledgers that no stream names"):
            await delete_orphans(self._client, found)
        return found

    async def _needed(self, found: Sequence[OrphanLedger]) -> Collection[int]:
        needed: set[int] = set()
        for stream_id in {stream_of(orphan) for orphan in found}:
            own = [orphan for orphan in found if stream_of(orphan) == stream_id]
            try:
                needed |= await self._needed_of(stream_id, own)
            except (ChainCorruptError, UnsupportedStreamFormatError) as error:
                text = "no ledger of stream %s is deleted as an orphan, because its node cannot be read: %s"
                _log.warning(text, stream_id, error)
                needed |= {orphan.ledger for orphan in own}
        return needed

    async def _needed_of(self, stream_id: str, own: Sequence[OrphanLedger]) -> set[int]:
        metadata = self._client.metadata_store
        arriving = metadata.own("segments", "importing", stream_id)
        await metadata.store.sync(arriving)
        if await metadata.store.exists(arriving) is not None:
            return {orphan.ledger for orphan in own}
        try:
            chain, _ = await StreamHead(metadata, stream_id).read()
        except StreamNotFoundError:
            return set()
        present = b"%d" % chain.epoch
        written = {orphan.ledger for orphan in own if await self._is_written(stream_id, orphan)}
        chain, _ = await StreamHead(metadata, stream_id).read()  # what was published meanwhile is named by now
        return set(chain.ledgers) | written | {each.ledger for each in own if each.tags.get("epoch") == present}

    async def _is_written(self, stream_id: str, orphan: OrphanLedger) -> bool:
        """Whether it belongs to a batch that may still be published."""
        staging = orphan.tags.get("staging")
        return staging is not None and await Stagings(self._client, stream_id, stream_id).has(staging.decode())


def stream_of(orphan: OrphanLedger) -> str:
    """The id of the stream that it was made for."""
    return orphan.tags.get("stream", b"").decode(errors="replace")
