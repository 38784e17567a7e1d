"""Fields of files and directories: permissions, blocks, the paths and options of a step."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from journal_manager.codec import Shape
from journal_manager.errors import OpFormatError
from journal_manager.hdfs.field_kinds import Element, FieldKind, one_of, read_count, show_mode
from journal_manager.hdfs.op_values import (
    Block,
    Permissions,
)
from journal_manager.hdfs.primitives import (
    read_i16,
    read_string,
    read_text,
    read_vint,
    take,
    write_i16,
    write_i32,
    write_i64,
    write_string,
    write_text,
    write_vint,
)

RENAME_OPTIONS: Final = ("NONE", "OVERWRITE", "TO_TRASH")

_BLOCK: Final = struct.Struct(">qqq")
_COMPACT_BLOCK: Final = struct.Struct(">qB")
"""The id, and the first byte of the length as a ``vint``."""
_VINT_OF_ONE_BYTE: Final = 127
_new_tuple: Final = tuple.__new__

_KNOWN_MAX: Final = 1024

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
    return [(tag, [("USERNAME", value.owner), ("GROUPNAME", value.group), *show_mode("MODE", value.mode)])]


PERMISSIONS: Final = FieldKind(_read_permissions, _write_permissions, _show_permissions, Shape.KNOWN, _known)


def _show_blocks(tag: str, value: Sequence[Block]) -> list[Element]:
    return [
        (tag, [("BLOCK_ID", str(b.id)), ("NUM_BYTES", str(b.length)), ("GENSTAMP", str(b.generation))]) for b in value
    ]


def _read_blocks(data: bytes, at: int) -> tuple[tuple[Block, ...], int]:
    count, at = read_count(data, at, _BLOCK.size)
    if count == 1:
        return (_new_tuple(Block, _BLOCK.unpack_from(data, at)),), at + _BLOCK.size
    end = at + count * _BLOCK.size
    return tuple(map(Block._make, _BLOCK.iter_unpack(data[at:end]))), end


def _write_blocks(value: Sequence[Block]) -> bytes:
    return write_i32(len(value)) + b"".join(map(write_i64, (number for block in value for number in block)))


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
    count, at = read_count(data, at, 2)
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
    count, at = read_count(data, at, 1)
    options = take(data, at, count)
    for option in options:
        one_of(RENAME_OPTIONS, option, "option of a rename")
    return options, at + count


OPTIONS: Final = FieldKind(
    _read_options,
    lambda value: write_i32(len(value)) + value,
    lambda tag, value: [(tag, "|".join(RENAME_OPTIONS[option] for option in value))],
)
