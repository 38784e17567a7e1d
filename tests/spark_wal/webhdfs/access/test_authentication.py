"""The whole table of who is served is in test_listener; here is what it stands on."""

from __future__ import annotations

import pytest

from bookkeeper.gateways.tokens import Caller
from spark_wal.webhdfs.access.authentication import authorize, token_of
from spark_wal.webhdfs.errors import AccessDeniedError


@pytest.mark.parametrize(
    ("authorization", "delegation", "token"),
    [
        (None, None, None),
        ("Bearer abc", None, "abc"),
        ("bearer  abc ", "other", "abc"),
        ("Basic abc", "plain", "plain"),
        ("Bearer ", None, None),
    ],
)
def test_the_header_comes_before_the_parameter(
    authorization: str | None, delegation: str | None, token: str | None
) -> None:
    assert token_of(authorization, delegation) == token


@pytest.mark.rule("X57")
def test_above_the_roots_one_may_look_and_nothing_else() -> None:
    etl = Caller("etl", ("/a/b",))
    authorize(etl, "/a/b/c", "DELETE")
    authorize(etl, "/a", "GETFILESTATUS")
    authorize(None, "/", "DELETE")
    for path, operation in (("/a", "LISTSTATUS"), ("/a", "MKDIRS"), ("/x", "GETFILESTATUS"), ("/a", "RENAME")):
        with pytest.raises(AccessDeniedError, match="user=etl"):
            authorize(etl, path, operation)
