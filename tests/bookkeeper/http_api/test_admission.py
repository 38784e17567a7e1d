"""Who may ask what of the API, and what is noted of it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.access import CLUSTER, Grant, Mode, Policy, PolicyChange, Resource, Right, Subject
from bookkeeper.access.principal import ANYONE
from bookkeeper.access.rights import EVERY_RIGHT
from bookkeeper.bookie.health.health_pages import BODY_MAX, PageRequest
from bookkeeper.gateways.authentication import AuthenticationFailures
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.http_api.admission import DELAYED_MAX
from bookkeeper.http_api.request import CHUNK_BYTES, JsonStream, RefusedRequestError
from bookkeeper.http_api.routes import ROUTES
from bookkeeper.http_api.service import _Pull
from bookkeeper.ids import LedgerId
from bookkeeper.launchers.machine_speed import stretch
from tests.bookkeeper.http_api.served import Served, audit_lines, story
from tests.bookkeeper.http_api.waiting import until

LIST = "/api/v1/ledger/list"
READ_ONLY = "/api/v1/bookie/state/readonly"


@pytest.mark.rule("X48")
def test_all_but_health_and_metrics_wants_a_token(tmp_path: Path) -> None:
    """Each refusal waits, so only some are tried of those whose method is not open: all go the same way."""
    methods = [(path, method, needs) for path, route in ROUTES.items() for method, needs in route.methods.items()]
    tried = {LIST, READ_ONLY, "/api/v1/config/server_config"}

    async def work(served: Served) -> None:
        for path, method, needs in methods:
            if needs.open or path in tried:
                reply = await served.ask(method, path, token=None)
                assert (reply.status == 401) is not needs.open, (method, path, reply)
        for page in ("/healthz", "/livez", "/readyz", "/metrics"):
            assert (await served.ask("GET", page, token=None)).status == 200
        assert not served.server.condition().read_only

    story(tmp_path, work)
    assert all(needs.action is None for _, _, needs in methods if needs.open)


@pytest.mark.rule("X16")
def test_a_wrong_token_is_refused_and_noted_and_a_new_one_is_found(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        refused = await served.ask("GET", LIST, token="wrong")
        assert refused.status == 401 and "wrong" not in refused.body
        made = new_token()
        with served.token_file.open("a") as file:
            file.write(token_line("late", made))
        served.api._api._admission._control.refresh()
        assert (await served.ask("GET", LIST, token=made.reveal())).status == 200

    story(tmp_path, work)
    lines = [line for line in audit_lines(tmp_path) if line["what"] == "authenticate"]
    assert [(line["allowed"], line["who"]) for line in lines] == [(False, ""), (True, "late")]
    assert "token file does not have" in lines[0]["reason"] and "wrong" not in json.dumps(lines)


@pytest.mark.rule("X11", "X34")
def test_only_a_few_that_are_refused_wait_each_in_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AuthenticationFailures, "delay_s", lambda self, address: 3600.0)

    async def work(served: Served) -> None:
        admission = served.api._api._admission
        address = served.api.address

        async def refused() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            opened = await asyncio.open_connection(address.host, address.port)
            opened[1].write(f"GET {LIST} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer no\r\n\r\n".encode())
            return opened

        async def are_waiting() -> bool:
            return admission._delayed == DELAYED_MAX

        waiting = [await refused() for _ in range(DELAYED_MAX)]
        await until(are_waiting)
        reader, writer = await refused()
        assert b" 401 " in await asyncio.wait_for(reader.readline(), 60 * stretch())
        for _, each in [*waiting, (reader, writer)]:
            each.close()

    story(tmp_path, work)


@pytest.mark.rule("X15", "X16")
def test_a_long_answer_ends_when_its_token_or_its_right_is_gone(tmp_path: Path) -> None:
    """Cause: a token's end was looked at where requests begin, and a list or a ledger was sent to its end, however long
    its client took for it."""
    gone = asyncio.Event()

    async def work(served: Served) -> None:
        admission = served.api._api._admission
        asked = PageRequest("GET", LIST, "", served.viewer, "10.0.0.7", lambda: None)

        async def items() -> AsyncGenerator[tuple[str | None, Any], None]:
            for number in range(3):
                yield str(number), "x" * CHUNK_BYTES

        pull = await _Pull.begun(JsonStream(items()), partial(admission.require_still, asked, None, f"GET {LIST}"))
        assert await pull.next() is not None and await pull.next() is not None
        served.token_file.write_text(token_line("other", new_token()))
        admission._control.refresh()
        with pytest.raises(RefusedRequestError, match="may go on no longer"):
            await pull.next()
        await pull.close()
        gone.set()

    story(tmp_path, work)
    assert gone.is_set()
    (line,) = [line for line in audit_lines(tmp_path) if line["what"] == "deny"]
    assert line["address"] == "10.0.0.7" and "ended in its middle" in line["reason"] and not line["allowed"]


def test_a_token_for_reading_changes_nothing_and_one_with_limits_is_refused(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        assert (await served.ask("GET", LIST, token=served.viewer)).status == 200
        refused = await served.ask("PUT", READ_ONLY, '{"readOnly": true}', token=served.viewer)
        assert refused.status == 403 and "for reading only" in refused.body
        assert not served.server.condition().read_only
        refused = await served.ask("GET", LIST, token=served.limited)
        assert refused.status == 403 and "/app" in refused.body

    story(tmp_path, work)


@pytest.mark.rule("X48")
def test_routes_that_change_something_are_off_unless_they_are_named(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        actions = 0
        for path, route in ROUTES.items():
            for method, needs in route.methods.items():
                if needs.action is None or needs.action == "read-only":
                    continue
                actions += 1
                reply = await served.ask(method, f"{path}?ledger_id={{doomed}}&enabled=false", '{"bookie_src": "b2"}')
                assert reply.status == 403 and f"--http-actions {needs.action}" in reply.body, reply
        assert actions == 9
        assert await served.bk.exists(int(served.names["doomed"]))
        assert (await served.ask("GET", "/api/v1/autorecovery/status")).body == '{"enabled": true}\n'
        assert (await served.ask("PUT", READ_ONLY, '{"readOnly": true}')).body == '{"readOnly": true}\n'

    story(tmp_path, work, actions=("read-only",))
    noted = [line for line in audit_lines(tmp_path) if line["what"] != "authenticate"]
    assert len([line for line in noted if not line["allowed"]]) == 9
    done = [line for line in noted if line["allowed"]]
    assert [(line["who"], line["what"]) for line in done] == [("operator", "administer")]
    assert READ_ONLY in done[0]["on"]


async def enforce(served: Served, *grants: Grant) -> None:
    """Put a policy into force, and wait until the API has read it."""
    note = PolicyChange(0, "a test", "changed")
    access = served.bk.metadata_store.access
    await access.change(lambda old: Policy(Mode.ENFORCE, grants, changes=old.changes), note)
    await served.api._api._admission._policy.read()


def test_the_access_policy_is_asked_too(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        await enforce(served)
        refused = await served.ask("GET", LIST)
        assert refused.status == 403 and "right to administer on cluster" in refused.body
        operator = Subject.parse("token:operator")
        await enforce(served, Grant(operator, frozenset({Right.ADMINISTER}), CLUSTER))
        assert (await served.ask("GET", LIST)).status == 200
        read = "/api/v1/ledger/read?ledger_id={closed}"
        refused = await served.ask("GET", read)
        assert refused.status == 403 and "right to read" in refused.body and "entry" not in refused.body
        everything = Resource.parse("ledgers:/")
        administers = Grant(operator, frozenset({Right.ADMINISTER}), CLUSTER)
        await enforce(served, administers, Grant(ANYONE, EVERY_RIGHT, everything))
        assert "entry 0" in (await served.ask("GET", read)).body

    story(tmp_path, work)


@pytest.mark.rule("X12", "X12d", "X16")
def test_who_administers_needs_the_right_of_what_a_route_does_besides(tmp_path: Path) -> None:
    """Cause: with the right to administer alone one deleted everybody's ledgers, and fenced them by a recovery."""
    move = '{"bookie_src": ["%s"]}'
    one = '{"bookie_src": "%s"}'

    async def work(served: Served) -> None:
        await served.furnish()
        operator = Subject.parse("token:operator")
        administers = Grant(operator, frozenset({Right.ADMINISTER}), CLUSTER)
        await served.bk.metadata_store.ledger_owners.hand_over(
            [LedgerId(int(served.names["doomed"]))], Resource.parse("streams:shop")
        )
        bookie = served.other.bookie_id
        asked = {
            "delete": ("DELETE", "/api/v1/ledger/delete?ledger_id={doomed}", None),
            "recover": ("PUT", "/api/v1/autorecovery/bookie", move % bookie),
            "decommission": ("PUT", "/api/v1/autorecovery/decommission", one % bookie),
        }
        await enforce(served, administers, Grant(operator, frozenset({Right.DELETE}), Resource.parse("streams:other")))
        for name, (method, target, body) in asked.items():
            refused = await served.ask(method, target, body)
            right = "delete on streams:shop" if name == "delete" else "repair on cluster"
            assert refused.status == 403 and f"the right to {right}" in refused.body, refused
        assert await served.bk.exists(int(served.names["doomed"]))
        assert not served.api._api._background.running
        owns = Grant(operator, frozenset({Right.DELETE}), Resource.parse("streams:shop"))
        await enforce(served, administers, owns, Grant(operator, frozenset({Right.REPAIR}), CLUSTER))
        assert (await served.ask(*asked["delete"])).status == 200
        assert not await served.bk.exists(int(served.names["doomed"]))
        assert (await served.ask(*asked["decommission"])).status == 200

    story(tmp_path, work)
    denied = [line for line in audit_lines(tmp_path) if not line["allowed"]]
    assert [(line["what"], line["who"]) for line in denied[:3]] == [("deny", "operator")] * 3
    assert denied[0]["on"].startswith("DELETE /api/v1/ledger/delete ledger_id ") and denied[0]["address"] == "127.0.0.1"
    (done,) = [line for line in audit_lines(tmp_path) if line["allowed"] and line["what"] == "delete"]
    assert done["who"] == "operator"


