"""The protobuf messages inside HDFS's edits, field by field: what is unknown or there twice is refused."""

from __future__ import annotations

from typing import Any

from journal_manager.errors import OpFormatError
from journal_manager.hdfs.primitives import (
    take,
)


def read_message(data: bytes, at: int) -> tuple[list[tuple[int, int | bytes]], int]:
    """A protobuf message behind its length, as (number of the field, varint or bytes)."""
    size, at = _read_varint(data, at)
    return fields_of(take(data, at, size)), at + size


def fields_of(message: bytes) -> list[tuple[int, int | bytes]]:
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


def varint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field_bytes(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint_bytes(number << 3) + varint_bytes(value)
    raw = value.encode("utf-8") if isinstance(value, str) else value
    return varint_bytes(number << 3 | 2) + varint_bytes(len(raw)) + raw


def fields_by_number(message: list[tuple[int, int | bytes]], kinds: dict[int, type], what: str) -> dict[int, Any]:
    """The fields by number, none twice. Raises: OpFormatError: an unknown field, or one of another type."""
    found: dict[int, Any] = {}
    for number, value in message:
        if number in found or not isinstance(value, bytes if kinds.get(number) is str else kinds.get(number, str)):
            raise OpFormatError(f"field {number} of {what} is unknown, of another type, or there twice")
        found[number] = value.decode("utf-8") if kinds[number] is str and isinstance(value, bytes) else value
    return found


def path_and_messages(message: list[tuple[int, int | bytes]], what: str) -> tuple[str, list[bytes]]:
    """The path (field 1), and the messages of the repeated field 2."""
    inside = [value for number, value in message if number == 2 and isinstance(value, bytes)]
    found = fields_by_number([item for item in message if item[0] != 2], {1: str}, what)
    if len(inside) + len(found) != len(message):
        raise OpFormatError(f"field 2 of {what} is no message")
    return found.get(1, ""), inside


def delimited(message: bytes) -> bytes:
    return varint_bytes(len(message)) + message
