"""The tree, and what each of HDFS's edits does to it. A machine: no I/O, no clock, no chance.

    namespace.apply(txid, op)     the next edit; the live name node and a replay run the same code
    namespace.find(path)          what is there

An edit is checked before anything is changed, and must be the next one by its id. So an edit that is applied twice, or
left out, is an error: most do not fit a second time, and the id tells the others.

Kept: the tree with owners, modes, times, access control lists, extended attributes, quotas, storage policies, blocks
and open files; the names and times of snapshots, not their contents; cache pools and directives; the requests that
edits carry. Refused by name: delegation tokens, erasure coding policies, quotas by storage type, rolling upgrades.
Quotas are kept and not enforced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from examples.namenode_sim.errors import (
    InodeExistsError,
    InodeKindError,
    InodeMissingError,
    NamespaceError,
    OpenFileError,
    ReplayError,
    UnsupportedOpError,
)
from examples.namenode_sim.inodes import (
    ROOT_ID,
    UNLIMITED,
    DirectoryInode,
    FileInode,
    Inode,
    SymlinkInode,
)
from examples.namenode_sim.retry_cache import RetryCache
from journal_manager.hdfs.hdfs_ops import (
    AddBlockOp,
    AddCacheDirectiveOp,
    AddCachePoolOp,
    AddOp,
    AllocateBlockIdOp,
    AllowSnapshotOp,
    AppendOp,
    CloseOp,
    ConcatDeleteOp,
    CreateSnapshotOp,
    DeleteOp,
    DeleteSnapshotOp,
    DisallowSnapshotOp,
    EndLogSegmentOp,
    HdfsOp,
    MkdirOp,
    ModifyCacheDirectiveOp,
    ModifyCachePoolOp,
    ReassignLeaseOp,
    RemoveCacheDirectiveOp,
    RemoveCachePoolOp,
    RemoveXAttrOp,
    RenameOldOp,
    RenameOp,
    RenameSnapshotOp,
    SetAclOp,
    SetGenstampV2Op,
    SetOwnerOp,
    SetPermissionsOp,
    SetQuotaOp,
    SetReplicationOp,
    SetStoragePolicyOp,
    SetXAttrOp,
    StartLogSegmentOp,
    SymlinkOp,
    TimesOp,
    TruncateOp,
    UpdateBlocksOp,
)
from journal_manager.hdfs.op_values import Block, CacheDirective, CachePool, HdfsAclEntry, XAttr

UNCHANGED: Final = -1
"""In an edit: this time stays as it is."""
OVERWRITE: Final = 1
"""The option of a rename that replaces its target."""
FIRST_BLOCK_ID: Final = 1 << 30
FIRST_GENERATION: Final = 1000
_ACCESS, _GROUP, _MASK = 0, 1, 2


class HdfsNamespace:
    """One namespace, at one transaction id."""

    def __init__(self, *, owner: str = "root", group: str = "supergroup") -> None:
        """An empty namespace: the root, at id 0."""
        self.root = DirectoryInode(ROOT_ID, "", owner, group, 0o755, 0)
        self.root.name_quota = UNLIMITED
        self.txid = 0
        """The id of the last edit that was applied."""
        self.last_inode_id = ROOT_ID
        self.last_block_id = FIRST_BLOCK_ID
        self.generation = FIRST_GENERATION
        """The last generation stamp that was given out."""
        self.cache_pools: dict[str, CachePool] = {}
        self.cache_directives: dict[int, CacheDirective] = {}
        self.requests = RetryCache()
        self._directories: dict[str, DirectoryInode] = {"": self.root}
        """Directories by path, as far as they were looked for since one was moved or removed."""
        handlers: dict[type, Callable[[Any], None]] = {
            AddOp: self._add,
            CloseOp: self._close,
            AddBlockOp: self._add_block,
            UpdateBlocksOp: self._update_blocks,
            SetGenstampV2Op: self._set_generation,
            AllocateBlockIdOp: self._allocate_block,
            MkdirOp: self._mkdir,
            DeleteOp: self._delete,
            RenameOldOp: self._rename_old,
            RenameOp: self._rename,
            TimesOp: self._times,
            SetReplicationOp: self._set_replication,
            SetPermissionsOp: self._set_permissions,
            SetOwnerOp: self._set_owner,
            AppendOp: self._append,
            TruncateOp: self._truncate,
            ConcatDeleteOp: self._concat,
            SetQuotaOp: self._set_quota,
            SymlinkOp: self._symlink,
            ReassignLeaseOp: self._reassign_lease,
            SetAclOp: self._set_acl,
            SetXAttrOp: self._set_xattr,
            RemoveXAttrOp: self._remove_xattr,
            SetStoragePolicyOp: self._set_storage_policy,
            AllowSnapshotOp: self._allow_snapshot,
            DisallowSnapshotOp: self._disallow_snapshot,
            CreateSnapshotOp: self._create_snapshot,
            DeleteSnapshotOp: self._delete_snapshot,
            RenameSnapshotOp: self._rename_snapshot,
            AddCachePoolOp: self._add_cache_pool,
            ModifyCachePoolOp: self._modify_cache_pool,
            RemoveCachePoolOp: self._remove_cache_pool,
            AddCacheDirectiveOp: self._add_cache_directive,
            ModifyCacheDirectiveOp: self._modify_cache_directive,
            RemoveCacheDirectiveOp: self._remove_cache_directive,
            StartLogSegmentOp: self._nothing,
            EndLogSegmentOp: self._nothing,
        }
        self._handlers = {kind: (handler, hasattr(kind, "client_id")) for kind, handler in handlers.items()}

    # -- edits --------------------------------------------------------------------------------------------

    def apply(self, txid: int, op: HdfsOp) -> None:
        """Apply the next edit.

        Raises:
            ReplayError: it is not the next one, or does not fit. Nothing was changed.
            UnsupportedOpError: this simulation does not keep what the edit is about.
        """
        if txid != self.txid + 1:
            raise ReplayError(f"edit {txid} cannot be applied behind edit {self.txid}: the ids rise by one")
        handler, carries_request = self._handlers.get(type(op), (None, False))
        if handler is None:
            raise UnsupportedOpError(f"edit {txid} is a {type(op).__name__}, which this simulation does not keep")
        try:
            handler(op)
        except NamespaceError as error:
            raise ReplayError(f"edit {txid} ({type(op).__name__}) does not fit: {error}") from error
        self.txid = txid
        if carries_request and op.client_id:  # type: ignore[union-attr]
            self.requests.note(op.client_id, op.call_id, txid)  # type: ignore[union-attr]

    def _nothing(self, op: StartLogSegmentOp | EndLogSegmentOp) -> None:
        """The edits at both ends of a segment change nothing."""

    # -- looking ------------------------------------------------------------------------------------------

    def find(self, path: str) -> Inode | None:
        """What is at ``path``, which is absolute and has no slash at its end; None: nothing."""
        above, _, name = path.rpartition("/")
        if not name:
            return self.root if path == "/" else None
        directory = self._directories.get(above) or self._look_up(above)
        return None if directory is None else directory.children.get(name)

    def _look_up(self, path: str) -> DirectoryInode | None:
        inode: Inode = self.root
        for name in path.split("/")[1:]:
            if not isinstance(inode, DirectoryInode):
                return None
            child = inode.children.get(name)
            if child is None:
                return None
            inode = child
        if not isinstance(inode, DirectoryInode):
            return None
        self._directories[path] = inode
        return inode

    def inode(self, path: str) -> Inode:
        """What is at ``path``. Raises: InodeMissingError."""
        found = self.find(path)
        if found is None:
            raise InodeMissingError(f"there is nothing at {path}")
        return found

    def file(self, path: str) -> FileInode:
        """The file at ``path``. Raises: InodeMissingError, InodeKindError."""
        found = self.inode(path)
        if not isinstance(found, FileInode):
            raise InodeKindError(f"{path} is no file")
        return found

    def open_file(self, path: str) -> FileInode:
        """The file at ``path``, which is open for writing. Raises: OpenFileError, and as ``file``."""
        found = self.find(path)
        if not isinstance(found, FileInode):
            return self.file(path)  # which says what is wrong
        if found.client is None:
            raise OpenFileError(f"{path} is not open for writing")
        return found

    def closed_file(self, path: str) -> FileInode:
        """The file at ``path``, which nobody writes. Raises: OpenFileError, and as ``file``."""
        found = self.file(path)
        if found.client is not None:
            raise OpenFileError(f"{path} is open for writing by {found.client}")
        return found

    def directory(self, path: str) -> DirectoryInode:
        """The directory at ``path``. Raises: InodeMissingError, InodeKindError."""
        found = self.inode(path)
        if not isinstance(found, DirectoryInode):
            raise InodeKindError(f"{path} is no directory")
        return found

    def place(self, path: str) -> tuple[DirectoryInode, str]:
        """The directory in which ``path`` is, or would be, and the name in it. Raises as ``directory``; the root."""
        above, _, name = path.rpartition("/")
        if not name:
            raise InodeKindError(f"{path} is no name in a directory")
        directory = self._directories.get(above) or self._look_up(above)
        if directory is None:
            return self.directory(above or "/"), name
        return directory, name

    def free_place(self, path: str) -> tuple[DirectoryInode, str]:
        """The directory and the name of ``path``, where nothing is. Raises: InodeExistsError, and as ``place``."""
        directory, name = self.place(path)
        if name in directory.children:
            raise InodeExistsError(f"there is something at {path} already")
        return directory, name

    def restore(self, path: str, inode: Inode) -> None:
        """Put an inode of an image into the tree; its parent is there already. Raises: ReplayError: it is not."""
        if path == "/":
            if not isinstance(inode, DirectoryInode):
                raise ReplayError("the root of the image is no directory")
            self.root = inode
            self._directories = {"": inode}
            return
        try:
            directory, _ = self.free_place(path)
        except NamespaceError as error:
            raise ReplayError(f"the image does not fit together: {error}") from error
        self._link(directory, inode)

    # -- the tree -----------------------------------------------------------------------------------------

    def _link(self, directory: DirectoryInode, inode: Inode) -> None:
        directory.children[inode.name] = inode
        inode.parent = directory
        if inode.id > self.last_inode_id:
            self.last_inode_id = inode.id

    def _unlink(self, inode: Inode) -> None:
        assert inode.parent is not None, "the root stays"
        del inode.parent.children[inode.name]
        inode.parent = None
        if isinstance(inode, DirectoryInode):
            self._directories = {"": self.root}

    def _mkdir(self, op: MkdirOp) -> None:
        directory, name = self.free_place(op.path)
        owner, group, mode = op.permissions
        made = DirectoryInode(op.inode_id, name, owner, group, mode, op.timestamp)
        self._describe(made, op.acl, op.xattrs)
        self._link(directory, made)
        _touch(directory, op.timestamp)

    def _add(self, op: AddOp) -> None:
        directory, name = self.place(op.path)
        former = directory.children.get(name)
        if former is not None:
            if not op.overwrite:
                raise InodeExistsError(f"there is something at {op.path} already")
            if not isinstance(former, FileInode):
                raise InodeKindError(f"{op.path} is no file, and cannot be overwritten by one")
            self._unlink(former)
        owner, group, mode = op.permissions
        made = FileInode(op.inode_id, name, owner, group, mode, op.mtime, op.atime, op.replication, op.block_size)
        made.blocks = op.blocks
        made.client = op.client_name
        made.policy = op.storage_policy
        self._describe(made, op.acl, op.xattrs)
        self._link(directory, made)
        _touch(directory, op.mtime)

    def _symlink(self, op: SymlinkOp) -> None:
        directory, name = self.free_place(op.path)
        owner, group, mode = op.permissions
        self._link(directory, SymlinkInode(op.inode_id, name, owner, group, mode, op.mtime, op.atime, op.target))
        _touch(directory, op.mtime)

    def _delete(self, op: DeleteOp) -> None:
        directory, name = self.place(op.path)
        inode = directory.children.get(name)
        if inode is None:
            raise InodeMissingError(f"there is nothing at {op.path}")
        self._unlink(inode)
        _touch(directory, op.timestamp)

    def _rename_old(self, op: RenameOldOp) -> None:
        source = self.inode(op.source)
        target = op.target
        if isinstance(self.find(target), DirectoryInode):
            target = f"{target.rstrip('/')}/{source.name}"
        directory, name = self.free_place(target)
        self._move(source, directory, name, op.timestamp)

    def _rename(self, op: RenameOp) -> None:
        source = self.inode(op.source)
        directory, name = self.place(op.target)
        former = directory.children.get(name)
        if former is not None:
            if OVERWRITE not in op.options:
                raise InodeExistsError(f"there is something at {op.target} already")
            if isinstance(former, DirectoryInode) != isinstance(source, DirectoryInode):
                raise InodeKindError(f"a file and a directory cannot replace each other: {op.source} and {op.target}")
            if isinstance(former, DirectoryInode) and former.children:
                raise InodeExistsError(f"the directory {op.target} is not empty, and cannot be replaced")
            if former is source:
                raise InodeExistsError(f"{op.source} and {op.target} are the same")
        self._move(source, directory, name, op.timestamp, former)

    def _move(
        self, source: Inode, directory: DirectoryInode, name: str, timestamp: int, former: Inode | None = None
    ) -> None:
        old = source.parent
        if old is None:
            raise InodeKindError("the root cannot be moved")
        above: Inode | None = directory
        while above is not None:
            if above is source:
                raise InodeKindError(f"{source.path} cannot be moved below itself")
            above = above.parent
        if former is not None:
            self._unlink(former)
        self._unlink(source)
        source.name = name
        self._link(directory, source)
        _touch(old, timestamp)
        _touch(directory, timestamp)

    # -- files --------------------------------------------------------------------------------------------

    def _close(self, op: CloseOp) -> None:
        file = self.open_file(op.path)
        file.mtime, file.atime, file.blocks, file.client = op.mtime, op.atime, op.blocks, None

    def _append(self, op: AppendOp) -> None:
        self.closed_file(op.path).client = op.client_name

    def _add_block(self, op: AddBlockOp) -> None:
        """``op.blocks``: the block before, now complete, and the new one."""
        file = self.open_file(op.path)
        blocks, last = op.blocks, file.blocks[-1:]
        if len(blocks) != len(last) + 1 or (last and blocks[0].id != last[0].id):
            raise OpenFileError(f"the block to be added to {op.path} does not follow its last one")
        file.blocks = file.blocks[:-1] + blocks

    def _update_blocks(self, op: UpdateBlocksOp) -> None:
        self.open_file(op.path).blocks = op.blocks

    def _truncate(self, op: TruncateOp) -> None:
        """A block that is cut through gets a new generation, or is replaced by a copy if a snapshot needs it."""
        file = self.closed_file(op.path)
        if not 0 <= op.new_length <= file.length:
            raise OpenFileError(f"{op.path} has {file.length} bytes, and cannot be cut to {op.new_length}")
        blocks, left = [], op.new_length
        for block in file.blocks:
            if left <= 0:
                break
            blocks.append(block._replace(length=min(left, block.length)))
            left -= block.length
        if op.blocks:
            [cut] = op.blocks
            if not blocks:
                raise OpenFileError(f"nothing is left of {op.path}, so that no block of it is cut through")
            blocks[-1] = Block(cut.id, blocks[-1].length, cut.generation)
            file.client = op.client_name
        file.blocks = tuple(blocks)
        file.mtime = op.timestamp

    def _concat(self, op: ConcatDeleteOp) -> None:
        target = self.closed_file(op.target)
        sources = [self.closed_file(path) for path in op.sources]
        if target in sources or len(set(map(id, sources))) != len(sources):
            raise InodeExistsError(f"{op.target} and its sources must be different files")
        for source in sources:
            directory = source.parent
            target.blocks += source.blocks
            self._unlink(source)
            if directory is not None:
                _touch(directory, op.timestamp)
        target.mtime = op.timestamp
        if target.parent is not None:
            _touch(target.parent, op.timestamp)

    def _reassign_lease(self, op: ReassignLeaseOp) -> None:
        self.open_file(op.path).client = op.new_holder

    def _set_generation(self, op: SetGenstampV2Op) -> None:
        self.generation = op.generation

    def _allocate_block(self, op: AllocateBlockIdOp) -> None:
        self.last_block_id = op.block_id

    def _set_replication(self, op: SetReplicationOp) -> None:
        self.file(op.path).replication = op.replication

    # -- what is known of an inode ------------------------------------------------------------------------

    def _describe(self, inode: Inode, acl: tuple[HdfsAclEntry, ...], xattrs: tuple[XAttr, ...]) -> None:
        inode.acl = acl
        if xattrs:
            inode.xattrs = {(xattr.namespace, xattr.name): xattr.value for xattr in xattrs}

    def _times(self, op: TimesOp) -> None:
        inode = self.inode(op.path)
        if op.mtime != UNCHANGED:
            inode.mtime = op.mtime
        if op.atime != UNCHANGED and isinstance(inode, FileInode | SymlinkInode):
            inode.atime = op.atime

    def _set_permissions(self, op: SetPermissionsOp) -> None:
        self.inode(op.path).mode = op.mode

    def _set_owner(self, op: SetOwnerOp) -> None:
        inode = self.inode(op.path)
        inode.owner = op.owner or inode.owner
        inode.group = op.group or inode.group

    def _set_quota(self, op: SetQuotaOp) -> None:
        directory = self.directory(op.path)
        if op.namespace != UNLIMITED:
            directory.name_quota = op.namespace
        if op.space != UNLIMITED:
            directory.space_quota = op.space

    def _set_acl(self, op: SetAclOp) -> None:
        """With a list, the group's bits of the mode are its mask; without one, they are the group's own again."""
        inode = self.inode(op.acl.path)
        access = {(entry.type, entry.name): entry.permission for entry in op.acl.entries if entry.scope == _ACCESS}
        if not op.acl.entries:
            former = {(e.type, e.name): e.permission for e in inode.acl if e.scope == _ACCESS}
            group = former.get((_GROUP, None))
            if group is not None:
                inode.mode = inode.mode & ~0o070 | group << 3
        else:
            for kind, shift in ((0, 6), (3, 0)):
                if (kind, None) in access:
                    inode.mode = inode.mode & ~(7 << shift) | access[kind, None] << shift
            group = access.get((_MASK, None), access.get((_GROUP, None)))
            if group is not None:
                inode.mode = inode.mode & ~0o070 | group << 3
        inode.acl = op.acl.entries

    def _set_xattr(self, op: SetXAttrOp) -> None:
        inode = self.inode(op.change.path)
        kept = dict(inode.xattrs or {})
        kept.update({(xattr.namespace, xattr.name): xattr.value for xattr in op.change.xattrs})
        inode.xattrs = kept

    def _remove_xattr(self, op: RemoveXAttrOp) -> None:
        inode = self.inode(op.change.path)
        kept = dict(inode.xattrs or {})
        for xattr in op.change.xattrs:
            if (xattr.namespace, xattr.name) not in kept:
                raise InodeMissingError(f"{op.change.path} has no attribute {xattr.name}")
            del kept[xattr.namespace, xattr.name]
        inode.xattrs = kept or None

    def _set_storage_policy(self, op: SetStoragePolicyOp) -> None:
        self.inode(op.path).policy = op.policy

    # -- snapshots ----------------------------------------------------------------------------------------

    def _allow_snapshot(self, op: AllowSnapshotOp) -> None:
        directory = self.directory(op.root)
        if directory.snapshots is None:
            directory.snapshots = {}

    def _disallow_snapshot(self, op: DisallowSnapshotOp) -> None:
        if self._snapshots(op.root):
            raise InodeExistsError(f"{op.root} has snapshots")
        self.directory(op.root).snapshots = None

    def _snapshots(self, path: str) -> dict[str, int]:
        found = self.directory(path).snapshots
        if found is None:
            raise InodeKindError(f"snapshots of {path} are not allowed")
        return found

    def _create_snapshot(self, op: CreateSnapshotOp) -> None:
        snapshots = self._snapshots(op.root)
        if op.name in snapshots:
            raise InodeExistsError(f"{op.root} has a snapshot {op.name} already")
        snapshots[op.name] = op.mtime
        _touch(self.directory(op.root), op.mtime)

    def _delete_snapshot(self, op: DeleteSnapshotOp) -> None:
        if self._snapshots(op.root).pop(op.name, None) is None:
            raise InodeMissingError(f"{op.root} has no snapshot {op.name}")
        _touch(self.directory(op.root), op.mtime)

    def _rename_snapshot(self, op: RenameSnapshotOp) -> None:
        snapshots = self._snapshots(op.root)
        if op.old_name not in snapshots or op.new_name in snapshots:
            raise InodeMissingError(f"{op.root} has no snapshot {op.old_name}, or has {op.new_name} already")
        del snapshots[op.old_name]
        snapshots[op.new_name] = op.mtime

    # -- the cache ----------------------------------------------------------------------------------------

    def _add_cache_pool(self, op: AddCachePoolOp) -> None:
        if op.pool.name in self.cache_pools:
            raise InodeExistsError(f"there is a cache pool {op.pool.name} already")
        self.cache_pools[op.pool.name] = op.pool

    def _modify_cache_pool(self, op: ModifyCachePoolOp) -> None:
        former = self._pool(op.pool.name)
        self.cache_pools[op.pool.name] = CachePool(*_merged(op.pool, former))

    def _remove_cache_pool(self, op: RemoveCachePoolOp) -> None:
        self._pool(op.name)
        del self.cache_pools[op.name]
        gone = [number for number, directive in self.cache_directives.items() if directive.pool == op.name]
        for number in gone:
            del self.cache_directives[number]

    def _pool(self, name: str) -> CachePool:
        found = self.cache_pools.get(name)
        if found is None:
            raise InodeMissingError(f"there is no cache pool {name}")
        return found

    def _add_cache_directive(self, op: AddCacheDirectiveOp) -> None:
        if op.directive.id in self.cache_directives:
            raise InodeExistsError(f"there is a cache directive {op.directive.id} already")
        self._pool(op.directive.pool or "")
        self.cache_directives[op.directive.id] = op.directive

    def _modify_cache_directive(self, op: ModifyCacheDirectiveOp) -> None:
        former = self._directive(op.directive.id)
        self.cache_directives[op.directive.id] = CacheDirective(*_merged(op.directive, former))

    def _remove_cache_directive(self, op: RemoveCacheDirectiveOp) -> None:
        self._directive(op.id)
        del self.cache_directives[op.id]

    def _directive(self, number: int) -> CacheDirective:
        found = self.cache_directives.get(number)
        if found is None:
            raise InodeMissingError(f"there is no cache directive {number}")
        return found


def _merged(new: tuple[Any, ...], former: tuple[Any, ...]) -> list[Any]:
    """The new values, and the former ones where there is no new one."""
    return [f if n is None else n for n, f in zip(new, former, strict=True)]


def _touch(directory: DirectoryInode, timestamp: int) -> None:
    """A directory's time only rises when its names change."""
    if timestamp > directory.mtime:
        directory.mtime = timestamp
