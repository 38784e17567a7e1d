"""What operators ask of a cluster: which bookies are there, how full they are, which ledgers and entries they hold.

::

    from bookkeeper import BookKeeper, Operator

    async with BookKeeper.connect(uri) as bk:
        operator = Operator(bk)
        print(await operator.writable_bookies(), await operator.bookie_info("b1"))
        async for ledger_id, fragments in operator.ledgers_on("b1"):
            ...

An operator needs no passwords. They stand in the metadata, so whoever may read the metadata may open every ledger.
:mod:`bookkeeper.replication` copies entries to other bookies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.client.arguments import ledger_number
from bookkeeper.client.bookie_request import entry_of, held_entries_of, reply_of
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.client.services import ClientServices
from bookkeeper.errors import (
    BookKeeperError,
    IllegalOperationError,
    MalformedFrameError,
    MetadataFormatError,
    NoSuchKeyError,
    NoSuchLedgerError,
)
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import DigestScheme, Entry, Fragment, LedgerMetadata
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger
from bookkeeper.wire import GetBookieInfo, InfoReply, ListEntries, ReadEntry
from bookkeeper.wire.availability import HeldEntries

READS_AT_ONCE: Final = 32
"""Ledgers whose metadata are read at a time."""


def no_bookie(name: str, known: Sequence[str]) -> IllegalOperationError:
    """That the cluster has no bookie of this name."""
    return IllegalOperationError(f"there is no bookie {name}; known are {', '.join(known) or 'none'}")


def require_bookies(names: Sequence[str], known: Sequence[str]) -> None:
    """Raises: IllegalOperationError: no bookie is named, or one that the cluster does not know."""
    if not names:
        raise IllegalOperationError("no bookie was named")
    for name in names:
        if name not in known:
            raise no_bookie(name, known)


@dataclass(frozen=True, slots=True)
class BookieInfo:
    """The disk space of a bookie in bytes; None: the bookie does not say."""

    total: int | None
    free: int | None


class Operator:
    """Answers an operator's questions through a connected client. Only a recovery and an undeletion change anything."""

    def __init__(self, client: BookKeeper) -> None:
        self._client = client
        self._services: ClientServices = client.services

    @property
    def client(self) -> BookKeeper:
        """The client through which it asks."""
        return self._client

    # -- bookies ------------------------------------------------------------------------------------------

    async def writable_bookies(self) -> list[BookieId]:
        """Read which bookies take new entries, sorted. Raises: MetadataError."""
        return await self._services.metadata.bookies.writable()

    async def read_only_bookies(self) -> list[BookieId]:
        """Read which bookies serve reads and take no new entries, sorted. Raises: MetadataError."""
        return await self._services.metadata.bookies.read_only()

    async def all_bookies(self) -> list[BookieId]:
        """Every bookie of the cluster, sorted: those that have a cookie, and those that are registered now.

        Raises: MetadataError.
        """
        bookies = self._services.metadata.bookies
        return sorted({*await bookies.known(), *await bookies.registered()})

    async def bookie_info(self, bookie: str) -> BookieInfo:
        """How large its ledger directories are, and how much of that is free.

        Raises: BookieError: the bookie cannot be reached, does not answer, or refuses.
        """
        what = f"disk space of {bookie}"
        reply = await reply_of(self._services, BookieId(bookie), GetBookieInfo(), what)
        if not isinstance(reply, InfoReply):
            raise MalformedFrameError(f"{what}: the bookie sent a reply of the wrong kind ({type(reply).__name__})")
        return BookieInfo(reply.total, reply.free)

    async def entries_on(self, bookie: str, ledger_id: int) -> HeldEntries:
        """Which entries of a ledger a bookie says it holds, whatever the metadata say it should hold.

        Raises:
            NoSuchLedgerError: the bookie has nothing of this ledger.
            BookieError: the bookie does not say. Apache's bookies on DbLedgerStorage never answer this, which ends in
                RequestTimedOutError.
        """
        what = f"list of entries of ledger {ledger_id} on {bookie}"
        request = ListEntries(ledger_number(ledger_id))
        return held_entries_of(await reply_of(self._services, BookieId(bookie), request, what), what)

    async def copy_on(self, bookie: str, ledger_id: int, entry_id: int) -> Entry:
        """Read one bookie's copy of an entry, and check its digest. Nobody else is asked, and nothing is fenced.

        The password and the digest are those of the metadata.

        Raises:
            NoSuchEntryError, NoSuchLedgerError: the bookie says that it has none.
            DigestMismatchError: the copy is wrong.
            BookieError: the bookie cannot be reached, cannot tell, or cannot read its copy.
            MetadataFormatError: the metadata do not say which digest the entries have.
        """
        found = await self.metadata(ledger_id)
        if found.digest_type is None:
            raise MetadataFormatError(f"the metadata of ledger {ledger_id} do not say which digest its entries have")
        number, what = ledger_number(ledger_id), f"entry {entry_id} of ledger {ledger_id} on {bookie}"
        request = ReadEntry(number, EntryId(entry_id))
        reply = await reply_of(self._services, BookieId(bookie), request, what, use=ConnectionPurpose.MAIN)
        return entry_of(reply, DigestScheme(found.digest_type, found.password or b""), number, entry_id, what)

    # -- ledgers ------------------------------------------------------------------------------------------

    async def metadata(self, ledger_id: int) -> LedgerMetadata:
        """Read a ledger's metadata without opening it. Raises: NoSuchLedgerError, MetadataError."""
        return await self._client.metadata(ledger_id)

    async def open_ledger(self, ledger_id: int, *, recovery: bool = False) -> ReadHandle:
        """Open a ledger with the password that its metadata hold. Its writer goes on, unless ``recovery`` is set.

        Raises: as :meth:`BookKeeper.open_ledger`.
        """
        return await self._client.open_ledger(ledger_id, None, recovery=recovery)

    async def recover_ledger(self, ledger_id: int) -> LedgerMetadata:
        """Fence the ledger's writer, find the ledger's end and close it; a closed ledger stays as it is. Returns the
        metadata that are stored then.

        Raises: as :meth:`BookKeeper.open_ledger`.
        """
        return await self._client.recover_ledger(ledger_id)

    async def deleted_ledgers(self) -> AsyncIterator[DeletedLedger]:
        """The deleted ledgers that can be brought back, ascending, without those whose time for that is over. The
        metadata of a record that is damaged cannot be read.

        Raises: MetadataError.
        """
        records = self._services.metadata.ledgers.restorable
        ledgers = [ledger_id async for ledger_id in records.all()]
        now_ms = await records.now_ms() if ledgers else 0
        for ledger_id in ledgers:
            try:
                found = await records.read(ledger_id)
            except NoSuchKeyError:
                continue
            except MetadataFormatError:
                found = DeletedLedger(ledger_id, 0, b"", now_ms + 1)
            if found.until_ms > now_ms:
                yield found

    async def undelete_ledger(self, ledger_id: int) -> LedgerMetadata:
        """Bring a deleted ledger back, with the metadata that it had. Returns them.

        A ledger that was deleted by force, before it was closed, is recovered and closed. Apache's bookies may have
        dropped their copies: :func:`bookkeeper.replication.inspection.check.incomplete_copies` finds out.

        Raises:
            NoSuchLedgerError: it was not deleted, or the time for that is over.
            LedgerExistsError: somebody has made a ledger under its id meanwhile.
            MetadataUnavailableError: it is not known whether it was brought back; call again.
            RecoveryInconclusiveError: it is back, and could not be closed now.
        """
        ledgers = self._services.metadata.ledgers
        await ledgers.restore(ledger_number(ledger_id))
        found = await self.metadata(ledger_id)
        return found if found.is_closed else await self.recover_ledger(ledger_id)

    async def ledgers_on(self, bookie: str) -> AsyncIterator[tuple[LedgerId, Sequence[Fragment]]]:
        """Ledgers whose metadata name a bookie, in ascending order, each with the fragments that name it.

        Reads the metadata of every ledger. Metadata that cannot be decoded end it with an error, because that ledger
        may name the bookie.

        Raises: MetadataError.
        """
        async for ledger_id, found in self.all_metadata():
            if isinstance(found, BookKeeperError):
                raise found
            fragments = [fragment for fragment in found.fragments if bookie in fragment.ensemble]
            if fragments:
                yield ledger_id, fragments

    async def all_metadata(self) -> AsyncIterator[tuple[LedgerId, LedgerMetadata | BookKeeperError]]:
        """The metadata of every ledger in ascending order, or the error with which they could not be read.

        Several are read at a time. A ledger that is deleted meanwhile is left out. Raises: MetadataError when the list
        itself cannot be read.
        """
        some: list[LedgerId] = []
        async for ledger_id in self._client.list_ledgers():
            some.append(ledger_id)
            if len(some) == READS_AT_ONCE:
                for pair in await self._read_all(some):
                    yield pair
                some = []
        for pair in await self._read_all(some):
            yield pair

    async def _read_all(self, ledgers: Sequence[LedgerId]) -> list[tuple[LedgerId, LedgerMetadata | BookKeeperError]]:
        found = await asyncio.gather(*(self._read(ledger_id) for ledger_id in ledgers))
        pairs = zip(ledgers, found, strict=True)
        return [(ledger_id, each) for ledger_id, each in pairs if not isinstance(each, NoSuchLedgerError)]

    async def _read(self, ledger_id: LedgerId) -> LedgerMetadata | BookKeeperError:
        try:
            return (await self._services.metadata.ledgers.read(ledger_id)).value
        except BookKeeperError as error:
            return error
