"""What a bookie's connections leave in the audit log, over real sockets."""

from __future__ import annotations

import asyncio
import json
import stat
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bookkeeper import codec, wire
from bookkeeper.access.principal import NOBODY
from bookkeeper.auth.config import AuthConfig
from bookkeeper.bookie.connections.connection_audit import FENCES_MAX, WRONG_KEY, ConnectionAudit
from bookkeeper.errors import AuthenticationError, BookieError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import master_key
from bookkeeper.net.client_handshake import ClientSecurity
from bookkeeper.net.connection import AddRun, BookieConnection, StreamIds
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import system_seams
from bookkeeper.wire import Dialect, Status
from examples.certificates import Authority
from tests.bookkeeper.audit.events import KeptEvents
from tests.bookkeeper.auth.providers import PLUGIN, ServerProvider
from tests.bookkeeper.bookie.listeners import Raw, bookie, run

KEY = master_key(b"")
WRONG = b"W" * 20
LEDGER = LedgerId(7)
FENCE = wire.ReadEntry(LEDGER, EntryId(0), KEY, fence=True)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def connect(address: Any, tls: TlsConfig | None, auth: AuthConfig | None = None) -> BookieConnection:
    security = ClientSecurity(system_seams().net, Random(1), tls, auth or AuthConfig())
    return await security.connect(address, BookieId("b1"), Dialect.V3, timeout_s=5)


async def add_with(connection: BookieConnection, key: bytes) -> Status:
    """Append an entry with this key, and return the answer."""
    answer: asyncio.Future[list[AddRun]] = asyncio.get_running_loop().create_future()
    stream = connection.open_stream(StreamIds().next(), LEDGER, answer.set_result, answer.set_exception)
    stream.send(codec.encode_adds(Dialect.V3, LEDGER, 0, [b"entry"], -1, 0, key, 3, txn_base=stream.txn_base)[0])
    [(_, _, status)] = await answer
    stream.close()
    return status


@pytest.mark.rule("X16")
def test_who_was_let_in_who_fenced_and_whose_key_was_wrong(tmp_path: Path) -> None:
    authority, audit = Authority(tmp_path), tmp_path / "audit"
    made = authority.server()
    tls = {"cert": made.cert, "key": made.key, "client_ca": authority.ca, "mode": "required", "allow": ["etl"]}

    async def main() -> None:
        async with bookie(tmp_path / "b", ledger=LEDGER, tls=tls, audit={"to": str(audit)}) as server:
            good = authority.client("etl")
            connection = await connect(server.address, TlsConfig(ca=authority.ca, cert=good.cert, key=good.key))
            for request in (replace(FENCE, master_key=WRONG), FENCE, FENCE, wire.ReadEntry(LEDGER, EntryId(0))):
                await connection.request(request, 5)
            assert await add_with(connection, WRONG) is Status.UNAUTHORIZED
            connection.close()
            other = authority.client("stranger")
            with pytest.raises(BookieError):
                refused = await connect(server.address, TlsConfig(ca=authority.ca, cert=other.cert, key=other.key))
                await refused.request(FENCE, 5)
            async with Raw.connect(server.address) as clear:
                clear.send(wire.encode_request(FENCE, Dialect.V3, 1))
                await clear.rest()

    run(main)
    lines = lines_of(audit)
    assert stat.S_IMODE(audit.stat().st_mode) == 0o600
    assert [(line["what"], line["who"], line["claimed"], line["on"], line["allowed"]) for line in lines] == [
        ("authenticate", "etl", False, "bookie", True),
        ("fence", "etl", False, "ledger 7", False),
        ("fence", "etl", False, "ledger 7", True),
        ("deny", "etl", False, "ledger 7", False),
        ("authenticate", "stranger", False, "bookie", False),
        ("authenticate", "", False, "bookie", False),
    ]
    assert all(line["address"].startswith("127.0.0.1:") for line in lines)
    text = audit.read_text()
    assert WRONG.decode() not in text and KEY.hex() not in text and WRONG.hex() not in text


