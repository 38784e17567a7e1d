"""A client of one cluster: it creates, opens, deletes and lists ledgers.

The placement policy chooses the bookies of a new ledger, and the recovery machine decides where an open one ends. This
module joins their answers with metadata, passwords and handles.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Unpack, overload

from bookkeeper.client import openers
from bookkeeper.client.arguments import ledger_number, require_bytes
from bookkeeper.client.bookies.bookie_locations import BookieLocations, placement_policy
from bookkeeper.client.bookies.bookie_pool import BookiePool
from bookkeeper.client.bookies.bookie_watcher import BookieWatcher
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.free_space import follow_free_space
from bookkeeper.client.known import KnownCluster, KnownLedger
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.ledgers.ledger_creation import (
    LedgerOptions,
    LedgerSpec,
    create,
    digest_named,
    refuse_unknown,
    takes_ledger_options,
)
from bookkeeper.client.ledgers.ledger_deletion import delete
from bookkeeper.client.ledgers.ledger_recovery import recover
from bookkeeper.client.loop_affinity import require_loop
from bookkeeper.client.read.quiet_ledgers import QuietLedgers
from bookkeeper.client.read.read_handle import ReadHandle
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.advanced_handle import AdvancedHandle
from bookkeeper.client.write.append_futures import copy_error
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.encryption import EntryOpener, ledger_opener
from bookkeeper.errors import (
    BookieError,
    BookKeeperError,
    ClientClosedError,
    IllegalOperationError,
    NoSuchLedgerError,
    RequestTimedOutError,
)
from bookkeeper.ids import Address, BookieId, LedgerId
from bookkeeper.ledger import DigestScheme, DigestType, LedgerMetadata
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.rollback import RollbackWatch
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Seams

_log = logging.getLogger(__name__)


class PendingClient:
    """What connect() returns: ``await`` it for a BookKeeper to close yourself, or ``async with`` it."""

    def __init__(self, uri: str, config: ClientConfig, seams: Seams | None, known: KnownCluster | None = None) -> None:
        self._uri = uri
        self._known = known
        self._config = config
        self._seams = seams
        self._client: BookKeeper | None = None

    def __await__(self) -> Generator[Any, None, BookKeeper]:
        return self._connect().__await__()

    async def __aenter__(self) -> BookKeeper:
        self._client = await self._connect()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._client is not None
        await self._client.close()

    async def _connect(self) -> BookKeeper:
        seams = self._seams if self._seams is not None else openers.system_seams()
        config = openers.with_surroundings(self._config)
        session_s = config.metadata_session_ms / 1000
        cluster = await openers.open_cluster(self._uri, seams, session_s=session_s, known=self._known)
        client = BookKeeper(cluster, config, seams, known=self._known)
        try:
            await client.start()
        except BaseException:
            await client.close()
            raise
        return client


class BookKeeper:
    """A client of one cluster. Belongs to the loop that made it."""

    def __init__(
        self, cluster: openers.Cluster, config: ClientConfig, seams: Seams, *, known: KnownCluster | None = None
    ) -> None:
        self._cluster = cluster
        self._reads_known = known is not None
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._closing: asyncio.Task[None] | None = None
        metadata = cluster.metadata
        locations = BookieLocations(metadata.locations, metadata.bookies, config, seams.workers)
        self._services = ClientServices(
            seams=seams,
            config=config,
            metadata=metadata,
            pool=BookiePool(cluster.net or seams.net, seams.rng, config, metadata.bookies.address),
            watcher=BookieWatcher(metadata.bookies, seams.rng, config),
            locations=locations,
            placement=placement_policy(config, locations),
        )
        if known is not None:
            self._services.pool.learn(known.addresses)
        self._handles: dict[WriteHandle | ReadHandle, None] = {}
        self._ended: BookKeeperError | None = None
        """Why this client no longer trusts its metadata; every call fails with it."""
        self._quiet: QuietLedgers | None = None
        self._tasks = Tasks("client")
        self._metadata_watch = RollbackWatch(metadata.store, metadata.present, self._give_up, self._refresh_metadata)

    @classmethod
    def connect(
        cls,
        uri: str,
        *,
        config: ClientConfig | None = None,
        seams: Seams | None = None,
        known: KnownCluster | None = None,
    ) -> PendingClient:
        """Connect to the cluster at a metadata URI (``embedded:``, ``sqlite:``, ``memory:``, ``zk+...:``).

        Without ``config.tls`` the environment decides whether connections to bookies are encrypted (``BK_TLS_CA``, ...;
        see :meth:`bookkeeper.net.tls.TlsConfig.from_environment`), so that a program that knows only the URI is secure
        too.

        Args:
            known: what another client knew of the cluster (:meth:`known_cluster`). This one then only reads, and has no
                session with the metadata store before it must ask it something: by :meth:`open_known` and while bookies
                answer it asks nothing.

        Raises (when awaited or entered):
            ConfigError: the address is not a metadata URI, or a file of ``config.tls`` cannot be used.
            NoClusterError: there is no cluster at this address (``bk init`` makes one).
            MetadataUnavailableError: the store does not answer.
        """
        return PendingClient(uri, config or ClientConfig(), seams, known)

    @classmethod
    async def over(
        cls,
        cluster: openers.Cluster,
        *,
        config: ClientConfig | None = None,
        seams: Seams,
        known: KnownCluster | None = None,
    ) -> BookKeeper:
        """A client of a cluster that is open already. Closing the client closes ``cluster``."""
        client = cls(cluster, config or ClientConfig(), seams, known=known)
        await client.start()
        return client

    async def start(self) -> None:
        """Read keys, certificates and the list of bookies. connect() calls this."""
        self._services.pool.begin()
        if not self._reads_known:
            await self._services.watcher.start()
            if self._config.placement != "random" or self._config.location is not None:
                await self._services.locations.start()
            if self._config.placement_by_free_space:
                self._tasks.start(follow_free_space(self._services), "free space of the bookies")
        self._cluster.metadata.when_open(self._watch_metadata)

    def _watch_metadata(self) -> None:
        self._tasks.start(self._metadata_watch.run(), "watch for metadata that were put back to an older state")

    # -- what it says -------------------------------------------------------------------------------------

    @property
    def metadata_store(self) -> Metadata:
        """The cluster's metadata, for tools: ledgers, bookies, cookies, and ``own(...)``."""
        return self._cluster.metadata

    @property
    def metrics(self) -> Metrics:
        """What this client counted."""
        return self._services.metrics

    @property
    def services(self) -> ClientServices:
        """The parts of this client, for tools on higher floors."""
        return self._services

    @property
    def quiet_ledgers(self) -> QuietLedgers:
        """Waits for news of ledgers that are read to their ends, and of which nothing is expected soon."""
        self._require_open()
        if self._quiet is None:
            self._quiet = QuietLedgers(self._services)
        return self._quiet

    # -- ledgers ------------------------------------------------------------------------------------------

    @overload
    async def create_ledger(
        self, *, advanced: Literal[False] = False, **options: Unpack[LedgerOptions]
    ) -> WriteHandle: ...

    @overload
    async def create_ledger(self, *, advanced: Literal[True], **options: Unpack[LedgerOptions]) -> AdvancedHandle: ...

    @takes_ledger_options
    async def create_ledger(self, *, advanced: bool = False, **options: Unpack[LedgerOptions]) -> WriteHandle:
        """Create a ledger and return its writer.

        Args:
            password: the empty one, unless it is given, as with Apache's client. Then the key that bookies compare is
                known to everybody: whoever reaches a bookie may append to the ledger and fence it. Logs with a record
                of their own (streams, journals, a gateway's files) have a random password.
            digest: ``"crc32c"``, ``"crc32"``, ``"hmac"`` or ``"dummy"``. Readers may insist on it: ``open_ledger``.
            tamper_evident: as ``digest="hmac"``: whoever does not have the password cannot make an entry that readers
                take, not even a bookie. It needs a password.
            encrypted: whether bookies see no entry in clear. None: as ``ClientConfig.encryption`` says.
            unsafe_without_digest: what ``digest="dummy"`` needs as well: readers take whatever a bookie sends.
            ledger_id: take this id instead of a new one.
            when_short: with ``"name_absent"``, and with fewer bookies up than the ensemble needs, the ledger names
                known but absent ones, as long as an ack quorum of at least two is up. No quorum is lowered.
            deferred_sync: bookies answer appends before they are durable. An append then returns an id that is
                **written, not yet durable**, and only ``force()`` moves the last add confirmed. What was not forced
                may be lost when machines lose power. A bookie that fails ends the writer, because this mode has no
                ensemble change.
            owner: whose the ledger is, for the access policy: ``"ledgers:etl"``, ``"streams:app/x"``. Default: the
                client's (``ClientConfig.owner``); without one, whoever writes the ledger first.
            advanced: the application chooses the entry ids. Returns an AdvancedHandle, for ``append_at()``.

        Raises:
            NotEnoughBookiesError: there are too few bookies; the message names them.
            LedgerExistsError: ``ledger_id`` is taken.
            ConfigError: the quorums do not fit (E >= Qw >= Qa >= 1), the digest is unknown or does not fit the password
                and the flags about it, or the id is no ledger id.
                Also for ``deferred_sync`` with ``protocol="v2"``, which cannot ask for it, or with
                ``when_short="name_absent"``.
            MetadataUnavailableError: the store does not answer. If the ledger was created, nobody else knows of it.
        """
        self._require_open()
        self._require_more_than_reading()
        refuse_unknown(options)
        wanted = LedgerSpec(**options)
        record, scheme, sealer = await create(self._services, wanted)
        kind = AdvancedHandle if advanced else WriteHandle
        handle = kind(self._services, record, scheme, self._forget, sealer=sealer, deferred_sync=wanted.deferred_sync)
        self._handles[handle] = None
        return handle

    async def open_ledger(
        self, ledger_id: int, password: bytes | None = b"", *, recovery: bool = True, digest: str | None = None
    ) -> ReadHandle:
        """Open a ledger for reading. With ``recovery`` (default) it closes an open ledger first and fences its writer.

        Args:
            password: None stands for the one in the ledger's metadata: for tools, which may read these anyway.
            digest: insist on this type, for instance ``"hmac"``. Otherwise the metadata say it: whoever may change
                them could name one that checks nothing.

        Raises:
            NoSuchLedgerError: the ledger does not exist, or was deleted.
            UnauthorizedError: the password is not the ledger's.
            DigestMismatchError: the metadata name another digest than ``digest``. Nothing was fenced.
            NoLedgerKeyError: its entries are encrypted, and this client does not have their key. Nothing was fenced.
            ConfigError: an argument is of another type.
            RecoveryInconclusiveError: too few of its bookies answer. The ledger stays in recovery: try again later.
            BookieError: without recovery: too few bookies said how far the ledger may be read.
            RequestTimedOutError: the ledger was not open within ``open_timeout_ms``. A recovery may have begun; the
                next one continues it.
        """
        self._require_open()
        if recovery:
            self._require_more_than_reading()
        number = ledger_number(ledger_id)
        if password is not None:
            require_bytes("password", password)
        wanted = None if digest is None else digest_named(digest)
        limit = asyncio.timeout(self._config.open_timeout_ms / 1000)
        try:
            async with limit:
                return await self._open_ledger(number, password, wanted, recovery=recovery)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise RequestTimedOutError(
                f"ledger {ledger_id} was not opened within {self._config.open_timeout_ms} ms (open_timeout_ms)"
                + ("; its writer may be fenced, and another open_ledger goes on with the recovery" if recovery else "")
            ) from error

    async def _open_ledger(
        self, ledger_id: LedgerId, password: bytes | None, wanted: DigestType | None, *, recovery: bool
    ) -> ReadHandle:
        record = await LedgerView.read(self._services.metadata.ledgers, ledger_id)
        digest = record.digest(password, wanted)
        opener = await self._opener_of(record)
        if recovery and not record.metadata.is_closed:
            await recover(self._services, record, digest)
        handle = ReadHandle(self._services, record, digest, self._forget, opener=opener)
        self._handles[handle] = None
        try:
            await handle.start()
        except BaseException:
            await handle.close()
            raise
        return handle

    async def _opener_of(self, record: LedgerView) -> EntryOpener | None:
        """What opens the ledger's entries; None: they are not encrypted. Raises: NoLedgerKeyError."""
        config = self._config
        return await ledger_opener(config.encryption, record.ledger_id, record.metadata.custom, config.frame_size_max)

    async def require_key(self, ledger_id: int) -> None:
        """Make sure that this client could read the ledger's entries as far as keys go, before anything is done about
        it. It asks the metadata store once.

        Raises:
            NoLedgerKeyError: its entries are encrypted, and this client does not have their key.
            NoSuchLedgerError: the ledger does not exist. MetadataError.
        """
        self._require_open()
        await self._opener_of(await LedgerView.read(self._services.metadata.ledgers, ledger_number(ledger_id)))

    async def recover_ledger(self, ledger_id: int) -> LedgerMetadata:
        """Fence the ledger's writer, find the ledger's end and close it; a closed ledger stays as it is. The password
        is that of its metadata. No entry is opened: the key of an encrypted ledger is not needed.

        Returns: the metadata that are stored then. Raises: as :meth:`open_ledger`.
        """
        self._require_open()
        self._require_more_than_reading()
        limit_ms = self._config.open_timeout_ms
        limit = asyncio.timeout(limit_ms / 1000)
        record = await LedgerView.read(self._services.metadata.ledgers, ledger_number(ledger_id))
        try:
            async with limit:
                if not record.metadata.is_closed:
                    await recover(self._services, record, record.digest(None, None))
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise RequestTimedOutError(
                f"ledger {ledger_id} was not recovered within {limit_ms} ms (open_timeout_ms); its writer may be "
                "fenced, and another recovery goes on with this one"
            ) from error
        return record.metadata

    async def open_known(self, known: KnownLedger, password: bytes = b"") -> ReadHandle:
        """Open a ledger that another reader knew (:attr:`ReadHandle.known`), without asking anybody. What that reader
        might read can be read. The metadata are asked only if no bookie gives an entry, and to learn of more.

        Raises: ConfigError: an argument is of another type. NoLedgerKeyError: as ``open_ledger``.
        """
        self._require_open()
        require_bytes("password", password)
        versioned = known.versioned
        record = LedgerView(self._services.metadata.ledgers, known.ledger_id, versioned)
        digest = DigestScheme(versioned.value.digest_type or DigestType.CRC32, password)
        opener = await self._opener_of(record)
        handle = ReadHandle(self._services, record, digest, self._forget, opener=opener, last=known.last)
        self._handles[handle] = None
        return handle

    async def known_cluster(self, ledgers: Iterable[KnownLedger]) -> KnownCluster:
        """What a client elsewhere must know to read these ledgers. A bookie that is not there now is left out.

        Raises: MetadataUnavailableError: the store does not answer.
        """
        self._require_open()
        metadata, addresses = self._services.metadata, dict[BookieId, Address]()
        for bookie in sorted({bookie for ledger in ledgers for bookie in ledger.bookies}):
            with suppress(BookieError):
                addresses[bookie] = await self._services.pool.address(bookie)
        return KnownCluster(metadata.layout, metadata.instance_id, addresses)

    def learn(self, known: KnownCluster) -> None:
        """Take newer addresses of bookies."""
        self._require_open()
        self._services.pool.learn(known.addresses)

    async def delete_ledger(self, ledger_id: int, *, force: bool = False, grace_s: int | None = None) -> None:
        """Delete a ledger. If it is not closed, a recovery closes it first, which fences its writer. For a grace time
        :meth:`Operator.undelete_ledger` brings it back; its bookies reclaim the space after that.

        Args:
            grace_s: that time in seconds; None: the client's ``delete_grace_s``. With 0 the ledger is gone at once;
                that also ends the grace time of a ledger that is deleted already.
            force: delete the ledger also if it cannot be closed, because its bookies do not answer or are gone. Bookies
                may then acknowledge a running writer for a while, and what it appends is lost.

        Raises:
            NoSuchLedgerError: the ledger does not exist.
            RecoveryInconclusiveError: without ``force``: the ledger cannot be closed now, and was not deleted.
            MetadataUnavailableError: it is not known whether the ledger was deleted; call again.
        """
        self._require_open()
        self._require_more_than_reading()
        await delete(self._services, ledger_number(ledger_id), force=force, grace_s=grace_s)

    async def list_ledgers(self) -> AsyncIterator[LedgerId]:
        """Ids of all ledgers, ascending."""
        self._require_open()
        async for ledger_id in self._services.metadata.ledgers.list():
            yield ledger_id

    async def metadata(self, ledger_id: int) -> LedgerMetadata:
        """Read a ledger's metadata from the store. Raises: NoSuchLedgerError."""
        self._require_open()
        return (await self._services.metadata.ledgers.read(ledger_number(ledger_id), fresh=True)).value

    async def exists(self, ledger_id: int) -> bool:
        """Read from the store whether the ledger exists."""
        try:
            await self.metadata(ledger_id)
        except NoSuchLedgerError:
            return False
        return True

    # -- the end ------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Abandon handles that are still open, close connections and, for ``embedded:``, stop its bookies.

        Writers that are still open are *not* closed: their ledgers wait for a recovery. Idempotent.
        """
        self._require_here()
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._tasks.close()
        for handle in list(self._handles):
            if isinstance(handle, WriteHandle):
                await handle.abandon()
            else:
                await handle.close()
        if self._quiet is not None:
            await self._quiet.close()
        await self._services.locations.close()
        await self._services.watcher.close()
        await self._services.pool.close()
        await self._cluster.close()

    async def __aenter__(self) -> BookKeeper:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- inside -------------------------------------------------------------------------------------------

    def _give_up(self, error: BookKeeperError) -> None:
        """End every handle with ``error``: the metadata are older than before, or the cluster has moved."""
        self._ended = error
        for handle in list(self._handles):
            handle.fail(error)

    def _refresh_metadata(self) -> None:
        for handle in list(self._handles):
            if isinstance(handle, WriteHandle):
                handle.refresh_metadata()

    def _forget(self, handle: WriteHandle | ReadHandle) -> None:
        self._handles.pop(handle, None)

    def _require_more_than_reading(self) -> None:
        if self._reads_known:
            raise IllegalOperationError("this client only reads what others knew: connect() without ``known``")

    def _require_here(self) -> None:
        require_loop(self._loop, "this client", "connect() where it is used")

    def _require_open(self) -> None:
        self._require_here()
        if self._closing is not None:
            raise ClientClosedError("this client is closed: connect() again")
        if self._ended is not None:
            raise copy_error(self._ended)
