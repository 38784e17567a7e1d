"""Servers of this machine that a web page of somebody else tries to use: console, HTTP API, gateway, metrics."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from bookkeeper.ids import Address, BookieId
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from bookkeeper.real import SystemClock
from spark_wal.webhdfs.http.http_server import HttpServer
from tests.bookkeeper.console.served import served as served_console
from tests.bookkeeper.http_api.served import served as served_api
from tests.spark_wal.webhdfs.wire import Place, connected

FILE: Final = "/webhdfs/v1/page.html"
CONTENT: Final = b"<script>document.title = 'taken'</script>"
TRY_S: Final = 300.0


class _Page(BaseHTTPRequestHandler):
    """A page of somebody else: its script is given to it from outside."""

    def do_GET(self) -> None:
        """Answer every path alike."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        with suppress(ConnectionError):  # the browser has gone on
            self.wfile.write(b"<!DOCTYPE html><title>evil</title><body></body>")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's name
        """Say nothing."""


@contextmanager
def pages_of_somebody_else() -> Iterator[int]:
    """Serve them. Yields the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def attack(python: str, browser: str, directory: Path) -> int:
    """Let a browser try it. Returns 0, or 1: something went through."""
    gateway = Place.empty().gateway()
    await gateway.start()
    files = HttpServer(gateway, SystemClock(), hosts={"localhost", "gateway"})
    at = await files.start(Address("127.0.0.1", 0))
    try:
        async with connected(at) as wire:
            made = await wire.request("PUT", f"{FILE}?op=CREATE&overwrite=true&namenoderpcaddress=x", body=CONTENT)
            assert made.status == 201, made
        for name in ("console", "api"):
            (directory / name).mkdir()
        async with (
            served_console(directory / "console", bookies=("b1",)) as console,
            served_api(directory / "api", auditor=False) as api,
        ):
            await api.furnish()
            with pages_of_somebody_else() as port:
                told = _told(port, str(console.console.address), str(api.api.address), str(at), api.names["doomed"])
                await asyncio.to_thread(_see, told["pages"], api.token)
                status = await _browse(python, browser, told)
            orders = ReadOnlyOrders(console.bk.metadata_store.store, console.bk.metadata_store.paths)
            changed = [
                await orders.read(BookieId("b1")) is not None,
                api.server.condition().read_only,
                not await api.bk.exists(int(api.names["doomed"])),
            ]
        async with connected(at) as wire:
            left = (await wire.request("GET", f"{FILE}?op=OPEN&namenoderpcaddress=x")).body
        changed.append(left != CONTENT)
    finally:
        await files.close()
        await gateway.close()
    if any(changed):
        print(f"a page of somebody else has changed something: {changed}")
    return 1 if any(changed) else status


def _told(port: int, console: str, api: str, files: str, ledger: str) -> dict[str, Any]:
    order = '{"target": "b1", "confirm": "b1"}'

    def ask(method: str, url: str, shows: str, **more: Any) -> dict[str, Any]:
        return {"method": method, "url": f"http://{url}", "shows": shows, **more}

    pages = [
        ask("GET", f"{console}/", "Bookies"),
        ask("GET", f"{console}/ledgers", "Ledgers"),
        ask("GET", f"{api}/api/v1/ledger/list", f'"{ledger}"'),
        ask("GET", f"{files}/webhdfs/v1/?op=LISTSTATUS", "page.html"),
        ask("GET", f"{files}{FILE}?op=OPEN&namenoderpcaddress=x", "taken"),
        ask("GET", f"{files}/metrics", "gateway_"),
    ]
    return {
        "port": port,
        "pages": pages,
        "asks": [
            *pages,
            ask("POST", f"{console}/actions/read-only", "ordered", body=order),
            ask("POST", f"{console}/actions/read-only", "ordered", body=order, headers={"Authorization": "Bearer x"}),
            ask("PUT", f"{api}/api/v1/bookie/state/readonly", "readOnly", body='{"readOnly": true}'),
            ask("DELETE", f"{api}/api/v1/ledger/delete?ledger_id={ledger}", "Deleted"),
            ask("POST", f"{files}{FILE}?op=APPEND&namenoderpcaddress=x", "appended", body="+"),
            ask("PUT", f"{files}/webhdfs/v1/made?op=MKDIRS", "boolean"),
            ask("DELETE", f"{files}{FILE}?op=DELETE", "boolean"),
        ],
        "sockets": [f"ws://{each}/" for each in (console, api)] + [f"ws://{files}/events"],
    }


def _see(pages: list[dict[str, Any]], token: str) -> None:
    """See that a client of ours is shown what no page may be shown."""
    for each in pages:
        address, _, path = each["url"].removeprefix("http://").partition("/")
        connection = http.client.HTTPConnection(address, timeout=30 * stretch())
        connection.request("GET", f"/{path}", headers={"Authorization": f"Bearer {token}"})
        said = connection.getresponse().read().decode()
        connection.close()
        assert each["shows"] in said, (each, said[:500])


async def _browse(python: str, browser: str, told: dict[str, Any]) -> int:
    script = Path(__file__).with_name("hostile_page.py")
    child = await asyncio.create_subprocess_exec(python, str(script), browser, json.dumps(told))
    try:
        async with asyncio.timeout(TRY_S):
            return await child.wait()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
