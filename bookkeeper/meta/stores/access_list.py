"""Who may read and change a cluster's nodes in ZooKeeper, and which nodes have a wrong access list.

Ledger metadata hold the ledgers' passwords, and anyone who may change a node can end, empty or hide a ledger. So with
an identity every node belongs to its creator, and the configured readers may read it. This module finds nodes with
another access list: made earlier, by a session without identity, or by Java, which leaves ``idgen-long/HOB-*`` and
``lostBookieRecoveryDelay`` open to everybody.
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
    """A node with a wrong access list."""

    path: str
    found: tuple[AclEntry, ...]
    """The entries that were found. Empty: this session may not even read the list."""

    @property
    def problem(self) -> str:
        """The worst entry, as a sentence for people."""
        if not self.found:
            return "does not let us look at it"
        for entry in self.found:
            if (entry.scheme, entry.name) == ("world", "anyone"):
                return f"everybody may {'change' if set(entry.may) - {'r'} else 'read'} it"
        return f"its access list is {', '.join(map(str, self.found))}"


class AccessStore(MetadataStore, Protocol):
    """A store with access lists: the one in ZooKeeper."""

    @property
    def identified(self) -> bool:
        """Whether the session has an identity, to which what it creates belongs."""

    async def access(self, path: str) -> list[AclEntry]: ...
    async def take(self, path: str) -> None: ...


async def warn_if_open(store: MetadataStore, paths: Paths) -> None:
    """Warn at the start if everybody may change the root, because then the credentials are useless."""
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
    """Every node of a cluster whose access list differs from what this session would give it.

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
    """The access list that ZooKeeper gives to "the creator", read from a node that is deleted at once."""
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
