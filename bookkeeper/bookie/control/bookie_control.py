"""Commands to a running bookie, by the socket ``control.sock`` in its directory.

A request is one line of JSON, and so is each line of the answer::

    {"command": "gc", "major": true}
    {"says": "log 7: 12 % alive, ..."}
    {"result": {...}}                        or {"error": "a sentence"}

Whoever may write in the bookie's directory may give commands; nothing goes over the network.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from bookkeeper.errors import BookKeeperError, in_words

log = logging.getLogger(__name__)

SOCKET: Final = "control.sock"
"""Its name in the bookie's directory."""

Send = Callable[[bytes], Awaitable[None]]
"""Sends one line."""

Says = Callable[[str], Awaitable[None]]
"""Tells the asker what is being done: a sentence."""

Command = Callable[[Mapping[str, Any], Says], Awaitable[Mapping[str, Any]]]
"""Gets the request and returns the result. Raises: BookKeeperError, which becomes the error's sentence."""


class BookieControl:
    """The commands of one bookie."""

    def __init__(self, commands: Mapping[str, Command]) -> None:
        self._commands = commands

    async def answer(self, request: bytes, send: Send) -> None:
        """Carry out one request. Whatever happens, the last line is a result or an error."""

        async def says(what: str) -> None:
            await send(json.dumps({"says": what}).encode())

        try:
            told = json.loads(request)
            name = told["command"] if isinstance(told, dict) else None
        except (ValueError, KeyError):
            name = None
        if not isinstance(name, str) or (command := self._commands.get(name)) is None:
            known = ", ".join(sorted(self._commands))
            answer: Mapping[str, Any] = {"error": f"there is no command {name}; there are {known}"}
        else:
            try:
                answer = {"result": await command(told, says)}
            except BookKeeperError as error:
                answer = {"error": in_words(error)}
            except Exception as error:  # unexpected, and logged as such; the bookie goes on
                log.exception("the command %s ended unexpectedly", name)
                answer = {"error": f"it ended unexpectedly: {in_words(error)}"}
        await send(json.dumps(answer, default=str).encode())
