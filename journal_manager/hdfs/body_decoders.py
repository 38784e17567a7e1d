"""Makes functions that read whole bodies of edits, one for each op code and layout (pure).

A replay is bound by calls. So the text of a function is written from the fields' kinds and compiled when the op code is
first met: integers that stand in a row, and the length of the string behind them, are one call of :mod:`struct`;
strings, flags and empty lists need none. A kind of which nothing is known here is read by its own function.

A compiled function reads whole and exact bodies. For all others it raises, and :mod:`.op_codec` finds out what is wrong
by reading field after field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from journal_manager.errors import OpFormatError
from journal_manager.hdfs.field_kinds import FieldKind, Shape
from journal_manager.hdfs.primitives import decode_modified_utf8

BodyDecoder = Callable[[bytes], Any]

FAILURES: Final = (OpFormatError, struct.error, IndexError, ValueError)
"""What a compiled function raises for a body that is not whole and exact."""

_LENGTHS: Final = {Shape.STRING: "H", Shape.CLIENT_ID: "H", Shape.COUNTED: "i", Shape.MESSAGE: "B"}
"""What stands before the bytes of a field, as a letter of :mod:`struct`."""
_CLIENT_ID_BYTES: Final = 16


def body_decoder(kind: type, fields: Iterable[FieldKind | None]) -> BodyDecoder:
    """The function that reads a body of these fields as a ``kind``. None is a field that this layout does not have."""
    source = _BodySource()
    for field in fields:
        source.add(field)
    text = source.text()
    names = source.names | {"_new": tuple.__new__, "_kind": kind, "_wide": decode_modified_utf8, "_wrong": _wrong}
    exec(compile(text, f"<body of {kind.__name__}>", "exec"), names)  # noqa: S102  # made of this module's own words
    made: BodyDecoder = names["decode"]
    return made


def _wrong() -> None:
    raise OpFormatError("the body is not one of its kind")


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

    def add(self, field: FieldKind | None) -> None:
        """The next field."""
        number = len(self._values)
        value = f"v{number}"
        if field is None:
            self._values.append("0")
        elif field.packed:
            self._number(field.packed, value)
            self._values.append(value)
        elif field.shape is Shape.BOOL:
            self._number("B", value)
            self._values.append(f"{value} == 1")
        else:
            self._values.append(value)
            self._variable(field, value, f"read{number}")

    def _number(self, letter: str, target: str) -> None:
        self._letters += letter
        self._targets.append(target)

    def _variable(self, field: FieldKind, value: str, read: str) -> None:
        """A field of no fixed length. ``at`` is where it begins, or where what is behind its length begins."""
        length = _LENGTHS.get(field.shape, "")
        if length:
            self._number(length, "n")
        self._read_numbers()
        if field.shape is Shape.STRING:
            self._lines += [
                "raw = body[at : at + n]",
                "at += n",
                f"{value} = str(raw, 'ascii') if raw.isascii() else _wide(raw)",
            ]
        elif field.shape is Shape.CLIENT_ID:
            self._lines += [
                f"if n and n != {_CLIENT_ID_BYTES}: _wrong()",
                f"{value} = body[at : at + n]",
                "at += n",
            ]
        elif length:
            self.names[read] = field.read
            back = struct.calcsize(f">{length}")
            self._lines += [f"{value} = ()", f"if n: {value}, at = {read}(body, at - {back})"]
        else:
            self.names[read] = field.read
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
