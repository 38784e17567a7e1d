"""How the bytes of a field of an edit's body begin, for a reader that takes many fields at once."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

FieldReader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""Reads one field of a body from an offset on, and says where it ends."""

BodyDecoder: TypeAlias = Callable[[bytes], Any]
"""Reads a body that is whole and exact; for all others it raises."""

MAX_FIELDS: Final = 64
"""A body has no more fields."""


class Shape(IntEnum):
    """What a codec knows of a field. Where it knows too little, it calls the field's own reader."""

    OWN = 0
    """Only its reader knows."""
    ABSENT = 1
    """This layout has no such field; it is 0, and has no bytes."""
    I8 = 2
    I16 = 3
    I32 = 4
    I64 = 5
    BOOL = 6
    """One byte, 0 or 1."""
    STRING = 7
    """A length of 16 bits, and a string in Java's UTF-8. Its reader is asked if that is not ASCII."""
    CLIENT_ID = 8
    """A length of 16 bits, which is 0 or 16, and so many bytes."""
    COUNTED = 9
    """A number of 32 bits, which is 0 for (); else its reader is asked."""
    MESSAGE = 10
    """A byte, which is 0 for (); else its reader is asked."""
    TRIPLES = 11
    """A number of 32 bits, and so many named tuples of three integers of 64 bits. Its reader is asked for many."""
    RISING_TRIPLES = 12
    """A number of Hadoop's variable length, and so many named tuples of an integer of 64 bits and two of variable
    length, which stand as the differences from the tuple before. Its reader is asked where they are large or many."""
    KNOWN = 13
    """Two texts behind a byte with their length, and an integer of 16 bits, of which there are few different ones. Its
    reader is asked for what is not known yet."""


class Field(NamedTuple):
    """One field of a body, for a codec."""

    shape: Shape
    read: FieldReader | None = None
    """Its own reader, which every shape without a fixed length has."""
    inside: Any = None
    """The class of the triples; what is known, by its bytes."""
