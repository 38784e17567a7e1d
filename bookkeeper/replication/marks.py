"""The cluster's list of under-replicated ledgers, as Apache BookKeeper keeps it: looked at, locked, tidied.

    <root>/underreplication/ledgers/0000/0000/0000/0005/urL0000000005   a mark: who lacks data, since when
    <root>/underreplication/locks/urL0000000005                         ephemeral: who repairs this ledger now

    A7  A mark goes only after the ledger was verified as it is stored now, and only in the version that was seen
        before that: what is marked meanwhile stays marked.
    A10 One repair of a ledger at a time in a client; the lock is let go of by the repair that took it.

A lock guards nothing here (A2, Z2). It saves two repairers the same work, and it keeps Java bookies, which drop
surplus copies of a ledger under this lock, from taking for surplus what is just being brought.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from bookkeeper.client.write.under_replication import mark_path, marked_bookies
from bookkeeper.errors import (
    ClientClosedError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    NoSuchKeyError,
    NotEmptyError,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata, Version
from bookkeeper.meta.store import settled_delete

_log = logging.getLogger(__name__)

_LEVELS: Final = 4
"""Directories between the list's root and a mark."""


@dataclass(frozen=True, slots=True)
class UnderReplicationMark:
    """A ledger's entry in the list, as it was read."""

    ledger_id: LedgerId
    bookies: tuple[BookieId, ...]
    """Who lacks something; may be empty (a ledger that is placed badly)."""
    version: Version


def lock_path(root: str, ledger_id: LedgerId) -> str:
    """Where the lock of a ledger's repair lies."""
    return f"{root}/underreplication/locks/urL{ledger_id:010d}"


async def read_mark(metadata: Metadata, ledger_id: LedgerId) -> UnderReplicationMark | None:
    """The ledger's mark, read now; None if it has none. Raises: MetadataError."""
    path = mark_path(metadata.paths.root, ledger_id)
    await metadata.store.sync(path)
    try:
        found = await metadata.store.get(path)
    except NoSuchKeyError:
        return None
    return UnderReplicationMark(ledger_id, tuple(marked_bookies(found.value)), found.version)


async def remove_mark(metadata: Metadata, mark: UnderReplicationMark) -> bool:
    """Remove it, unless it was written anew since it was read (A7). Was it removed? Raises: MetadataError."""
    path = mark_path(metadata.paths.root, mark.ledger_id)
    try:
        await settled_delete(metadata.store, path, mark.version)
    except MetadataConflictError:
        return False
    except NoSuchKeyError:
        return True
    for _ in range(_LEVELS):
        path = path.rpartition("/")[0]
        try:
            await metadata.store.delete(path, None)
        except (NotEmptyError, NoSuchKeyError):
            break
        except MetadataError as error:
            _log.info("an empty part of the list of under-replicated ledgers stays: %s", error)
            break
    return True


async def marked_ledgers(metadata: Metadata) -> AsyncIterator[LedgerId]:
    """Every ledger in the list, ascending as far as their ids are. Raises: MetadataError."""
    root = f"{metadata.paths.root}/underreplication/ledgers"
    await metadata.store.sync(root)
    async for ledger_id in _walk(metadata, root, _LEVELS):
        yield ledger_id


async def _walk(metadata: Metadata, path: str, levels: int) -> AsyncIterator[LedgerId]:
    try:
        names = await metadata.store.children(path)
    except NoSuchKeyError:
        return
    for name in names:
        if levels:
            async for ledger_id in _walk(metadata, f"{path}/{name}", levels - 1):
                yield ledger_id
        elif name.startswith("urL") and name[3:].isdecimal():
            yield LedgerId(int(name[3:]))


@asynccontextmanager
async def repair_lock(metadata: Metadata, ledger_id: LedgerId, owner: str) -> AsyncIterator[str | None]:
    """Hold the lock of a ledger's repair; gives None, or, if someone else holds it, who.

    The lock belongs to this repair, not to the session that other repairs of the same client share (A10): a second
    one is refused here as by anybody else's lock, and whoever ends lets go of a lock of its own only.

    Raises: MetadataError.
    """
    if (other := metadata.repairs.get(ledger_id)) is not None:
        yield f"another repair of this client ({other})"
        return
    metadata.repairs[ledger_id] = owner
    try:
        holder = await _take(metadata, ledger_id, owner)
        try:
            yield holder
        except GeneratorExit:  # its loop has gone: nothing can be awaited, and the lock goes with the session
            raise
        except BaseException:
            if holder is None:
                await _let_go(metadata, ledger_id)
            raise
        if holder is None:
            await _let_go(metadata, ledger_id)
    finally:
        del metadata.repairs[ledger_id]


async def _take(metadata: Metadata, ledger_id: LedgerId, owner: str) -> str | None:
    """Create the lock, or find that it is this session's and nobody's here: left by a repair that could not tell the
    store that it had ended, or whose reply was lost."""
    path, store = lock_path(metadata.paths.root, ledger_id), metadata.store
    try:
        await store.create(path, f'bookieId: "{owner}"\n'.encode(), ephemeral=True, parents=True)
    except KeyExistsError:
        if await _owner(metadata, path) != store.session_id:
            return await _holder(metadata, path)
    return None


async def _let_go(metadata: Metadata, ledger_id: LedgerId) -> None:
    path, store = lock_path(metadata.paths.root, ledger_id), metadata.store
    try:
        if await _owner(metadata, path) == store.session_id:
            await store.delete(path, None)
    except (NoSuchKeyError, MetadataConflictError):
        pass
    except (MetadataError, ClientClosedError) as error:  # it goes with the session
        _log.warning("the repair lock of ledger %d stays until this session ends: %s", ledger_id, error)


async def holds_lock(metadata: Metadata, ledger_id: LedgerId) -> bool:
    """Is the lock still this session's, for the repair that took it? One that expired has lost it.

    Raises: MetadataError.
    """
    path = lock_path(metadata.paths.root, ledger_id)
    await metadata.store.sync(path)
    return await _owner(metadata, path) == metadata.store.session_id


async def _owner(metadata: Metadata, path: str) -> int | None:
    try:
        return await metadata.store.owner(path)
    except NoSuchKeyError:
        return None


async def _holder(metadata: Metadata, path: str) -> str:
    """What a lock says of who holds it."""
    try:
        text = (await metadata.store.get(path)).value.decode(errors="replace")
    except NoSuchKeyError:
        return "somebody who has just let go of it"
    return text.partition(":")[2].strip().strip('"') or "somebody"
