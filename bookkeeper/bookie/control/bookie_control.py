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

from bookkeeper.audit import NO_AUDIT, AuditAction, AuditEvent, AuditLog
from bookkeeper.errors import BookKeeperError, in_words

log = logging.getLogger(__name__)

SOCKET: Final = "control.sock"
"""Its name in the bookie's directory."""

ONLY_TELL: Final = frozenset({"status", "directories"})
"""Commands that change nothing."""

Send = Callable[[bytes], Awaitable[None]]
"""Sends one line."""

Says = Callable[[str], Awaitable[None]]
"""Tells the asker what is being done: a sentence."""

Command = Callable[[Mapping[str, Any], Says], Awaitable[Mapping[str, Any]]]
"""Gets the request and returns the result. Raises: BookKeeperError, which becomes the error's sentence."""


class BookieControl:
    """The commands of one bookie."""

    def __init__(self, commands: Mapping[str, Command], audit: AuditLog = NO_AUDIT) -> None:
        self._commands = commands
        self._audit = audit

    async def answer(self, request: bytes, send: Send) -> None:
        """Carry out one request. Whatever happens, the last line is a result or an error."""

        async def report(what: str) -> None:
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
                answer = {"result": await command(told, report)}
            except BookKeeperError as error:
                answer = {"error": in_words(error)}
            except Exception as error:  # unexpected, and logged as such; the bookie goes on
                log.exception("the command %s ended unexpectedly", name)
                answer = {"error": f"it ended unexpectedly: {in_words(error)}"}
            self._note(name, told, answer)
        await send(json.dumps(answer, default=str).encode())

    def _note(self, name: str, told: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Note a command that may change something. Who gives it may write in the bookie's directory."""
        if name in ONLY_TELL:
            return
        given = ", ".join(f"{key} {value}" for key, value in told.items() if key != "command")
        self._audit.note(
            AuditEvent(
                what=AuditAction.ADMINISTER,
                who="",
                address=SOCKET,
                on=f"bookie: {name}{f' ({given})' if given else ''}",
                allowed="error" not in answer,
                reason=str(answer.get("error", "")),
            )
        )
