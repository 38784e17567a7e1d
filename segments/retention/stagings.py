"""Shell: which ledgers of a stream are written and not published yet, and how they are given up.

    stagings/<id>             one batch that is being written; its writer renews it
    stagings/<id>.<ledger>    one ledger of it
    stagings/.<ledger>        one that is to be deleted

Publishing deletes the first two in the same write that names the ledgers. So a staging is given up by deleting its
value, and each of its ledgers by renaming theirs: from then on it cannot be published, also if a task that comes late
begins the staging anew. Age alone decides nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final

from bookkeeper.amounts import counted
from bookkeeper.errors import KeyExistsError, MetadataConflictError, MetadataUnavailableError, NoSuchKeyError
from bookkeeper.meta.store import LOST_MAX, OUTCOME_UNKNOWN, Create, Delete, Operation, settled_create, settled_delete
from segments.names import stream_path
from segments.retention.checked_json import checked_fields, pack_json, unpack_json
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
        """Note that a ledger belongs to a batch that was begun. One that is to be deleted is not noted: while a lost
        reply is waited for, a cleaner may come."""
        path, given_up = self._path(_name(staging, ledger)), self._path(_name("", ledger))
        for _ in range(LOST_MAX):
            try:
                await self._store.multi([Create(given_up, b""), Delete(given_up, None), Create(path, b"")])
            except KeyExistsError:
                pass  # noted, or to be deleted
            except OUTCOME_UNKNOWN:
                await self._store.sync(path)
                continue
            return
        raise MetadataUnavailableError(f"{path} was not written: the store gave no answer to {LOST_MAX} writes")

    async def has(self, staging: str, ledgers: Collection[int] = ()) -> bool:
        """Whether it, with these ledgers, may still be published."""
        await self._store.sync(self._parent)
        names = await self._names()
        return staging in names and all(_name(staging, ledger) in names for ledger in ledgers)

    def end(self, staging: str, ledgers: Collection[int]) -> list[Operation]:
        """The part of a write that publishes it."""
        paths = (self._path(staging), *(self._path(_name(staging, ledger)) for ledger in ledgers))
        return [Delete(path, None) for path in paths]

    async def clean(
        self,
        listed: Callable[[], Awaitable[Collection[int]]],
        now_ms: int,
        *,
        app: str | None = None,
        own: Collection[str] = (),
        kept: Collection[str] = (),
        agreed_ms: Callable[[], Awaitable[int]] | None = None,
    ) -> list[int]:
        """Give up what was left: of ``app`` all, the stagings ``own``, of others what nobody renews. Returns the
        ledgers that were deleted.

        Args:
            kept: stagings that are not left over.
            agreed_ms: asks other clocks, too, before a staging counts as one that nobody renews.
            listed: reads which ledgers the stream's node and its pages name; none of them is deleted. It is asked
                after ledgers were given up: what was published before is named by then, and nothing is afterwards.
        """
        names = sorted(name for name in await self._names() if _parts(name)[0] not in kept)
        open_ones = {name for name in names if "." not in name}
        for staging in sorted(open_ones):
            if await self._given_up(staging, now_ms, app, agreed_ms, wanted=staging in own):
                open_ones.discard(staging)
        ended: list[int] = []
        for staging, ledger in map(_parts, names):
            if ledger is None or staging in open_ones:
                continue
            if not staging or await self._taken_out(staging, ledger):
                ended.append(ledger)
        if not ended:
            return []
        named = await listed()
        deleted: list[int] = []
        for each in ended:
            if each not in named:
                if each not in await delete_ledgers(self._client, [each], self._name):
                    continue
                deleted.append(each)
            try:
                await settled_delete(self._store, self._path(_name("", each)), None)
            except NoSuchKeyError:
                pass
        if deleted:
            _log.info("stream %s: deleted %s of unpublished batches", self._name, counted(len(deleted), "ledger"))
        return deleted

    async def _names(self) -> set[str]:
        try:
            return set(await self._store.children(self._parent))
        except NoSuchKeyError:
            return set()

    async def _taken_out(self, staging: str, ledger: int) -> bool:
        """See that a ledger cannot be published. False: it was published, or another cleaner does the same."""
        rename: list[Operation] = [
            Delete(self._path(_name(staging, ledger)), None),
            Create(self._path(_name("", ledger)), b""),
        ]
        try:
            await self._store.multi(rename)
        except (NoSuchKeyError, KeyExistsError, MetadataConflictError):
            return False
        return True

    async def _given_up(
        self,
        staging: str,
        now_ms: int,
        app: str | None,
        agreed_ms: Callable[[], Awaitable[int]] | None,
        *,
        wanted: bool,
    ) -> bool:
        path = self._path(staging)
        try:
            found = await self._store.get(path)
            what = "a batch that is being written"
            about = checked_fields(unpack_json(found.value, FORMAT, what), {"renewed_ms": int}, what)
            if not wanted and about.get("app") != app:
                ends_ms = about["renewed_ms"] + LEASE_MS
                if now_ms < ends_ms or (agreed_ms is not None and await agreed_ms() < ends_ms):
                    return False
            await settled_delete(self._store, path, found.version, created_txn=found.created_txn)
        except NoSuchKeyError:
            return True
        except MetadataConflictError:
            return False  # it was renewed
        return True

    def _path(self, name: str) -> str:
        return f"{self._parent}/{name}"


def _name(staging: str, ledger: int) -> str:
    return f"{staging}.{ledger}"


def _parts(name: str) -> tuple[str, int | None]:
    """The staging, and the ledger of it, if the name is that of one."""
    staging, dot, ledger = name.partition(".")
    return staging, int(ledger) if dot and ledger.isdecimal() and len(ledger) < 20 else None
