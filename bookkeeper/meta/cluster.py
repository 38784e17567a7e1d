"""A cluster in a metadata store: making one, and the bundle of everything kept in it."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

from bookkeeper.errors import (
    ClusterExistsError,
    ConfigError,
    KeyExistsError,
    NoClusterError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.meta import service_uri
from bookkeeper.meta.records import layout as layouts
from bookkeeper.meta.records import lineage as lineages
from bookkeeper.meta.records.access_policy import AccessPolicies
from bookkeeper.meta.records.access_servers import AccessServers
from bookkeeper.meta.records.bookies import Bookies
from bookkeeper.meta.records.cookies import Cookies
from bookkeeper.meta.records.disks import Disks
from bookkeeper.meta.records.layout import Layout
from bookkeeper.meta.records.ledger_owners import LedgerOwners
from bookkeeper.meta.records.ledgers import Ledgers
from bookkeeper.meta.records.lineage import Lineage
from bookkeeper.meta.records.locations import Locations
from bookkeeper.meta.records.paths import DEFAULT_ROOT, Paths
from bookkeeper.meta.records.rollback import RollbackCheck
from bookkeeper.meta.records.under_replication import UnderReplication
from bookkeeper.meta.store import OUTCOME_UNKNOWN, Create, MetadataStore, ensure_created, get_or_none, parent_of
from bookkeeper.meta.stores import access_list
from bookkeeper.meta.stores.late import LateStore
from bookkeeper.seams import Seams


class Metadata:
    """The metadata of one cluster, as one process uses them."""

    def __init__(self, store: MetadataStore, paths: Paths, layout: Layout, instance_id: str, seams: Seams) -> None:
        self.store = store
        self.paths = paths
        self.layout = layout
        self.instance_id = instance_id
        """The cluster's UUID as text."""
        self.access = AccessPolicies(store, paths)
        self.access_servers = AccessServers(store, paths)
        self.ledger_owners = LedgerOwners(store, paths)
        self.cookies = Cookies(store, paths)
        self.bookies = Bookies(store, paths, self.cookies)
        self.disks = Disks(store, paths)
        self.locations = Locations(store, paths)
        self.under_replication = UnderReplication(store, paths)
        self.present = RollbackCheck(store, paths)
        """Checks that these metadata are those with which this process began, or later ones."""
        self.ledgers = Ledgers(store, paths, layout, seams.rng, self.present)
        self.repairs: dict[LedgerId, str] = {}
        """Ledgers that this client repairs now, each with the repair's owner. A lock names only the session, which all
    repairs of the client share."""

    @classmethod
    async def connect(cls, uri: str, seams: Seams, *, session_s: float = service_uri.SESSION_S) -> Metadata:
        """Open the store at ``uri`` and read which cluster it has. :meth:`close` ends the session.

        ``session_s``: seconds without contact after which the session ends (ZooKeeper's servers have limits of their
        own).

        Raises:
            ConfigError: the address is invalid, or names another layout than the cluster's.
            NoClusterError: there is no cluster at the address.
            ClusterMovedError: the cluster has moved to another store.
            MetadataUnavailableError: the store does not answer.
        """
        address = replace(service_uri.parse(uri), session_s=session_s)
        if not service_uri.may_exist(address, seams):
            raise _no_cluster(uri)
        store = await service_uri.open_store(address, seams)
        try:
            wanted = layouts.BY_URI_NAME[address.layout] if address.layout else None
            return await cls.over(store, seams, root=address.root, layout=wanted)
        except NoClusterError as error:
            await store.close()
            raise _no_cluster(uri) from error
        except BaseException:
            await store.close()
            raise

    @classmethod
    async def over(
        cls, store: MetadataStore, seams: Seams, *, root: str = DEFAULT_ROOT, layout: Layout | None = None
    ) -> Metadata:
        """As :meth:`connect`, over a store that is open already.

        A cluster without a recorded layout gets ``layout`` (by default the hierarchical one), as in Java.
        """
        paths = Paths(root)
        await store.sync(root)
        came = await lineages.read(store, paths)
        if (instance := await get_or_none(store, paths.instance_id)) is None:
            raise NoClusterError(f"there is no cluster at {root}; `bk init` makes one")
        await access_list.warn_if_open(store, paths)
        found = await _recorded_layout(store, paths, layout or Layout.HIERARCHICAL)
        if layout is not None and layout is not found:
            raise ConfigError(
                f"the address names the layout {layout.name.lower()}, but the cluster has {found.name.lower()}: use "
                "zk:// without a layout"
            )
        metadata = cls(store, paths, found, instance.value.decode(), seams)
        metadata.present.lineage = came
        return metadata

    @classmethod
    def late(
        cls,
        connect: Callable[[], Awaitable[Metadata]],
        seams: Seams,
        layout: Layout,
        instance_id: str,
        *,
        root: str = DEFAULT_ROOT,
    ) -> Metadata:
        """The metadata of a cluster of which the caller knows the layout and the id: the session begins with the first
        question. That raises what ``connect`` does, and NoClusterError if another cluster is there."""

        async def opened() -> MetadataStore:
            found = await connect()
            if found.instance_id != instance_id:
                await found.close()
                raise NoClusterError(
                    f"the cluster at {root} has the id {found.instance_id}, and not {instance_id}: it was made anew"
                )
            metadata.present.lineage = found.lineage
            return found.store

        metadata = cls(LateStore(opened), Paths(root), layout, instance_id, seams)
        return metadata

    def when_open(self, callback: Callable[[], None]) -> None:
        """Call back as soon as there is a session: now, or once if it begins late."""
        if isinstance(self.store, LateStore) and not self.store.is_open:
            self.store.on_opened = callback
        else:
            callback()

    @property
    def lineage(self) -> Lineage:
        """The moves from store to store that led to this one."""
        return self.present.lineage

    async def check_not_rolled_back(self, mark: bytes) -> None:
        """Check that the store shows at least what :meth:`seen` noted in an earlier process, also across a move.

        Raises:
            MetadataRolledBackError: the store shows less, or the cluster has moved away from it.
            ValueError: the note cannot be read.
        """
        await self.store.check_not_rolled_back(self.lineage.must_have_seen(mark))

    def seen(self) -> bytes:
        """A note of what was seen up to now, for :meth:`check_not_rolled_back`."""
        return self.lineage.mark(self.store.last_transaction)

    def own(self, *parts: str) -> str:
        """A path of the state beside the cluster's root that only this package knows: ``own("boot", bookie_id)``."""
        return self.paths.own(*parts)

    async def close(self) -> None:
        """Close the store. Idempotent."""
        await self.store.close()


