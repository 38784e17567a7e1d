"""One repair of a ledger at a time: the locks that Apache BookKeeper's workers take, too.

    <root>/underreplication/locks/urL0000000005   ephemeral: who repairs this ledger now

    * One repair of a ledger at a time in a client; the lock is let go of by the repair that took it.

A lock guards nothing. It saves two repairers the same work, and it keeps Java bookies, which drop surplus
copies of a ledger under this lock, from dropping the copy that is just being written.
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
)
from bookkeeper.ids import LedgerId
from bookkeeper.meta import Metadata

_log = logging.getLogger(__name__)


def lock_path(root: str, ledger_id: LedgerId) -> str:
    """Where the lock of a ledger's repair lies."""
    return f"{root}/underreplication/locks/urL{ledger_id:010d}"


@asynccontextmanager
async def repair_lock(metadata: Metadata, ledger_id: LedgerId, owner: str) -> AsyncIterator[str | None]:
    """Hold the lock of a ledger's repair; gives None, or, if someone else holds it, who.

    The lock belongs to this repair, not to the session that other repairs of the same client share: a second
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
