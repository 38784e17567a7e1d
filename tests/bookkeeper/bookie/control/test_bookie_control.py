"""Commands to a running bookie: one line in, a result or a sentence out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from bookkeeper.audit import AuditAction
from bookkeeper.bookie.control.bookie_control import BookieControl, Says
from bookkeeper.errors import IllegalOperationError
from tests.bookkeeper.audit.events import KeptEvents


async def double(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
    await says("begins")
    return {"twice": 2 * request["number"]}


async def refuse(request: Mapping[str, Any], says: Says) -> Mapping[str, Any]:
    raise IllegalOperationError("not while it rains")


async def asked(request: bytes) -> list[Any]:
    lines: list[Any] = []

    async def send(line: bytes) -> None:
        lines.append(json.loads(line))

    await BookieControl({"double": double, "refuse": refuse}).answer(request, send)
    return lines


async def test_a_command_says_what_it_does_and_gives_its_result() -> None:
    assert await asked(b'{"command": "double", "number": 21}') == [{"says": "begins"}, {"result": {"twice": 42}}]


async def test_a_refusal_is_a_sentence() -> None:
    assert await asked(b'{"command": "refuse"}') == [{"error": "not while it rains"}]


async def test_what_nobody_foresaw_is_answered_too(caplog: pytest.LogCaptureFixture) -> None:
    (answer,) = (await asked(b'{"command": "double"}'))[1:]
    assert answer["error"].startswith("it ended unexpectedly: ")
    assert "the command double ended unexpectedly" in caplog.text


@pytest.mark.parametrize("request_", [b"", b"[]", b"{}", b'{"command": 3}', b'{"command": "fly"}', b"\xff"])
async def test_what_is_no_command_is_told_which_there_are(request_: bytes) -> None:
    (answer,) = await asked(request_)
    assert answer["error"].endswith("there are double, refuse")


@pytest.mark.rule("X16")
async def test_commands_that_may_change_something_are_noted_with_what_came_of_them() -> None:
    kept = KeptEvents()

    async def send(line: bytes) -> None:
        pass

    control = BookieControl({"double": double, "refuse": refuse, "status": refuse}, kept)
    for request in (b'{"command": "double", "number": 21}', b'{"command": "refuse"}', b'{"command": "status"}', b"?"):
        await control.answer(request, send)
    assert [(event.what, event.on, event.allowed, event.reason) for event in kept.events] == [
        (AuditAction.ADMINISTER, "bookie: double (number 21)", True, ""),
        (AuditAction.ADMINISTER, "bookie: refuse", False, "not while it rains"),
    ]
