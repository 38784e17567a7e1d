"""Values inside HDFS's edits: blocks, permissions, attributes, cache directives, tokens, schemas."""

from __future__ import annotations

from typing import NamedTuple


class Block(NamedTuple):
    """One block of a file."""

    id: int
    length: int
    generation: int


class Permissions(NamedTuple):
    """Who owns an inode, and what is allowed."""

    owner: str
    group: str
    mode: int


class HdfsAclEntry(NamedTuple):
    """One entry of an access control list, as the numbers of HDFS's enumerations.

    ``scope``: 0 access, 1 default; ``type``: 0 user, 1 group, 2 mask, 3 other; ``permission``: 0 to 7, as in a mode.
    """

    scope: int
    type: int
    permission: int
    name: str | None = None


class XAttr(NamedTuple):
    """One extended attribute; ``namespace``: 0 user, 1 trusted, 2 security, 3 system, 4 raw."""

    namespace: int
    name: str
    value: bytes | None = None


class PathAcl(NamedTuple):
    """An access control list for a path."""

    path: str
    entries: tuple[HdfsAclEntry, ...]


class PathXAttrs(NamedTuple):
    """Extended attributes of a path."""

    path: str
    xattrs: tuple[XAttr, ...]


class CacheDirective(NamedTuple):
    """What is to be cached; None: this edit leaves it as it is."""

    id: int
    path: str | None = None
    replication: int | None = None
    pool: str | None = None
    expires: int | None = None


class CachePool(NamedTuple):
    """A pool of cache directives; None: this edit leaves it as it is."""

    name: str
    owner: str | None = None
    group: str | None = None
    mode: int | None = None
    limit: int | None = None
    longest_ms: int | None = None
    replication: int | None = None


class DelegationToken(NamedTuple):
    """The public part of a delegation token."""

    owner: str
    renewer: str
    real_user: str
    issued: int
    ends: int
    sequence: int
    key_id: int


class DelegationKey(NamedTuple):
    """The key that signs delegation tokens."""

    id: int
    expires: int
    key: bytes | None = None


class ErasureCodingSchema(NamedTuple):
    """How an erasure coding policy divides data."""

    codec: str
    data_units: int
    parity_units: int
    cell_size: int
    options: tuple[tuple[str, str], ...] = ()
