"""Java's and Hadoop's primitive types as bytes: integers, strings, integers of variable length.

Each ``read_*`` takes the bytes and an offset, and returns the value and the offset behind it. If the bytes end too
early, it raises OpFormatError, struct.error or IndexError; :mod:`journal_manager.hdfs.op_codec` makes them one error.
"""

from __future__ import annotations

import struct
from typing import Final

from journal_manager.errors import OpFormatError

_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")
MAX_STRING_BYTES: Final = 0xFFFF
"""The most bytes a Java string takes: its length stands in 16 bits."""


def read_i8(data: bytes, at: int) -> tuple[int, int]:
    return (data[at] ^ 0x80) - 0x80, at + 1


def write_i8(value: int) -> bytes:
    return value.to_bytes(1, "big", signed=True)


def read_i16(data: bytes, at: int) -> tuple[int, int]:
    return _I16.unpack_from(data, at)[0], at + 2


def write_i16(value: int) -> bytes:
    return _I16.pack(value)


def read_i32(data: bytes, at: int) -> tuple[int, int]:
    return _I32.unpack_from(data, at)[0], at + 4


def write_i32(value: int) -> bytes:
    return _I32.pack(value)


def read_i64(data: bytes, at: int) -> tuple[int, int]:
    return _I64.unpack_from(data, at)[0], at + 8


def write_i64(value: int) -> bytes:
    return _I64.pack(value)


def read_bool(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise OpFormatError(f"byte {at} is {byte}, and should be true (1) or false (0)")
    return byte == 1, at + 1


def write_bool(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def take(data: bytes, at: int, count: int) -> bytes:
    """The ``count`` bytes from ``at`` on. Raises: OpFormatError: there are fewer, or ``count`` is negative."""
    if count < 0 or at + count > len(data):
        raise OpFormatError(f"{count} bytes are said to follow at byte {at}, and {len(data) - at} are left")
    return data[at : at + count]


def read_bytes16(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes behind their 16-bit length."""
    count = data[at] << 8 | data[at + 1]
    return take(data, at + 2, count), at + 2 + count


def write_bytes16(value: bytes) -> bytes:
    if len(value) > MAX_STRING_BYTES:
        raise ValueError(f"{len(value)} bytes are too many: a string or id has at most {MAX_STRING_BYTES}")
    return len(value).to_bytes(2, "big") + value


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """A string behind its 16-bit length, in Java's modified UTF-8."""
    end = at + 2 + (data[at] << 8 | data[at + 1])
    raw = data[at + 2 : end]
    if end > len(data):
        raise OpFormatError(f"a string of {end - at - 2} bytes begins at byte {at}, and {len(raw)} are left")
    return (raw.decode("ascii") if raw.isascii() else decode_modified_utf8(raw)), end


def write_string(value: str) -> bytes:
    return write_bytes16(encode_modified_utf8(value))


def decode_modified_utf8(raw: bytes) -> str:
    """Java writes U+0000 as two bytes, and a character beyond U+FFFF as its two surrogates of three bytes each."""
    units = raw.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def encode_modified_utf8(value: str) -> bytes:
    if value.isascii() and "\0" not in value:
        return value.encode("ascii")
    utf16 = value.encode("utf-16-be", "surrogatepass")
    units = "".join(chr(utf16[i] << 8 | utf16[i + 1]) for i in range(0, len(utf16), 2))
    return units.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")


def read_vint(data: bytes, at: int) -> tuple[int, int]:
    """Hadoop's integer of 1 to 9 bytes: the first byte is the value, or says the sign and how many bytes follow."""
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0x90:
        return first - 0x100, at
    negative = first < 0x88
    end = at + (0x88 if negative else 0x90) - first
    if end > len(data):
        raise OpFormatError(f"{end - at} bytes are said to follow at byte {at}, and {len(data) - at} are left")
    value = int.from_bytes(data[at:end], "big")
    return (~value if negative else value), end


def write_vint(value: int) -> bytes:
    if -112 <= value <= 127:
        return write_i8(value)
    magnitude = ~value if value < 0 else value
    count = (magnitude.bit_length() + 7) // 8
    if count > 8:
        raise ValueError(f"{value} does not fit into 64 bits")
    return write_i8((-120 if value < 0 else -112) - count) + magnitude.to_bytes(count, "big")


def read_text(data: bytes, at: int) -> tuple[str, int]:
    """A string behind its length as a ``vint``, in UTF-8."""
    count, at = read_vint(data, at)
    return take(data, at, count).decode("utf-8"), at + count


def write_text(value: str) -> bytes:
    raw = value.encode("utf-8")
    return write_vint(len(raw)) + raw
