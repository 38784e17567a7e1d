"""The same requests as to Apache's own server, whose replies are kept in ``tests/interop/http_routes/replies``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from bookkeeper.ids import BookieId, LedgerId
from tests.bookkeeper.http_api.served import Served, story
from tests.interop.http_routes.capture import REPLIES
from tests.interop.http_routes.exchanges import GROUPS, Exchange, as_shown, shape

OTHERWISE: Final[Mapping[str, str]] = {
    "GET /metrics": "names are ours and Apache's, as docs/compatibility.md lists them",
    "GET /api/v1/config/server_config": "the settings have our names",
    "PUT /api/v1/config/server_config {}": "settings are read at the start",
    "GET /api/v1/bookie/last_log_mark": "files of our journals end otherwise",
    "PUT /api/v1/bookie/expand_storage": "bk bookie add-directory takes the name of what it adds",
    'PUT /api/v1/autorecovery/bookie {"bookie_src": ["127.0.0.1:1"], "delete_cookie": false}': "nobody knows it",
    'PUT /api/v1/autorecovery/decommission {"bookie_src": "127.0.0.1:1"}': "nobody knows it",
}
"""Requests that ours answers otherwise, and why; docs/compatibility.md says so, too."""


def difference(exchange: Exchange, ours: dict[str, Any], apaches: dict[str, Any]) -> str | None:
    if shape(ours) == shape(apaches):
        return None
    return f"{exchange.name}\n   ours:    {shape(ours)}\n   Apache's: {shape(apaches)}"


@pytest.mark.parametrize("group", GROUPS)
def test_statuses_and_shapes_are_those_of_apaches_server(group: str, tmp_path: Path) -> None:
    replies = json.loads((REPLIES / f"{group}.json").read_text())
    found: list[str] = []

    async def work(served: Served) -> None:
        await served.furnish()
        for exchange in GROUPS[group]:
            reply = as_shown(await served.ask(*exchange), served.names)
            told = difference(exchange, reply, replies[exchange.name])
            if exchange.name in OTHERWISE:
                assert told is not None, f"{exchange.name} is answered as Apache answers it: leave it out of OTHERWISE"
            elif told is not None:
                found.append(told)
            if exchange.target.endswith("status?enabled=false"):
                closed, other = LedgerId(int(served.names["closed"])), BookieId(served.names["other"])
                await served.bk.metadata_store.under_replication.mark(closed, [other], 1)

    story(tmp_path, work)
    assert not found, "\n".join(found)
