"""Shell: which ledgers of a stream are written and not published yet, and how they are given up.

    stagings/<id>             one batch that is being written; whoever writes renews it
    stagings/<id>.<ledger>    one ledger of it

Publishing deletes the first in the same write that names the ledgers. So a staging is given up by deleting that value
first: from then on its batch cannot be published, and its ledgers may be deleted. Age alone decides nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta.store import Delete, Operation, settled_create, settled_delete
from segments.names import stream_path
from segments.retention.checked_json import pack_json, unpack_json
from segments.retention.removal import delete_ledgers

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

_log = logging.getLogger(__name__)

FORMAT: Final = 1
LEASE_MS: Final = 45 * 60_000
"""A staging that nobody has renewed for so long is given up by the next who looks."""
RENEWED_S: Final = 300.0
"""How often who writes renews it."""


class Stagings:
    """The stagings of one stream. The methods raise BookKeeper's metadata errors."""

    def __init__(self, client: BookKeeper, stream_id: str, name: str) -> None:
        self._client, self._name = client, name
        self._store = client.metadata_store.store
        self._parent = stream_path(client.metadata_store, stream_id, "stagings")

    async def begin(self, staging: str, app: str, now_ms: int) -> None:
        """Note that a batch is being written, or renew it.

        Raises: NoSuchKeyError: it was given up.
        """
        value = pack_json(FORMAT, {"app": app, "renewed_ms": now_ms})
        try:
            await settled_create(self._store, self._path(staging), value, parents=True)
        except KeyExistsError:
            await self._renew(staging, value)

    async def renew(self, staging: str, app: str, now_ms: int) -> None:
        """Say that a batch is still being written. Raises NoSuchKeyError: it was given up."""
        await self._renew(staging, pack_json(FORMAT, {"app": app, "renewed_ms": now_ms}))

    async def _renew(self, staging: str, value: bytes) -> None:
        await self._store.set(self._path(staging), value, None)

    async def note_ledger(self, staging: str, ledger: int) -> None:
        """Note that a ledger belongs to it."""
        try:
            await settled_create(self._store, f"{self._path(staging)}.{ledger}", b"", parents=True)
        except KeyExistsError:
            pass

    async def has(self, staging: str) -> bool:
        """Whether it may still be published."""
        await self._store.sync(self._path(staging))
        return await self._store.exists(self._path(staging)) is not None

    def end(self, staging: str) -> Operation:
        """The part of a write that publishes it."""
        return Delete(self._path(staging), None)

    async def clean(
        self,
        listed: Callable[[], Awaitable[Collection[int]]],
        now_ms: int,
        *,
        app: str | None = None,
        own: Collection[str] = (),
    ) -> list[int]:
        """Give up what was left: of ``app`` all, the stagings ``own``, of others what nobody renews. Returns the
        ledgers that were deleted.

        Args:
            listed: reads which ledgers the stream's record and its pages name; none of them is deleted. It is asked
                after stagings were given up: what was published before is named by then, and nothing is afterwards.
        """
        try:
            names = await self._store.children(self._parent)
        except NoSuchKeyError:
            return []
        open_ones = {name for name in names if "." not in name}
        for staging in list(open_ones):
            if await self._given_up(staging, now_ms, app, wanted=staging in own):
                open_ones.discard(staging)
        ended = [name for name in names if "." in name and name.partition(".")[0] not in open_ones]
        if not ended:
            return []
        named = await listed()
        deleted: list[int] = []
        for name in ended:
            ledger = name.partition(".")[2]
            if int(ledger) not in named:
                gone = await delete_ledgers(self._client, [int(ledger)], self._name)
                if int(ledger) not in gone:
                    continue
                deleted.append(int(ledger))
            try:
                await settled_delete(self._store, f"{self._parent}/{name}", None)
            except NoSuchKeyError:
                pass
        if deleted:
            _log.info("stream %s: %d ledgers of batches that were not published are deleted", self._name, len(deleted))
        return deleted

    async def _given_up(self, staging: str, now_ms: int, app: str | None, *, wanted: bool) -> bool:
        path = self._path(staging)
        try:
            found = await self._store.get(path)
            about = unpack_json(found.value, FORMAT, "a batch that is being written")
            if not wanted and about["app"] != app and now_ms < about["renewed_ms"] + LEASE_MS:
                return False
            await settled_delete(self._store, path, found.version)
        except NoSuchKeyError:
            return True
        except MetadataConflictError:
            return False  # it was renewed
        return True

    def _path(self, staging: str) -> str:
        return f"{self._parent}/{staging}"
