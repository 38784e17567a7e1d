"""The kinds of fields that HDFS's edits are made of: their bytes, and how ``hdfs oev`` shows them; the plain kinds.

A field is shown as elements with HDFS's tags, of text or of further elements.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from journal_manager.codec import Shape
from journal_manager.errors import OpFormatError
from journal_manager.hdfs.primitives import (
    read_bool,
    read_bytes16,
    read_i8,
    read_i16,
    read_i32,
    read_i64,
    read_string,
    write_bool,
    write_bytes16,
    write_i8,
    write_i16,
    write_i32,
    write_i64,
    write_string,
)

Element: TypeAlias = "tuple[str, str | list[Element]]"
"""A tag with its text, or with the elements inside."""

_CLIENT_ID_BYTES: Final = 16


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


def one_of(names: Sequence[str], number: int, what: str) -> str:
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


def show_mode(tag: str, value: int) -> list[Element]:
    """HDFS keeps more bits than it shows: the nine permission bits and the sticky bit."""
    return [(tag, str(value & 0o1777))]


MODE: Final = FieldKind(read_i16, write_i16, show_mode, Shape.I16)
BOOL: Final = FieldKind(
    read_bool, write_bool, lambda tag, value: [(tag, "true" if value else "false")], shape=Shape.BOOL
)


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


def read_count(data: bytes, at: int, least: int) -> tuple[int, int]:
    """A number of things of at least ``least`` bytes each. Refused before anything is made for them."""
    count, at = read_i32(data, at)
    if not 0 <= count <= (len(data) - at) // least:
        raise OpFormatError(f"{count} elements are said to follow at byte {at}, where {len(data) - at} bytes are left")
    return count, at
