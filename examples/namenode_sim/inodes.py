"""What a namespace is made of: directories, files and symbolic links. Data, changed by :mod:`.namespace` alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from journal_manager.hdfs.op_values import Block, HdfsAclEntry

NO_QUOTA = -1
UNLIMITED = 2**63 - 1
ROOT_ID = 16385
"""HDFS numbers inodes from here on."""


@dataclass(slots=True, eq=False)
class Inode:
    """What directories, files and links have in common. Times are milliseconds since 1970."""

    id: int
    name: str
    owner: str
    group: str
    mode: int
    mtime: int
    parent: DirectoryInode | None = field(default=None, init=False)
    """None: the root, or not in the tree."""
    acl: tuple[HdfsAclEntry, ...] = field(default=(), init=False)
    xattrs: dict[tuple[int, str], bytes | None] | None = field(default=None, init=False)
    """(Namespace, name) -> value; None: there are none."""
    policy: int = field(default=0, init=False)
    """The storage policy; 0: that of the parent."""

    @property
    def path(self) -> str:
        names = []
        inode: Inode = self
        while inode.parent is not None:
            names.append(inode.name)
            inode = inode.parent
        return "/" + "/".join(reversed(names))


@dataclass(slots=True, eq=False)
class DirectoryInode(Inode):
    children: dict[str, Inode] = field(default_factory=dict, init=False)
    name_quota: int = field(default=NO_QUOTA, init=False)
    space_quota: int = field(default=NO_QUOTA, init=False)
    snapshots: dict[str, int] | None = field(default=None, init=False)
    """Name -> time of each snapshot; None: snapshots are not allowed."""


@dataclass(slots=True, eq=False)
class FileInode(Inode):
    atime: int
    replication: int
    block_size: int
    blocks: tuple[Block, ...] = field(default=(), init=False)
    client: str | None = field(default=None, init=False)
    """Who has the file open for writing; None: nobody."""

    @property
    def length(self) -> int:
        return sum(block.length for block in self.blocks)


@dataclass(slots=True, eq=False)
class SymlinkInode(Inode):
    atime: int
    target: str
