"""A cluster in a metadata store: making one, and the bundle of everything kept in it."""

from __future__ import annotations

from collections.abc import Sequence

from bookkeeper.meta.bookies import Bookies
from bookkeeper.meta.cookies import Cookies
from bookkeeper.meta.ledgers import Ledgers
from bookkeeper.meta.paths import DEFAULT_ROOT, Paths
from bookkeeper.meta.store import MetadataStore
from bookkeeper.seams import Seams


class Metadata:
    """All that one process asks of the metadata of one cluster."""

    store: MetadataStore
    paths: Paths
    instance_id: str
    """The cluster's UUID as text."""
    ledgers: Ledgers
    bookies: Bookies
    cookies: Cookies

    @classmethod
    async def connect(cls, uri: str, seams: Seams) -> Metadata:
        """Open the store of ``uri`` and read which cluster it is; :meth:`close` ends the session.

        Raises:
            ConfigError: not such an address.
            NoClusterError: nothing was initialised there.
            MetadataUnavailableError: the store does not answer.
        """
        raise NotImplementedError

    @classmethod
    async def over(cls, store: MetadataStore, seams: Seams, *, root: str = DEFAULT_ROOT) -> Metadata:
        """The same over a store that is open already."""
        raise NotImplementedError

    def own(self, *parts: str) -> str:
        """A path of our own state beside the cluster's root (D4): ``own("boot", bookie_id)``."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the store. Idempotent."""
        raise NotImplementedError


async def init_cluster(uri: str, seams: Seams) -> str:
    """Make a new cluster, as Java's ``initnewcluster`` does; answer its instance id.

    Raises:
        ClusterExistsError: there is one.
    """
    raise NotImplementedError


async def init_cluster_in(store: MetadataStore, seams: Seams, *, root: str = DEFAULT_ROOT) -> str:
    """The same in a store that is open already."""
    raise NotImplementedError


async def exists_cluster_in(store: MetadataStore, *, root: str = DEFAULT_ROOT) -> bool:
    """Whether a cluster was made there."""
    raise NotImplementedError


__all__: Sequence[str] = ["Metadata", "exists_cluster_in", "init_cluster", "init_cluster_in"]
