"""Lists of directives, the form of DIGEST-MD5's messages (RFC 2831, 7.1): ``name=value, name="quoted value"``. Codec.

A message that has another form is refused whole; nothing of it is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from bookkeeper.amounts import counted

_BLANK: Final = rb"[ \t]"
_SEPARATED: Final = re.compile(rb"(?:[ \t]*,)*[ \t]*")
_NAME: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64})[ \t]*=[ \t]*")
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_QUOTED: Final = re.compile(rb'"((?:[^"\\\x00-\x1f\x7f]|\\[\x20-\x7e])*)"')
_PAIR: Final = re.compile(rb"\\(.)", re.DOTALL)
_END: Final = re.compile(_BLANK + rb"*(?:,|\Z)")


class Directives:
    """The directives of one message."""

    def __init__(self, values: Mapping[str, list[bytes]]) -> None:
        self._values = values

    @classmethod
    def parse(cls, message: bytes, *, most: int) -> Directives:
        """Read a message of fewer than ``most`` bytes. Names are lower case; quotes are taken off.

        Raises:
            ValueError: it has another form, or is too long. The text has nothing of the message.
        """
        if len(message) >= most:
            raise ValueError(f"it has {len(message)} bytes; fewer than {most} are allowed")
        values: dict[str, list[bytes]] = {}
        at = _skip(message, 0)
        while at < len(message):
            name = _NAME.match(message, at)
            if name is None:
                raise ValueError(f"no directive begins at byte {at}")
            value, at = _value(message, name.end())
            values.setdefault(name[1].decode().lower(), []).append(value)
            if _END.match(message, at) is None:
                raise ValueError(f"a directive does not end at byte {at}")
            at = _skip(message, at)
        return cls(values)

    def all(self, name: str) -> list[bytes]:
        """Every value of a directive that may stand there several times."""
        return self._values.get(name, [])

    def one(self, name: str) -> bytes | None:
        """The value of a directive; None if it is not there.

        Raises:
            ValueError: it is there more than once.
        """
        found = self._values.get(name, [])
        if len(found) > 1:
            raise ValueError(f"it has {name} {counted(len(found), 'time')}")
        return found[0] if found else None

    def required(self, name: str) -> bytes:
        """The value of a directive that must be there once.

        Raises:
            ValueError: it is not, or is empty.
        """
        found = self.one(name)
        if not found:
            raise ValueError(f"it has no {name}")
        return found


def encode(directives: Iterable[tuple[str, bytes]]) -> bytes:
    """A message of directives whose values stand as they are."""
    return b",".join(name.encode() + b"=" + value for name, value in directives)


def quoted(value: bytes) -> bytes:
    """A value in quotes."""
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _skip(message: bytes, at: int) -> int:
    found = _SEPARATED.match(message, at)
    assert found is not None, "the pattern also matches nothing"
    return found.end()


def _value(message: bytes, at: int) -> tuple[bytes, int]:
    if message[at : at + 1] == b'"':
        found = _QUOTED.match(message, at)
        if found is None:
            raise ValueError(
                f"the quotes that open at byte {at} hold something that may not stand there, or do not end"
            )
        return _PAIR.sub(rb"\1", found[1]), found.end()
    found = _TOKEN.match(message, at)
    if found is None:
        raise ValueError(f"no value stands at byte {at}")
    return found[0], found.end()
