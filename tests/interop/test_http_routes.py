"""Apache's HTTP server is asked anew: what it answers is what the files have with which ours is compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.apache_servers import whats_missing
from tests.interop.http_routes.capture import REPLIES, captured
from tests.interop.http_routes.exchanges import GROUPS, shape

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
