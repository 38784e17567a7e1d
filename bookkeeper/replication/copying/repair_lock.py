"""The lock of a ledger's repair, which Apache BookKeeper's workers take, too.

    <root>/underreplication/locks/urL0000000005   ephemeral: who repairs this ledger now

    * A client runs one repair of a ledger at a time, and only the repair that took the lock releases it.

Safety does not rest on the lock. It keeps two repairers from doing the same work. It also keeps Java bookies, which
drop surplus copies of a ledger under this lock, from dropping the copy that is just being written.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bookkeeper.errors import (
    ClientClosedError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    NoSuchKeyError,
    in_words,
)
from bookkeeper.ids import LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.store import get_or_none

_log = logging.getLogger(__name__)


def lock_path(root: str, ledger_id: LedgerId) -> str:
    """The path of a ledger's repair lock."""
    return f"{root}/underreplication/locks/urL{ledger_id:010d}"


@asynccontextmanager
async def repair_lock(metadata: Metadata, ledger_id: LedgerId, owner: str) -> AsyncIterator[str | None]:
    """Hold the lock of a ledger's repair. Gives None if the lock is held, or else the name of its present holder.

    The lock belongs to this repair, not to the session that all repairs of the client share. A second repair in the
    same client is refused like any other, and each repair releases only its own lock.

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
    """Create the lock, or adopt one that this session holds for no repair: an earlier repair could not remove it, or
    the reply to its creation was lost."""
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
        _log.warning(
            "the repair lock of ledger %d could not be removed (%s): others can repair the ledger when this process's "
            "session with the metadata store ends",
            ledger_id,
            in_words(error),
        )


async def holds_lock(metadata: Metadata, ledger_id: LedgerId) -> bool:
    """Whether this session still holds the lock. A session that expired has lost it.

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
    """The holder's name, as the lock's value says."""
    if (found := await get_or_none(metadata.store, path)) is None:
        return "another repair, which has just ended,"
    return found.value.decode(errors="replace").partition(":")[2].strip().strip('"') or "somebody"
