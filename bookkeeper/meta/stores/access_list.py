"""Who may read and change a cluster's nodes in ZooKeeper, and which nodes are not as they ought to be.

Ledger metadata hold the ledgers' passwords, and whoever may change a node can end, empty or hide a ledger. So with an
identity every node is the creator's, plus what the configured readers may read. Nodes that were made before, by a
session without identity, or by Java, which leaves ``idgen-long/HOB-*`` and ``lostBookieRecoveryDelay`` open to all,
are found here.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from bookkeeper.errors import KeyExistsError, MetadataForbiddenError, NoSuchKeyError
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, order=True)
class AclEntry:
    """One entry of an access list."""

    scheme: str
    name: str
    may: str
    """Letters of c(reate children) d(elete children) r(ead) w(rite) a(dminister)."""

    def __str__(self) -> str:
        return f"{self.scheme}:{self.name}:{self.may}"


@dataclass(frozen=True, slots=True)
class AclDeviation:
    """A node with another access list than it ought to have."""

    path: str
    found: tuple[AclEntry, ...]
    """Empty: it may not even be looked at."""

    @property
    def problem(self) -> str:
        """The worst of it, for people."""
        if not self.found:
            return "does not let us look at it"
        for entry in self.found:
            if (entry.scheme, entry.name) == ("world", "anyone"):
                return f"everybody may {'change' if set(entry.may) - {'r'} else 'read'} it"
        return f"its access list is {', '.join(map(str, self.found))}"


class AccessStore(MetadataStore, Protocol):
    """A store that has access lists: the one in ZooKeeper."""

    @property
    def identified(self) -> bool:
        """Is this session somebody, so that what it creates is its own?"""

    async def access(self, path: str) -> list[AclEntry]: ...
    async def take(self, path: str) -> None: ...


async def warn_if_open(store: MetadataStore, paths: Paths) -> None:
    """One look at the start: a root that everybody may change makes the credentials useless."""
    if not getattr(store, "identified", False):
        return
    listed = cast(AccessStore, store)
    try:
        found = AclDeviation(paths.root, tuple(await listed.access(paths.root)))
    except (NoSuchKeyError, MetadataForbiddenError):
        return
    if any((entry.scheme, entry.name) == ("world", "anyone") and set(entry.may) - {"r"} for entry in found.found):
        _log.warning("%s: %s; `bk metadata audit-acls --fix` repairs the cluster", paths.root, found.problem)


async def audit(store: AccessStore, paths: Paths) -> AsyncIterator[AclDeviation]:
    """Every node of a cluster whose access list is not what this session would give it.

    Raises:
        MetadataForbiddenError: this session has no identity, or may not list a node's children.
    """
    wanted = sorted(await _own_list(store, paths))
    for root in (paths.root, paths.own_root):
        async for path in _walk(store, root):
            try:
                found = await store.access(path)
            except NoSuchKeyError:
                continue
            except MetadataForbiddenError:
                yield AclDeviation(path, ())
                continue
            if sorted(found) != wanted:
                yield AclDeviation(path, tuple(found))


async def _own_list(store: AccessStore, paths: Paths) -> Sequence[AclEntry]:
    """What ZooKeeper makes of "the creator": seen on a node that goes at once, and with the session at the latest."""
    while True:
        try:
            path, _ = await store.create(paths.own("audit-"), ephemeral=True, sequential=True, parents=True)
        except KeyExistsError:
            continue
        try:
            return await store.access(path)
        finally:
            await store.delete(path, None)


async def _walk(store: MetadataStore, path: str) -> AsyncIterator[str]:
    try:
        names = await store.children(path)
    except NoSuchKeyError:
        return
    yield path
    for name in names:
        async for below in _walk(store, f"{path}/{name}"):
            yield below
