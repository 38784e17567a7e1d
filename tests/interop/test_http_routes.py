"""Apache's HTTP server is asked anew: what it answers is what the files have with which ours is compared; and of one
cluster both servers tell the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from bookkeeper import BookKeeper
from bookkeeper.audit import NO_AUDIT
from bookkeeper.autorecovery import AutorecoveryConfig
from bookkeeper.bookie.http_api_config import HttpApiConfig
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.http_api.routes import ROUTES, Scope
from bookkeeper.http_api.service import HttpApi
from bookkeeper.metrics import Metrics
from bookkeeper.real import run
from examples.apache_servers import whats_missing
from tests.interop.apache_shell import shell
from tests.interop.http_routes.capture import REPLIES, apaches_server, ask, captured, furnish, mark
from tests.interop.http_routes.exchanges import GROUPS, Exchange, as_shown, shape

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
"""More than all time limits of children together, with Maven's 600 s."""


def test_apaches_server_answers_what_ours_is_compared_with(tmp_path: Path) -> None:
    if (missing := whats_missing()) is not None:
        pytest.skip(missing)
    found = captured(tmp_path)
    differ = []
    for group, exchanges in GROUPS.items():
        kept = json.loads((REPLIES / f"{group}.json").read_text())
        assert list(kept) == sorted(each.name for each in exchanges), "capture them anew: see capture.py"
        for exchange in exchanges:
            if exchange.name == "GET /metrics":  # its first line is another one each time
                continue
            if shape(found[group][exchange.name]) != shape(kept[exchange.name]):
                differ.append((exchange.name, found[group][exchange.name], kept[exchange.name]))
    assert not differ


OTHERS: Final = ("/heartbeat", "/metrics", "/api/v1/config/server_config")
"""Cluster-wide routes that tell of the process that is asked."""


READ_ONLY: Final = Exchange("PUT", "/api/v1/bookie/state/readonly", '{"readOnly": true}')


def same_question(exchange: Exchange) -> bool:
    """Whether both servers, asked this of one cluster, must say the same, and nothing is changed by it."""
    path = exchange.target.partition("?")[0].removesuffix("/")
    asks = exchange.method == "GET" and path in ROUTES and "GET" in ROUTES[path].methods
    return asks and ROUTES[path].scope is Scope.CLUSTER and path not in OTHERS


def comparable(kept: dict[str, Any]) -> dict[str, Any]:
    """A reply without what differs by design: passwords, the stored bytes as text, the space that is free just now,
    and the words of what failed."""
    if kept["status"] >= 400:
        return {"status": kept["status"]}
    found: dict[str, Any] = json.loads(json.dumps(kept))
    for name, each in found["json"].items() if isinstance(found.get("json"), dict) else ():
        if isinstance(each, dict) and "password" in each:
            each["password"] = ""
        elif isinstance(each, str) and ("BookieMetadataFormatVersion" in each or "Free: " in each):
            found["json"][name] = "..."
    return found


def test_of_one_cluster_both_servers_tell_the_same(tmp_path: Path) -> None:
    if (missing := whats_missing()) is not None:
        pytest.skip(missing)
    token, tokens = new_token(), tmp_path / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(token_line("operator", token))

    async def compare(uri: str, port: int, bookies: dict[str, str]) -> list[Any]:
        async with BookKeeper.connect(uri) as bk:
            names = await furnish(bk, bookies)
            config = HttpApiConfig(listen="127.0.0.1:0", token_file=str(tokens))
            api = HttpApi(
                config,
                bk,
                name="ours",
                settings=AutorecoveryConfig(),
                pages={},
                metrics=Metrics(),
                audit=NO_AUDIT,
            )
            await api.start()
            differ, compared = [], 0
            try:
                off = Exchange("PUT", "/api/v1/autorecovery/status?enabled=false")
                await asyncio.to_thread(ask, port, off, names)  # else the mark would be repaired meanwhile
                await mark(bk, names)
                asked = [each for group in GROUPS.values() for each in group if same_question(each)]
                for exchange in (*asked, READ_ONLY, *(each for each in asked if "/bookie/" in each.target)):
                    if exchange is READ_ONLY:  # from here on one of them takes no entries
                        assert (await asyncio.to_thread(ask, port, exchange, names)).status == 200
                        continue
                    theirs = await asyncio.to_thread(ask, port, exchange, names)
                    ours = await asyncio.to_thread(ask, api.address.port, exchange, names, token.reveal())
                    pair = [comparable(as_shown(each, names)) for each in (ours, theirs)]
                    compared += 1
                    if pair[0] != pair[1]:
                        differ.append((exchange.name, *pair))
            finally:
                await api.close()
            assert compared > 30
            return differ

    with apaches_server(tmp_path) as (port, uri, bookies):
        shape_of = ("-ensemble", "2", "-writeQuorum", "2", "-ackQuorum", "2", "-numEntries", "3")
        shell("simpletest", *shape_of, uri=uri)  # a ledger of Java's client is among them
        assert run(compare(uri, port, bookies)) == []
