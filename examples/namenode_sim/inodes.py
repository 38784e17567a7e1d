"""What a namespace is made of: directories, files and symbolic links. Data, changed by :mod:`.namespace` alone."""

from __future__ import annotations

from journal_manager.hdfs.hdfs_ops import Block, HdfsAclEntry

NO_QUOTA = -1
UNLIMITED = 2**63 - 1
ROOT_ID = 16385
"""HDFS numbers inodes from here on."""


class Inode:
    """What directories, files and links have in common. Times are milliseconds since 1970."""

    __slots__ = ("acl", "group", "id", "mode", "mtime", "name", "owner", "parent", "policy", "xattrs")

    def __init__(self, number: int, name: str, owner: str, group: str, mode: int, mtime: int) -> None:
        self.id = number
        self.name = name
        self.parent: DirectoryInode | None = None
        """None: the root, or not in the tree."""
        self.owner = owner
        self.group = group
        self.mode = mode
        self.mtime = mtime
        self.acl: tuple[HdfsAclEntry, ...] = ()
        self.xattrs: dict[tuple[int, str], bytes | None] | None = None
        """(Namespace, name) -> value; None: there are none."""
        self.policy = 0
        """The storage policy; 0: that of the parent."""

    @property
    def path(self) -> str:
        names = []
        inode: Inode = self
        while inode.parent is not None:
            names.append(inode.name)
            inode = inode.parent
        return "/" + "/".join(reversed(names))


class DirectoryInode(Inode):
    __slots__ = ("children", "name_quota", "snapshots", "space_quota")

    def __init__(self, number: int, name: str, owner: str, group: str, mode: int, mtime: int) -> None:
        super().__init__(number, name, owner, group, mode, mtime)
        self.children: dict[str, Inode] = {}
        self.name_quota = NO_QUOTA
        self.space_quota = NO_QUOTA
        self.snapshots: dict[str, int] | None = None
        """Name -> time of each snapshot; None: snapshots are not allowed."""


class FileInode(Inode):
    __slots__ = ("atime", "block_size", "blocks", "client", "replication")

    def __init__(
        self,
        number: int,
        name: str,
        owner: str,
        group: str,
        mode: int,
        mtime: int,
        atime: int,
        replication: int,
        block_size: int,
    ) -> None:
        super().__init__(number, name, owner, group, mode, mtime)
        self.atime = atime
        self.replication = replication
        self.block_size = block_size
        self.blocks: tuple[Block, ...] = ()
        self.client: str | None = None
        """Who has the file open for writing; None: nobody."""

    @property
    def length(self) -> int:
        return sum(block.length for block in self.blocks)


class SymlinkInode(Inode):
    __slots__ = ("atime", "target")

    def __init__(
        self, number: int, name: str, owner: str, group: str, mode: int, mtime: int, atime: int, target: str
    ) -> None:
        super().__init__(number, name, owner, group, mode, mtime)
        self.atime = atime
        self.target = target
