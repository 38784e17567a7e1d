"""The bytes of the file ``owners`` in a bookie's directory: which ledger has which owner. Pure: no I/O.

    file    group | group | ...
    group   stamp BKOW of a body: what was written and synced together
    body    for each owner: size of its text u16 | ledgers u32 | text | ledger i64, ...

A later group counts before an earlier one. A crash may tear the last group: nobody was told that it is durable, and it
is cut. A group that cannot be read with one behind it that can is damage: the owners in it are not known any more.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from sys import byteorder
from typing import Final

from bookkeeper.access import Resource
from bookkeeper.access.ownership import OWNER_MAX, checked_owner
from bookkeeper.errors import ConfigError, CorruptionError
from bookkeeper.storage.base.durable_file import STAMP_SIZE, stamp, unstamp

NAME: Final = "owners"
_MAGIC: Final = b"BKOW"
_VERSION: Final = 1
_PART: Final = Struct(">HI")


@dataclass(slots=True)
class ReadOwners:
    """What a file holds."""

    parts: list[tuple[Resource, array[int]]] = field(default_factory=list)
    """Owners and ledgers, in the order in which they were written."""
    end: int = 0
    """Where the last group that can be read ends."""
    damage: str | None = None
    """Why owners may be missing that were there; None: none are."""


def encode_group(owned: Mapping[Resource, Iterable[int]]) -> bytes:
    """One group."""
    pieces: list[bytes] = []
    for owner, ledgers in owned.items():
        text, ids = str(owner).encode(), array("q", ledgers)
        if byteorder == "little":
            ids.byteswap()
        pieces += (_PART.pack(len(text), len(ids)), text, ids.tobytes())
    return stamp(_MAGIC, _VERSION, b"".join(pieces))


def decode_owners(data: bytes, path: str) -> ReadOwners:
    """
    Raises:
        UnsupportedFormatError: a group is of another version.
    """
    found, at, bad = ReadOwners(), 0, None
    while at < len(data):
        try:
            body = unstamp(memoryview(data)[at:], _MAGIC, _VERSION, path)
            parts = _decode_body(body, path)
        except CorruptionError:
            bad = at if bad is None else bad
            at = data.find(_MAGIC, at + 1)
            if at < 0:
                break
            continue
        if bad is not None:
            found.damage = f"{path} is damaged at offset {bad}"
        found.parts += parts
        at += STAMP_SIZE + len(body)
        found.end = at
    return found


def refuse_damage(data: bytes, path: str) -> None:
    """Raises: CorruptionError: owners are missing that were there. UnsupportedFormatError: as :func:`decode_owners`."""
    if (damage := decode_owners(data, path).damage) is not None:
        raise CorruptionError(damage)


def _decode_body(body: bytes, path: str) -> list[tuple[Resource, array[int]]]:
    parts: list[tuple[Resource, array[int]]] = []
    at = 0
    while at < len(body):
        try:
            size, count = _PART.unpack_from(body, at)
            at += _PART.size
            ids = array("q", body[at + size : at + size + 8 * count])
            if size > OWNER_MAX or len(ids) != count:
                raise ValueError("it is cut")
            owner = checked_owner(body[at : at + size].decode())
        except (ValueError, ConfigError, StructError) as error:
            raise CorruptionError(f"{path} is damaged: a group cannot be read: {error}") from error
        if byteorder == "little":
            ids.byteswap()
        parts.append((owner, ids))
        at += size + 8 * count
    return parts
