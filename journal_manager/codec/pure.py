"""Frames and bodies of edits, in Python.

A replay is bound by calls. So the text of a function that reads a body is written from the fields' shapes and compiled:
integers that stand in a row, and the length of the string behind them, are one call of :mod:`struct`; strings, flags
and empty lists need none.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, Final

from journal_manager.codec.shapes import MAX_FIELDS, BodyDecoder, Field, FieldReader, Shape

_FRAME: Final = struct.Struct(">BIQ")
_CRC: Final = struct.Struct(">I")
_OVERHEAD: Final = _FRAME.size + _CRC.size
_LEAST_LENGTH: Final = _OVERHEAD - 5
_MAX_OPCODE: Final = 127
_MAX_TXID: Final = 2**63 - 1
_new: Final[Any] = tuple.__new__

_LETTERS: Final = {Shape.I8: "b", Shape.I16: "h", Shape.I32: "i", Shape.I64: "q", Shape.BOOL: "B"}
_LENGTHS: Final = {
    Shape.STRING: "H",
    Shape.CLIENT_ID: "H",
    Shape.COUNTED: "i",
    Shape.TRIPLES: "i",
    Shape.MESSAGE: "B",
}
"""What stands before the bytes of a field, as a letter of :mod:`struct`."""
_CLIENT_ID_BYTES: Final = 16


def read_frames(
    kind: type, data: bytes, at: int, end: int, txid: int, most: int, count: int
) -> tuple[list[Any], list[int]]:
    """Cut up to ``count`` frames of edits from ``at`` on, as long as they are whole before ``end`` and as they must be:
    their ids rise by one from ``txid`` on, their lengths are at most ``most``, their checksums match, and no request id
    stands before the body.

    Returns:
        The edits as named tuples of ``kind`` (op code, transaction id, body, None), and where each ends.
    """
    ops: list[Any] = []
    ends: list[int] = []
    view = memoryview(data)
    end = min(end, len(data))
    while len(ops) < count and 0 <= at <= end - _OVERHEAD:
        opcode, length, found = _FRAME.unpack_from(data, at)
        body_end = at + 1 + length
        if not _LEAST_LENGTH <= length <= most or body_end + _CRC.size > end or opcode > _MAX_OPCODE:
            break
        if found != txid or not 1 <= txid <= _MAX_TXID:
            break
        if zlib.crc32(view[at:body_end]) != _CRC.unpack_from(data, body_end)[0]:
            break
        ops.append(_new(kind, (opcode, found, data[at + _FRAME.size : body_end], None)))
        at, txid = body_end + _CRC.size, txid + 1
        ends.append(at)
    return ops, ends


def body_decoder(kind: type, fields: Sequence[Field]) -> BodyDecoder:
    """The function that reads bodies of these fields, at most MAX_FIELDS, as named tuples of ``kind``. It raises
    ValueError, struct.error or IndexError, or what a reader does, for a body that is not whole and exact."""
    if len(fields) > MAX_FIELDS:
        raise ValueError(f"a body has at most {MAX_FIELDS} fields, not {len(fields)}")
    source = _BodySource()
    for field in fields:
        source.add(field.shape, field.read)
    text = source.text()
    names = source.names | {"_new": tuple.__new__, "_kind": kind, "_wrong": _wrong}
    exec(compile(text, f"<body of {kind.__name__}>", "exec"), names)  # noqa: S102  # made of this module's own words
    made: BodyDecoder = names["decode"]
    return made


def _wrong() -> None:
    raise ValueError("the body is not one of its kind")


class _BodySource:
    """Writes the text of one function, field by field."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        """What the text refers to."""
        self._lines: list[str] = []
        self._values: list[str] = []
        """An expression for each field."""
        self._letters = ""
        self._targets: list[str] = []
        """Numbers that are read together at the next call, and where they go."""

    def add(self, shape: Shape, reader: FieldReader | None) -> None:
        """The next field."""
        number = len(self._values)
        value = f"v{number}"
        if shape is Shape.ABSENT:
            self._values.append("0")
        elif shape in _LETTERS:
            self._number(_LETTERS[shape], value)
            self._values.append(f"{value} == 1" if shape is Shape.BOOL else value)
        else:
            self._values.append(value)
            self.names[f"read{number}"] = reader
            self._variable(shape, value, f"read{number}")

    def _number(self, letter: str, target: str) -> None:
        self._letters += letter
        self._targets.append(target)

    def _variable(self, shape: Shape, value: str, read: str) -> None:
        """A field of no fixed length. ``at`` is where it begins, or where what is behind its length begins."""
        length = _LENGTHS.get(shape, "")
        if length:
            self._number(length, "n")
        self._read_numbers()
        if shape is Shape.STRING:
            self._lines += [
                "raw = body[at : at + n]",
                f"if raw.isascii(): {value} = str(raw, 'ascii'); at += n",
                f"else: {value}, at = {read}(body, at - 2)",
            ]
        elif shape is Shape.CLIENT_ID:
            self._lines += [
                f"if n and n != {_CLIENT_ID_BYTES}: _wrong()",
                f"{value} = body[at : at + n]",
                "at += n",
            ]
        elif length:
            back = struct.calcsize(f">{length}")
            self._lines += [f"{value} = ()", f"if n: {value}, at = {read}(body, at - {back})"]
        else:
            self._lines.append(f"{value}, at = {read}(body, at)")

    def _read_numbers(self) -> None:
        if not self._letters:
            return
        layout = struct.Struct(f">{self._letters}")
        unpack = f"numbers{len(self.names)}"
        self.names[unpack] = layout.unpack_from
        self._lines += [f"{', '.join(self._targets)}, = {unpack}(body, at)", f"at += {layout.size}"]
        self._lines += [
            f"if {t} > 1: _wrong()"
            for t, kind in zip(self._targets, self._letters, strict=True)
            if kind == "B" and t != "n"
        ]
        self._letters = ""
        self._targets = []

    def text(self) -> str:
        """The whole function."""
        self._read_numbers()
        lines = ["at = 0", *self._lines, "if at != len(body): _wrong()"]
        lines.append(f"return _new(_kind, ({''.join(f'{value}, ' for value in self._values)}))")
        return "\n    ".join(["def decode(body):", *lines])
