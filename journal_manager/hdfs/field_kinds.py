"""The kinds of fields that HDFS's edits are made of: their bytes, and how ``hdfs oev`` shows them.

A field is shown as elements with HDFS's tags, of text or of further elements.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from journal_manager.codec import Shape
from journal_manager.errors import OpFormatError
from journal_manager.hdfs.hdfs_ops import (
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
from journal_manager.hdfs.primitives import (
    read_bool,
    read_bytes16,
    read_i8,
    read_i16,
    read_i32,
    read_i64,
    read_string,
    read_text,
    read_vint,
    take,
    write_bool,
    write_bytes16,
    write_i8,
    write_i16,
    write_i32,
    write_i64,
    write_string,
    write_text,
    write_vint,
)

Element: TypeAlias = "tuple[str, str | list[Element]]"
"""A tag with its text, or with the elements inside."""

SCOPES: Final = ("ACCESS", "DEFAULT")
TYPES: Final = ("USER", "GROUP", "MASK", "OTHER")
ACTIONS: Final = ("---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx")
NAMESPACES: Final = ("USER", "TRUSTED", "SECURITY", "SYSTEM", "RAW")
RENAME_OPTIONS: Final = ("NONE", "OVERWRITE", "TO_TRASH")
TOKEN_KIND: Final = "HDFS_DELEGATION_TOKEN"
_BLOCK: Final = struct.Struct(">qqq")
_COMPACT_BLOCK: Final = struct.Struct(">qB")
"""The id, and the first byte of the length as a ``vint``."""
_VINT_OF_ONE_BYTE: Final = 127
_new_tuple: Final = tuple.__new__
_CLIENT_ID_BYTES: Final = 16
_KNOWN_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class FieldKind:
    """How one kind of field is read, written and shown under a tag."""

    read: Callable[[bytes, int], tuple[Any, int]]
    write: Callable[[Any], bytes]
    show: Callable[[str, Any], list[Element]]
    shape: Shape = Shape.OWN
    """What a codec that reads whole bodies knows of it."""
    inside: Any = None
    """See :class:`journal_manager.codec.Field`."""


def _text(tag: str, value: object) -> list[Element]:
    return [(tag, str(value))]


def _one_of(names: Sequence[str], number: int, what: str) -> str:
    if not 0 <= number < len(names):
        raise OpFormatError(f"{number} is no {what}: HDFS knows 0 to {len(names) - 1}")
    return names[number]


I8: Final = FieldKind(read_i8, write_i8, _text, Shape.I8)
I16: Final = FieldKind(read_i16, write_i16, _text, Shape.I16)
I32: Final = FieldKind(read_i32, write_i32, _text, Shape.I32)
I64: Final = FieldKind(read_i64, write_i64, _text, Shape.I64)
STRING: Final = FieldKind(read_string, write_string, _text, shape=Shape.STRING)
NAME: Final = FieldKind(
    read_string, write_string, lambda tag, value: _text(tag, value) if value else [], shape=Shape.STRING
)
"""A string that is not shown when it is empty."""


def _show_mode(tag: str, value: int) -> list[Element]:
    """HDFS keeps more bits than it shows: the nine permission bits and the sticky bit."""
    return [(tag, str(value & 0o1777))]


MODE: Final = FieldKind(read_i16, write_i16, _show_mode, Shape.I16)
BOOL: Final = FieldKind(
    read_bool, write_bool, lambda tag, value: [(tag, "true" if value else "false")], shape=Shape.BOOL
)


# -- the client's request ------------------------------------------------------------------------------


def _read_client_id(data: bytes, at: int) -> tuple[bytes, int]:
    value, at = read_bytes16(data, at)
    _check_client_id(value)
    return value, at


def _check_client_id(value: bytes) -> None:
    if value and len(value) != _CLIENT_ID_BYTES:
        raise OpFormatError(f"a client's id has {_CLIENT_ID_BYTES} bytes or none, and this one {len(value)}")


def _write_client_id(value: bytes) -> bytes:
    _check_client_id(value)
    return write_bytes16(value)


CLIENT_ID: Final = FieldKind(
    _read_client_id,
    _write_client_id,
    lambda tag, value: [(tag, str(uuid.UUID(bytes=value)) if value else "")],
    shape=Shape.CLIENT_ID,
)


# -- permissions, blocks, names ------------------------------------------------------------------------


_known: Final[dict[bytes, Permissions]] = {}
"""Few owners, groups and modes make up most permissions: bytes -> what they mean."""


def _read_permissions(data: bytes, at: int) -> tuple[Permissions, int]:
    between = at + 1 + data[at]
    end = between + 3 + data[between]
    known = _known.get(data[at:end])
    if known is not None:
        return known, end
    owner, end = read_text(data, at)
    group, end = read_text(data, end)
    mode, end = read_i16(data, end)
    found = Permissions(owner, group, mode)
    if len(_known) < _KNOWN_MAX:
        _known[data[at:end]] = found
    return found, end


def _write_permissions(value: Permissions) -> bytes:
    return write_text(value.owner) + write_text(value.group) + write_i16(value.mode)


def _show_permissions(tag: str, value: Permissions) -> list[Element]:
    return [(tag, [("USERNAME", value.owner), ("GROUPNAME", value.group), *_show_mode("MODE", value.mode)])]


PERMISSIONS: Final = FieldKind(_read_permissions, _write_permissions, _show_permissions, Shape.KNOWN, _known)


def _show_blocks(tag: str, value: Sequence[Block]) -> list[Element]:
    return [
        (tag, [("BLOCK_ID", str(b.id)), ("NUM_BYTES", str(b.length)), ("GENSTAMP", str(b.generation))]) for b in value
    ]


def _read_blocks(data: bytes, at: int) -> tuple[tuple[Block, ...], int]:
    count, at = _read_count(data, at, _BLOCK.size)
    if count == 1:
        return (_new_tuple(Block, _BLOCK.unpack_from(data, at)),), at + _BLOCK.size
    end = at + count * _BLOCK.size
    return tuple(map(Block._make, _BLOCK.iter_unpack(data[at:end]))), end


def _write_blocks(value: Sequence[Block]) -> bytes:
    return write_i32(len(value)) + b"".join(map(write_i64, (number for block in value for number in block)))


def _read_count(data: bytes, at: int, least: int) -> tuple[int, int]:
    """A number of things of at least ``least`` bytes each. Refused before anything is made for them."""
    count, at = read_i32(data, at)
    if not 0 <= count <= (len(data) - at) // least:
        raise OpFormatError(f"{count} elements are said to follow at byte {at}, where {len(data) - at} bytes are left")
    return count, at


BLOCKS: Final = FieldKind(_read_blocks, _write_blocks, _show_blocks, Shape.TRIPLES, Block)


def _read_compact_blocks(data: bytes, at: int) -> tuple[tuple[Block, ...], int]:
    """Length and generation stand as the differences from the block before."""
    count, at = read_vint(data, at)
    if count < 0:
        raise OpFormatError(f"{count} blocks are said to follow at byte {at}")
    blocks: list[Block] = []
    length = generation = 0
    for _ in range(count):
        block_id, longer = _COMPACT_BLOCK.unpack_from(data, at)
        at += _COMPACT_BLOCK.size
        if longer > _VINT_OF_ONE_BYTE:
            longer, at = read_vint(data, at - 1)
        younger, at = read_vint(data, at)
        length += longer
        generation += younger
        blocks.append(_new_tuple(Block, (block_id, length, generation)))
    return tuple(blocks), at


def _write_compact_blocks(value: Sequence[Block]) -> bytes:
    parts, length, generation = [write_vint(len(value))], 0, 0
    for block in value:
        parts += [write_i64(block.id), write_vint(block.length - length), write_vint(block.generation - generation)]
        length, generation = block.length, block.generation
    return b"".join(parts)


COMPACT_BLOCKS: Final = FieldKind(
    _read_compact_blocks, _write_compact_blocks, _show_blocks, Shape.RISING_TRIPLES, Block
)


def _read_strings(data: bytes, at: int) -> tuple[tuple[str, ...], int]:
    count, at = _read_count(data, at, 2)
    found = []
    for _ in range(count):
        value, at = read_string(data, at)
        found.append(value)
    return tuple(found), at


SOURCES: Final = FieldKind(
    _read_strings,
    lambda value: write_i32(len(value)) + b"".join(map(write_string, value)),
    lambda tag, value: [(tag, [(f"SOURCE{number}", path) for number, path in enumerate(value, 1)])],
    shape=Shape.COUNTED,
)


def _read_options(data: bytes, at: int) -> tuple[bytes, int]:
    count, at = _read_count(data, at, 1)
    options = take(data, at, count)
    for option in options:
        _one_of(RENAME_OPTIONS, option, "option of a rename")
    return options, at + count


OPTIONS: Final = FieldKind(
    _read_options,
    lambda value: write_i32(len(value)) + value,
    lambda tag, value: [(tag, "|".join(RENAME_OPTIONS[option] for option in value))],
)


# -- access control lists and extended attributes ----------------------------------------------------


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
    count, at = _read_count(data, at, 1)
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


def _read_message(data: bytes, at: int) -> tuple[list[tuple[int, int | bytes]], int]:
    """A protobuf message behind its length, as (number of the field, varint or bytes)."""
    size, at = _read_varint(data, at)
    return _fields(take(data, at, size)), at + size


def _fields(message: bytes) -> list[tuple[int, int | bytes]]:
    found: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type not in (0, 2):
            raise OpFormatError(f"field {number} of a message has wire type {wire_type}, which HDFS does not use here")
        value, at = _read_varint(message, at)
        if wire_type == 0:
            found.append((number, value))
        else:
            found.append((number, take(message, at, value)))
            at += value
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise OpFormatError(f"the number that ends at byte {at} is too long")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    raw = value.encode("utf-8") if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _record(message: list[tuple[int, int | bytes]], kinds: dict[int, type], what: str) -> dict[int, Any]:
    """The fields by number, none twice. Raises: OpFormatError: an unknown field, or one of another type."""
    found: dict[int, Any] = {}
    for number, value in message:
        if number in found or not isinstance(value, bytes if kinds.get(number) is str else kinds.get(number, str)):
            raise OpFormatError(f"field {number} of {what} is unknown, of another type, or there twice")
        found[number] = value.decode("utf-8") if kinds[number] is str and isinstance(value, bytes) else value
    return found


def _acl_entry(message: bytes) -> HdfsAclEntry:
    found = _record(_fields(message), {1: int, 2: int, 3: int, 4: str}, "an entry of an access control list")
    entry = HdfsAclEntry(found.get(2, -1), found.get(1, -1), found.get(3, -1), found.get(4))
    _one_of(SCOPES, entry.scope, "scope of an access control list")
    _one_of(TYPES, entry.type, "type of an entry of an access control list")
    _one_of(ACTIONS, entry.permission, "permission")
    return entry


def _xattr(message: bytes) -> XAttr:
    found = _record(_fields(message), {1: int, 2: str, 3: bytes}, "an extended attribute")
    xattr = XAttr(found.get(1, -1), found.get(2, ""), found.get(3))
    _one_of(NAMESPACES, xattr.namespace, "namespace of extended attributes")
    return xattr


def _split(message: list[tuple[int, int | bytes]], what: str) -> tuple[str, list[bytes]]:
    """The path (field 1), and the messages of the repeated field 2."""
    inside = [value for number, value in message if number == 2 and isinstance(value, bytes)]
    found = _record([item for item in message if item[0] != 2], {1: str}, what)
    if len(inside) + len(found) != len(message):
        raise OpFormatError(f"field 2 of {what} is no message")
    return found.get(1, ""), inside


def _xattr_messages(xattrs: Sequence[XAttr]) -> bytes:
    return b"".join(
        _field(2, _field(1, x.namespace) + _field(2, x.name) + (b"" if x.value is None else _field(3, x.value)))
        for x in xattrs
    )


def _delimited(message: bytes) -> bytes:
    return _varint(len(message)) + message


def _read_path_acl(data: bytes, at: int) -> tuple[PathAcl, int]:
    message, at = _read_message(data, at)
    path, entries = _split(message, "an access control list")
    return PathAcl(path, tuple(map(_acl_entry, entries))), at


def _write_path_acl(value: PathAcl) -> bytes:
    entries = (
        _field(1, e.type)
        + _field(2, e.scope)
        + _field(3, e.permission)
        + (b"" if e.name is None else _field(4, e.name))
        for e in value.entries
    )
    return _delimited(_field(1, value.path) + b"".join(_field(2, entry) for entry in entries))


def _read_path_xattrs(data: bytes, at: int) -> tuple[PathXAttrs, int]:
    message, at = _read_message(data, at)
    path, xattrs = _split(message, "extended attributes")
    return PathXAttrs(path, tuple(map(_xattr, xattrs))), at


def _read_xattrs(data: bytes, at: int) -> tuple[tuple[XAttr, ...], int]:
    if data[at] == 0:
        return (), at + 1
    found, at = _read_path_xattrs(data, at)
    if found.path:
        raise OpFormatError(f"the extended attributes of a new inode name a path: {found.path!r}")
    return found.xattrs, at


XATTRS: Final = FieldKind(
    _read_xattrs, lambda value: _delimited(_xattr_messages(value)), _show_xattrs, shape=Shape.MESSAGE
)
PATH_ACL: Final = FieldKind(
    _read_path_acl, _write_path_acl, lambda tag, value: [("SRC", value.path), *_show_acl(tag, value.entries)]
)
PATH_XATTRS: Final = FieldKind(
    _read_path_xattrs,
    lambda value: _delimited(_field(1, value.path) + _xattr_messages(value.xattrs)),
    lambda tag, value: [("SRC", value.path), *_show_xattrs(tag, value.xattrs)],
)


# -- records of which some fields may be missing ------------------------------------------------------


def _read_flagged(data: bytes, at: int, kinds: Sequence[FieldKind]) -> tuple[list[Any], int]:
    """The fields whose bits are set, None for the others."""
    flags, at = read_i32(data, at)
    if flags >> len(kinds):
        raise OpFormatError(f"flags {flags:#x} name fields that HDFS does not know here")
    values: list[Any] = []
    for bit, kind in enumerate(kinds):
        value = None
        if flags & 1 << bit:
            value, at = kind.read(data, at)
        values.append(value)
    return values, at


def _write_flagged(values: Sequence[Any], kinds: Sequence[FieldKind]) -> bytes:
    flags = sum(1 << bit for bit, value in enumerate(values) if value is not None)
    return write_i32(flags) + b"".join(
        kind.write(value) for value, kind in zip(values, kinds, strict=True) if value is not None
    )


def _show_present(tags: Sequence[str], values: Sequence[object]) -> list[Element]:
    return [(tag, str(value)) for tag, value in zip(tags, values, strict=True) if value is not None]


_DIRECTIVE: Final = (STRING, I16, STRING, I64)
_POOL: Final = (STRING, STRING, MODE, I64, I64, I16)


def _read_directive(data: bytes, at: int) -> tuple[CacheDirective, int]:
    number, at = read_i64(data, at)
    values, at = _read_flagged(data, at, _DIRECTIVE)
    return CacheDirective(number, *values), at


def _read_pool(data: bytes, at: int) -> tuple[CachePool, int]:
    name, at = read_string(data, at)
    values, at = _read_flagged(data, at, _POOL)
    return CachePool(name, *values), at


CACHE_DIRECTIVE: Final = FieldKind(
    _read_directive,
    lambda value: write_i64(value.id) + _write_flagged(value[1:], _DIRECTIVE),
    lambda _, value: _show_present(("ID", "PATH", "REPLICATION", "POOL", "EXPIRATION"), value),
)
_POOL_TAGS: Final = ("OWNERNAME", "GROUPNAME", "MODE", "LIMIT", "MAXRELATIVEEXPIRY", "DEFAULTREPLICATION")


def _show_pool(_: str, value: CachePool) -> list[Element]:
    shown: list[Element] = [("POOLNAME", value.name)]
    for tag, kind, field in zip(_POOL_TAGS, _POOL, value[1:], strict=True):
        if field is not None:
            shown += kind.show(tag, field)
    return shown


CACHE_POOL: Final = FieldKind(
    _read_pool, lambda value: write_string(value.name) + _write_flagged(value[1:], _POOL), _show_pool
)


# -- delegation tokens and erasure coding --------------------------------------------------------------


def _read_token(data: bytes, at: int) -> tuple[DelegationToken, int]:
    version = data[at]
    if version:
        raise OpFormatError(f"a delegation token has version {version}, and HDFS writes version 0")
    owner, at = read_text(data, at + 1)
    renewer, at = read_text(data, at)
    real_user, at = read_text(data, at)
    numbers = []
    for _ in range(4):
        number, at = read_vint(data, at)
        numbers.append(number)
    return DelegationToken(owner, renewer, real_user, *numbers), at


def _write_token(value: DelegationToken) -> bytes:
    return b"\x00" + b"".join(map(write_text, value[:3])) + b"".join(map(write_vint, value[3:]))


def _show_token(tag: str, value: DelegationToken) -> list[Element]:
    inside: list[Element] = [
        ("KIND", TOKEN_KIND),
        ("SEQUENCE_NUMBER", str(value.sequence)),
        ("OWNER", value.owner),
        ("RENEWER", value.renewer),
        ("REALUSER", value.real_user),
        ("ISSUE_DATE", str(value.issued)),
        ("MAX_DATE", str(value.ends)),
        ("MASTER_KEY_ID", str(value.key_id)),
    ]
    return [(tag, inside)]


DELEGATION_TOKEN: Final = FieldKind(_read_token, _write_token, _show_token)


def _read_key(data: bytes, at: int) -> tuple[DelegationKey, int]:
    number, at = read_vint(data, at)
    expires, at = read_vint(data, at)
    count, at = read_vint(data, at)
    if count == -1:
        return DelegationKey(number, expires), at
    return DelegationKey(number, expires, take(data, at, count)), at + count


def _write_key(value: DelegationKey) -> bytes:
    key = write_vint(-1) if value.key is None else write_vint(len(value.key)) + value.key
    return write_vint(value.id) + write_vint(value.expires) + key


def _show_key(tag: str, value: DelegationKey) -> list[Element]:
    inside: list[Element] = [("KEY_ID", str(value.id)), ("EXPIRY_DATE", str(value.expires))]
    if value.key is not None:
        inside.append(("KEY", value.key.hex()))
    return [(tag, inside)]


DELEGATION_KEY: Final = FieldKind(_read_key, _write_key, _show_key)


def _read_schema(data: bytes, at: int) -> tuple[ErasureCodingSchema, int]:
    codec, at = read_string(data, at)
    data_units, at = read_i32(data, at)
    parity_units, at = read_i32(data, at)
    cell_size, at = read_i32(data, at)
    count, at = _read_count(data, at, 4)
    options = []
    for _ in range(count):
        key, at = read_string(data, at)
        value, at = read_string(data, at)
        options.append((key, value))
    return ErasureCodingSchema(codec, data_units, parity_units, cell_size, tuple(options)), at


def _write_schema(value: ErasureCodingSchema) -> bytes:
    options = b"".join(write_string(text) for option in value.options for text in option)
    numbers = (value.data_units, value.parity_units, value.cell_size, len(value.options))
    return write_string(value.codec) + b"".join(map(write_i32, numbers)) + options


def _show_schema(_: str, value: ErasureCodingSchema) -> list[Element]:
    shown: list[Element] = [
        ("CODEC", value.codec),
        ("DATAUNITS", str(value.data_units)),
        ("PARITYUNITS", str(value.parity_units)),
        ("CELLSIZE", str(value.cell_size)),
        ("EXTRAOPTIONS", str(len(value.options))),
    ]
    for key, text in value.options:
        shown.append(("EXTRAOPTION", [("KEY", key), ("VALUE", text)]))
    return shown


SCHEMA: Final = FieldKind(_read_schema, _write_schema, _show_schema)
