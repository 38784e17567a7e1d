"""The metadata of ledgers: create, read, compare-and-set, delete, list, watch.

* A write names the version that its author has read.
* A creation carries a random token. So after a lost reply, an existing ledger can be told from another client's.
* After a lost reply the metadata are read again and compared before anything else happens.
* An id is issued once, by the generator that Java uses, too (ledger_ids), or by the caller. A deletion leaves a mark
  (deleted_ids), so that the id is not issued again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from bookkeeper.errors import (
    BookieUnavailableError,
    ClientClosedError,
    IdsUsedUpError,
    KeyExistsError,
    LedgerExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataFormatError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchKeyError,
    NoSuchLedgerError,
)
from bookkeeper.ids import BookieId, IdRanges, LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.meta.records.deleted_ids import MERGE_CHANCE, DeletedIds, make
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger, DeletedLedgers
from bookkeeper.meta.records.followed_ledgers import FollowedLedgers
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledger_format import decode, encode
from bookkeeper.meta.records.ledger_ids import LedgerIds
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.rollback import RollbackCheck
from bookkeeper.meta.store import (
    LOST_MAX,
    OUTCOME_UNKNOWN,
    Check,
    Create,
    MetadataStore,
    Operation,
    Set,
    Version,
    Versioned,
    Watch,
    check_creation,
    get_or_none,
    parent_of,
    settled_create,
    settled_delete,
    settled_set,
    settled_set_if,
)
from bookkeeper.seams import Rng


class Ledgers:
    """The ledgers of one cluster."""

    def __init__(
        self, store: MetadataStore, paths: Paths, layout: Layout, rng: Rng, present: RollbackCheck | None = None
    ) -> None:
        self._store = store
        self._present = present or RollbackCheck(store, paths)
        self._paths = paths
        self._root = paths.root
        self._layout = layout
        self._ids = LedgerIds(store, paths, layout)
        self._rng = rng
        self.deleted = DeletedIds(store, paths, rng)
        """The ids of deleted ledgers."""
        self.restorable = DeletedLedgers(store, paths, self.deleted)
        """The deleted ledgers that can still be brought back."""

    def path(self, ledger_id: LedgerId) -> str:
        """The path of a ledger's metadata.

        Raises:
            NoSuchLedgerError: this cluster's layout has no place for such an id.
        """
        try:
            return self._layout.ledger_path(self._root, ledger_id)
        except ValueError as error:
            raise NoSuchLedgerError(str(error)) from error

    async def next_id(self) -> LedgerId:
        """Take a new id, without a ledger: greater than every id that was generated before.

        Raises:
            IdsUsedUpError: a flat or legacy cluster has used all of its ids.
            MetadataUnavailableError: the store does not answer.
        """
        return await self._ids.generate()

    async def create(
        self, metadata: LedgerMetadata, ledger_id: LedgerId | None = None, *, absent: Sequence[BookieId] = ()
    ) -> tuple[LedgerId, Versioned[LedgerMetadata]]:
        """Record a new ledger under a new id, or under the caller's. A creator token is drawn for it.

        Args:
            absent: bookies of its ensemble that are not registered. The very transaction that names them checks that
                the cluster knows them, and a concurrent ``forget`` of them fails.

        Raises:
            BookieUnavailableError: one of ``absent`` was forgotten meanwhile; nothing was recorded.
            LedgerExistsError: the caller's id is taken, or belonged to a ledger that was deleted.
            MetadataUnavailableError: it is not known whether the ledger was recorded; nobody else knows of it.
        """
        metadata = replace(metadata, creator_token=self._rng.randrange(1, 2**63 - 1))
        value = encode(metadata)
        number = ledger_id
        if number is not None:
            self.path(number)
            if await self.deleted.has(number, fresh=True):
                raise _gone(number)
        while True:
            if number is None:
                number = await self._ids.next()
                if self._ids.takes_ahead and not absent and await self._create_guarded(number, value):
                    return number, Versioned(metadata, Version(0))
            try:
                if absent:
                    version = await self._create_naming(self.path(number), value, absent)
                else:
                    version = await settled_create(self._store, self.path(number), value, parents=True)
            except KeyExistsError as error:
                if ledger_id is not None:
                    raise LedgerExistsError(f"ledger {number} exists already; choose another id") from error
                number = None
            else:
                if not await self.deleted.has(number):
                    return number, Versioned(metadata, version)
                await self._withdraw(number)
                if ledger_id is not None:
                    raise _gone(number)
                number = None

    async def _create_guarded(self, ledger_id: LedgerId, value: bytes) -> bool:
        """Record a new ledger in one transaction that fails if its id is marked. False: do it step by step; what this
        has done or not is found out there."""
        try:
            if (guard := self.deleted.guard(ledger_id)) is None:
                await self.deleted.prepare(ledger_id)
                return False
            await self._store.multi([Create(self.path(ledger_id), value), *guard])
        except (NoSuchKeyError, KeyExistsError, MetadataConflictError):
            self.deleted.forget()
            return False
        except OUTCOME_UNKNOWN:
            await self._store.sync(self._root)
            return False
        return True

    async def _create_naming(self, path: str, value: bytes, absent: Sequence[BookieId]) -> Version:
        """As ``settled_create``, but only while these bookies have cookies. Counts that they were named."""
        store, paths = self._store, self._paths
        operations: list[Operation] = [Check(paths.cookie(bookie), None) for bookie in absent]
        operations += [Set(paths.own("named", bookie), b"", None) for bookie in absent]
        operations.append(Create(path, value))
        for _ in range(LOST_MAX):
            try:
                await store.multi(operations)
                return Version(0)
            except NoSuchKeyError:
                await store.sync(paths.cookies)
                for bookie in absent:
                    if await store.exists(paths.cookie(bookie)) is None:
                        raise BookieUnavailableError(f"bookie {bookie} was forgotten meanwhile") from None
                    await make(store, paths.own("named", bookie))
                await make(store, parent_of(path))
                continue
            except OUTCOME_UNKNOWN:
                await store.sync(path)
            except KeyExistsError:
                pass
            if (found := await get_or_none(store, path)) is None:
                continue
            if found.value != value:
                raise KeyExistsError(f"{path} exists already, with another client's value")
            return found.version
        raise MetadataUnavailableError(
            f"{path} was not created: the store gave no answer to {LOST_MAX} attempts; try again later"
        )

    async def _withdraw(self, ledger_id: LedgerId) -> None:
        """Remove a ledger that was just created under an id that was given out before. Nobody knows of it."""
        try:
            await settled_delete(self._store, self.path(ledger_id), Version(0))
        except (NoSuchKeyError, MetadataConflictError):
            pass

    async def read(self, ledger_id: LedgerId, *, fresh: bool = False) -> Versioned[LedgerMetadata]:
        """Read a ledger's metadata; with ``fresh`` after a sync.

        Raises:
            NoSuchLedgerError, MetadataFormatError.
        """
        found = await self._stored(ledger_id, fresh=fresh)
        return found.over(decode(found.value))

    async def _stored(self, ledger_id: LedgerId, *, fresh: bool) -> Versioned[bytes]:
        if (found := await get_or_none(self._store, self.path(ledger_id), fresh=fresh)) is None:
            raise NoSuchLedgerError(f"there is no ledger {ledger_id}")
        return found

    async def check_deleted(self, ledger_id: LedgerId) -> None:
        """Check that a ledger that existed is deleted, and not lost because the store shows an older state.

        The mark of its deletion is proof. Without a mark, a client that leaves none may have deleted the ledger, or the
        store may have been put back to a state from before its creation. In the second case the store shows less than
        was seen, or its generator gives out an id that is not greater than before. That check uses up an id.

        Raises:
            MetadataRolledBackError: the store shows an older state. The whole process stops trusting it.
            ClusterMovedError: the cluster has moved to another store.
            MetadataUnavailableError: the store does not answer.
        """
        await self._present.check_fresh()
        before = self._ids.greatest
        if before < 0 or await self.deleted.has(ledger_id):
            return
        try:
            number = await self._ids.generate()
        except IdsUsedUpError:
            return
        if number <= before:
            self._present.alarm = alarm = MetadataRolledBackError(
                f"the metadata were put back to an older state: ledger {ledger_id} is gone without a mark of its "
                f"deletion, and a new ledger would get id {number}, though {before} was given out before"
            )
            raise alarm

    async def write(
        self,
        ledger_id: LedgerId,
        metadata: LedgerMetadata,
        expected: Version,
        *,
        created_txn: int = 0,
        only_if: Sequence[Check] = (),
    ) -> Versioned[LedgerMetadata]:
        """Replace the metadata that were read as version ``expected``.

        With ``created_txn`` they are replaced only if that write created them: a ledger made anew under the same id is
        another one, whose versions begin again. All conditions of ``only_if`` must hold at the moment of the write. Two
        writers of equal metadata over one version may both succeed, because they wanted the same.

        Raises:
            MetadataConflictError: someone else wrote, or a condition does not hold; read again and decide anew.
            NoSuchLedgerError: the ledger was deleted, or with ``created_txn`` deleted and made anew.
            MetadataUnavailableError: it is not known whether the write was done.
        """
        try:
            path, value = self.path(ledger_id), encode(metadata)
            if only_if:
                version = await settled_set_if(self._store, path, value, expected, only_if, created_txn=created_txn)
            else:
                version = await settled_set(self._store, path, value, expected, created_txn=created_txn)
        except NoSuchKeyError as error:
            raise NoSuchLedgerError(f"ledger {ledger_id} was deleted") from error
        return Versioned(metadata, version, created_txn=created_txn)

    async def delete(
        self, ledger_id: LedgerId, expected: Version | None = None, *, created_txn: int = 0, grace_s: int = 0
    ) -> None:
        """Delete a ledger's metadata and empty parents, and mark its id. A missing ledger counts as deleted.

        Parents that cannot be deleted stay; the ledger is gone all the same. What has come back under this id, or was
        made anew, since the metadata were first read here stays, however often the deletion has to be repeated.

        Args:
            created_txn: only the ledger whose metadata this write created; another one under its id counts as missing.
            grace_s: for so many seconds the ledger can be brought back (:meth:`restore`). The record for that is
                written by the transaction that deletes the ledger.

        Raises:
            MetadataConflictError: the metadata have another version.
            MetadataUnavailableError: it is not known whether the ledger was deleted.
        """
        path = self.path(ledger_id)
        try:
            if not created_txn:
                await self._store.sync(path)
            await self._delete(path, ledger_id, expected, created_txn, grace_s)
        except NoSuchKeyError:
            return
        if grace_s and not self._rng.randrange(0, MERGE_CHANCE):
            with suppress(MetadataError, ClientClosedError):  # the ledger is deleted even if this fails
                await self.restorable.remove_some()
        for parent in self._layout.emptied_parents(self._root, ledger_id):
            try:
                await self._store.delete(parent, None)
            except (MetadataError, ClientClosedError):
                return

    async def _delete(
        self, path: str, ledger_id: LedgerId, expected: Version | None, created_txn: int, grace_s: int
    ) -> None:
        """Raises: NoSuchKeyError: the ledger is gone. And as ``delete``."""
        while True:
            found = await self._store.get(path)
            check_creation(path, found.created_txn, created_txn)
            created_txn = found.created_txn
            if expected is not None and found.version != expected:
                raise MetadataConflictError(f"{path} has version {found.version}, not {expected}")
            record = None
            if grace_s:
                kept = DeletedLedger(ledger_id, grace_s, found.value, version=found.version)
                record = Create(self.restorable.path(ledger_id), kept.encode())
            try:
                return await self.deleted.delete(path, ledger_id, found, record)
            except MetadataConflictError:
                if expected is not None:
                    raise
                await self._store.sync(path)

    async def restore(self, ledger_id: LedgerId) -> None:
        """Bring a deleted ledger back, with the metadata that it had.

        Raises:
            NoSuchLedgerError: it cannot be brought back: there is no record of it.
            LedgerExistsError: somebody has made a ledger under its id meanwhile.
            MetadataUnavailableError: it is not known whether it was brought back; call again.
        """
        await self.restorable.restore(ledger_id, self.path(ledger_id))

    async def stored(self, ledger_id: LedgerId) -> bytes:
        """A ledger's metadata as they are stored, after a sync, whether they can be read or not.

        Raises:
            NoSuchLedgerError
        """
        return (await self._stored(ledger_id, fresh=True)).value

    async def put_back(self, ledger_id: LedgerId, value: bytes, *, dry_run: bool = False) -> bool:
        """Store metadata that :meth:`stored` gave, where they are missing or cannot be read. Metadata that can be read
        are never replaced, and the id of a deleted ledger is never used again.

        Returns:
            whether something is changed; not if the same metadata are there.

        Raises:
            MetadataFormatError: ``value`` is not the metadata of a ledger.
            LedgerExistsError: the ledger has metadata that can be read, or was deleted.
            MetadataConflictError: somebody has changed them meanwhile.
        """
        decode(value)
        path = self.path(ledger_id)
        if (found := await get_or_none(self._store, path, fresh=True)) is None:
            if await self.restorable.has(ledger_id):
                raise LedgerExistsError(
                    f"ledger {ledger_id} was deleted, and can be brought back: bk ledger undelete {ledger_id}"
                )
            if await self.deleted.has(ledger_id, fresh=True):
                raise LedgerExistsError(f"ledger {ledger_id} was deleted for good: its id is not used again")
            if not dry_run:
                await settled_create(self._store, path, value, parents=True)
                if await self.deleted.has(ledger_id):  # bookies have found it gone meanwhile, and drop its data
                    await self._withdraw(ledger_id)
                    raise LedgerExistsError(f"ledger {ledger_id} was deleted for good: its id is not used again")
            return True
        if found.value == value:
            return False
        try:
            decode(found.value)
        except MetadataFormatError:
            if not dry_run:
                await settled_set(self._store, path, value, found.version)
            return True
        raise LedgerExistsError(f"ledger {ledger_id} has metadata that can be read: they are not replaced")

    async def never_again(self, ledgers: Collection[LedgerId]) -> IdRanges:
        """The ids near ``ledgers`` that belonged to deleted ledgers that nobody can bring back any more.

        Raises: MetadataUnavailableError: the store does not answer.
        """
        return await self.restorable.without_restorable(ledgers)

    async def list(self) -> AsyncIterator[LedgerId]:
        """All ledgers in ascending order, read after a sync. A page that fails ends the listing with an error."""
        await self._store.sync(self._root)
        async for ledger_id in self._layout.walk(self._store, self._root):
            yield ledger_id

    def follow(self) -> FollowedLedgers:
        """A reader of metadata that knows which were written since."""
        return FollowedLedgers(self._store, self._root, self._layout, self.restorable)

    def watch(self, ledger_id: LedgerId, callback: Callable[[], None]) -> Watch:
        """Call back, on the loop, when the metadata may have changed or gone. The callback reads them again."""
        return self._store.watch(self.path(ledger_id), callback)


def _gone(ledger_id: LedgerId) -> LedgerExistsError:
    return LedgerExistsError(
        f"ledger {ledger_id} was deleted, and its id cannot be used again, because bookies may still hold its entries; "
        "choose another id"
    )
