"""Journals on ledgers: their options, and how to open them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hmac import compare_digest
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from bookkeeper import BookKeeper
from bookkeeper.access import ResourceKind
from bookkeeper.access.ownership import owner_text
from bookkeeper.chains.password import new_password
from bookkeeper.client.config import ACK_QUORUM, ENSEMBLE, WRITE_QUORUM
from bookkeeper.errors import ConfigError, in_words
from bookkeeper.leases.lease import LeaseEntry, LeaseLostError, StoreLease
from bookkeeper.leases.process_location import OwnLocation, own_location
from bookkeeper.real import SystemClock, read_private
from bookkeeper.seams import Clock
from journal_manager.backends.bookkeeper.address import PREFIX, plain
from journal_manager.backends.bookkeeper.error_translation import worded
from journal_manager.backends.bookkeeper.journal_node import JournalNode
from journal_manager.backends.bookkeeper.journal_owner import JournalOwner, claim_nonce
from journal_manager.backends.bookkeeper.ledgers import NewLedger, delete_quietly
from journal_manager.backends.bookkeeper.reader import LedgerJournalReader
from journal_manager.backends.bookkeeper.shared_client import SharedClient, shared_client
from journal_manager.backends.bookkeeper.snapshot_index import SnapshotIndex
from journal_manager.backends.bookkeeper.snapshots import LedgerSnapshotKeeper, LedgerSnapshots
from journal_manager.backends.bookkeeper.writer import (
    LedgerJournalWriter,
    recover,
)
from journal_manager.errors import ElectionLostError, JournalConfigError, JournalExistsError, JournalNotFormattedError
from journal_manager.journals.backend import Backend, JournalReader, JournalWriter, NamespaceInfo, Options
from journal_manager.journals.chain import Chain
from journal_manager.journals.election import ElectableBackend, Election
from journal_manager.journals.journal_uri import JournalURI
from journal_manager.journals.registry import parse_options
from journal_manager.snapshots.snapshots import SnapshotStore

if TYPE_CHECKING:
    from bookkeeper import WriteHandle


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BookKeeperOptions:
    """Options of ``bk:`` journals. Either ``client`` or ``metadata`` is needed."""

    client: BookKeeper | None = None
    """A client that stays open longer than the journal."""
    metadata: str | None = None
    """The cluster's metadata URI. What this process opens at one URI shares a client, which is closed with the last."""
    ensemble: int = ENSEMBLE
    write_quorum: int = WRITE_QUORUM
    ack_quorum: int = ACK_QUORUM
    password: bytes = field(default=b"", repr=False)
    """Only for a journal whose users keep its password themselves. Otherwise a new journal gets a random one, which its
    node keeps. Better not in an address, which others on the machine can read: give ``password_file`` there."""
    password_file: str | None = None
    """A file that holds the password, readable by its owner only."""
    digest: str = "crc32c"
    when_short: Literal["fail", "name_absent"] = "name_absent"
    """A new segment may name an absent bookie as long as an ack quorum is up: rolling must not stop because one of
    three bookies is lost."""
    max_batch_bytes: int = 4 << 20
    """The largest entry; the client's ``entry_size_max`` must be as large."""
    here: OwnLocation | None = None
    """Where this process runs, for the election; the system is asked unless it is given."""
    clock: Clock = field(default_factory=SystemClock)
    """Says how old ledgers are that were left behind; another one for tests."""

    async def connect(self) -> SharedClient:
        """Return the client. Raises JournalConfigError, JournalUnavailableError."""
        if (self.client is None) == (self.metadata is None):
            raise JournalConfigError(
                "a bk: journal needs either client=BookKeeper or metadata=URI; an address such as "
                "bk+zk://HOST:PORT/ROOT needs neither"
            )
        if self.client is not None:
            return SharedClient(self.client)
        assert self.metadata is not None
        with worded(f"connecting to the cluster at {self.metadata}"):
            return await shared_client(self.metadata)

    def for_new(self, client: BookKeeper) -> bytes:
        """The password that the node of a new journal keeps: none if its users keep one."""
        return b"" if self.password else new_password(client.services.seams.rng)

    def password_for(self, name: str, chain: Chain) -> bytes:
        """The password of the journal's ledgers. Raises: JournalConfigError: another one was given."""
        if self.password and chain.password and not compare_digest(self.password, chain.password):
            raise JournalConfigError(
                f"journal {name} keeps the password of its ledgers in its node, and another one was given: give none"
            )
        return self.password or chain.password

    def ledger_maker(self, client: BookKeeper, password: bytes, name: str) -> NewLedger:
        """Makes ledgers of the journal ``name``."""
        owned_by = owner_text(ResourceKind.JOURNALS, name)

        async def new_ledger(tags: dict[str, bytes]) -> WriteHandle:
            return await client.create_ledger(
                ensemble=self.ensemble,
                write_quorum=self.write_quorum,
                ack_quorum=self.ack_quorum,
                password=password,
                digest=self.digest,
                custom_metadata=tags,
                owner=owned_by,
                when_short=self.when_short,
            )

        return new_ledger


