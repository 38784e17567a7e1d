"""The bookie's notes: a line of text in a file of its own, and a line with its checksum. Bytes only.

::

    4711 5f3a
    crc32c 1b2c3d4e

Notes of versions before 0.2 are the first line alone.
"""

from __future__ import annotations

import re
from typing import Final

from bookkeeper.codec import crc32c

_CHECKED: Final = re.compile(r"(.*)\ncrc32c ([0-9a-f]{8})\n", re.DOTALL)
_UNCHECKED: Final = re.compile(r"[!-~]+( [!-~]+)?\n")


def encode(text: str) -> bytes:
    """The bytes of a note of one line."""
    return f"{text}\ncrc32c {crc32c(text.encode()):08x}\n".encode()


def decode(data: bytes) -> str:
    """The reverse of :func:`encode`.

    Raises:
        ValueError: the note is damaged.
    """
    text = data.decode()
    if (checked := _CHECKED.fullmatch(text)) is not None:
        if crc32c(checked[1].encode()) != int(checked[2], 16):
            raise ValueError("its checksum does not match")
        return checked[1]
    if "crc32c" in text or _UNCHECKED.fullmatch(text) is None:
        raise ValueError("it is no note")
    return text[:-1]
