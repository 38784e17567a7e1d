"""HDFS's edits as bytes and as ``hdfs oev`` shows them: which fields each op code has, in which order.

Bodies are those of the layouts -63 to -67 (Hadoop 2.8 to 3.5). The frame around a body is that of
:mod:`journal_manager.edits.ops`, so that an edit of a journal is an edit of HDFS as it stands.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from journal_manager.codec import BodyDecoder, Field, Shape, body_decoder
from journal_manager.errors import OpFormatError, UnsupportedLayoutError
from journal_manager.hdfs import hdfs_ops as ops
from journal_manager.hdfs.attribute_kinds import ACL, PATH_ACL, PATH_XATTRS, XATTRS
from journal_manager.hdfs.field_kinds import BOOL, CLIENT_ID, I8, I16, I32, I64, MODE, NAME, STRING, Element, FieldKind
from journal_manager.hdfs.hdfs_ops import HdfsOp
from journal_manager.hdfs.inode_kinds import BLOCKS, COMPACT_BLOCKS, OPTIONS, PERMISSIONS, SOURCES
from journal_manager.hdfs.record_kinds import CACHE_DIRECTIVE, CACHE_POOL, DELEGATION_KEY, DELEGATION_TOKEN, SCHEMA

OLDEST_LAYOUT: Final = -63
NEWEST_LAYOUT: Final = -67


class _Field(NamedTuple):
    kind: FieldKind
    tag: str
    since: int = OLDEST_LAYOUT
    """The first layout with this field; in older ones it is absent, and 0."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """One op code: its number and name, its class, and its fields in the order of the class."""

    code: int
    name: str
    kind: type
    fields: tuple[_Field, ...]
    shown: tuple[str, ...]
    """The tags that are shown, in HDFS's order. ``TAG=TEXT`` is shown always."""


_KINDS: Final[dict[str, FieldKind]] = {
    **dict.fromkeys(("PATH", "SRC", "DST", "TRG", "VALUE", "LEASEHOLDER", "NEWHOLDER"), STRING),
    **dict.fromkeys(("CLIENT_NAME", "CLIENT_MACHINE", "CLIENTNAME", "CLIENTMACHINE", "POOLNAME", "POLICYNAME"), STRING),
    **dict.fromkeys(("SNAPSHOTROOT", "SNAPSHOTNAME", "SNAPSHOTOLDNAME", "SNAPSHOTNEWNAME"), STRING),
    **dict.fromkeys(("USERNAME", "GROUPNAME"), NAME),
    **dict.fromkeys(("INODEID", "BLOCKSIZE", "BLOCK_ID", "ID", "GENSTAMP", "GENSTAMPV2", "NEWLENGTH"), I64),
    **dict.fromkeys(("MTIME", "ATIME", "TIMESTAMP", "EXPIRY_TIME", "STARTTIME", "FINALIZETIME"), I64),
    **dict.fromkeys(("NSQUOTA", "DSQUOTA"), I64),
    **dict.fromkeys(("STORAGETYPE", "RPC_CALLID"), I32),
    **dict.fromkeys(("STORAGE_POLICY", "ERASURE_CODING_POLICY_ID", "POLICYID"), I8),
    **dict.fromkeys(("OVERWRITE", "NEWBLOCK"), BOOL),
    "REPLICATION": I16,
    "MODE": MODE,
    "BLOCK": BLOCKS,
    "BLOCK(compact)": COMPACT_BLOCKS,
    "PERMISSION_STATUS": PERMISSIONS,
    "ENTRY": ACL,
    "ENTRY(path)": PATH_ACL,
    "XATTR": XATTRS,
    "XATTR(path)": PATH_XATTRS,
    "OPTIONS": OPTIONS,
    "SOURCES": SOURCES,
    "DELEGATION_TOKEN_IDENTIFIER": DELEGATION_TOKEN,
    "DELEGATION_KEY": DELEGATION_KEY,
    "DIRECTIVE": CACHE_DIRECTIVE,
    "POOL": CACHE_POOL,
    "SCHEMA": SCHEMA,
    "RPC_CLIENTID": CLIENT_ID,
}
"""What each field holds, by its tag; in brackets what tells two kinds with one tag apart."""


def _field(text: str) -> _Field:
    """``TAG`` or, where only newer layouts have the field, ``TAG@-66``."""
    name, _, since = text.partition("@")
    return _Field(_KINDS[name], name.partition("(")[0], int(since or OLDEST_LAYOUT))


