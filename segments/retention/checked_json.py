"""Small values of a stream in the metadata store: JSON, with a format number and a checksum (codec).

    {"format":1,"crc32c":305419896,"value":...}

JSON, so that people and other versions read it. The checksum is that of the value's own text: a value that a person
edits by hand is refused, and not half believed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bookkeeper.codec import crc32c
from segments.errors import StreamCorruptError, UnsupportedStreamFormatError


def pack_json(format_number: int, value: object) -> bytes:
    """Encode ``value``, which JSON can express."""
    text = _text(value)
    return f'{{"format":{format_number},"crc32c":{crc32c(text.encode())},"value":{text}}}'.encode()


def unpack_json(data: bytes, newest: int, what: str) -> Any:
    """Decode what ``pack_json`` made. ``what`` says it in an error.

    Raises:
        UnsupportedStreamFormatError: the format is above ``newest``.
        StreamCorruptError: these are other bytes, or damaged ones.
    """
    try:
        found = json.loads(data)
        number, checksum, value = found["format"], found["crc32c"], found["value"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StreamCorruptError(f"this is not {what}: {data[:60].decode(errors='replace')}") from error
    if not isinstance(number, int) or number > newest:
        raise UnsupportedStreamFormatError(
            f"{what} have format {number}, and this program reads formats up to {newest}: use a newer program"
        )
    if crc32c(_text(value).encode()) != checksum:
        raise StreamCorruptError(f"{what} do not have the checksum that was stored with them")
    return value


def checked_fields(value: object, kinds: Mapping[str, type], what: str) -> dict[str, Any]:
    """A table in which each of these fields is there and of its kind, whoever has written it. Other fields are passed
    over. Whole numbers have at most 64 bits.

    Raises:
        StreamCorruptError: it is none; the text says ``what``, and which field.
    """
    if not isinstance(value, dict):
        raise StreamCorruptError(f"{what} cannot be read: {str(value)[:60]} is no table of fields")
    for name, kind in kinds.items():
        found: Any = value.get(name)
        if type(found) is not kind or (isinstance(found, int) and not -(2**63) <= found < 2**63):
            raise StreamCorruptError(f"{what} cannot be read: its field {name} is {str(found)[:60]}")
    return value


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
