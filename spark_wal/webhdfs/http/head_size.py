"""How large a request's head may be in all, and how much a client may send ahead. Pure.

aiohttp limits each line of a head and their number, which is eight times as much; and it keeps whatever a client sends
while its request before is handled.
"""

from __future__ import annotations

from typing import Final

HEAD_MAX: Final = 96 * 1024
"""Bytes of a head with all of its lines; and those that are sent ahead while a request is handled."""

_END: Final = b"\r\n\r\n"


class HeadSize:
    """Counts the bytes of one connection that are no body."""

    __slots__ = ("_ahead", "_is_whole", "_last", "_size")

    def __init__(self) -> None:
        self._size = 0
        self._last = b""
        """The last bytes of the head: its end may come in two pieces."""
        self._is_whole = False
        self._ahead = 0

    def came(self, data: bytes, *, in_body: bool, is_handled: bool) -> bool:
        """Whether these bytes are too many. ``in_body``: they belong to the body of the request that is handled."""
        if in_body:
            return False
        if is_handled:
            self._ahead += len(data)
            return self._ahead > HEAD_MAX
        self._ahead = 0
        if self._is_whole:  # what follows may be its body
            return False
        seen = self._last + data
        end = seen.find(_END)
        self._is_whole = end >= 0
        self._size += len(data) if end < 0 else max(0, end + len(_END) - len(self._last))
        self._last = seen[1 - len(_END) :]
        return self._size > HEAD_MAX

    def taken_up(self) -> None:
        """Note that the handler of a request starts: the next head begins with what follows its body."""
        self._size = 0
        self._last = b""
        self._is_whole = False
