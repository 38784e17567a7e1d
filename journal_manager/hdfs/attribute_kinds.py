"""Fields that are access control lists and extended attributes: an inode's, and with a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from journal_manager.codec import Shape
from journal_manager.errors import OpFormatError
from journal_manager.hdfs.field_kinds import Element, FieldKind, one_of, read_count
from journal_manager.hdfs.op_values import (
    HdfsAclEntry,
    PathAcl,
    PathXAttrs,
    XAttr,
)
from journal_manager.hdfs.primitives import (
    read_string,
    write_i32,
    write_string,
)
from journal_manager.hdfs.protobuf_fields import (
    delimited,
    field_bytes,
    fields_by_number,
    fields_of,
    path_and_messages,
    read_message,
)

SCOPES: Final = ("ACCESS", "DEFAULT")
TYPES: Final = ("USER", "GROUP", "MASK", "OTHER")
ACTIONS: Final = ("---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx")
NAMESPACES: Final = ("USER", "TRUSTED", "SECURITY", "SYSTEM", "RAW")


def _show_acl(tag: str, value: Sequence[HdfsAclEntry]) -> list[Element]:
    shown: list[Element] = []
    for entry in value:
        inside: list[Element] = [("SCOPE", SCOPES[entry.scope]), ("TYPE", TYPES[entry.type])]
        if entry.name:
            inside.append(("NAME", entry.name))
        shown.append((tag, [*inside, ("PERM", ACTIONS[entry.permission])]))
    return shown


def _read_acl(data: bytes, at: int) -> tuple[tuple[HdfsAclEntry, ...], int]:
    """One byte an entry: bits 0-2 permission, 3-4 type, 5 scope, 6 whether a name follows."""
    count, at = read_count(data, at, 1)
    entries = []
    for _ in range(count):
        packed = data[at]
        at += 1
        if packed & 0x80:
            raise OpFormatError(f"byte {at - 1} is {packed:#x}, which is no entry of an access control list")
        name: str | None = None
        if packed & 0x40:
            name, at = read_string(data, at)
        entries.append(HdfsAclEntry(packed >> 5 & 1, packed >> 3 & 3, packed & 7, name))
    return tuple(entries), at


def _write_acl(value: Sequence[HdfsAclEntry]) -> bytes:
    parts = [write_i32(len(value))]
    for entry in value:
        packed = entry.permission | entry.type << 3 | entry.scope << 5 | (entry.name is not None) << 6
        parts.append(bytes([packed]))
        if entry.name is not None:
            parts.append(write_string(entry.name))
    return b"".join(parts)


ACL: Final = FieldKind(_read_acl, _write_acl, _show_acl, shape=Shape.COUNTED)


def _show_xattrs(tag: str, value: Sequence[XAttr]) -> list[Element]:
    shown: list[Element] = []
    for xattr in value:
        inside: list[Element] = [("NAMESPACE", NAMESPACES[xattr.namespace]), ("NAME", xattr.name)]
        if xattr.value is not None:
            inside.append(("VALUE", "0x" + xattr.value.hex()))
        shown.append((tag, inside))
    return shown


def _acl_entry(message: bytes) -> HdfsAclEntry:
    found = fields_by_number(fields_of(message), {1: int, 2: int, 3: int, 4: str}, "an entry of an access control list")
    entry = HdfsAclEntry(found.get(2, -1), found.get(1, -1), found.get(3, -1), found.get(4))
    one_of(SCOPES, entry.scope, "scope of an access control list")
    one_of(TYPES, entry.type, "type of an entry of an access control list")
    one_of(ACTIONS, entry.permission, "permission")
    return entry


def _xattr(message: bytes) -> XAttr:
    found = fields_by_number(fields_of(message), {1: int, 2: str, 3: bytes}, "an extended attribute")
    xattr = XAttr(found.get(1, -1), found.get(2, ""), found.get(3))
    one_of(NAMESPACES, xattr.namespace, "namespace of extended attributes")
    return xattr


def _xattr_messages(xattrs: Sequence[XAttr]) -> bytes:
    return b"".join(
        field_bytes(
            2,
            field_bytes(1, x.namespace)
            + field_bytes(2, x.name)
            + (b"" if x.value is None else field_bytes(3, x.value)),
        )
        for x in xattrs
    )


def _read_path_acl(data: bytes, at: int) -> tuple[PathAcl, int]:
    message, at = read_message(data, at)
    path, entries = path_and_messages(message, "an access control list")
    return PathAcl(path, tuple(map(_acl_entry, entries))), at


def _write_path_acl(value: PathAcl) -> bytes:
    entries = (
        field_bytes(1, e.type)
        + field_bytes(2, e.scope)
        + field_bytes(3, e.permission)
        + (b"" if e.name is None else field_bytes(4, e.name))
        for e in value.entries
    )
    return delimited(field_bytes(1, value.path) + b"".join(field_bytes(2, entry) for entry in entries))


def _read_path_xattrs(data: bytes, at: int) -> tuple[PathXAttrs, int]:
    message, at = read_message(data, at)
    path, xattrs = path_and_messages(message, "extended attributes")
    return PathXAttrs(path, tuple(map(_xattr, xattrs))), at


def _read_xattrs(data: bytes, at: int) -> tuple[tuple[XAttr, ...], int]:
    if data[at] == 0:
        return (), at + 1
    found, at = _read_path_xattrs(data, at)
    if found.path:
        raise OpFormatError(f"the extended attributes of a new inode name a path: {found.path!r}")
    return found.xattrs, at


XATTRS: Final = FieldKind(
    _read_xattrs, lambda value: delimited(_xattr_messages(value)), _show_xattrs, shape=Shape.MESSAGE
)
PATH_ACL: Final = FieldKind(
    _read_path_acl, _write_path_acl, lambda tag, value: [("SRC", value.path), *_show_acl(tag, value.entries)]
)
PATH_XATTRS: Final = FieldKind(
    _read_path_xattrs,
    lambda value: delimited(field_bytes(1, value.path) + _xattr_messages(value.xattrs)),
    lambda tag, value: [("SRC", value.path), *_show_xattrs(tag, value.xattrs)],
)
