"""How many things a request has, counted in its bytes before it is parsed. Pure.

A record may have two bytes, and takes some hundred in memory once it is parsed. So a message within the limit of bytes
may still be far beyond what it may cost. Values are jumped over, however long they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.descriptor import Descriptor

from bookkeeper.amounts import counted
from segments.errors import StreamConfigError

ELEMENTS_MAX: Final = 131_072
"""How many a request may have. Clients know it, too: they refuse a batch that has more before they send it."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_CONTINUED: Final = 0x80


@dataclass(slots=True)
class _Shape:
    """What matters of a message type: its repeated fields, and the fields in which there may be more of them."""

    repeated: set[int] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    """Those of them that hold numbers, which stand side by side, each in a byte or more."""
    inner: dict[int, _Shape] = field(default_factory=dict)


class ElementCounter:
    """Counts the elements of messages of one type: the values of all its repeated fields, however deep they are."""

    def __init__(self, message: type[Any]) -> None:
        """Raises ValueError: a message of this type may have others of it inside."""
        self._shape = _shape_of(message.DESCRIPTOR, ())

    def count(self, raw: bytes, most: int) -> int:
        """How many elements the message has; of numbers side by side, as many as they have bytes.

        Raises:
            StreamConfigError: more than ``most``.
        """
        if not (self._shape.repeated or self._shape.inner):
            return 0
        found = _count(raw, self._shape, 0, len(raw), 0, most)
        if found > most:
            raise StreamConfigError(
                f"a request may have {counted(most, 'record')}, headers and other repeated values, "
                "and this one has more: nothing "
                "of it was looked at; send several requests"
            )
        return found


def _shape_of(of: Descriptor, above: tuple[str, ...]) -> _Shape:
    if of.full_name in above:
        raise ValueError(f"{of.full_name} may have others of it inside, as many as there are bytes")
    shape = _Shape()
    for each in of.fields:
        if each.is_repeated:
            shape.repeated.add(each.number)
            if each.is_packed:
                shape.numbers.add(each.number)
        if each.message_type is not None:
            inner = _shape_of(each.message_type, (*above, of.full_name))
            if inner.repeated or inner.inner:
                shape.inner[each.number] = inner
    return shape


def _count(raw: bytes, shape: _Shape, at: int, end: int, found: int, most: int) -> int:
    """``found``, and the elements in these bytes; it stops above ``most``. What is malformed the parser will refuse."""
    repeated, inner = shape.repeated, shape.inner
    while at < end and found <= most:
        tag = raw[at]
        at += 1
        if tag >= _CONTINUED:
            tag, at = _varint(raw, at - 1, end)
        kind = tag & 7
        if kind == _LENGTH:
            if at >= end:
                break
            size = raw[at]
            at += 1
            if size >= _CONTINUED:
                size, at = _varint(raw, at - 1, end)
            number = tag >> 3
            if number in repeated:
                found += size if number in shape.numbers else 1
            if number in inner:
                found = _count(raw, inner[number], at, min(at + size, end), found, most)
            at += size
        elif kind == _VARINT:
            _, at = _varint(raw, at, end)
            found += tag >> 3 in repeated
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
            found += tag >> 3 in repeated
        else:
            break
    return found


def _varint(raw: bytes, at: int, end: int) -> tuple[int, int]:
    """A number, and where it ends. One that is cut ends with the message."""
    number = shift = 0
    while at < end and shift < 70:
        byte = raw[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < _CONTINUED:
            return number, at
        shift += 7
    return number, end
