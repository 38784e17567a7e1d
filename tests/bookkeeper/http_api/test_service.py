"""The server of the API: from connections to calls."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from bookkeeper.bookie.health.health_server import CONNECTIONS_MAX
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.http_api import service
from bookkeeper.http_api.request import ApiRequest, JsonStream
from bookkeeper.meta.store import put
from examples.certificates import Authority
from tests.bookkeeper.http_api.served import Served, story

LIST = "/api/v1/ledger/list"


def test_what_fails_is_told_with_a_sentence_and_readiness_stays(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        store, root = served.bk.metadata_store.store, served.bk.metadata_store.paths.root
        await put(store, f"{root}/underreplication/lostBookieRecoveryDelay", b"rubbish")
        reply = await served.ask("GET", "/api/v1/autorecovery/lost_bookie_recovery_delay")
        assert reply.status == 500 and "no number of seconds: write it anew" in reply.body
        assert (await served.ask("GET", "/api/v1/bookie/is_ready", token=None)).status == 200

    story(tmp_path, work, auditor=False)


def test_too_many_requests_at_once_are_told_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "CALLS_MAX", 0)

    async def work(served: Served) -> None:
        assert (await served.ask("GET", LIST)).status == 503
        assert (await served.ask("GET", "/heartbeat", token=None)).body == "OK\n"

    story(tmp_path, work, auditor=False)


def test_what_takes_too_long_or_is_a_defect_is_told_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(served: Served) -> None:
        async def hangs(request: ApiRequest) -> JsonStream:
            await asyncio.Event().wait()
            raise AssertionError("nobody sets it")

        async def breaks(request: ApiRequest) -> JsonStream:
            raise ValueError("planted")

        calls = served.api._api._calls
        calls["GET", LIST], calls["GET", "/api/v1/bookie/list_bookies"] = hangs, breaks
        reply = await served.ask("GET", "/api/v1/bookie/list_bookies")
        assert reply.status == 500 and "planted" not in reply.body and "Traceback" not in reply.body
        monkeypatch.setattr(service, "CALL_S", 0.0)
        reply = await served.ask("GET", LIST)
        assert reply.status == 500 and "it may have been done" in reply.body

    story(tmp_path, work, auditor=False)
    assert "planted" in caplog.text


def test_an_answer_that_fails_in_its_middle_is_no_whole_json(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(served: Served) -> None:
        async def items() -> AsyncGenerator[tuple[str, str], None]:
            for number in range(100):
                yield str(number), "x" * 1000
            raise MetadataUnavailableError("the store is away")

        async def breaks(request: ApiRequest) -> JsonStream:
            return JsonStream(items())

        served.api._api._calls["GET", LIST] = breaks
        reply = await served.ask("GET", LIST)
        assert reply.status == 200 and len(reply.body) > 30_000
        with pytest.raises(json.JSONDecodeError):
            json.loads(reply.body)

    story(tmp_path, work, auditor=False)
    assert "an answer over HTTP ends in its middle" in caplog.text and "the store is away" in caplog.text


def test_a_client_that_goes_away_ends_what_was_read_for_it(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        ended = asyncio.Event()

        async def endless() -> AsyncGenerator[tuple[str, str], None]:
            try:
                while True:
                    yield "0", "x" * 10_000
                    await asyncio.sleep(0)
            finally:
                ended.set()

        async def streams(request: ApiRequest) -> JsonStream:
            return JsonStream(endless())

        served.api._api._calls["GET", LIST] = streams

        def go_away() -> None:
            address = served.api.address
            with socket.create_connection((address.host, address.port)) as connection:
                head = f"GET {LIST} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.token}\r\n\r\n"
                connection.sendall(head.encode())
                assert connection.recv(100).startswith(b"HTTP/1.0 200")

        await asyncio.to_thread(go_away)
        await ended.wait()

    story(tmp_path, work, auditor=False)


def test_over_tls_it_speaks_nothing_else_and_a_silent_client_holds_nobody_up(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")

    async def work(served: Served) -> None:
        address = served.api.address

        def ask(method: str, target: str, authority: str | None) -> tuple[int, bytes]:
            context = ssl.create_default_context(cafile=authority)
            connection = http.client.HTTPSConnection(address.host, address.port, context=context)
            connection.request(method, target, headers={"Authorization": f"Bearer {served.token}"})
            reply = connection.getresponse()
            return reply.status, reply.read()

        def in_clear() -> bytes:
            with socket.create_connection((address.host, address.port)) as connection:
                connection.sendall(b"GET /heartbeat HTTP/1.1\r\nHost: localhost\r\n\r\n")
                with contextlib.suppress(ConnectionResetError):
                    return connection.recv(1000)
            return b""

        with socket.create_connection((address.host, address.port)):  # says nothing
            assert (await asyncio.to_thread(ask, "GET", LIST, authority.ca)) == (200, b"{}\n")
            for _ in range(CONNECTIONS_MAX + 2):
                assert (await asyncio.to_thread(ask, "GET", "/heartbeat", authority.ca))[0] == 200
        assert not (await asyncio.to_thread(in_clear)).startswith(b"HTTP")
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(ask, "GET", LIST, None)

    story(tmp_path, work, auditor=False, certificate=authority.server())


def test_many_requests_side_by_side_are_all_answered(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        replies = await asyncio.gather(*(served.ask("GET", f"{LIST}?print_metadata=true") for _ in range(8)))
        assert {reply.status for reply in replies} == {200} and len({reply.body for reply in replies}) == 1

    story(tmp_path, work, auditor=False)