class BookKeeperBackend(Backend, ElectableBackend):
    """The backend of ``bk:`` journals."""

    async def format(self, uri: JournalURI, namespace: NamespaceInfo, options: Options, *, force: bool = False) -> None:
        async with _connected(uri, options, stays=False) as (uri, parsed, connection):
            node = _node(uri, connection)
            if not force and await self._has_data(node, connection, parsed):
                raise JournalExistsError(f"there are edits in {uri}: formatting it would remove them")
            await _format(node, connection.client, parsed, namespace)

    async def has_data(self, uri: JournalURI, options: Options) -> bool:
        async with _connected(uri, options, stays=False) as (uri, parsed, connection):
            return await self._has_data(_node(uri, connection), connection, parsed)

    async def _has_data(self, node: JournalNode, connection: SharedClient, parsed: BookKeeperOptions) -> bool:
        with worded(f"looking at journal {node.name}"):
            try:
                chain, _ = await node.read()
            except JournalNotFormattedError:
                return False
        return bool(chain.segments or await _snapshots(node, connection, parsed, chain).list())

    async def open_reader(self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options) -> JournalReader:
        async with _connected(uri, options) as (uri, parsed, connection):
            node = _node(uri, connection)
            with worded(f"opening journal {uri}"):
                chain, _ = await node.read()
            if namespace is not None:
                namespace.ensure_same(chain.namespace)
            return LedgerJournalReader(connection, node, parsed.password_for(node.name, chain))

    async def open_writer(
        self, uri: JournalURI, namespace: NamespaceInfo | None, options: Options, *, owner: str, create: bool = True
    ) -> JournalWriter:
        async with _connected(uri, options) as (uri, parsed, connection):
            node, client = _node(uri, connection), connection.client
            if create:
                with worded(f"making journal {uri}"):
                    await node.create_if_absent(Chain(namespace or NamespaceInfo(), password=parsed.for_new(client)))
            check = partial(parsed.password_for, node.name)
            claimed = await JournalOwner.claim(node, owner, claim_nonce(client), namespace, check, reads_with=client)
            password = parsed.password_for(node.name, claimed.chain)
            report = await recover(claimed, client, password)
            return LedgerJournalWriter(
                connection,
                claimed,
                report,
                password=password,
                new_ledger=parsed.ledger_maker(client, password, node.name),
                max_batch_bytes=parsed.max_batch_bytes,
                wall_ms=parsed.clock.wall_ms,
            )

    async def open_snapshots(self, uri: JournalURI, options: Options) -> SnapshotStore:
        async with _connected(uri, options) as (uri, parsed, connection):
            node = _node(uri, connection)
            with worded(f"opening journal {uri}"):
                chain, _ = await node.read()
            return _snapshots(node, connection, parsed, chain)

    async def open_election(self, uri: JournalURI, options: Options, *, name: str) -> Election:
        uri, parsed = _parsed(uri, options)
        connection = await parsed.connect()
        metadata, nonce = connection.client.metadata_store, claim_nonce(connection.client)
        lease = StoreLease(
            metadata.store,
            metadata.own("leases", quote(f"journal:{uri.name}", safe="")),
            connection.client.services.seams.clock,
            owner=f"{name} {nonce}",
            address=name,
            here=own_location(f"{name} {nonce}") if parsed.here is None else parsed.here,
        )
        return LeaseElection(connection, lease)