def _op(code: int, name: str, kind: type, fields: str = "", shown: str = "") -> _Layout:
    """Describe one op code.

    Args:
        fields: those of the class, in the order of the bytes; ``RPC`` is the id of the client's request.
        shown: the tags in the order in which they are shown, if it is not the order of the bytes.
    """
    made = [_field(each) for each in fields.replace("RPC", "RPC_CLIENTID RPC_CALLID").split()]
    tags = [field.tag for field in made]
    if shown:
        tags = [*shown.split(), *(tag for tag in tags if tag.startswith("RPC"))]
    return _Layout(code, name, kind, tuple(made), tuple(tags))


_FILE: Final = "INODEID PATH REPLICATION MTIME ATIME BLOCKSIZE BLOCK PERMISSION_STATUS"
_SHOWN_FILE: Final = "LENGTH=0 INODEID PATH REPLICATION MTIME ATIME BLOCKSIZE"
_ADD: Final = (
    f"{_FILE} ENTRY XATTR CLIENT_NAME CLIENT_MACHINE OVERWRITE STORAGE_POLICY ERASURE_CODING_POLICY_ID@-64 RPC"
)
_SHOWN_ADD: Final = (
    f"{_SHOWN_FILE} CLIENT_NAME CLIENT_MACHINE OVERWRITE BLOCK PERMISSION_STATUS ENTRY ERASURE_CODING_POLICY_ID"
)
_SHOWN_CLOSE: Final = f"{_SHOWN_FILE} CLIENT_NAME= CLIENT_MACHINE= OVERWRITE=false BLOCK PERMISSION_STATUS"
_MKDIR: Final = "INODEID PATH TIMESTAMP ATIME PERMISSION_STATUS ENTRY XATTR"
_SHOWN_MKDIR: Final = "LENGTH=0 INODEID PATH TIMESTAMP PERMISSION_STATUS ENTRY XATTR"
_SYMLINK: Final = "INODEID PATH VALUE MTIME ATIME PERMISSION_STATUS"
_TOKEN: Final = "DELEGATION_TOKEN_IDENTIFIER"
_TRUNCATE: Final = "SRC CLIENTNAME CLIENTMACHINE NEWLENGTH TIMESTAMP BLOCK(compact)"
_APPEND: Final = "PATH CLIENT_NAME CLIENT_MACHINE NEWBLOCK RPC"

