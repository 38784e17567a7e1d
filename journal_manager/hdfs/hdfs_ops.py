"""HDFS's edits: one class for each op code of the layouts -63 to -67, with its fields in the order of the bytes.

Times are milliseconds since 1970, lengths and quotas are bytes or numbers of names, and modes are the nine permission
bits and the sticky bit. ``client_id`` and ``call_id`` name the client's request, so that one that is repeated after a
fail-over gets the first answer; ``b""`` and -2 stand for none.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from journal_manager.hdfs.op_values import (
    Block,
    CacheDirective,
    CachePool,
    DelegationKey,
    DelegationToken,
    ErasureCodingSchema,
    HdfsAclEntry,
    PathAcl,
    PathXAttrs,
    Permissions,
    XAttr,
)

NO_CLIENT = b""
NO_CALL = -2


class AddOp(NamedTuple):
    """A file is created, and open for writing."""

    inode_id: int
    path: str
    replication: int
    mtime: int
    atime: int
    block_size: int
    blocks: tuple[Block, ...]
    permissions: Permissions
    acl: tuple[HdfsAclEntry, ...] = ()
    xattrs: tuple[XAttr, ...] = ()
    client_name: str = ""
    client_machine: str = ""
    overwrite: bool = False
    storage_policy: int = 0
    erasure_coding_policy: int = 0
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class RenameOldOp(NamedTuple):
    """A rename that never replaces; an existing directory as target means: into it."""

    source: str
    target: str
    timestamp: int
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class DeleteOp(NamedTuple):
    """A path is removed with everything below it."""

    path: str
    timestamp: int
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class MkdirOp(NamedTuple):
    """One directory is made; its parent exists. ``atime`` is written and never used."""

    inode_id: int
    path: str
    timestamp: int
    atime: int
    permissions: Permissions
    acl: tuple[HdfsAclEntry, ...] = ()
    xattrs: tuple[XAttr, ...] = ()


class SetReplicationOp(NamedTuple):
    path: str
    replication: int


class SetPermissionsOp(NamedTuple):
    path: str
    mode: int


class SetOwnerOp(NamedTuple):
    """``""`` leaves the owner, or the group, as it is."""

    path: str
    owner: str
    group: str


class CloseOp(NamedTuple):
    """A file is complete: its blocks and times are these. ``inode_id`` is 0; the path says which file."""

    inode_id: int
    path: str
    replication: int
    mtime: int
    atime: int
    block_size: int
    blocks: tuple[Block, ...]
    permissions: Permissions


class SetGenstampV1Op(NamedTuple):
    generation: int


class TimesOp(NamedTuple):
    """-1 leaves a time as it is."""

    path: str
    mtime: int
    atime: int


class SetQuotaOp(NamedTuple):
    """-1: no quota; 2**63 - 1: as it is."""

    path: str
    namespace: int
    space: int


class RenameOp(NamedTuple):
    """A rename with options, one byte each: 0 none, 1 overwrite, 2 to trash."""

    source: str
    target: str
    timestamp: int
    options: bytes
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class ConcatDeleteOp(NamedTuple):
    """The sources' blocks become the target's last ones, and the sources disappear."""

    target: str
    sources: tuple[str, ...]
    timestamp: int
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class SymlinkOp(NamedTuple):
    inode_id: int
    path: str
    target: str
    mtime: int
    atime: int
    permissions: Permissions
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class GetDelegationTokenOp(NamedTuple):
    token: DelegationToken
    expires: int


class RenewDelegationTokenOp(NamedTuple):
    token: DelegationToken
    expires: int


class CancelDelegationTokenOp(NamedTuple):
    token: DelegationToken


class UpdateMasterKeyOp(NamedTuple):
    key: DelegationKey


class ReassignLeaseOp(NamedTuple):
    holder: str
    path: str
    new_holder: str


class EndLogSegmentOp(NamedTuple):
    pass


class StartLogSegmentOp(NamedTuple):
    pass


class UpdateBlocksOp(NamedTuple):
    """The blocks of an open file are these."""

    path: str
    blocks: tuple[Block, ...]
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class CreateSnapshotOp(NamedTuple):
    root: str
    name: str
    mtime: int = 0
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class DeleteSnapshotOp(NamedTuple):
    root: str
    name: str
    mtime: int = 0
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class RenameSnapshotOp(NamedTuple):
    root: str
    old_name: str
    new_name: str
    mtime: int = 0
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class AllowSnapshotOp(NamedTuple):
    root: str


class DisallowSnapshotOp(NamedTuple):
    root: str


class SetGenstampV2Op(NamedTuple):
    generation: int


class AllocateBlockIdOp(NamedTuple):
    block_id: int


class AddBlockOp(NamedTuple):
    """An open file gets a block. ``blocks``: the one before it, if any, and the new one."""

    path: str
    blocks: tuple[Block, ...]
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class AddCacheDirectiveOp(NamedTuple):
    directive: CacheDirective
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class RemoveCacheDirectiveOp(NamedTuple):
    id: int
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class AddCachePoolOp(NamedTuple):
    pool: CachePool
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class ModifyCachePoolOp(NamedTuple):
    pool: CachePool
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class RemoveCachePoolOp(NamedTuple):
    name: str
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class ModifyCacheDirectiveOp(NamedTuple):
    directive: CacheDirective
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class SetAclOp(NamedTuple):
    """The whole list; no entries remove it."""

    acl: PathAcl


class RollingUpgradeStartOp(NamedTuple):
    time: int


class RollingUpgradeFinalizeOp(NamedTuple):
    time: int


class SetXAttrOp(NamedTuple):
    change: PathXAttrs
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class RemoveXAttrOp(NamedTuple):
    change: PathXAttrs
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class SetStoragePolicyOp(NamedTuple):
    path: str
    policy: int


class TruncateOp(NamedTuple):
    """``blocks``: the block that is cut through, which gets a new generation; none if the cut is between blocks."""

    path: str
    client_name: str
    client_machine: str
    new_length: int
    timestamp: int
    blocks: tuple[Block, ...] = ()


class AppendOp(NamedTuple):
    """A file is opened again for writing at its end."""

    path: str
    client_name: str
    client_machine: str
    new_block: bool
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class SetQuotaByStorageTypeOp(NamedTuple):
    path: str
    storage_type: int
    space: int


class AddErasureCodingPolicyOp(NamedTuple):
    schema: ErasureCodingSchema
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class EnableErasureCodingPolicyOp(NamedTuple):
    name: str
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class DisableErasureCodingPolicyOp(NamedTuple):
    name: str
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


class RemoveErasureCodingPolicyOp(NamedTuple):
    name: str
    client_id: bytes = NO_CLIENT
    call_id: int = NO_CALL


HdfsOp: TypeAlias = (
    AddOp
    | RenameOldOp
    | DeleteOp
    | MkdirOp
    | SetReplicationOp
    | SetPermissionsOp
    | SetOwnerOp
    | CloseOp
    | SetGenstampV1Op
    | TimesOp
    | SetQuotaOp
    | RenameOp
    | ConcatDeleteOp
    | SymlinkOp
    | GetDelegationTokenOp
    | RenewDelegationTokenOp
    | CancelDelegationTokenOp
    | UpdateMasterKeyOp
    | ReassignLeaseOp
    | EndLogSegmentOp
    | StartLogSegmentOp
    | UpdateBlocksOp
    | CreateSnapshotOp
    | DeleteSnapshotOp
    | RenameSnapshotOp
    | AllowSnapshotOp
    | DisallowSnapshotOp
    | SetGenstampV2Op
    | AllocateBlockIdOp
    | AddBlockOp
    | AddCacheDirectiveOp
    | RemoveCacheDirectiveOp
    | AddCachePoolOp
    | ModifyCachePoolOp
    | RemoveCachePoolOp
    | ModifyCacheDirectiveOp
    | SetAclOp
    | RollingUpgradeStartOp
    | RollingUpgradeFinalizeOp
    | SetXAttrOp
    | RemoveXAttrOp
    | SetStoragePolicyOp
    | TruncateOp
    | AppendOp
    | SetQuotaByStorageTypeOp
    | AddErasureCodingPolicyOp
    | EnableErasureCodingPolicyOp
    | DisableErasureCodingPolicyOp
    | RemoveErasureCodingPolicyOp
)
