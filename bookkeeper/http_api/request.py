"""A request to the API, and what is wrong with one. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from bookkeeper.access import Resource, Right
from bookkeeper.bookie.health.health import PageReply
from bookkeeper.errors import BookKeeperError

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
"""As Java reads numbers: no blanks, and nothing between digits."""

DENIED: Final = 403
"""The status of what its caller may not do. Whoever answers so has noted it."""

PARAMETERS_MAX: Final = 32
"""Parameters of a request at most."""


class RefusedRequestError(BookKeeperError):
    """The request cannot be carried out as it is; nothing was done. The text goes to whoever sent it."""

    def __init__(self, text: str, status: int = 500) -> None:
        """``status``: Apache's servers answer 500 to numbers that are none, so that is the usual one."""
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that is let in."""

    method: str
    path: str
    """Without a slash at its end."""
    params: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    """None: it has none."""
    caller: str = ""
    """The name in its token."""
    host: str = ""
    """The address that it comes from."""

    @property
    def what(self) -> str:
        """What it asks for, in a line."""
        given = ", ".join(f"{key} {value}" for key, value in self.params.items())
        return " ".join(filter(None, (self.method, self.path, given, self.body)))

    def number(self, name: str, default: int | None = None) -> int:
        """A parameter that is a whole number. Raises: RefusedRequestError."""
        text = self.params.get(name)
        if text is None and default is not None:
            return default
        if text is None or not _NUMBER.fullmatch(text):
            raise RefusedRequestError(f"{name} must be a whole number")
        return int(text)

    def is_true(self, name: str) -> bool:
        """Whether a parameter is the word true, as Apache's servers look at it."""
        return self.params.get(name) == "true"

    def document(self, wrong: str, status: int) -> dict[str, Any]:
        """The body as a JSON object. Raises: RefusedRequestError: it is none; with ``wrong`` before the reason."""
        try:
            found = json.loads(self.body or "")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise RefusedRequestError(f"{wrong}the body is no JSON object", status)
        return found


def parameters(query: str) -> dict[str, str]:
    """The parameters of a request's query; of several with one name the last one counts, as in Apache's servers.

    Raises: RefusedRequestError: there are too many.
    """
    try:
        return dict(parse_qsl(query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX))
    except ValueError:
        raise RefusedRequestError(f"a request has at most {PARAMETERS_MAX} parameters", 400) from None


Items = AsyncGenerator[tuple[str | None, Any], None]


class JsonStream:
    """An object or a list in JSON, made while it is sent."""

    def __init__(self, items: Items, *, is_object: bool = True) -> None:
        """``items``: names and values; of a list there are no names. They are closed with the stream."""
        self._items = items
        self._brackets = b"{}" if is_object else b"[]"

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The bytes, in pieces of about :data:`CHUNK_BYTES`. An error in the middle ends it where it is: what was sent
        is no whole JSON, so nobody takes a part for the whole."""
        piece, comma = bytearray(self._brackets[:1]), b""
        async with aclosing(self._items) as items:
            async for name, value in items:
                key = b"" if name is None else json.dumps(name).encode() + b": "
                piece += comma + key + json.dumps(value).encode()
                comma = b", "
                if len(piece) >= CHUNK_BYTES:
                    yield bytes(piece)
                    piece.clear()
        yield bytes(piece + self._brackets[1:] + b"\n")


CHUNK_BYTES: Final = 32 * 1024
"""Bytes of a streamed answer that are sent at once."""


def json_text(text: str, status: int = 200) -> PageReply:
    """A text that is sent as JSON, in quotes: Apache's servers do so with some."""
    return PageReply(status, (json.dumps(text).encode(),))


ApiReply = PageReply | JsonStream
MayDo = Callable[[ApiRequest, Right, Resource], None]
"""Checks that who sends a request has a right besides that to administer. Raises: RefusedRequestError."""

Call = Callable[[ApiRequest], Awaitable[ApiReply]]
"""What carries out one method of one route. Raises: RefusedRequestError, BookKeeperError."""
