"""The metadata of ledgers: create, read, compare-and-set, delete, list, watch.

* A write names the version that its author read.
* A creation carries a random token, so "exists" after a lost reply is told from a clash.
* A write whose reply was lost is read again and compared before anything else happens.
* An id is issued once: by the generator Java uses too (ledger_ids.py), or by the caller; also after its ledger
  was deleted, which leaves a mark (deleted.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from bookkeeper.errors import (
    BookieUnavailableError,
    ClientClosedError,
    IdsUsedUpError,
    KeyExistsError,
    LedgerExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchKeyError,
    NoSuchLedgerError,
    SessionExpiredError,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.meta.records.deleted_ids import DeletedIds
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledger_format import decode, encode
from bookkeeper.meta.records.ledger_ids import LedgerIds
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.rollback import RollbackCheck
from bookkeeper.meta.store import (
    LOST_MAX,
    Check,
    Create,
    MetadataStore,
    Operation,
    Set,
    Version,
    Versioned,
    Watch,
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
        """Ids that are not given out again."""

    def path(self, ledger_id: LedgerId) -> str:
        """Where a ledger's metadata lies.

        Raises:
            NoSuchLedgerError: this cluster's layout has no place for such an id.
        """
        try:
            return self._layout.ledger_path(self._root, ledger_id)
        except ValueError as error:
            raise NoSuchLedgerError(str(error)) from error

    async def next_id(self) -> LedgerId:
        """A new id that stays unused: greater than every id that was generated before.

        Raises:
            IdsUsedUpError: a flat or legacy cluster has used all of its ids.
            MetadataUnavailableError: the store does not answer.
        """
        return await self._ids.next()

    async def create(
        self, metadata: LedgerMetadata, ledger_id: LedgerId | None = None, *, absent: Sequence[BookieId] = ()
    ) -> tuple[LedgerId, Versioned[LedgerMetadata]]:
        """Record a new ledger under a new id, or under the caller's. A creator token is drawn for it.

        Args:
            absent: bookies of its ensemble that are not registered. They are known to the cluster in the very
                transaction that names them, and whoever is about to forget them notices.

        Raises:
            BookieUnavailableError: one of ``absent`` was forgotten meanwhile; nothing was recorded.
            LedgerExistsError: the caller's id is taken, or was that of a ledger which is deleted.
            MetadataUnavailableError: unknown whether it was recorded; nobody else knows of it.
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
            try:
                if absent:
                    version = await self._create_naming(self.path(number), value, absent)
                else:
                    version = await settled_create(self._store, self.path(number), value, parents=True)
            except KeyExistsError as error:
                if ledger_id is not None:
                    raise LedgerExistsError(f"ledger {number} exists") from error
                number = None
            except SessionExpiredError:  # whether it was done is told by the token in the next session, too
                await self._store.sync(self._root)
            else:
                if not await self.deleted.has(number):
                    return number, Versioned(metadata, version)
                await self._withdraw(number)
                if ledger_id is not None:
                    raise _gone(number)
                number = None

    async def _create_naming(self, path: str, value: bytes, absent: Sequence[BookieId]) -> Version:
        """As ``settled_create``, while these bookies have cookies; counts that they were named."""
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
                    await _make(store, paths.own("named", bookie))
                await _make(store, parent_of(path))
                continue
            except MetadataUnavailableError:
                await store.sync(path)
            except KeyExistsError:
                pass
            try:
                found = await store.get(path)
            except NoSuchKeyError:
                continue
            if found.value != value:
                raise KeyExistsError(path)
            return found.version
        raise MetadataUnavailableError(f"{path}: {LOST_MAX} times its creation got no answer, and was not done")

    async def _withdraw(self, ledger_id: LedgerId) -> None:
        """Nobody was told of what was just created: its id was given out before."""
        try:
            await settled_delete(self._store, self.path(ledger_id), Version(0))
        except (NoSuchKeyError, MetadataConflictError):
            pass

    async def read(self, ledger_id: LedgerId, *, fresh: bool = False) -> Versioned[LedgerMetadata]:
        """The present metadata; ``fresh`` syncs first.

        Raises:
            NoSuchLedgerError, MetadataFormatError.
        """
        path = self.path(ledger_id)
        if fresh:
            await self._store.sync(path)
        try:
            found = await self._store.get(path)
        except NoSuchKeyError as error:
            raise NoSuchLedgerError(f"there is no ledger {ledger_id}") from error
        return Versioned(decode(found.value), found.version, found.created_ms, found.transaction, found.created_txn)

    async def check_gone(self, ledger_id: LedgerId) -> None:
        """Before a ledger that was there is believed deleted: are these metadata the present ones?

        A mark of its deletion is proof enough. Without one it may have been deleted by a client that leaves none,
        or have been made after the state that the store was put back to. The second shows in what the store and this
        process have seen, or in the generator of ids: when it gives out no greater one than before, it lost some. That
        costs an id, which nobody uses.

        Raises:
            MetadataRolledBackError: they are of an older state. The whole process hears of it.
            ClusterMovedError: the cluster is elsewhere by now.
            MetadataUnavailableError: the store does not tell.
        """
        await self._present.check_fresh()
        before = self._ids.greatest
        if before < 0 or await self.deleted.has(ledger_id):
            return
        try:
            number = await self._ids.next()
        except IdsUsedUpError:
            return
        if number <= before:
            self._present.alarm = alarm = MetadataRolledBackError(
                f"there is no ledger {ledger_id} any more and nothing says that it was deleted, and a new ledger would "
                f"get id {number} where {before} was given out before: the metadata were put back to an older state"
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
        """Replace the metadata that was read as version ``expected``, and created by write ``born``, if given:
        a ledger made anew under the same id is another one, whose versions begin again. ``only_if``: all of this holds
        in the moment of the write.

        Two writers of equal metadata over one version may both succeed: they wanted the same.

        Raises:
            MetadataConflictError: someone else wrote, or a condition does not hold; re-read and decide again.
            NoSuchLedgerError: deleted, or (``born``) deleted and made anew.
            MetadataUnavailableError: unknown, and the store could not be asked again.
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

    async def delete(self, ledger_id: LedgerId, expected: Version | None = None) -> None:
        """Delete it and parents left empty, and mark its id; a ledger that is not there counts as deleted.

        Parents that cannot be deleted, for whatever reason, stay: the ledger is gone all the same.

        Raises:
            MetadataConflictError: another version.
        """
        try:
            await self.deleted.delete(self.path(ledger_id), ledger_id, expected)
        except (NoSuchKeyError, NoSuchLedgerError):
            return
        for parent in self._layout.emptied_parents(self._root, ledger_id):
            try:
                await self._store.delete(parent, None)
            except (MetadataError, ClientClosedError):
                return

    async def list(self) -> AsyncIterator[LedgerId]:
        """Every ledger, in ascending order, as of a sync at the start; a page that fails ends it by an error."""
        await self._store.sync(self._root)
        async for ledger_id in self._layout.walk(self._store, self._root):
            yield ledger_id

    def watch(self, ledger_id: LedgerId, callback: Callable[[], None]) -> Watch:
        """Call back (on the loop) when the metadata may have changed or gone: re-read."""
        return self._store.watch(self.path(ledger_id), callback)


async def _make(store: MetadataStore, path: str) -> None:
    try:
        await store.create(path, parents=True)
    except (KeyExistsError, MetadataUnavailableError):
        pass


def _gone(ledger_id: LedgerId) -> LedgerExistsError:
    return LedgerExistsError(
        f"ledger {ledger_id} was deleted: an id is given out once only, for bookies may still hold what was "
        "written under it; take another"
    )
