"""Which calls leave a line, in a gateway that serves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.audit import AuditConfig
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.gateways.tokens import new_token, token_line
from segments.errors import StreamAccessError, StreamNotFoundError
from segments.gateway.guard.call_audit import NOTED
from segments.protocol.methods import METHODS
from segments.remote import GatewayCredentials, connect
from tests.segments.gateway.clusters import CONFIG, served


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.rule("X16")
async def test_credentials_denials_and_what_makes_or_ends_a_stream(tmp_path: Path) -> None:
    tokens, token, wrong, audit = tmp_path / "tokens", new_token(), new_token(), tmp_path / "audit"
    tokens.write_text(token_line("etl", token, ["/mine"]))
    tokens.chmod(0o600)
    access = AccessConfig(token_file=str(tokens), audit=AuditConfig(to=str(audit)))
    async with served(tmp_path, access=access) as gateway:
        uri = f"grpc://{gateway.address}"
        async with connect(uri, access=GatewayCredentials(token=token)) as namespace:
            stream = await namespace.create("mine/one", config=CONFIG)
            async with stream.writer() as writer:
                await writer.append(b"a payload 4711")
            await stream.cursor("c").close()
            await namespace.verify("mine/one")
            with pytest.raises(StreamAccessError):
                await namespace.delete("other")
            with pytest.raises(StreamAccessError):
                await namespace.verify()
            with pytest.raises(StreamNotFoundError):
                await namespace.delete("mine/none")
            await namespace.rename("mine/one", "mine/two")
            await namespace.delete("mine/two")
        async with connect(uri, access=GatewayCredentials(token=wrong)) as namespace:
            with pytest.raises(StreamAccessError):
                await namespace.open("mine/one")
    lines = lines_of(audit)
    told = [(line["what"], line["who"], line["on"], line["allowed"]) for line in lines]
    assert [row for row in told if "Cursors" not in row[2]] == [
        ("authenticate", "etl", "gateway", True),
        ("create", "etl", "stream mine/one (Streams.Create)", True),
        ("deny", "etl", "stream other (Streams.Get)", False),  # a client looks first which stream it is to delete
        ("deny", "etl", "stream other (Streams.Delete)", False),
        ("deny", "etl", "stream all streams (Streams.Check)", False),
        ("delete", "etl", "stream mine/none (Streams.Delete)", True),
        ("administer", "etl", "stream mine/one, new_name mine/two (Streams.Rename)", True),
        ("delete", "etl", "stream mine/two (Streams.Delete)", True),
        ("authenticate", "", "gateway", False),
    ]
    assert [line["reason"][:19] for line in lines if line["on"].startswith("stream mine/none")] == [
        "StreamNotFoundError"
    ]
    assert all(line["address"] == "127.0.0.1" for line in lines)
    text = audit.read_text()
    assert not any(secret in text for secret in (token.reveal(), wrong.reveal(), "4711"))


def test_every_call_that_is_noted_is_one() -> None:
    assert NOTED.keys() <= METHODS.keys()