@pytest.mark.rule("X49")
def test_a_web_page_cannot_use_the_api(tmp_path: Path) -> None:
    """It cannot send the header without being allowed to, nor a request to this host under another name."""

    async def work(served: Served) -> None:
        def send(method: str, headers: dict[str, str]) -> http.client.HTTPResponse:
            connection = http.client.HTTPConnection("127.0.0.1", served.api.address.port)
            connection.request(method, LIST, headers=headers)
            return connection.getresponse()

        token = {"Authorization": f"Bearer {served.token}"}
        assert (await asyncio.to_thread(send, "GET", token)).status == 200
        rebound = await asyncio.to_thread(send, "GET", {**token, "Host": "evil.example:80"})
        assert rebound.status == 403
        preflight = await asyncio.to_thread(send, "OPTIONS", {"Origin": "http://evil.example"})
        assert preflight.status == 405 and preflight.headers.get("Access-Control-Allow-Origin") is None
        assert (await asyncio.to_thread(send, "GET", {"Cookie": f"token={served.token}"})).status == 401
        assert (await asyncio.to_thread(send, "GET", {"Authorization": f"Basic {served.token}"})).status == 401

    story(tmp_path, work)


def test_bodies_have_a_limit_and_are_received_from_known_callers_only(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        path = "/api/v1/autorecovery/lost_bookie_recovery_delay"
        assert (await served.ask("PUT", path, "x" * (BODY_MAX + 1))).status == 413

        def send(head: bytes) -> bytes:
            address = served.api.address
            with socket.create_connection((address.host, address.port)) as connection:
                connection.sendall(b"PUT " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
                return b"".join(iter(lambda: connection.recv(65536), b""))

        unknown = await asyncio.to_thread(send, b"Content-Length: 1000")
        assert b" 401 " in unknown.partition(b"\r\n")[0], "it does not wait for the body of a stranger"
        known = b"Authorization: Bearer " + served.token.encode()
        assert b" 411 " in (await asyncio.to_thread(send, known + b"\r\nTransfer-Encoding: chunked"))
        assert b" 413 " in (await asyncio.to_thread(send, known + b"\r\nContent-Length: -1"))
        assert b" 413 " in (await asyncio.to_thread(send, known + b"\r\nContent-Length: 9" + b"9" * 5000))

    story(tmp_path, work)


@pytest.mark.rule("X50")
def test_no_reply_holds_a_password_or_a_token(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        await served.furnish()
        said: list[Any] = []
        for path, route in ROUTES.items():
            if "GET" in route.methods and path != "/api/v1/ledger/read":
                for more in ("", "&decode_meta=true"):
                    said.append(
                        (await served.ask("GET", f"{path}?ledger_id={{closed}}&print_metadata=true{more}")).body
                    )
        text = "".join(said)
        assert "made by" in text
        assert "secret" not in text and "c2VjcmV0" not in text and str(served.token_file) not in text

    story(tmp_path, work)


@pytest.mark.rule("X15", "X16")
def test_a_body_that_takes_its_time_outlives_no_token(tmp_path: Path) -> None:
    """Cause: who sends a request was asked when its head was there, and its body may come byte by byte for hours."""

    async def work(served: Served) -> None:
        api = served.api._api

        def body() -> str:
            served.token_file.write_text(token_line("other", new_token()))
            api._admission._control.refresh()
            return '{"readOnly": true}'

        path = "/api/v1/bookie/state/readonly"
        asked = PageRequest("PUT", path, "", served.token, "10.0.0.7", body)
        reply = await asyncio.to_thread(api._answer_in_thread, asked)
        assert reply.code == 403 and "may go on no longer" in str(reply.body)
        assert not served.server.condition().read_only

    story(tmp_path, work, auditor=False)
    (line,) = [line for line in audit_lines(tmp_path) if line["what"] == "deny"]
    assert line["address"] == "10.0.0.7" and line["on"] == "PUT /api/v1/bookie/state/readonly"
