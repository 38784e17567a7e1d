"""The console over real HTTP: what each page shows, to whom, and with which headers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import socket
import ssl
from pathlib import Path

import pytest

from bookkeeper.access import CLUSTER, Grant, Mode, Policy, PolicyChange, Subject
from bookkeeper.access.rights import EVERY_RIGHT
from bookkeeper.bookie.health.health_pages import PageRequest
from bookkeeper.console.panel_book import UnusablePanel
from bookkeeper.console.panels import DetailLink, PanelContext, PanelFacts, PanelNote, PanelPage, PanelTable, Tone
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.ids import BookieId, LedgerId
from examples.certificates import Authority
from tests.bookkeeper.console.served import Served, audit_lines, ledger, story

MARKUP = "<img src=x onerror=alert(1)>\"'&"
NOTE = PolicyChange(0, "a test", "changed")
ESCAPED = "&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;"


class NamesPanel:
    """Shows names with markup wherever a panel can show a text."""

    name = "names"
    title = f"Names {MARKUP}"

    async def snapshot(self, context: PanelContext) -> PanelPage:
        table = PanelTable((MARKUP,), ((DetailLink(MARKUP, MARKUP),),), MARKUP)
        return PanelPage((table, PanelFacts({MARKUP: MARKUP}), PanelNote(MARKUP)), MARKUP, Tone.WARN)

    async def detail(self, context: PanelContext, key: str) -> PanelPage | None:
        return PanelPage((PanelFacts({"key": key}),)) if key == MARKUP else None


def test_the_pages_show_the_cluster(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        number = await ledger(served.bk)
        gone = await ledger(served.bk)
        await served.bk.delete_ledger(gone, grace_s=1000)
        page = await served.shows("/", "1: 1 closed", "2 writable")
        assert "Well: nothing is lost" in page and "/bookies?of=b1" in page and "/default-rack" in page
        page = await served.shows("/ledgers?state=closed", f"/ledgers/{number}")
        assert "1 ledger<" in page and "2/2/2" in page
        assert "There is no such ledger" in (await served.ask("/ledgers?state=open")).body
        page = (await served.ask(f"/ledgers/{number}")).body
        assert '<svg class="drawing"' in page and page.count('class="copy seen"') == 2 + 1  # one is the legend's
        assert "every copy was seen" in page
        await served.shows("/deleted", f"/deleted?of={gone}")
        assert "There is no auditor" in (await served.ask("/repair")).body
        assert "named by" in (await served.ask("/bookies?of=b2")).body

    story(tmp_path, work)


def test_over_tls_it_speaks_nothing_else_and_asks_for_its_token_there(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")

    async def work(served: Served) -> None:
        address = served.console.address

        def ask(ca: str | None, token: str | None, method: str = "GET", path: str = "/") -> tuple[int, str]:
            context = ssl.create_default_context(cafile=ca)
            connection = http.client.HTTPSConnection(address.host, address.port, context=context)
            try:
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                body = None if method == "GET" else json.dumps({"target": "b2", "confirm": "b2"})
                connection.request(method, path, body, headers)
                reply = connection.getresponse()
                return reply.status, reply.read().decode()
            finally:
                connection.close()

        def in_clear() -> bytes:
            with socket.create_connection((address.host, address.port)) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                with contextlib.suppress(ConnectionResetError):
                    return connection.recv(1000)
            return b""

        ca = str(authority.ca)
        assert served.console.url == f"https://{address}/"
        assert (await asyncio.to_thread(ask, ca, None))[0] == 401
        status, page = await asyncio.to_thread(ask, ca, served.viewer)
        assert status == 200 and "<main" in page
        assert (await asyncio.to_thread(ask, ca, served.viewer, "POST", "/actions/read-only"))[0] == 403
        status, said = await asyncio.to_thread(ask, ca, served.token, "POST", "/actions/read-only")
        assert status == 200 and "b2" in said, said
        assert not (await asyncio.to_thread(in_clear)).startswith(b"HTTP")
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(ask, None, served.viewer)

    story(tmp_path, work, actions=("read-only",), certificate=authority.server())


def test_a_bookie_that_is_gone_is_shown_with_what_that_means(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        number = await ledger(served.bk)
        await served.bk.metadata_store.under_replication.mark(LedgerId(number), [BookieId("b1")], 1)
        await served.bookies["b1"].stop()
        await served.shows("/", "1 bookie absent", "1 ledger short of copies")
        await served.shows("/ledgers?health=short", f"/ledgers/{number}")
        page = (await served.ask(f"/ledgers/{number}")).body
        assert 'class="copy gone"' in page and "<code>bk ledger repair" in page
        page = await served.shows("/repair", f"/ledgers/{number}", "1 ledger marked")
        await served.bookies["b2"].stop()
        page = await served.shows("/", "1 ledger lost for now")
        assert "Start the absent bookies again" in page

    story(tmp_path, work)


@pytest.mark.rule("X67")
def test_every_reply_forbids_what_is_not_the_consoles_own_and_no_page_has_a_script_inside(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        number = await ledger(served.bk)
        await served.shows("/", "1: 1 closed")
        pages = ("/", "/ledgers", f"/ledgers/{number}", "/deleted", "/repair", "/nowhere", "/static/console.js")
        for path in (*pages, "/static/nothing", "/static/../config.py"):
            reply = await served.ask(path)
            policy = reply.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "script-src 'self'" in policy, path
            assert "unsafe" not in policy and "http" not in policy and "frame-ancestors 'none'" in policy
            assert reply.headers["X-Content-Type-Options"] == "nosniff" and reply.headers["Cache-Control"] == "no-store"
            if reply.headers["Content-Type"].startswith("text/html"):
                assert reply.body.count("<script") == 1 and " style=" not in reply.body and " onclick" not in reply.body
                assert "http:" not in reply.body and "https:" not in reply.body, "a request elsewhere"
        assert (await served.ask("/static/nothing")).status == (await served.ask("/nowhere")).status == 404
        assert (await served.ask("/static/../config.py")).status == 404

    story(tmp_path, work)


@pytest.mark.rule("X67")
def test_names_with_markup_are_text(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        number = await ledger(served.bk, custom={MARKUP: MARKUP.encode()})
        for path in (
            f"/ledgers/{number}",
            "/panels/names",
            f"/ledgers?state={MARKUP}&bookie={MARKUP}".replace(" ", "+").replace("&'", ""),
        ):
            page = await served.shows(path, "&lt;img src=x")
            assert "<img" not in page, path
        page = await served.shows("/panels/names", f"<h2>{ESCAPED}</h2>", f"<dt>{ESCAPED}</dt>")
        link = page.split('href="/panels/names?of=')[1].split('"')[0]
        detail = await served.ask(f"/panels/names?of={link}")
        assert detail.status == 200 and f"<h1>Names {ESCAPED}: {ESCAPED}</h1>" in detail.body
        assert (await served.ask("/panels/names?of=other")).status == 404

    story(tmp_path, work, panels=[NamesPanel()], unusable=[UnusablePanel("broken", "it needs numpy")])


@pytest.mark.rule("X38")
def test_what_is_wrong_with_a_request_is_said_by_its_status_and_echoes_nothing(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        for path in (
            "/ledgers/x",
            "/ledgers/-1",
            "/ledgers/99",
            f"/ledgers/{'9' * 30}",
            "/find?ledger=",
            "/panels/none",
        ):
            reply = await served.ask(path)
            assert reply.status == 404 and "9" * 20 not in reply.body, path
        assert "it needs numpy" in (await served.ask("/panels/broken")).body
        assert (await served.ask("/%ff")).status == 400
        for path in ("ledgers", "*", "http://127.0.0.1/ledgers"):
            assert (await served.ask(path)).status == 400, "no path of a page, and no unexpected end"
        assert (await served.ask("/?" + "&".join(f"a{n}=1" for n in range(40)))).status == 400
        assert (await served.ask("/ledgers?rows=-3")).status == 200
        assert (await served.ask("/ledgers?rows=99999")).status == 200
        assert (await served.ask("/", method="POST")).status in (404, 405)
        assert (await served.ask("/", method="PUT")).status == 405

    story(tmp_path, work, unusable=[UnusablePanel("broken", "it needs numpy")], bookies=())


@pytest.mark.rule("X49")
def test_a_page_of_another_name_cannot_ask(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        for host in ("evil.example", "evil.example:9880", "127.0.0.1.evil.example"):
            assert (await served.ask("/", headers={"Host": host})).status == 403
        for site in ("cross-site", "same-site", "Cross-Site"):
            for mode, dest in (("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty")):
                asked = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
                assert (await served.ask("/ledgers/1", headers=asked)).status == 403, "it is long work"
            link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
            assert (await served.ask("/ledgers", headers=link)).status == 200, "somebody follows a link"
            assert (await served.ask("/actions/drain", method="POST", headers=link)).status == 403
        own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
        assert (await served.ask("/ledgers", headers=own)).status == 200
        assert (await served.ask("/", headers={"Host": f"localhost:{served.console.address.port}"})).status == 200

    story(tmp_path, work, bookies=())


@pytest.mark.rule("X67")
def test_with_tokens_every_page_wants_one_and_a_browser_asks_for_it_as_a_password(tmp_path: Path) -> None:
    def basic(password: str) -> dict[str, str]:
        return {"Authorization": "Basic " + base64.b64encode(f"me:{password}".encode()).decode()}

    async def work(served: Served) -> None:
        for path in ("/", "/ledgers", "/ledgers/0", "/repair", "/nowhere"):
            refused = await served.ask(path)
            assert refused.status == 401 and refused.headers["WWW-Authenticate"].startswith("Basic "), path
        assert (await served.ask("/", headers=basic("wrong"))).status == 401
        assert (await served.ask("/", headers={"Authorization": "Basic %%%"})).status == 401
        for headers in (basic(served.viewer), {"Authorization": f"Bearer {served.token}"}):
            assert (await served.ask("/", headers=headers)).status == 200
        assert (await served.ask("/static/console.css")).status == 200

    story(tmp_path, work, tokens=True, bookies=())
    refused = [line for line in audit_lines(tmp_path) if not line["allowed"]]
    assert len(refused) == 7 and all("wrong" not in str(line) for line in refused)


def test_an_enforced_policy_shows_nothing_to_nobody(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        grant = Grant(Subject.parse("someone"), EVERY_RIGHT, CLUSTER)
        await served.bk.metadata_store.access.change(lambda old: Policy(Mode.ENFORCE, (grant,)), NOTE)
        await served.shows("/", "no grant gives nobody the right")
        assert (await served.ask("/ledgers")).status == 403

    story(tmp_path, work, bookies=())


@pytest.mark.rule("X15", "X67")
def test_the_body_of_an_action_that_takes_its_time_outlives_no_token(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        console = served.console

        def body() -> str:
            (tmp_path / "tokens").write_text(token_line("other", new_token()))
            console._admission._control.refresh()
            return json.dumps({"target": "b1", "confirm": "b1"})

        asked = PageRequest("POST", "/actions/read-only", "", served.token, "10.0.0.7", body)
        reply = await asyncio.to_thread(console._answer, asked)
        assert reply.code == 403 and "may go on no longer" in str(reply.body)

    story(tmp_path, work, tokens=True, actions=("read-only",))
    assert [line["on"] for line in audit_lines(tmp_path) if line["what"] == "deny"] == ["POST /actions/read-only"]
