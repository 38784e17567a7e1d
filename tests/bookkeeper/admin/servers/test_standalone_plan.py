"""What ``bk standalone`` is to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bookkeeper.admin.servers.standalone_plan import StandalonePlan
from bookkeeper.errors import ConfigError


def plan_of(bookies: int = 3, **options: Any) -> StandalonePlan:
    return StandalonePlan(Path("/data"), bookies=bookies, webhdfs_port=None, command_group="g", **options)


def test_it_says_where_the_metadata_are() -> None:
    assert plan_of().metadata == "sqlite:///data/metadata.db"
    assert plan_of().http_api_ports == {}


def test_each_bookie_serves_the_http_api_at_a_port_of_its_own() -> None:
    plan = plan_of(http_api_port=8080, http_api={"token_file": "/tokens", "actions": ["compaction"]})
    assert plan.http_api_ports == {"b1": 8080, "b2": 8081, "b3": 8082}
    assert plan.http_api_of("b2") == {"listen": "127.0.0.1:8081", "token_file": "/tokens", "actions": ["compaction"]}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"http_api": {"token_file": "/t"}}, "--http-token-file and --http-actions need --http-api"),
        ({"http_api_port": 8080}, "`bk gateway token NAME --token-file FILE` makes a token"),
        ({"http_api_port": 65534, "http_api": {"token_file": "/t"}}, "would serve at port 65536"),
        ({"http_api_port": 80, "http_api": {"token_file": "/t", "actions": ["x"]}}, "there is no action x"),
    ],
)
def test_an_http_api_that_cannot_be_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        plan_of(**options)


def test_tls_needs_a_certificate_and_its_authority() -> None:
    with pytest.raises(ConfigError, match="--tls-ca"):
        plan_of(tls={"cert": "/c"})