@asynccontextmanager
async def _connected(
    uri: JournalURI, options: Options, *, stays: bool = True
) -> AsyncIterator[tuple[JournalURI, BookKeeperOptions, SharedClient]]:
    """The address and options as they are meant, and a client, which is closed unless what is opened keeps it."""
    uri, parsed = _parsed(uri, options)
    connection = await parsed.connect()
    try:
        yield uri, parsed, connection
    except BaseException:
        await connection.close()
        raise
    if not stays:
        await connection.close()


async def _format(node: JournalNode, client: BookKeeper, options: BookKeeperOptions, namespace: NamespaceInfo) -> None:
    """Fence the writer, then empty the node, then delete the ledgers."""
    with worded(f"formatting journal {node.name}"):
        await node.create_if_absent(Chain(namespace, password=options.for_new(client)))
    claimed = await JournalOwner.claim(
        node, "format", claim_nonce(client), None, partial(options.password_for, node.name)
    )
    password = options.password_for(node.name, claimed.chain)
    await recover(claimed, client, password)
    gone = claimed.chain.segments
    await claimed.step(lambda chain: chain.cleared(claimed.token, namespace))
    for segment in gone:
        await delete_quietly(client, segment.location)
    await LedgerSnapshotKeeper(client, claimed, options.ledger_maker(client, password, node.name)).remove_discarded()


def _parsed(uri: JournalURI, options: Options) -> tuple[JournalURI, BookKeeperOptions]:
    also = ("name",) if uri.scheme.startswith(PREFIX) else ()
    if "password" in uri.query:
        _log.warning("the password in the address of %s can be read by others on this machine: use password_file", uri)
    uri = plain(uri)
    parsed = parse_options(BookKeeperOptions, uri, options, also=also)
    if parsed.password_file is None:
        return uri, parsed
    if parsed.password:
        raise JournalConfigError(f"{uri}: give password or password_file, not both")
    try:
        text = read_private(parsed.password_file)
    except (ConfigError, OSError) as error:
        raise JournalConfigError(f"{uri}: password_file: {in_words(error)}") from error
    return uri, replace(parsed, password=text.removesuffix(b"\n"), password_file=None)


def _node(uri: JournalURI, connection: SharedClient) -> JournalNode:
    if not uri.name:
        raise JournalConfigError(f"{uri} names no journal: expected bk:NAME")
    return JournalNode(connection.client.metadata_store, uri.name)


def _snapshots(node: JournalNode, connection: SharedClient, parsed: BookKeeperOptions, chain: Chain) -> LedgerSnapshots:
    password = parsed.password_for(node.name, chain)
    maker = parsed.ledger_maker(connection.client, password, node.name)
    return LedgerSnapshots(connection, SnapshotIndex(node), password, maker)


class LeaseElection(Election):
    """Whoever holds the lease is elected, as long as he renews it."""

    def __init__(self, connection: SharedClient, lease: StoreLease) -> None:
        self._connection, self._lease = connection, lease
        self._closed = False

    @property
    def is_held(self) -> bool:
        return self._lease.is_held

    @property
    def holder(self) -> str | None:
        return self._lease.other

    async def campaign(self) -> None:
        with worded("taking the lease of the active replica"):
            await self._lease.acquire(LeaseEntry.WHEN_VACANT)

    async def wait_until_held(self) -> None:
        try:
            await self._lease.wait_until_held()
        except LeaseLostError as error:
            raise ElectionLostError(f"replica {self._lease.other or 'unknown'} was elected meanwhile") from error

    async def lost(self) -> None:
        await self._lease.lost()

    async def resign(self) -> None:
        await self._lease.release()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            await self._lease.release()
        finally:
            await self._connection.close()