@pytest.mark.rule("X16", "X11")
@pytest.mark.parametrize("word", [b"open sesame 4711", b"trip"])
def test_a_refused_client_is_noted_without_what_it_said(tmp_path: Path, word: bytes) -> None:
    audit = tmp_path / "audit"

    async def main() -> None:
        auth = {"provider": "tests.bookkeeper.auth.providers:server"}
        async with bookie(tmp_path / "b", ledger=LEDGER, auth=auth, audit={"to": str(audit)}) as server:
            async with Raw.connect(server.address) as raw:
                raw.send(wire.encode_request(wire.Auth(PLUGIN, word), Dialect.V3, 1))
                await raw.rest()
            client = AuthConfig(provider="tests.bookkeeper.auth.providers:client")
            connection = await connect(server.address, None, client)
            connection.close()

    run(main)
    refused, admitted = lines_of(audit)
    assert (refused["what"], refused["allowed"], refused["who"]) == ("authenticate", False, "")
    assert (admitted["who"], admitted["allowed"], admitted["reason"]) == ("tester", True, f"provider {PLUGIN}")
    assert word.decode() not in audit.read_text()


@pytest.mark.rule("X16")
def test_a_name_that_was_presented_and_not_proven_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider tells it with its error."""
    audit = tmp_path / "audit"

    class Naming(ServerProvider):
        def exchange(self, peer: Any) -> Any:
            class Exchange:
                async def answer(self, payload: bytes) -> Any:
                    error = AuthenticationError("the password is wrong")
                    error.claimed = "etl\nforged"
                    raise error

            return Exchange()

    monkeypatch.setattr("tests.bookkeeper.auth.providers.server", lambda options: Naming())

    async def main() -> None:
        auth = {"provider": "tests.bookkeeper.auth.providers:server"}
        async with (
            bookie(tmp_path / "b", ledger=LEDGER, auth=auth, audit={"to": str(audit)}) as server,
            Raw.connect(server.address) as raw,
        ):
            raw.send(wire.encode_request(wire.Auth(PLUGIN, b"x"), Dialect.V3, 1))
            await raw.rest()

    run(main)
    (line,) = lines_of(audit)
    assert (line["who"], line["claimed"], line["allowed"]) == ("etl\nforged", True, False)


@pytest.mark.rule("X16")
def test_a_connection_notes_one_fence_of_a_ledger_and_each_that_was_refused() -> None:
    kept, here = KeptEvents(), Connection()
    audit = ConnectionAudit(kept)
    for status in (Status.UNAUTHORIZED, Status.UNAUTHORIZED, Status.NO_ENTRY, Status.OK, Status.OK):
        audit.note_answered(here, READ, FENCE, status)
    audit.note_answered(here, READ, replace(FENCE, fence=False), Status.OK)
    audit.note_answered(here, READ, replace(FENCE, ledger_id=LedgerId(8)), Status.IO_ERROR)
    audit.note_answered(here, WRITE_LAC, wire.WriteLac(LEDGER, EntryId(0), WRONG, b""), Status.UNAUTHORIZED)
    assert [(event.what, event.on, event.allowed, event.reason) for event in kept.events] == [
        ("fence", "ledger 7", False, WRONG_KEY),
        ("fence", "ledger 7", False, WRONG_KEY),
        ("fence", "ledger 7", True, ""),
        ("fence", "ledger 8", True, "answer IO_ERROR"),
        ("deny", "ledger 7", False, f"WRITE_LAC: {WRONG_KEY}"),
    ]
    assert [event.request_id for event in kept.events] == ["1f-3"] * 4 + ["[::1]:5/17"]
    for number in range(3 * FENCES_MAX):
        audit.note_answered(here, READ, replace(FENCE, ledger_id=LedgerId(number)), Status.OK)
    assert len(here.fences_noted) == FENCES_MAX


READ = wire.RequestHeader(Dialect.V3, wire.Operation.READ, 9, context=((wire.REQUEST_ID, b"1f-3"),))
WRITE_LAC = wire.RequestHeader(Dialect.V3, wire.Operation.WRITE_LAC, 17)


class Connection:
    peer = "[::1]:5"

    def __init__(self) -> None:
        self.principal = NOBODY
        self.fences_noted: dict[LedgerId, None] = {}