_OPS: Final = (
    _op(0, "ADD", ops.AddOp, _ADD, _SHOWN_ADD),
    _op(1, "RENAME_OLD", ops.RenameOldOp, "SRC DST TIMESTAMP RPC", "LENGTH=0 SRC DST TIMESTAMP"),
    _op(2, "DELETE", ops.DeleteOp, "PATH TIMESTAMP RPC", "LENGTH=0 PATH TIMESTAMP"),
    _op(3, "MKDIR", ops.MkdirOp, _MKDIR, _SHOWN_MKDIR),
    _op(4, "SET_REPLICATION", ops.SetReplicationOp, "PATH REPLICATION"),
    _op(7, "SET_PERMISSIONS", ops.SetPermissionsOp, "SRC MODE"),
    _op(8, "SET_OWNER", ops.SetOwnerOp, "SRC USERNAME GROUPNAME"),
    _op(9, "CLOSE", ops.CloseOp, _FILE, _SHOWN_CLOSE),
    _op(10, "SET_GENSTAMP_V1", ops.SetGenstampV1Op, "GENSTAMP"),
    _op(13, "TIMES", ops.TimesOp, "PATH MTIME ATIME", "LENGTH=0 PATH MTIME ATIME"),
    _op(14, "SET_QUOTA", ops.SetQuotaOp, "SRC NSQUOTA DSQUOTA"),
    _op(15, "RENAME", ops.RenameOp, "SRC DST TIMESTAMP OPTIONS RPC", "LENGTH=0 SRC DST TIMESTAMP OPTIONS"),
    _op(16, "CONCAT_DELETE", ops.ConcatDeleteOp, "TRG SOURCES TIMESTAMP RPC", "LENGTH=0 TRG TIMESTAMP SOURCES"),
    _op(17, "SYMLINK", ops.SymlinkOp, f"{_SYMLINK} RPC", f"LENGTH=0 {_SYMLINK}"),
    _op(18, "GET_DELEGATION_TOKEN", ops.GetDelegationTokenOp, f"{_TOKEN} EXPIRY_TIME"),
    _op(19, "RENEW_DELEGATION_TOKEN", ops.RenewDelegationTokenOp, f"{_TOKEN} EXPIRY_TIME"),
    _op(20, "CANCEL_DELEGATION_TOKEN", ops.CancelDelegationTokenOp, _TOKEN),
    _op(21, "UPDATE_MASTER_KEY", ops.UpdateMasterKeyOp, "DELEGATION_KEY"),
    _op(22, "REASSIGN_LEASE", ops.ReassignLeaseOp, "LEASEHOLDER PATH NEWHOLDER"),
    _op(23, "END_LOG_SEGMENT", ops.EndLogSegmentOp),
    _op(24, "START_LOG_SEGMENT", ops.StartLogSegmentOp),
    _op(25, "UPDATE_BLOCKS", ops.UpdateBlocksOp, "PATH BLOCK(compact) RPC"),
    _op(26, "CREATE_SNAPSHOT", ops.CreateSnapshotOp, "SNAPSHOTROOT SNAPSHOTNAME MTIME@-66 RPC"),
    _op(27, "DELETE_SNAPSHOT", ops.DeleteSnapshotOp, "SNAPSHOTROOT SNAPSHOTNAME MTIME@-66 RPC"),
    _op(28, "RENAME_SNAPSHOT", ops.RenameSnapshotOp, "SNAPSHOTROOT SNAPSHOTOLDNAME SNAPSHOTNEWNAME MTIME@-66 RPC"),
    _op(29, "ALLOW_SNAPSHOT", ops.AllowSnapshotOp, "SNAPSHOTROOT"),
    _op(30, "DISALLOW_SNAPSHOT", ops.DisallowSnapshotOp, "SNAPSHOTROOT"),
    _op(31, "SET_GENSTAMP_V2", ops.SetGenstampV2Op, "GENSTAMPV2"),
    _op(32, "ALLOCATE_BLOCK_ID", ops.AllocateBlockIdOp, "BLOCK_ID"),
    _op(33, "ADD_BLOCK", ops.AddBlockOp, "PATH BLOCK(compact) RPC"),
    _op(34, "ADD_CACHE_DIRECTIVE", ops.AddCacheDirectiveOp, "DIRECTIVE RPC"),
    _op(35, "REMOVE_CACHE_DIRECTIVE", ops.RemoveCacheDirectiveOp, "ID RPC"),
    _op(36, "ADD_CACHE_POOL", ops.AddCachePoolOp, "POOL RPC"),
    _op(37, "MODIFY_CACHE_POOL", ops.ModifyCachePoolOp, "POOL RPC"),
    _op(38, "REMOVE_CACHE_POOL", ops.RemoveCachePoolOp, "POOLNAME RPC"),
    _op(39, "MODIFY_CACHE_DIRECTIVE", ops.ModifyCacheDirectiveOp, "DIRECTIVE RPC"),
    _op(40, "SET_ACL", ops.SetAclOp, "ENTRY(path)"),
    _op(41, "ROLLING_UPGRADE_START", ops.RollingUpgradeStartOp, "STARTTIME"),
    _op(42, "ROLLING_UPGRADE_FINALIZE", ops.RollingUpgradeFinalizeOp, "FINALIZETIME"),
    _op(43, "SET_XATTR", ops.SetXAttrOp, "XATTR(path) RPC"),
    _op(44, "REMOVE_XATTR", ops.RemoveXAttrOp, "XATTR(path) RPC"),
    _op(45, "SET_STORAGE_POLICY", ops.SetStoragePolicyOp, "PATH POLICYID"),
    _op(46, "TRUNCATE", ops.TruncateOp, _TRUNCATE),
    _op(47, "APPEND", ops.AppendOp, _APPEND),
    _op(48, "SET_QUOTA_BY_STORAGETYPE", ops.SetQuotaByStorageTypeOp, "SRC STORAGETYPE DSQUOTA"),
    _op(49, "ADD_ERASURE_CODING_POLICY", ops.AddErasureCodingPolicyOp, "SCHEMA RPC"),
    _op(50, "ENABLE_ERASURE_CODING_POLICY", ops.EnableErasureCodingPolicyOp, "POLICYNAME RPC"),
    _op(51, "DISABLE_ERASURE_CODING_POLICY", ops.DisableErasureCodingPolicyOp, "POLICYNAME RPC"),
    _op(52, "REMOVE_ERASURE_CODING_POLICY", ops.RemoveErasureCodingPolicyOp, "POLICYNAME RPC"),
)

