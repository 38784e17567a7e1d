"""Fields that are whole records: cache directives and pools, delegation tokens and keys, erasure coding schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from journal_manager.errors import OpFormatError
from journal_manager.hdfs.field_kinds import I16, I64, MODE, STRING, Element, FieldKind, read_count
from journal_manager.hdfs.op_values import (
    CacheDirective,
    CachePool,
    DelegationKey,
    DelegationToken,
    ErasureCodingSchema,
)
from journal_manager.hdfs.primitives import (
    read_i32,
    read_i64,
    read_string,
    read_text,
    read_vint,
    take,
    write_i32,
    write_i64,
    write_string,
    write_text,
    write_vint,
)

TOKEN_KIND: Final = "HDFS_DELEGATION_TOKEN"


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
    count, at = read_count(data, at, 4)
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