def _no_cluster(uri: str) -> NoClusterError:
    return NoClusterError(f"there is no cluster at {uri}: `bk init --metadata {uri}` makes one")


async def _recorded_layout(store: MetadataStore, paths: Paths, default: Layout) -> Layout:
    while True:
        if (found := await get_or_none(store, paths.layout)) is not None:
            return layouts.decode(found.value)
        await ensure_created(store, paths.layout, layouts.encode(default))


async def init_cluster(uri: str, seams: Seams) -> str:
    """Make a new cluster, as Java's ``initnewcluster`` does. Returns its instance id.

    Raises:
        ClusterExistsError: there is a cluster already.
        ConfigError: the address is invalid.
        MetadataUnavailableError: the store does not answer.
    """
    address = service_uri.parse(uri)
    store = await service_uri.open_store(address, seams)
    try:
        layout = layouts.BY_URI_NAME[address.layout] if address.layout else Layout.HIERARCHICAL
        return await init_cluster_in(store, seams, root=address.root, layout=layout)
    finally:
        await store.close()


async def init_cluster_in(
    store: MetadataStore, seams: Seams, *, root: str = DEFAULT_ROOT, layout: Layout = Layout.HIERARCHICAL
) -> str:
    """As :func:`init_cluster`, in a store that is open already.

    One multi creates the root, ``available``, ``available/readonly`` and INSTANCEID. LAYOUT follows; if it is missing,
    the next connection creates it.
    """
    paths = Paths(root)
    instance_id = str(uuid.UUID(int=seams.rng.getrandbits(128), version=4))
    await ensure_created(store, parent_of(root))
    try:
        await store.multi(
            [
                Create(paths.root),
                Create(paths.available),
                Create(paths.read_only),
                Create(paths.instance_id, instance_id.encode()),
            ]
        )
    except KeyExistsError as error:
        raise ClusterExistsError(f"{root} exists already: make the cluster at another path") from error
    except OUTCOME_UNKNOWN:
        if (found := await get_or_none(store, paths.instance_id, fresh=True)) is None:
            return await init_cluster_in(store, seams, root=root, layout=layout)
        if found.value != instance_id.encode():
            raise ClusterExistsError(f"there is a cluster at {root} already") from None
    await _recorded_layout(store, paths, layout)
    return instance_id