FAILURES: Final = (OpFormatError, struct.error, IndexError, ValueError)
"""What a reader of bodies or of fields raises for bytes that are not whole and exact."""

_BY_CODE: Final = {op.code: op for op in _OPS}
_BY_KIND: Final = {op.kind: op for op in _OPS}


_DECODERS: Final[dict[int, dict[int, BodyDecoder]]] = {
    version: {} for version in range(NEWEST_LAYOUT, OLDEST_LAYOUT + 1)
}
"""By layout and op code: made when they are first met."""


def ensure_layout(layout_version: int) -> None:
    """Refuse a layout whose bodies are not known.

    Raises:
        UnsupportedLayoutError: it is newer than -67 or older than -63. Newer frames can be scanned and copied anyway.
    """
    if layout_version not in _DECODERS:
        raise UnsupportedLayoutError(
            f"the edits have layout {layout_version}, and this program reads {OLDEST_LAYOUT} to {NEWEST_LAYOUT}"
        )


def decode_hdfs_op(opcode: int, body: bytes, layout_version: int = NEWEST_LAYOUT) -> HdfsOp:
    """The edit that a frame's body holds.

    Raises:
        OpFormatError: an unknown op code, or a body that is not one of its kind, whole and exact.
        UnsupportedLayoutError: see :func:`ensure_layout`.
    """
    try:
        decode = _DECODERS[layout_version][opcode]
    except KeyError:
        decode = _decoder(opcode, layout_version)
    try:
        return cast(HdfsOp, decode(body))
    except FAILURES:
        return _decode_by_fields(opcode, body, layout_version)


def _decoder(opcode: int, layout_version: int) -> BodyDecoder:
    """Make the function that reads bodies of this op code. Raises as :func:`decode_hdfs_op`."""
    ensure_layout(layout_version)
    layout = _BY_CODE.get(opcode)
    if layout is None:
        raise OpFormatError(f"op code {opcode} is none that HDFS writes in layouts {OLDEST_LAYOUT} to {NEWEST_LAYOUT}")
    made = body_decoder(
        layout.kind,
        [
            Field(f.kind.shape, f.kind.read, f.kind.inside) if layout_version <= f.since else Field(Shape.ABSENT)
            for f in layout.fields
        ],
    )
    _DECODERS[layout_version][opcode] = made
    return made


def _decode_by_fields(opcode: int, body: bytes, layout_version: int) -> HdfsOp:
    """Read a body that is not whole and exact, to say what is wrong with it."""
    layout = _BY_CODE[opcode]
    values: list[Any] = []
    at = 0
    try:
        for field in layout.fields:
            value: Any = 0
            if layout_version <= field.since:
                value, at = field.kind.read(body, at)
            values.append(value)
    except FAILURES as error:
        raise OpFormatError(f"the body of this {layout.name} is damaged: {error}") from error
    if at != len(body):
        raise OpFormatError(f"the body of this {layout.name} has {len(body) - at} bytes too many")
    return cast(HdfsOp, tuple.__new__(layout.kind, values))


def encode_hdfs_op(op: HdfsOp, layout_version: int = NEWEST_LAYOUT) -> tuple[int, bytes]:
    """The op code and the body of an edit. What an older layout has no field for is left out.

    Raises:
        ValueError, struct.error: a value that does not fit into its field. UnsupportedLayoutError.
    """
    ensure_layout(layout_version)
    layout = _BY_KIND[type(op)]
    body = b"".join(
        field.kind.write(value) for field, value in zip(layout.fields, op, strict=True) if layout_version <= field.since
    )
    return layout.code, body


def name_of(opcode: int) -> str:
    """HDFS's name of an op code, without ``OP_``; UNKNOWN(n) if it has none."""
    layout = _BY_CODE.get(opcode)
    return layout.name if layout is not None else f"UNKNOWN({opcode})"


def op_name(op: HdfsOp) -> str:
    """HDFS's name of an edit, without ``OP_``."""
    return _BY_KIND[type(op)].name


def elements(op: HdfsOp) -> list[Element]:
    """The fields as ``hdfs oev`` shows them, in its order."""
    layout = _BY_KIND[type(op)]
    by_tag = {field.tag: (field.kind, value) for field, value in zip(layout.fields, op, strict=True)}
    shown: list[Element] = []
    for tag in layout.shown:
        name, constant, text = tag.partition("=")
        if constant:
            shown.append((name, text))
        else:
            kind, value = by_tag[tag]
            shown += kind.show(tag, value)
    return shown
