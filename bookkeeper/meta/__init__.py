"""METADATA: ledgers, bookies and cookies in ZooKeeper, SQLite or memory, changed by compare-and-set.

Begin with :mod:`~bookkeeper.meta.store` (what a store promises), then :mod:`~bookkeeper.meta.cluster` (the object that
other packages use). Bytes and paths are those of Apache BookKeeper: both can share one tree.

records            what is kept: each kind with its path, bytes and compare-and-set
stores             ZooKeeper, SQLite, memory
service_uri        from an address to a store
backup, store_copy, acceptance
                   metadata saved while the cluster runs; moved to another store; put back to an older state
store_steps        steps with a whole store: through all of it, for certain, while nobody uses it
policy_follower, access_coverage
                   a server's copy of the access policy; which bookies follow it
"""

from bookkeeper.meta.cluster import Metadata, init_cluster, init_cluster_in
from bookkeeper.meta.records.bookies import Bookies, Registration
from bookkeeper.meta.records.cookies import Cookie, Cookies
from bookkeeper.meta.records.ledgers import Ledgers
from bookkeeper.meta.records.service_info import Endpoint, ServiceInfo
from bookkeeper.meta.service_uri import open_store
from bookkeeper.meta.store import MetadataStore, SessionState, Version, Versioned, Watch

__all__ = [
    "Bookies",
    "Cookie",
    "Cookies",
    "Endpoint",
    "Ledgers",
    "Metadata",
    "MetadataStore",
    "Registration",
    "ServiceInfo",
    "SessionState",
    "Version",
    "Versioned",
    "Watch",
    "init_cluster",
    "init_cluster_in",
    "open_store",
]
